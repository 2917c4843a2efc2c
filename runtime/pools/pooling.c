/*
 * pooling.c - keys that stand for many positions.
 *
 *   c = W_kv xn, z = W_gate xn                       (n, width)
 *   of each window of `size` positions, number by number:
 *       p = softmax over its positions j of (z_j + bias_j)
 *       pool = sum of p_j c_j                        (dim)
 *   pool = rope(norm(pool)), by its first position
 *
 * Where pools overlap, width is 2 dim: a position gives its second half to the
 * pool of its own window, and its first one to that of the next.
 *
 * Of what was before the batch, the last windows are remembered as they came
 * out of the matrices: so a pool is the same bits wherever batches end.
 */
#include "config.h"

#include "runtime/pools/pooling.h"

#include <string.h>

#include "base/size.h"
#include "formats/model/pools.h"
#include "runtime/layer/norm.h"

/* What is pooled: keys, or those of what chooses. */
struct source {
    const struct lmq_pool *pool;
    const float *kv, *gate; /* of the batch: (n, width) */
    size_t width, dim;
    size_t at; /* where a remembered row has its kv, and its gate behind */
};

static struct source
key_source(const struct lmq_member *member)
{
    const struct lmq_work *work = member->work;

    return (struct source){&member->layer->attention.pool, work->pool_kv,
                           work->pool_gate,
                           lmq_pool_width(member->h, member->index),
                           member->h->head_dim, 0};
}

static struct source
index_source(const struct lmq_member *member)
{
    const struct lmq_work *work = member->work;

    return (struct source){&member->layer->attention.index_pool,
                           work->index_kv, work->index_gate,
                           lmq_index_width(member->h), member->h->index_dim,
                           2 * lmq_pool_width(member->h, member->index)};
}

void
lmq_pools_multiply(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;

    lmq_multiply(member, &part->pool.kv, xn, work->pool_kv);
    lmq_multiply(member, &part->pool.gate, xn, work->pool_gate);
    if (!lmq_layer_has_index(member->h, member->index))
        return;
    lmq_multiply(member, &part->index_pool.kv, xn, work->index_kv);
    lmq_multiply(member, &part->index_pool.gate, xn, work->index_gate);
    lmq_multiply(member, &part->index_weights, xn, work->index_weights);
}

/* ---- One pool ---- */

static float *
recent_row(const struct lmq_member *member, const struct lmq_kv *kv,
           size_t position)
{
    return kv->recent +
           position % lmq_recent(member->h, member->index) *
               lmq_recent_width(member->h, member->index);
}

/* What a position of the sequence that begins with token `first` of the batch
 * gives. */
static void
find_rows(const struct lmq_member *member, const struct source *source,
          size_t first, size_t position, const float **kv, const float **gate)
{
    if (position >= member->position) {
        size_t t = first + position - member->position;
        *kv = source->kv + t * source->width;
        *gate = source->gate + t * source->width;
        return;
    }
    *kv = recent_row(member, lmq_member_kv(member, first), position) +
          source->at;
    *gate = *kv + source->width;
}

/* Where what a pool is made of begins, and how many positions that is. */
struct window {
    size_t first, n;
};

static struct window
window_of(const struct lmq_member *member, size_t number)
{
    size_t size = lmq_layer_pool(member->h, member->index);
    bool has_before =
        lmq_layer_overlaps(member->h, member->index) && number > 0;

    return (struct window){(number - has_before) * size,
                           (1 + (size_t)has_before) * size};
}

/* Number i of the pool: its weights over all positions, and their sum. */
static float
pool_number(const struct lmq_member *member, const struct source *source,
            size_t first, const struct window *window, size_t i)
{
    size_t size = lmq_layer_pool(member->h, member->index);
    float *weights = member->own->pool_weights, sum = 0;
    size_t second = source->width - source->dim; /* of its own window */
    const float *kv, *gate;

    for (size_t j = 0; j < window->n; j++) {
        size_t column = i + (j + size < window->n ? 0 : second);
        find_rows(member, source, first, window->first + j, &kv, &gate);
        weights[j] = gate[column] +
                     source->pool->bias[j % size * source->width + column];
    }
    member->kernels->softmax(weights, window->n);
    for (size_t j = 0; j < window->n; j++) {
        size_t column = i + (j + size < window->n ? 0 : second);
        find_rows(member, source, first, window->first + j, &kv, &gate);
        sum += weights[j] * kv[column];
    }
    return sum;
}

void
lmq_pool_turn(const struct lmq_member *member, size_t position, float *x,
              size_t dim)
{
    const struct lmq_angles *angles = lmq_member_angles(member);
    struct lmq_thread_work *own = member->own;
    size_t half = lmq_hparams_rotary_dim(member->h) / 2;

    if (angles == NULL)
        return;
    lmq_rope_angles(member->h, lmq_layer_rope(member->h, member->index),
                    angles->frequencies, (uint32_t)position, own->pool_cosines,
                    own->pool_sines);
    member->kernels->rope(x + dim - 2 * half, own->pool_cosines,
                          own->pool_sines, half);
}

/* Into own->pool. */
static void
make_pool(const struct lmq_member *member, const struct source *source,
          size_t first, size_t number)
{
    size_t size = lmq_layer_pool(member->h, member->index);
    struct window window = window_of(member, number);
    float *x = member->own->pool;

    for (size_t i = 0; i < source->dim; i++)
        x[i] = pool_number(member, source, first, &window, i);
    lmq_norm(member->h, &source->pool->norm, x, source->dim, x);
    lmq_pool_turn(member, number * size, x, source->dim);
}

/* ---- All of the batch ---- */

/* Of each sequence the last positions as they came out of the matrices. */
static void
remember(const struct lmq_member *member, const struct source *source)
{
    size_t length = lmq_member_length(member);
    size_t n = lmq_size_min(length,
                            lmq_recent(member->h, member->index));
    size_t width = source->width, from, to;

    lmq_member_share(member, member->work->n_sequences * n, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t step = length - n + i % n, t = i / n * length + step;
        float *row = recent_row(member, lmq_member_kv(member, t),
                                member->position + step) +
                     source->at;
        memcpy(row, source->kv + t * width, width * sizeof(*row));
        memcpy(row + width, source->gate + t * width, width * sizeof(*row));
    }
}

void
lmq_pools_make(const struct lmq_member *member)
{
    bool has_index = lmq_layer_has_index(member->h, member->index);
    struct source keys = key_source(member), index = index_source(member);
    size_t size = lmq_layer_pool(member->h, member->index);
    size_t length = lmq_member_length(member);
    size_t done = member->position / size;
    size_t n = (member->position + length) / size - done, from, to;

    lmq_member_share(member, member->work->n_sequences * n, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t first = i / n * length, number = done + i % n;
        make_pool(member, &keys, first, number);
        lmq_member_store_pool(member, first, number, member->own->pool);
        if (!has_index)
            continue;
        make_pool(member, &index, first, number);
        memcpy(lmq_member_kv(member, first)->index + number * index.dim,
               member->own->pool, index.dim * sizeof(float));
    }
    lmq_barrier(member); /* pools are made of what was remembered before */
    remember(member, &keys);
    if (has_index)
        remember(member, &index);
}
