/*
 * oracle_pools.c - attention whose values are the keys, and pools of these.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/families/oracle_parts.h"

/* The root mean square of `width` numbers becomes about 1. */
static void
norm_bare(const struct oracle_shape *s, double *x, size_t width)
{
    double sum = 0;

    for (size_t i = 0; i < width; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < width; i++)
        x[i] /= sqrt(sum / (double)width + s->eps);
}

/* ---- Pools ---- */

/* Number `column` of what a position gives, and its weight: e to the power of
 * what its place in the window adds to. */
static double
weight_of(const struct oracle_pool *w, const double *gate, size_t at,
          size_t size, size_t column)
{
    return exp(gate[at * w->gate.rows + column] +
               (double)w->bias.w[at % size * w->bias.cols + column]);
}

/* All that are complete, (n / size, dim): each a mean of the positions of its
 * window, and where they overlap of the one before. */
static double *
make_pools(const struct oracle *o, size_t layer, const struct oracle_pool *w,
           const double *x, size_t size)
{
    size_t n = o->n / size, dim = w->norm.span;
    bool overlaps = w->kv.rows == 2 * dim;
    double *kv = oracle_apply(&w->kv, x, o->n);
    double *gate = oracle_apply(&w->gate, x, o->n);
    double *pools = oracle_doubles(n * dim);

    for (size_t i = 0; i < n * dim; i++) {
        size_t window = i / dim, column = i % dim;
        size_t own = overlaps ? column + dim : column;
        double sum = 0, all = 0;
        for (size_t at = window * size; at < (window + 1) * size; at++) {
            double p = weight_of(w, gate, at, size, own);
            all += p;
            sum += p * kv[at * w->kv.rows + own];
        }
        for (size_t back = size; overlaps && window > 0 && back > 0; back--) {
            size_t at = window * size - back;
            double p = weight_of(w, gate, at, size, column);
            all += p;
            sum += p * kv[at * w->kv.rows + column];
        }
        pools[i] = sum / all;
    }
    oracle_norm_rows(o->s, &w->norm, pools, n, dim, dim);
    for (size_t i = 0; i < n; i++)
        oracle_turn(o, layer, pools + (i + 1) * dim - o->s->rotary_dim,
                    i * size, 1);
    free(kv);
    free(gate);
    return pools;
}

/* seen (n, pools): 1 for those that a token sees. Of what is worth the same the
 * first counts. */
static double *
choose_pools(const struct oracle *o, size_t layer, const double *latents,
             const double *x, size_t size)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_shape *s = o->s;
    size_t n = o->n / size, dim = s->index_dim, heads = s->index_heads;
    double *seen = oracle_doubles(o->n * n), *worth = oracle_doubles(n);
    double *keys = NULL, *q = NULL, *weights = NULL;

    if (w->index_q.w != NULL) {
        keys = make_pools(o, layer, &w->index_pool, x, size);
        q = oracle_apply(&w->index_q, latents, o->n);
        weights = oracle_apply(&w->index_weights, x, o->n);
        oracle_rotate(o, layer, q, heads, dim, dim - s->rotary_dim);
    }
    for (size_t t = 0; t < o->n; t++) {
        size_t complete = (t + 1) / size;
        bool sees_all = q == NULL || complete <= s->index_topk;
        for (size_t i = 0; i < complete && sees_all; i++)
            seen[t * n + i] = 1;
        for (size_t i = 0; i < complete && !sees_all; i++) {
            worth[i] = 0;
            for (size_t head = 0; head < heads; head++) {
                double score = 0;
                for (size_t k = 0; k < dim; k++)
                    score += q[(t * heads + head) * dim + k] *
                             keys[i * dim + k];
                worth[i] += fmax(score, 0) / sqrt((double)(dim * heads)) *
                            weights[t * heads + head];
            }
        }
        for (size_t i = 0; i < s->index_topk && !sees_all; i++) {
            size_t best = 0;
            for (size_t k = 1; k < complete; k++)
                if (worth[k] > worth[best])
                    best = k;
            worth[best] = -(double)INFINITY;
            seen[t * n + best] = 1;
        }
    }
    free(worth);
    free(keys);
    free(q);
    free(weights);
    return seen;
}

/* ---- Chosen positions ---- */

/* Heads turn, in the order and at the place that the index has. */
static void
turn_index(const struct oracle *o, size_t layer, double *x, size_t n_heads)
{
    struct oracle_shape s = *o->s;
    struct oracle own = *o;
    size_t dim = s.index_dim;

    s.is_interleaved &= !s.index_halves;
    own.s = &s;
    oracle_rotate(&own, layer, x, n_heads, dim,
                  s.index_last ? dim - s.rotary_dim : 0);
}

static double *
index_keys(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    double eps = o->s->index_eps > 0 ? o->s->index_eps : o->s->eps;
    double *keys = oracle_apply(&w->index_k, x, o->n);
    size_t dim = o->s->index_dim;

    for (size_t t = 0; t < o->n; t++) {
        double *key = keys + t * dim, mean = 0, spread = 0;
        for (size_t i = 0; i < dim; i++)
            mean += key[i] / (double)dim;
        for (size_t i = 0; i < dim; i++)
            spread += (key[i] - mean) * (key[i] - mean) / (double)dim;
        for (size_t i = 0; i < dim; i++)
            key[i] = (key[i] - mean) / sqrt(spread + eps) *
                         (double)w->index_norm.w[i] +
                     (double)w->index_norm.b[i];
    }
    turn_index(o, layer, keys, 1);
    return keys;
}

void
oracle_choose(const struct oracle *o, size_t layer, const double *x,
              const double *latents, size_t stride)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t n = o->n, dim = o->s->index_dim, heads = o->s->index_heads;
    size_t rank = o->s->q_rank;
    double *normed = oracle_doubles(n * rank), *worth = oracle_doubles(n);

    for (size_t i = 0; i < n * rank; i++)
        normed[i] = latents[i / rank * stride + i % rank];
    double *q = oracle_apply(&w->index_q, normed, n);
    double *weights = oracle_apply(&w->index_weights, x, n);
    double *keys = index_keys(o, layer, x);
    turn_index(o, layer, q, heads);
    for (size_t t = 0; t < n; t++) {
        for (size_t at = 0; at < n; at++) {
            worth[at] = at > t ? -(double)INFINITY : 0;
            o->chosen[t * n + at] = 0;
            for (size_t head = 0; head < heads; head++) {
                double score = 0;
                for (size_t i = 0; i < dim; i++)
                    score += q[(t * heads + head) * dim + i] *
                             keys[at * dim + i];
                worth[at] += weights[t * heads + head] * fmax(score, 0);
            }
        }
        for (size_t i = 0; i < o->s->index_topk && i <= t; i++) {
            size_t best = 0;
            for (size_t at = 1; at < n; at++)
                if (worth[at] > worth[best])
                    best = at;
            worth[best] = -(double)INFINITY;
            o->chosen[t * n + best] = 1;
        }
    }
    free(normed);
    free(worth);
    free(q);
    free(weights);
    free(keys);
}

/* ---- Attention ---- */

/* What one head sees of a token: positions and pools, to be added one by
 * one. */
struct view {
    const double *q;
    double scale;
    double *out; /* (dim) */
    double sum;
    size_t dim;
};

static void
look_at(struct view *view, const double *key)
{
    double score = 0;

    for (size_t i = 0; i < view->dim; i++)
        score += view->q[i] * key[i];
    double p = exp(score * view->scale);
    view->sum += p;
    for (size_t i = 0; i < view->dim; i++)
        view->out[i] += p * key[i];
}

static double *
grouped(const struct oracle *o, const struct oracle_layer *w,
        const double *mixed, size_t width)
{
    size_t parts = o->s->out_groups, part = width / parts;
    size_t rank = w->out_a.rows / parts;
    double *out = oracle_doubles(o->n * parts * rank);

    for (size_t t = 0; t < o->n; t++)
        for (size_t r = 0; r < parts * rank; r++)
            for (size_t i = 0; i < part; i++)
                out[t * parts * rank + r] +=
                    (double)w->out_a.w[r * part + i] *
                    mixed[t * width + r / rank * part + i];
    return out;
}

double *
oracle_shared(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_shape *s = o->s;
    size_t dim = s->head_dim, heads = s->heads, width = heads * dim;
    size_t still = dim - s->rotary_dim, size = oracle_pool_size(s, layer);
    size_t n_pools = size == 0 ? 0 : o->n / size;
    double *latents = oracle_apply(&w->q_a, x, o->n);
    double *k = oracle_apply(&w->k, x, o->n);
    double *mixed = oracle_doubles(o->n * width);

    oracle_norm_rows(s, &w->q_a_norm, latents, o->n, s->q_rank, s->q_rank);
    double *q = oracle_apply(&w->q_b, latents, o->n);
    for (size_t i = 0; i < o->n * heads; i++)
        norm_bare(s, q + i * dim, dim);
    oracle_norm_rows(s, &w->k_norm, k, o->n, dim, dim);
    oracle_rotate(o, layer, q, heads, dim, still);
    oracle_rotate(o, layer, k, 1, dim, still);
    double *pools =
        size == 0 ? NULL : make_pools(o, layer, &w->pool, x, size);
    double *seen =
        size == 0 ? NULL : choose_pools(o, layer, latents, x, size);
    for (size_t i = 0; i < o->n * heads; i++) {
        size_t t = i / heads, first = t + 1 > s->window ? t + 1 - s->window : 0;
        struct view view = {q + i * dim, 1 / sqrt((double)dim),
                            mixed + i * dim,
                            exp((double)w->sinks[i % heads]), dim};
        for (size_t at = first; at <= t; at++)
            look_at(&view, k + at * dim);
        for (size_t at = 0; at < n_pools; at++)
            if (seen[t * n_pools + at] > 0)
                look_at(&view, pools + at * dim);
        for (size_t j = 0; j < dim; j++)
            view.out[j] /= view.sum;
        oracle_turn(o, layer, view.out + still, t, -1);
    }
    double *parts = grouped(o, w, mixed, width);
    double *out = oracle_apply(&w->o, parts, o->n);
    free(latents);
    free(k);
    free(q);
    free(pools);
    free(seen);
    free(mixed);
    free(parts);
    return out;
}
