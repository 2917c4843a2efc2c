/*
 * oracle.c - a decoder-only model in doubles, written for reading.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What attention (0), a recurrence (1) or a feed-forward (2) gives, to what it
 * was given or to what that was made of. */
static void
add(const struct oracle *o, size_t kind, const double *in, const double *y)
{
    double keep = oracle_or_one(o->s->keeps[kind]);
    double scale = oracle_or_one(o->s->residual_scale) *
                   oracle_or_one(o->s->adds[kind]);

    for (size_t i = 0; i < o->n * o->s->dim; i++)
        o->x[i] = keep * (o->s->adds_to_normed ? in[i] : o->x[i]) +
                  scale * y[i];
}

static size_t
kind_of(const struct oracle *o, size_t layer)
{
    return oracle_pattern(o->s->delta, layer) && !o->s->is_beside;
}

/* ---- Inputs of layers ---- */

/* Of all layers, from the embeddings in x. */
static void
make_inputs(struct oracle *o, const int32_t *tokens)
{
    const struct oracle_shape *s = o->s;
    size_t each = s->input_dim, width = each * s->layers;

    o->inputs = oracle_apply(&o->model->inputs_proj, o->x, o->n);
    for (size_t i = 0; i < o->n * width; i++)
        o->inputs[i] /= sqrt((double)s->dim);
    oracle_norm_rows(s, &o->model->inputs_norm, o->inputs, o->n * s->layers,
                     each, each);
    for (size_t i = 0; i < o->n * width; i++) {
        size_t token = (size_t)tokens[i / width];
        if (token >= s->input_vocab)
            token = 0;
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
    size_t all = o->n * s->dim;
    double *in = oracle_doubles(all);

    for (size_t i = 0; i < all; i++)
        in[i] = o->x[i] * (s->streams > 0
                               ? (double)w->stream_scale.w[i % s->dim]
                               : 1);
    double *gate = oracle_apply(&w->input_gate, in, o->n);

    for (size_t i = 0; i < o->n * s->input_dim; i++) {
        size_t t = i / s->input_dim, at = i % s->input_dim;
        gate[i] = s->activation(gate[i]) *
                  o->inputs[(t * s->layers + layer) * s->input_dim + at];
    }
    double *out = oracle_apply(&w->input_out, gate, o->n);
    oracle_norm_rows(s, &w->input_norm, out, o->n, s->dim, s->dim);
    for (size_t i = 0; i < all; i++)
        if (s->streams == 0)
            o->x[i] += out[i];
    for (size_t i = 0; s->streams > 0 && i < (s->streams - 1) * all; i++)
        o->beside[i] += out[i % all];
    free(in);
    free(gate);
    free(out);
}

/* ---- Several streams ---- */

/* The root of the mean of the squares. */
static double
size_of(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

/* Each of n rows of y becomes as large as that of x. */
static void
resize(double *y, const double *x, size_t n, size_t dim)
{
    for (size_t i = 0; i < n * dim; i += dim) {
        double factor = size_of(x + i, dim) /
                        fmax(size_of(y + i, dim), sqrt(1e-5));
        for (size_t k = 0; k < dim; k++)
            y[i + k] *= factor;
    }
}

static void
spread_streams(struct oracle *o)
{
    size_t dim = o->s->dim, all = o->n * dim;

    o->beside = oracle_doubles((o->s->streams - 1) * all);
    for (size_t j = 0; j + 1 < o->s->streams; j++) {
        double *y = oracle_apply(&o->model->streams_in[j], o->x, o->n);
        resize(y, o->x, o->n, dim);
        memcpy(o->beside + j * all, y, all * sizeof(*y));
        free(y);
    }
}

static void
gather_streams(struct oracle *o)
{
    size_t dim = o->s->dim, all = o->n * dim;
    double *sum = oracle_doubles(all);

    memcpy(sum, o->x, all * sizeof(*sum));
    for (size_t j = 0; j + 1 < o->s->streams; j++) {
        double *y = oracle_apply(&o->model->streams_out[j],
                                 o->beside + j * all, o->n);
        resize(y, o->x, o->n, dim);
        for (size_t i = 0; i < all; i++)
            sum[i] += y[i];
        free(y);
    }
    for (size_t i = 0; i < all; i++)
        o->x[i] = sum[i] / (double)o->s->streams;
    free(sum);
}

/* What the matrix makes of what the first stream says: (n, its rows). */
static double *
coefficients(const struct oracle *o, const struct oracle_layer *w,
             const struct oracle_linear *of)
{
    size_t dim = o->s->dim;
    double *in = oracle_normed(o, &w->stream_norm, o->x);

    for (size_t i = 0; i < o->n * dim; i++)
        in[i] /= (double)dim;
    double *said = oracle_apply(&w->stream_router, in, o->n);
    for (size_t i = 0; i < o->n * o->s->streams; i++)
        said[i] = tanh(said[i]);
    double *result = oracle_apply(of, said, o->n);
    free(in);
    free(said);
    return result;
}

static double *
element_of(const struct oracle *o, size_t stream, size_t at)
{
    return stream == 0 ? o->x + at
                       : o->beside + (stream - 1) * o->n * o->s->dim + at;
}

static void
predict_streams(const struct oracle *o, const struct oracle_layer *w)
{
    size_t dim = o->s->dim, n = o->s->streams;
    double *c = coefficients(o, w, &w->stream_predict);

    for (size_t i = 0; i < o->n * dim; i++) {
        const double *of_token = c + i / dim * n * n;
        double old[4] = {0};
        for (size_t j = 0; j < n; j++)
            old[j] = *element_of(o, j, i);
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < n; k++)
                *element_of(o, j, i) += of_token[j * n + k] * old[k];
    }
    free(c);
}

static void
correct_streams(const struct oracle *o, const struct oracle_layer *w,
                const double *predicted)
{
    size_t dim = o->s->dim, n = o->s->streams;
    double *c = coefficients(o, w, &w->stream_correct);

    for (size_t i = 0; i < o->n * dim; i++) {
        double news = o->x[i] - predicted[i];
        o->x[i] = predicted[i];
        for (size_t j = 0; j < n; j++)
            *element_of(o, j, i) += (1 + c[i / dim * n + j]) * news;
    }
    free(c);
}

/* ---- Hyper-connections ---- */

/* (n, rows) of all streams, one behind the other and of size 1, each kind of
 * rows with a scale of its own. */
static double *
hyper_answers(const struct oracle *o, const struct oracle_hyper *w)
{
    size_t dim = o->s->dim, s = o->s->streams, rows = w->fn.rows;
    double *all = oracle_doubles(o->n * s * dim);

    for (size_t i = 0; i < o->n * s * dim; i++)
        all[i] = *element_of(o, i / dim % s, i / (s * dim) * dim + i % dim);
    double *answers = oracle_apply(&w->fn, all, o->n);
    for (size_t i = 0; i < o->n * rows; i++) {
        double size = size_of(all + i / rows * s * dim, s * dim);
        size_t row = i % rows, kind = row < s ? 0 : row < 2 * s ? 1 : 2;
        answers[i] = answers[i] / sqrt(size * size + o->s->eps) *
                         (double)w->scale.w[kind] +
                     (double)w->base.w[row];
    }
    free(all);
    return answers;
}

/* How much of stream j goes to stream k, of one token: from logits. */
static double *
hyper_matrix(const struct oracle_shape *s, const double *logits)
{
    size_t n = s->streams;
    double *matrix = oracle_doubles(n * n);

    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += exp(logits[j * n + k]);
        for (size_t k = 0; k < n; k++)
            matrix[j * n + k] = exp(logits[j * n + k]) / sum + s->hyper_eps;
    }
    /* Columns, and then rows and columns by turns. */
    for (size_t step = 0; step < 2 * s->hyper_rounds - 1; step++)
        for (size_t line = 0; line < n; line++) {
            double sum = s->hyper_eps;
            for (size_t i = 0; i < n; i++)
                sum += step % 2 == 0 ? matrix[i * n + line]
                                     : matrix[line * n + i];
            for (size_t i = 0; i < n; i++)
                matrix[step % 2 == 0 ? i * n + line : line * n + i] /= sum;
        }
    return matrix;
}

/* The sum of all streams; NULL: their mean. */
static double *
hyper_sum(const struct oracle *o, const double *answers, size_t rows)
{
    size_t dim = o->s->dim, s = o->s->streams;
    double *sum = oracle_doubles(o->n * dim);

    for (size_t i = 0; i < o->n * dim; i++)
        for (size_t j = 0; j < s; j++) {
            double weight = 1 / (double)s;
            if (answers != NULL)
                weight = oracle_sigmoid(answers[i / dim * rows + j]) +
                         o->s->hyper_eps;
            sum[i] += weight * *element_of(o, j, i);
        }
    return sum;
}

static void
hyper_write(struct oracle *o, const double *answers, size_t rows,
            const double *y)
{
    const struct oracle_shape *s = o->s;
    size_t dim = s->dim, n = s->streams;

    for (size_t t = 0; t < o->n; t++) {
        const double *own = answers + t * rows;
        double *matrix =
            s->hyper_rounds > 0 ? hyper_matrix(s, own + 2 * n) : NULL;
        for (size_t i = t * dim; i < t * dim + dim; i++) {
            double old[8];
            for (size_t j = 0; j < n; j++)
                old[j] = *element_of(o, j, i);
            for (size_t k = 0; k < n; k++) {
                double write = s->hyper_gain * oracle_sigmoid(own[n + k]) +
                               s->hyper_floor;
                double kept = matrix == NULL ? old[k] : 0;
                for (size_t j = 0; j < n && matrix != NULL; j++)
                    kept += matrix[j * n + k] * old[j];
                *element_of(o, k, i) =
                    kept + write * oracle_or_one(s->residual_scale) * y[i];
            }
        }
        free(matrix);
    }
}

/* What a block gives, by the norm behind it, if there is one. */
static void
norm_given(const struct oracle *o, const struct oracle_norm *norm, double *x)
{
    struct oracle_shape shape = *o->s;

    if (shape.post_eps > 0)
        shape.eps = shape.post_eps;
    oracle_norm_rows(&shape, norm, x, o->n, shape.dim, shape.dim);
}

/* One of the two blocks of a layer. */
static void
hyper_block(struct oracle *o, size_t layer, bool mixes)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    const struct oracle_hyper *hyper = mixes ? &w->attn_hyper : &w->ffn_hyper;
    double *answers = hyper_answers(o, hyper);
    double *in = hyper_sum(o, answers, hyper->fn.rows);
    size_t dim = o->s->dim;

    oracle_norm_rows(o->s, mixes ? &w->attn_norm : &w->ffn_norm, in, o->n, dim,
                     dim);
    double *out = mixes                ? oracle_mix(o, layer, in)
                  : w->mlp.up.w == NULL ? oracle_experts(o, w, in, in)
                                       : oracle_feed(o, layer, in);
    norm_given(o, mixes ? &w->attn_post_norm : &w->ffn_post_norm, out);
    hyper_write(o, answers, hyper->fn.rows, out);
    free(answers);
    free(in);
    free(out);
}

static void
hyper_layer(struct oracle *o, size_t layer)
{
    void (*block)(struct oracle *, size_t, bool) =
        o->s->gate_streams > 0 ? oracle_gated_block : hyper_block;

    if (oracle_mixes(o->s, layer))
        block(o, layer, true);
    if (oracle_feeds(o->s, layer))
        block(o, layer, false);
}

static void
hyper_spread(struct oracle *o)
{
    size_t all = o->n * o->s->dim;

    o->beside = oracle_doubles((o->s->streams - 1) * all);
    for (size_t j = 1; j < o->s->streams; j++)
        memcpy(element_of(o, j, 0), o->x, all * sizeof(*o->x));
}

static void
hyper_gather(struct oracle *o)
{
    double *answers =
        o->s->hyper_mean ? NULL : hyper_answers(o, &o->model->hyper);
    double *sum = hyper_sum(o, answers, o->s->streams);

    memcpy(o->x, sum, o->n * o->s->dim * sizeof(*sum));
    free(answers);
    free(sum);
}

/* What attention was given goes past it, too. */
static void
bypass(const struct oracle *o, const struct oracle_layer *w, const double *in)
{
    double *a = oracle_apply(&w->bypass_a, in, o->n);
    double *b = oracle_apply(&w->bypass_b, a, o->n);

    oracle_norm_rows(o->s, &w->bypass_norm, b, o->n, o->s->dim, o->s->dim);
    for (size_t i = 0; i < o->n * o->s->dim; i++)
        o->x[i] = (o->x[i] + in[i] + b[i]) / sqrt(2);
    free(a);
    free(b);
}

/* What a block is given: norm(x), perhaps times a gate that is made of it. */
static double *
given(const struct oracle *o, const struct oracle_norm *norm,
      const struct oracle_linear *a, const struct oracle_linear *b)
{
    double *y = oracle_normed(o, norm, o->x);

    if (a->w == NULL)
        return y;
    double *latents = oracle_apply(a, y, o->n);
    for (size_t i = 0; i < o->n * a->rows; i++)
        latents[i] = oracle_silu(latents[i]);
    double *gate = oracle_apply(b, latents, o->n);
    for (size_t i = 0; i < o->n * b->rows; i++)
        y[i] *= oracle_sigmoid(gate[i]);
    free(latents);
    free(gate);
    return y;
}

/* ---- All of it ---- */

/* A layer of one half. */
static void
run_half(struct oracle *o, size_t layer)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    bool mixes = oracle_mixes(o->s, layer);
    double *in =
        oracle_normed(o, mixes ? &w->attn_norm : &w->ffn_norm, o->x);
    double *out = mixes                ? oracle_mix(o, layer, in)
                  : w->mlp.up.w == NULL ? oracle_experts(o, w, in, in)
                                       : oracle_feed(o, layer, in);

    add(o, mixes ? kind_of(o, layer) : 2, in, out);
    free(in);
    free(out);
}

static void
run_layer(struct oracle *o, size_t layer)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t dim = o->s->dim;

    if (oracle_pattern(o->s->grams, layer))
        oracle_add_grams(o, layer);
    if (o->s->hyper) {
        hyper_layer(o, layer);
        return;
    }
    if (!oracle_mixes(o->s, layer) || !oracle_feeds(o->s, layer)) {
        if (oracle_mixes(o->s, layer) || oracle_feeds(o->s, layer))
            run_half(o, layer);
        return;
    }
    double *predicted = oracle_doubles(o->n * dim);
    if (o->s->streams > 0)
        predict_streams(o, w);
    memcpy(predicted, o->x, o->n * dim * sizeof(*predicted));
    double *in = given(o, &w->attn_norm, &w->attn_norm_a, &w->attn_norm_b);
    double *mixed = oracle_mix(o, layer, in);

    norm_given(o, &w->attn_post_norm, mixed);
    if (!o->s->is_parallel)
        add(o, kind_of(o, layer), in, mixed);
    if (w->bypass_a.w != NULL)
        bypass(o, w, in);
    double *second = o->s->is_parallel && w->ffn_norm.span == 0
                         ? in
                         : given(o, &w->ffn_norm, &w->ffn_norm_a,
                                 &w->ffn_norm_b);
    const double *routed = o->s->routes_early ? predicted : second;
    double *out = w->mlp.up.w == NULL ? oracle_experts(o, w, second, routed)
                  : w->experts != NULL
                      ? oracle_mlp_and_experts(o, w, second)
                      : oracle_feed(o, layer, second);
    norm_given(o, &w->ffn_post_norm, out);
    if (o->s->is_parallel)
        add(o, kind_of(o, layer), in, mixed);
    add(o, 2, second, out);
    if (o->s->streams > 0)
        correct_streams(o, w, predicted);
    free(predicted);
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
    struct oracle o = {model,  s,    n,    tokens, oracle_doubles(n * s->dim),
                       NULL,   NULL, NULL, NULL, oracle_doubles(n * n)};

    o.keys = calloc(s->layers, sizeof(*o.keys));
    o.values = calloc(s->layers, sizeof(*o.values));
    if (o.keys == NULL || o.values == NULL)
        abort();

    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < s->dim; i++) {
            o.x[t * s->dim + i] =
                oracle_or_one(s->embedding_scale) *
                (double)model->embedding[(size_t)tokens[t] * s->dim + i];
            if (model->table != NULL)
                o.x[t * s->dim + i] += (double)model->table[t * s->dim + i];
        }
    const struct oracle_norm bare = {.span = s->dim};
    oracle_norm_rows(s, s->norms_embedding ? &bare : &model->embedding_norm,
                     o.x, n, s->dim, s->dim);
    if (s->input_dim > 0)
        make_inputs(&o, tokens);
    if (s->hyper)
        hyper_spread(&o);
    else if (s->streams > 0)
        spread_streams(&o);
    for (size_t i = 0; i < n * n; i++)
        o.chosen[i] = 1; /* before the first choice */
    for (size_t step = 0; step < s->layers * (s->again + 1); step++) {
        if (step > 0 && step % s->layers == 0 && s->norms_again)
            oracle_norm_rows(s, &model->norm, o.x, n, s->dim, s->dim);
        run_layer(&o, step % s->layers);
    }
    for (size_t layer = 0; layer < s->layers; layer++) {
        free(o.keys[layer]);
        free(o.values[layer]);
    }
    free(o.keys);
    free(o.values);
    free(o.inputs);
    free(o.chosen);
    if (s->gate_streams > 0)
        oracle_gated_gather(&o);
    else if (s->hyper)
        hyper_gather(&o);
    else if (s->streams > 0)
        gather_streams(&o);
    free(o.beside);
    if (s->gate_streams == 0)
        oracle_norm_rows(s, &model->norm, o.x, n, s->dim, s->dim);
    double *logits = oracle_apply(&model->head, o.x, n);
    for (size_t i = 0; i < n * s->vocab; i++) {
        logits[i] *= oracle_or_one(s->logit_scale);
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

    if (oracle_is_long(s, n)) {
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
