/*
 * indexer.h - which pools or positions a token sees, where it does not see all.
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

/* Bytes of a token's choice. */
size_t lmq_index_stride(const struct lmq_member *member);

/* ---- Of positions ---- */

/* Whether some of the batch's tokens do not see all that is before them. */
bool lmq_index_is_needed(const struct lmq_member *member);

/* Keys of the batch's tokens, from the layer's input xn (n, dim), and what each
 * head weighs; they go into the cache behind a barrier. All members take
 * part. */
void lmq_index_multiply(const struct lmq_member *member,
                        struct lmq_operand *xn);
void lmq_index_remember(const struct lmq_member *member);

/* What the last n_last of n tokens see becomes what the first do, for layers
 * that see the choice of an earlier one. */
void lmq_index_keep_last(const struct lmq_hparams *hparams,
                         struct lmq_work *work, size_t n, size_t n_last);

#endif
