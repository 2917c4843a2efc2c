/*
 * variant.h - a matrix as a container would have it, made in memory: with the
 * quantizers of a conversion, and computed with as the runtime would.
 */
#ifndef LMQ_VALIDATE_VARIANT_H
#define LMQ_VALIDATE_VARIANT_H

#include "base/threads/tasks.h"
#include "formats/lmq/lmq_describe.h"
#include "runtime/model.h"

/* What becomes of a matrix. */
struct lmq_encoding_choice {
    enum lmq_stored stored;
    struct lmq_quant quant; /* of integers; its bits are those of `stored` */
    bool is_taken; /* as the source has it: its integers, its floats */
};

/* Threads that make variants. */
enum lmq_status lmq_variant_workers(struct lmq_workers *workers, int threads,
                                    struct lmq_error *err);

/* Without a bias; to be dropped by lmq_matrix_drop(). */
enum lmq_status lmq_variant_make(struct lmq_checkpoint *checkpoint,
                                 const struct lmq_tensor *tensor,
                                 const struct lmq_encoding_choice *choice,
                                 const struct lmq_workers *workers,
                                 struct lmq_matrix *matrix,
                                 struct lmq_error *err);

/* The error alone, of some rows that are spread over the matrix. */
enum lmq_status lmq_variant_error(struct lmq_checkpoint *checkpoint,
                                  const struct lmq_tensor *tensor,
                                  const struct lmq_encoding_choice *choice,
                                  const struct lmq_workers *workers,
                                  double *sum_sq, double *err_sq,
                                  struct lmq_error *err);

#endif
