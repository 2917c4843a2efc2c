/*
 * variants.c - descriptions, and random weights under canonical names.
 */
#include "config.h"

#include "tests/families/variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/model/hparams_json.h"
#include "formats/model/model_tensors.h"
#include "formats/model/names.h"
#include "formats/model/pools.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h" /* random numbers; nothing of Check */
#include "tests/families/more/variants_norms.h"
#include "tests/families/more/variants_pools.h"
#include "tests/families/more/variants_recurrent.h"
#include "tests/families/more/variants_uneven.h"

/* ---- Descriptions ---- */

void
variant_base(struct lmq_hparams *h)
{
    lmq_hparams_init(h);
    h->n_layers = 3;
    h->dim = 52;
    h->hidden_dim = 84;
    h->n_heads = 6;
    h->n_kv_heads = 2;
    h->head_dim = 12;
    h->vocab_size = 61;
    h->context = VARIANT_CONTEXT;
    h->tie = LMQ_TIE_NO;
}

static void
describe_experts(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_DENSE;
    h->n_experts = 12;
    h->n_experts_used = 4;
    h->expert_dim = 36;
    h->shared_dim = 44;
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_renormalises = true;
    h->router_corrects = true;
    h->router_scale = 2.5;
    h->n_expert_groups = 4;
    h->n_expert_groups_used = 2;
    h->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
}

static void
describe_latents(struct lmq_hparams *h)
{
    h->n_kv_heads = h->n_heads;
    h->head_dim = 28;
    h->rotary_dim = 8;
    h->value_dim = 20;
    h->q_lora_rank = 36;
    h->kv_lora_rank = 44; /* ends within a block of the Q8 cache */
    h->rope_scaling = LMQ_ROPE_YARN;
    h->rope_factor = 4;
    h->rope_context = 32;
    h->rope_attention_factor = 1.1;
}

static void
describe_latent_experts(struct lmq_hparams *h)
{
    describe_latents(h);
    h->q_lora_rank = 0;
    h->n_experts = 5;
    h->n_experts_used = 2;
    h->expert_dim = 300; /* wider than the rest */
    h->router = LMQ_ROUTER_SOFTMAX_CHOSEN;
}

static void
describe_alibi(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->residual = LMQ_RESIDUAL_PARALLEL_ONE_NORM;
    h->positions = LMQ_POSITIONS_ALIBI;
    h->activation = LMQ_ACTIVATION_GELU;
    h->is_gated = false;
    h->n_kv_heads = 1;
    h->value_dim = 20;
}

static void
describe_sinks(struct lmq_hparams *h)
{
    h->layers[1] = LMQ_LAYER_FULL;
    h->layers[2] = LMQ_LAYER_NOPE;
    h->norm_place = LMQ_NORMS_AROUND;
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->has_sinks = true;
    h->sliding_window = 9;
    h->rope_local_theta = 500;
    h->rope_scaling = LMQ_ROPE_LINEAR;
    h->rope_factor = 8;
    h->attn_scale = 0.4;
    h->attn_softcap = 5;
    h->logit_softcap = 3;
    h->embedding_scale = 7.2;
    h->activation = LMQ_ACTIVATION_GELU_TANH;
}

static void
describe_clipped(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER_PLAIN;
    h->residual = LMQ_RESIDUAL_PARALLEL;
    h->qkv_clip = 0.7;
    h->rotary_dim = 8;
    h->logit_scale = 0.0625;
    h->rope_scaling = LMQ_ROPE_DYNAMIC;
    h->rope_factor = 3;
    h->rope_context = 50;
}

static void
describe_after(struct lmq_hparams *h)
{
    h->norm_place = LMQ_NORMS_AFTER;
    h->qk_norm = LMQ_QK_NORM_WHOLE;
    h->residual_scale = 0.22;
    h->activation = LMQ_ACTIVATION_RELU;
    h->rope_scaling = LMQ_ROPE_LONGROPE;
    h->rope_context = 100;
    h->n_rope_factors = h->head_dim / 2;
    for (uint32_t i = 0; i < h->n_rope_factors; i++) {
        h->rope_short[i] = 1 + 0.1 * i;
        h->rope_long[i] = 1 + 2.0 * i;
    }
}

static void
describe_chunks(struct lmq_hparams *h)
{
    describe_experts(h);
    h->layers[1] = LMQ_LAYER_NOPE | LMQ_LAYER_FULL;
    h->attention_chunk = 11;
    h->qk_norm = LMQ_QK_NORM_BARE;
    h->qk_norm_late = h->score_growth_still = true;
    h->score_growth = 0.5;
    h->score_growth_period = 6;
    h->score_growth_shift = 1;
    h->rope_scaling = LMQ_ROPE_YARN;
    h->rope_factor = 4;
    h->rope_context = 24;
    h->rope_ramp_exact = true;
    h->activation_slope = 1.702;
    h->glu_limit = 1.5;
    h->glu_offset = 1;
    h->router_corrects = false;
    h->router_scales_input = true;
}

/* Every kind of layer, with norms on both sides and experts. */
static void
describe_states(struct lmq_hparams *h)
{
    describe_experts(h);
    h->n_layers = 5;
    h->layers[0] = LMQ_LAYER_DELTA;
    h->layers[1] = LMQ_LAYER_FEED;
    h->layers[2] = LMQ_LAYER_DELTA | LMQ_LAYER_BARE;
    h->layers[3] = LMQ_LAYER_BARE;
    h->layers[4] = LMQ_LAYER_FEED | LMQ_LAYER_DENSE;
    h->norm_place = LMQ_NORMS_AROUND;
    h->recurrence = LMQ_RECURRENCE_STATE_SPACE;
    h->n_delta_key_heads = 3;
    h->n_delta_value_heads = 6;
    h->delta_key_dim = 11;
    h->delta_value_dim = 19;
    h->conv_width = 4;
}

/* Each key decays for itself, some heads share them. */
static void
describe_selective(struct lmq_hparams *h)
{
    describe_states(h);
    h->recurrence = LMQ_RECURRENCE_SELECTIVE;
    h->n_delta_value_heads = 210;
    h->delta_value_dim = 1;
    h->step_rank = 7;
    h->has_step_norms = true;
    h->latent_eps = 1e-3;
}

static const struct {
    const char *name;
    void (*describe)(struct lmq_hparams *h);
    bool has_biases;
} variants[] = {
    {"experts", describe_experts, false},
    {"latents", describe_latents, true},
    {"latent-experts", describe_latent_experts, true},
    {"alibi", describe_alibi, true},
    {"sinks", describe_sinks, false},
    {"clipped", describe_clipped, false},
    {"after", describe_after, true},
    {"learned", variant_learned, true},
    {"chunks", describe_chunks, true},
    {"squares", variant_squares, false},
    {"delta", variant_delta, true},
    {"states", describe_states, true},
    {"convolved", variant_convolved, false},
    {"bare", variant_bare, true},
    {"beside", variant_beside, true},
    {"selective", describe_selective, true},
    {"mixed", variant_mixed, true},
    {"key-decays", variant_key_decays, false},
    {"inside", variant_inside, true},
    {"uneven", variant_uneven, true},
    {"hyper", variant_hyper, true},
    {"kept", variant_kept, true},
    {"lru", variant_lru, true},
    {"pools", variant_pools, true},
    {"turned", variant_turned, false},
    {"wide-values", variant_wide_values, false},
    {"gated", variant_gated, false},
    {"index", variant_index, true},
};

size_t
variant_count(void)
{
    return sizeof(variants) / sizeof(variants[0]);
}

size_t
variant_find(const char *name)
{
    for (size_t i = 0; i < variant_count(); i++)
        if (strcmp(variants[i].name, name) == 0)
            return i;
    abort();
}

/* ---- Weights ---- */

struct builder {
    const struct lmq_hparams *h;
    struct build_model *model;
    struct random random;
    bool has_biases;
};

static void
add(struct builder *b, struct lmq_place place, uint64_t rows, uint64_t cols,
    double mean, double deviation)
{
    uint64_t dims[2] = {rows, cols};
    char name[64];

    lmq_name_canonical(&place, name, sizeof(name));
    struct build_tensor *tensor =
        build_add(b->model, name, rows == 0 ? dims + 1 : dims,
                  rows == 0 ? 1 : 2);
    for (size_t i = 0; i < tensor->n_elements; i++)
        tensor->x[i] =
            (float)(mean + deviation * random_normal(&b->random));
}

static void
add_bias(struct builder *b, struct lmq_place place, uint64_t n)
{
    place.part = LMQ_PART_BIAS;
    add(b, place, 0, n, 0, 0.1);
}

/* Of a layer, expert or head; -1: not of one. */
static void
add_matrix(struct builder *b, enum lmq_role role, int32_t layer, int32_t item,
           uint64_t rows, uint64_t cols)
{
    struct lmq_place place = {role, LMQ_PART_WEIGHT, layer, item};
    bool is_of_head =
        role == LMQ_ROLE_ATTN_K_B || role == LMQ_ROLE_ATTN_V_B;

    add(b, place, rows, cols, 0, 1 / sqrt((double)cols));
    if (b->has_biases && layer >= 0 && !is_of_head)
        add_bias(b, place, rows);
}

static void
add_norm(struct builder *b, enum lmq_role role, int32_t layer, int32_t item,
         uint64_t n)
{
    struct lmq_place place = {role, LMQ_PART_WEIGHT, layer, item};

    if (!lmq_norms_weigh(b->h))
        return;
    add(b, place, 0, n, 1, 0.1);
    if (b->h->norm == LMQ_NORM_LAYER && b->has_biases)
        add_bias(b, place, n);
}

/* Of what blocks and the head are given: of streams with gates each has a part
 * of it. */
static uint64_t
norm_width(const struct lmq_hparams *h)
{
    return lmq_has_gated_streams(h) ? (uint64_t)h->n_streams * h->dim
                                    : h->dim;
}

static void
add_latents(struct builder *b, int32_t l)
{
    const struct lmq_hparams *h = b->h;
    uint64_t turning = lmq_layer_rotary_dim(h, (size_t)l);
    uint64_t head = lmq_layer_head_dim(h, (size_t)l), still = head - turning;
    uint64_t rank = lmq_layer_latents(h, (size_t)l);
    uint64_t value = lmq_layer_value_dim(h, (size_t)l);
    uint32_t n_heads = lmq_layer_heads(h, (size_t)l);

    if (h->q_lora_rank > 0) {
        add_matrix(b, LMQ_ROLE_ATTN_Q_A, l, -1, h->q_lora_rank, h->dim);
        add_norm(b, LMQ_ROLE_ATTN_Q_A_NORM, l, -1, h->q_lora_rank);
    }
    add_matrix(b, h->q_lora_rank > 0 ? LMQ_ROLE_ATTN_Q_B : LMQ_ROLE_ATTN_Q, l,
               -1, n_heads * head,
               h->q_lora_rank > 0 ? lmq_query_latents(h) : h->dim);
    add_matrix(b, LMQ_ROLE_ATTN_KV_A, l, -1, rank + turning, h->dim);
    add_norm(b, LMQ_ROLE_ATTN_KV_A_NORM, l, -1, rank);
    if (h->qk_norm == LMQ_QK_NORM_TURNING && turning > 0)
        add_norm(b, LMQ_ROLE_ATTN_K_NORM, l, -1, turning);
    for (int32_t i = 0; i < (int32_t)n_heads; i++) {
        add_matrix(b, LMQ_ROLE_ATTN_K_B, l, i, rank, still);
        add_matrix(b, LMQ_ROLE_ATTN_V_B, l, i, value, rank);
    }
}

/* A matrix that has another role beside attention. */
static void
add_recurrent(struct builder *b, enum lmq_role role, int32_t l, uint64_t rows,
              uint64_t cols)
{
    bool is_alone = lmq_layer_only_recurs(b->h, (size_t)l);

    add_matrix(b, is_alone ? role : lmq_role_beside(role), l, -1, rows, cols);
}

/* Those that have weights whatever the other norms have. */
static void
add_step_norms(struct builder *b, int32_t l)
{
    const struct lmq_hparams *h = b->h;
    struct lmq_place alpha = {LMQ_ROLE_DELTA_ALPHA_NORM, LMQ_PART_WEIGHT, l,
                              -1};
    struct lmq_place k = {LMQ_ROLE_DELTA_K_NORM, LMQ_PART_WEIGHT, l, -1};
    struct lmq_place q = {LMQ_ROLE_DELTA_Q_NORM, LMQ_PART_WEIGHT, l, -1};

    add(b, alpha, 0, h->step_rank, 1, 0.1);
    add(b, k, 0, h->delta_key_dim, 1, 0.1);
    add(b, q, 0, h->delta_key_dim, 1, 0.1);
}

/* Of one without keys. */
static void
add_values_recurrence(struct builder *b, int32_t l)
{
    uint64_t values = lmq_delta_value_width(b->h);
    uint64_t width = b->h->delta_value_dim;
    struct lmq_place place = {LMQ_ROLE_DELTA_ALPHA, LMQ_PART_WEIGHT, l, -1};

    add_matrix(b, LMQ_ROLE_ATTN_V, l, -1, values, b->h->dim);
    add_matrix(b, LMQ_ROLE_ATTN_GATE, l, -1, values, b->h->dim);
    add(b, place, values, width, 0, 1 / sqrt((double)width));
    add_bias(b, place, values);
    add_matrix(b, LMQ_ROLE_DELTA_BETA, l, -1, values, width);
    place.role = LMQ_ROLE_DELTA_DECAY;
    add(b, place, 0, values, -1, 0.7);
    add_matrix(b, LMQ_ROLE_DELTA_CONV, l, -1, values, b->h->conv_width);
    add_matrix(b, LMQ_ROLE_ATTN_OUT, l, -1, b->h->dim, values);
}

/* What the description asks for, of the matrices and vectors of recurrences. */
static void
add_recurrence(struct builder *b, int32_t l)
{
    const struct lmq_hparams *h = b->h;
    struct lmq_place alpha = {LMQ_ROLE_DELTA_ALPHA, LMQ_PART_WEIGHT, l, -1};
    struct lmq_place place = {LMQ_ROLE_DELTA_DECAY, LMQ_PART_WEIGHT, l, -1};
    uint64_t keys = lmq_delta_key_width(h), values = lmq_delta_value_width(h);
    struct lmq_place conv = {LMQ_ROLE_DELTA_CONV, LMQ_PART_WEIGHT, l, -1};
    struct lmq_place skip = {LMQ_ROLE_STATE_SKIP, LMQ_PART_WEIGHT, l, -1};
    uint64_t n = h->n_delta_value_heads, channels = lmq_delta_channels(h);
    bool has_biases = b->has_biases, has_state = !lmq_is_convolution(h);
    bool is_selective = lmq_is_selective(h), is_space = lmq_is_state_space(h);
    bool has_steps = has_state && !lmq_is_lightning(h);
    uint64_t seen = is_selective ? values : h->dim;
    bool is_delta = h->recurrence == LMQ_RECURRENCE_DELTA;
    uint64_t steps = is_delta ? lmq_delta_steps(h) : n;
    uint64_t gates = is_delta ? h->gate_rank : 0;
    uint64_t latents = is_delta || is_selective ? h->step_rank : 0;

    if (lmq_is_lru(h)) {
        add_values_recurrence(b, l);
        return;
    }
    b->has_biases = false;
    add_recurrent(b, LMQ_ROLE_ATTN_Q, l, keys, seen);
    add_recurrent(b, LMQ_ROLE_ATTN_K, l, keys, seen);
    add_recurrent(b, LMQ_ROLE_ATTN_V, l, values, h->dim);
    if (has_state)
        add_recurrent(b, LMQ_ROLE_ATTN_GATE, l, values,
                      gates > 0 ? gates : h->dim);
    if (has_steps) {
        add_matrix(b, LMQ_ROLE_DELTA_ALPHA, l, -1, steps,
                   latents > 0 ? latents : h->dim);
        add_bias(b, alpha, steps);
    }
    if (gates > 0)
        add_matrix(b, LMQ_ROLE_ATTN_GATE_A, l, -1, gates, h->dim);
    if (latents > 0)
        add_matrix(b, LMQ_ROLE_DELTA_ALPHA_A, l, -1, latents, seen);
    if (is_selective && h->has_step_norms && h->has_step_norm_weights)
        add_step_norms(b, l);
    if (is_delta)
        add_matrix(b, LMQ_ROLE_DELTA_BETA, l, -1, n, h->dim);
    if (has_steps)
        add(b, place, 0, lmq_delta_decays(h), -1, 0.7);
    if (has_steps || !has_state)
        add_matrix(b, LMQ_ROLE_DELTA_CONV, l, -1, channels, h->conv_width);
    if (is_space && has_biases)
        add_bias(b, conv, channels);
    place.role = LMQ_ROLE_DELTA_NORM;
    if (has_state && !h->has_bare_states)
        add(b, place, 0, is_delta ? h->delta_value_dim : values, 1, 0.1);
    if (is_space)
        add(b, skip, 0, n, 1, 0.3);
    add_recurrent(b, LMQ_ROLE_ATTN_OUT, l, h->dim, values);
    b->has_biases = has_biases;
}

/* What few models have; hardly any of it has a bias. */
static void
add_seldom(struct builder *b, enum lmq_role role, int32_t l)
{
    struct lmq_place place = {role, LMQ_PART_WEIGHT, l, -1};
    uint64_t dims[2];
    uint32_t n_items, n_dims;

    if (!lmq_model_has(b->h, &place, &n_items))
        return;
    lmq_model_shape(b->h, &place, dims, &n_dims);
    place.item = n_items > 0 ? 0 : -1;
    if (n_dims == 1)
        add(b, place, 0, dims[0], 1, 0.1);
    if (role == LMQ_ROLE_ATTN_GROWTH || role == LMQ_ROLE_INDEX_K_NORM)
        add_bias(b, place, dims[0]);
    for (uint32_t i = 0; n_dims == 2 && (i == 0 || i < n_items);
         i++, place.item++)
        add(b, place, dims[0], dims[1], 0, 1 / sqrt((double)dims[1]));
    if (role == LMQ_ROLE_TOKEN_EXPERTS) /* each token's are others */
        for (uint64_t i = 0; i < dims[0] * dims[1]; i++)
            b->model->tensors[b->model->n_tensors - 1].x[i] =
                (float)((i / dims[1] + i % dims[1]) % b->h->n_experts);
}

static void
add_qk_norm(struct builder *b, enum lmq_role role, int32_t l, uint32_t n_heads)
{
    const struct lmq_hparams *h = b->h;
    uint64_t head = lmq_layer_head_dim(h, (size_t)l);

    if (h->qk_norm == LMQ_QK_NORM_HEAD ||
        (h->qk_norm == LMQ_QK_NORM_BARE_QUERIES &&
         role == LMQ_ROLE_ATTN_K_NORM))
        add_norm(b, role, l, -1, head);
    if (h->qk_norm == LMQ_QK_NORM_WHOLE)
        add_norm(b, role, l, -1, n_heads * head);
    if (h->qk_norm == LMQ_QK_NORM_HEADS)
        for (int32_t i = 0; i < (int32_t)n_heads; i++)
            add_norm(b, role, l, i, h->head_dim);
}

static void
add_attention(struct builder *b, int32_t l)
{
    const struct lmq_hparams *h = b->h;
    uint32_t value = lmq_layer_value_dim(h, (size_t)l);
    uint32_t head = lmq_layer_head_dim(h, (size_t)l);
    uint32_t n_kv = lmq_layer_kv_heads(h, (size_t)l);
    uint32_t n = lmq_layer_heads(h, (size_t)l);
    bool borrows = lmq_layer_borrows(h, (size_t)l);
    bool has_biases = b->has_biases;

    if (lmq_layer_norm_place(h, (size_t)l) != LMQ_NORMS_AFTER)
        add_norm(b, LMQ_ROLE_ATTN_NORM, l, -1, norm_width(h));
    if (lmq_layer_norm_place(h, (size_t)l) != LMQ_NORMS_BEFORE)
        add_norm(b, LMQ_ROLE_ATTN_POST_NORM, l, -1, h->dim);
    if (lmq_layer_is(h, (size_t)l, LMQ_LAYER_DELTA))
        add_recurrence(b, l);
    if (!lmq_layer_has_attention(h, (size_t)l))
        return;
    if (h->kv_lora_rank > 0) {
        add_latents(b, l);
    } else {
        for (int i = LMQ_ROLE_ATTN_Q_A; i <= LMQ_ROLE_ATTN_Q_B; i++)
            add_seldom(b, (enum lmq_role)i, l);
        if (!lmq_has_query_latents(h))
            add_matrix(b, LMQ_ROLE_ATTN_Q, l, -1, n * head, h->dim);
        if (!borrows)
            add_matrix(b, LMQ_ROLE_ATTN_K, l, -1, n_kv * head, h->dim);
        b->has_biases &= !lmq_is_lru(h); /* of values and gates */
        if (!borrows && !h->has_turned_values &&
            !lmq_layer_keys_are_values(h, (size_t)l))
            add_matrix(b, LMQ_ROLE_ATTN_V, l, -1, n_kv * value, h->dim);
        b->has_biases = has_biases;
    }
    add_qk_norm(b, LMQ_ROLE_ATTN_Q_NORM, l, n);
    if (!borrows)
        add_qk_norm(b, LMQ_ROLE_ATTN_K_NORM, l, n_kv);
    if (lmq_layer_has_sinks(h, (size_t)l))
        add(b, (struct lmq_place){LMQ_ROLE_ATTN_SINKS, LMQ_PART_WEIGHT, l, -1},
            0, n, 0, 1);
    b->has_biases &= !lmq_is_lru(h);
    if (h->has_attn_gate)
        add_matrix(b, LMQ_ROLE_ATTN_GATE, l, -1,
                   n * (h->has_head_gate ? 1 : value),
                   h->has_raw_latents ? lmq_query_latents(h) : h->dim);
    b->has_biases = has_biases;
    if (h->has_sub_norms)
        add_norm(b, LMQ_ROLE_ATTN_SUB_NORM, l, -1, n * value);
    add_matrix(b, LMQ_ROLE_ATTN_OUT, l, -1, h->dim,
               lmq_layer_out_width(h, (size_t)l));
}

/* gate is the first of three roles. */
static void
add_network(struct builder *b, enum lmq_role gate, int32_t l, int32_t item,
            uint64_t hidden)
{
    const struct lmq_hparams *h = b->h;

    if (h->is_gated)
        add_matrix(b, gate, l, item, hidden, h->dim);
    add_matrix(b, (enum lmq_role)(gate + 1), l, item, hidden, h->dim);
    add_matrix(b, (enum lmq_role)(gate + 2), l, item, h->dim, hidden);
}

/* Its bound is so low that it counts. */
static void
add_xielu(struct builder *b, int32_t l)
{
    for (int role = LMQ_ROLE_ACT_POSITIVE; role <= LMQ_ROLE_ACT_BOUND; role++)
        add(b, (struct lmq_place){(enum lmq_role)role, LMQ_PART_WEIGHT, l, -1},
            0, 1, role == LMQ_ROLE_ACT_BOUND ? -0.2 : 0.5, 0.1);
}

static void
add_feed(struct builder *b, int32_t l)
{
    const struct lmq_hparams *h = b->h;

    if (lmq_layer_norm_place(h, (size_t)l) != LMQ_NORMS_AFTER &&
        h->residual != LMQ_RESIDUAL_PARALLEL_ONE_NORM)
        add_norm(b, LMQ_ROLE_FFN_NORM, l, -1, norm_width(h));
    if (lmq_layer_norm_place(h, (size_t)l) != LMQ_NORMS_BEFORE ||
        (h->has_mixture_norm && lmq_layer_has_experts(h, (size_t)l)))
        add_norm(b, LMQ_ROLE_FFN_POST_NORM, l, -1, h->dim);
    if (!lmq_layer_has_experts(h, (size_t)l)) {
        uint32_t hidden = lmq_layer_hidden_dim(h, (size_t)l);
        add_network(b, LMQ_ROLE_FFN_GATE, l, -1, hidden);
        if (h->has_sub_norms)
            add_norm(b, LMQ_ROLE_FFN_SUB_NORM, l, -1, hidden);
        return;
    }
    add_matrix(b, LMQ_ROLE_ROUTER, l, -1, h->n_experts, h->dim);
    if (h->router_corrects && !lmq_layer_has_table(h, (size_t)l))
        add_bias(b,
                 (struct lmq_place){LMQ_ROLE_ROUTER_CORRECTION,
                                    LMQ_PART_BIAS, l, -1},
                 h->n_experts);
    for (int32_t i = 0; i < (int32_t)h->n_experts; i++)
        add_network(b, LMQ_ROLE_FFN_GATE, l, i, h->expert_dim);
    if (h->shared_dim == 0)
        return;
    add_network(b, LMQ_ROLE_SHARED_GATE, l, -1, h->shared_dim);
    add(b, (struct lmq_place){LMQ_ROLE_SHARED_SWITCH, LMQ_PART_WEIGHT, l, -1},
        0, h->dim, 0, 0.2);
}

static void
add_all(struct builder *b)
{
    const struct lmq_hparams *h = b->h;

    add_matrix(b, LMQ_ROLE_EMBEDDING, -1, -1, h->vocab_size, h->dim);
    if (h->positions == LMQ_POSITIONS_LEARNED)
        add_matrix(b, LMQ_ROLE_POSITIONS, -1, -1, h->context, h->dim);
    for (int32_t l = 0; l < (int32_t)h->n_layers; l++) {
        if (lmq_layer_mixes(h, (size_t)l))
            add_attention(b, l);
        if (lmq_layer_has_feed(h, (size_t)l))
            add_feed(b, l);
        if (h->activation == LMQ_ACTIVATION_XIELU)
            add_xielu(b, l);
    }
    if (h->has_embedding_norm && !h->has_bare_embedding_norm)
        add_norm(b, LMQ_ROLE_EMBEDDING_NORM, -1, -1, h->dim);
    for (int role = LMQ_ROLE_INPUTS; role < LMQ_ROLE_COUNT; role++)
        for (int32_t l = 0; l < (int32_t)h->n_layers &&
                            (role <= LMQ_ROLE_SHARED_POST_NORM ||
                             role >= LMQ_ROLE_STREAMS_IN); l++)
            if (lmq_role_is_per_layer((enum lmq_role)role))
                add_seldom(b, (enum lmq_role)role, l);
            else if (l == 0)
                add_seldom(b, (enum lmq_role)role, -1);
    add_norm(b, LMQ_ROLE_OUTPUT_NORM, -1, -1, norm_width(h));
    add_matrix(b, LMQ_ROLE_HEAD, -1, -1, h->vocab_size, h->dim);
    if (b->has_biases)
        add_bias(b,
                 (struct lmq_place){LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1, -1},
                 h->vocab_size);
}

const char *
variant_write(const struct lmq_hparams *h, bool has_biases, uint64_t seed,
              const char *folder)
{
    struct build_model *model = calloc(1, sizeof(*model));
    struct builder builder = {h, model, {seed}, has_biases};
    char path[512];

    if (model == NULL)
        abort();
    add_all(&builder);
    save_folder(model, folder, BUILD_F32);
    json_t *config = json_object();
    json_object_set_new(config, "lmquant", lmq_hparams_to_json(h));
    snprintf(path, sizeof(path), "%s/config.json", folder);
    if (json_dump_file(config, path, 0) != 0)
        abort();
    json_decref(config);
    build_free(model);
    return folder;
}

const char *
variant_make(size_t i, const char *folder)
{
    struct lmq_hparams *h = malloc(sizeof(*h));

    if (h == NULL)
        abort();
    variant_base(h);
    variants[i].describe(h);
    snprintf(h->architecture, sizeof(h->architecture), "%s",
             variants[i].name);
    variant_write(h, variants[i].has_biases, i + 100, folder);
    free(h);
    return folder;
}
