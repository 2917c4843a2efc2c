/*
 * family.c - makes the weights of a family's model.
 *
 * Every part gets enough weight that an error in it shows: what attention and
 * feed-forward add to the stream is larger than the embedding.
 */
#include "config.h"

#include "tests/families/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/families/more/family_streams.h"

#define LOGITS_DEVIATION 2.5
#define EMBEDDING_SIZE 0.5 /* of its elements, scaled */
#define SUBLAYER_GAIN 2.0
#define EXPERT_GAIN 0.5 /* a router's other choice is no other model */
#define BIAS_SIZE 0.2

/* ---- The table ---- */

static const struct family *const tables[] = {
    llama_families, other_families, expert_families, older_families,
    recurrent_families, mamba_families, later_families, plain_families,
    latest_families, further_families, uneven_families, linear_families,
    pools_families, lately_families, gated_families,
};

const struct family *
family_at(size_t i)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct family *f = tables[t]; f->name != NULL; f++)
            if (i-- == 0)
                return f;
    return NULL;
}

void
family_range(int argc, char *const *argv, size_t *first, size_t *end)
{
    *first = *end = 0;
    while (family_at(*end) != NULL)
        (*end)++;
    for (size_t i = 0; i < *end && argc > 1; i++)
        if (strcmp(family_at(i)->name, argv[1]) == 0) {
            *first = i;
            *end = i + 1;
        }
}

const struct family *
family_find(const char *name)
{
    const struct family *family = NULL;

    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        if (strcmp(family->name, name) == 0)
            break;
    return family;
}

/* ---- Random numbers ---- */

float *
family_normals(struct family_model *m, size_t n, double mean, double deviation)
{
    float *x = malloc(n * sizeof(*x));
    float **owned =
        realloc(m->owned, (m->n_owned + 1) * sizeof(*m->owned));

    if (x == NULL || owned == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(mean + deviation * build_normal(&m->random));
    m->owned = owned;
    m->owned[m->n_owned++] = x;
    return x;
}

/* ---- Parts ---- */

static double
or_one(double factor)
{
    return factor > 0 ? factor : 1;
}

/* Outputs are `gain` times as large as inputs. */
struct oracle_linear
family_linear(struct family_model *m, size_t rows, size_t cols, double gain,
            unsigned bias)
{
    struct oracle_linear linear = {.rows = rows, .cols = cols};

    linear.w = family_normals(m, rows * cols, 0, gain / sqrt((double)cols));
    if ((m->family->bits & bias) != 0)
        linear.b = family_normals(m, rows, 0, BIAS_SIZE);
    return linear;
}

struct oracle_norm
family_norm(struct family_model *m, size_t span, size_t n, double mean)
{
    struct oracle_norm norm = {.span = span, .n = n};

    if ((m->family->bits & HAS_PLAIN_NORMS) == 0)
        norm.w = family_normals(m, n, mean, 0.1 * mean);
    if ((m->family->bits & HAS_NORM_BIAS) != 0)
        norm.b = family_normals(m, n, 0, BIAS_SIZE * mean);
    return norm;
}

static struct oracle_norm
norm_if(struct family_model *m, unsigned bit)
{
    size_t dim = m->oracle.shape.dim;

    if ((m->family->bits & bit) == 0)
        return (struct oracle_norm){0};
    /* Of streams with gates each has a part of it. */
    return family_norm(
        m, dim, m->oracle.shape.gate_streams > 0
                    ? m->oracle.shape.streams * dim
                    : dim, 1);
}

static struct oracle_mlp
make_mlp(struct family_model *m, size_t hidden, double gain)
{
    const struct oracle_shape *s = &m->oracle.shape;
    struct oracle_mlp mlp = {0};

    if ((m->family->bits & HAS_GATE) != 0)
        mlp.gate = family_linear(m, hidden, s->dim, 1, HAS_MLP_BIAS);
    mlp.up = family_linear(m, hidden, s->dim, 1, HAS_MLP_BIAS);
    mlp.down = family_linear(m, s->dim, hidden,
                             gain / or_one(s->residual_scale), HAS_MLP_BIAS);
    if ((m->family->bits & HAS_XIELU) != 0) {
        mlp.xielu = family_normals(m, 4, 0.5, 0.3);
        mlp.xielu[3] = -0.01f; /* so large that it counts */
    }
    return mlp;
}

/* Scores have a deviation of about 1.3, whatever their scale. */
static double
query_gain(const struct oracle_shape *s)
{
    double usual = 1 / sqrt((double)s->head_dim);

    return 1.3 * usual / (s->score_scale > 0 ? s->score_scale : usual) /
           or_one(s->score_factor);
}

static size_t
number_of(const struct family_model *m, const struct oracle_layer *w)
{
    return (size_t)(w - m->oracle.layers);
}

static void
make_qk_norms(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    unsigned bits = m->family->bits;
    size_t q = w->q.rows, k = w->k.rows;
    size_t head = oracle_head_dim(s, number_of(m, w));
    double gain = query_gain(s);

    if ((bits & HAS_QK_NORM) != 0) {
        w->q_norm = family_norm(m, head, head, gain);
        if (w->k.w != NULL)
            w->k_norm = family_norm(m, head, head, 1);
    } else if ((bits & HAS_QK_NORM_HEADS) != 0) {
        w->q_norm = family_norm(m, head, q, gain);
        w->k_norm = family_norm(m, head, k, 1);
    } else if ((bits & HAS_QK_NORM_WHOLE) != 0) {
        w->q_norm = family_norm(m, q, q, gain);
        w->k_norm = family_norm(m, k, k, 1);
    }
    /* Families whose layer norms have biases have some here only where all
     * heads have one norm. */
    if ((bits & HAS_QK_NORM) == 0)
        w->q_norm.b = w->k_norm.b = NULL;
}

/* What chooses positions. */
static void
make_index(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;

    w->index_q = family_linear(m, s->index_heads * s->index_dim,
                               s->q_rank, 1, 0);
    w->index_weights = family_linear(m, s->index_heads, s->dim, 1, 0);
    w->index_k = family_linear(m, s->index_dim, s->dim, 1, 0);
    w->index_norm = family_norm(m, s->index_dim, s->index_dim, 1);
    w->index_norm.b = family_normals(m, s->index_dim, 0, BIAS_SIZE);
}

static void
make_latent(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t layer = number_of(m, w), heads = oracle_heads(s, layer);
    size_t turning = oracle_latent_turning(s, layer);
    size_t head = oracle_head_dim(s, layer), width = heads * head;
    size_t rank = oracle_kv_rank(s, layer);
    size_t both = head - turning + oracle_value_dim(s, layer);

    if (s->q_rank > 0) {
        w->q_a = family_linear(m, s->q_rank, s->dim, 1, 0);
        w->q_a_norm = family_norm(m, s->q_rank, s->q_rank, 1);
        w->q_b = family_linear(m, width,
                             s->keeps_latents ? 2 * s->q_rank : s->q_rank,
                             query_gain(s), 0);
    } else {
        w->q = family_linear(m, width, s->dim, query_gain(s), 0);
    }
    w->kv_a = family_linear(m, rank + turning, s->dim, 1, 0);
    w->kv_a_norm = family_norm(m, rank, rank, 1);
    if (s->norms_turning)
        w->k_norm = family_norm(m, turning, turning, 1);
    w->kv_b = family_linear(m, heads * both, rank, 1, 0);
    if (s->choosers != NULL && oracle_pattern(s->choosers, number_of(m, w)))
        make_index(m, w);
}

/* Where pools overlap a position gives to two of them. */
static struct oracle_pool
make_pool(struct family_model *m, size_t size, size_t dim, bool overlaps)
{
    size_t width = overlaps ? 2 * dim : dim, seen = m->oracle.shape.dim;

    return (struct oracle_pool){
        .kv = family_linear(m, width, seen, 1, 0),
        .gate = family_linear(m, width, seen, 1, 0),
        .bias = family_linear(m, size, width, sqrt((double)width), 0),
        .norm = family_norm(m, dim, dim, 1)};
}

/* Keys that are values. */
static void
make_shared(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t head = s->head_dim, width = s->heads * head;
    size_t size = oracle_pool_size(s, number_of(m, w));
    size_t parts = s->out_groups * s->out_rank;
    bool overlaps = size > 0 && size == s->overlap_size;

    w->q_a = family_linear(m, s->q_rank, s->dim, 1, 0);
    w->q_a_norm = family_norm(m, s->q_rank, s->q_rank, 1);
    w->q_b = family_linear(m, width, s->q_rank, 1, 0);
    w->k = family_linear(m, head, s->dim, 1, 0);
    w->k_norm = family_norm(m, head, head, 1.3);
    w->out_a = family_linear(m, parts, width / s->out_groups, 1, 0);
    w->o = family_linear(m, s->dim, parts, SUBLAYER_GAIN, 0);
    w->sinks = family_normals(m, s->heads, 0, 1);
    if (size > 0)
        w->pool = make_pool(m, size, head, overlaps);
    if (!overlaps)
        return;
    w->index_pool = make_pool(m, size, s->index_dim, true);
    w->index_q = family_linear(m, s->index_heads * s->index_dim, s->q_rank, 1,
                             0);
    w->index_weights = family_linear(m, s->index_heads, s->dim, 1, 0);
}

static void
make_attention(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t layer = number_of(m, w), head = oracle_head_dim(s, layer);
    size_t heads = oracle_heads(s, layer);
    size_t kv_heads = oracle_kv_heads(s, layer);
    size_t value = oracle_value_dim(s, layer);
    bool has_keys = !oracle_borrows(s, layer);
    bool has_values = has_keys && !(s->full_keys_are_values &&
                                    oracle_is_full(s, layer));
    double gain = SUBLAYER_GAIN / or_one(s->residual_scale);

    if (s->shares_keys) {
        make_shared(m, w);
        return;
    }
    if (s->kv_rank > 0) {
        make_latent(m, w);
    } else {
        /* Where a norm says how large they are, scales that half precision
         * has are better. */
        w->q = family_linear(m, heads * head, s->dim,
                           s->norms_values ? 1 : query_gain(s), HAS_QKV_BIAS);
        if (has_keys)
            w->k = family_linear(m, kv_heads * head, s->dim, 1, HAS_QKV_BIAS);
        if (has_values)
            w->v = family_linear(m, kv_heads * value, s->dim, 1, HAS_QKV_BIAS);
        make_qk_norms(m, w);
    }
    w->o = family_linear(m, s->dim, heads * value, gain, HAS_OUT_BIAS);
    if ((m->family->bits & HAS_OUTPUT_GATE) != 0)
        w->gate = family_linear(m, heads * (s->gates_heads ? 1 : value),
                              s->keeps_latents ? 2 * s->q_rank : s->dim, 1,
                              HAS_QKV_BIAS);
    if (s->norms_inside)
        w->sub_norm = family_norm(m, heads * value, heads * value, 1);
    if ((m->family->bits & HAS_SINKS) != 0 &&
        (s->sunk == NULL || oracle_pattern(s->sunk, layer)))
        w->sinks = family_normals(m, heads, 0, 1);
    if (s->heads_grow) {
        w->growth = family_norm(m, heads, heads, 0.3);
        w->growth_base = family_norm(m, heads, heads, 0.7);
    }
}

/* Of what a selective state space makes of its values. */
static struct oracle_norm
make_step_norm(struct family_model *m, size_t n)
{
    const struct oracle_shape *s = &m->oracle.shape;

    return s->step_weights   ? family_norm(m, n, n, 1)
           : s->step_eps > 0 ? (struct oracle_norm){.span = n, .n = n}
                             : (struct oracle_norm){0};
}

/* Some values stay for long, some do not. */
static void
make_without_keys(struct family_model *m, struct oracle_delta *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    size_t values = s->delta_values * s->delta_value_dim;

    w->v = family_linear(m, values, s->dim, 1, 0);
    w->v.b = family_normals(m, values, 0, BIAS_SIZE);
    w->gate = family_linear(m, values, s->dim, 1, 0);
    w->gate.b = family_normals(m, values, 0, BIAS_SIZE);
    w->alpha = family_linear(m, values, s->delta_value_dim, 1, 0);
    w->alpha.b = family_normals(m, values, -1, 0.7);
    w->beta = family_linear(m, values, s->delta_value_dim, 1, 0);
    w->beta.b = family_normals(m, values, 0, BIAS_SIZE);
    w->decay = family_normals(m, values, -2, 1.5);
    w->conv = family_normals(m, values * s->conv_width, 0.4, 0.3);
    if (s->has_conv_bias)
        w->conv_bias = family_normals(m, values, 0, BIAS_SIZE);
    w->out = family_linear(m, s->dim, values, SUBLAYER_GAIN, HAS_OUT_BIAS);
}

/* Time steps such that some heads forget at once and others hardly. Queries
 * and keys are large, so that behind their silu hardly a number is below 0, as
 * in real models: were a query and a key at right angles, the norm behind them
 * would make much of what they differ in. */
static void
make_recurrence(struct family_model *m, struct oracle_delta *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    if (s->recurrence == ORACLE_LRU) {
        make_without_keys(m, w);
        return;
    }
    size_t values = s->delta_values * s->delta_value_dim;
    size_t keys = s->recurrence == ORACLE_CONVOLUTION
                      ? values
                      : s->delta_keys * s->delta_key_dim;
    bool has_lengths = s->recurrence == ORACLE_DELTA_RULE;
    bool has_steps = s->recurrence != ORACLE_CONVOLUTION &&
                     s->recurrence != ORACLE_LIGHTNING;
    bool is_selective = s->recurrence == ORACLE_SELECTIVE;
    bool is_space = is_selective || s->recurrence == ORACLE_STATE_SPACE;
    size_t seen = is_selective ? values : s->dim;
    size_t steps = s->delta_values * (s->key_decays ? s->delta_key_dim : 1);
    double gain = SUBLAYER_GAIN / or_one(s->residual_scale);

    w->q = family_linear(m, keys, seen, has_lengths ? 4 : 1, 0);
    w->k = family_linear(m, keys, seen, has_lengths ? 4 : 1, 0);
    w->v = family_linear(m, values, s->dim, 1, 0);
    if (s->recurrence != ORACLE_CONVOLUTION) {
        if (s->gate_rank > 0)
            w->gate_a = family_linear(m, s->gate_rank, s->dim, 1, 0);
        w->gate = family_linear(m, values,
                              s->gate_rank > 0 ? s->gate_rank : s->dim, 1, 0);
    }
    if (has_steps) {
        if (s->step_rank > 0)
            w->alpha_a = family_linear(m, s->step_rank, seen, 1, 0);
        w->alpha = family_linear(m, steps,
                               s->step_rank > 0 ? s->step_rank : s->dim, 1, 0);
        w->alpha.b = family_normals(m, steps, -1, 0.7);
    }
    if (s->recurrence == ORACLE_DELTA_RULE)
        w->beta = family_linear(m, s->delta_values, s->dim, 1, 0);
    if (has_steps)
        w->decay = family_normals(
            m, s->delta_values * (is_selective ? s->delta_key_dim : 1), -1,
            0.7);
    if (s->recurrence == ORACLE_LIGHTNING)
        w->norm = family_norm(m, values, values, 1);
    else
        w->conv =
            family_normals(m, oracle_channels(s) * s->conv_width, 0.4, 0.3);
    if (s->has_conv_bias)
        w->conv_bias = family_normals(m, oracle_channels(s), 0, BIAS_SIZE);
    if (s->recurrence == ORACLE_DELTA_RULE)
        w->norm = family_norm(m, s->delta_value_dim, s->delta_value_dim, 1);
    if (is_space && !s->bare_states)
        w->norm = family_norm(m, values / s->delta_keys, values, 1);
    if (is_space)
        w->skip = family_normals(m, s->delta_values, 0.7, 0.3);
    if (is_selective) {
        w->alpha_norm = make_step_norm(m, s->step_rank);
        w->k_norm = make_step_norm(m, s->delta_key_dim);
        w->q_norm = make_step_norm(m, s->delta_key_dim);
    }
    w->out = family_linear(m, s->dim, values, gain, 0);
}

static void
make_experts(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;
    unsigned bits = m->family->bits;

    w->router = family_linear(m, s->n_experts, s->dim, 1.5, HAS_ROUTER_BIAS);
    if (oracle_pattern(s->tables, number_of(m, w))) {
        w->table = family_linear(m, s->vocab, s->n_used, 1, 0);
        for (size_t i = 0; i < s->vocab * s->n_used; i++)
            w->table.w[i] = (float)((i / s->n_used * 5 + i % s->n_used) %
                                    s->n_experts);
    } else if ((bits & HAS_CORRECTION) != 0) {
        w->correction = family_normals(m, s->n_experts, 0.3, 0.1);
    }
    w->experts = calloc(s->n_experts, sizeof(*w->experts));
    if (w->experts == NULL)
        abort();
    for (size_t e = 0; e < s->n_experts; e++)
        w->experts[e] = make_mlp(m, s->expert_dim,
                                 EXPERT_GAIN / or_one(s->router_scale));
    if (s->shared_dim > 0)
        w->shared = make_mlp(m, s->shared_dim, SUBLAYER_GAIN);
    if ((bits & HAS_SWITCH) != 0)
        w->shared_switch = family_linear(m, 1, s->dim, 1, 0);
}

/* ---- Gemma 4 ---- */

static void
make_apart(struct family_model *m, struct oracle_layer *w)
{
    size_t dim = m->oracle.shape.dim;

    w->router_norm = family_norm(m, dim, dim, sqrt((double)dim));
    w->experts_norm = family_norm(m, dim, dim, 1);
    w->experts_post_norm = family_norm(m, dim, dim, EXPERT_GAIN / 2);
    w->mlp_post_norm = family_norm(m, dim, dim, 1);
    w->experts_scale = family_normals(m, m->oracle.shape.n_experts, 1, 0.3);
}

static void
make_input(struct family_model *m, struct oracle_layer *w)
{
    const struct oracle_shape *s = &m->oracle.shape;

    w->input_gate = family_linear(m, s->input_dim, s->dim, 1, 0);
    w->input_out = family_linear(m, s->dim, s->input_dim, 1, 0);
    w->input_norm = family_norm(m, s->dim, s->dim, 1);
}

static void
make_inputs(struct family_model *m)
{
    struct oracle_shape *s = &m->oracle.shape;
    size_t width = s->layers * s->input_dim;

    if (s->input_vocab == 0)
        s->input_vocab = s->vocab;
    m->oracle.inputs =
        family_normals(m, s->input_vocab * width, 0,
                       1 / sqrt((double)s->input_dim));
    m->oracle.inputs_proj =
        family_linear(m, width, s->dim, sqrt((double)s->dim), 0);
    m->oracle.inputs_norm = family_norm(m, s->input_dim, s->input_dim, 1);
}

/* ---- All of it ---- */

/* Of the final norm, if the head is the embedding; else of the head. */
static void
make_ends(struct family_model *m)
{
    const struct oracle_shape *s = &m->oracle.shape;
    bool has_head = (m->family->bits & HAS_HEAD) != 0;
    double size = EMBEDDING_SIZE / or_one(s->embedding_scale);
    double spread = LOGITS_DEVIATION / or_one(s->logit_scale);

    m->oracle.embedding =
        family_normals(m, (s->vocab + s->other_vocab) * s->dim, 0, size);
    m->oracle.head = (struct oracle_linear){
        .w = m->oracle.embedding, .rows = s->vocab, .cols = s->dim};
    if (has_head)
        m->oracle.head =
            family_linear(m, s->vocab, s->dim, spread, HAS_HEAD_BIAS);
    if ((m->family->bits & HAS_UNIT_HEAD) != 0)
        family_make_unit(&m->oracle.head);
    m->oracle.norm =
        family_norm(m, s->dim,
                    s->gate_streams > 0 ? s->streams * s->dim : s->dim,
                  has_head ? 1 : spread / size / sqrt((double)s->dim));
    if (s->learns_turning)
        m->oracle.turning =
            family_norm(m, s->rotary_dim / 2, s->rotary_dim / 2, 0.5);
    if (s->positions == ORACLE_LEARNED)
        m->oracle.table =
            family_normals(m, s->max_positions * s->dim, 0, EMBEDDING_SIZE);
}

/* Which of the family's norms the layer may have. */
static unsigned
norms_of(const struct oracle_shape *s, size_t layer)
{
    const unsigned before = HAS_ATTN_NORM | HAS_FFN_NORM;
    const unsigned after = HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM;

    if (s->after == NULL)
        return before | after;
    return oracle_pattern(s->after, layer) ? after : before;
}

struct family_model *
family_make(const struct family *family, size_t grow, size_t vocab,
            uint64_t seed)
{
    struct family_model *m = calloc(1, sizeof(*m));

    if (m == NULL)
        abort();
    m->family = family;
    m->random = seed;
    struct oracle_shape *s = &m->oracle.shape;
    *s = family->shape;
    family_grow(s, grow, family->bits);
    if (vocab > 0)
        s->vocab = vocab;
    make_ends(m);
    m->oracle.embedding_norm = norm_if(m, HAS_EMBEDDING_NORM);
    if (s->input_dim > 0)
        make_inputs(m);
    family_streams(m);
    m->oracle.layers = calloc(s->layers, sizeof(*m->oracle.layers));
    if (m->oracle.layers == NULL)
        abort();
    for (size_t layer = 0; layer < s->layers; layer++) {
        struct oracle_layer *w = &m->oracle.layers[layer];
        bool mixes = oracle_mixes(s, layer), feeds = oracle_feeds(s, layer);
        unsigned norms = norms_of(s, layer);
        if (mixes)
            w->attn_norm = norm_if(m, HAS_ATTN_NORM & norms);
        if (mixes)
            w->attn_post_norm = norm_if(m, HAS_ATTN_POST_NORM & norms);
        if (feeds)
            w->ffn_norm = norm_if(m, HAS_FFN_NORM & norms);
        if (feeds)
            w->ffn_post_norm = norm_if(m, HAS_FFN_POST_NORM & norms);
        bool recurs = mixes && oracle_pattern(s->delta, layer);
        if (recurs)
            make_recurrence(m, &w->delta);
        if (mixes && (!recurs || s->is_beside))
            make_attention(m, w);
        bool is_sparse = feeds && oracle_pattern(s->sparse, layer);
        bool has_both = (family->bits & HAS_MLP_AND_EXPERTS) != 0;
        if (is_sparse)
            make_experts(m, w);
        if (is_sparse && has_both)
            make_apart(m, w);
        if (feeds && (!is_sparse || has_both))
            w->mlp = make_mlp(m, oracle_hidden(s, layer), SUBLAYER_GAIN);
        if (w->mlp.up.w != NULL && s->norms_inside)
            w->mlp.sub_norm = family_norm(m, w->mlp.up.rows, w->mlp.up.rows, 1);
        if (is_sparse && s->norms_mixtures)
            w->ffn_post_norm = family_norm(m, s->dim, s->dim, 1);
        if (s->input_dim > 0)
            make_input(m, w);
        family_layer_streams(m, layer, is_sparse);
        if ((family->bits & HAS_LAYER_SCALE) != 0)
            w->scale = family_normals(m, 1, 0.9, 0.1);
    }
    return m;
}

void
family_free(struct family_model *m)
{
    for (size_t i = 0; i < m->n_owned; i++)
        free(m->owned[i]);
    for (size_t layer = 0; layer < m->oracle.shape.layers; layer++)
        free(m->oracle.layers[layer].experts);
    free(m->oracle.layers);
    free(m->owned);
    free(m);
}
