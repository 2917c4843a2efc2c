/*
 * family_lately.c - families that came last: latents of layers that stand
 * still, and scores that grow as each head says; routers that look at what
 * enters the layer.
 */
#include "config.h"

#include "tests/families/family.h"

/* With what looks at images, and what predicts more tokens. */
static const struct stored mistral_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_VECTOR, "model.rotary_emb.alpha", MODEL(turning)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_STRAY, "model.multi_modal_projector.norm.weight", 0},
    {AS_STRAY, "mtp_dspark.norm.weight", 0},
    {AS_STRAY, "model.language_model.layers.0.self_attn.indexer.wk.weight",
     0},
    {AS_END, NULL, 0},
};

#define SELF "model.layers.#.self_attn."
static const struct stored mistral_attention[] = {
    {AS_LINEAR, SELF "q_proj", LAYER(q)},
    {AS_LINEAR, SELF "kv_a_proj_with_mqa", LAYER(kv_a)},
    {AS_NORM, SELF "kv_a_layernorm", LAYER(kv_a_norm)},
    {AS_LINEAR, SELF "kv_b_proj", LAYER(kv_b)},
    {AS_LINEAR, SELF "o_proj", LAYER(o)},
    {AS_VECTOR, SELF "softmax_scaling.scale", LAYER(growth)},
    {AS_VECTOR, SELF "softmax_scaling.bias", LAYER(growth_base)},
    {AS_END, NULL, 0},
};

static const struct stored mistral_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_EXPERTS_GATE_UP, "model.layers.#.mlp.experts.gate_up_proj", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.experts.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

#define MOE "model.layers.#.block_sparse_moe."
static const struct stored smallthinker_experts[] = {
    {AS_LINEAR, MOE "primary_router", LAYER(router)},
    {AS_EXPERTS, MOE "experts.@.gate", MLP(gate)},
    {AS_EXPERTS, MOE "experts.@.up", MLP(up)},
    {AS_EXPERTS, MOE "experts.@.down", MLP(down)},
    {AS_END, NULL, 0},
};

const struct family lately_families[] = {
    {
        .name = "mistral_large4",
        .config =
            "{'architectures': ['MistralLarge4ForConditionalGeneration'], "
            "'image_token_index': 10, 'model_type': 'mistral_large4', "
            "'text_config': {'attention_bias': false, 'bos_token_id': 1, "
            "'eos_token_id': 2, 'final_logit_softcapping': 8.0, "
            "'head_dim': $rotary_dim, 'hidden_act': 'silu', "
            "'hidden_size': $dim, 'index_head_dim': 16, "
            "'index_n_heads': 2, 'index_topk': $positions, "
            "'indexer_types': ['full', 'shared', 'full', 'shared'], "
            "'intermediate_size': $hidden, 'kv_lora_rank': $kv_rank, "
            "'kv_source_layers': [0, 1, 2, 3], 'layer_types': "
            "['indexed_attention', 'indexed_attention', "
            "'indexed_attention', 'indexed_attention'], "
            "'max_position_embeddings': $positions, "
            "'mlp_layer_types': ['dense', 'sparse', 'sparse', 'sparse'], "
            "'model_type': 'mistral_large4_text', "
            "'moe_intermediate_size': $expert_dim, 'n_group': $groups, "
            "'n_routed_experts': $experts, 'n_shared_experts': 1, "
            "'no_rope_layers': [1, 0, 1, 0], "
            "'num_attention_heads': $heads, 'num_experts_per_tok': $used, "
            "'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, "
            "'qk_nope_head_dim': $nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-05, "
            "'rope_parameters': {'attention_factor': 1.0, "
            "'beta_fast': 32.0, 'beta_slow': 1.0, 'factor': 8.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_theta': 10000.0, 'rope_type': 'yarn'}, "
            "'routed_scaling_factor': 1.5, 'topk_group': $groups_used, "
            "'v_head_dim': $value_dim, 'vocab_size': $vocab}, "
            "'tie_word_embeddings': false, 'vision_config': {}}",
        .prefix = "model.language_model.",
        .frame = mistral_frame,
        .layers = {hf_norms, mistral_attention, hf_mlp, mistral_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 56, .hidden = 88, .layers = 4, .heads = 4,
                  .kv_heads = 4, .head_dim = 12 + 8, .value_dim = 14,
                  .rotary_dim = 8, .kv_rank = 18, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .is_interleaved = true,
                  .theta = 10000, .rope = ORACLE_ROPE_YARN, .factor = 8,
                  .low = 1, .high = 32, .original = 16, .turning = "1010",
                  .still_whole = true, .heads_grow = true,
                  .learns_turning = true, .logit_cap = 8, .n_experts = 8,
                  .n_used = 3, .expert_dim = 36, .shared_dim = 36,
                  .renormalises = true, .router_scale = 1.5, .n_groups = 4,
                  .n_groups_used = 2, .group_best = 2, .sparse = "0111"},
    },
    {
        .name = "smallthinker",
        .config =
            "{'architectures': ['SmallThinkerForCausalLM'], "
            "'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': $head_dim, "
            "'hidden_size': $dim, 'max_position_embeddings': $positions, "
            "'moe_ffn_hidden_size': $expert_dim, "
            "'moe_num_active_primary_experts': $used, "
            "'moe_num_primary_experts': $experts, "
            "'moe_primary_router_apply_softmax': false, "
            "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'rms_norm_eps': 1e-06, "
            "'rope_layout': [0, 1, 1, 1, 0], 'rope_scaling': null, "
            "'rope_theta': 1500000.0, "
            "'sliding_window_layout': [0, 1, 1, 1, 0], "
            "'sliding_window_size': $window, 'tie_word_embeddings': false, "
            "'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, smallthinker_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 60, .layers = 5, .heads = 6, .kv_heads = 2,
                  .head_dim = 10, .vocab = 61, .max_positions = 64,
                  .eps = 1e-6, .activation = oracle_relu, .theta = 1.5e6,
                  .window = 4096, .sliding = "01110", .turning = "01110",
                  .sparse = "1", .n_experts = 7, .n_used = 3,
                  .expert_dim = 44, .router = ORACLE_SIGMOID,
                  .renormalises = true, .routes_early = true},
    },
    {.name = NULL},
};
