/*
 * describe.h - checkpoints as report trees; the words that all commands use
 * for the same things.
 */
#ifndef LMQ_FORMATS_DESCRIBE_H
#define LMQ_FORMATS_DESCRIBE_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"

/* What a checkpoint takes; aliases count once. */
struct lmq_sizes {
    uint64_t parameters, tensor_bytes, file_bytes;
    double bits_per_weight; /* of the tensors alone */
};
struct lmq_sizes lmq_checkpoint_sizes(const struct lmq_checkpoint *checkpoint);

json_t *lmq_describe_dims(const uint64_t *dims, uint32_t n_dims);
/* Those of opening the checkpoint, then those of the operation (or NULL). */
json_t *lmq_describe_notes(const struct lmq_checkpoint *checkpoint,
                           const struct lmq_notes *own);

/* The hyper-parameters, or {"architecture", "unsupported"}. */
json_t *lmq_describe_model(const struct lmq_checkpoint *checkpoint);

/* What differs from a plain Llama, and how the source arranges what we keep
 * otherwise: a text each (describe_model.c). */
json_t *lmq_describe_differences(const struct lmq_checkpoint *checkpoint);
json_t *lmq_describe_arrangement(const struct lmq_checkpoint *checkpoint);

#endif
