/*
 * forward.h - the skeleton: embed, layers, head, over a batch of tokens.
 *
 * A batch is `n` consecutive tokens of one sequence, the first of them at
 * `position`; or, where work->n_sequences says so, as many of each of several.
 * What comes out for a token does not depend on how a sequence is
 * cut into batches, nor on the number of threads.
 */
#ifndef LMQ_RUNTIME_FORWARD_H
#define LMQ_RUNTIME_FORWARD_H

#include "runtime/kv.h"
#include "runtime/work.h"

/* work->x = the embeddings. */
void lmq_forward_embed(const struct lmq_model *model, struct lmq_work *work,
                       const int32_t *tokens, size_t n, size_t position);

/* work->x through one layer; adds to its keys and values, of which each
 * sequence has its own. */
void lmq_forward_layer(const struct lmq_model *model, size_t layer,
                       struct lmq_kv *kv, struct lmq_work *work, size_t n,
                       size_t position);

/* work->x, of one sequence, through all layers, whose keys and values are kv
 * (lmq_loops(), n_layers), and its first rows are what comes out for the last
 * n_last tokens. The others go no further than what later tokens see of them.
 * False: not all is finite. */
bool lmq_forward_layers(const struct lmq_model *model, struct lmq_kv *kv,
                        struct lmq_work *work, size_t n, size_t n_last,
                        size_t position);

/* logits (n, vocab) of the first n rows of work->x. */
void lmq_forward_head(const struct lmq_model *model, struct lmq_work *work,
                      size_t n, float *logits);

/* Whether there is neither NaN nor infinity among them. In the residual stream
 * they stay once they are there, so it is enough to look behind the layers. */
bool lmq_is_finite(const float *x, size_t n);

#endif
