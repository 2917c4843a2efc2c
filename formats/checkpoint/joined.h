/*
 * joined.h - the tensors of a checkpoint as a family's files have them: fused,
 * in another order, apart. What split.c takes apart and apart.c puts together,
 * the other way round.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_JOINED_H
#define LMQ_FORMATS_CHECKPOINT_JOINED_H

#include "formats/checkpoint/checkpoint.h"

/* Which matrices a format has in one. */
enum {
    LMQ_JOINS_QKV = 1, /* of recurrent layers, and so the next two */
    LMQ_JOINS_QKVZ = 2,
    LMQ_JOINS_BA = 4,
    LMQ_JOINS_Q_GATE = 8,
    LMQ_JOINS_NO_CONV = 16 /* alone: of delta rules it has apart what we have
                              in one */
};

/* A checkpoint that shares all with another, but for tensors: these are what
 * is written. It is read like any other. */
struct lmq_arranged {
    struct lmq_checkpoint checkpoint;
    struct lmq_tensor *tensors; /* as many as the other has, or two more in
                                   each layer; then, by their order, what there
                                   is of joined ones */
    struct lmq_joined *joined;
    size_t n_joined;
    size_t n_rounded; /* matrices whose integers cannot be had so */
};

/* `joins`: bits of the above; `as`: what else the format has otherwise. */
enum lmq_status lmq_arrange(const struct lmq_checkpoint *checkpoint,
                            unsigned joins, const struct lmq_source *as,
                            struct lmq_arranged *arranged,
                            struct lmq_error *err);
void lmq_arranged_free(struct lmq_arranged *arranged);

#endif
