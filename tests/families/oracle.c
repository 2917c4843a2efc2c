/*
 * oracle.c - a decoder-only model in doubles, written for reading.
 */
#include "config.h"

#include "tests/families/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oracle {
    const struct oracle_model *model;
    const struct oracle_shape *s;
    size_t n;  /* tokens */
    double *x; /* (n, dim): the residual stream */
    double **keys, **values; /* of each layer, for those that borrow */
    double *inputs; /* (n, layers, input_dim) */
};

static double *
doubles(size_t n)
{
    double *memory = calloc(n + 1, sizeof(*memory));

    if (memory == NULL)
        abort();
    return memory;
}

static double
or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

bool
oracle_pattern(const char *pattern, size_t layer)
{
    return pattern != NULL && pattern[layer % strlen(pattern)] == '1';
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
oracle_kv_heads(const struct oracle_shape *s, size_t layer)
{
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

/* y (n, rows) of x (n, cols) */
static double *
linear(const struct oracle_linear *l, const double *x, size_t n)
{
    double *y = doubles(n * l->rows);

    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < l->rows; r++) {
            double sum = l->b == NULL ? 0 : (double)l->b[r];
            for (size_t c = 0; c < l->cols; c++)
                sum += (double)l->w[r * l->cols + c] * x[t * l->cols + c];
            y[t * l->rows + r] = sum;
        }
    return y;
}

/* Vectors of `width` elements, every `stride` elements one, n of them. */
static void
norm(const struct oracle_shape *s, const struct oracle_norm *w, double *x,
     size_t n, size_t width, size_t stride)
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

/* A copy of x (n, dim), normalised. */
static double *
normed(const struct oracle *o, const struct oracle_norm *w, const double *x)
{
    double *y = doubles(o->n * o->s->dim);

    memcpy(y, x, o->n * o->s->dim * sizeof(*y));
    norm(o->s, w, y, o->n, o->s->dim, o->s->dim);
    return y;
}

static void
add(const struct oracle *o, const double *y)
{
    for (size_t i = 0; i < o->n * o->s->dim; i++)
        o->x[i] += or_one(o->s->residual_scale) * y[i];
}

/* ---- Positions ---- */

/* The dimension (of rotary ones) whose pair turns `turns` times in the
 * original context. */
static double
yarn_dimension(const struct oracle_shape *s, double turns, double theta,
               size_t dims)
{
    return (double)dims *
           log((double)s->original / (turns * 2 * acos(-1))) /
           (2 * log(theta));
}

/* How much of the frequency stays, from 0 to 1. */
static double
yarn_keeps(const struct oracle_shape *s, size_t pair, double theta,
           size_t dims)
{
    double from = yarn_dimension(s, s->high, theta, dims);
    double to = yarn_dimension(s, s->low, theta, dims);

    from = fmax(s->is_ramp_exact ? from : floor(from), 0);
    to = fmin(s->is_ramp_exact ? to : ceil(to), (double)dims - 1);

    if (from == to) /* the definition's own way out */
        to += 0.001;
    return 1 - fmin(fmax(((double)pair - from) / (to - from), 0), 1);
}

static double
llama3_frequency(const struct oracle_shape *s, double f)
{
    double wave = 2 * acos(-1) / f, original = (double)s->original;

    if (wave < original / s->high)
        return f;
    if (wave > original / s->low)
        return f / s->factor;
    double smooth = (original / wave - s->low) / (s->high - s->low);
    return (1 - smooth) * f / s->factor + smooth * f;
}

/* What scaling makes of theta. */
static double
base(const struct oracle_shape *s, size_t position, double theta, size_t dims)
{
    double power = (double)dims / ((double)dims - 2);
    double seen = fmax((double)position + 1, (double)s->original);

    if (s->rope == ORACLE_ROPE_NTK)
        return theta * pow(s->factor, power);
    if (s->rope == ORACLE_ROPE_DYNAMIC)
        return theta * pow(s->factor * seen / (double)s->original -
                               (s->factor - 1),
                           power);
    return theta;
}

/* Longrope's factors go by the length; without an original context there are
 * only the short ones. */
static bool
is_long(const struct oracle_shape *s, size_t n)
{
    return s->rope == ORACLE_ROPE_LONG && s->original > 0 && n > s->original;
}

static double
frequency(const struct oracle *o, size_t pair, size_t dims, size_t position,
          bool is_scaled, double theta)
{
    const struct oracle_shape *s = o->s;
    double power = -2 * (double)pair / (double)dims;
    double f = pow(theta, power);

    if (!is_scaled)
        return f;
    f = pow(base(s, position, theta, dims), power);
    if (s->rope == ORACLE_ROPE_LINEAR)
        return f / s->factor;
    if (s->rope == ORACLE_ROPE_LLAMA3)
        return llama3_frequency(s, f);
    if (s->rope == ORACLE_ROPE_LONG)
        return f / (is_long(s, o->n) ? s->long_factors
                                     : s->short_factors)[pair];
    if (s->rope == ORACLE_ROPE_YARN) {
        double keeps = yarn_keeps(s, pair, theta, dims);
        return f * keeps + f / s->factor * (1 - keeps);
    }
    return f;
}

/* Heads of `width` elements, n_heads of them for each token; the rotary ones
 * begin at `first`. */
static void
rotate(const struct oracle *o, size_t layer, double *x, size_t n_heads,
       size_t width, size_t first)
{
    const struct oracle_shape *s = o->s;
    size_t dims =
        s->rotary_dim == 0 ? oracle_head_dim(s, layer) : s->rotary_dim;
    bool is_part = s->full_part > 0 && oracle_is_full(s, layer);
    size_t n_turning =
        is_part ? (size_t)(s->full_part * (double)dims / 2) : dims / 2;
    bool is_local =
        s->window_theta > 0 && oracle_pattern(s->sliding, layer);
    double theta = is_local ? s->window_theta : s->theta;
    double scale = is_local ? 1 : or_one(s->rope_scale);

    if (s->positions != ORACLE_ROTARY ||
        (s->turning != NULL && !oracle_pattern(s->turning, layer)))
        return;
    for (size_t t = 0; t < o->n; t++)
        for (size_t head = 0; head < n_heads; head++)
            for (size_t i = 0; i < n_turning; i++) {
                double *p = x + (t * n_heads + head) * width + first;
                double *one = s->is_interleaved ? p + 2 * i : p + i;
                double *two = s->is_interleaved ? one + 1 : one + dims / 2;
                double angle =
                    (double)t * frequency(o, i, dims, t, !is_local, theta);
                double a = *one, b = *two;
                *one = scale * (a * cos(angle) - b * sin(angle));
                *two = scale * (a * sin(angle) + b * cos(angle));
            }
}

/* What the scores of a token have grown to. */
static double
growth(const struct oracle_shape *s, size_t layer, size_t t)
{
    if (!(s->growth > 0) ||
        (s->growing != NULL && !oracle_pattern(s->growing, layer)))
        return 1;
    return 1 + s->growth * log(1 + floor((double)(t + s->growth_shift) /
                                         (double)s->growth_period));
}

/* Of n heads, n a power of two: 2^(-8/n), 2^(-16/n), ...; of others the first
 * so many, and then every other one of twice as many. */
static double
alibi_slope(size_t head, size_t n_heads)
{
    size_t n = 1;

    while (2 * n <= n_heads)
        n *= 2;
    if (head < n)
        return pow(2, -8.0 * (double)(head + 1) / (double)n);
    return pow(2, -8.0 * (double)(2 * (head - n) + 1) / (double)(2 * n));
}

/* ---- Attention ---- */

/* Queries (n, heads, head_dim), keys and values (n, kv_heads, ...). */
struct parts {
    double *q, *k, *v;
    size_t kv_heads, value_dim, head_dim;
};

static double
score(const struct oracle *o, size_t layer, const struct parts *p, size_t t,
      size_t at, size_t head)
{
    const struct oracle_shape *s = o->s;
    const double *q = p->q + (t * s->heads + head) * p->head_dim;
    const double *k =
        p->k + (at * p->kv_heads + head / (s->heads / p->kv_heads)) *
                   p->head_dim;
    double scale = s->score_scale > 0 ? s->score_scale
                                      : 1 / sqrt((double)s->head_dim);
    double bias = alibi_slope(head, s->heads) * (double)(t - at);
    double sum = 0;

    for (size_t i = 0; i < p->head_dim; i++)
        sum += q[i] * k[i];
    if (s->positions == ORACLE_ALIBI_SCALED)
        sum -= bias;
    sum *= scale * or_one(s->score_factor) * growth(s, layer, t);
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
    size_t kv = head / (s->heads / parts->kv_heads);
    size_t window = oracle_pattern(s->sliding, layer) && s->chunk == 0
                        ? s->window
                        : t + 1;
    size_t first = t + 1 > window ? t + 1 - window : 0;
    double *p = doubles(t + 1), sum = 0;

    for (size_t at = 0; at <= t; at++)
        if (s->chunk > 0 && oracle_pattern(s->sliding, layer) &&
            at / s->chunk != t / s->chunk)
            first = at + 1;
    for (size_t at = first; at <= t; at++)
        sum += p[at] = exp(score(o, layer, parts, t, at, head));
    if (sinks != NULL)
        sum += exp((double)sinks[head]);
    for (size_t i = 0; i < parts->value_dim; i++) {
        out[i] = 0;
        for (size_t at = first; at <= t; at++)
            out[i] += p[at] / sum *
                      parts->v[(at * parts->kv_heads + kv) *
                                   parts->value_dim + i];
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
    struct parts p = {linear(&w->q, x, o->n), linear(&w->k, x, o->n),
                      linear(value, x, o->n), kv_heads,
                      value->rows / kv_heads, head};
    struct oracle_norm value_norm = {
        .span = o->s->norms_values ? p.value_dim : 0};
    struct oracle_norm q_norm = w->q_norm, k_norm = w->k_norm;

    if (o->s->norms_bare &&
        (o->s->turning == NULL || oracle_pattern(o->s->turning, layer)))
        q_norm = k_norm = (struct oracle_norm){.span = head};
    clip(o, p.q, o->n * q);
    clip(o, p.k, o->n * k);
    clip(o, p.v, o->n * value->rows);
    norm(o->s, &value_norm, p.v, o->n, value->rows, value->rows);
    for (int pass = 0; pass < 2; pass++)
        if ((pass == 1) == o->s->norms_turned) {
            norm(o->s, &q_norm, p.q, o->n, q, q);
            norm(o->s, &k_norm, p.k, o->n, k, k);
        } else {
            rotate(o, layer, p.q, o->s->heads, head, 0);
            rotate(o, layer, p.k, kv_heads, head, 0);
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
    struct parts p = {linear(&w->q, x, o->n), NULL, NULL,
                      oracle_kv_heads(s, layer), head, head};

    while (oracle_is_full(s, lender) != oracle_is_full(s, layer))
        lender--;
    p.k = o->keys[lender];
    p.v = o->values[lender];
    norm(s, &w->q_norm, p.q, o->n, w->q.rows, w->q.rows);
    rotate(o, layer, p.q, s->heads, head, 0);
    return p;
}

/* Keys and values of all heads from one latent vector; what turns of a key is
 * the same for all heads. A head's rows of kv_b: its still key, its value. */
static struct parts
latent_parts(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_shape *s = o->s;
    size_t still = s->head_dim - s->rotary_dim, rank = s->kv_rank;
    size_t width = rank + s->rotary_dim, both = still + s->value_dim;
    struct parts p = {NULL, doubles(o->n * s->heads * s->head_dim),
                      doubles(o->n * s->heads * s->value_dim), s->heads,
                      s->value_dim, s->head_dim};
    double *latent = linear(&w->kv_a, x, o->n);
    double *content = doubles(o->n * rank);

    if (s->q_rank > 0) {
        double *q = linear(&w->q_a, x, o->n);
        norm(s, &w->q_a_norm, q, o->n, s->q_rank, s->q_rank);
        p.q = linear(&w->q_b, q, o->n);
        free(q);
    } else {
        p.q = linear(&w->q, x, o->n);
    }
    rotate(o, layer, p.q, s->heads, s->head_dim, still);
    rotate(o, layer, latent, 1, width, rank);
    norm(s, &w->kv_a_norm, latent, o->n, rank, width);
    for (size_t t = 0; t < o->n; t++)
        memcpy(content + t * rank, latent + t * width,
               rank * sizeof(*content));
    double *kv = linear(&w->kv_b, content, o->n);
    for (size_t i = 0; i < o->n * s->heads; i++) {
        memcpy(p.k + i * s->head_dim, kv + i * both, still * sizeof(*kv));
        memcpy(p.k + i * s->head_dim + still,
               latent + i / s->heads * width + rank,
               s->rotary_dim * sizeof(*kv));
        memcpy(p.v + i * s->value_dim, kv + i * both + still,
               s->value_dim * sizeof(*kv));
    }
    free(latent);
    free(content);
    free(kv);
    return p;
}

/* ---- The gated delta rule ---- */

/* Each channel: the sum over the last tokens, and silu of it. `first` counts
 * the channels before these. */
static double *
convolve(const struct oracle *o, const struct oracle_delta *w,
         const struct oracle_linear *l, const double *x, size_t first)
{
    size_t width = o->s->conv_width;
    double *in = linear(l, x, o->n), *out = doubles(o->n * l->rows);

    for (size_t t = 0; t < o->n; t++)
        for (size_t c = 0; c < l->rows; c++) {
            double sum = 0;
            for (size_t j = 0; j < width && j <= t; j++)
                sum += (double)w->conv[(first + c) * width + width - 1 - j] *
                       in[(t - j) * l->rows + c];
            out[t * l->rows + c] = oracle_silu(sum);
        }
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
           const double *k, const double *v, double decay, double beta,
           double *out)
{
    size_t keys = shape->delta_key_dim, values = shape->delta_value_dim;

    for (size_t i = 0; i < keys * values; i++)
        s[i] *= decay;
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
    double *alpha = linear(&w->alpha, x, o->n);
    double *beta = linear(&w->beta, x, o->n);
    double *gate = linear(&w->gate, x, o->n);
    double *mixed = doubles(o->n * heads * values);

    set_lengths(q, o->n * s->delta_keys, keys);
    set_lengths(k, o->n * s->delta_keys, keys);
    for (size_t head = 0; head < heads; head++) {
        double *state = doubles(keys * values);
        for (size_t t = 0; t < o->n; t++) {
            size_t key = (t * s->delta_keys + head / shared) * keys;
            size_t i = t * heads + head;
            double step = log(1 + exp(alpha[i]));
            delta_step(s, state, q + key, k + key, v + i * values,
                       exp(-exp((double)w->decay[head]) * step),
                       oracle_sigmoid(beta[i]), mixed + i * values);
        }
        free(state);
    }
    norm(s, &w->norm, mixed, o->n, heads * values, heads * values);
    for (size_t i = 0; i < o->n * heads * values; i++)
        mixed[i] *= oracle_silu(gate[i]);
    double *out = linear(&w->out, mixed, o->n);
    free(q);
    free(k);
    free(v);
    free(alpha);
    free(beta);
    free(gate);
    free(mixed);
    return out;
}

/* ---- Either ---- */

static double *
attention(const struct oracle *o, size_t layer, const double *x)
{
    const struct oracle_shape *s = o->s;
    const struct oracle_layer *w = &o->model->layers[layer];

    if (w->delta.q.w != NULL)
        return delta_rule(o, &w->delta, x);
    struct parts p = s->kv_rank > 0             ? latent_parts(o, layer, x)
                     : oracle_borrows(s, layer) ? borrowed_parts(o, layer, x)
                                                : plain_parts(o, layer, x);
    double *mixed = doubles(o->n * s->heads * p.value_dim);

    for (size_t t = 0; t < o->n; t++)
        for (size_t head = 0; head < s->heads; head++)
            attend(o, layer, &p, t, head,
                   mixed + (t * s->heads + head) * p.value_dim);
    double *gate = w->gate.w != NULL ? linear(&w->gate, x, o->n) : NULL;
    for (size_t i = 0; i < o->n * s->heads * p.value_dim && gate != NULL; i++)
        mixed[i] *= oracle_sigmoid(gate[i]);
    double *out = linear(&w->o, mixed, o->n);
    free(gate);
    free(p.q);
    free(mixed);
    if (!oracle_borrows(s, layer)) {
        o->keys[layer] = p.k;
        o->values[layer] = p.v;
    }
    return out;
}

/* ---- Feed-forward ---- */

static double *
mlp(const struct oracle_shape *s, const struct oracle_mlp *w, const double *x,
    size_t n)
{
    double *up = linear(&w->up, x, n);

    if (w->gate.w != NULL) {
        double *gate = linear(&w->gate, x, n);
        for (size_t i = 0; i < n * w->up.rows; i++) {
            if (s->up_limit > 0) {
                gate[i] = fmin(gate[i], s->up_limit);
                up[i] = fmin(fmax(up[i], -s->up_limit), s->up_limit);
            }
            up[i] = (up[i] + s->up_plus) * s->activation(gate[i]);
        }
        free(gate);
    } else {
        for (size_t i = 0; i < n * w->up.rows; i++)
            up[i] = s->activation(up[i]);
    }
    double *out = linear(&w->down, up, n);
    free(up);
    return out;
}

/* The place of the largest; its number is then out of the game. */
static size_t
take_largest(double *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    x[best] = -(double)INFINITY;
    return best;
}

/* Experts of groups that are not among the best become impossible. */
static void
choose_groups(const struct oracle_shape *s, double *worth)
{
    size_t size = s->n_experts / s->n_groups;
    double *groups = doubles(s->n_groups), *copy = doubles(s->n_experts);
    double *chosen = doubles(s->n_groups);

    memcpy(copy, worth, s->n_experts * sizeof(*copy));
    for (size_t g = 0; g < s->n_groups; g++)
        for (size_t i = 0; i < s->group_best; i++) {
            double *group = copy + g * size;
            double before[64];
            memcpy(before, group, size * sizeof(*before));
            groups[g] += before[take_largest(group, size)];
        }
    for (size_t i = 0; i < s->n_groups_used; i++)
        chosen[take_largest(groups, s->n_groups)] = 1;
    for (size_t e = 0; e < s->n_experts; e++)
        if (chosen[e / size] < 1)
            worth[e] = -(double)INFINITY;
    free(groups);
    free(copy);
    free(chosen);
}

/* Weights of all experts from the router's logits: 0 for those not chosen. */
static void
route(const struct oracle_shape *s, const struct oracle_layer *w,
      const double *logits, double *weights)
{
    size_t n = s->n_experts;
    double *scores = doubles(n), *worth = doubles(n), sum = 0, chosen = 0;

    for (size_t e = 0; e < n; e++)
        sum += scores[e] = exp(logits[e]);
    for (size_t e = 0; e < n; e++) {
        scores[e] = s->router == ORACLE_SIGMOID ? oracle_sigmoid(logits[e])
                                                : scores[e] / sum;
        worth[e] = scores[e] +
                   (w->correction == NULL ? 0 : (double)w->correction[e]);
        weights[e] = 0;
    }
    if (s->n_groups > 0)
        choose_groups(s, worth);
    for (size_t i = 0; i < s->n_used; i++) {
        size_t e = take_largest(worth, n);
        chosen += weights[e] = scores[e];
    }
    for (size_t e = 0; e < n; e++) {
        /* Softmax over the chosen is that over all, shared out anew. */
        if (s->renormalises || s->router == ORACLE_SOFTMAX_CHOSEN)
            weights[e] /= chosen;
        weights[e] *= or_one(s->router_scale);
    }
    free(scores);
    free(worth);
}

static void
add_weighted(double *to, const double *from, size_t n, double weight)
{
    for (size_t i = 0; i < n; i++)
        to[i] += weight * from[i];
}

/* One token at a time. The router may look at something else. */
static double *
experts(const struct oracle *o, const struct oracle_layer *w, const double *x,
        const double *routed)
{
    const struct oracle_shape *s = o->s;
    double *logits = linear(&w->router, routed, o->n);
    double *out = doubles(o->n * s->dim), *weights = doubles(s->n_experts);

    for (size_t t = 0; t < o->n; t++) {
        const double *in = x + t * s->dim;
        double *to = out + t * s->dim, share = 1;
        route(s, w, logits + t * s->n_experts, weights);
        for (size_t e = 0; e < s->n_experts && w->experts_scale != NULL; e++)
            weights[e] *= (double)w->experts_scale[e];
        for (size_t e = 0; e < s->n_experts; e++) {
            if (weights[e] == 0)
                continue;
            double *input = doubles(s->dim);
            add_weighted(input, in, s->dim, s->weighs_input ? weights[e] : 1);
            double *y = mlp(s, &w->experts[e], input, 1);
            add_weighted(to, y, s->dim, s->weighs_input ? 1 : weights[e]);
            free(input);
            free(y);
        }
        if (w->shared_switch.w != NULL) {
            double *y = linear(&w->shared_switch, in, 1);
            share = oracle_sigmoid(y[0]);
            free(y);
        }
        if (w->shared.up.w != NULL) {
            double *y = mlp(s, &w->shared, in, 1);
            add_weighted(to, y, s->dim, share);
            free(y);
        }
    }
    free(logits);
    free(weights);
    return out;
}

/* A network and, beside it, experts, which look at the stream themselves. */
static double *
mlp_and_experts(const struct oracle *o, const struct oracle_layer *w,
                const double *in)
{
    size_t dim = o->s->dim;
    double *out = mlp(o->s, &w->mlp, in, o->n);
    double *routed = normed(o, &w->router_norm, o->x);
    double *seen = normed(o, &w->experts_norm, o->x);

    norm(o->s, &w->mlp_post_norm, out, o->n, dim, dim);
    for (size_t i = 0; i < o->n * dim; i++)
        routed[i] /= sqrt((double)dim);
    double *sum = experts(o, w, seen, routed);
    norm(o->s, &w->experts_post_norm, sum, o->n, dim, dim);
    for (size_t i = 0; i < o->n * dim; i++)
        out[i] += sum[i];
    free(routed);
    free(seen);
    free(sum);
    return out;
}

/* ---- Inputs of layers ---- */

/* Of all layers, from the embeddings in x. */
static void
make_inputs(struct oracle *o, const int32_t *tokens)
{
    const struct oracle_shape *s = o->s;
    size_t each = s->input_dim, width = each * s->layers;

    o->inputs = linear(&o->model->inputs_proj, o->x, o->n);
    for (size_t i = 0; i < o->n * width; i++)
        o->inputs[i] /= sqrt((double)s->dim);
    norm(s, &o->model->inputs_norm, o->inputs, o->n * s->layers, each, each);
    for (size_t i = 0; i < o->n * width; i++) {
        size_t token = (size_t)tokens[i / width];
        o->inputs[i] += sqrt((double)each) *
                        (double)o->model->inputs[token * width + i % width];
        o->inputs[i] /= sqrt(2);
    }
}

static void
add_input(const struct oracle *o, size_t layer)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_shape *s = o->s;
    double *gate = linear(&w->input_gate, o->x, o->n);

    for (size_t i = 0; i < o->n * s->input_dim; i++) {
        size_t t = i / s->input_dim, at = i % s->input_dim;
        gate[i] = s->activation(gate[i]) *
                  o->inputs[(t * s->layers + layer) * s->input_dim + at];
    }
    double *out = linear(&w->input_out, gate, o->n);
    norm(s, &w->input_norm, out, o->n, s->dim, s->dim);
    for (size_t i = 0; i < o->n * s->dim; i++)
        o->x[i] += out[i];
    free(gate);
    free(out);
}

/* ---- All of it ---- */

static void
run_layer(struct oracle *o, size_t layer)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t dim = o->s->dim;
    double *in = normed(o, &w->attn_norm, o->x);
    double *mixed = attention(o, layer, in);

    norm(o->s, &w->attn_post_norm, mixed, o->n, dim, dim);
    if (!o->s->is_parallel)
        add(o, mixed);
    double *second = o->s->is_parallel && w->ffn_norm.span == 0
                         ? in
                         : normed(o, &w->ffn_norm, o->x);
    double *out = w->mlp.up.w == NULL ? experts(o, w, second, second)
                  : w->experts != NULL ? mlp_and_experts(o, w, second)
                                       : mlp(o->s, &w->mlp, second, o->n);
    norm(o->s, &w->ffn_post_norm, out, o->n, dim, dim);
    if (o->s->is_parallel)
        add(o, mixed);
    add(o, out);
    if (w->input_gate.w != NULL)
        add_input(o, layer);
    for (size_t i = 0; i < o->n * dim && w->scale != NULL; i++)
        o->x[i] *= (double)w->scale[0];
    if (second != in)
        free(second);
    free(in);
    free(mixed);
    free(out);
}

static double *
run_sequence(const struct oracle_model *model, const int32_t *tokens, size_t n)
{
    const struct oracle_shape *s = &model->shape;
    struct oracle o = {model, s, n, doubles(n * s->dim), NULL, NULL, NULL};

    o.keys = calloc(s->layers, sizeof(*o.keys));
    o.values = calloc(s->layers, sizeof(*o.values));
    if (o.keys == NULL || o.values == NULL)
        abort();

    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < s->dim; i++) {
            o.x[t * s->dim + i] =
                or_one(s->embedding_scale) *
                (double)model->embedding[(size_t)tokens[t] * s->dim + i];
            if (model->table != NULL)
                o.x[t * s->dim + i] += (double)model->table[t * s->dim + i];
        }
    norm(s, &model->embedding_norm, o.x, n, s->dim, s->dim);
    if (s->input_dim > 0)
        make_inputs(&o, tokens);
    for (size_t layer = 0; layer < s->layers; layer++)
        run_layer(&o, layer);
    for (size_t layer = 0; layer < s->layers; layer++) {
        free(o.keys[layer]);
        free(o.values[layer]);
    }
    free(o.keys);
    free(o.values);
    free(o.inputs);
    norm(s, &model->norm, o.x, n, s->dim, s->dim);
    double *logits = linear(&model->head, o.x, n);
    for (size_t i = 0; i < n * s->vocab; i++) {
        logits[i] *= or_one(s->logit_scale);
        if (s->logit_cap > 0)
            logits[i] = s->logit_cap * tanh(logits[i] / s->logit_cap);
    }
    free(o.x);
    return logits;
}

double *
oracle_run(const struct oracle_model *model, const int32_t *tokens, size_t n)
{
    const struct oracle_shape *s = &model->shape;
    double *logits = run_sequence(model, tokens, n);

    if (is_long(s, n)) {
        double *begin = run_sequence(model, tokens, s->original);
        memcpy(logits, begin, s->original * s->vocab * sizeof(*begin));
        free(begin);
    }
    return logits;
}

double
oracle_distance(const double *truth, const float *logits, size_t n)
{
    double top = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        double difference = fabs(truth[i] - (double)logits[i]);
        if (!(difference <= most)) /* NaN shows */
            most = difference;
        top = fmax(top, fabs(truth[i]));
    }
    return most / top;
}
