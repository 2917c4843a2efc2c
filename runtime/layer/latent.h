/*
 * latent.h - attention by latents ("MLA").
 */
#ifndef LMQ_RUNTIME_LAYER_LATENT_H
#define LMQ_RUNTIME_LAYER_LATENT_H

#include "runtime/product.h"

/* q_a = norm(q_a + bias), where there is one; q_pair = both. */
void lmq_latent_queries(const struct lmq_member *member);

/* A row more in the cache for each token, from the layer's input xn (n, dim),
 * and nothing else. */
void lmq_latent_remember(const struct lmq_member *member,
                         struct lmq_operand *xn);

/* work->attention (n, n_heads * value_dim) from the layer's input xn (n, dim),
 * and a row more in the cache for each token. All members take part, and
 * those who read the result need a barrier. */
void lmq_latent_attention(const struct lmq_member *member,
                          struct lmq_operand *xn);

#endif
