/*
 * feed.h - feed-forward networks.
 */
#ifndef LMQ_RUNTIME_LAYER_FEED_H
#define LMQ_RUNTIME_LAYER_FEED_H

#include "runtime/product.h"

/* x = act(x), n numbers: LMQ_ROW_PIECE at most. */
void lmq_activate(const struct lmq_member *member, float *x, size_t n);

/* What gate and act(gate) are at most, and up no further from 0; 0: they are
 * not limited. */
struct lmq_limits {
    float gate, act;
};

/* hidden = act(gate) * up, or act(up), of a piece of one row: `size` numbers
 * from `column` on. It stands in lmq_ffn_hidden() then. */
void lmq_ffn_activate(const struct lmq_member *member,
                      const struct lmq_ffn *ffn,
                      const struct lmq_limits *limits, float *gate, float *up,
                      size_t column, size_t size);

/* What W_down takes: work->gate or, without a gate, work->up. */
float *lmq_ffn_hidden(const struct lmq_member *member);

/* out (n, dim) = W_down (act(W_gate xn) * (W_up xn)), or W_down act(W_up xn),
 * without the bias of W_down; with a norm of what W_down takes, or NULL. All
 * members take part, and those who read `out` need a barrier. */
void lmq_ffn(const struct lmq_member *member, const struct lmq_ffn *ffn,
             const struct lmq_gain *sub_norm, struct lmq_operand *xn,
             float *out);

#endif
