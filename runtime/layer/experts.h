/*
 * experts.h - feed-forward networks of which each token uses a few.
 */
#ifndef LMQ_RUNTIME_LAYER_EXPERTS_H
#define LMQ_RUNTIME_LAYER_EXPERTS_H

#include "runtime/member.h"

/* out = the weighted results of each token's experts, in ascending order,
 * and then that of the shared ones, all with their biases. x: (n, dim). All
 * members take part, and those who read `out` need a barrier. */
void lmq_experts(const struct lmq_member *member, const float *x, float *out);

/* What a router that looks at what enters the layer says of it, before x
 * changes; nothing for others. All members take part. */
void lmq_experts_look(const struct lmq_member *member);

#endif
