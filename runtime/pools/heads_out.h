/*
 * heads_out.h - what becomes of what the heads of attention give.
 */
#ifndef LMQ_RUNTIME_POOLS_HEADS_OUT_H
#define LMQ_RUNTIME_POOLS_HEADS_OUT_H

#include "runtime/product.h"

/* work->out (n, dim) of work->attention (n, n_heads * value_dim), without the
 * bias. All members take part, and those who read it need a barrier. */
void lmq_heads_out(const struct lmq_member *member);

#endif
