/*
 * names.h - what a tensor is for: stored name -> role, layer, expert.
 */
#ifndef LMQ_FORMATS_NAMES_H
#define LMQ_FORMATS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values stand in .lmq files (lmq(5), "Roles"): append only. */
enum lmq_role {
    LMQ_ROLE_OTHER = 0,
    LMQ_ROLE_EMBEDDING = 1,
    LMQ_ROLE_HEAD = 2,
    LMQ_ROLE_OUTPUT_NORM = 3,
    LMQ_ROLE_ATTN_NORM = 4,
    LMQ_ROLE_ATTN_Q = 5,
    LMQ_ROLE_ATTN_K = 6,
    LMQ_ROLE_ATTN_V = 7,
    LMQ_ROLE_ATTN_OUT = 8,
    LMQ_ROLE_FFN_NORM = 9,
    LMQ_ROLE_FFN_GATE = 10,
    LMQ_ROLE_FFN_UP = 11,
    LMQ_ROLE_FFN_DOWN = 12,
    LMQ_ROLE_COUNT
};

enum lmq_part { LMQ_PART_WEIGHT = 0, LMQ_PART_BIAS = 1, LMQ_PART_COUNT };

/* layer is -1 where a tensor belongs to none. */
struct lmq_place {
    enum lmq_role role;
    enum lmq_part part;
    int32_t layer;
};

/* False, and the role OTHER, for a name that no convention knows. Wrapping
 * prefixes ("module.", "_orig_mod.") are looked through. */
bool lmq_name_parse(const char *stored, struct lmq_place *place);

/* Whether it is known and not needed: rotary tables, masks. */
bool lmq_name_is_ignorable(const char *stored);

/* "blk.3.attn_q.weight"; the role must not be OTHER. */
void lmq_name_canonical(const struct lmq_place *place, char *name,
                        size_t size);

bool lmq_role_is_per_layer(enum lmq_role role);

/* The order of tensors in a container: embedding, layers, output. */
int lmq_place_compare(const struct lmq_place *a, const struct lmq_place *b);

#endif
