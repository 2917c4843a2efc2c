/*
 * oracle_attention.c - attention of all kinds, and recurrences in its place.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Queries (n, heads, head_dim), keys and values (n, kv_heads, ...). */
struct parts {
    double *q, *k, *v;
    size_t heads, kv_heads, value_dim, head_dim;
};

/* To eight digits, ties to even. */
static double
to_bf16(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent);

    return ldexp(rint(ldexp(fraction, 8)), exponent - 8);
}

static double
score(const struct oracle *o, size_t layer, const struct parts *p, size_t t,
      size_t at, size_t head)
{
    const struct oracle_shape *s = o->s;
    const double *q = p->q + (t * p->heads + head) * p->head_dim;
    const double *k =
        p->k +
        (at * p->kv_heads + head / (p->heads / p->kv_heads)) * p->head_dim;
    double scale =
        s->score_scale > 0 ? s->score_scale
                           : 1 / sqrt((double)(s->scores_by_kind
                                                   ? p->head_dim
                                                   : s->head_dim));
    double slope = oracle_alibi_slope(head, p->heads);
    double bias = slope * (double)(t - at);
    double sum = 0;

    for (size_t i = 0; i < p->head_dim; i++)
        sum += q[i] * k[i];
    if (s->positions == ORACLE_ALIBI_SCALED)
        sum -= to_bf16(to_bf16(slope) * to_bf16((double)t)) -
               to_bf16(to_bf16(slope) * to_bf16((double)at));
    sum *= scale * oracle_or_one(s->score_factor) * oracle_growth(s, layer, t);
    if (s->heads_grow) {
        const struct oracle_layer *w = &o->model->layers[layer];
        sum *= (double)w->growth.w[head] * log(1 + (double)t) +
               (double)w->growth_base.w[head];
    }
    if (s->score_cap > 0)
        sum = s->score_cap * tanh(sum / s->score_cap);
    return s->positions == ORACLE_ALIBI ? sum - bias : sum;
}

static void
attend(const struct oracle *o, size_t layer, const struct parts *parts,
       size_t t, size_t head, double *out)
{
    const struct oracle_shape *s = o->s;
    const float *sinks = o->model->layers[layer].sinks;
    size_t kv = head / (parts->heads / parts->kv_heads);
    size_t window =
        oracle_pattern(s->sliding, layer) && s->chunk == 0 ? s->window : t + 1;
    size_t first = t + 1 > window ? t + 1 - window : 0;
    double *p = oracle_doubles(t + 1), sum = 0;

    for (size_t at = 0; at <= t; at++)
        if (s->chunk > 0 && oracle_pattern(s->sliding, layer) &&
            at / s->chunk != t / s->chunk)
            first = at + 1;
    for (size_t at = first; at <= t; at++)
        sum += p[at] = o->chosen[t * o->n + at] *
                       exp(score(o, layer, parts, t, at, head));
    if (sinks != NULL)
        sum += exp((double)sinks[head]);
    for (size_t i = 0; i < parts->value_dim; i++) {
        out[i] = 0;
        for (size_t at = first; at <= t; at++)
            out[i] +=
                p[at] / sum *
                parts->v[(at * parts->kv_heads + kv) * parts->value_dim + i];
    }
    free(p);
}

static void
clip(const struct oracle *o, double *x, size_t n)
{
    for (size_t i = 0; i < n && o->s->clip > 0; i++)
        x[i] = fmax(fmin(x[i], o->s->clip), -o->s->clip);
}

static struct parts
plain_parts(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t head = oracle_head_dim(o->s, layer);
    size_t kv_heads = oracle_kv_heads(o->s, layer);
    size_t q = w->q.rows, k = w->k.rows;
    const struct oracle_linear *value = w->v.w == NULL ? &w->k : &w->v;
    struct parts p = {
        oracle_apply(&w->q, x, o->n), oracle_apply(&w->k, x, o->n),
        oracle_apply(value, x, o->n), oracle_heads(o->s, layer),
        kv_heads, value->rows / kv_heads, head};
    struct oracle_norm value_norm = {.span =
                                         o->s->norms_values ? p.value_dim : 0};
    struct oracle_norm q_norm = w->q_norm, k_norm = w->k_norm;

    if (o->s->norms_all_bare ||
        (o->s->norms_bare &&
         (o->s->turning == NULL || oracle_pattern(o->s->turning, layer))))
        q_norm = k_norm = (struct oracle_norm){.span = head};
    clip(o, p.q, o->n * q);
    clip(o, p.k, o->n * k);
    clip(o, p.v, o->n * value->rows);
    oracle_norm_rows(o->s, &value_norm, p.v, o->n, value->rows, value->rows);
    for (int pass = 0; pass < 2; pass++)
        if ((pass == 1) == o->s->norms_turned) {
            oracle_norm_rows(o->s, &q_norm, p.q, o->n, q, q);
            oracle_norm_rows(o->s, &k_norm, p.k, o->n, k, k);
        } else {
            oracle_rotate(o, layer, p.q, p.heads, head, 0);
            oracle_rotate(o, layer, p.k, kv_heads, head, 0);
        }
    return p;
}

/* A layer that borrows makes queries only; k and v are somebody else's. */
static struct parts
borrowed_parts(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_shape *s = o->s;
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t lender = s->layers - s->n_borrowing - 1;
    size_t head = oracle_head_dim(s, layer);
    struct parts p = {oracle_apply(&w->q, x, o->n), NULL, NULL,
                      oracle_heads(s, layer), oracle_kv_heads(s, layer),
                      head, head};

    while (oracle_is_full(s, lender) != oracle_is_full(s, layer))
        lender--;
    p.k = o->keys[lender];
    p.v = o->values[lender];
    oracle_norm_rows(s, &w->q_norm, p.q, o->n, w->q.rows, w->q.rows);
    oracle_rotate(o, layer, p.q, p.heads, head, 0);
    return p;
}

static double
latent_scale(const struct oracle_shape *s, size_t rank)
{
    return s->scales_latents ? sqrt((double)s->dim / (double)rank) : 1;
}

/* Keys and values of all heads from one latent vector; what turns of a key is
 * the same for all heads. A head's rows of kv_b: its still key, its value. */
/* What queries are made of: normed, and perhaps as it was behind that. */
static double *
query_latents(const struct oracle *o, const struct oracle_layer *w,
              const double *x)
{
    struct oracle_shape latents = *o->s;
    size_t rank = latents.q_rank, both = (latents.keeps_latents ? 2 : 1) * rank;
    double *made = oracle_apply(&w->q_a, x, o->n);
    double *q = oracle_doubles(o->n * both);

    if (latents.latent_eps > 0)
        latents.eps = latents.latent_eps;
    for (size_t t = 0; t < o->n; t++)
        for (size_t i = 0; i < both; i++)
            q[t * both + i] = made[t * rank + i % rank];
    oracle_norm_rows(&latents, &w->q_a_norm, q, o->n, rank, both);
    for (size_t i = 0; i < o->n * both; i++)
        q[i] *= latent_scale(o->s, rank);
    free(made);
    return q;
}

/* What turns of a token's keys has a norm of its own. */
static void
norm_turning(const struct oracle *o, const struct oracle_layer *w,
             double *latent, size_t rank, size_t width)
{
    for (size_t t = 0; t < o->n && o->s->norms_turning; t++)
        oracle_norm_rows(o->s, &w->k_norm, latent + t * width + rank, 1,
                         width - rank, width - rank);
}

static struct parts
latent_parts(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_shape *s = o->s;
    size_t turning = oracle_latent_turning(s, layer);
    size_t rank = oracle_kv_rank(s, layer);
    size_t head = oracle_head_dim(s, layer), still = head - turning;
    size_t heads = oracle_heads(s, layer);
    size_t value = oracle_value_dim(s, layer);
    size_t width = rank + turning, both = still + value;
    struct parts p = {NULL,
                      oracle_doubles(o->n * heads * head),
                      oracle_doubles(o->n * heads * value),
                      heads,
                      heads,
                      value,
                      head};
    double *latent = oracle_apply(&w->kv_a, x, o->n);
    double *content = oracle_doubles(o->n * rank);
    struct oracle_shape latents = *s;

    if (s->latent_eps > 0)
        latents.eps = s->latent_eps;
    if (s->q_rank > 0) {
        double *q = query_latents(o, w, x);
        p.q = oracle_apply(&w->q_b, q, o->n);
        if (w->index_q.w != NULL)
            oracle_choose(o, layer, x, q, w->q_b.cols);
        free(q);
    } else {
        p.q = oracle_apply(&w->q, x, o->n);
    }
    if (turning > 0) {
        norm_turning(o, w, latent, rank, width);
        oracle_rotate(o, layer, p.q, heads, head, still);
        oracle_rotate(o, layer, latent, 1, width, rank);
    }
    oracle_norm_rows(&latents, &w->kv_a_norm, latent, o->n, rank, width);
    for (size_t t = 0; t < o->n; t++)
        for (size_t i = 0; i < rank; i++)
            content[t * rank + i] =
                latent[t * width + i] * latent_scale(s, rank);
    double *kv = oracle_apply(&w->kv_b, content, o->n);
    for (size_t i = 0; i < o->n * heads; i++) {
        memcpy(p.k + i * head, kv + i * both, still * sizeof(*kv));
        memcpy(p.k + i * head + still, latent + i / heads * width + rank,
               turning * sizeof(*kv));
        memcpy(p.v + i * value, kv + i * both + still, value * sizeof(*kv));
    }
    free(latent);
    free(content);
    free(kv);
    return p;
}

/* ---- The gated delta rule ---- */

/* Each of n channels: the sum over the last tokens. `first` counts the channels
 * before these. */
static double *
sums(const struct oracle *o, const struct oracle_delta *w, const double *in,
     size_t n, size_t first)
{
    size_t width = o->s->conv_width;
    double *out = oracle_doubles(o->n * n);

    for (size_t t = 0; t < o->n; t++)
        for (size_t c = 0; c < n; c++) {
            double sum = w->conv_bias != NULL ? (double)w->conv_bias[first + c]
                                              : 0;
            for (size_t j = 0; j < width && j <= t; j++)
                sum += (double)w->conv[(first + c) * width + width - 1 - j] *
                       in[(t - j) * n + c];
            out[t * n + c] = sum;
        }
    return out;
}

/* silu of these. */
static double *
convolve(const struct oracle *o, const struct oracle_delta *w,
         const struct oracle_linear *l, const double *x, size_t first)
{
    double *in = oracle_apply(l, x, o->n);
    double *out = sums(o, w, in, l->rows, first);

    for (size_t i = 0; i < o->n * l->rows; i++)
        out[i] = oracle_silu(out[i]);
    free(in);
    return out;
}

/* Heads of length 1. */
static void
set_lengths(double *x, size_t n, size_t dim)
{
    for (size_t head = 0; head < n; head++, x += dim) {
        double square = 1e-6;
        for (size_t i = 0; i < dim; i++)
            square += x[i] * x[i];
        for (size_t i = 0; i < dim; i++)
            x[i] /= sqrt(square);
    }
}

/* A token changes the matrix s (key dim, value dim) so that its key gives more
 * of its value and less of what it gave; then its query is asked. */
static void
delta_step(const struct oracle_shape *shape, double *s, const double *q,
           const double *k, const double *v, const double *decays,
           double beta, double *out)
{
    size_t keys = shape->delta_key_dim, values = shape->delta_value_dim;

    for (size_t i = 0; i < keys * values; i++)
        s[i] *= decays[i / values];
    for (size_t c = 0; c < values; c++) {
        double given = 0;
        for (size_t r = 0; r < keys; r++)
            given += k[r] * s[r * values + c];
        for (size_t r = 0; r < keys; r++)
            s[r * values + c] += k[r] * beta * (v[c] - given);
        out[c] = 0;
        for (size_t r = 0; r < keys; r++)
            out[c] += q[r] / sqrt((double)keys) * s[r * values + c];
    }
}

/* y = W x, or W (W_a x). */
static double *
made_by_two(const struct oracle *o, const struct oracle_linear *l,
            const struct oracle_linear *first, const double *x)
{
    double *latents = first->w == NULL ? NULL : oracle_apply(first, x, o->n);
    double *y = oracle_apply(l, latents == NULL ? x : latents, o->n);

    free(latents);
    return y;
}

static double *
delta_rule(const struct oracle *o, const struct oracle_delta *w,
                  const double *x)
{
    const struct oracle_shape *s = o->s;
    size_t keys = s->delta_key_dim, values = s->delta_value_dim;
    size_t heads = s->delta_values, shared = heads / s->delta_keys;
    double *q = convolve(o, w, &w->q, x, 0);
    double *k = convolve(o, w, &w->k, x, w->q.rows);
    double *v = convolve(o, w, &w->v, x, w->q.rows + w->k.rows);
    double *alpha = made_by_two(o, &w->alpha, &w->alpha_a, x);
    double *beta = oracle_apply(&w->beta, x, o->n);
    double *gate = made_by_two(o, &w->gate, &w->gate_a, x);
    double *mixed = oracle_doubles(o->n * heads * values);
    double *decays = oracle_doubles(keys);

    set_lengths(q, o->n * s->delta_keys, keys);
    set_lengths(k, o->n * s->delta_keys, keys);
    for (size_t head = 0; head < heads; head++) {
        double *state = oracle_doubles(keys * values);
        for (size_t t = 0; t < o->n; t++) {
            size_t key = (t * s->delta_keys + head / shared) * keys;
            size_t i = t * heads + head;
            for (size_t r = 0; r < keys; r++) {
                double a = alpha[s->key_decays ? i * keys + r : i];
                double rate = exp((double)w->decay[head]);
                decays[r] = exp(s->decay_floor > 0
                                    ? -s->decay_floor * oracle_sigmoid(rate * a)
                                    : -rate * log(1 + exp(a)));
            }
            delta_step(s, state, q + key, k + key, v + i * values, decays,
                       oracle_or_one(s->beta_scale) * oracle_sigmoid(beta[i]),
                       mixed + i * values);
        }
        free(state);
    }
    struct oracle_shape states = *s;
    if (s->state_eps > 0)
        states.eps = s->state_eps;
    oracle_norm_rows(&states, &w->norm, mixed, o->n, heads * values,
                     heads * values);
    for (size_t i = 0; i < o->n * heads * values; i++)
        mixed[i] *= s->sigmoid_gates ? oracle_sigmoid(gate[i])
                                     : oracle_silu(gate[i]);
    double *out = oracle_apply(&w->out, mixed, o->n);
    free(decays);
    free(q);
    free(k);
    free(v);
    free(alpha);
    free(beta);
    free(gate);
    free(mixed);
    return out;
}

/* ---- The state space of Mamba 2, of Mamba 1 ---- */

/* One head's answer: what is in the state now, and what goes past it. */
static void
state_step(const struct oracle_shape *shape, double *s, const double *q,
           const double *k, const double *v, const double *decays,
           double step, double skip, double *out)
{
    size_t keys = shape->delta_key_dim, values = shape->delta_value_dim;

    for (size_t c = 0; c < values; c++) {
        out[c] = skip * v[c];
        for (size_t r = 0; r < keys; r++) {
            double *at = &s[r * values + c];
            *at = decays[r] * *at + step * k[r] * v[c];
            out[c] += q[r] * *at;
        }
    }
}

/* Gated first, then normed: value heads of one key head together. */
static void
gate_and_norm(const struct oracle *o, const struct oracle_delta *w,
              double *mixed, const double *gate)
{
    size_t width = w->gate.rows;

    for (size_t i = 0; i < o->n * width; i++)
        mixed[i] *= oracle_silu(gate[i]);
    if (!o->s->bare_states)
        oracle_norm_rows(o->s, &w->norm, mixed, o->n, width, width);
}

/* y = W x, perhaps by its root mean square. */
static double *
made_of_values(const struct oracle *o, const struct oracle_linear *l,
               const struct oracle_norm *norm, const double *v)
{
    struct oracle_shape shape = {.eps = o->s->step_eps, .norm = ORACLE_RMS};
    double *y = oracle_apply(l, v, o->n);

    oracle_norm_rows(&shape, norm, y, o->n, l->rows, l->rows);
    return y;
}

static double *
state_space(const struct oracle *o, const struct oracle_delta *w,
            const double *x)
{
    const struct oracle_shape *s = o->s;
    size_t keys = s->delta_key_dim, values = s->delta_value_dim;
    size_t heads = s->delta_values, shared = heads / s->delta_keys;
    bool is_selective = s->recurrence == ORACLE_SELECTIVE;
    double *v = convolve(o, w, &w->v, x, 0);
    double *k = is_selective ? made_of_values(o, &w->k, &w->k_norm, v)
                             : convolve(o, w, &w->k, x, w->v.rows);
    double *q = is_selective
                    ? made_of_values(o, &w->q, &w->q_norm, v)
                    : convolve(o, w, &w->q, x, w->v.rows + w->k.rows);
    double *latents =
        is_selective ? made_of_values(o, &w->alpha_a, &w->alpha_norm, v) : NULL;
    double *alpha = oracle_apply(&w->alpha, is_selective ? latents : x, o->n);
    double *gate = oracle_apply(&w->gate, x, o->n);
    double *mixed = oracle_doubles(o->n * heads * values);
    double *decays = oracle_doubles(keys);

    for (size_t head = 0; head < heads; head++) {
        double *state = oracle_doubles(keys * values);
        for (size_t t = 0; t < o->n; t++) {
            size_t key = (t * s->delta_keys + head / shared) * keys;
            size_t i = t * heads + head;
            double step = log(1 + exp(alpha[i]));
            for (size_t r = 0; r < keys; r++)
                decays[r] = exp(
                    -exp((double)w->decay[is_selective ? head * keys + r
                                                       : head]) *
                    step);
            state_step(s, state, q + key, k + key, v + i * values, decays,
                       step, (double)w->skip[head], mixed + i * values);
        }
        free(state);
    }
    gate_and_norm(o, w, mixed, gate);
    double *out = oracle_apply(&w->out, mixed, o->n);
    free(q);
    free(k);
    free(v);
    free(latents);
    free(alpha);
    free(gate);
    free(mixed);
    free(decays);
    return out;
}

/* ---- Lightning attention ---- */

/* y = silu(W x). */
static double *
activated(const struct oracle *o, const struct oracle_linear *l,
          const double *x)
{
    double *y = oracle_apply(l, x, o->n);

    for (size_t i = 0; i < o->n * l->rows; i++)
        y[i] = oracle_silu(y[i]);
    return y;
}

/* Each earlier token counts by how far away it is: no state at all. */
static double *
lightning(const struct oracle *o, size_t layer, const struct oracle_delta *w,
          const double *x)
{
    const struct oracle_shape *s = o->s;
    size_t keys = s->delta_key_dim, values = s->delta_value_dim;
    size_t heads = s->delta_values, width = heads * values;
    double *q = activated(o, &w->q, x), *k = activated(o, &w->k, x);
    double *v = activated(o, &w->v, x), *gate = oracle_apply(&w->gate, x, o->n);
    double *mixed = oracle_doubles(o->n * width);
    double slower = 1 - (double)layer / ((double)s->layers - 1 + 1e-5) + 1e-5;

    for (size_t i = 0; i < o->n * heads; i++) {
        size_t t = i / heads, head = i % heads;
        double rate =
            pow(0.5, 8 * ((double)head + 1) / (double)heads) * slower;
        for (size_t j = 0; j <= t; j++) {
            double score = 0;
            for (size_t r = 0; r < keys; r++)
                score += q[i * keys + r] * k[(j * heads + head) * keys + r];
            for (size_t c = 0; c < values; c++)
                mixed[i * values + c] += score * exp(-rate * (double)(t - j)) *
                                         v[(j * heads + head) * values + c];
        }
    }
    struct oracle_shape states = *s;
    if (s->state_eps > 0)
        states.eps = s->state_eps;
    oracle_norm_rows(&states, &w->norm, mixed, o->n, width, width);
    for (size_t i = 0; i < o->n * width; i++)
        mixed[i] *= oracle_sigmoid(gate[i]);
    double *out = oracle_apply(&w->out, mixed, o->n);
    free(q);
    free(k);
    free(v);
    free(gate);
    free(mixed);
    return out;
}

/* ---- Without keys ---- */

/* sigmoid of what a row makes of its own head's values. */
static double
gate_of_values(const struct oracle_linear *gate, size_t row, const double *v)
{
    const double *x = v + row / gate->cols * gate->cols;
    double sum = gate->b != NULL ? (double)gate->b[row] : 0;

    for (size_t c = 0; c < gate->cols; c++)
        sum += (double)gate->w[row * gate->cols + c] * x[c];
    return oracle_sigmoid(sum);
}

static double *
without_keys(const struct oracle *o, const struct oracle_delta *w,
             const double *x)
{
    size_t width = w->v.rows;
    double *in = oracle_apply(&w->v, x, o->n);
    double *v = sums(o, w, in, width, 0);
    double *mixed = oracle_apply(&w->gate, x, o->n);

    for (size_t i = 0; i < width; i++) {
        double state = 0, rate = 8 * log1p(exp((double)w->decay[i]));
        for (size_t t = 0; t < o->n; t++) {
            const double *at = v + t * width;
            double left = exp(-rate * gate_of_values(&w->alpha, i, at));
            double added = gate_of_values(&w->beta, i, at) * at[i];
            state = t == 0 ? added
                           : left * state + sqrt(1 - left * left) * added;
            mixed[t * width + i] =
                state * o->s->activation(mixed[t * width + i]);
        }
    }
    double *out = oracle_apply(&w->out, mixed, o->n);
    free(in);
    free(v);
    free(mixed);
    return out;
}

/* ---- Short convolutions ---- */

static double *
short_convolution(const struct oracle *o, const struct oracle_delta *w,
                  const double *x)
{
    size_t n = w->v.rows;
    double *q = oracle_apply(&w->q, x, o->n);
    double *k = oracle_apply(&w->k, x, o->n);
    double *v = oracle_apply(&w->v, x, o->n);

    for (size_t i = 0; i < o->n * n; i++)
        v[i] *= k[i];
    double *mixed = sums(o, w, v, n, 0);
    for (size_t i = 0; i < o->n * n; i++)
        mixed[i] *= q[i];
    double *out = oracle_apply(&w->out, mixed, o->n);
    free(q);
    free(k);
    free(v);
    free(mixed);
    return out;
}

/* ---- Whatever the layer has ---- */

static double *
recur(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_delta *w = &o->model->layers[layer].delta;

    switch (o->s->recurrence) {
    case ORACLE_LRU:
        return without_keys(o, w, x);
    case ORACLE_LIGHTNING:
        return lightning(o, layer, w, x);
    case ORACLE_STATE_SPACE:
    case ORACLE_SELECTIVE:
        return state_space(o, w, x);
    case ORACLE_CONVOLUTION:
        return short_convolution(o, w, x);
    default:
        return delta_rule(o, w, x);
    }
}

double *
oracle_mix(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_shape *s = o->s;
    const struct oracle_layer *w = &o->model->layers[layer];
    double *state = w->delta.out.w != NULL ? recur(o, layer, x) : NULL;

    if (state != NULL && !s->is_beside)
        return state;
    if (s->shares_keys)
        return oracle_shared(o, layer, x);
    struct parts p = s->kv_rank > 0             ? latent_parts(o, layer, x)
                     : oracle_borrows(s, layer) ? borrowed_parts(o, layer, x)
                                                : plain_parts(o, layer, x);
    size_t width = p.heads * p.value_dim;
    double *mixed = oracle_doubles(o->n * width);

    for (size_t t = 0; t < o->n; t++)
        for (size_t head = 0; head < p.heads; head++)
            attend(o, layer, &p, t, head,
                   mixed + t * width + head * p.value_dim);
    for (size_t i = 0; i < o->n * width; i++)
        mixed[i] *= oracle_or_one(s->value_scale);
    double *seen = s->keeps_latents ? query_latents(o, w, x) : NULL;
    double *gate = w->gate.w == NULL
                       ? NULL
                       : oracle_apply(&w->gate, seen != NULL ? seen : x, o->n);
    size_t own = gate == NULL ? 1 : width / w->gate.rows;
    for (size_t i = 0; i < o->n * width && gate != NULL; i++)
        mixed[i] *= s->softplus_gates ? log1p(exp(gate[i / own]))
                                      : oracle_sigmoid(gate[i / own]);
    oracle_norm_rows(s, &w->sub_norm, mixed, o->n, w->o.cols, w->o.cols);
    double *out = oracle_apply(&w->o, mixed, o->n);
    for (size_t i = 0; i < o->n * s->dim && state != NULL; i++)
        out[i] += state[i];
    free(state);
    free(gate);
    free(seen);
    free(p.q);
    free(mixed);
    if (!oracle_borrows(s, layer)) {
        free(o->keys[layer]); /* of an earlier time */
        free(o->values[layer]);
        o->keys[layer] = p.k;
        o->values[layer] = p.v;
    }
    return out;
}
