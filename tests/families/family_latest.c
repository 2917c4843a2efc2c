/*
 * family_latest.c - families of 2025 and 2026 that came after those of
 * family_later.c, and the first StarCoder.
 */
#include "config.h"

#include "tests/families/family.h"

#define SIZE_KEYS                                                             \
    "'hidden_size': $dim, 'num_hidden_layers': $layers, "                     \
    "'num_attention_heads': $heads, 'num_key_value_heads': $kv_heads, "       \
    "'vocab_size': $vocab, 'max_position_embeddings': $positions, "           \
    "'bos_token_id': 1, 'eos_token_id': 2, 'initializer_range': 0.02, "       \
    "'use_cache': true, "

#define HIDDEN_KEYS SIZE_KEYS "'intermediate_size': $hidden, "

#define SILU_KEYS HIDDEN_KEYS "'hidden_act': 'silu', "

#define HF_NAMES                                                              \
    .frame = hf_frame, .layers = {hf_norms, hf_attention, hf_mlp}

#define SIZES                                                                 \
    .dim = 60, .hidden = 84, .layers = 4, .heads = 6, .kv_heads = 2,          \
    .vocab = 61, .max_positions = 64

#define SIGMOID                                                               \
    .n_experts = 8, .n_used = 3, .expert_dim = 36,                            \
    .router = ORACLE_SIGMOID, .renormalises = true

#define LATENT_KEYS                                                           \
    "'kv_lora_rank': $kv_rank, 'q_lora_rank': $q_rank, "                      \
    "'qk_nope_head_dim': $nope_dim, 'qk_rope_head_dim': $rotary_dim, "        \
    "'v_head_dim': $value_dim, "

#define LATENT_SHAPE                                                          \
    .dim = 56, .hidden = 92, .layers = 4, .heads = 4, .kv_heads = 4,          \
    .head_dim = 12 + 6, .value_dim = 14, .rotary_dim = 6, .q_rank = 30,       \
    .kv_rank = 18, .vocab = 61, .max_positions = 64,                          \
    .activation = oracle_silu, .is_interleaved = true

#define STARCODER_KEYS                                                        \
    "{'activation_function': 'gelu_pytorch_tanh', "                           \
    "'architectures': ['GPTBigCodeForCausalLM'], "                            \
    "'attention_softmax_in_fp32': true, 'attn_pdrop': 0.1, "                  \
    "'bos_token_id': 0, 'eos_token_id': 0, "                                  \
    "'layer_norm_epsilon': 1e-05, 'model_type': 'gpt_bigcode', "              \
    "'n_embd': $dim, 'n_head': $heads, 'n_inner': $hidden, "                  \
    "'n_layer': $layers, 'n_positions': $positions, "                         \
    "'scale_attention_softmax_in_fp32': true, "                               \
    "'scale_attn_weights': true, 'vocab_size': $vocab, "

#define STARCODER_SHAPE                                                       \
    .dim = 52, .hidden = 100, .layers = 3, .heads = 4, .head_dim = 13,        \
    .vocab = 61, .max_positions = 48, .eps = 1e-5, .norm = ORACLE_LAYER,      \
    .activation = oracle_gelu_tanh, .positions = ORACLE_LEARNED

#define STARCODER_BITS                                                        \
    (HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_QKV_BIAS |            \
     HAS_OUT_BIAS | HAS_MLP_BIAS)

/* ---- Names that only these have ---- */

static const struct stored trinity_layer[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.pre_mlp_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_mlp_layernorm", LAYER(ffn_post_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.gate_proj", LAYER(gate)},
    {AS_END, NULL, 0},
};

static const struct stored trinity_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.router.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.expert_bias", 0},
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

/* As its makers keep it. */
static const struct stored hunyuan3_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.router.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.expert_bias", 0},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.gate_proj", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.up_proj", MLP(up)},
    {AS_EXPERTS, "model.layers.#.mlp.experts.@.down_proj", MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_mlp.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

static const struct stored clova_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_norm1", LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_norm2", LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

static const struct stored exaone_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored neo_attention[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_LINEAR, "transformer.h.#.attn.attention.q_proj", LAYER(q)},
    {AS_LINEAR, "transformer.h.#.attn.attention.k_proj", LAYER(k)},
    {AS_LINEAR, "transformer.h.#.attn.attention.v_proj", LAYER(v)},
    {AS_LINEAR, "transformer.h.#.attn.attention.out_proj", LAYER(o)},
    {AS_NORM, "transformer.h.#.ln_2", LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

static const struct stored exaone_mlp[] = {
    {AS_LINEAR, "transformer.h.#.mlp.c_fc_0", LAYER(mlp.gate)},
    {AS_LINEAR, "transformer.h.#.mlp.c_fc_1", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored neo_mlp[] = {
    {AS_MASK, "transformer.h.#.attn.attention.bias", 0},
    {AS_LINEAR, "transformer.h.#.mlp.c_fc", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* ---- Families ---- */

static const struct stored nanochat_mlp[] = {
    {AS_LINEAR, "model.layers.#.mlp.fc1", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp.fc2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

const struct family latest_families[] = {
    {
        /* GLM 4.7 Flash. */
        .name = "glm4lite",
        .config =
            "{'architectures': ['Glm4MoeLiteForCausalLM'], "
            "'model_type': 'glm4_moe_lite', 'attention_bias': false, "
            "'first_k_dense_replace': 1, 'moe_intermediate_size': "
            "$expert_dim, 'n_group': 1, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'num_nextn_predict_layers': 1, "
            "'partial_rotary_factor': 1.0, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 1000000, "
            "'routed_scaling_factor': 1.8, 'tie_word_embeddings': false, "
            "'topk_group': 1, " LATENT_KEYS SILU_KEYS
            "'topk_method': 'noaux_tc'}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {LATENT_SHAPE, .eps = 1e-5, .latent_eps = 1e-6,
                  .theta = 1000000,
                  .sparse = "0111", SIGMOID, .shared_dim = 36,
                  .router_scale = 1.8},
    },
    {
        /* As the library writes it: a word for each layer. */
        .name = "glm4lite-words",
        .config =
            "{'architectures': ['Glm4MoeLiteForCausalLM'], "
            "'model_type': 'glm4_moe_lite', 'mlp_layer_types': ['dense', "
            "'dense', 'sparse', 'sparse'], 'moe_intermediate_size': "
            "$expert_dim, 'n_group': 1, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'rms_norm_eps': 1e-05, "
            "'rope_interleave': true, 'rope_parameters': {'rope_theta': "
            "1000000.0, 'rope_type': 'default'}, "
            "'routed_scaling_factor': 1.8, 'tie_word_embeddings': false, "
            "'topk_group': 1, " LATENT_KEYS HIDDEN_KEYS
            "'hidden_act': 'silu'}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {LATENT_SHAPE, .eps = 1e-5, .latent_eps = 1e-6,
                  .theta = 1000000,
                  .sparse = "0011", SIGMOID, .shared_dim = 36,
                  .router_scale = 1.8},
    },
    {
        .name = "youtu",
        .config =
            "{'architectures': ['YoutuForCausalLM'], "
            "'model_type': 'youtu', 'attention_bias': false, "
            "'mlp_bias': false, 'rms_norm_eps': 1e-06, "
            "'rope_interleave': true, 'rope_scaling': null, "
            "'rope_theta': 1600000.0, " LATENT_KEYS SILU_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp},
        .bits = LLAMA_BITS,
        .shape = {LATENT_SHAPE, .eps = 1e-6, .theta = 1600000},
    },
    {
        .name = "solar-open",
        .config =
            "{'architectures': ['SolarOpenForCausalLM'], "
            "'model_type': 'solar_open', 'attention_bias': false, "
            "'head_dim': $head_dim, 'moe_intermediate_size': $expert_dim, "
            "'n_group': 1, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'partial_rotary_factor': 1.0, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'beta_fast': 32.0, "
            "'beta_slow': 1.0, 'factor': 2.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_theta': 1000000.0, 'rope_type': 'yarn'}, "
            "'routed_scaling_factor': 1.0, 'tie_word_embeddings': false, "
            "'topk_group': 1, 'hidden_act': 'silu', " SIZE_KEYS
            "'output_router_logits': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .sparse = "1", SIGMOID, .shared_dim = 36,
                  .rope = ORACLE_ROPE_YARN, .factor = 2, .low = 1,
                  .high = 32, .original = 32,
                  .rope_scale = 1 + 0.1 * 0.6931471805599453},
    },
    {
        .name = "exaone-moe",
        .config =
            "{'architectures': ['ExaoneMoeForCausalLM'], "
            "'model_type': 'exaone_moe', 'first_k_dense_replace': 1, "
            "'head_dim': $head_dim, 'layer_types': ['sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'moe_intermediate_size': $expert_dim, 'n_group': 1, "
            "'norm_topk_prob': true, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_shared_experts': 1, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'rope_theta': "
            "1000000, 'rope_type': 'default'}, "
            "'routed_scaling_factor': 2.5, 'scoring_func': 'sigmoid', "
            "'sliding_window': $window, 'sliding_window_pattern': 'LLLG', "
            "'tie_word_embeddings': false, 'topk_group': 1, " SILU_KEYS
            "'topk_method': 'noaux_tc'}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .window = 7, .sliding = "1110", .turning = "1110",
                  .sparse = "0111", SIGMOID, .shared_dim = 36,
                  .router_scale = 2.5},
    },
    {
        .name = "cwm",
        .config =
            "{'architectures': ['CwmForCausalLM'], 'model_type': 'cwm', "
            "'head_dim': $head_dim, 'mlp_bias': false, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': {'factor': 16.0, "
            "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'llama3'}, 'rope_theta': 1000000.0, "
            "'sliding_window': $window, " SILU_KEYS
            "'tie_word_embeddings': false}",
        HF_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 16, .low = 1,
                  .high = 4, .original = 32, .window = 9,
                  .sliding = "0111"},
    },
    {
        .name = "helium",
        .config =
            "{'architectures': ['HeliumForCausalLM'], "
            "'model_type': 'helium', 'attention_bias': false, "
            "'head_dim': $head_dim, 'mlp_bias': false, "
            "'rms_norm_eps': 1e-08, 'rope_theta': 100000.0, " SILU_KEYS
            "'tie_word_embeddings': false}",
        HF_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-8,
                  .activation = oracle_silu, .theta = 100000,
                  .is_interleaved = true},
    },
    {
        /* Gemma 2 without its norms behind. */
        .name = "vaultgemma",
        .config =
            "{'architectures': ['VaultGemmaForCausalLM'], "
            "'model_type': 'vaultgemma', 'attention_bias': false, "
            "'attn_logit_softcapping': 5.0, "
            "'final_logit_softcapping': 8.0, 'head_dim': $head_dim, "
            "'hidden_activation': 'gelu_pytorch_tanh', "
            "'query_pre_attn_scalar': 25, 'rms_norm_eps': 3e-05, "
            "'rope_theta': 10000.0, 'sliding_window': $window, " HIDDEN_KEYS
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention', 'full_attention']}",
        .frame = hf_frame,
        .layers = {vaultgemma_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {SIZES, .head_dim = 14, .eps = 3e-5,
                  .activation = oracle_gelu_tanh, .theta = 10000,
                  .score_scale = 0.2, .score_cap = 5, .logit_cap = 8,
                  .window = 9, .sliding = "10"},
    },
    {
        .name = "jais2",
        .config =
            "{'architectures': ['Jais2ForCausalLM'], "
            "'model_type': 'jais2', 'attention_bias': true, "
            "'head_dim': $head_dim, 'hidden_act': 'relu2', "
            "'layer_norm_eps': 1e-05, 'mlp_bias': true, "
            "'rope_theta': 500000, " HIDDEN_KEYS
            "'tie_word_embeddings': false}",
        HF_NAMES,
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS |
                HAS_QKV_BIAS | HAS_OUT_BIAS | HAS_MLP_BIAS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_relu2, .theta = 500000},
    },
    {
        /* Granite 4 without Mamba: micro, 1B, 350M. */
        .name = "granite4",
        .config =
            "{'architectures': ['GraniteMoeHybridForCausalLM'], "
            "'model_type': 'granitemoehybrid', 'attention_bias': false, "
            "'attention_multiplier': 0.1, 'embedding_multiplier': 6.0, "
            "'layer_types': ['attention', 'attention', 'attention', "
            "'attention'], 'logits_scaling': 3.0, 'mamba_n_heads': 128, "
            "'num_experts_per_tok': 0, 'num_local_experts': 0, "
            "'position_embedding_type': 'rope', "
            "'residual_multiplier': 0.5, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 10000000, "
            "'shared_intermediate_size': $hidden, " SILU_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, granite4_mlp},
        .bits = LLAMA_BITS,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000000,
                  .embedding_scale = 6, .residual_scale = 0.5,
                  .logit_scale = 1.0 / 3, .score_scale = 0.1},
    },
    {
        /* As the library writes it, and nothing turns. */
        .name = "granite4-still",
        .config =
            "{'architectures': ['GraniteMoeHybridForCausalLM'], "
            "'model_type': 'granitemoehybrid', "
            "'attention_multiplier': 0.2, 'embedding_multiplier': 1.0, "
            "'layer_types': ['full_attention', 'full_attention', "
            "'full_attention', 'full_attention'], 'logits_scaling': 1.0, "
            "'num_local_experts': 0, 'position_embedding_type': null, "
            "'residual_multiplier': 1.0, 'rms_norm_eps': 1e-06, "
            "'rope_parameters': {'rope_theta': 10000.0, 'rope_type': "
            "'default'}, 'shared_intermediate_size': $hidden, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, granite4_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000,
                  .turning = "0", .score_scale = 0.2},
    },
    {
        .name = "starcoder",
        .config = STARCODER_KEYS "'multi_query': true}",
        .frame = gpt2_frame,
        .layers = {gpt2_layer},
        .bits = STARCODER_BITS | HAS_HEAD_COPY,
        .shape = {STARCODER_SHAPE, .kv_heads = 1},
    },
    {
        /* Each head with its own key and value beside it. */
        .name = "starcoder-all-heads",
        .config = STARCODER_KEYS "'multi_query': false}",
        .frame = gpt2_frame,
        .layers = {starcoder_layer},
        .bits = STARCODER_BITS,
        .shape = {STARCODER_SHAPE, .kv_heads = 4},
    },
    {
        .name = "deepseek32",
        .config =
            "{'architectures': ['DeepseekV32ForCausalLM'], "
            "'model_type': 'deepseek_v32', 'attention_bias': false, "
            "'first_k_dense_replace': 1, 'index_head_dim': $index_dim, "
            "'index_n_heads': $index_heads, 'index_topk': $index_topk, "
            "'moe_intermediate_size': $expert_dim, 'moe_layer_freq': 1, "
            "'n_group': $groups, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'num_nextn_predict_layers': 1, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': {'beta_fast': 32, "
            "'beta_slow': 1, 'factor': 4, 'mscale': 1.0, "
            "'mscale_all_dim': 1.0, 'original_max_position_embeddings': "
            "$original, 'type': 'yarn'}, 'rope_theta': 10000, "
            "'routed_scaling_factor': 2.5, 'scoring_func': 'sigmoid', "
            "'tie_word_embeddings': false, 'topk_group': $groups_used, "
            LATENT_KEYS HIDDEN_KEYS "'hidden_act': 'silu', "
            "'topk_method': 'noaux_tc'}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts,
                   indexer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {LATENT_SHAPE, .eps = 1e-6, .theta = 10000,
                  .sparse = "0111", SIGMOID, .shared_dim = 36,
                  .router_scale = 2.5, .n_groups = 4, .n_groups_used = 2,
                  .group_best = 2, .rope = ORACLE_ROPE_YARN, .factor = 4,
                  .low = 1, .high = 32, .original = 16,
                  .score_factor = (1 + 0.1 * 1.3862943611198906) *
                                  (1 + 0.1 * 1.3862943611198906),
                  .choosers = "1111", .index_heads = 6, .index_dim = 10,
                  .index_topk = 35, .index_halves = true},
    },
    {
        .name = "trinity",
        .config =
            "{'architectures': ['AfmoeForCausalLM'], 'model_type': 'afmoe', "
            "'global_attn_every_n_layers': 4, 'head_dim': $head_dim, "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'sliding_attention', 'full_attention'], "
            "'load_balance_coeff': 0.001, 'moe_intermediate_size': "
            "$expert_dim, 'mup_enabled': true, 'n_group': 1, "
            "'num_dense_layers': 1, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_shared_experts': 1, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 10000, 'route_norm': true, 'route_scale': 2.826, "
            "'score_func': 'sigmoid', 'sliding_window': $window, "
            "'topk_group': 1, 'use_grouped_mm': true, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_attention, trinity_layer, hf_mlp, trinity_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM | HAS_OUTPUT_GATE |
                SCALES_EMBEDDING,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000, .window = 7,
                  .sliding = "1110", .turning = "1110", .sparse = "0111",
                  SIGMOID, .shared_dim = 36, .router_scale = 2.826},
    },
    {
        .name = "hunyuan3",
        .config =
            "{'architectures': ['HYV3ForCausalLM'], 'model_type': 'hy_v3', "
            "'enable_moe_fp32_combine': true, 'first_k_dense_replace': 1, "
            "'head_dim': $head_dim, 'moe_intermediate_size': $expert_dim, "
            "'moe_router_use_sigmoid': true, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'num_nextn_predict_layers': 0, "
            "'num_shared_experts': 1, 'qk_norm': true, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'rope_theta': "
            "11158840.0, 'rope_type': 'default'}, 'route_norm': true, "
            "'router_scaling_factor': 2.826, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, hunyuan3_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {SIZES, .head_dim = 12, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 11158840,
                  .sparse = "0111", SIGMOID, .shared_dim = 36,
                  .router_scale = 2.826},
    },
    {
        .name = "mellum",
        .config =
            "{'architectures': ['MellumForCausalLM'], "
            "'model_type': 'mellum', 'attention_bias': false, "
            "'head_dim': $head_dim, 'layer_types': ['sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'moe_intermediate_size': $expert_dim, 'norm_topk_prob': true, "
            "'num_experts': $experts, 'num_experts_per_tok': $used, "
            "'rms_norm_eps': 1e-06, 'rope_parameters': {'full_attention': "
            "{'beta_fast': 32.0, 'beta_slow': 1.0, 'factor': 2.0, "
            "'original_max_position_embeddings': $original, 'rope_theta': "
            "500000.0, 'rope_type': 'yarn'}, 'sliding_attention': "
            "{'rope_theta': 500000.0, 'rope_type': 'default'}}, "
            "'sliding_window': $window, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, qwen_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 500000,
                  .window_theta = 500000, .window = 7, .sliding = "1110",
                  .rope = ORACLE_ROPE_YARN, .factor = 2, .low = 1,
                  .high = 32, .original = 32,
                  .rope_scale = 1 + 0.1 * 0.6931471805599453,
                  .sparse = "1", .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .renormalises = true},
    },
    {
        .name = "flex-olmo",
        .config =
            "{'architectures': ['FlexOlmoForCausalLM'], "
            "'model_type': 'flex_olmo', 'attention_bias': false, "
            "'norm_topk_prob': false, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'rms_norm_eps': 1e-06, "
            "'rope_scaling': null, 'rope_theta': 500000, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms_after, hf_attention, qwen_experts},
        .bits = HAS_GATE | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_HEAD | HAS_QK_NORM_WHOLE,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 500000,
                  .sparse = "1", .n_experts = 7, .n_used = 5,
                  .expert_dim = 84},
    },
    {
        .name = "hyperclova",
        .config =
            "{'architectures': ['HyperCLOVAXForCausalLM'], "
            "'model_type': 'hyperclovax', 'attention_bias': false, "
            "'attention_multiplier': 0.1, 'embedding_multiplier': 6.0, "
            "'head_dim': $head_dim, 'logits_scaling': 0.25, "
            "'mlp_bias': false, 'residual_multiplier': 0.5, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 100000000, 'use_post_norm': true, " SILU_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {clova_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_ATTN_POST_NORM |
                HAS_FFN_POST_NORM,
        .shape = {SIZES, .head_dim = 14, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 100000000,
                  .embedding_scale = 6, .residual_scale = 0.5,
                  .logit_scale = 0.25, .score_scale = 0.1},
    },
    {
        .name = "minicpm",
        .config =
            "{'architectures': ['MiniCPMForCausalLM'], "
            "'model_type': 'minicpm', 'dim_model_base': 30, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'scale_depth': 1.4, 'scale_emb': 12, " SILU_KEYS
            "'torch_dtype': 'bfloat16'}",
        HF_NAMES,
        .bits = LLAMA_BITS,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .embedding_scale = 12, .residual_scale = 0.7,
                  .logit_scale = 0.5},
    },
    {
        .name = "minicpm3",
        .config =
            "{'architectures': ['MiniCPM3ForCausalLM'], "
            "'model_type': 'minicpm3', 'attention_bias': false, "
            "'dim_model_base': 28, 'kv_lora_rank': $kv_rank, "
            "'q_lora_rank': $q_rank, 'qk_nope_head_dim': $nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 0.001, "
            "'rope_scaling': {'type': 'longrope', 'long_factor': [$long], "
            "'original_max_position_embeddings': $original, "
            "'short_factor': [$short]}, 'scale_depth': 1.4, "
            "'scale_emb': 12, " SILU_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp},
        .bits = LLAMA_BITS,
        .shape = {.dim = 56, .hidden = 92, .layers = 4, .heads = 4,
                  .kv_heads = 4, .head_dim = 12 + 6, .value_dim = 14,
                  .rotary_dim = 6, .q_rank = 30, .kv_rank = 18,
                  .vocab = 61, .max_positions = 64, .eps = 1e-3,
                  .latent_eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000,
                  .embedding_scale = 12, .residual_scale = 0.7,
                  .logit_scale = 0.5, .rope = ORACLE_ROPE_LONG,
                  .original = 32, .rope_scale = 1.0954451150103321,
                  .short_factors = {1, 1.125, 1.5},
                  .long_factors = {1.25, 2, 4}},
    },
    {
        .name = "exaone3",
        .config =
            "{'architectures': ['ExaoneForCausalLM'], "
            "'model_type': 'exaone', 'activation_function': 'silu', "
            "'attention_dropout': 0.0, 'bos_token_id': 1, "
            "'eos_token_id': 2, 'head_dim': $head_dim, "
            "'hidden_size': $dim, 'intermediate_size': $hidden, "
            "'layer_norm_epsilon': 1e-05, "
            "'max_position_embeddings': $positions, "
            "'num_attention_heads': $heads, "
            "'num_key_value_heads': $kv_heads, 'num_layers': $layers, "
            "'rope_scaling': {'factor': 8.0, 'high_freq_factor': 4.0, "
            "'low_freq_factor': 1.0, 'original_max_position_embeddings': "
            "$original, 'rope_type': 'llama3'}, 'rope_theta': 1000000.0, "
            "'tie_word_embeddings': true, 'vocab_size': $vocab}",
        .frame = exaone_frame,
        .layers = {neo_attention, exaone_mlp},
        .bits = LLAMA_BITS,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1000000,
                  .rope = ORACLE_ROPE_LLAMA3, .factor = 8, .low = 1,
                  .high = 4, .original = 32},
    },
    {
        .name = "deepseek1",
        .config =
            "{'architectures': ['DeepseekForCausalLM'], "
            "'model_type': 'deepseek', 'attention_bias': false, "
            "'aux_loss_alpha': 0.001, 'first_k_dense_replace': 1, "
            "'moe_intermediate_size': $expert_dim, 'moe_layer_freq': 1, "
            "'n_routed_experts': $experts, 'n_shared_experts': 2, "
            "'norm_topk_prob': false, 'num_experts_per_tok': $used, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': null, "
            "'rope_theta': 10000, 'scoring_func': 'softmax', "
            "'seq_aux': true, " SILU_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000,
                  .sparse = "0111", .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 72},
    },
    {
        .name = "nanochat",
        .config =
            "{'architectures': ['NanoChatForCausalLM'], "
            "'model_type': 'nanochat', 'attention_bias': false, "
            "'final_logit_softcapping': 15.0, 'hidden_act': 'relu2', "
            "'rms_norm_eps': 1e-06, 'rope_parameters': {'rope_theta': "
            "10000.0, 'rope_type': 'default'}, " HIDDEN_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_attention, nanochat_mlp},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_EMBEDDING_NORM |
                HAS_PLAIN_NORMS | HAS_HEAD,
        .shape = {SIZES, .head_dim = 10, .eps = 1e-6,
                  .activation = oracle_relu2, .theta = 10000,
                  .turns_back = true, .norms_turned = true,
                  .norms_bare = true, .logit_cap = 15},
    },
    {
        /* As the first models of short stories were. */
        .name = "gpt-neo",
        .config =
            "{'activation_function': 'gelu_new', 'architectures': "
            "['GPTNeoForCausalLM'], 'attention_dropout': 0, "
            "'attention_layers': ['global', 'local', 'global', 'local'], "
            "'attention_types': [[['global', 'local'], 2]], "
            "'bos_token_id': 0, 'eos_token_id': 0, 'hidden_size': $dim, "
            "'intermediate_size': null, 'layer_norm_epsilon': 1e-05, "
            "'max_position_embeddings': $positions, "
            "'model_type': 'gpt_neo', 'num_heads': $heads, "
            "'num_layers': $layers, 'vocab_size': $vocab, "
            "'window_size': $window}",
        .frame = gpt2_frame,
        .layers = {neo_attention, neo_mlp},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS |
                HAS_OUT_BIAS | HAS_MLP_BIAS,
        .shape = {.dim = 52, .hidden = 208, .layers = 4, .heads = 4,
                  .kv_heads = 4, .head_dim = 13, .vocab = 61,
                  .max_positions = 48, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh,
                  .positions = ORACLE_LEARNED, .score_scale = 1,
                  .window = 7, .sliding = "01"},
    },
    {.name = NULL},
};
