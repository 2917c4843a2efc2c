/*
 * oracle.h - the forward pass once more, as plainly as possible.
 *
 * Doubles, no cache, no batches, no threads, the C library's functions: slow
 * and obvious. It shares nothing with the runtime but the tensors.
 */
#ifndef LMQ_TESTS_ORACLE_H
#define LMQ_TESTS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint.h"

/* The logits (n, vocabulary) after each of n tokens; freed with free(). */
double *oracle_logits(struct lmq_checkpoint *checkpoint, const int32_t *tokens,
                      size_t n);

/* The largest difference, relative to the largest logit. */
double oracle_distance(const double *truth, const float *logits, size_t n);

#endif
