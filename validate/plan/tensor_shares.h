/*
 * tensor_shares.h - what each tensor's quantization costs, and what would cure
 * it.
 */
#ifndef LMQ_VALIDATE_TENSOR_SHARES_H
#define LMQ_VALIDATE_TENSOR_SHARES_H

#include "validate/job.h"

extern const struct lmq_name lmq_attribution_names[]; /* of whether tensors are
                                                         looked at */

bool lmq_wants_tensors(const struct lmq_job *job);

/* Adds "tensors" and "cure" to an attribution of a candidate whose divergence
 * over the first n_windows is `full`. */
enum lmq_status lmq_attribute_tensors(struct lmq_job *job, size_t index,
                                      size_t n_windows, double full,
                                      json_t **attribution,
                                      struct lmq_error *err);

#endif
