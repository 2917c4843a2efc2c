/*
 * attention.h - each query's mixture of the values that it may see.
 */
#ifndef LMQ_RUNTIME_ATTENTION_H
#define LMQ_RUNTIME_ATTENTION_H

#include "runtime/session.h"

/* Queries that are worked on together, and positions in a block. */
#define LMQ_ATTENTION_QUERIES 32
#define LMQ_ATTENTION_BLOCK 128

/* What a thread works with. */
struct lmq_thread_work {
    float *queries;  /* (LMQ_ATTENTION_QUERIES, head_dim) */
    float *mixed;    /* the same */
    float *scores;   /* (LMQ_ATTENTION_QUERIES, LMQ_ATTENTION_BLOCK) */
    float *widened;  /* (LMQ_TILE_ROWS, widest matrix) */
    void *scratch;   /* of the kernels */
};

/*
 * work->attention from work->q and the cache, for n tokens from `position`
 * on: causal, grouped heads, perhaps with a sliding window. A running softmax
 * over blocks of positions, so that memory does not grow with the context.
 * Thread `number` of `n_threads` does its share.
 */
void lmq_attention(const struct lmq_model *model, const struct lmq_kv *kv,
                   struct lmq_work *work, struct lmq_thread_work *own,
                   size_t n, size_t position, size_t number, size_t n_threads);

#endif
