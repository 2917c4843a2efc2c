/*
 * hparams_fields.c - the table of a description's fields, and what can be done
 * with any of them.
 */
#include "config.h"

#include "formats/model/hparams_fields.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- The table ---- */

#define COUNT(name, presence, least, most)                                    \
    {#name, LMQ_FIELD_COUNT, presence, LMQ_FIELD(name), least, most,          \
     NULL, NULL, 0, NULL, 0}
#define REAL(name, presence)                                                  \
    {#name, LMQ_FIELD_REAL, presence, LMQ_FIELD(name), 0, 0, NULL, NULL, 0,   \
     NULL, 0}
#define SWITCH(key, name)                                                     \
    {key, LMQ_FIELD_SWITCH, LMQ_SELDOM, LMQ_FIELD(name), 0, 0, NULL, NULL, 0, \
     NULL, 0}
#define KIND(name, presence, what, ...)                                       \
    KIND_AS(#name, name, presence, what, __VA_ARGS__)
#define KIND_AS(key, name, presence, what, ...)                               \
    {key, LMQ_FIELD_KIND, presence, LMQ_FIELD(name), 0, 0, what,              \
     (const char *const[]){__VA_ARGS__, NULL}, 0, NULL, 0}
#define LAYERS(key, bit)                                                      \
    {key, LMQ_FIELD_LAYERS, LMQ_SELDOM, LMQ_FIELD(layers), 0, 0, NULL, NULL,  \
     bit, NULL, 0}
#define FACTORS(name)                                                         \
    {#name, LMQ_FIELD_FACTORS, LMQ_SELDOM, LMQ_FIELD(name), 0, 0, NULL, NULL, \
     0, NULL, 0}
#define INTEGERS(name, type)                                                  \
    {#name, type, LMQ_SELDOM, LMQ_FIELD(name), 0, 0, NULL, NULL, 0, NULL,     \
     LMQ_FIELD(n_##name)}
#define NUMBERS(name, most, of)                                               \
    {#name, LMQ_FIELD_NUMBERS, LMQ_SELDOM, LMQ_FIELD(name), 1, most, NULL,    \
     NULL, 0, of, 0}

const struct lmq_field lmq_fields[] = {
    COUNT(n_layers, LMQ_ALWAYS, 1, LMQ_MAX_LAYERS),
    COUNT(dim, LMQ_ALWAYS, 1, LMQ_MAX_WIDTH),
    COUNT(hidden_dim, LMQ_ALWAYS, 1, LMQ_MAX_WIDTH),
    COUNT(n_heads, LMQ_ALWAYS, 1, LMQ_MAX_HEADS),
    COUNT(n_kv_heads, LMQ_ALWAYS, 1, LMQ_MAX_HEADS),
    COUNT(head_dim, LMQ_ALWAYS, 1, LMQ_MAX_WIDTH),
    COUNT(vocab_size, LMQ_ALWAYS, 1, LMQ_MAX_WIDTH),
    COUNT(context, LMQ_ALWAYS, 1, LMQ_MAX_CONTEXT),
    COUNT(sliding_window, LMQ_ALWAYS, 0, LMQ_MAX_CONTEXT),
    COUNT(rope_context, LMQ_ALWAYS, 0, LMQ_MAX_CONTEXT),
    REAL(norm_eps, LMQ_ALWAYS),
    REAL(rope_theta, LMQ_ALWAYS),
    REAL(rope_factor, LMQ_ALWAYS),
    REAL(rope_low_factor, LMQ_ALWAYS),
    REAL(rope_high_factor, LMQ_ALWAYS),
    KIND(rope_scaling, LMQ_ALWAYS, "rotary scaling", "none", "linear",
         "llama3", "ntk", "dynamic", "yarn", "longrope", "factors"),
    COUNT(context_end, LMQ_SELDOM, 0, LMQ_MAX_CONTEXT),
    COUNT(value_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(q_lora_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(kv_lora_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(rotary_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(attention_chunk, LMQ_SELDOM, 0, LMQ_MAX_CONTEXT),
    COUNT(score_growth_period, LMQ_SELDOM, 0, LMQ_MAX_CONTEXT),
    COUNT(score_growth_shift, LMQ_SELDOM, 0, LMQ_MAX_CONTEXT),
    COUNT(n_experts, LMQ_SELDOM, 0, LMQ_MAX_EXPERTS),
    COUNT(n_experts_used, LMQ_SELDOM, 0, LMQ_MAX_EXPERTS),
    COUNT(expert_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(shared_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(n_expert_groups, LMQ_SELDOM, 0, LMQ_MAX_EXPERTS),
    COUNT(n_expert_groups_used, LMQ_SELDOM, 0, LMQ_MAX_EXPERTS),
    COUNT(n_delta_key_heads, LMQ_SELDOM, 0, LMQ_MAX_HEADS),
    COUNT(n_delta_value_heads, LMQ_SELDOM, 0, LMQ_MAX_HEADS),
    COUNT(delta_key_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(delta_value_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(conv_width, LMQ_SELDOM, 0, LMQ_MAX_CONV),
    COUNT(step_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(gate_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(full_head_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(full_kv_heads, LMQ_SELDOM, 0, LMQ_MAX_HEADS),
    COUNT(full_rotary_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(full_value_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(full_kv_lora_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(n_borrowing, LMQ_SELDOM, 0, LMQ_MAX_LAYERS),
    COUNT(borrowing_hidden_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(layer_input_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(layer_input_vocab, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(n_streams, LMQ_SELDOM, 0, LMQ_MAX_STREAMS),
    COUNT(stream_rounds, LMQ_SELDOM, 0, LMQ_MAX_ROUNDS),
    COUNT(residual_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(n_loops, LMQ_SELDOM, 0, LMQ_MAX_LOOPS),
    COUNT(norm_gate_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(n_out_groups, LMQ_SELDOM, 0, LMQ_MAX_HEADS),
    COUNT(out_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(pool_size, LMQ_SELDOM, 0, LMQ_MAX_POOL),
    COUNT(overlap_size, LMQ_SELDOM, 0, LMQ_MAX_POOL),
    COUNT(index_topk, LMQ_SELDOM, 0, LMQ_MAX_CONTEXT),
    COUNT(n_index_heads, LMQ_SELDOM, 0, LMQ_MAX_HEADS),
    COUNT(index_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(stream_rank, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(gram_size, LMQ_SELDOM, 0, LMQ_MAX_GRAM),
    COUNT(gram_heads, LMQ_SELDOM, 0, LMQ_MAX_GRAM_NUMBERS),
    COUNT(gram_dim, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    COUNT(gram_conv_width, LMQ_SELDOM, 0, LMQ_MAX_CONV),
    COUNT(gram_stop, LMQ_SELDOM, 0, LMQ_MAX_WIDTH),
    REAL(rope_local_theta, LMQ_SELDOM),
    REAL(rope_beta_fast, LMQ_SELDOM),
    REAL(rope_beta_slow, LMQ_SELDOM),
    REAL(rope_attention_factor, LMQ_SELDOM),
    REAL(embedding_scale, LMQ_SELDOM),
    REAL(residual_scale, LMQ_SELDOM),
    REAL(attn_keep, LMQ_SELDOM),
    REAL(delta_keep, LMQ_SELDOM),
    REAL(feed_keep, LMQ_SELDOM),
    REAL(attn_add, LMQ_SELDOM),
    REAL(delta_add, LMQ_SELDOM),
    REAL(feed_add, LMQ_SELDOM),
    REAL(logit_scale, LMQ_SELDOM),
    REAL(logit_softcap, LMQ_SELDOM),
    REAL(attn_scale, LMQ_SELDOM),
    REAL(full_attn_scale, LMQ_SELDOM),
    REAL(attn_softcap, LMQ_SELDOM),
    REAL(score_growth, LMQ_SELDOM),
    REAL(qkv_clip, LMQ_SELDOM),
    REAL(value_scale, LMQ_SELDOM),
    REAL(activation_slope, LMQ_SELDOM),
    REAL(glu_limit, LMQ_SELDOM),
    REAL(glu_offset, LMQ_SELDOM),
    REAL(sparse_cut, LMQ_SELDOM),
    REAL(act_limit, LMQ_SELDOM),
    REAL(expert_act_limit, LMQ_SELDOM),
    REAL(router_scale, LMQ_SELDOM),
    REAL(router_softcap, LMQ_SELDOM),
    REAL(router_reach, LMQ_SELDOM),
    REAL(shared_scale, LMQ_SELDOM),
    REAL(latent_eps, LMQ_SELDOM),
    REAL(state_eps, LMQ_SELDOM),
    REAL(post_norm_eps, LMQ_SELDOM),
    REAL(beta_scale, LMQ_SELDOM),
    REAL(decay_floor, LMQ_SELDOM),
    REAL(index_eps, LMQ_SELDOM),
    REAL(stream_eps, LMQ_SELDOM),
    REAL(stream_gain, LMQ_SELDOM),
    REAL(stream_floor, LMQ_SELDOM),
    REAL(decay_first, LMQ_SELDOM),
    REAL(decay_step, LMQ_SELDOM),
    SWITCH("gated", is_gated),
    SWITCH("embedding_norm", has_embedding_norm),
    SWITCH("bare_embedding_norm", has_bare_embedding_norm),
    SWITCH("sinks", has_sinks),
    SWITCH("qk_norm_late", qk_norm_late),
    SWITCH("score_growth_still", score_growth_still),
    SWITCH("head_growth", has_head_growth),
    SWITCH("still_whole", has_whole_still),
    SWITCH("rope_ramp_exact", rope_ramp_exact),
    SWITCH("attn_gate", has_attn_gate),
    SWITCH("attn_gate_by_head", has_head_gate),
    SWITCH("attn_gate_softplus", has_softplus_gate),
    SWITCH("raw_latents", has_raw_latents),
    SWITCH("turned_values", has_turned_values),
    SWITCH("router_renormalises", router_renormalises),
    SWITCH("router_corrects", router_corrects),
    SWITCH("router_scales_input", router_scales_input),
    SWITCH("router_early", router_is_early),
    SWITCH("expert_norms", has_expert_norms),
    SWITCH("full_keys_are_values", full_keys_are_values),
    SWITCH("value_norm", has_value_norm),
    SWITCH("layer_scale", has_layer_scale),
    SWITCH("bare_states", has_bare_states),
    SWITCH("step_norms", has_step_norms),
    SWITCH("step_norm_weights", has_step_norm_weights),
    SWITCH("key_decays", has_key_decays),
    SWITCH("sigmoid_gates", has_sigmoid_gates),
    SWITCH("sub_norms", has_sub_norms),
    SWITCH("mixture_norm", has_mixture_norm),
    SWITCH("loop_norm", has_loop_norm),
    SWITCH("stream_mean", has_stream_mean),
    SWITCH("glu_limit_of_experts", glu_limits_experts),
    SWITCH("normed_residual", has_normed_residual),
    KIND(norm, LMQ_SELDOM, "norm", "rms", "layer", "layer_plain",
         "rms_plain"),
    KIND(norm_place, LMQ_SELDOM, "place of norms", "before", "after",
         "around"),
    KIND(residual, LMQ_SELDOM, "residual", "sequential", "parallel",
         "parallel_one_norm"),
    KIND(qk_norm, LMQ_SELDOM, "norm of queries and keys", "none", "head",
         "heads", "whole", "bare", "bare_all", "bare_queries", "turning"),
    KIND(positions, LMQ_SELDOM, "kind of positions", "rotary", "learned",
         "alibi", "alibi_scaled", "none"),
    KIND(activation, LMQ_SELDOM, "activation", "silu", "gelu", "gelu_tanh",
         "relu", "sigmoid", "relu2", "xielu"),
    KIND(router, LMQ_SELDOM, "router", "softmax", "softmax_chosen",
         "sigmoid", "near", "sigmoid_chosen", "root_softplus"),
    KIND_AS("expert_group_worth", expert_group_score, LMQ_SELDOM,
            "worth of expert groups", "best", "best_two"),
    KIND(recurrence, LMQ_SELDOM, "recurrence", "delta", "state_space",
         "convolution", "selective", "lightning", "lru"),
    KIND(stream_kind, LMQ_SELDOM, "kind of streams", "guessed", "hyper",
         "gated"),
    LAYERS("full_layers", LMQ_LAYER_FULL),
    LAYERS("still_layers", LMQ_LAYER_NOPE), /* NoPE; lmq-model(5) */
    LAYERS("dense_layers", LMQ_LAYER_DENSE),
    LAYERS("delta_layers", LMQ_LAYER_DELTA),
    LAYERS("bare_layers", LMQ_LAYER_BARE),
    LAYERS("feed_layers", LMQ_LAYER_FEED),
    LAYERS("beside_layers", LMQ_LAYER_BESIDE),
    LAYERS("sinkless_layers", LMQ_LAYER_SINKLESS),
    LAYERS("after_layers", LMQ_LAYER_AFTER),
    LAYERS("sparse_layers", LMQ_LAYER_SPARSE),
    LAYERS("limited_layers", LMQ_LAYER_LIMITED),
    LAYERS("limited_expert_layers", LMQ_LAYER_LIMITED_EXPERTS),
    LAYERS("pool_layers", LMQ_LAYER_POOL),
    LAYERS("overlap_layers", LMQ_LAYER_OVERLAP),
    LAYERS("token_layers", LMQ_LAYER_TOKENS),
    LAYERS("gram_layers", LMQ_LAYER_GRAMS),
    LAYERS("index_layers", LMQ_LAYER_INDEX),
    NUMBERS(layer_heads, LMQ_MAX_HEADS, lmq_layer_heads),
    NUMBERS(layer_kv_heads, LMQ_MAX_HEADS, lmq_layer_kv_heads),
    NUMBERS(layer_hidden_dims, LMQ_MAX_WIDTH, lmq_layer_hidden_dim),
    FACTORS(rope_short),
    FACTORS(rope_long),
    INTEGERS(gram_factors, LMQ_FIELD_PAIRS),
    INTEGERS(gram_rows, LMQ_FIELD_INTEGERS),
    {.key = NULL},
};

const struct lmq_field *
lmq_field_at(size_t offset)
{
    const struct lmq_field *field = lmq_fields;

    while (field->offset != offset) {
        field++;
        assert(field->key != NULL);
    }
    return field;
}

/* ---- Access ---- */

double
lmq_field_get(const struct lmq_field *field, const struct lmq_hparams *hparams)
{
    const void *at = (const char *)hparams + field->offset;

    switch (field->type) {
    case LMQ_FIELD_COUNT:
        return *(const uint32_t *)at;
    case LMQ_FIELD_REAL:
        return *(const double *)at;
    case LMQ_FIELD_SWITCH:
        return *(const bool *)at;
    default: { /* whichever enumeration it is */
        int kind;
        memcpy(&kind, at, sizeof(kind));
        return kind;
    }
    }
}

void
lmq_field_set(const struct lmq_field *field, struct lmq_hparams *hparams,
              double value)
{
    void *at = (char *)hparams + field->offset;
    int kind;

    switch (field->type) {
    case LMQ_FIELD_COUNT:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case LMQ_FIELD_REAL:
        *(double *)at = value;
        break;
    case LMQ_FIELD_SWITCH:
        *(bool *)at = value > 0;
        break;
    default:
        kind = (int)value;
        memcpy(at, &kind, sizeof(kind));
    }
}

const double *
lmq_field_factors(const struct lmq_field *field,
                  const struct lmq_hparams *hparams)
{
    return (const void *)((const char *)hparams + field->offset);
}

const uint64_t *
lmq_field_integers(const struct lmq_field *field,
                   const struct lmq_hparams *hparams, uint32_t *n)
{
    const char *at = (const char *)hparams;

    *n = *(const uint32_t *)(const void *)(at + field->n_offset);
    return (const void *)(at + field->offset);
}

/* ---- Comparing ---- */

static bool
is_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static bool
has_same_layers(const struct lmq_hparams *a, const struct lmq_hparams *b,
                enum lmq_layer_kind bit)
{
    for (uint32_t i = 0; i < LMQ_MAX_LAYERS; i++)
        if ((i < a->n_layers && lmq_layer_is(a, i, bit)) !=
            (i < b->n_layers && lmq_layer_is(b, i, bit)))
            return false;
    return true;
}

/* Of each layer; 0: what holds of all. */
static const uint32_t *
numbers_of(const struct lmq_field *field, const struct lmq_hparams *hparams)
{
    return (const void *)((const char *)hparams + field->offset);
}

static bool
has_same_numbers(const struct lmq_field *field, const struct lmq_hparams *a,
                 const struct lmq_hparams *b)
{
    const uint32_t *x = numbers_of(field, a);
    const uint32_t *y = numbers_of(field, b);

    for (uint32_t i = 0; i < LMQ_MAX_LAYERS; i++)
        if ((i < a->n_layers ? x[i] : 0) != (i < b->n_layers ? y[i] : 0))
            return false;
    return true;
}

static bool
has_same_integers(const struct lmq_field *field, const struct lmq_hparams *a,
                  const struct lmq_hparams *b)
{
    uint32_t n, other;
    const uint64_t *x = lmq_field_integers(field, a, &n);
    const uint64_t *y = lmq_field_integers(field, b, &other);

    return n == other && memcmp(x, y, n * sizeof(*x)) == 0;
}

bool
lmq_field_is_same(const struct lmq_field *field, const struct lmq_hparams *a,
                  const struct lmq_hparams *b, double tolerance)
{
    const double *x = lmq_field_factors(field, a);
    const double *y = lmq_field_factors(field, b);

    if (field->type == LMQ_FIELD_LAYERS)
        return has_same_layers(a, b, field->bit);
    if (field->type == LMQ_FIELD_NUMBERS)
        return has_same_numbers(field, a, b);
    if (field->type == LMQ_FIELD_INTEGERS || field->type == LMQ_FIELD_PAIRS)
        return has_same_integers(field, a, b);
    if (field->type != LMQ_FIELD_FACTORS)
        return is_near(lmq_field_get(field, a), lmq_field_get(field, b),
                       field->type == LMQ_FIELD_REAL ? tolerance : 0);
    for (uint32_t i = 0; i < a->n_rope_factors && i < b->n_rope_factors; i++)
        if (!is_near(x[i], y[i], tolerance))
            return false;
    return a->n_rope_factors == b->n_rope_factors;
}
