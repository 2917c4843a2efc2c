/*
 * recurrent.h - what stands in place of attention where a layer remembers a
 * state, and not all tokens.
 */
#ifndef LMQ_RUNTIME_LAYER_RECURRENT_H
#define LMQ_RUNTIME_LAYER_RECURRENT_H

#include "runtime/product.h"

/* work->attention (n, value heads * value dim) from the layer's input xn (n,
 * dim), and the layer's state goes on by n tokens; at position 0 it begins
 * anew. All members take part, and those who read the result need a barrier. */
void lmq_recurrent_attention(const struct lmq_member *member,
                             struct lmq_operand *xn);

#endif
