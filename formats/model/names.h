/*
 * names.h - what a tensor is for: stored name -> role, layer, expert or head.
 */
#ifndef LMQ_FORMATS_MODEL_NAMES_H
#define LMQ_FORMATS_MODEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/model/roles.h"

/* Experts of a layer, or heads. */
#define LMQ_MAX_ITEMS 65536

/* How Hugging Face's library calls tensors, where we write its names. */
enum lmq_names {
    LMQ_NAMES_NONE,
    LMQ_NAMES_LLAMA,
    LMQ_NAMES_MIXTRAL, /* Llama's, but for its experts */
    LMQ_NAMES_DELTA,   /* likewise, but for layers with the delta rule */
    LMQ_NAMES_APERTUS  /* likewise, but for norms */
};

/* layer is -1 where a tensor belongs to none; so is item where it is neither
 * of an expert (roles FFN_*) nor of a head (ATTN_K_B, ATTN_V_B, and norms of
 * queries and keys that each head has for itself) nor of a stream but the
 * first (STREAMS_*, from 0 on). */
struct lmq_place {
    enum lmq_role role;
    enum lmq_part part;
    int32_t layer;
    int32_t item;
};

/* False, and the role OTHER, for a name that no convention knows. Wrapping
 * prefixes ("module.", "_orig_mod.") are looked through. */
bool lmq_name_parse(const char *stored, struct lmq_place *place);

/* Why a tensor is not needed (rotary tables, masks, other parts of a larger
 * model), as a phrase; NULL if it is. */
const char *lmq_name_why_ignored(const char *stored);

/* The layer in a name like "model.layers.61.enorm.weight", known or not; -1 if
 * there is none. */
int32_t lmq_name_layer(const char *stored);

/* "blk.3.attn_q.weight", "blk.3.ffn_up.7.weight"; the role must be one that a
 * container has. */
void lmq_name_canonical(const struct lmq_place *place, char *name,
                        size_t size);

/* As Hugging Face's library has it; false if there is no such name. Whether
 * norms follow attention changes what the others are called. */
bool lmq_name_hf(enum lmq_names names, const struct lmq_place *place,
                 bool has_post_norms, char *name, size_t size);

/* "attn_q": what it is called in canonical names. */
const char *lmq_role_name(enum lmq_role role);

bool lmq_role_is_per_layer(enum lmq_role role);

/* What a matrix of a recurrence is where attention stands beside it; others are
 * what they are. */
enum lmq_role lmq_role_beside(enum lmq_role role);

/* Matrices that are never integers: a router decides, learned positions are
 * added once per token, what the delta rule forgets it forgets for all
 * tokens to come, and by some numbers streams change each other. They are
 * small, and errors in them go everywhere. What is chosen by a table is as
 * whole numbers say. */
/* Of what chooses positions, what turns. */
bool lmq_role_is_of_index(enum lmq_role role);
bool lmq_role_is_small(enum lmq_role role);

/* Whether there may be several, by number: one per expert, per head, per
 * stream. */
bool lmq_role_has_items(enum lmq_role role);
bool lmq_role_is_of_experts(enum lmq_role role); /* of a layer with experts */
bool lmq_role_is_of_heads(enum lmq_role role);   /* always */
bool lmq_role_is_of_streams(enum lmq_role role); /* always, and in no layer */
bool lmq_role_is_of_parts(enum lmq_role role);   /* of what heads give */
/* Whether there is none without a number. */
bool lmq_role_wants_item(enum lmq_role role);
/* Of a recurrent layer: the whole, or of queries, keys or values. */
bool lmq_role_is_convolution(enum lmq_role role);

/* The order of tensors in a container: embedding, layers, output. */
int lmq_place_compare(const struct lmq_place *a, const struct lmq_place *b);

#endif
