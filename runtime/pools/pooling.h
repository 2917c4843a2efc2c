/*
 * pooling.h - keys that stand for many positions.
 */
#ifndef LMQ_RUNTIME_POOLS_POOLING_H
#define LMQ_RUNTIME_POOLS_POOLING_H

#include "runtime/product.h"

/* What the batch's tokens give to pools, and to those of what chooses, from the
 * layer's input xn (n, dim). */
void lmq_pools_multiply(const struct lmq_member *member,
                        struct lmq_operand *xn);

/* The pools that are complete with these tokens, and what the next ones need
 * of them; behind a barrier. All members take part, and those who read pools
 * need another one. */
void lmq_pools_make(const struct lmq_member *member);

/* x = rope(x, position): the last dimensions of `dim`. */
void lmq_pool_turn(const struct lmq_member *member, size_t position, float *x,
                   size_t dim);

#endif
