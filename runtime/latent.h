/*
 * latent.h - attention by latents ("MLA").
 */
#ifndef LMQ_RUNTIME_LATENT_H
#define LMQ_RUNTIME_LATENT_H

#include "runtime/walker.h"

/* work->attention from the layer's input x, and a row more in the cache for
 * each token. All walkers take part, and those who read the result need a
 * barrier. */
void lmq_latent_attention(const struct lmq_walker *walker,
                          struct lmq_operand *x);

#endif
