/*
 * family_uneven.c - families whose layers differ in numbers of heads or in
 * widths.
 */
#include "config.h"

#include "tests/families/family.h"

/* ---- Names ---- */

static const struct stored laguna_layer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.g_proj", LAYER(gate)},
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.experts.e_score_correction_bias", 0},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

static const struct stored openelm_frame[] = {
    {AS_EMBEDDING, "transformer.token_embeddings", 0},
    {AS_NORM, "transformer.norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

static const struct stored openelm_layer[] = {
    {AS_NORM, "transformer.layers.#.attn_norm", LAYER(attn_norm)},
    {AS_QKV, "transformer.layers.#.attn.qkv_proj", 0},
    {AS_NORM, "transformer.layers.#.attn.q_norm", LAYER(q_norm)},
    {AS_NORM, "transformer.layers.#.attn.k_norm", LAYER(k_norm)},
    {AS_LINEAR, "transformer.layers.#.attn.out_proj", LAYER(o)},
    {AS_NORM, "transformer.layers.#.ffn_norm", LAYER(ffn_norm)},
    {AS_GATE_UP, "transformer.layers.#.ffn.proj_1", LAYER(mlp)},
    {AS_LINEAR, "transformer.layers.#.ffn.proj_2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* ---- Families ---- */

static const size_t laguna_heads[] = {4, 8, 6, 8, 4};

/* Of 64 dimensions, by 0.5, 0.83, 1.17 and 1.5; 0.5, 1.5, 2.5 and 3.5. */
static const size_t openelm_heads[] = {2, 4, 6, 6};
static const size_t openelm_keys[] = {1, 2, 3, 3};
static const size_t openelm_widths[] = {32, 96, 160, 224};

#define LAGUNA_KEYS                                                           \
    "{'architectures': ['LagunaForCausalLM'], 'model_type': 'laguna', "       \
    "'attention_bias': false, 'attention_dropout': 0.0, "                     \
    "'bos_token_id': 1, 'eos_token_id': [2, 3], 'head_dim': $head_dim, "      \
    "'hidden_act': 'silu', 'hidden_size': $dim, "                             \
    "'intermediate_size': $hidden, 'max_position_embeddings': $positions, "   \
    "'moe_apply_router_weight_on_input': false, "                             \
    "'moe_intermediate_size': $expert_dim, 'num_attention_heads': $heads, "   \
    "'num_experts': $experts, 'num_experts_per_tok': $used, "                 \
    "'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, "        \
    "'rms_norm_eps': 1e-06, 'shared_expert_intermediate_size': $shared_dim, " \
    "'tie_word_embeddings': false, 'vocab_size': $vocab, "

static const struct stored step35_layer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.g_proj", LAYER(gate)},
    {AS_LINEAR, "model.layers.#.moe.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.moe.router_bias", 0},
    {AS_EXPERTS_FUSED, "model.layers.#.moe.gate_proj.weight", MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.moe.up_proj.weight", MLP(up)},
    {AS_EXPERTS_FUSED, "model.layers.#.moe.down_proj.weight", MLP(down)},
    {AS_LINEAR, "model.layers.#.share_expert.gate_proj", LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.share_expert.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.share_expert.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

static const size_t step35_heads[] = {4, 6, 6, 6, 4};
static const size_t step35_keys[] = {2, 3, 3, 3, 2};

static const size_t deci_keys[] = {2, 2, 1, 2, 4, 2};
static const size_t deci_widths[] = {256, 512, 256, 256, 768, 256};

const struct family uneven_families[] = {
    {
        .name = "laguna",
        .config =
            LAGUNA_KEYS
            "'gating': 'per-head', 'layer_types': ['full_attention', "
            "'sliding_attention', 'sliding_attention', 'sliding_attention', "
            "'full_attention'], 'mlp_layer_types': ['dense', 'sparse', "
            "'sparse', 'sparse', 'sparse'], "
            "'moe_routed_scaling_factor': 2.5, "
            "'num_attention_heads_per_layer': [$each_heads], "
            "'rope_parameters': {'full_attention': {'attention_factor': 1.0, "
            "'beta_fast': 64, 'beta_slow': 1, 'factor': 4.0, "
            "'original_max_position_embeddings': $original, "
            "'partial_rotary_factor': 0.5, 'rope_theta': 500000.0, "
            "'rope_type': 'yarn'}, 'sliding_attention': {"
            "'partial_rotary_factor': 1.0, 'rope_theta': 10000.0, "
            "'rope_type': 'default'}}, 'sliding_window': $window}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, laguna_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                HAS_OUTPUT_GATE,
        .shape = {.dim = 56, .hidden = 84, .layers = 5, .heads = 4,
                  .layer_heads = laguna_heads, .kv_heads = 2, .head_dim = 16,
                  .full_rotary_dim = 8, .vocab = 61, .max_positions = 64,
                  .eps = 1e-6, .activation = oracle_silu, .theta = 500000,
                  .window_theta = 10000, .rope = ORACLE_ROPE_YARN,
                  .factor = 4, .low = 1, .high = 64, .original = 16,
                  .window = 7, .sliding = "01110", .gates_heads = true,
                  .softplus_gates = true, .sparse = "01111", .n_experts = 8,
                  .n_used = 3, .expert_dim = 36, .shared_dim = 44,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5},
    },
    {
        /* All layers see everything, and gates are of each number. */
        .name = "laguna-full",
        .config =
            LAGUNA_KEYS
            "'gating': 'per-element', "
            "'moe_router_logit_softcapping': 3.0, "
            "'rope_parameters': {'full_attention': {"
            "'partial_rotary_factor': 0.5, 'rope_theta': 20000.0, "
            "'rope_type': 'default'}}}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, laguna_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                HAS_OUTPUT_GATE,
        .shape = {.dim = 52, .hidden = 76, .layers = 3, .heads = 6,
                  .kv_heads = 3, .head_dim = 12, .rotary_dim = 6,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 20000,
                  .softplus_gates = true, .sparse = "011", .n_experts = 6,
                  .n_used = 2, .expert_dim = 36, .shared_dim = 28,
                  .router = ORACLE_SIGMOID, .router_cap = 3,
                  .renormalises = true},
    },
    {
        /* Lists count a layer for more tokens, too. */
        .name = "step35",
        .config =
            "{'architectures': ['Step3p5ForCausalLM'], 'att_impl_type': "
            "'GQA', 'attention_other_setting': {'attention_type': "
            "'sliding_attention', 'head_dim': $head_dim, "
            "'num_attention_groups': 3, 'num_attention_heads': 6}, "
            "'bos_token_id': 0, 'eos_token_id': [1, 2], 'head_dim': "
            "$head_dim, 'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'layer_types': ['full_attention', 'sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention', "
            "'sliding_attention'], 'max_position_embeddings': $positions, "
            "'max_seq_len': 4096, 'model_type': 'step3p5', "
            "'moe_every_n_layer': 1, 'moe_intermediate_size': $expert_dim, "
            "'moe_layers_enum': '1,2, 3,4', 'moe_num_experts': $experts, "
            "'moe_router_activation': 'sigmoid', "
            "'moe_router_scaling_factor': 3.0, 'moe_top_k': $used, "
            "'need_fp32_gate': true, 'norm_expert_weight': true, "
            "'num_attention_groups': $kv_heads, 'num_attention_heads': "
            "$heads, 'num_hidden_layers': $layers, "
            "'num_nextn_predict_layers': 1, 'partial_rotary_factors': [0.5, "
            "1.0, 1.0, 1.0, 0.5, 1.0], 'rms_norm_eps': 1e-05, "
            "'rope_scaling': {'factor': 2.0, 'high_freq_factor': 32.0, "
            "'low_freq_factor': 1.0, 'original_max_position_embeddings': "
            "$original, 'rope_type': 'llama3'}, 'rope_theta': [500000.0, "
            "10000.0, 10000.0, 10000.0, 500000.0, 10000.0], "
            "'share_expert_dim': $shared_dim, 'sink': false, "
            "'sliding_window': $window, 'swiglu_limits': [0.0, null, 0.0, "
            "0.4, 0.4, 0.0], 'swiglu_limits_shared': [0.3, 0.0, 0.3, null, "
            "0.0, 0.0], 'tie_word_embeddings': false, "
            "'use_head_wise_attn_gate': true, 'use_moe': true, "
            "'use_moe_router_bias': true, 'use_rope_layers': [], "
            "'vocab_size': $vocab, 'yarn_only_types': ['full_attention'], "
            "'zero_centered': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, step35_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                HAS_OUTPUT_GATE | NORMS_LESS_ONE,
        .shape = {.dim = 60, .hidden = 84, .layers = 5, .heads = 4,
                  .layer_heads = step35_heads, .layer_kv_heads = step35_keys,
                  .kv_heads = 2, .head_dim = 16, .full_rotary_dim = 8,
                  .vocab = 61, .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 500000,
                  .window_theta = 10000, .rope = ORACLE_ROPE_LLAMA3,
                  .factor = 2, .low = 1, .high = 32, .original = 16,
                  .window = 7, .sliding = "01110", .gates_heads = true,
                  .sparse = "01111", .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 44,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 3, .act_limit = 0.3,
                  .expert_act_limit = 0.4, .limited = "10100",
                  .limited_experts = "00011"},
    },
    {
        .name = "maple",
        .config =
            "{'architectures': ['MapleForCausalLM'], 'bos_token_id': 1, "
            "'eos_token_id': 2, 'head_dim': $head_dim, 'hidden_act': "
            "'silu', 'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention'], 'max_position_embeddings': $positions, "
            "'model_type': 'maple', 'moe_intermediate_size': $expert_dim, "
            "'nope_on_global_attention': true, 'norm_topk_prob': true, "
            "'num_attention_heads': $heads, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'partial_rotary_factor': "
            "0.5, 'rms_norm_eps': 1e-06, 'rope_theta': 500000.0, "
            "'sliding_window': $window, 'tie_word_embeddings': false, "
            "'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 56, .hidden = 84, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 500000, .up_limit = 7,
                  .window = 7, .sliding = "101", .turning = "101",
                  .sparse = "1", .n_experts = 7, .n_used = 3,
                  .expert_dim = 36, .renormalises = true},
    },
    {
        .name = "openelm",
        .config =
            "{'activation_fn_name': 'swish', 'architectures': "
            "['OpenELMForCausalLM'], 'auto_map': {'AutoConfig': "
            "'configuration_openelm.OpenELMConfig'}, 'bos_token_id': 1, "
            "'eos_token_id': 2, 'ffn_dim_divisor': 16, "
            "'ffn_multipliers': [0.5, 1.5, 2.5, 3.5], 'ffn_with_glu': true, "
            "'head_dim': $head_dim, 'initializer_range': 0.02, "
            "'max_context_length': $positions, 'model_dim': $dim, "
            "'model_type': 'openelm', 'normalization_layer_name': 'rms_norm', "
            "'normalize_qk_projections': true, 'num_gqa_groups': 2, "
            "'num_kv_heads': [$each_kv_heads], "
            "'num_query_heads': [$each_heads], "
            "'num_transformer_layers': $layers, "
            "'qkv_multipliers': [0.5, 1.5], 'rope_freq_constant': 10000, "
            "'rope_max_length': 128, 'share_input_output_layers': true, "
            "'use_cache': true, 'vocab_size': $vocab}",
        .frame = openelm_frame,
        .layers = {openelm_layer},
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {.dim = 64, .layers = 4, .heads = 6,
                  .layer_heads = openelm_heads,
                  .layer_kv_heads = openelm_keys,
                  .layer_hidden = openelm_widths, .head_dim = 16,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000},
    },
    {
        .name = "deci",
        .config =
            "{'architectures': ['DeciLMForCausalLM'], 'attention_bias': "
            "false, 'auto_map': {'AutoConfig': "
            "'configuration_decilm.DeciLMConfig'}, 'block_configs': ["
            "{'attention': {'n_heads_in_group': 2, 'no_op': false, "
            "'num_sink_tokens': null, 'replace_with_linear': false, "
            "'sparsify': null, 'window_length': null}, 'ffn': {'ffn_mult': "
            "8.0, 'no_op': false, 'replace_with_linear': false, "
            "'sparsify': null}}, "
            "{'attention': {'n_heads_in_group': null, 'no_op': true, "
            "'replace_with_linear': false}, 'ffn': {'ffn_mult': 16.0, "
            "'no_op': false, 'replace_with_linear': false}}, "
            "{'attention': {'n_heads_in_group': 4, 'no_op': false}, 'ffn': "
            "{'ffn_mult': null, 'no_op': true}}, "
            "{'attention': {'n_heads_in_group': null, 'no_op': true}, 'ffn': "
            "{'ffn_mult': null, 'no_op': true}}, "
            "{'attention': {'n_heads_in_group': 1, 'no_op': false}, 'ffn': "
            "{'ffn_mult': 24.0, 'no_op': false}}, "
            "{'attention': {'n_heads_in_group': 2, 'no_op': false}, 'ffn': "
            "{'ffn_mult': 8.0, 'no_op': false}}], "
            "'bos_token_id': 1, 'eos_token_id': [2, 3], 'hidden_act': "
            "'silu', 'hidden_size': $dim, 'intermediate_size': null, "
            "'max_position_embeddings': $positions, 'mlp_bias': false, "
            "'model_type': 'nemotron-nas', 'num_attention_heads': $heads, "
            "'num_hidden_layers': $layers, 'num_key_value_heads': null, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': {'factor': 8.0, "
            "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, 'rope_type': "
            "'llama3'}, 'rope_theta': 500000.0, 'tie_word_embeddings': "
            "false, 'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 48, .layers = 6, .heads = 4,
                  .layer_kv_heads = deci_keys, .layer_hidden = deci_widths,
                  .halves = "bfm-bb", .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 500000,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 8, .low = 1,
                  .high = 4, .original = 16},
    },
    {.name = NULL},
};
