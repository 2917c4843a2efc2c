/*
 * family_lately.c - families that came last: latents of layers that stand
 * still, and scores that grow as each head says; latents of two kinds; routers
 * that look at what enters the layer.
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

/* As the makers call what sees and hears, and what predicts more tokens. */
static const struct stored dots3_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_STRAY, "vision_encoder.post_trunk_norm.weight", 0},
    {AS_STRAY, "audio_encoder.audio_adapter.proj.0.bias", 0},
    {AS_STRAY, "model.mtp.embed_tokens.weight", 0},
    {AS_STRAY, "model.layers.4.self_attn.g_proj.weight", 0},
    {AS_STRAY, "model.layers.0.self_attn.indexer.k_norm.bias", 0},
    {AS_END, NULL, 0},
};

static const struct stored dots3_attention[] = {
    {AS_NORM, SELF "k_rope_only_layernorm", LAYER(k_norm)},
    {AS_LINEAR, SELF "g_proj", LAYER(gate)},
    {AS_END, NULL, 0},
};

static const size_t dots3_heads[] = {4, 4, 6, 6};

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
        /* As published: the text stands outside, and layers that choose what
         * they see are called as if they did not. */
        .name = "dots3note",
        .config =
            "{'architectures': ['Dots3NoteForCausalLM'], "
            "'apply_mla_qkv_lora_rescale': true, "
            "'attention_gate_type': 'headwise', 'bos_token_id': 1, "
            "'eos_token_id': 2, 'first_k_dense_replace': 1, "
            "'hidden_act': 'silu', 'hidden_size': $dim, "
            "'index_head_dim': 16, 'index_n_heads': 2, "
            "'index_topk': $positions, 'intermediate_size': $hidden, "
            "'kv_lora_rank': $full_kv_rank, 'layer_types': "
            "['full_attention', 'full_attention', 'sliding_attention', "
            "'sliding_attention'], 'max_position_embeddings': $positions, "
            "'model_type': 'dots3_note_text', "
            "'moe_intermediate_size': $expert_dim, "
            "'moe_shared_expert_intermediate_size': $shared_dim, "
            "'n_group': 1, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_attention_heads': 4, 'num_experts_per_tok': $used, "
            "'num_hidden_layers': $layers, 'num_key_value_heads': 4, "
            "'q_lora_rank': $q_rank, 'qk_nope_head_dim': $full_nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-05, "
            "'rope_theta': 80000.0, 'routed_scaling_factor': 2.5, "
            "'scoring_func': 'sigmoid', 'sliding_window_size': $window, "
            "'swa_head_dim': $head_dim, 'swa_kv_lora_rank': $kv_rank, "
            "'swa_num_attention_heads': 6, 'swa_num_key_value_heads': 6, "
            "'swa_q_lora_rank': $q_rank, "
            "'swa_qk_nope_head_dim': $nope_dim, "
            "'swa_rope_theta': 5000.0, 'swa_v_head_dim': $value_dim, "
            "'tie_word_embeddings': false, 'topk_group': 1, "
            "'topk_method': 'noaux_tc', 'use_dsa': true, "
            "'v_head_dim': $full_value_dim, 'vocab_size': $vocab}",
        .frame = dots3_frame,
        .layers = {hf_norms, deepseek_attention, dots3_attention, hf_mlp,
                   deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_OUTPUT_GATE,
        .shape = {.dim = 56, .hidden = 88, .layers = 4, .heads = 6,
                  .layer_heads = dots3_heads, .kv_heads = 1,
                  .head_dim = 14 + 6, .full_head_dim = 10 + 6,
                  .value_dim = 12, .full_value_dim = 15, .rotary_dim = 6,
                  .q_rank = 48, .kv_rank = 40, .full_kv_rank = 44,
                  .scores_by_kind = true, .scales_latents = true,
                  .norms_turning = true, .gates_heads = true, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .is_interleaved = true,
                  .theta = 80000, .window_theta = 5000, .window = 9,
                  .sliding = "0011", .sparse = "0111", .n_experts = 8,
                  .n_used = 3, .expert_dim = 36, .shared_dim = 44,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5},
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
