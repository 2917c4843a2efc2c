/*
 * heads.h - attention by queries, keys and values of each head.
 */
#ifndef LMQ_RUNTIME_LAYER_HEADS_H
#define LMQ_RUNTIME_LAYER_HEADS_H

#include "runtime/product.h"

/* A row more of keys and values in the cache for each token, from the layer's
 * input xn (n, dim), and nothing else. */
void lmq_heads_remember(const struct lmq_member *member,
                        struct lmq_operand *xn);

/* work->attention (n, n_heads * value_dim) from the layer's input xn (n, dim),
 * and a row more of keys and values in the cache for each token. All
 * members take part, and those who read the result need a barrier. */
void lmq_heads_attention(const struct lmq_member *member,
                         struct lmq_operand *xn);

#endif
