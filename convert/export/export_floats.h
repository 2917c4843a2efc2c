/*
 * export_floats.h - the elements of a tensor as numbers in a file.
 */
#ifndef LMQ_CONVERT_EXPORT_EXPORT_FLOATS_H
#define LMQ_CONVERT_EXPORT_EXPORT_FLOATS_H

#include "base/files/output.h"
#include "base/threads/tasks.h"
#include "formats/checkpoint/checkpoint.h"

struct lmq_float_target {
    struct lmq_checkpoint *checkpoint;
    const struct lmq_tensor *tensor;
    enum lmq_dtype dtype; /* F32, F16, BF16; or the tensor's own integers */
    bool is_less_one;     /* 1 is subtracted */
    struct lmq_output *output;
    uint64_t offset;
};

/* Who writes them; `n_elements` are those of the largest. */
enum lmq_status lmq_float_workers_open(struct lmq_workers *workers,
                                       int threads, uint64_t n_elements,
                                       struct lmq_error *err);

/* Writes all elements; *is_exact is cleared if one was rounded. What is not
 * finite, or is not any more in the type, is LMQ_ERR_NONFINITE. */
enum lmq_status lmq_export_write_tensor(const struct lmq_float_target *target,
                                        const struct lmq_workers *workers,
                                        bool *is_exact, struct lmq_error *err);

#endif
