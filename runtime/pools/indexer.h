/*
 * indexer.h - which pools a token sees, where it does not see all.
 */
#ifndef LMQ_RUNTIME_POOLS_INDEXER_H
#define LMQ_RUNTIME_POOLS_INDEXER_H

#include "runtime/product.h"

/* work->chosen (n, lmq_index_stride()) of the batch's tokens, from the latents
 * of their queries, and from the layer's input, of which the weights of heads
 * are made already (lmq_pools_multiply()). All members take part, and those
 * who read it need a barrier. */
void lmq_index_choose(const struct lmq_member *member,
                      struct lmq_operand *q_a);

/* Pools that there is room for. */
size_t lmq_index_stride(const struct lmq_member *member);

#endif
