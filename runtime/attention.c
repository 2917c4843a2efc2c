/*
 * attention.c - softmax(q k) v in blocks of positions.
 *
 * Blocks begin at multiples of their size, whatever the batch, and what a
 * query may not see has weight exactly 0: so a token's result does not depend
 * on which tokens are evaluated with it.
 */
#include "config.h"

#include "runtime/attention.h"

#include <math.h>
#include <string.h>

#include "base/size.h"

/* Queries of some tokens and of heads that share their keys. */
struct item {
    size_t kv_head;
    size_t head, n_heads;   /* of the group */
    size_t token, n_tokens; /* of the batch */
    size_t n;               /* queries: n_tokens * n_heads */
    float max[LMQ_ATTENTION_QUERIES];
    float sum[LMQ_ATTENTION_QUERIES];
};

/* The positions [first, last] that the query's token sees. */
static void
visible(const struct lmq_model *model, const struct item *item, size_t query,
        size_t position, size_t *first, size_t *last)
{
    size_t window = model->hparams.sliding_window;

    *last = position + item->token + query / item->n_heads;
    *first = window > 0 && *last >= window ? *last - window + 1 : 0;
}

static void
gather_queries(const struct lmq_model *model, const struct lmq_work *work,
               struct item *item, float *queries)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t dim = h->head_dim, width = (size_t)h->n_heads * dim;
    size_t group = h->n_heads / h->n_kv_heads;
    float scale = 1 / sqrtf((float)dim);

    for (size_t i = 0; i < item->n; i++) {
        size_t token = item->token + i / item->n_heads;
        size_t head =
            item->kv_head * group + item->head + i % item->n_heads;
        memcpy(queries + i * dim, work->q + token * width + head * dim,
               dim * sizeof(*queries));
        lmq_kernels()->scale(queries + i * dim, dim, scale);
        item->max[i] = -INFINITY;
        item->sum[i] = 0;
    }
}

/* Scores become weights relative to the running maximum; what was mixed
 * before is brought to the new maximum. */
static void
weigh(const struct lmq_kernels *kernels, struct item *item, size_t query,
      float *scores, size_t n, size_t from, size_t to, float *mixed,
      size_t dim)
{
    for (size_t i = 0; i < from; i++)
        scores[i] = -INFINITY;
    for (size_t i = to; i < n; i++)
        scores[i] = -INFINITY;
    float top = kernels->max(scores, n);
    if (top > item->max[query]) {
        float change = item->max[query] - top;
        kernels->exp(&change, 1);
        kernels->scale(mixed, dim, change);
        item->sum[query] *= change;
        item->max[query] = top;
    }
    item->sum[query] += kernels->exp_sum(scores, n, item->max[query]);
}

/* One block of positions for all queries of the item. */
static void
attend_block(const struct lmq_model *model, const struct lmq_kv *kv,
             const struct lmq_work *work, struct lmq_thread_work *own,
             struct item *item, size_t position, size_t block, size_t n)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    size_t dim = model->hparams.head_dim;
    size_t row = lmq_row_bytes(work->kv_type, dim);
    size_t at = (item->kv_head * work->context + block) * row;
    struct lmq_rows keys = {kv->keys + at, work->kv_type, dim, row};
    struct lmq_rows values = {kv->values + at, work->kv_type, dim, row};

    kernels->rows_product(&keys, 0, n, own->queries, dim, item->n, own->scores,
                          LMQ_ATTENTION_BLOCK, own->scratch);
    for (size_t i = 0; i < item->n; i++) {
        float *scores = own->scores + i * LMQ_ATTENTION_BLOCK;
        size_t first, last;
        visible(model, item, i, position, &first, &last);
        if (last < block || first >= block + n) {
            memset(scores, 0, n * sizeof(*scores));
            continue;
        }
        weigh(kernels, item, i, scores, n, first > block ? first - block : 0,
              lmq_size_min(n, last + 1 - block), own->mixed + i * dim, dim);
    }
    kernels->rows_mix(&values, 0, n, own->scores, LMQ_ATTENTION_BLOCK,
                      item->n, own->mixed, dim);
}

static void
attend(const struct lmq_model *model, const struct lmq_kv *kv,
       struct lmq_work *work, struct lmq_thread_work *own, struct item *item,
       size_t position)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t dim = h->head_dim, width = (size_t)h->n_heads * dim;
    size_t group = h->n_heads / h->n_kv_heads;
    size_t first, last, unused;

    gather_queries(model, work, item, own->queries);
    memset(own->mixed, 0, item->n * dim * sizeof(*own->mixed));
    visible(model, item, 0, position, &first, &unused);
    visible(model, item, item->n - 1, position, &unused, &last);
    first -= first % LMQ_ATTENTION_BLOCK;
    for (size_t block = first; block <= last; block += LMQ_ATTENTION_BLOCK)
        attend_block(model, kv, work, own, item, position, block,
                     lmq_size_min(LMQ_ATTENTION_BLOCK, last + 1 - block));
    for (size_t i = 0; i < item->n; i++) {
        size_t token = item->token + i / item->n_heads;
        size_t head =
            item->kv_head * group + item->head + i % item->n_heads;
        lmq_kernels()->scale(own->mixed + i * dim, dim, 1 / item->sum[i]);
        memcpy(work->attention + token * width + head * dim,
               own->mixed + i * dim, dim * sizeof(float));
    }
}

void
lmq_attention(const struct lmq_model *model, const struct lmq_kv *kv,
              struct lmq_work *work, struct lmq_thread_work *own, size_t n,
              size_t position, size_t number, size_t n_threads)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t group = h->n_heads / h->n_kv_heads;
    size_t heads = lmq_size_min(group, LMQ_ATTENTION_QUERIES);

    /* With few tokens and few key heads the heads of a group are shared out
     * too, so that every thread has work. */
    if (n * h->n_kv_heads < n_threads)
        heads = 1;
    size_t tokens = LMQ_ATTENTION_QUERIES / heads;
    size_t n_splits = (group + heads - 1) / heads;
    size_t n_blocks = (n + tokens - 1) / tokens;
    size_t n_items = h->n_kv_heads * n_splits * n_blocks;

    /* Later tokens see more: dealing in turn evens that out. */
    for (size_t i = number; i < n_items; i += n_threads) {
        struct item item = {.kv_head = i / n_blocks / n_splits,
                            .head = i / n_blocks % n_splits * heads,
                            .token = i % n_blocks * tokens};
        item.n_heads = lmq_size_min(heads, group - item.head);
        item.n_tokens = lmq_size_min(tokens, n - item.token);
        item.n = item.n_tokens * item.n_heads;
        attend(model, kv, work, own, &item, position);
    }
}
