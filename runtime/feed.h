/*
 * feed.h - feed-forward networks.
 */
#ifndef LMQ_RUNTIME_FEED_H
#define LMQ_RUNTIME_FEED_H

#include "runtime/member.h"

/* The insides of a network: a piece of one row of gate x and up x, or of up x
 * alone. What goes on to `down` stands in lmq_ffn_inside(). */
void lmq_ffn_activate(const struct lmq_member *member,
                      const struct lmq_ffn *ffn, float *gate, float *up,
                      size_t column, size_t size);

/* work->gate or, without a gate, work->up. */
float *lmq_ffn_inside(const struct lmq_member *member);

/* out = down(act(gate x) * (up x)), or down(act(up x)), without the bias of
 * `down`. All members take part, and those who read `out` need a barrier. */
void lmq_ffn(const struct lmq_member *member, const struct lmq_ffn *ffn,
             struct lmq_operand *x, float *out);

#endif
