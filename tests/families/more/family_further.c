/*
 * family_further.c - families that differ from a Llama in one thing that few
 * others have.
 */
#include "config.h"

#include "tests/families/family.h"

#define SIZE_KEYS                                                             \
    "'hidden_size': $dim, 'num_hidden_layers': $layers, "                     \
    "'num_attention_heads': $heads, 'vocab_size': $vocab, "                   \
    "'bos_token_id': 1, 'eos_token_id': 2, 'initializer_range': 0.02, "       \
    "'intermediate_size': $hidden, 'use_cache': true, "

#define SIZES                                                                 \
    .dim = 60, .hidden = 84, .layers = 3, .heads = 6, .vocab = 61,            \
    .head_dim = 10, .max_positions = 64

/* ---- Names that only these have ---- */

static const struct stored bitnet_layer[] = {
    {AS_NORM, "model.layers.#.self_attn.attn_sub_norm", LAYER(sub_norm)},
    {AS_NORM, "model.layers.#.mlp.ffn_sub_norm", LAYER(mlp.sub_norm)},
    {AS_END, NULL, 0},
};

/* As published: the norm is called by the layer, and the one of a layer without
 * experts is there, too. */
static const struct stored axk1_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_STRAY, "model.layers.0.post_mlp_layernorm.weight", 0},
    {AS_END, NULL, 0},
};

static const struct stored axk1_norms[] = {
    {AS_NORM, "model.layers.#.post_mlp_layernorm", LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

/* As the library computes with it. */
static const struct stored axk1_library_norms[] = {
    {AS_NORM, "model.layers.#.mlp.post_mlp_layernorm", LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

/* As published: queries and gates in one matrix, and gates of norms by other
 * names than the library's. */
static const struct stored axk2_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored axk2_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm.norm", LAYER(attn_norm)},
    {AS_LINEAR, "model.layers.#.input_layernorm.W_down", LAYER(attn_norm_a)},
    {AS_LINEAR, "model.layers.#.input_layernorm.W_up", LAYER(attn_norm_b)},
    {AS_LINEAR, "model.layers.#.post_attention_layernorm.W_down",
     LAYER(ffn_norm_a)},
    {AS_LINEAR, "model.layers.#.post_attention_layernorm.W_up",
     LAYER(ffn_norm_b)},
    {AS_NORM, "model.layers.#.post_attention_layernorm.norm",
     LAYER(ffn_norm)},
    {AS_END, NULL, 0},
};

static const struct stored axk2_attention[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_a_proj", LAYER(q_a)},
    {AS_NORM, "model.layers.#.self_attn.q_a_layernorm", LAYER(q_a_norm)},
    {AS_Q_GATE, "model.layers.#.self_attn.q_b_proj", LAYER(q_b)},
    {AS_LINEAR, "model.layers.#.self_attn.kv_a_proj_with_mqa", LAYER(kv_a)},
    {AS_NORM, "model.layers.#.self_attn.kv_a_layernorm", LAYER(kv_a_norm)},
    {AS_LINEAR, "model.layers.#.self_attn.kv_b_proj", LAYER(kv_b)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

/* As published: sinks and gates of heads by other names than the library's. */
static const struct stored hy4_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_WEIGHT, "model.hc_head.hc_head_fn=", MODEL(hyper.fn)},
    {AS_VECTOR, "model.hc_head.hc_head_base", MODEL(hyper.base)},
    {AS_VECTOR, "model.hc_head.hc_head_scale", MODEL(hyper.scale)},
    {AS_STRAY, "model.layers.2.self_attn.indexer.wk.weight", 0},
    {AS_STRAY, "model.mtp_layers.0.enorm.weight", 0},
    {AS_END, NULL, 0},
};

static const struct stored hy4_layer[] = {
    {AS_WEIGHT, "model.layers.#.hc_attn_layer.hc_pre.hc_fn=",
     LAYER(attn_hyper.fn)},
    {AS_VECTOR, "model.layers.#.hc_attn_layer.hc_pre.hc_base",
     LAYER(attn_hyper.base)},
    {AS_VECTOR, "model.layers.#.hc_attn_layer.hc_pre.hc_scale",
     LAYER(attn_hyper.scale)},
    {AS_WEIGHT, "model.layers.#.hc_mlp_layer.hc_pre.hc_fn=",
     LAYER(ffn_hyper.fn)},
    {AS_VECTOR, "model.layers.#.hc_mlp_layer.hc_pre.hc_base",
     LAYER(ffn_hyper.base)},
    {AS_VECTOR, "model.layers.#.hc_mlp_layer.hc_pre.hc_scale",
     LAYER(ffn_hyper.scale)},
    {AS_LINEAR, "model.layers.#.self_attn.linear_gate", LAYER(gate)},
    {AS_SINKS, "model.layers.#.self_attn.learnable_sink_param", 0},
    {AS_END, NULL, 0},
};

static const struct stored hy4_experts[] = {
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.gate.e_score_correction_bias", 0},
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

static const struct stored qwen_frame[] = {
    {AS_EMBEDDING, "transformer.wte", MODEL(embedding)},
    {AS_NORM, "transformer.ln_f", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored qwen_layer[] = {
    {AS_NORM, "transformer.h.#.ln_1", LAYER(attn_norm)},
    {AS_QKV, "transformer.h.#.attn.c_attn", LAYER(q)},
    {AS_LINEAR, "transformer.h.#.attn.c_proj", LAYER(o)},
    {AS_NORM, "transformer.h.#.ln_2", LAYER(ffn_norm)},
    {AS_LINEAR, "transformer.h.#.mlp.w1", LAYER(mlp.up)},
    {AS_LINEAR, "transformer.h.#.mlp.w2", LAYER(mlp.gate)},
    {AS_LINEAR, "transformer.h.#.mlp.c_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored muse_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_PLAIN_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored muse_gate[] = {
    {AS_LINEAR, "model.layers.#.self_attn.gate_proj", LAYER(gate)},
    {AS_END, NULL, 0},
};

static const struct stored maincoder_mlp[] = {
    {AS_LINEAR, "model.layers.#.feed_forward.gate_proj", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored spark_frame[] = {
    {AS_EMBEDDING, "model.embedding", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored spark_attention[] = {
    {AS_QKV, "model.layers.#.self_attn.q_k_v_proj", 0},
    {AS_LINEAR, "model.layers.#.self_attn.g_proj", LAYER(gate)},
    {AS_LINEAR, "model.layers.#.self_attn.out_proj", LAYER(o)},
    {AS_END, NULL, 0},
};

static const struct stored ouro_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_STRAY, "model.early_exit_gate.weight", 0},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored ouro_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.input_layernorm_2", LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm_2",
     LAYER(ffn_post_norm)},
    {AS_END, NULL, 0},
};

/* With what looks at images, and what chooses for sparse attention. */
static const struct stored minimax3_frame[] = {
    {AS_STRAY, "patch_merge_mlp.linear_1.bias", 0},
    {AS_STRAY, "model.layers.1.self_attn.index_q_proj.weight", 0},
    {AS_STRAY, "model.layers.2.self_attn.index_k_norm.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

#define MOE "model.layers.#.block_sparse_moe."
static const struct stored minimax3_shared[] = {
    {AS_LINEAR, MOE "shared_experts.gate_proj", LAYER(shared.gate)},
    {AS_LINEAR, MOE "shared_experts.up_proj", LAYER(shared.up)},
    {AS_LINEAR, MOE "shared_experts.down_proj", LAYER(shared.down)},
    {AS_END, NULL, 0},
};

#define AXK1_KEYS                                                             \
    "{'architectures': ['AXK1ForCausalLM'], 'hidden_act': 'silu', "           \
    "'kv_lora_rank': $kv_rank, 'max_position_embeddings': $positions, "       \
    "'moe_intermediate_size': $expert_dim, 'n_group': 4, "                    \
    "'n_routed_experts': $experts, 'n_shared_experts': 1, "                   \
    "'norm_topk_prob': true, 'num_experts_per_tok': $used, "                  \
    "'num_key_value_heads': $kv_heads, 'q_lora_rank': $q_rank, "              \
    "'qk_nope_head_dim': $nope_dim, 'qk_rope_head_dim': $rotary_dim, "        \
    "'rms_norm_eps': 1e-06, 'routed_scaling_factor': 2.5, "                   \
    "'tie_word_embeddings': false, 'topk_group': 2, "                         \
    "'v_head_dim': $value_dim, " SIZE_KEYS

#define AXK1_SHAPE                                                            \
    .dim = 56, .hidden = 88, .layers = 4, .heads = 4, .kv_heads = 4,          \
    .head_dim = 12 + 6, .value_dim = 14, .rotary_dim = 6, .q_rank = 30,       \
    .kv_rank = 18, .vocab = 61, .max_positions = 64, .eps = 1e-6,             \
    .activation = oracle_silu, .is_interleaved = true, .theta = 10000,        \
    .n_experts = 8, .n_used = 3, .expert_dim = 36, .shared_dim = 36,          \
    .router = ORACLE_SIGMOID, .renormalises = true, .router_scale = 2.5,      \
    .n_groups = 4, .n_groups_used = 2, .group_best = 2,                       \
    .norms_mixtures = true

/* ---- Families ---- */

const struct family further_families[] = {
    {
        /* Without a word of how its weights are packed: they are as they
         * stand. */
        .name = "bitnet",
        .config =
            "{'architectures': ['BitNetForCausalLM'], "
            "'attention_bias': false, 'attention_dropout': 0.0, "
            "'hidden_act': 'relu2', 'max_position_embeddings': $positions, "
            "'model_type': 'bitnet', 'num_key_value_heads': $kv_heads, "
            "'rms_norm_eps': 1e-05, 'rope_theta': 500000.0, " SIZE_KEYS
            "'tie_word_embeddings': true, 'torch_dtype': 'bfloat16'}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, bitnet_layer},
        .bits = LLAMA_BITS,
        .shape = {SIZES, .kv_heads = 2, .eps = 1e-5,
                  .activation = oracle_relu2, .theta = 500000,
                  .norms_inside = true},
    },
    {
        .name = "axk1",
        .config = AXK1_KEYS
            "'first_k_dense_replace': 1, 'model_type': 'AXK1', "
            "'moe_layer_freq': 1, 'num_nextn_predict_layers': 1, "
            "'rope_theta': 10000.0, 'scoring_func': 'sigmoid', "
            "'topk_method': 'noaux_tc'}",
        .frame = axk1_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts,
                   axk1_norms},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {AXK1_SHAPE, .sparse = "0111"},
    },
    {
        /* As the library says it, with a correction. */
        .name = "axk1-library",
        .config = AXK1_KEYS
            "'mlp_layer_types': ['dense', 'dense', 'sparse', 'sparse'], "
            "'model_type': 'axk1', 'rope_interleave': true, "
            "'rope_parameters': {'rope_theta': 10000.0, "
            "'rope_type': 'default'}}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, deepseek_experts,
                   axk1_library_norms},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,
        .shape = {AXK1_SHAPE, .sparse = "0011"},
    },
    {
        .name = "axk2",
        .config =
            "{'architectures': ['AXK2ForCausalLM'], 'hidden_act': 'silu', "
            "'first_k_dense_replace': 1, 'gated_norm_rank': $norm_rank, "
            "'index_head_dim': $index_dim, 'index_n_heads': $index_heads, "
            "'index_topk': $index_topk, 'kv_lora_rank': $kv_rank, "
            "'max_position_embeddings': $positions, 'model_type': 'axk2', "
            "'moe_intermediate_size': $expert_dim, 'n_group': null, "
            "'n_routed_experts': $experts, 'n_shared_experts': 1, "
            "'norm_topk_prob': true, 'num_experts_per_tok': $used, "
            "'num_key_value_heads': $kv_heads, 'q_lora_rank': $q_rank, "
            "'qk_nope_head_dim': $nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-06, "
            "'rope_theta': 10000.0, 'routed_scaling_factor': 2.5, "
            "'tie_word_embeddings': false, 'topk_group': null, " SIZE_KEYS
            "'v_head_dim': $value_dim}",
        .frame = axk2_frame,
        .layers = {axk2_norms, axk2_attention, hf_mlp, deepseek_experts,
                   indexer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_OUTPUT_GATE,
        .shape = {.dim = 56, .hidden = 88, .layers = 4, .heads = 4,
                  .kv_heads = 4, .head_dim = 12 + 6, .value_dim = 14,
                  .rotary_dim = 6, .q_rank = 30, .kv_rank = 18,
                  .keeps_latents = true, .norm_rank = 11, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu, .is_interleaved = true,
                  .theta = 10000, .n_experts = 8, .n_used = 3,
                  .expert_dim = 36, .shared_dim = 36,
                  .router = ORACLE_SIGMOID, .renormalises = true,
                  .router_scale = 2.5, .sparse = "0111",
                  .choosers = "1111", .index_heads = 4, .index_dim = 12,
                  .index_topk = 31, .index_halves = true},
    },
    {
        .name = "pangu-embedded",
        .config =
            "{'architectures': ['PanguEmbeddedForCausalLM'], 'auto_map': "
            "{'AutoConfig': 'configuration_openpangu_dense."
            "PanguEmbeddedConfig'}, 'bias': true, 'hidden_act': 'silu', "
            "'max_position_embeddings': $positions, 'model_type': "
            "'PanguEmbedded', 'num_key_value_heads': $kv_heads, "
            "'pad_token_id': 0, 'rms_norm_eps': 1e-05, "
            "'rope_theta': 16000000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS | HAS_OUT_BIAS,
        .shape = {SIZES, .kv_heads = 2, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 16e6},
    },
    {
        .name = "maincoder",
        .config =
            "{'architectures': ['MaincoderForCausalLM'], 'head_dim': "
            "$head_dim, 'hidden_act': 'silu', 'intermediate_size_mlp': "
            "$hidden, 'max_position_embeddings': $positions, 'model_type': "
            "'maincoder', 'num_key_value_heads': $kv_heads, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 1000000.0, " SIZE_KEYS
            "'tie_word_embeddings': true, 'use_qk_norm': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, maincoder_mlp},
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 1e6,
                  .is_interleaved = true, .norms_turned = true},
    },
    {
        .name = "spark2_5",
        .config =
            "{'architectures': ['Spark2_5ForCausalLM'], "
            "'attention_bias': false, 'gate_attn_act_mode': 'sigmoid', "
            "'head_dim': $head_dim, 'headwise_attn_output_gate': true, "
            "'hidden_act': 'gelu', 'layer_types': ['sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention'], "
            "'max_position_embeddings': $positions, 'mlp_bias': false, "
            "'model_type': 'spark2_5', 'num_key_value_heads': $kv_heads, "
            "'rms_norm_eps': 1e-06, 'rope_parameters': {'full_attention': "
            "{'partial_rotary_factor': 0.25, 'rope_theta': 5000000.0, "
            "'rope_type': 'default'}, 'sliding_attention': "
            "{'partial_rotary_factor': 1.0, 'rope_theta': 10000.0, "
            "'rope_type': 'default'}}, 'sliding_window': $window, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        .frame = spark_frame,
        .layers = {hf_norms, spark_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_OUTPUT_GATE,
        .shape = {.dim = 56, .hidden = 84, .layers = 4, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .full_rotary_dim = 4,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_gelu, .theta = 5e6,
                  .window_theta = 10000, .window = 7, .sliding = "1110",
                  .gates_heads = true},
    },
    {
        .name = "nanbeige",
        .config =
            "{'architectures': ['NanbeigeForCausalLM'], "
            "'attention_bias': false, 'attention_dropout': 0.0, 'auto_map': "
            "{'AutoConfig': 'configuration_nanbeige.NanbeigeConfig'}, "
            "'early_exit_threshold': 1.0, 'head_dim': $head_dim, "
            "'hidden_act': 'silu', 'max_position_embeddings': $positions, "
            "'model_type': 'nanbeige', 'num_key_value_heads': $kv_heads, "
            "'num_loops': 2, 'pad_token_id': 0, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 70000000.0, " SIZE_KEYS
            "'skip_loop_final_norm': false, 'tie_word_embeddings': false, "
            "'total_ut_steps': 2}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .kv_heads = 3, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 7e7, .again = 1,
                  .norms_again = true},
    },
    {
        .name = "ouro",
        .config =
            "{'architectures': ['OuroForCausalLM'], 'attention_dropout': "
            "0.0, 'auto_map': {'AutoConfig': "
            "'configuration_ouro.OuroConfig'}, 'early_exit_threshold': 1.0, "
            "'head_dim': $head_dim, 'hidden_act': 'silu', 'layer_types': "
            "['full_attention', 'full_attention', 'full_attention'], "
            "'max_position_embeddings': $positions, 'max_window_layers': 28, "
            "'model_type': 'ouro', 'num_key_value_heads': $kv_heads, "
            "'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': "
            "1000000.0, 'sliding_window': null, " SIZE_KEYS
            "'tie_word_embeddings': false, 'total_ut_steps': 4, "
            "'use_sliding_window': false}",
        .frame = ouro_frame,
        .layers = {ouro_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_ATTN_POST_NORM |
                HAS_FFN_POST_NORM,
        .shape = {SIZES, .kv_heads = 6, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 1e6, .again = 3,
                  .norms_again = true},
    },
    {
        .name = "plm",
        .config =
            "{'architectures': ['PLMForCausalLM'], 'attention_bias': false, "
            "'auto_map': {'AutoConfig': 'configuration_plm.PLMConfig'}, "
            "'hidden_act': 'relu2', 'kv_lora_rank': $kv_rank, "
            "'max_position_embeddings': $positions, 'model_type': 'plm', "
            "'num_key_value_heads': $kv_heads, 'q_lora_rank': null, "
            "'qk_nope_head_dim': $nope_dim, 'qk_rope_head_dim': "
            "$rotary_dim, 'rms_norm_eps': 1e-06, 'rope_scaling': null, "
            "'rope_theta': 100000.0, " SIZE_KEYS
            "'tie_word_embeddings': true, 'v_head_dim': $value_dim}",
        .frame = hf_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM,
        .shape = {.dim = 56, .hidden = 88, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 12 + 6, .value_dim = 14,
                  .rotary_dim = 6, .kv_rank = 18, .vocab = 61,
                  .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_relu2, .is_interleaved = true,
                  .theta = 100000},
    },
    {
        .name = "qwen",
        .config =
            "{'architectures': ['QWenLMHeadModel'], 'attn_dropout_prob': "
            "0.0, 'bf16': false, 'emb_dropout_prob': 0.0, 'fp16': false, "
            "'hidden_size': $dim, 'initializer_range': 0.02, "
            "'intermediate_size': $twice_hidden, 'kv_channels': $head_dim, "
            "'layer_norm_epsilon': 1e-06, 'max_position_embeddings': 32768, "
            "'model_type': 'qwen', 'no_bias': true, "
            "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "
            "'onnx_safe': null, 'rotary_emb_base': 10000, "
            "'rotary_pct': 1.0, 'scale_attn_weights': true, "
            "'seq_length': $positions, 'tie_word_embeddings': false, "
            "'tokenizer_class': 'QWenTokenizer', 'use_cache': true, "
            "'use_dynamic_ntk': true, 'use_flash_attn': 'auto', "
            "'use_logn_attn': true, 'vocab_size': $vocab}",
        .frame = qwen_frame,
        .layers = {qwen_layer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS,
        .shape = {SIZES, .kv_heads = 6, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 10000},
    },
    {
        .name = "orion",
        .config =
            "{'architectures': ['OrionForCausalLM'], 'attention_bias': "
            "false, 'hidden_act': 'silu', 'max_position_embeddings': "
            "$positions, 'max_sequence_length': $positions, "
            "'model_type': 'orion', 'num_key_value_heads': $kv_heads, "
            "'pad_token_id': 0, 'pretraining_tp': 1, 'rms_norm_eps': 1e-05, "
            "'rope_scaling': null, 'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_NORM_BIAS,
        .shape = {SIZES, .kv_heads = 3, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .theta = 10000},
    },
    {
        .name = "xverse",
        .config =
            "{'architectures': ['XverseForCausalLM'], 'hidden_act': 'silu', "
            "'max_position_embeddings': $positions, "
            "'max_tokenizer_truncation': 6144, 'model_type': 'xverse', "
            "'pad_token_id': 1, 'rms_norm_eps': 1e-06, "
            "'rope_theta': 500000, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {SIZES, .kv_heads = 6, .eps = 1e-6,
                  .activation = oracle_silu, .theta = 500000},
    },
    {
        .name = "minimax-m3",
        .config =
            "{'architectures': ['MiniMaxM3SparseForConditionalGeneration'], "
            "'model_type': 'minimax_m3_vl', 'text_config': {'architectures': "
            "['MiniMaxM3SparseForCausalLM'], 'dense_intermediate_size': "
            "$hidden, 'head_dim': $head_dim, 'hidden_act': 'swigluoai', "
            "'max_position_embeddings': 4096, 'moe_layer_freq': [0, 1, 1], "
            "'n_shared_experts': 1, 'num_experts_per_tok': $used, "
            "'num_key_value_heads': $kv_heads, 'num_local_experts': "
            "$experts, 'num_mtp_modules': 3, 'partial_rotary_factor': 0.5, "
            "'qk_norm_type': 'per_head', 'rms_norm_eps': 1e-06, "
            "'rope_theta': 5000000, 'rotary_dim': $rotary_dim, "
            "'routed_scaling_factor': 2.0, 'scoring_func': 'sigmoid', "
            "'shared_intermediate_size': $shared_dim, "
            "'sparse_attention_config': {'sparse_attention_freq': [0, 1, 1], "
            "'sparse_block_size': 16, 'sparse_disable_index_value': [0, 1, "
            "1], 'sparse_index_dim': 16, 'sparse_init_block': 0, "
            "'sparse_local_block': 1, 'sparse_num_index_heads': 2, "
            "'sparse_score_type': 'max', 'sparse_topk_blocks': 4, "
            "'use_sparse_attention': true}, 'swiglu_alpha': 1.702, "
            "'swiglu_limit': 1.5, 'use_gemma_norm': true, 'use_qk_norm': "
            "true, 'use_routing_bias': true, 'hidden_size': $dim, "
            "'num_hidden_layers': $layers, 'num_attention_heads': $heads, "
            "'vocab_size': $vocab, 'bos_token_id': 1, 'eos_token_id': 2, "
            "'intermediate_size': $expert_dim, 'tie_word_embeddings': false}, "
            "'tie_word_embeddings': false}",
        .prefix = "language_model.",
        .frame = minimax3_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, minimax_experts,
                   minimax3_shared},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QK_NORM | HAS_CORRECTION |
                NORMS_LESS_ONE,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_silu_steep, .up_limit = 1.5,
                  .up_plus = 1, .theta = 5000000, .sparse = "011",
                  .n_experts = 7, .n_used = 3, .expert_dim = 44,
                  .shared_dim = 52, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 2},
    },
    {
        .name = "hy4",
        .config =
            "{'architectures': ['HYV4ForCausalLM'], 'hidden_act': 'silu', "
            "'hc_eps': 0.001, 'hc_magnitude': 1.5, 'hc_mult': $streams, "
            "'index_head_dim': $index_dim, 'index_n_heads': $index_heads, "
            "'index_topk': $index_topk, 'indexer_types': ['full', 'full', "
            "'shared', 'shared'], 'kv_lora_rank': $kv_rank, "
            "'max_position_embeddings': $positions, "
            "'mlp_layer_types': ['dense', 'sparse', 'sparse', 'sparse'], "
            "'model_type': 'hy_v4', 'moe_intermediate_size': $expert_dim, "
            "'n_group': 1, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'num_key_value_heads': 2, "
            "'num_nextn_predict_layers': 1, 'q_lora_rank': $q_rank, "
            "'qk_nope_head_dim': $nope_dim, "
            "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-05, "
            "'rope_parameters': {'rope_theta': 10000.0, "
            "'rope_type': 'default'}, 'routed_scaling_factor': 2.5, "
            "'swiglu_limit': 0.7, 'tie_word_embeddings': false, "
            "'topk_group': 1, " SIZE_KEYS "'v_head_dim': $value_dim}",
        .frame = hy4_frame,
        .layers = {hf_norms, deepseek_attention, hf_mlp, hy4_layer,
                   hy4_experts, indexer},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_OUTPUT_GATE |
                HAS_SINKS,
        .shape = {.dim = 56, .hidden = 88, .layers = 4, .heads = 4,
                  .kv_heads = 4, .head_dim = 12 + 6, .value_dim = 14,
                  .rotary_dim = 6, .q_rank = 30, .kv_rank = 18, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .latent_eps = 1e-6,
                  .activation = oracle_silu, .up_limit = 0.7,
                  .limits_experts = true, .theta = 10000, .sparse = "0111",
                  .n_experts = 8, .n_used = 3, .expert_dim = 36,
                  .shared_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 2.5, .streams = 4,
                  .hyper = true, .hyper_eps = 0.001, .hyper_gain = 1.5,
                  .hyper_floor = 0.001, .choosers = "1100",
                  .index_heads = 5, .index_dim = 10, .index_topk = 31,
                  .index_last = true},
    },
    {
        /* Layers without a window stand still; those with one say how they
         * turn, in a dangling base, too, which nobody looks at. */
        .name = "cohere_compass",
        .config =
            "{'architectures': ['CohereCompassForConditionalGeneration'], "
            "'model_type': 'cohere_compass', 'text_config': {"
            "'attention_bias': false, 'layer_norm_eps': 1e-05, "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention', 'full_attention'], "
            "'logit_scale': 0.25, 'max_position_embeddings': $positions, "
            "'model_type': 'cohere_compass_text', "
            "'num_key_value_heads': $kv_heads, 'pooling': null, "
            "'rope_parameters': {'full_attention': null, 'rope_theta': 7.0, "
            "'sliding_attention': {'mrope_section': [2, 2, 1], 'rope_theta': "
            "50000.0, 'rope_type': 'default'}}, 'sliding_window': $window, "
            SIZE_KEYS "'tie_word_embeddings': true}, "
            "'tie_word_embeddings': true, 'vision_config': {}}",
        .prefix = "model.language_model.",
        .frame = hf_frame,
        .layers = {cohere_norms, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 4, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .is_parallel = true, .activation = oracle_silu,
                  .theta = 50000, .logit_scale = 0.25, .window = 7,
                  .sliding = "1010", .turning = "1010"},
    },
    {
        .name = "muse-glimmer",
        .config =
            "{'architectures': ['MuseGlimmerForConditionalGeneration'], "
            "'model_type': 'muse_glimmer', 'text_config': {"
            "'attention_bias': false, 'final_logit_softcapping': 20.0, "
            "'head_dim': $head_dim, 'hidden_activation': 'silu', "
            "'layer_rope_theta': [500000.0, 500000.0, 500000.0, 0], "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'sliding_attention', 'full_attention'], "
            "'max_position_embeddings': $positions, "
            "'model_type': 'muse_glimmer_text', "
            "'num_key_value_heads': $kv_heads, 'output_multiplier': 0.25, "
            "'post_norm_eps': 1e-8, 'qk_scale_factor': 1.5, "
            "'rms_norm_eps': 1e-03, 'rope_parameters': {'rope_theta': "
            "500000.0, 'rope_type': 'default'}, 'sliding_window': $window, "
            SIZE_KEYS "'tie_word_embeddings': false}, "
            "'tie_word_embeddings': false, 'vision_config': {}}",
        .prefix = "model.language_model.",
        .frame = muse_frame,
        .layers = {hf_norms_around, hf_attention, muse_gate, hf_mlp},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_ATTN_POST_NORM |
                HAS_FFN_POST_NORM | HAS_OUTPUT_GATE | NORMS_LESS_ONE,
        .shape = {.dim = 52, .hidden = 84, .layers = 4, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .max_positions = 64, .eps = 1e-3, .post_eps = 1e-8,
                  .norms_embedding = true, .norms_all_bare = true,
                  .score_factor = 1.5, .activation = oracle_silu,
                  .theta = 500000, .logit_scale = 0.25, .logit_cap = 20,
                  .window = 7, .sliding = "1110", .turning = "1110"},
    },
    {.name = NULL},
};
