/*
 * inputs.h - what each layer is given of the tokens themselves.
 */
#ifndef LMQ_RUNTIME_LAYER_INPUTS_H
#define LMQ_RUNTIME_LAYER_INPUTS_H

#include "runtime/member.h"

/* The inputs (n, n_layers, layer_input_dim) of the member's tokens, whose
 * embeddings are x (n, dim). All members take part, and those who read the
 * inputs need a barrier. */
void lmq_inputs_make(const struct lmq_member *member, const int32_t *tokens,
                     const float *x, float *inputs);

/* x += what the layer makes of x and its input. All members take part: before
 * it they need a barrier, behind it each has its share of the tokens. */
void lmq_inputs_add(const struct lmq_member *member);

#endif
