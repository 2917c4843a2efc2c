/*
 * oracle_parts.c - what every part of the model in doubles is made of.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double *
oracle_doubles(size_t n)
{
    double *memory = calloc(n + 1, sizeof(*memory));

    if (memory == NULL)
        abort();
    return memory;
}

double
oracle_or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

static char
half_of(const struct oracle_shape *s, size_t layer)
{
    return s->halves == NULL ? 'b' : s->halves[layer % strlen(s->halves)];
}

bool
oracle_mixes(const struct oracle_shape *s, size_t layer)
{
    return half_of(s, layer) != 'f' && half_of(s, layer) != '-';
}

bool
oracle_feeds(const struct oracle_shape *s, size_t layer)
{
    return half_of(s, layer) != 'm' && half_of(s, layer) != '-';
}

size_t
oracle_channels(const struct oracle_shape *s)
{
    size_t values = s->delta_values * s->delta_value_dim;

    return s->recurrence == ORACLE_CONVOLUTION ||
                   s->recurrence == ORACLE_SELECTIVE ||
                   s->recurrence == ORACLE_LRU
               ? values
               : 2 * s->delta_keys * s->delta_key_dim + values;
}

bool
oracle_pattern(const char *pattern, size_t layer)
{
    return pattern != NULL && pattern[layer % strlen(pattern)] == '1';
}

size_t
oracle_pool_size(const struct oracle_shape *s, size_t layer)
{
    char kind = s->pools == NULL ? '0' : s->pools[layer % strlen(s->pools)];

    return kind == '2' ? s->overlap_size : kind == '1' ? s->pool_size : 0;
}

bool
oracle_is_full(const struct oracle_shape *s, size_t layer)
{
    return !oracle_pattern(s->sliding, layer);
}

size_t
oracle_head_dim(const struct oracle_shape *s, size_t layer)
{
    return s->full_head_dim > 0 && oracle_is_full(s, layer) ? s->full_head_dim
                                                            : s->head_dim;
}

size_t
oracle_rotary_dim(const struct oracle_shape *s, size_t layer)
{
    if (s->full_rotary_dim > 0 && oracle_is_full(s, layer))
        return s->full_rotary_dim;
    return s->rotary_dim == 0 ? oracle_head_dim(s, layer) : s->rotary_dim;
}

size_t
oracle_latent_turning(const struct oracle_shape *s, size_t layer)
{
    return s->still_whole && !oracle_pattern(s->turning, layer)
               ? 0
               : s->rotary_dim;
}

size_t
oracle_kv_rank(const struct oracle_shape *s, size_t layer)
{
    return s->full_kv_rank > 0 && oracle_is_full(s, layer) ? s->full_kv_rank
                                                           : s->kv_rank;
}

size_t
oracle_value_dim(const struct oracle_shape *s, size_t layer)
{
    if (s->full_value_dim > 0 && oracle_is_full(s, layer))
        return s->full_value_dim;
    return s->value_dim == 0 ? oracle_head_dim(s, layer) : s->value_dim;
}

size_t
oracle_heads(const struct oracle_shape *s, size_t layer)
{
    return s->layer_heads != NULL ? s->layer_heads[layer] : s->heads;
}

size_t
oracle_hidden(const struct oracle_shape *s, size_t layer)
{
    if (s->layer_hidden != NULL)
        return s->layer_hidden[layer] * s->grown;
    return s->borrowing_hidden > 0 && oracle_borrows(s, layer)
               ? s->borrowing_hidden
               : s->hidden;
}

size_t
oracle_kv_heads(const struct oracle_shape *s, size_t layer)
{
    if (s->layer_kv_heads != NULL)
        return s->layer_kv_heads[layer];
    return s->full_kv_heads > 0 && oracle_is_full(s, layer) ? s->full_kv_heads
                                                            : s->kv_heads;
}

bool
oracle_borrows(const struct oracle_shape *s, size_t layer)
{
    return layer >= s->layers - s->n_borrowing;
}

/* ---- Activations ---- */

double
oracle_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double
oracle_silu(double x)
{
    return x * oracle_sigmoid(x);
}

double
oracle_gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

double
oracle_gelu_tanh(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

double
oracle_relu(double x)
{
    return x > 0 ? x : 0;
}

double
oracle_relu2(double x)
{
    return oracle_relu(x) * oracle_relu(x);
}

double
oracle_silu_steep(double x)
{
    return x * oracle_sigmoid(1.702 * x);
}

/* ---- Parts ---- */

double *
oracle_apply(const struct oracle_linear *l, const double *x, size_t n)
{
    double *y = oracle_doubles(n * l->rows);

    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < l->rows; r++) {
            double sum = l->b == NULL ? 0 : (double)l->b[r];
            for (size_t c = 0; c < l->cols; c++)
                sum += (double)l->w[r * l->cols + c] * x[t * l->cols + c];
            y[t * l->rows + r] = sum;
        }
    return y;
}

void
oracle_norm_rows(const struct oracle_shape *s, const struct oracle_norm *w,
                 double *x, size_t n, size_t width, size_t stride)
{
    if (w->span == 0)
        return;
    for (size_t t = 0; t < n; t++)
        for (size_t at = 0; at < width; at += w->span) {
            double *p = x + t * stride + at;
            double mean = 0, square = 0;
            for (size_t i = 0; i < w->span && s->norm == ORACLE_LAYER; i++)
                mean += p[i] / (double)w->span;
            for (size_t i = 0; i < w->span; i++)
                square += (p[i] - mean) * (p[i] - mean) / (double)w->span;
            for (size_t i = 0; i < w->span; i++) {
                p[i] = (p[i] - mean) / sqrt(square + s->eps);
                if (w->w != NULL)
                    p[i] *= (double)w->w[(at + i) % w->n];
                if (w->b != NULL)
                    p[i] += (double)w->b[(at + i) % w->n];
            }
        }
}

double *
oracle_normed(const struct oracle *o, const struct oracle_norm *w,
              const double *x)
{
    double *y = oracle_doubles(o->n * o->s->dim);

    memcpy(y, x, o->n * o->s->dim * sizeof(*y));
    oracle_norm_rows(o->s, w, y, o->n, o->s->dim, o->s->dim);
    return y;
}
