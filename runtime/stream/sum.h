/*
 * sum.h - what a block gives, added to the residual stream.
 */
#ifndef LMQ_RUNTIME_STREAM_SUM_H
#define LMQ_RUNTIME_STREAM_SUM_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/member.h"

/* How much of what it is added to stays, and how much of it is added. */
struct lmq_sum {
    const float *input; /* of the block: (n, dim) */
    double keep, add;
};

/* x += scale * (out + bias) of token t, or x += scale * norm(out + bias) if
 * what the block gives is normed; perhaps to keep * x, or to keep * input.
 * bias: (dim), or NULL. */
void lmq_sum_token(const struct lmq_member *member, const struct lmq_sum *sum,
                   const float *bias, bool is_normed,
                   const struct lmq_gain *post_norm, size_t t);

#endif
