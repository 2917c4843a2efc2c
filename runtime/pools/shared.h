/*
 * shared.h - attention whose values are the keys, once normed and turned.
 */
#ifndef LMQ_RUNTIME_POOLS_SHARED_H
#define LMQ_RUNTIME_POOLS_SHARED_H

#include "runtime/product.h"

/* A row more of keys in the cache for each token, from the layer's input xn
 * (n, dim), and nothing else; of a layer without pools. */
void lmq_shared_remember(const struct lmq_member *member,
                         struct lmq_operand *xn);

/* work->attention (n, n_heads * head_dim) from the layer's input xn (n, dim),
 * and a row more of keys in the cache for each token, and pools that are
 * complete. All members take part, and those who read the result need a
 * barrier. */
void lmq_shared_attention(const struct lmq_member *member,
                          struct lmq_operand *xn);

#endif
