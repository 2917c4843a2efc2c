/*
 * family_streams.c - makes weights of what stands beside the residual stream:
 * of several streams, of what goes past attention, of gates of norms.
 */
#include "config.h"

#include "tests/families/more/family_streams.h"

#include <stdlib.h>

/* ---- Several streams ---- */

/* Streams say something by numbers of about 1, and change each other less. */
static void
make_stream_layer(struct family_model *m, struct oracle_layer *w)
{
    size_t dim = m->oracle.shape.dim, n = m->oracle.shape.streams;

    w->stream_norm = family_norm(m, dim, dim, 1);
    w->stream_router = family_linear(m, n, dim, (double)dim, 0);
    w->stream_predict = family_linear(m, n * n, n, 0.3, 0);
    w->stream_correct = family_linear(m, n, n, 0.5, 0);
    w->stream_scale = family_norm(m, dim, dim, 0.7);
}

/* What asks streams says something by numbers of about 1. */
static struct oracle_hyper
make_hyper(struct family_model *m, size_t rows, size_t kinds)
{
    const struct oracle_shape *s = &m->oracle.shape;

    return (struct oracle_hyper){
        .fn = family_linear(m, rows, s->streams * s->dim, 1, 0),
        .base = {.w = family_normals(m, rows, 0, 0.7), .span = rows, .n = rows},
        .scale = {.w = family_normals(m, kinds, 0.8, 0.2), .span = kinds,
                  .n = kinds}};
}

static void
make_hypers(struct family_model *m, struct oracle_layer *w, bool mixes,
            bool feeds)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t n = s->streams, kinds = s->hyper_rounds > 0 ? 3 : 2;
    size_t rows = kinds == 3 ? n * (n + 2) : 2 * n;

    if (mixes)
        w->attn_hyper = make_hyper(m, rows, kinds);
    if (feeds)
        w->ffn_hyper = make_hyper(m, rows, kinds);
}

static void
make_bypass(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;

    w->bypass_a = family_linear(m, s->bypass_rank, s->dim, 1, 0);
    w->bypass_b = family_linear(m, s->dim, s->bypass_rank, 1, 0);
    w->bypass_norm = family_norm(m, s->dim, s->dim, 1);
}

static void
make_norm_gate(struct family_model *m, struct oracle_linear *a,
               struct oracle_linear *b)
{
    const struct oracle_shape *s = &m->oracle.shape;

    *a = family_linear(m, s->norm_rank, s->dim, 1, 0);
    *b = family_linear(m, s->dim, s->norm_rank, 1, 0);
}

static void
make_streams(struct family_model *m)
{
    size_t dim = m->oracle.shape.dim;

    for (size_t j = 0; j + 1 < m->oracle.shape.streams; j++) {
        m->oracle.streams_in[j] = family_linear(m, dim, dim, 1, 0);
        m->oracle.streams_out[j] = family_linear(m, dim, dim, 1, 0);
    }
}

/* ---- Streams with gates ---- */

static struct oracle_gated
make_gated(struct family_model *m, bool writes)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t all = s->streams * s->dim, rank = s->gate_streams;
    double n = (double)s->streams;

    return (struct oracle_gated){
        .down = family_linear(m, rank, all, 2 * n, 0),
        .up = family_linear(m, all, rank, 2, 0),
        .write = writes ? family_linear(m, s->streams, all, n, 0)
                        : (struct oracle_linear){0}};
}

static void
make_grams(struct family_model *m, struct oracle_layer *w, size_t which)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t heads = (s->gram_size - 1) * s->gram_heads, rows = 0;
    size_t all = s->streams * s->dim, dim = s->dim;

    for (size_t head = 0; head < heads; head++)
        rows += oracle_gram_rows(s, which, head);
    rows = (rows + 7) / 8 * 8; /* the last ones are of no sequence */
    w->grams.table = family_linear(m, rows, s->gram_dim, 2, 0);
    w->grams.key = family_linear(m, all, heads * s->gram_dim, 1, 0);
    w->grams.value = family_linear(m, dim, heads * s->gram_dim, 1, 0);
    w->grams.conv = family_linear(m, all, s->gram_conv, 1, 0);
    w->grams.key_norm = family_norm(m, dim, all, 1);
    w->grams.query_norm = family_norm(m, dim, all, 1);
    w->grams.conv_norm = family_norm(m, dim, all, 1);
}

/* ---- All of that ---- */

void
family_streams(struct family_model *m)
{
    const struct oracle_shape *s = &m->oracle.shape;

    if (s->gate_streams > 0)
        m->oracle.gated = make_gated(m, false);
    else if (s->hyper && !s->hyper_mean)
        m->oracle.hyper = make_hyper(m, s->streams, 1);
    else if (s->streams > 0 && !s->hyper)
        make_streams(m);
}

void
family_layer_streams(struct family_model *m, size_t layer, bool is_sparse)
{
    const struct oracle_shape *s = &m->oracle.shape;
    struct oracle_layer *w = &m->oracle.layers[layer];
    bool mixes = oracle_mixes(s, layer), feeds = oracle_feeds(s, layer);
    size_t which = 0;

    for (size_t i = 0; i < layer; i++)
        which += oracle_pattern(s->grams, i);
    if (oracle_pattern(s->grams, layer))
        make_grams(m, w, which);
    if (s->gate_streams > 0 && mixes)
        w->attn_gated = make_gated(m, true);
    if (s->gate_streams > 0 && feeds)
        w->ffn_gated = make_gated(m, true);
    if (s->gate_streams == 0 && s->hyper)
        make_hypers(m, w, mixes, feeds);
    else if (s->streams > 0 && !s->hyper)
        make_stream_layer(m, w);
    if (s->bypass_rank > 0)
        make_bypass(m, w);
    if (s->norm_rank > 0 && mixes)
        make_norm_gate(m, &w->attn_norm_a, &w->attn_norm_b);
    if (s->norm_rank > 0 && is_sparse)
        make_norm_gate(m, &w->ffn_norm_a, &w->ffn_norm_b);
}
