/*
 * gating.h - what numbers of a layer are multiplied by.
 */
#ifndef LMQ_RUNTIME_LAYER_GATING_H
#define LMQ_RUNTIME_LAYER_GATING_H

#include "runtime/member.h"

/* work->attention (n, n_heads * value dim) *= open(work->attn_gate + bias),
 * number by number, or one for all of a head. All members take part, before
 * and behind it they need a barrier. */
void lmq_gate_heads(const struct lmq_member *member,
                    const struct lmq_matrix *w_gate);

/* u *= sigmoid(W_b silu(W_a u)), (n, dim). Likewise. */
void lmq_gate_input(const struct lmq_member *member,
                    const struct lmq_norm_gate *gate, float *u);

#endif
