/*
 * hparams_fields.h - the fields of a description as tables: what checking,
 * comparing and storing go by.
 *
 * Each table ends with a key that is NULL.
 */
#ifndef LMQ_FORMATS_HPARAMS_FIELDS_H
#define LMQ_FORMATS_HPARAMS_FIELDS_H

#include <stddef.h>

#include "formats/hparams.h"

/* Fields of version 1.0 are always in a container; the others only if they
 * differ from what lmq_hparams_init() says. */
enum lmq_presence { LMQ_ALWAYS, LMQ_SELDOM };

struct lmq_count_field {
    const char *key;
    size_t offset; /* in struct lmq_hparams, of an uint32_t */
    uint32_t most;
    enum lmq_presence presence;
    bool may_be_zero;
};

struct lmq_real_field {
    const char *key;
    size_t offset; /* of a double */
    enum lmq_presence presence;
};

struct lmq_switch_field {
    const char *key;
    size_t offset; /* of a bool */
};

/* Kinds by name, in the order of their enumerators. */
#define LMQ_MOST_KINDS 9

struct lmq_kind_field {
    const char *key;
    const char *what; /* for a message */
    size_t offset;    /* of an enumeration */
    enum lmq_presence presence;
    const char *names[LMQ_MOST_KINDS]; /* ends with NULL */
};

/* Layers that differ. */
struct lmq_layer_field {
    const char *key;
    enum lmq_layer_kind kind;
};

/* Rotary factors. */
struct lmq_factor_field {
    const char *key;
    size_t offset; /* of an array of n_rope_factors doubles */
};

extern const struct lmq_count_field lmq_hparams_counts[];
extern const struct lmq_real_field lmq_hparams_reals[];
extern const struct lmq_switch_field lmq_hparams_switches[];
extern const struct lmq_kind_field lmq_hparams_kinds[];
extern const struct lmq_layer_field lmq_hparams_layers[];
extern const struct lmq_factor_field lmq_hparams_factors[];

static inline uint32_t
lmq_count_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const uint32_t *)(const void *)((const char *)hparams + offset);
}

static inline double
lmq_real_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const double *)(const void *)((const char *)hparams + offset);
}

static inline bool
lmq_switch_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const bool *)(const void *)((const char *)hparams + offset);
}

/* All enumerations are small and not negative. */
int lmq_kind_at(const struct lmq_hparams *hparams, size_t offset);

#endif
