/*
 * mixes.h - models that exist only while they are measured: one that is there,
 * with other matrices in it.
 */
#ifndef LMQ_VALIDATE_MIXES_H
#define LMQ_VALIDATE_MIXES_H

#include "validate/job.h"
#include "validate/plan/units.h"
#include "validate/plan/variant.h"

/* Stands for the reference's own matrix. */
extern const struct lmq_encoding_choice lmq_as_reference;

/* Of each unit what it is in this mix; NULL: as the model has it. */
struct lmq_mix {
    const struct lmq_encoding_choice **choices;
    const enum lmq_kv_type *kv_type; /* NULL: the base's */
};

struct lmq_mixing {
    struct lmq_job *job;
    const struct lmq_units *units;
    struct lmq_side base;     /* what mixes differ from: of model 0, the
                                 reference, or of a candidate */
    const struct lmq_mix *mixes;
    size_t n_mixes;
    size_t n_windows;
    const char *stage;        /* for the progress */
};

/* How far each mix is from the reference. A mix is computed from the first
 * layer that it changes, of the base the rest. *drifts (n_mixes) are released
 * with lmq_drift_free() each, also after a failure. */
enum lmq_status lmq_mixes_measure(const struct lmq_mixing *mixing,
                                  struct lmq_drift *drifts,
                                  struct lmq_error *err);

#endif
