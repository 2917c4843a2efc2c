/*
 * hparams_fields.h - the fields of a description as a table: what checking,
 * comparing, storing and every format's keys go by.
 *
 * A key of a format names its field by the offset in struct lmq_hparams; what
 * type and which limits that field has stands here alone.
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_FIELDS_H
#define LMQ_FORMATS_MODEL_HPARAMS_FIELDS_H

#include <stddef.h>

#include "formats/model/hparams.h"

/* Of the first four a field is one number; see lmq_field_get(). */
enum lmq_field_type {
    LMQ_FIELD_COUNT,  /* an uint32_t */
    LMQ_FIELD_REAL,   /* a double, from 0 */
    LMQ_FIELD_SWITCH, /* a bool */
    LMQ_FIELD_KIND,   /* an enumeration: small and not negative */
    LMQ_FIELD_LAYERS, /* a bit of each layer */
    LMQ_FIELD_NUMBERS, /* an uint32_t of each layer */
    LMQ_FIELD_FACTORS, /* n_rope_factors doubles */
    LMQ_FIELD_INTEGERS, /* uint64_t, as many as another field counts */
    LMQ_FIELD_PAIRS /* the same, stored by their upper and lower halves */
};

/* Fields of version 1.0 are always in a container; the others only if they
 * differ from what lmq_hparams_init() says. */
enum lmq_presence { LMQ_ALWAYS, LMQ_SELDOM };

struct lmq_field {
    const char *key;          /* in a container; NULL ends the table */
    enum lmq_field_type type;
    enum lmq_presence presence;
    size_t offset;            /* in struct lmq_hparams */
    uint32_t least, most;     /* of a count, of each number */
    const char *what;         /* a kind, in a message */
    const char *const *names; /* of kinds, by number; ends with NULL */
    enum lmq_layer_kind bit;  /* of layers */
    /* Of each layer: the number that counts. */
    uint32_t (*of_layer)(const struct lmq_hparams *hparams, size_t layer);
    size_t n_offset;          /* of integers: where it stands how many */
};

/* In the order in which they are stored and compared. */
extern const struct lmq_field lmq_fields[];

#define LMQ_FIELD(name) offsetof(struct lmq_hparams, name)

/* The one at an offset, which must be that of a field. */
const struct lmq_field *lmq_field_at(size_t offset);

/* A count, a real number, a switch (0 or 1) or a kind; a double holds any of
 * them exactly. */
double lmq_field_get(const struct lmq_field *field,
                     const struct lmq_hparams *hparams);
void lmq_field_set(const struct lmq_field *field, struct lmq_hparams *hparams,
                   double value);

const double *lmq_field_factors(const struct lmq_field *field,
                                const struct lmq_hparams *hparams);
const uint64_t *lmq_field_integers(const struct lmq_field *field,
                                   const struct lmq_hparams *hparams,
                                   uint32_t *n);

/* Whether two descriptions say the same of it. Real numbers may differ by
 * `tolerance` of the larger one. */
bool lmq_field_is_same(const struct lmq_field *field,
                       const struct lmq_hparams *a,
                       const struct lmq_hparams *b, double tolerance);

#endif
