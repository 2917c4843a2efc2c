/*
 * oracle.c - a decoder-only model in doubles, written for reading.
 */
#include "config.h"

#include "tests/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oracle {
    struct lmq_checkpoint *checkpoint;
    const struct lmq_hparams *h;
    size_t n; /* tokens */
    double *x; /* (n, dim) */
};

/* ---- Weights ---- */

static void *
need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* NULL if the model has no such tensor. */
static float *
load(const struct oracle *o, const char *format, int layer)
{
    struct lmq_scratch scratch = {0};
    char name[64];

    snprintf(name, sizeof(name), format, layer);
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(o->checkpoint, name);
    if (tensor == NULL)
        return NULL;
    size_t n = (size_t)tensor->n_elements;
    float *w = need(malloc(n * sizeof(*w)));
    if (lmq_checkpoint_read(o->checkpoint, tensor, 0, n, w, &scratch, NULL) !=
        LMQ_OK)
        abort();
    lmq_scratch_free(&scratch);
    return w;
}

/* y (n, rows) = x (n, cols) W^T + b */
static double *
linear(const struct oracle *o, const double *x, const char *name, int layer,
       size_t rows, size_t cols)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof(weight), "%s.weight", name);
    snprintf(bias, sizeof(bias), "%s.bias", name);
    float *w = need(load(o, weight, layer)), *b = load(o, bias, layer);
    double *y = need(malloc(o->n * rows * sizeof(*y)));

    for (size_t t = 0; t < o->n; t++)
        for (size_t r = 0; r < rows; r++) {
            double sum = b == NULL ? 0 : (double)b[r];
            for (size_t c = 0; c < cols; c++)
                sum += (double)w[r * cols + c] * x[t * cols + c];
            y[t * rows + r] = sum;
        }
    free(w);
    free(b);
    return y;
}

static double *
rms_norm(const struct oracle *o, const double *x, const char *name, int layer)
{
    size_t dim = o->h->dim;
    float *w = need(load(o, name, layer));
    double *y = need(malloc(o->n * dim * sizeof(*y)));

    for (size_t t = 0; t < o->n; t++) {
        double sum = 0;
        for (size_t i = 0; i < dim; i++)
            sum += x[t * dim + i] * x[t * dim + i];
        double rms = sqrt(sum / (double)dim + o->h->norm_eps);
        for (size_t i = 0; i < dim; i++)
            y[t * dim + i] = x[t * dim + i] / rms * (double)w[i];
    }
    free(w);
    return y;
}

/* ---- Positions ---- */

static double
frequency(const struct lmq_hparams *h, size_t pair)
{
    double f =
        pow(h->rope_theta, -2.0 * (double)pair / (double)h->head_dim);
    double wave = 2 * acos(-1) / f;

    if (h->rope_scaling == LMQ_ROPE_LINEAR)
        return f / h->rope_factor;
    if (h->rope_scaling != LMQ_ROPE_LLAMA3)
        return f;
    double longest = h->rope_context / h->rope_low_factor;
    double shortest = h->rope_context / h->rope_high_factor;
    if (wave < shortest)
        return f;
    if (wave > longest)
        return f / h->rope_factor;
    double smooth = (h->rope_context / wave - h->rope_low_factor) /
                    (h->rope_high_factor - h->rope_low_factor);
    return (1 - smooth) * (f / h->rope_factor) + smooth * f;
}

/* Pairs are (i, i + half) within each head. */
static void
rotate(const struct oracle *o, double *x, size_t n_heads)
{
    size_t dim = o->h->head_dim, half = dim / 2;

    for (size_t t = 0; t < o->n; t++)
        for (size_t head = 0; head < n_heads; head++)
            for (size_t i = 0; i < half; i++) {
                double *p = x + (t * n_heads + head) * dim + i;
                double angle = (double)t * frequency(o->h, i);
                double a = p[0], b = p[half];
                p[0] = a * cos(angle) - b * sin(angle);
                p[half] = a * sin(angle) + b * cos(angle);
            }
}

/* ---- Attention ---- */

static void
attend(const struct oracle *o, const double *q, const double *k,
       const double *v, size_t t, size_t head, double *out)
{
    const struct lmq_hparams *h = o->h;
    size_t dim = h->head_dim, kv = head / (h->n_heads / h->n_kv_heads);
    size_t first = h->sliding_window > 0 && t >= h->sliding_window
                       ? t - h->sliding_window + 1
                       : 0;
    double *p = need(calloc(t + 1, sizeof(*p)));
    double top = -(double)INFINITY, sum = 0;

    for (size_t s = first; s <= t; s++) {
        for (size_t i = 0; i < dim; i++)
            p[s] += q[(t * h->n_heads + head) * dim + i] *
                    k[(s * h->n_kv_heads + kv) * dim + i];
        p[s] /= sqrt((double)dim);
        top = fmax(top, p[s]);
    }
    for (size_t s = first; s <= t; s++)
        sum += p[s] = exp(p[s] - top);
    for (size_t i = 0; i < dim; i++) {
        out[i] = 0;
        for (size_t s = first; s <= t; s++)
            out[i] += p[s] / sum * v[(s * h->n_kv_heads + kv) * dim + i];
    }
    free(p);
}

static void
attention(struct oracle *o, int layer)
{
    const struct lmq_hparams *h = o->h;
    size_t width = (size_t)h->n_heads * h->head_dim;
    size_t kv = (size_t)h->n_kv_heads * h->head_dim;
    double *norm = rms_norm(o, o->x, "blk.%d.attn_norm.weight", layer);
    double *q = linear(o, norm, "blk.%d.attn_q", layer, width, h->dim);
    double *k = linear(o, norm, "blk.%d.attn_k", layer, kv, h->dim);
    double *v = linear(o, norm, "blk.%d.attn_v", layer, kv, h->dim);
    double *mixed = need(malloc(o->n * width * sizeof(*mixed)));

    rotate(o, q, h->n_heads);
    rotate(o, k, h->n_kv_heads);
    for (size_t t = 0; t < o->n; t++)
        for (size_t head = 0; head < h->n_heads; head++)
            attend(o, q, k, v, t, head,
                   mixed + t * width + head * h->head_dim);
    double *out = linear(o, mixed, "blk.%d.attn_output", layer, h->dim, width);
    for (size_t i = 0; i < o->n * h->dim; i++)
        o->x[i] += out[i];
    free(norm);
    free(q);
    free(k);
    free(v);
    free(mixed);
    free(out);
}

static void
feed_forward(struct oracle *o, int layer)
{
    const struct lmq_hparams *h = o->h;
    double *norm = rms_norm(o, o->x, "blk.%d.ffn_norm.weight", layer);
    double *gate =
        linear(o, norm, "blk.%d.ffn_gate", layer, h->hidden_dim, h->dim);
    double *up =
        linear(o, norm, "blk.%d.ffn_up", layer, h->hidden_dim, h->dim);

    for (size_t i = 0; i < o->n * h->hidden_dim; i++)
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    double *out =
        linear(o, gate, "blk.%d.ffn_down", layer, h->dim, h->hidden_dim);
    for (size_t i = 0; i < o->n * h->dim; i++)
        o->x[i] += out[i];
    free(norm);
    free(gate);
    free(up);
    free(out);
}

/* ---- All of it ---- */

double *
oracle_logits(struct lmq_checkpoint *checkpoint, const int32_t *tokens,
              size_t n)
{
    struct oracle o = {checkpoint, &checkpoint->hparams, n, NULL};
    size_t dim = o.h->dim;
    float *embedding = need(load(&o, "token_embd.weight", 0));
    float *head = load(&o, "output.weight", 0);

    o.x = need(malloc(n * dim * sizeof(*o.x)));
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < dim; i++)
            o.x[t * dim + i] =
                (double)embedding[(size_t)tokens[t] * dim + i];
    for (uint32_t layer = 0; layer < o.h->n_layers; layer++) {
        attention(&o, (int)layer);
        feed_forward(&o, (int)layer);
    }
    double *norm = rms_norm(&o, o.x, "output_norm.weight", 0);
    double *logits = linear(&o, norm,
                            head == NULL ? "token_embd" : "output", 0,
                            o.h->vocab_size, dim);
    free(norm);
    free(o.x);
    free(embedding);
    free(head);
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
