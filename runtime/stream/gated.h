/*
 * gated.h - streams of which blocks read a sum that has a gate for each number.
 */
#ifndef LMQ_RUNTIME_STREAM_GATED_H
#define LMQ_RUNTIME_STREAM_GATED_H

#include "runtime/member.h"

/* x (n, dim) = what a block, or the head, is given of all streams, each normed
 * with its part of the gain. Leaves in work->hyper how the block writes, if it
 * does. All members take part: before it each has its share of the tokens'
 * streams, and those who read x need a barrier. */
void lmq_gated_read(const struct lmq_member *member,
                    const struct lmq_gated *gated,
                    const struct lmq_gain *gain, float *x);

#endif
