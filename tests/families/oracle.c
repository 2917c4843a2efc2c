/*
 * oracle.c - a decoder-only model in doubles, written for reading.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
add(const struct oracle *o, const double *y)
{
    for (size_t i = 0; i < o->n * o->s->dim; i++)
        o->x[i] += oracle_or_one(o->s->residual_scale) * y[i];
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
    double *gate = oracle_apply(&w->input_gate, o->x, o->n);

    for (size_t i = 0; i < o->n * s->input_dim; i++) {
        size_t t = i / s->input_dim, at = i % s->input_dim;
        gate[i] = s->activation(gate[i]) *
                  o->inputs[(t * s->layers + layer) * s->input_dim + at];
    }
    double *out = oracle_apply(&w->input_out, gate, o->n);
    oracle_norm_rows(s, &w->input_norm, out, o->n, s->dim, s->dim);
    for (size_t i = 0; i < o->n * s->dim; i++)
        o->x[i] += out[i];
    free(gate);
    free(out);
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
                                       : oracle_mlp_rows(o->s, &w->mlp, in,
                                                         o->n);

    add(o, out);
    free(in);
    free(out);
}

static void
run_layer(struct oracle *o, size_t layer)
{
    const struct oracle_layer *w = &o->model->layers[layer];
    size_t dim = o->s->dim;

    if (!oracle_mixes(o->s, layer) || !oracle_feeds(o->s, layer)) {
        run_half(o, layer);
        return;
    }
    double *in = oracle_normed(o, &w->attn_norm, o->x);
    double *mixed = oracle_mix(o, layer, in);

    oracle_norm_rows(o->s, &w->attn_post_norm, mixed, o->n, dim, dim);
    if (!o->s->is_parallel)
        add(o, mixed);
    double *second = o->s->is_parallel && w->ffn_norm.span == 0
                         ? in
                         : oracle_normed(o, &w->ffn_norm, o->x);
    double *out = w->mlp.up.w == NULL ? oracle_experts(o, w, second, second)
                  : w->experts != NULL
                      ? oracle_mlp_and_experts(o, w, second)
                      : oracle_mlp_rows(o->s, &w->mlp, second, o->n);
    oracle_norm_rows(o->s, &w->ffn_post_norm, out, o->n, dim, dim);
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
    struct oracle o = {model, s,    n,   oracle_doubles(n * s->dim),
                       NULL,  NULL, NULL};

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
    oracle_norm_rows(s, &model->embedding_norm, o.x, n, s->dim, s->dim);
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
