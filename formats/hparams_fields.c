/*
 * hparams_fields.c - one table for each kind of field, so that a container says
 * what was read and what is checked.
 */
#include "config.h"

#include "formats/hparams_fields.h"

#include <string.h>

#define AT(field) offsetof(struct lmq_hparams, field)

const struct lmq_count_field lmq_hparams_counts[] = {
    {"n_layers", AT(n_layers), LMQ_MAX_LAYERS, LMQ_ALWAYS, false},
    {"dim", AT(dim), LMQ_MAX_WIDTH, LMQ_ALWAYS, false},
    {"hidden_dim", AT(hidden_dim), LMQ_MAX_WIDTH, LMQ_ALWAYS, false},
    {"n_heads", AT(n_heads), LMQ_MAX_HEADS, LMQ_ALWAYS, false},
    {"n_kv_heads", AT(n_kv_heads), LMQ_MAX_HEADS, LMQ_ALWAYS, false},
    {"head_dim", AT(head_dim), LMQ_MAX_WIDTH, LMQ_ALWAYS, false},
    {"vocab_size", AT(vocab_size), LMQ_MAX_WIDTH, LMQ_ALWAYS, false},
    {"context", AT(context), LMQ_MAX_CONTEXT, LMQ_ALWAYS, false},
    {"sliding_window", AT(sliding_window), LMQ_MAX_CONTEXT, LMQ_ALWAYS, true},
    {"rope_context", AT(rope_context), LMQ_MAX_CONTEXT, LMQ_ALWAYS, true},
    {"value_dim", AT(value_dim), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"q_lora_rank", AT(q_lora_rank), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"kv_lora_rank", AT(kv_lora_rank), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"rotary_dim", AT(rotary_dim), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"n_experts", AT(n_experts), LMQ_MAX_EXPERTS, LMQ_SELDOM, true},
    {"n_experts_used", AT(n_experts_used), LMQ_MAX_EXPERTS, LMQ_SELDOM, true},
    {"expert_dim", AT(expert_dim), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"shared_dim", AT(shared_dim), LMQ_MAX_WIDTH, LMQ_SELDOM, true},
    {"n_expert_groups", AT(n_expert_groups), LMQ_MAX_EXPERTS, LMQ_SELDOM, true},
    {"n_expert_groups_used", AT(n_expert_groups_used), LMQ_MAX_EXPERTS,
     LMQ_SELDOM, true},
    {.key = NULL},
};

const struct lmq_real_field lmq_hparams_reals[] = {
    {"norm_eps", AT(norm_eps), LMQ_ALWAYS},
    {"rope_theta", AT(rope_theta), LMQ_ALWAYS},
    {"rope_factor", AT(rope_factor), LMQ_ALWAYS},
    {"rope_low_factor", AT(rope_low_factor), LMQ_ALWAYS},
    {"rope_high_factor", AT(rope_high_factor), LMQ_ALWAYS},
    {"rope_local_theta", AT(rope_local_theta), LMQ_SELDOM},
    {"rope_beta_fast", AT(rope_beta_fast), LMQ_SELDOM},
    {"rope_beta_slow", AT(rope_beta_slow), LMQ_SELDOM},
    {"rope_attention_factor", AT(rope_attention_factor), LMQ_SELDOM},
    {"embedding_scale", AT(embedding_scale), LMQ_SELDOM},
    {"residual_scale", AT(residual_scale), LMQ_SELDOM},
    {"logit_scale", AT(logit_scale), LMQ_SELDOM},
    {"logit_softcap", AT(logit_softcap), LMQ_SELDOM},
    {"attn_scale", AT(attn_scale), LMQ_SELDOM},
    {"attn_softcap", AT(attn_softcap), LMQ_SELDOM},
    {"qkv_clip", AT(qkv_clip), LMQ_SELDOM},
    {"router_scale", AT(router_scale), LMQ_SELDOM},
    {.key = NULL},
};

const struct lmq_switch_field lmq_hparams_switches[] = {
    {"gated", AT(is_gated)},
    {"sinks", AT(has_sinks)},
    {"router_renormalises", AT(router_renormalises)},
    {"router_corrects", AT(router_corrects)},
    {.key = NULL},
};

const struct lmq_kind_field lmq_hparams_kinds[] = {
    {"rope_scaling", "rotary scaling", AT(rope_scaling), LMQ_ALWAYS,
     {"none", "linear", "llama3", "ntk", "dynamic", "yarn", "longrope",
      "factors", NULL}},
    {"norm", "norm", AT(norm), LMQ_SELDOM,
     {"rms", "layer", "layer_plain", NULL}},
    {"norm_place", "place of norms", AT(norm_place), LMQ_SELDOM,
     {"before", "after", "around", NULL}},
    {"residual", "residual", AT(residual), LMQ_SELDOM,
     {"sequential", "parallel", "parallel_one_norm", NULL}},
    {"qk_norm", "norm of queries and keys", AT(qk_norm), LMQ_SELDOM,
     {"none", "head", "heads", "whole", NULL}},
    {"positions", "kind of positions", AT(positions), LMQ_SELDOM,
     {"rotary", "learned", "alibi", "alibi_scaled", "none", NULL}},
    {"activation", "activation", AT(activation), LMQ_SELDOM,
     {"silu", "gelu", "gelu_tanh", "relu", "sigmoid", NULL}},
    {"router", "router", AT(router), LMQ_SELDOM,
     {"softmax", "softmax_chosen", "sigmoid", NULL}},
    {"expert_group_worth", "worth of expert groups",
     AT(expert_group_worth), LMQ_SELDOM,
     {"best", "best_two", NULL}},
    {.key = NULL},
};

const struct lmq_layer_field lmq_hparams_layers[] = {
    {"full_layers", LMQ_LAYER_FULL},
    {"still_layers", LMQ_LAYER_STILL},
    {"dense_layers", LMQ_LAYER_DENSE},
    {.key = NULL},
};

const struct lmq_factor_field lmq_hparams_factors[] = {
    {"rope_short", AT(rope_short)},
    {"rope_long", AT(rope_long)},
    {.key = NULL},
};

int
lmq_kind_at(const struct lmq_hparams *hparams, size_t offset)
{
    int kind;

    memcpy(&kind, (const char *)hparams + offset, sizeof(kind));
    return kind;
}
