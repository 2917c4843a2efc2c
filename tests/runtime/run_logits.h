/*
 * run_logits.h - what the suites do with logits.
 */
#ifndef LMQ_TESTS_RUNTIME_RUN_LOGITS_H
#define LMQ_TESTS_RUNTIME_RUN_LOGITS_H

#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* The logits after each of n tokens, `step` of which are given at a time, by a
 * session with these options (context 0: n); freed with free(). */
float *run_logits(struct lmq_model *model,
                  const struct lmq_session_options *options,
                  const int32_t *tokens, size_t n, size_t step);

double log_sum_exp(const float *logits, size_t n);

/* The first of the largest. */
size_t likeliest(const float *logits, size_t n);

#endif
