/*
 * family_experts.c - Mixtral, Qwen, DeepSeek: experts and latent attention.
 */
#include "config.h"

#include "tests/families/family.h"

#define LN4 1.3862943611198906

#define SIZE_KEYS                                                             \
    "'hidden_act': 'silu', 'hidden_size': $dim, "                             \
    "'num_hidden_layers': $layers, 'num_attention_heads': $heads, "           \
    "'num_key_value_heads': $kv_heads, 'vocab_size': $vocab, "                \
    "'max_position_embeddings': $positions, 'bos_token_id': 1, "              \
    "'eos_token_id': 2, 'initializer_range': 0.02, 'use_cache': true, "       \
    "'intermediate_size': $hidden, "

#define QWEN_KEYS                                                             \
    "'decoder_sparse_step': 1, 'max_window_layers': 28, "                     \
    "'moe_intermediate_size': $expert_dim, 'num_experts': $experts, "         \
    "'num_experts_per_tok': $used, 'output_router_logits': false, "           \
    "'rms_norm_eps': 3e-05, 'rope_theta': 1000000.0, "                        \
    "'router_aux_loss_coef': 0.001, 'use_sliding_window': false, " SIZE_KEYS

#define QWEN3VLMOE                                                            \
    .config = "{'architectures': ['Qwen3VLMoeForConditionalGeneration'], "    \
              "'model_type': 'qwen3_vl_moe', 'text_config': {"                \
              "'model_type': 'qwen3_vl_moe_text', 'head_dim': $head_dim, "    \
              QWEN_KEYS "'norm_topk_prob': false}, "                          \
              "'tie_word_embeddings': false}",                                \
    .frame = hf_frame,                                                        \
    .layers = {hf_norms, hf_attention, fused_experts},                        \
    .shape = {.dim = 36, .hidden = 100, .layers = 2, .heads = 4,              \
              .kv_heads = 2, .head_dim = 16, .vocab = 61,                     \
              .max_positions = 64, .eps = 3e-5, .activation = oracle_silu,    \
              .theta = 1000000, .sparse = "1", .n_experts = 7, .n_used = 3,   \
              .expert_dim = 36, .renormalises = true}

static const struct stored flint_sinks[] = {
    {AS_SINKS, "model.layers.#.self_attn.softmax_offset", 0},
    {AS_END, NULL, 0},
};

#define DEEPSEEK_KEYS                                                         \
    "'attention_bias': false, 'first_k_dense_replace': 1, "                   \
    "'kv_lora_rank': $kv_rank, 'moe_intermediate_size': $expert_dim, "        \
    "'moe_layer_freq': 1, 'n_routed_experts': $experts, "                     \
    "'num_experts_per_tok': $used, 'qk_nope_head_dim': $nope_dim, "          \
    "'qk_rope_head_dim': $rotary_dim, 'v_head_dim': $value_dim, "             \
    "'rms_norm_eps': 1e-06, 'rope_theta': 10000, "                            \
    "'aux_loss_alpha': 0.001, 'ep_size': 1, 'seq_aux': true, "                \
    "'tie_word_embeddings': false, " SIZE_KEYS

#define DEEPSEEK_SHAPE                                                        \
    .vocab = 61, .max_positions = 64, .eps = 1e-6,                            \
    .activation = oracle_silu, .is_interleaved = true, .theta = 10000,        \
    .sparse = "0111"

#define YARN_KEYS                                                             \
    "'rope_scaling': {'beta_fast': 32, 'beta_slow': 1, 'factor': 4, "         \
    "'original_max_position_embeddings': $original, 'type': 'yarn', "

#define YARN_SHAPE                                                            \
    .rope = ORACLE_ROPE_YARN, .factor = 4, .low = 1, .high = 32,              \
    .original = 16

/* What is scaled of the scores, and of cosines and sines. */
#define YARN_MSCALE(m) (1 + 0.1 * (m) * LN4)

#define DEEPSEEK_LISTS                                                        \
    .frame = hf_frame,                                                        \
    .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts}

#define DEEPSEEK3                                                             \
    .config =                                                                 \
        "{'architectures': ['DeepseekV3ForCausalLM'], "                       \
        "'model_type': 'deepseek_v3', 'n_group': $groups, "                   \
        "'n_shared_experts': 1, 'norm_topk_prob': true, "                     \
        "'num_nextn_predict_layers': 0, 'q_lora_rank': $q_rank, "             \
        "'routed_scaling_factor': 2.5, 'scoring_func': 'sigmoid', "           \
        "'topk_group': $groups_used, 'topk_method': 'noaux_tc', "             \
        DEEPSEEK_KEYS YARN_KEYS "'mscale': 1.0, 'mscale_all_dim': 1.0}}",     \
    .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,                           \
    .shape = {DEEPSEEK_SHAPE, .dim = 56, .hidden = 92, .layers = 4,           \
              .heads = 4, .kv_heads = 4, .head_dim = 12 + 6,                  \
              .value_dim = 12, .rotary_dim = 6, .q_rank = 30,                 \
              .kv_rank = 18, YARN_SHAPE,                                      \
              .score_factor = YARN_MSCALE(1.0) * YARN_MSCALE(1.0),            \
              .n_experts = 8, .n_used = 3, .expert_dim = 36,                  \
              .shared_dim = 36, .router = ORACLE_SIGMOID,                     \
              .renormalises = true, .router_scale = 2.5, .n_groups = 4,       \
              .n_groups_used = 2, .group_best = 2}

/* ---- DeepSeek 3 as mlx-lm writes it ---- */

const struct stored mlx_latent_layer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.self_attn.q_a_proj", LAYER(q_a)},
    {AS_NORM, "model.layers.#.self_attn.q_a_layernorm", LAYER(q_a_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.q_b_proj", LAYER(q_b)},
    {AS_LINEAR, "model.layers.#.self_attn.kv_a_proj_with_mqa", LAYER(kv_a)},
    {AS_NORM, "model.layers.#.self_attn.kv_a_layernorm", LAYER(kv_a_norm)},
    {AS_LATENT_KEYS, "model.layers.#.self_attn.embed_q", 0},
    {AS_LATENT_VALUES, "model.layers.#.self_attn.unembed_out", 0},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

/* ---- Names that only Ling has ---- */

static const struct stored ling_frame[] = {
    {AS_EMBEDDING, "model.word_embeddings", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored ling_attention[] = {
    {AS_QKV, "model.layers.#.attention.query_key_value", 0},
    {AS_LINEAR, "model.layers.#.attention.dense", LAYER(o)},
    {AS_NORM, "model.layers.#.attention.query_layernorm", LAYER(q_norm)},
    {AS_NORM, "model.layers.#.attention.key_layernorm", LAYER(k_norm)},
    {AS_END, NULL, 0},
};

static const struct stored ling_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.gate.expert_bias", 0},
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

/* ---- MiMo V2 ---- */

static const struct stored mimo2_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_STRAY, "model.mtp.layers.0.self_attn.qkv_proj.weight", 0},
    {AS_STRAY, "model.mtp.layers.2.self_attn.attention_sink_bias", 0},
    {AS_END, NULL, 0},
};

static const struct stored mimo2_sinks[] = {
    {AS_SINKS, "model.layers.#.self_attn.attention_sink_bias", 0},
    {AS_END, NULL, 0},
};

static const struct stored mimo2_library_sinks[] = {
    {AS_SINKS, "model.layers.#.self_attn.sinks", 0},
    {AS_END, NULL, 0},
};

/* ---- Families ---- */

const struct family expert_families[] = {
    {
        .name = "mixtral",
        .config =
            "{'architectures': ['MixtralForCausalLM'], "
            "'model_type': 'mixtral', 'num_experts_per_tok': $used, "
            "'num_local_experts': $experts, 'output_router_logits': false, "
            "'rms_norm_eps': 1e-05, 'rope_theta': 1000000.0, "
            "'router_aux_loss_coef': 0.02, 'sliding_window': null, "
            SIZE_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, mixtral_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "1", .n_experts = 6, .n_used = 2,
                  .expert_dim = 84, .renormalises = true},
    },
    {
        .name = "phimoe",
        .config =
            "{'architectures': ['PhiMoEForCausalLM'], 'attention_bias': true, "
            "'lm_head_bias': true, 'model_type': 'phimoe', "
            "'num_experts_per_tok': $used, 'num_local_experts': $experts, "
            "'original_max_position_embeddings': $original, "
            "'rms_norm_eps': 1e-05, "
            "'rope_scaling': {'long_factor': [$long], "
            "'long_mscale': 1.2431, 'original_max_position_embeddings': "
            "$original, 'short_factor': [$short], 'short_mscale': 1.2431, "
            "'type': 'longrope'}, 'rope_theta': 10000.0, "
            "'router_jitter_noise': 0.25, 'sliding_window': $positions, "
            SIZE_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, mixtral_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_HEAD_BIAS | HAS_NORM_BIAS |
                HAS_QKV_BIAS | HAS_OUT_BIAS,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 12, .vocab = 61,
                  .max_positions = 128, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .theta = 10000,
                  .rope = ORACLE_ROPE_LONG, .original = 32,
                  .rope_scale = 1.2431, .sparse = "1", .n_experts = 6,
                  .n_used = 2, .expert_dim = 84, .router = ORACLE_NEAR,
                  .reach = 0.5},
    },
    {
        .name = "qwen2moe",
        .config =
            "{'architectures': ['Qwen2MoeForCausalLM'], "
            "'model_type': 'qwen2_moe', 'mlp_only_layers': [], "
            "'norm_topk_prob': false, "
            "'shared_expert_intermediate_size': $shared_dim, " QWEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_SWITCH,
        .shape = {.dim = 60, .hidden = 100, .layers = 3, .heads = 6,
                  .kv_heads = 3, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "1", .n_experts = 6, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 52},
    },
    {
        .name = "qwen2moe-fused",
        .config =
            "{'architectures': ['Qwen2MoeForCausalLM'], "
            "'model_type': 'qwen2_moe', 'mlp_only_layers': [], "
            "'norm_topk_prob': false, "
            "'shared_expert_intermediate_size': $shared_dim, " QWEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, fused_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_SWITCH,
        .shape = {.dim = 60, .hidden = 100, .layers = 3, .heads = 6,
                  .kv_heads = 3, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "1", .n_experts = 5, .n_used = 3,
                  .expert_dim = 28, .shared_dim = 52},
    },
    {
        .name = "qwen3moe",
        .config =
            "{'architectures': ['Qwen3MoeForCausalLM'], "
            "'model_type': 'qwen3_moe', 'attention_bias': false, "
            "'head_dim': $head_dim, 'mlp_only_layers': [], "
            "'norm_topk_prob': true, 'rope_scaling': null, "
            "'sliding_window': null, " QWEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 52, .hidden = 100, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "1", .n_experts = 7, .n_used = 3,
                  .expert_dim = 36, .renormalises = true},
    },
    {
        .name = "qwen3moe-dense-layer",
        .config =
            "{'architectures': ['Qwen3MoeForCausalLM'], "
            "'model_type': 'qwen3_moe', 'attention_bias': false, "
            "'head_dim': $head_dim, 'mlp_only_layers': [1], "
            "'norm_topk_prob': false, 'rope_scaling': null, "
            "'sliding_window': null, " QWEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM,
        .shape = {.dim = 52, .hidden = 100, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 3e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "101", .n_experts = 5, .n_used = 2,
                  .expert_dim = 44},
    },
    {
        .name = "flint",
        .config =
            "{'architectures': ['FlintForCausalLM'], "
            "'model_type': 'flint', 'attention_bias': false, "
            "'head_dim': $head_dim, 'layer_types': ['full_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'mlp_only_layers': [0], 'moe_intermediate_size': $expert_dim, "
            "'norm_topk_prob': true, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'rms_norm_eps': 1e-06, "
            "'rope_theta': 10000.0, 'shared_expert_intermediate_size': "
            "$shared_dim, 'sliding_window': $window, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, flint_sinks, hf_mlp,
                   qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_SINKS,
        .shape = {.dim = 60, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000, .window = 7,
                  .sliding = "0110", .turning = "0110", .sparse = "0111",
                  .n_experts = 8, .n_used = 3, .expert_dim = 36,
                  .shared_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true},
    },
    {
        /* As the library keeps it: of a square the others tell how it lies. */
        .name = "qwen3vlmoe-square",
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM,
        QWEN3VLMOE,
    },
    {
        /* And as its makers do. */
        .name = "qwen3vlmoe-turned",
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | EXPERTS_TURNED,
        QWEN3VLMOE,
    },
    {
        .name = "deepseek2-lite",
        .config =
            "{'architectures': ['DeepseekV2ForCausalLM'], "
            "'model_type': 'deepseek_v2', 'n_group': 1, "
            "'n_shared_experts': 2, 'norm_topk_prob': false, "
            "'q_lora_rank': null, 'routed_scaling_factor': 1.0, "
            "'scoring_func': 'softmax', 'topk_group': 1, "
            "'topk_method': 'greedy', " DEEPSEEK_KEYS YARN_KEYS
            "'mscale': 0.707, 'mscale_all_dim': 0.707}}",
        DEEPSEEK_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {DEEPSEEK_SHAPE, .dim = 60, .hidden = 100, .layers = 4,
                  .heads = 4, .kv_heads = 4, .head_dim = 12 + 8,
                  .value_dim = 14, .rotary_dim = 8, .kv_rank = 22,
                  YARN_SHAPE,
                  .score_factor = YARN_MSCALE(0.707) * YARN_MSCALE(0.707),
                  .n_experts = 6, .n_used = 2, .expert_dim = 28,
                  .shared_dim = 56},
    },
    {
        .name = "deepseek2",
        .config =
            "{'architectures': ['DeepseekV2ForCausalLM'], "
            "'model_type': 'deepseek_v2', 'n_group': $groups, "
            "'n_shared_experts': 1, 'norm_topk_prob': false, "
            "'q_lora_rank': $q_rank, 'routed_scaling_factor': 1.5, "
            "'scoring_func': 'softmax', 'topk_group': $groups_used, "
            "'topk_method': 'group_limited_greedy', " DEEPSEEK_KEYS YARN_KEYS
            "'mscale': 1.0, 'mscale_all_dim': 0.5}}",
        DEEPSEEK_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {DEEPSEEK_SHAPE, .dim = 60, .hidden = 100, .layers = 4,
                  .heads = 4, .kv_heads = 4, .head_dim = 10 + 6,
                  .value_dim = 18, .rotary_dim = 6, .q_rank = 26,
                  .kv_rank = 20, YARN_SHAPE,
                  .score_factor = YARN_MSCALE(0.5) * YARN_MSCALE(0.5),
                  .rope_scale = YARN_MSCALE(1.0) / YARN_MSCALE(0.5),
                  .n_experts = 9, .n_used = 3, .expert_dim = 28,
                  .shared_dim = 28, .router_scale = 1.5, .n_groups = 3,
                  .n_groups_used = 2, .group_best = 1},
    },
    {
        .name = "deepseek3",
        DEEPSEEK3,
        DEEPSEEK_LISTS,
    },
    {
        .name = "deepseek3-mlx",
        DEEPSEEK3,
        .frame = hf_frame,
        .layers = {hf_norms, mlx_latent_layer, hf_mlp, deepseek_experts},
    },
    {
        .name = "mistral4",
        .config =
            "{'architectures': ['Mistral4ForCausalLM'], "
            "'model_type': 'mistral4', 'n_group': $groups, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'q_lora_rank': $q_rank, 'routed_scaling_factor': 1.0, "
            "'topk_group': $groups_used, 'rope_parameters': {'beta_fast': "
            "32.0, 'beta_slow': 1.0, 'factor': 4.0, "
            "'llama_4_scaling_beta': 0.1, 'mscale': 1.0, "
            "'mscale_all_dim': 1.0, 'original_max_position_embeddings': "
            "$original, 'partial_rotary_factor': 0.375, "
            "'rope_theta': 10000.0, 'rope_type': 'yarn', 'type': 'yarn'}, "
            DEEPSEEK_KEYS "'rope_interleave': true}",
        DEEPSEEK_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {DEEPSEEK_SHAPE, .dim = 56, .hidden = 92, .layers = 4,
                  .heads = 4, .kv_heads = 4, .head_dim = 10 + 6,
                  .value_dim = 12, .rotary_dim = 6, .q_rank = 30,
                  .kv_rank = 18, YARN_SHAPE,
                  .score_factor = YARN_MSCALE(1.0) * YARN_MSCALE(1.0),
                  .n_experts = 8, .n_used = 3, .expert_dim = 36,
                  .shared_dim = 36, .renormalises = true, .n_groups = 4,
                  .n_groups_used = 2, .group_best = 2, .growth = 0.1,
                  .growth_period = 16},
    },
    {
        .name = "ling",
        .config =
            "{'architectures': ['BailingMoeForCausalLM'], "
            "'model_type': 'bailing_moe', 'first_k_dense_replace': 0, "
            "'head_dim': $head_dim, 'moe_intermediate_size': $expert_dim, "
            "'multi_gate': false, 'norm_head': false, "
            "'norm_softmax': false, 'norm_topk_prob': true, "
            "'num_experts': $experts, 'num_experts_per_tok': $used, "
            "'num_shared_experts': 2, 'output_router_logits': false, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': null, "
            "'rope_theta': 600000, 'use_bias': false, "
            "'use_qkv_bias': false, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = ling_frame,
        .layers = {hf_norms, ling_attention, ling_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 600000,
                  .sparse = "1", .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 72, .renormalises = true},
    },
    {
        .name = "ling2",
        .config =
            "{'architectures': ['BailingMoeV2ForCausalLM'], "
            "'model_type': 'bailing_moe', 'first_k_dense_replace': 1, "
            "'head_dim': $head_dim, 'moe_intermediate_size': $expert_dim, "
            "'moe_router_enable_expert_bias': true, 'n_group': $groups, "
            "'norm_topk_prob': true, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_nextn_predict_layers': 0, "
            "'num_shared_experts': 1, 'partial_rotary_factor': 0.5, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': null, "
            "'rope_theta': 600000, 'routed_scaling_factor': 2.5, "
            "'score_function': 'sigmoid', 'topk_group': $groups_used, "
            "'use_bias': false, 'use_qk_norm': true, "
            "'use_qkv_bias': false, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = ling_frame,
        .layers = {hf_norms, ling_attention, hf_mlp, ling_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {.dim = 72, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .rotary_dim = 6,
                  .theta = 600000, .sparse = "0111", .n_experts = 8,
                  .n_used = 3, .expert_dim = 36, .shared_dim = 36,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5, .n_groups = 4, .n_groups_used = 2,
                  .group_best = 2},
    },
    {
        /* As its makers have it. */
        .name = "sarvam",
        .config =
            "{'architectures': ['SarvamMoEForCausalLM'], "
            "'model_type': 'sarvam_moe', 'first_k_dense_replace': 1, "
            "'head_dim': $head_dim, 'moe_intermediate_size': $expert_dim, "
            "'moe_router_enable_expert_bias': true, 'n_group': 1, "
            "'norm_topk_prob': true, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_nextn_predict_layers': 0, "
            "'num_shared_experts': 2, 'rms_norm_eps': 1e-06, "
            "'rope_scaling': null, 'rope_theta': 8000000, "
            "'routed_scaling_factor': 2.5, 'score_function': 'sigmoid', "
            "'topk_group': 1, 'use_bias': false, 'use_qk_norm': true, "
            "'use_qkv_bias': false, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = ling_frame,
        .layers = {hf_norms, ling_attention, hf_mlp, ling_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {.dim = 72, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 8000000,
                  .sparse = "0111", .n_experts = 6, .n_used = 2,
                  .expert_dim = 36, .shared_dim = 72,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5},
    },
    {
        .name = "sarvam-latent",
        .config =
            "{'architectures': ['SarvamMLAForCausalLM'], "
            "'model_type': 'sarvam_mla', 'attention_bias': false, "
            "'first_k_dense_replace': 1, 'head_dim': 24, "
            "'kv_lora_rank': $kv_rank, "
            "'moe_intermediate_size': $expert_dim, 'norm_topk_prob': true, "
            "'num_experts': $experts, 'num_experts_per_tok': $used, "
            "'num_shared_experts': 1, "
            "'q_head_dim': $head_dim, 'qk_nope_head_dim': $nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-06, "
            "'rope_scaling': {'beta_fast': 32, 'beta_slow': 1, 'factor': 4.0, "
            "'mscale': 1.0, 'mscale_all_dim': 1.0, "
            "'original_max_position_embeddings': $original, 'type': "
            "'deepseek_yarn'}, 'rope_theta': 10000, "
            "'routed_scaling_factor': 2.5, " SIZE_KEYS
            "'tie_word_embeddings': false, 'v_head_dim': $value_dim}",
        DEEPSEEK_LISTS,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {DEEPSEEK_SHAPE, .dim = 56, .hidden = 92, .layers = 4,
                  .heads = 4, .kv_heads = 4, .head_dim = 10 + 6,
                  .value_dim = 12, .rotary_dim = 6, .kv_rank = 18,
                  YARN_SHAPE,
                  .score_factor = YARN_MSCALE(1.0) * YARN_MSCALE(1.0),
                  .n_experts = 8, .n_used = 3, .expert_dim = 36,
                  .shared_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 2.5},
    },
    {
        /* As its makers keep it, with layers for more tokens. */
        .name = "mimo2",
        .config =
            "{'architectures': ['MiMoV2FlashForCausalLM'], "
            "'add_full_attention_sink_bias': false, "
            "'add_swa_attention_sink_bias': true, 'attention_bias': false, "
            "'attention_chunk_size': 6, 'attention_dropout': 0.0, "
            "'attention_value_scale': 0.707, 'auto_map': {'AutoConfig': "
            "'configuration_mimo_v2_flash.MiMoV2FlashConfig'}, "
            "'head_dim': $head_dim, 'hidden_act': 'silu', "
            "'hidden_size': $dim, 'hybrid_block_size': null, "
            "'hybrid_layer_pattern': [0, 1, 1, 0], "
            "'intermediate_size': $hidden, 'layernorm_epsilon': 1e-06, "
            "'max_position_embeddings': $positions, "
            "'model_type': 'mimo_v2_flash', "
            "'moe_intermediate_size': $expert_dim, "
            "'moe_layer_freq': [0, 1, 1, 1], 'n_group': 1, "
            "'n_routed_experts': $experts, 'n_shared_experts': null, "
            "'norm_topk_prob': true, 'num_attention_heads': $heads, "
            "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $full_heads, "
            "'partial_rotary_factor': 0.334, 'rope_theta': 5000000, "
            "'routed_scaling_factor': null, 'scoring_func': 'sigmoid', "
            "'sliding_window': 6, 'sliding_window_size': 6, "
            "'swa_head_dim': $head_dim, 'swa_num_attention_heads': $heads, "
            "'swa_num_key_value_heads': $kv_heads, 'swa_rope_theta': 10000, "
            "'swa_v_head_dim': $value_dim, 'tie_word_embeddings': false, "
            "'topk_group': 1, 'topk_method': 'noaux_tc', "
            "'v_head_dim': $value_dim, 'vocab_size': $vocab}",
        .frame = mimo2_frame,
        .layers = {hf_norms, hf_attention, mimo2_sinks, hf_mlp,
                   deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_SINKS,
        .shape = {.dim = 60, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 3, .full_kv_heads = 1, .head_dim = 24,
                  .value_dim = 14, .rotary_dim = 8, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 5000000,
                  .window_theta = 10000, .window = 7, .sliding = "0110",
                  .sunk = "0110", .value_scale = 0.707, .sparse = "0111",
                  .n_experts = 8, .n_used = 3, .expert_dim = 36,
                  .router = ORACLE_SIGMOID, .renormalises = true},
    },
    {
        /* As the library keeps it. */
        .name = "mimo2-library",
        .config =
            "{'architectures': ['MiMoV2FlashForCausalLM'], "
            "'attention_bias': false, 'attention_value_scale': null, "
            "'head_dim': $head_dim, 'hidden_act': 'silu', "
            "'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention'], 'max_position_embeddings': $positions, "
            "'mlp_layer_types': ['sparse', 'dense', 'sparse'], "
            "'model_type': 'mimo_v2_flash', "
            "'moe_intermediate_size': $expert_dim, 'n_group': $groups, "
            "'n_routed_experts': $experts, 'norm_topk_prob': true, "
            "'num_attention_heads': $heads, "
            "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $full_heads, 'rms_norm_eps': 1e-05, "
            "'rope_parameters': {'full_attention': {"
            "'partial_rotary_factor': 0.5, 'rope_theta': 1000000.0, "
            "'rope_type': 'default'}, 'sliding_attention': {"
            "'partial_rotary_factor': 0.5, 'rope_theta': 20000.0, "
            "'rope_type': 'default'}}, 'routed_scaling_factor': 2.5, "
            "'sliding_window': $window, 'tie_word_embeddings': false, "
            "'topk_group': $groups_used, 'v_head_dim': $value_dim, "
            "'vocab_size': $vocab}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, mimo2_library_sinks, hf_mlp,
                   deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_SINKS,
        .shape = {.dim = 52, .hidden = 76, .layers = 3, .heads = 8,
                  .kv_heads = 4, .full_kv_heads = 2, .head_dim = 12,
                  .value_dim = 20, .rotary_dim = 6, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .window_theta = 20000, .window = 9, .sliding = "101",
                  .sunk = "101", .sparse = "101", .n_experts = 8,
                  .n_used = 3, .expert_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 2.5, .n_groups = 4,
                  .n_groups_used = 2, .group_best = 2},
    },
    {
        .name = "cohere2moe",
        .config =
            "{'architectures': ['Cohere2MoeForCausalLM'], "
            "'model_type': 'cohere2_moe', 'attention_bias': false, "
            "'expert_selection_fn': 'sigmoid', 'first_k_dense_replace': 1, "
            "'head_dim': $head_dim, 'layer_norm_eps': 1e-05, "
            "'logit_scale': 0.25, 'norm_topk_prob': true, "
            "'num_experts': $experts, 'num_experts_per_tok': $used, "
            "'num_shared_experts': 1, 'prefix_dense_intermediate_size': "
            "$hidden, "
            "'rope_theta': 50000, 'shared_expert_combination_strategy': "
            "'average', 'sliding_window': $window, "
            "'sliding_window_pattern': 3, "
            SIZE_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {cohere_norms, hf_mlp, deepseek_experts},
        .bits = HAS_GATE | HAS_ATTN_NORM,
        .shape = {.dim = 60, .hidden = 44, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .is_parallel = true, .activation = oracle_silu,
                  .is_interleaved = true, .theta = 50000,
                  .logit_scale = 0.25, .window = 7, .sliding = "0110",
                  .turning = "1110", .sparse = "0111", .n_experts = 6,
                  .n_used = 2, .expert_dim = 44, .shared_dim = 44,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 0.5, .shared_scale = 0.5},
    },
    {.name = NULL},
};
