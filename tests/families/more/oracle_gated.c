/*
 * oracle_gated.c - streams with a gate for each number, and what they are given
 * of the last tokens, in doubles.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>

/* Number d of stream j at token t. */
static double *
number_of(const struct oracle *o, size_t t, size_t j, size_t d)
{
    size_t dim = o->s->dim, at = t * dim + d;

    return j == 0 ? o->x + at : o->beside + (j - 1) * o->n * dim + at;
}

/* All streams of each token, one behind the other: (n, streams * dim). */
static double *
all_streams(const struct oracle *o)
{
    size_t dim = o->s->dim, width = o->s->streams * dim;
    double *all = oracle_doubles(o->n * width);

    for (size_t i = 0; i < o->n * width; i++)
        all[i] = *number_of(o, i / width, i % width / dim, i % dim);
    return all;
}

/* ---- Gates ---- */

/* What a block is given; `normed` are all streams, of which write is made. */
static double *
gated_mean(const struct oracle *o, const struct oracle_gated *w,
           const double *normed)
{
    size_t dim = o->s->dim, s = o->s->streams;
    double *latents = oracle_apply(&w->down, normed, o->n);
    double *mean = oracle_doubles(o->n * dim);

    for (size_t i = 0; i < o->n * w->down.rows; i++)
        latents[i] = oracle_silu(latents[i] / (double)s);
    double *gates = oracle_apply(&w->up, latents, o->n);
    for (size_t t = 0; t < o->n; t++)
        for (size_t i = 0; i < s * dim; i++)
            mean[t * dim + i % dim] += normed[t * s * dim + i] *
                                       oracle_sigmoid(gates[t * s * dim + i]) /
                                       (double)s;
    free(latents);
    free(gates);
    return mean;
}

void
oracle_gated_block(struct oracle *o, size_t layer, bool mixes)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_gated *gated = mixes ? &w->attn_gated : &w->ffn_gated;
    size_t dim = o->s->dim, s = o->s->streams;
    double *normed = all_streams(o);

    oracle_norm_rows(o->s, mixes ? &w->attn_norm : &w->ffn_norm, normed, o->n,
                     s * dim, s * dim);
    double *in = gated_mean(o, gated, normed);
    double *write = oracle_apply(&gated->write, normed, o->n);
    double *out = mixes                ? oracle_mix(o, layer, in)
                  : w->mlp.up.w == NULL ? oracle_experts(o, w, in, in)
                                       : oracle_feed(o, layer, in);
    for (size_t t = 0; t < o->n; t++)
        for (size_t j = 0; j < s; j++) {
            double share = o->s->hyper_gain *
                           oracle_sigmoid(write[t * s + j] / (double)s);
            for (size_t d = 0; d < dim; d++)
                *number_of(o, t, j, d) +=
                    (share + o->s->hyper_floor) * out[t * dim + d];
        }
    free(normed);
    free(in);
    free(write);
    free(out);
}

void
oracle_gated_gather(struct oracle *o)
{
    size_t dim = o->s->dim, s = o->s->streams;
    double *normed = all_streams(o);

    oracle_norm_rows(o->s, &o->model->norm, normed, o->n, s * dim, s * dim);
    double *mean = gated_mean(o, &o->model->gated, normed);
    for (size_t i = 0; i < o->n * dim; i++)
        o->x[i] = mean[i];
    free(normed);
    free(mean);
}

/* ---- Sequences of tokens ---- */

static uint64_t
shuffle(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9u;
    z ^= z >> 27;
    z *= 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* What the token so many places back is multiplied with. */
static uint64_t
factor_of(const struct oracle_shape *s, size_t which, size_t back)
{
    uint64_t seed = s->gram_seed + 10007 * which;
    uint64_t z = shuffle(seed + 0x9e3779b97f4a7c15u * (back + 1));
    uint64_t bound = 9223372036854775807u / s->vocab / 2;

    return 2 * (z % bound) + 1;
}

/* The prime number `n`, from 0, of those from `from` on. */
static uint64_t
prime_from(uint64_t from, size_t n)
{
    for (uint64_t p = from;; p++) {
        uint64_t divisor = 2;
        while (divisor * divisor <= p && p % divisor != 0)
            divisor++;
        if (p > 1 && divisor * divisor > p && n-- == 0)
            return p;
    }
}

size_t
oracle_gram_rows(const struct oracle_shape *s, size_t which, size_t head)
{
    size_t heads = (s->gram_size - 1) * s->gram_heads;

    return (size_t)prime_from(s->gram_base, which * heads + head);
}

static size_t
which_layer(const struct oracle_shape *s, size_t layer)
{
    size_t which = 0;

    for (size_t i = 0; i < layer; i++)
        which += oracle_pattern(s->grams, i);
    return which;
}

/* The token so many places back; the one that ends sequences behind such a
 * one, and before the first. */
static uint64_t
token_back(const struct oracle *o, size_t t, size_t back)
{
    for (size_t i = 1; i <= back; i++)
        if (i > t || (size_t)o->tokens[t - i] == o->s->gram_stop)
            return o->s->gram_stop;
    return (uint64_t)o->tokens[t - back];
}

/* (n, heads * gram_dim) */
static double *
look_up(const struct oracle *o, size_t layer)
{
    const struct oracle_shape *s = o->s;
    const float *table = o->model->layers[layer].grams.table.w;
    size_t which = which_layer(s, layer);
    size_t heads = (s->gram_size - 1) * s->gram_heads;
    double *rows = oracle_doubles(o->n * heads * s->gram_dim);

    for (size_t t = 0; t < o->n; t++) {
        size_t above = 0;
        for (size_t head = 0; head < heads; head++) {
            size_t size = oracle_gram_rows(s, which, head);
            uint64_t hash = 0;
            for (size_t k = 0; k < head / s->gram_heads + 2; k++)
                hash ^= token_back(o, t, k) * factor_of(s, which, k);
            for (size_t d = 0; d < s->gram_dim; d++)
                rows[(t * heads + head) * s->gram_dim + d] =
                    (double)table[(above + hash % size) * s->gram_dim + d];
            above += size;
        }
    }
    return rows;
}

void
oracle_add_grams(struct oracle *o, size_t layer)
{
    const struct oracle_shape *s = o->s;
    const struct oracle_grams *w = &o->model->layers[layer].grams;
    size_t dim = s->dim, width = s->streams * dim, taps = s->gram_conv;
    double *rows = look_up(o, layer), *queries = all_streams(o);
    double *keys = oracle_apply(&w->key, rows, o->n);
    double *values = oracle_apply(&w->value, rows, o->n);
    double *given = oracle_doubles(o->n * width);
    double *normed = oracle_doubles(o->n * width);

    oracle_norm_rows(s, &w->key_norm, keys, o->n, width, width);
    oracle_norm_rows(s, &w->query_norm, queries, o->n, width, width);
    for (size_t i = 0; i < o->n * width; i++) {
        size_t first = i / dim * dim;
        double score = 0;
        for (size_t d = first; d < first + dim; d++)
            score += keys[d] * queries[d] / sqrt((double)dim);
        double root = sqrt(fmax(fabs(score), 1e-6));
        given[i] = normed[i] = oracle_sigmoid(score < 0 ? -root : root) *
                               values[i / width * dim + i % dim];
    }
    oracle_norm_rows(s, &w->conv_norm, normed, o->n, width, width);
    for (size_t i = 0; i < o->n * width; i++) {
        double sum = 0;
        for (size_t k = 0; k < taps; k++) {
            size_t back = (taps - 1 - k) * s->gram_size;
            if (back <= i / width)
                sum += (double)w->conv.w[i % width * taps + k] *
                       normed[i - back * width];
        }
        *number_of(o, i / width, i % width / dim, i % dim) +=
            given[i] + oracle_silu(sum);
    }
    free(rows);
    free(queries);
    free(keys);
    free(values);
    free(given);
    free(normed);
}
