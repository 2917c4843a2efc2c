/*
 * family_later.c - families of 2025 and 2026.
 */
#include "config.h"

#include "tests/families/family.h"

#define SIZE_KEYS                                                             \
    "'hidden_act': 'silu', 'hidden_size': $dim, "                             \
    "'num_hidden_layers': $layers, 'num_attention_heads': $heads, "           \
    "'num_key_value_heads': $kv_heads, 'vocab_size': $vocab, "                \
    "'max_position_embeddings': $positions, 'bos_token_id': 1, "              \
    "'eos_token_id': 2, 'initializer_range': 0.02, 'use_cache': true, "       \
    "'intermediate_size': $hidden, "

/* Of a family whose experts have the usual name for their width. */
#define WIDE_KEYS                                                             \
    "'hidden_act': 'silu', 'hidden_size': $dim, "                             \
    "'num_hidden_layers': $layers, 'num_attention_heads': $heads, "           \
    "'num_key_value_heads': $kv_heads, 'vocab_size': $vocab, "                \
    "'max_position_embeddings': $positions, 'bos_token_id': 1, "              \
    "'eos_token_id': 2, 'initializer_range': 0.02, 'use_cache': true, "       \
    "'intermediate_size': $expert_dim"

#define LLAMA4_SHAPE                                                          \
    .dim = 60, .hidden = 84, .layers = 4, .heads = 6, .kv_heads = 2,          \
    .head_dim = 14, .vocab = 61, .max_positions = 64, .eps = 1e-5,            \
    .activation = oracle_silu, .is_interleaved = true, .theta = 500000,       \
    .norms_turned = true, .norms_bare = true, .growth_shift = 1,              \
    .growing = "0001", .sliding = "1110", .turning = "1110",                  \
    .n_experts = 6, .expert_dim = 44, .shared_dim = 44,                       \
    .router = ORACLE_SIGMOID, .weighs_input = true

#define LATER_NAMES                                                           \
    .frame = hf_frame, .layers = {hf_norms, hf_attention, hf_mlp}

#define LATER_SIZES                                                           \
    .dim = 60, .hidden = 84, .layers = 3, .heads = 6, .head_dim = 14,         \
    .vocab = 61, .max_positions = 64, .activation = oracle_silu

#define GLM_SIZES                                                             \
    .dim = 60, .hidden = 84, .layers = 3, .heads = 6, .kv_heads = 2,          \
    .head_dim = 16, .rotary_dim = 8, .vocab = 61, .max_positions = 64,        \
    .eps = 1.5625e-7, .activation = oracle_silu, .is_interleaved = true

static const struct stored hf_sinks[] = {
    {AS_SINKS, "model.layers.#.self_attn.sinks", 0},
    {AS_END, NULL, 0},
};

/* As its makers call them. */
static const struct stored kolibri_layer[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attn_norm", LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_ffn_norm", LAYER(ffn_post_norm)},
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.moe.router.expert_bias", 0},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

const struct family later_families[] = {
    {
        .name = "gpt-oss",
        .config =
            "{'architectures': ['GptOssForCausalLM'], "
            "'model_type': 'gpt_oss', 'attention_bias': true, "
            "'experts_per_token': $used, 'head_dim': $head_dim, "
            "'initial_context_length': 4096, "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention', 'full_attention'], "
            "'num_experts_per_tok': $used, 'num_local_experts': $experts, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': {'beta_fast': 32.0, "
            "'beta_slow': 1.0, 'factor': 32.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'yarn', 'truncate': false}, 'rope_theta': 150000, "
            "'router_aux_loss_coef': 0.9, 'sliding_window': $window, "
            "'swiglu_limit': 7.0, " SIZE_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, gptoss_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_OUT_BIAS |
                HAS_SINKS | HAS_ROUTER_BIAS | HAS_MLP_BIAS | EXPERTS_TURNED |
                GATE_UP_BY_ROW,
        .shape = {.dim = 60, .hidden = 44, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu_steep, .up_limit = 7,
                  .up_plus = 1, .theta = 150000, .rope = ORACLE_ROPE_YARN,
                  .factor = 32, .low = 1, .high = 32, .original = 200,
                  .is_ramp_exact = true,
                  .rope_scale = 1 + 0.1 * 3.4657359027997265,
                  .window = 8, .sliding = "10", .sparse = "1",
                  .n_experts = 6, .n_used = 2, .expert_dim = 44,
                  .router = ORACLE_SOFTMAX_CHOSEN},
    },
    {
        /* Scout, but for its widths: the third layer sees all. */
        .name = "llama4",
        .config =
            "{'architectures': ['Llama4ForCausalLM'], "
            "'model_type': 'llama4_text', 'attention_bias': false, "
            "'attention_chunk_size': $chunk, 'attn_scale': 0.3, "
            "'attn_temperature_tuning': 4, 'floor_scale': 5, "
            "'head_dim': $head_dim, 'interleave_moe_layer_step': 1, "
            "'intermediate_size_mlp': $hidden, 'no_rope_layers': [], "
            "'num_experts_per_tok': $used, 'num_local_experts': $experts, "
            "'output_router_logits': false, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 500000.0, "
            "'tie_word_embeddings': false, 'use_qk_norm': true, "
            WIDE_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, llama4_layer, llama4_fused},
        .bits = LLAMA_BITS | HAS_HEAD | EXPERTS_TURNED,
        .shape = {LLAMA4_SHAPE, .chunk = 7, .growth = 0.3,
                  .growth_period = 5, .sparse = "1", .n_used = 1},
    },
    {
        /* Maverick's layers, with a chunk that GGUF has. */
        .name = "llama4-interleaved",
        .config =
            "{'architectures': ['Llama4ForCausalLM'], "
            "'attention_chunk_size': $chunk, "
            "'attn_temperature_tuning': true, 'head_dim': $head_dim, "
            "'interleave_moe_layer_step': 2, "
            "'intermediate_size_mlp': $hidden, 'layer_types': ["
            "'chunked_attention', 'chunked_attention', 'chunked_attention', "
            "'full_attention'], 'moe_layers': [1, 3], "
            "'no_rope_layers': [1, 1, 1, 0], "
            "'num_experts_per_tok': $used, 'num_local_experts': $experts, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'factor': 8.0, "
            "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_theta': 500000.0, 'rope_type': 'llama3'}, " WIDE_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, llama4_layer, llama4_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA4_SHAPE, .chunk = 8192, .growth = 0.1,
                  .growth_period = 8192, .sparse = "01", .n_used = 2,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 8, .low = 1,
                  .high = 4, .original = 32},
    },
    {
        .name = "glm4moe",
        .config =
            "{'architectures': ['Glm4MoeForCausalLM'], "
            "'model_type': 'glm4_moe', 'attention_bias': true, "
            "'first_k_dense_replace': 1, 'head_dim': $head_dim, "
            "'moe_intermediate_size': $expert_dim, 'n_group': 1, "
            "'n_routed_experts': $experts, 'n_shared_experts': 1, "
            "'norm_topk_prob': true, 'num_experts_per_tok': $used, "
            "'num_nextn_predict_layers': 1, 'partial_rotary_factor': 0.5, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 1000000, 'routed_scaling_factor': 2.5, "
            "'topk_group': 1, 'use_qk_norm': true, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_QK_NORM |
                HAS_CORRECTION,
        .shape = {.dim = 56, .hidden = 92, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .vocab = 61, .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "011", .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 36,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5},
    },
    {
        .name = "dots1",
        .config =
            "{'architectures': ['Dots1ForCausalLM'], "
            "'model_type': 'dots1', 'attention_bias': false, "
            "'first_k_dense_replace': 1, 'head_dim': $head_dim, "
            "'moe_intermediate_size': $expert_dim, 'n_group': 1, "
            "'n_routed_experts': $experts, 'n_shared_experts': 2, "
            "'norm_topk_prob': true, 'num_experts_per_tok': $used, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 10000000, 'routed_scaling_factor': 2.5, "
            "'scoring_func': 'noaux_tc', 'sliding_window': null, "
            "'topk_group': 1, 'topk_method': 'noaux_tc', " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {.dim = 56, .hidden = 92, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000000,
                  .sparse = "011", .n_experts = 7, .n_used = 2,
                  .expert_dim = 36, .shared_dim = 72,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5},
    },
    {
        .name = "minimax-m2",
        .config =
            "{'architectures': ['MiniMaxM2ForCausalLM'], "
            "'model_type': 'minimax_m2', 'head_dim': $head_dim, "
            "'num_experts_per_tok': $used, 'num_local_experts': $experts, "
            "'num_mtp_modules': 3, 'qk_norm_type': 'per_layer', "
            "'rms_norm_eps': 1e-06, 'rope_theta': 5000000, "
            "'rotary_dim': $rotary_dim, 'scoring_func': 'sigmoid', "
            "'shared_intermediate_size': 0, 'use_qk_norm': true, "
            "'use_routing_bias': true, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, minimax_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM_WHOLE | HAS_CORRECTION,
        .shape = {.dim = 60, .hidden = 44, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 5000000,
                  .sparse = "1", .n_experts = 7, .n_used = 3,
                  .expert_dim = 44, .router = ORACLE_SIGMOID,
                  .renormalises = true},
    },
    {
        .name = "ministral3",
        .config =
            "{'architectures': ['Ministral3ForCausalLM'], "
            "'model_type': 'ministral3', 'head_dim': $head_dim, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'beta_fast': 32.0, "
            "'beta_slow': 1.0, 'factor': 16.0, 'llama_4_scaling_beta': 0.1, "
            "'mscale': 1.0, 'mscale_all_dim': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_theta': 1000000.0, 'rope_type': 'yarn', 'type': 'yarn'}, "
            "'sliding_window': null, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LATER_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-5, .theta = 1000000,
                  .rope = ORACLE_ROPE_YARN, .factor = 16, .low = 1,
                  .high = 32, .original = 9, .growth = 0.1,
                  .growth_period = 9},
    },
    {
        .name = "ministral",
        .config =
            "{'architectures': ['MinistralForCausalLM'], "
            "'model_type': 'ministral', 'head_dim': $head_dim, "
            "'layer_types': ['full_attention', 'sliding_attention', "
            "'sliding_attention'], 'rms_norm_eps': 1e-05, "
            "'rope_parameters': {'rope_theta': 100000000.0, "
            "'rope_type': 'default'}, 'sliding_window': $window, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LATER_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-5,
                  .theta = 100000000, .window = 9, .sliding = "011"},
    },
    {
        .name = "seed-oss",
        .config =
            "{'architectures': ['SeedOssForCausalLM'], "
            "'model_type': 'seed_oss', 'attention_bias': true, "
            "'attention_out_bias': false, 'mlp_bias': false, "
            "'head_dim': $head_dim, 'rms_norm_eps': 1e-06, "
            "'rope_scaling': {'rope_type': 'default'}, "
            "'rope_theta': 10000000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LATER_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-6,
                  .theta = 10000000},
    },
    {
        .name = "internlm3",
        .config =
            "{'architectures': ['InternLM3ForCausalLM'], "
            "'model_type': 'internlm3', 'bias': false, 'qkv_bias': false, "
            "'head_dim': $head_dim, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 50000000, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LATER_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LATER_SIZES, .kv_heads = 1, .eps = 1e-5,
                  .theta = 50000000},
    },
    {
        .name = "hunyuan-dense",
        .config =
            "{'architectures': ['HunYuanDenseV1ForCausalLM'], "
            "'model_type': 'hunyuan_v1_dense', 'attention_bias': false, "
            "'head_dim': $head_dim, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': {'alpha': 50.0, 'beta_fast': 32, "
            "'beta_slow': 1, 'factor': 1.0, 'mscale': 1.0, "
            "'mscale_all_dim': 1.0, 'type': 'dynamic'}, "
            "'rope_theta': 10000.0, 'use_cla': false, "
            "'use_qk_norm': true, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hunyuan_norms, hf_mlp},
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-5, .theta = 10000,
                  .rope = ORACLE_ROPE_NTK, .factor = 50,
                  .norms_turned = true},
    },
    {
        .name = "hunyuan-moe",
        .config =
            "{'architectures': ['HunYuanMoEV1ForCausalLM'], "
            "'model_type': 'hunyuan_v1_moe', 'attention_bias': false, "
            "'head_dim': $head_dim, 'moe_intermediate_size': [$expert_dim, "
            "$expert_dim, $expert_dim], 'moe_layer_num_skipped': 0, "
            "'moe_topk': [$used, $used, $used], 'num_experts': $experts, "
            "'num_shared_expert': [1, 1, 1], 'rms_norm_eps': 1e-05, "
            "'rope_theta': 10000.0, 'use_cla': false, "
            "'use_mixed_mlp_moe': true, 'use_qk_norm': true, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hunyuan_norms, hunyuan_experts},
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-5, .theta = 10000,
                  .norms_turned = true, .sparse = "1", .n_experts = 6,
                  .n_used = 2, .expert_dim = 84, .shared_dim = 84,
                  .renormalises = true},
    },
    {
        .name = "ernie4.5",
        .config =
            "{'architectures': ['Ernie4_5ForCausalLM'], "
            "'model_type': 'ernie4_5', 'head_dim': $head_dim, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 500000.0, 'use_bias': false, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        LATER_NAMES,
        .bits = LLAMA_BITS,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-5, .theta = 500000,
                  .is_interleaved = true},
    },
    {
        .name = "ernie4.5-moe",
        .config =
            "{'architectures': ['Ernie4_5_MoeForCausalLM'], "
            "'model_type': 'ernie4_5_moe', "
            "'moe_intermediate_size': $expert_dim, 'moe_k': $used, "
            "'moe_layer_end_index': -1, 'moe_layer_interval': 1, "
            "'moe_layer_start_index': 1, 'moe_num_experts': $experts, "
            "'moe_num_shared_experts': 2, 'num_nextn_predict_layers': 1, "
            "'rms_norm_eps': 1e-05, 'rope_theta': 500000.0, "
            "'use_bias': false, " SIZE_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, ernie_experts},
        .bits = LLAMA_BITS | HAS_CORRECTION,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 500000,
                  .is_interleaved = true, .sparse = "011", .n_experts = 6,
                  .n_used = 2, .expert_dim = 36, .shared_dim = 72,
                  .renormalises = true},
    },
    {
        .name = "nemotron",
        .config =
            "{'architectures': ['NemotronForCausalLM'], "
            "'model_type': 'nemotron', 'attention_bias': false, "
            "'bos_token_id': 2, 'eos_token_id': 3, "
            "'hidden_act': 'relu2', 'hidden_size': $dim, "
            "'intermediate_size': $hidden, 'mlp_bias': false, "
            "'max_position_embeddings': $positions, 'norm_eps': 1e-05, "
            "'num_attention_heads': $heads, "
            "'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, "
            "'partial_rotary_factor': 0.5, 'rope_theta': 10000, "
            "'tie_word_embeddings': false, 'vocab_size': $vocab}",
        LATER_NAMES,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_HEAD |
                NORMS_LESS_ONE,
        .shape = {.dim = 72, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 12, .rotary_dim = 6,
                  .vocab = 61, .max_positions = 64, .eps = 1e-5,
                  .norm = ORACLE_LAYER, .activation = oracle_relu2,
                  .theta = 10000},
    },
    {
        .name = "cohere2",
        .config =
            "{'architectures': ['Cohere2ForCausalLM'], "
            "'model_type': 'cohere2', 'attention_bias': false, "
            "'layer_norm_eps': 1e-05, 'layer_switch': 4, "
            "'logit_scale': 0.25, "
            "'order_of_interleaved_layers': 'local_attn_first', "
            "'position_embedding_type': 'rope_gptj', "
            "'rope_scaling': null, 'rope_theta': 50000, 'rotary_pct': 1.0, "
            "'sliding_window': $window, 'sliding_window_pattern': 4, "
            "'use_gated_activation': true, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {cohere_norms, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .is_parallel = true, .activation = oracle_silu,
                  .is_interleaved = true, .theta = 50000,
                  .logit_scale = 0.25, .window = 7, .sliding = "1110",
                  .turning = "1110"},
    },
    {
        /* Two bases, and layers that do not turn. */
        .name = "granite-swa",
        .config =
            "{'architectures': ['GraniteSWAForCausalLM'], "
            "'model_type': 'granite_swa', 'attention_bias': false, "
            "'attention_multiplier': 0.25, 'embedding_multiplier': 6.0, "
            "'layer_rope_theta': [0, 10000, 10000, 10000, 500000], "
            "'layer_types': ['full_attention', 'sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'logits_scaling': 3.0, 'residual_multiplier': 0.5, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'rope_theta': "
            "10000.0, 'rope_type': 'default'}, 'sliding_window': $window, "
            SIZE_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_sinks, hf_mlp},
        .bits = LLAMA_BITS | HAS_SINKS,
        .shape = {.dim = 60, .hidden = 84, .layers = 5, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 500000,
                  .window_theta = 10000, .window = 7, .sliding = "01110",
                  .turning = "01111", .embedding_scale = 6,
                  .residual_scale = 0.5, .logit_scale = 1.0 / 3,
                  .score_scale = 0.25},
    },
    {
        .name = "granitemoe-swa",
        .config =
            "{'architectures': ['GraniteMoeSWAForCausalLM'], "
            "'model_type': 'granitemoe_swa', 'attention_bias': false, "
            "'attention_multiplier': 0.3, 'embedding_multiplier': 5.0, "
            "'layer_rope_theta': [0, 10000, 10000, 0, 10000], "
            "'layer_types': ['full_attention', 'sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'logits_scaling': 2.0, 'num_experts_per_tok': $used, "
            "'num_local_experts': $experts, 'residual_multiplier': 0.5, "
            "'rms_norm_eps': 1e-06, 'shared_intermediate_size': "
            "$shared_dim, 'sliding_window': $window, "
            SIZE_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_sinks, granitemoe_layer},
        .bits = LLAMA_BITS | HAS_SINKS,
        .shape = {.dim = 60, .hidden = 44, .layers = 5, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000,
                  .window = 7, .sliding = "01110", .turning = "01101",
                  .embedding_scale = 5, .residual_scale = 0.5,
                  .logit_scale = 0.5, .score_scale = 0.3, .sparse = "1",
                  .n_experts = 5, .n_used = 2, .expert_dim = 44,
                  .shared_dim = 28, .router = ORACLE_SOFTMAX_CHOSEN},
    },
    {
        .name = "exaone4",
        .config =
            "{'architectures': ['Exaone4ForCausalLM'], "
            "'model_type': 'exaone4', 'head_dim': $head_dim, "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'sliding_attention', 'full_attention'], "
            "'rms_norm_eps': 1e-05, 'rope_scaling': {'factor': 16.0, "
            "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'llama3'}, 'rope_theta': 1000000, "
            "'sliding_window': $window, 'sliding_window_pattern': 'LLLG', "
            SIZE_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms_after, hf_attention, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 16, .low = 1,
                  .high = 4, .original = 32, .window = 7,
                  .sliding = "1110", .turning = "1110"},
    },
    {
        .name = "granitemoe",
        .config =
            "{'architectures': ['GraniteMoeSharedForCausalLM'], "
            "'model_type': 'granitemoeshared', 'attention_bias': false, "
            "'attention_multiplier': 0.1, 'embedding_multiplier': 6.0, "
            "'logits_scaling': 3.0, 'num_experts_per_tok': $used, "
            "'num_local_experts': $experts, 'residual_multiplier': 0.5, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': null, "
            "'rope_theta': 10000, "
            "'shared_intermediate_size': $shared_dim, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, granitemoe_layer},
        .bits = LLAMA_BITS,
        .shape = {.dim = 60, .hidden = 44, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000,
                  .embedding_scale = 6, .residual_scale = 0.5,
                  .logit_scale = 1.0 / 3, .score_scale = 0.1,
                  .sparse = "1", .n_experts = 6, .n_used = 2,
                  .expert_dim = 44, .shared_dim = 52,
                  .router = ORACLE_SOFTMAX_CHOSEN},
    },
    {
        .name = "arcee",
        .config =
            "{'architectures': ['ArceeForCausalLM'], "
            "'model_type': 'arcee', 'attention_bias': false, "
            "'bos_token_id': 1, 'eos_token_id': 2, "
            "'head_dim': $head_dim, 'hidden_act': 'relu2', "
            "'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'max_position_embeddings': $positions, 'mlp_bias': false, "
            "'num_attention_heads': $heads, "
            "'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'rms_norm_eps': 1e-05, "
            "'rope_parameters': {'beta_fast': 32.0, 'beta_slow': 1.0, "
            "'factor': 20.0, 'original_max_position_embeddings': $original, "
            "'rope_theta': 10000.0, 'rope_type': 'yarn'}, "
            "'tie_word_embeddings': false, 'vocab_size': $vocab}",
        LATER_NAMES,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_relu2, .theta = 10000,
                  .rope = ORACLE_ROPE_YARN, .factor = 20, .low = 1,
                  .high = 32, .original = 64,
                  .rope_scale = 1 + 0.1 * 2.995732273553991},
    },
    {
        .name = "glm",
        .config =
            "{'architectures': ['GlmForCausalLM'], 'model_type': 'glm', "
            "'attention_bias': true, 'head_dim': $head_dim, "
            "'partial_rotary_factor': 0.5, 'rms_norm_eps': 1.5625e-07, "
            "'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, glm_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS,
        .shape = {GLM_SIZES, .theta = 10000},
    },
    {
        .name = "glm4",
        .config =
            "{'architectures': ['Glm4ForCausalLM'], 'model_type': 'glm4', "
            "'attention_bias': true, 'head_dim': $head_dim, "
            "'partial_rotary_factor': 0.5, 'rms_norm_eps': 1.5625e-07, "
            "'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {glm4_norms, glm_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_ATTN_POST_NORM |
                HAS_FFN_POST_NORM,
        .shape = {GLM_SIZES, .theta = 10000},
    },
    {
        .name = "kolibri1",
        .config =
            "{'architectures': ['Kolibri1ForCausalLM'], "
            "'model_type': 'kolibri1', 'head_dim': $head_dim, "
            "'hidden_act': 'silu', 'hidden_size': $dim, "
            "'initializer_range': 0.02, 'layer_types': ["
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'max_position_embeddings': $positions, "
            "'moe_intermediate_size': $expert_dim, 'norm_topk_prob': true, "
            "'num_attention_heads': $heads, 'num_experts_per_tok': $used, "
            "'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, "
            "'num_local_experts': $experts, 'rms_norm_eps': 1e-06, "
            "'rope_parameters': {'rope_theta': 10000.0, "
            "'rope_type': 'default'}, "
            "'shared_expert_intermediate_size': $shared_dim, "
            "'sliding_window': $window, 'tie_word_embeddings': false, "
            "'use_cache': true, 'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {hf_attention, kolibri_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM,
        .shape = {LATER_SIZES, .kv_heads = 2, .eps = 1e-6, .theta = 10000,
                  .window = 7, .sliding = "110", .turning = "110",
                  .sparse = "1", .n_experts = 6, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 28,
                  .router = ORACLE_SIGMOID_CHOSEN,
                  .renormalises = true},
    },
    {
        .name = "apertus",
        .config =
            "{'architectures': ['ApertusForCausalLM'], "
            "'model_type': 'apertus', 'attention_bias': false, "
            "'bos_token_id': 1, 'eos_token_id': [2, 60], "
            "'hidden_act': 'xielu', 'mlp_bias': false, 'post_norm': false, "
            "'qk_norm': true, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': {'factor': 8.0, 'high_freq_factor': 4.0, "
            "'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'llama3'}, 'rope_theta': 12000000, "
            "'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'max_position_embeddings': $positions, "
            "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, "
            "'tie_word_embeddings': false, 'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {apertus_layer, hf_attention, hf_mlp},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD | HAS_QK_NORM |
                HAS_XIELU,
        .shape = {.dim = 64, .hidden = 88, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 256, .eps = 1e-5, .theta = 12000000,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 8, .low = 1,
                  .high = 4, .original = 32},
    },
    {
        /* 1.5, whose head lacks what is of images and sounds. */
        .name = "apertus-text",
        .config =
            "{'architectures': ['Apertus1p5TextForCausalLM'], "
            "'attention_bias': false, 'bos_token_id': 1, 'eos_token_id': 2, "
            "'hidden_act': 'xielu', 'hidden_size': $dim, "
            "'intermediate_size': $hidden, 'max_position_embeddings': "
            "$positions, 'model_type': 'apertus1p5_text', "
            "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'output_vocab_size': $vocab, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'factor': 8.0, "
            "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, 'rope_theta': "
            "12000000.0, 'rope_type': 'llama3'}, 'tie_word_embeddings': "
            "false, 'vocab_size': $all_vocab}",
        .frame = hf_frame,
        .layers = {apertus_layer, hf_attention, hf_mlp},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD | HAS_QK_NORM |
                HAS_XIELU,
        .shape = {.dim = 64, .hidden = 88, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .other_vocab = 14, .max_positions = 256, .eps = 1e-5,
                  .theta = 12000000, .rope = ORACLE_ROPE_LLAMA3, .factor = 8,
                  .low = 1, .high = 4, .original = 32},
    },
    {.name = NULL},
};
