/*
 * family_recurrent.c - the gated delta rule in most layers: Qwen 3 Next and
 * Qwen 3.5, attention with a gate in the others; OLMo Hybrid; Kimi Linear. And
 * short convolutions.
 */
#include "config.h"

#include "tests/families/family.h"

#define DELTA_KEYS                                                            \
    "'attention_bias': false, 'attention_dropout': 0.0, "                     \
    "'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': $head_dim, "           \
    "'hidden_act': 'silu', 'hidden_size': $dim, "                             \
    "'initializer_range': 0.02, 'linear_conv_kernel_dim': $conv_width, "      \
    "'linear_key_head_dim': $delta_key_dim, "                                 \
    "'linear_num_key_heads': $delta_keys, "                                   \
    "'linear_num_value_heads': $delta_values, "                               \
    "'linear_value_head_dim': $delta_value_dim, "                             \
    "'max_position_embeddings': $positions, "                                 \
    "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "           \
    "'num_key_value_heads': $kv_heads, 'rms_norm_eps': 1e-06, "               \
    "'use_cache': true, 'vocab_size': $vocab, "

#define EXPERT_KEYS                                                           \
    "'moe_intermediate_size': $expert_dim, 'num_experts': $experts, "         \
    "'num_experts_per_tok': $used, 'output_router_logits': false, "           \
    "'router_aux_loss_coef': 0.001, "                                         \
    "'shared_expert_intermediate_size': $shared_dim, "

#define MROPE_KEYS                                                            \
    "'rope_parameters': {'mrope_interleaved': true, "                         \
    "'mrope_section': [2, 1, 1], 'partial_rotary_factor': 0.5, "              \
    "'rope_theta': 10000000, 'rope_type': 'default'}, "

#define DELTA_BITS                                                            \
    (LLAMA_BITS | HAS_QK_NORM | HAS_OUTPUT_GATE | NORMS_LESS_ONE)

#define DELTA_SHAPE                                                           \
    .vocab = 61, .max_positions = 64, .eps = 1e-6,                            \
    .activation = oracle_silu, .theta = 1e7, .heads = 4, .kv_heads = 2,       \
    .head_dim = 16, .rotary_dim = 8, .conv_width = 4

/* A state space, as Granite 4 and Bamba name its sizes. */
#define LFM2_SHAPE                                                            \
    .recurrence = ORACLE_CONVOLUTION, .activation = oracle_silu,              \
    .theta = 1e6, .dim = 56, .head_dim = 14, .delta_values = 1,               \
    .delta_value_dim = 56

#define OLMO_HYBRID_KEYS                                                      \
    "'bos_token_id': null, 'eos_token_id': 2, 'hidden_act': 'silu', "         \
    "'hidden_size': $dim, 'intermediate_size': $hidden, "                     \
    "'linear_conv_kernel_dim': $conv_width, 'max_position_embeddings': "      \
    "$positions, 'num_attention_heads': $heads, 'num_hidden_layers': "        \
    "$layers, 'rms_norm_eps': 0.001, 'tie_word_embeddings': false, "          \
    "'use_cache': true, 'vocab_size': $vocab, "

#define OLMO_TURNING_CONFIG                                                   \
    "{'architectures': ['OlmoHybridForCausalLM'], 'model_type': "             \
    "'olmo_hybrid', 'attention_bias': true, 'layer_types': "                  \
    "['full_attention', 'linear_attention', 'linear_attention'], "            \
    "'linear_allow_neg_eigval': false, 'linear_key_head_dim': "               \
    "$delta_key_dim, 'linear_num_key_heads': $delta_keys, "                   \
    "'linear_num_value_heads': $delta_values, 'linear_value_head_dim': "      \
    "$delta_value_dim, 'num_key_value_heads': $kv_heads, " OLMO_HYBRID_KEYS   \
    "'rope_parameters': {'rope_theta': 500000.0, 'rope_type': 'default'}}"

#define OLMO_TURNING_SHAPE                                                    \
    .theta = 500000, .dim = 56, .hidden = 92, .layers = 3, .heads = 4,        \
    .kv_heads = 2, .head_dim = 14, .delta = "011", .after = "100",            \
    .delta_keys = 2, .delta_values = 6, .delta_key_dim = 18,                  \
    .delta_value_dim = 10, .conv_width = 3

#define OLMO_HYBRID_BITS                                                      \
    (LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |                    \
     HAS_QK_NORM_WHOLE | HAS_HEAD)

#define OLMO_HYBRID_SHAPE                                                     \
    .vocab = 61, .max_positions = 64, .eps = 1e-3, .state_eps = 1e-5,         \
    .activation = oracle_silu

static const struct stored lfm3_layer[] = {
    {AS_NORM, "model.layers.#.operator_norm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_operator_norm", LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.ffn_norm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_ffn_norm", LAYER(ffn_post_norm)},
    {AS_KQV, "model.layers.#.conv.in_proj", LAYER(delta)},
    {AS_CONV, "model.layers.#.conv.conv", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.conv.out_proj", LAYER(delta.out)},
    {AS_LINEAR, "model.layers.#.self_attn.g_proj", LAYER(gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.w1", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.feed_forward.w3", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.feed_forward.w2", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

/* As the library computes with it: the norm of the second name stands behind
 * attention in layers that have it. */
static const struct stored olmo_norms[] = {
    {AS_NORM, "model.layers.#.input_layernorm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm",
     LAYER(ffn_post_norm)},
    {AS_CONV, "model.layers.#.linear_attn.conv1d", LAYER(delta)},
    {AS_END, NULL, 0},
};

/* As its makers have it */
static const struct stored olmo_makers_norms[] = {
    {AS_NORM, "model.layers.#.attention_layer_norm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.feedforward_layer_norm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.post_attention_layernorm",
     LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm",
     LAYER(ffn_post_norm)},
    {AS_CONV_PART, "model.layers.#.linear_attn.q_conv1d", 0},
    {AS_CONV_PART, "model.layers.#.linear_attn.k_conv1d", 1},
    {AS_CONV_PART, "model.layers.#.linear_attn.v_conv1d", 2},
    {AS_END, NULL, 0},
};

/* As the library saves it: the makers' names in all layers, and equal parts */
static const struct stored olmo_saved_norms[] = {
    {AS_NORM, "model.layers.#.attention_layer_norm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.feedforward_layer_norm", LAYER(ffn_norm)},
    {AS_NORM, "model.layers.#.feedforward_layer_norm", LAYER(attn_post_norm)},
    {AS_NORM, "model.layers.#.post_feedforward_layernorm",
     LAYER(ffn_post_norm)},
    {AS_CONV_THIRD, "model.layers.#.linear_attn.q_conv1d", 0},
    {AS_CONV_THIRD, "model.layers.#.linear_attn.k_conv1d", 1},
    {AS_CONV_THIRD, "model.layers.#.linear_attn.v_conv1d", 2},
    {AS_END, NULL, 0},
};

static const struct stored olmo_delta_layer[] = {
    {AS_LINEAR, "model.layers.#.linear_attn.q_proj", LAYER(delta.q)},
    {AS_LINEAR, "model.layers.#.linear_attn.k_proj", LAYER(delta.k)},
    {AS_LINEAR, "model.layers.#.linear_attn.v_proj", LAYER(delta.v)},
    {AS_WEIGHT, "model.layers.#.linear_attn.a_proj", LAYER(delta.alpha)},
    {AS_STEPS, "model.layers.#.linear_attn.dt_bias", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.linear_attn.A_log", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.linear_attn.b_proj", LAYER(delta.beta)},
    {AS_LINEAR, "model.layers.#.linear_attn.g_proj", LAYER(delta.gate)},
    {AS_PLAIN_NORM, "model.layers.#.linear_attn.o_norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.linear_attn.o_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

/* Kimi Linear */
static const struct stored kimi_layer[] = {
    {AS_LINEAR, "model.layers.#.self_attn.q_proj", LAYER(delta.q)},
    {AS_LINEAR, "model.layers.#.self_attn.k_proj", LAYER(delta.k)},
    {AS_LINEAR, "model.layers.#.self_attn.v_proj", LAYER(delta.v)},
    {AS_LINEAR, "model.layers.#.self_attn.f_a_proj", LAYER(delta.alpha_a)},
    {AS_WEIGHT, "model.layers.#.self_attn.f_b_proj", LAYER(delta.alpha)},
    {AS_STEPS, "model.layers.#.self_attn.dt_bias", LAYER(delta)},
    {AS_DECAYS_OF_HEADS, "model.layers.#.self_attn.A_log", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.self_attn.b_proj", LAYER(delta.beta)},
    {AS_LINEAR, "model.layers.#.self_attn.g_a_proj", LAYER(delta.gate_a)},
    {AS_LINEAR, "model.layers.#.self_attn.g_b_proj", LAYER(delta.gate)},
    {AS_NORM, "model.layers.#.self_attn.o_norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.self_attn.o_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

/* ... as its makers have the rest, and as mlx-lm has it */
static const struct stored kimi_rest[] = {
    {AS_CONV_PART, "model.layers.#.self_attn.q_conv1d", 0},
    {AS_CONV_PART, "model.layers.#.self_attn.k_conv1d", 1},
    {AS_CONV_PART, "model.layers.#.self_attn.v_conv1d", 2},
    {AS_LINEAR, "model.layers.#.block_sparse_moe.gate", LAYER(router)},
    {AS_CORRECTION,
     "model.layers.#.block_sparse_moe.gate.e_score_correction_bias", 0},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w1", MLP(gate)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w3", MLP(up)},
    {AS_EXPERTS, "model.layers.#.block_sparse_moe.experts.@.w2", MLP(down)},
    {AS_LINEAR, "model.layers.#.block_sparse_moe.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.block_sparse_moe.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.block_sparse_moe.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

static const struct stored mlx_kimi_rest[] = {
    {AS_CONV_LAST, "model.layers.#.self_attn.q_conv.conv", 0},
    {AS_CONV_LAST, "model.layers.#.self_attn.k_conv.conv", 1},
    {AS_CONV_LAST, "model.layers.#.self_attn.v_conv.conv", 2},
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_CORRECTION, "model.layers.#.mlp.e_score_correction_bias", 0},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.gate_proj.weight",
     MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.up_proj.weight",
     MLP(up)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.down_proj.weight",
     MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.up_proj",
     LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_experts.down_proj",
     LAYER(shared.down)},
    {AS_END, NULL, 0},
};

/* GLM 5 next, as published */
static const struct stored glm5next_rest[] = {
    {AS_CONV_PART, "model.layers.#.self_attn.q_conv1d", 0},
    {AS_CONV_PART, "model.layers.#.self_attn.k_conv1d", 1},
    {AS_CONV_PART, "model.layers.#.self_attn.v_conv1d", 2},
    {AS_WEIGHT, "model.layers.#.hc_attn_fn=", LAYER(attn_hyper.fn)},
    {AS_VECTOR, "model.layers.#.hc_attn_base", LAYER(attn_hyper.base)},
    {AS_VECTOR, "model.layers.#.hc_attn_scale", LAYER(attn_hyper.scale)},
    {AS_WEIGHT, "model.layers.#.hc_ffn_fn=", LAYER(ffn_hyper.fn)},
    {AS_VECTOR, "model.layers.#.hc_ffn_base", LAYER(ffn_hyper.base)},
    {AS_VECTOR, "model.layers.#.hc_ffn_scale", LAYER(ffn_hyper.scale)},
    {AS_END, NULL, 0},
};

/* Ling 3 as published: layers of both kinds call their parts alike. */
static const struct stored ling3_frame[] = {
    {AS_EMBEDDING, "model.word_embeddings", MODEL(embedding)},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_LINEAR, "lm_head", MODEL(head)},
    {AS_END, NULL, 0},
};

static const struct stored ling3_attention[] = {
    {AS_LINEAR, "model.layers.#.attention.q_a_proj", LAYER(q_a)},
    {AS_NORM, "model.layers.#.attention.q_a_layernorm", LAYER(q_a_norm)},
    {AS_LINEAR, "model.layers.#.attention.q_b_proj", LAYER(q_b)},
    {AS_LINEAR, "model.layers.#.attention.kv_a_proj_with_mqa", LAYER(kv_a)},
    {AS_NORM, "model.layers.#.attention.kv_a_layernorm", LAYER(kv_a_norm)},
    {AS_LINEAR, "model.layers.#.attention.kv_b_proj", LAYER(kv_b)},
    {AS_LINEAR, "model.layers.#.attention.g_proj", LAYER(gate)},
    {AS_LINEAR, "model.layers.#.attention.dense", LAYER(o)},
    {AS_END, NULL, 0},
};

static const struct stored ling3_layer[] = {
    {AS_LINEAR, "model.layers.#.attention.q_proj", LAYER(delta.q)},
    {AS_LINEAR, "model.layers.#.attention.k_proj", LAYER(delta.k)},
    {AS_LINEAR, "model.layers.#.attention.v_proj", LAYER(delta.v)},
    {AS_WEIGHT, "model.layers.#.attention.f_proj", LAYER(delta.alpha)},
    {AS_STEPS, "model.layers.#.attention.dt_bias", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.attention.A_log", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.attention.b_proj", LAYER(delta.beta)},
    {AS_LINEAR, "model.layers.#.attention.g_proj", LAYER(delta.gate)},
    {AS_CONV_PART, "model.layers.#.attention.q_conv1d", 0},
    {AS_CONV_PART, "model.layers.#.attention.k_conv1d", 1},
    {AS_CONV_PART, "model.layers.#.attention.v_conv1d", 2},
    {AS_NORM, "model.layers.#.attention.o_norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.attention.dense", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

#define LING3_CONFIG                                                          \
    "{'architectures': ['BailingMoeV3ForCausalLM'], 'bos_token_id': null, "   \
    "'eos_token_id': 2, 'first_k_dense_replace': 1, "                         \
    "'gated_attention_proj_granularity_type': 'head_wise', "                  \
    "'head_dim': $delta_key_dim, 'hidden_act': 'silu', 'hidden_size': $dim, " \
    "'intermediate_size': $hidden, 'kda_lower_bound': -5.0, "                 \
    "'kda_safe_gate': true, 'kv_lora_rank': $kv_rank, "                       \
    "'layer_group_size': 3, 'max_position_embeddings': $positions, "          \
    "'model_type': 'bailing_hybrid', 'moe_intermediate_size': $expert_dim, "  \
    "'n_group': $groups, 'no_kda_lora': true, 'norm_topk_prob': true, "       \
    "'num_attention_heads': $heads, 'num_experts': $experts, "                \
    "'num_experts_per_tok': $used, 'num_hidden_layers': $layers, "            \
    "'num_key_value_heads': $heads, 'num_nextn_predict_layers': 1, "          \
    "'num_shared_experts': 1, 'q_lora_rank': $q_rank, "                       \
    "'qk_nope_head_dim': $nope_dim, 'qk_rope_head_dim': $rotary_dim, "        \
    "'rms_norm_eps': 1e-05, 'rope_theta': 6000000.0, "                        \
    "'routed_scaling_factor': 2.5, 'short_conv_kernel_size': $conv_width, "   \
    "'tie_word_embeddings': false, 'topk_group': $groups_used, "              \
    "'v_head_dim': $value_dim, 'vocab_size': $vocab}"

#define KIMI                                                                  \
    .config =                                                                 \
        "{'architectures': ['KimiLinearForCausalLM'], 'bos_token_id': 1, "    \
        "'eos_token_id': 2, 'first_k_dense_replace': 1, 'head_dim': 14, "     \
        "'hidden_act': 'silu', 'hidden_size': $dim, 'intermediate_size': "    \
        "$hidden, 'kv_lora_rank': $kv_rank, 'linear_attn_config': "           \
        "{'full_attn_layers': [3, 5], 'head_dim': $delta_key_dim, "           \
        "'kda_layers': [1, 2, 4], 'num_heads': $delta_values, "               \
        "'short_conv_kernel_size': $conv_width}, 'mla_use_nope': true, "      \
        "'model_max_length': $positions, 'model_type': 'kimi_linear', "       \
        "'moe_intermediate_size': $expert_dim, 'moe_layer_freq': 1, "         \
        "'moe_renormalize': true, 'moe_router_activation_func': 'sigmoid', "  \
        "'num_attention_heads': $heads, 'num_expert_group': 1, "              \
        "'num_experts': $experts, 'num_experts_per_token': $used, "           \
        "'num_hidden_layers': $layers, 'num_key_value_heads': $heads, "       \
        "'num_nextn_predict_layers': 0, 'num_shared_experts': 1, "            \
        "'q_lora_rank': null, 'qk_nope_head_dim': $nope_dim, "                \
        "'qk_rope_head_dim': $rotary_dim, 'rms_norm_eps': 1e-05, "            \
        "'rope_scaling': null, 'rope_theta': 10000.0, "                       \
        "'routed_scaling_factor': 1.5, 'tie_word_embeddings': false, "        \
        "'topk_group': 1, 'use_cache': true, 'use_grouped_topk': true, "      \
        "'v_head_dim': $value_dim, 'vocab_size': $vocab}",                    \
    .frame = hf_frame,                                                        \
    .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION,                           \
    .shape = {MIXED_SHAPE, .activation = oracle_silu, .dim = 56,              \
              .hidden = 92, .layers = 5, .delta = "11010", .turning = "0",    \
              .theta = 10000, .head_dim = 12 + 6, .rotary_dim = 6,            \
              .value_dim = 14, .kv_rank = 22, .latent_eps = 1e-6,             \
              .delta_keys = 4, .delta_values = 4, .delta_key_dim = 20,        \
              .delta_value_dim = 20, .step_rank = 20, .gate_rank = 20,        \
              .key_decays = true, .sigmoid_gates = true, .sparse = "01111",   \
              .n_experts = 6, .n_used = 2, .expert_dim = 36,                  \
              .shared_dim = 36, .router = ORACLE_SIGMOID,                     \
              .renormalises = true, .router_scale = 1.5}

/* As mlx-lm writes Qwen 3.5 */
static const struct stored mlx_delta_layer[] = {
    {AS_STEPS, "model.layers.#.linear_attn.dt_bias", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.linear_attn.A_log", LAYER(delta)},
    {AS_CONV_LAST, "model.layers.#.linear_attn.conv1d", LAYER(delta)},
    {AS_PLAIN_NORM, "model.layers.#.linear_attn.norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.linear_attn.out_proj", LAYER(delta.out)},
    {AS_LINEAR, "model.layers.#.mlp.gate", LAYER(router)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.gate_proj.weight",
     MLP(gate)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.up_proj.weight",
     MLP(up)},
    {AS_EXPERTS_FUSED, "model.layers.#.mlp.switch_mlp.down_proj.weight",
     MLP(down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.gate_proj",
     LAYER(shared.gate)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.up_proj", LAYER(shared.up)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert.down_proj",
     LAYER(shared.down)},
    {AS_LINEAR, "model.layers.#.mlp.shared_expert_gate",
     LAYER(shared_switch)},
    {AS_END, NULL, 0},
};

#define QWEN35MOE                                                             \
    .config = "{'architectures': ['Qwen3_5MoeForCausalLM'], "                 \
              "'model_type': 'qwen3_5_moe_text', 'layer_types': "             \
              "['linear_attention', 'linear_attention', 'full_attention'], "  \
              MROPE_KEYS EXPERT_KEYS DELTA_KEYS                               \
              "'tie_word_embeddings': false}",                                \
    .frame = hf_frame,                                                        \
    .shape = {DELTA_SHAPE, .dim = 52, .layers = 3, .delta = "110",            \
              .delta_keys = 2, .delta_values = 6, .delta_key_dim = 24,        \
              .delta_value_dim = 24, .sparse = "1", .n_experts = 7,           \
              .n_used = 3, .expert_dim = 36, .shared_dim = 44,                \
              .renormalises = true}

/* GLM 5 next: with heads of the delta rule of their own. */
#define GLM5NEXT_FILES                                                        \
    .config =                                                                 \
        "{'architectures': ['Glm5NextForConditionalGeneration'], "            \
        "'model_type': 'glm5_next', 'vision_config': {}, "                    \
        "'text_config': {'hc_eps': 0.001, 'hc_mult': $streams, "              \
        "'hc_sinkhorn_iters': 5, 'hidden_act': 'silu', "                      \
        "'hidden_size': $dim, 'index_head_dim': 16, 'index_kpool': 8, "       \
        "'index_n_heads': 2, 'index_topk': $positions, "                      \
        "'intermediate_size': $hidden, 'kv_lora_rank': $kv_rank, "            \
        "'linear_attn_config': {'gate_lower_bound': -5.0, 'head_dim': "       \
        "$delta_key_dim, 'num_heads': $delta_values, 'safe_gate': true, "     \
        "'short_conv_kernel_size': $conv_width}, "                            \
        "'max_position_embeddings': $positions, 'mlp_layer_types': "          \
        "['dense', 'sparse', 'sparse', 'sparse'], 'model_type': "             \
        "'glm5_next_text', 'moe_intermediate_size': $expert_dim, "            \
        "'n_group': 1, 'n_routed_experts': $experts, "                        \
        "'n_shared_experts': 1, 'norm_topk_prob': true, "                     \
        "'num_attention_heads': $heads, 'num_experts_per_tok': $used, "       \
        "'num_hidden_layers': $layers, 'num_key_value_heads': $heads, "       \
        "'num_nextn_predict_layers': 0, 'q_lora_rank': $q_rank, "             \
        "'qk_nope_head_dim': $nope_dim, 'qk_rope_head_dim': 0, "              \
        "'rms_norm_eps': 1e-05, 'routed_scaling_factor': 2.5, "               \
        "'swiglu_limit': 0.7, 'tie_word_embeddings': false, "                 \
        "'topk_group': 1, 'v_head_dim': $value_dim, "                         \
        "'vocab_size': $vocab}}",                                             \
    .frame = hf_frame,                                                        \
    .layers = {hf_norms, deepseek_attention, hf_mlp, kimi_layer,              \
               glm5next_rest, deepseek_experts},                              \
    .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION

#define GLM5NEXT_SHAPE                                                        \
    MIXED_SHAPE, .activation = oracle_silu, .up_limit = 0.7,                  \
        .dim = 56, .hidden = 92, .layers = 4, .delta = "1110",                \
        .positions = ORACLE_NO_POSITIONS, .head_dim = 16,                     \
        .value_dim = 14, .q_rank = 26, .kv_rank = 22,                         \
        .delta_key_dim = 20, .delta_value_dim = 20, .step_rank = 20,          \
        .gate_rank = 20,                                                      \
        .key_decays = true, .sigmoid_gates = true,                            \
        .decay_floor = 5, .sparse = "0111", .n_experts = 8,                   \
        .n_used = 2, .expert_dim = 36, .shared_dim = 36,                      \
        .router = ORACLE_SIGMOID, .renormalises = true,                       \
        .router_scale = 2.5, .streams = 4, .hyper = true,                     \
        .hyper_rounds = 5, .hyper_eps = 0.001, .hyper_gain = 2,               \
        .hyper_mean = true

const struct family recurrent_families[] = {
    {
        .name = "qwen3next",
        .config =
            "{'architectures': ['Qwen3NextForCausalLM'], "
            "'model_type': 'qwen3_next', 'decoder_sparse_step': 1, "
            "'full_attention_interval': 4, 'intermediate_size': $hidden, "
            "'mlp_only_layers': [1], 'norm_topk_prob': true, "
            "'partial_rotary_factor': 0.5, 'rope_scaling': null, "
            "'rope_theta': 10000000, " EXPERT_KEYS DELTA_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, qwen3next_attention, delta_layer, hf_mlp,
                   qwen_experts},
        .bits = DELTA_BITS | HAS_HEAD | HAS_SWITCH,
        .shape = {DELTA_SHAPE, .dim = 56, .hidden = 92, .layers = 5,
                  .delta = "11101", .delta_keys = 2, .delta_values = 6,
                  .delta_key_dim = 36, .delta_value_dim = 20,
                  .sparse = "10111", .n_experts = 6, .n_used = 2,
                  .expert_dim = 36, .shared_dim = 28, .renormalises = true},
    },
    {
        .name = "qwen3next-sparse",
        .config =
            "{'architectures': ['Qwen3NextForCausalLM'], "
            "'model_type': 'qwen3_next', 'decoder_sparse_step': 1, "
            "'layer_types': ['full_attention', 'linear_attention', "
            "'linear_attention'], 'intermediate_size': $hidden, "
            "'mlp_only_layers': [], 'norm_topk_prob': true, "
            "'rope_parameters': {'partial_rotary_factor': 0.5, "
            "'rope_theta': 10000000, 'rope_type': 'default'}, "
            EXPERT_KEYS DELTA_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, qwen3next_attention, delta_layer, qwen_experts},
        .bits = DELTA_BITS | HAS_HEAD | HAS_SWITCH,
        .shape = {DELTA_SHAPE, .dim = 52, .hidden = 44, .layers = 3,
                  .delta = "011", .delta_keys = 2, .delta_values = 4,
                  .delta_key_dim = 20, .delta_value_dim = 20, .sparse = "1",
                  .n_experts = 5, .n_used = 2, .expert_dim = 28,
                  .shared_dim = 36, .renormalises = true},
    },
    {
        .name = "qwen35",
        .config =
            "{'architectures': ['Qwen3_5ForCausalLM'], "
            "'model_type': 'qwen3_5_text', 'intermediate_size': $hidden, "
            "'layer_types': ['linear_attention', 'full_attention', "
            "'linear_attention', 'full_attention'], " MROPE_KEYS DELTA_KEYS
            "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, qwen35_attention, delta_layer, hf_mlp},
        .bits = DELTA_BITS,
        .shape = {DELTA_SHAPE, .dim = 60, .hidden = 100, .layers = 4,
                  .delta = "10", .delta_keys = 3, .delta_values = 3,
                  .delta_key_dim = 34, .delta_value_dim = 18},
    },
    {
        .name = "qwen35-images",
        .config =
            "{'architectures': ['Qwen3_5ForConditionalGeneration'], "
            "'model_type': 'qwen3_5', 'image_token_id': 7, 'text_config': "
            "{'model_type': 'qwen3_5_text', 'intermediate_size': $hidden, "
            MROPE_KEYS DELTA_KEYS "'tie_word_embeddings': true}, "
            "'tie_word_embeddings': true, 'vision_config': {'depth': 1}}",
        .prefix = "model.language_",
        .frame = qwen35_frame,
        .layers = {hf_norms, qwen35_attention, delta_layer, hf_mlp},
        .bits = DELTA_BITS,
        .shape = {DELTA_SHAPE, .dim = 48, .hidden = 80, .layers = 4,
                  .delta = "1110", .delta_keys = 2, .delta_values = 4,
                  .delta_key_dim = 16, .delta_value_dim = 16},
    },
    {
        .name = "qwen35moe",
        QWEN35MOE,
        .layers = {hf_norms, qwen35_attention, delta_layer, qwen_experts},
        .bits = DELTA_BITS | HAS_HEAD | HAS_SWITCH,
    },
    {
        .name = "qwen35moe-mlx",
        .prefix = "language_model.",
        QWEN35MOE,
        .layers = {hf_norms, qwen35_attention, mlx_delta_layer},
        .bits = (DELTA_BITS | HAS_HEAD | HAS_SWITCH) & ~NORMS_LESS_ONE,
    },
    {
        .name = "kimi-linear",
        KIMI,
        .layers = {hf_norms, deepseek_attention, hf_mlp, kimi_layer,
                   kimi_rest},
    },
    {
        .name = "kimi-linear-mlx",
        KIMI,
        .layers = {hf_norms, mlx_latent_layer, hf_mlp, kimi_layer,
                   mlx_kimi_rest},
    },
    {
        .name = "ling3",
        .config = LING3_CONFIG,
        .frame = ling3_frame,
        .layers = {hf_norms, ling3_attention, hf_mlp, ling3_layer,
                   deepseek_experts},
        .bits = LLAMA_BITS | HAS_HEAD | HAS_CORRECTION | HAS_OUTPUT_GATE,
        .shape = {MIXED_SHAPE, .activation = oracle_silu, .dim = 56,
                  .hidden = 92, .layers = 4, .delta = "1100", .theta = 6e6,
                  .head_dim = 12 + 6, .rotary_dim = 6, .value_dim = 14,
                  .q_rank = 26, .kv_rank = 22, .is_interleaved = true,
                  .gates_heads = true, .delta_keys = 4, .delta_values = 4,
                  .delta_key_dim = 20, .delta_value_dim = 20,
                  .key_decays = true, .sigmoid_gates = true,
                  .decay_floor = 5, .latent_eps = 1e-6, .sparse = "0111",
                  .n_experts = 8, .n_used = 2, .expert_dim = 36,
                  .shared_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 2.5, .n_groups = 4,
                  .n_groups_used = 2, .group_best = 2},
    },
    {
        .name = "glm5-next",
        GLM5NEXT_FILES,
        .shape = {GLM5NEXT_SHAPE, .delta_keys = 3, .delta_values = 3},
    },
    {
        /* As GGUF can say it: as many heads as attention has. */
        .name = "glm5-next-even",
        GLM5NEXT_FILES,
        .shape = {GLM5NEXT_SHAPE, .delta_keys = 4, .delta_values = 4},
    },
    {
        .name = "lfm2",
        .config =
            "{'architectures': ['Lfm2ForCausalLM'], 'model_type': 'lfm2', "
            "'block_auto_adjust_ff_dim': true, 'block_ff_dim': $hidden, "
            "'block_ffn_dim_multiplier': 1.5, 'block_multiple_of': 20, "
            "'conv_L_cache': $conv_width, 'conv_bias': false, "
            "'full_attn_idxs': [2], 'norm_eps': 1e-05, 'rope_theta': "
            "1000000.0, 'tie_embedding': true, " MIXED_KEYS
            "'hidden_act': 'silu'}",
        .frame = lfm2_frame,
        .layers = {lfm2_layer, lfm2_experts},
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {MIXED_SHAPE, LFM2_SHAPE, .hidden = 100, .layers = 4,
                  .delta = "1101"},
    },
    {
        .name = "lfm2-experts",
        .config =
            "{'architectures': ['Lfm2MoeForCausalLM'], 'model_type': "
            "'lfm2_moe', 'conv_L_cache': $conv_width, 'conv_bias': false, "
            "'intermediate_size': $hidden, 'layer_types': ['conv', "
            "'full_attention', 'conv', 'conv'], 'moe_intermediate_size': "
            "$expert_dim, 'norm_eps': 1e-05, 'norm_topk_prob': true, "
            "'num_dense_layers': 1, 'num_experts': $experts, "
            "'num_experts_per_tok': $used, 'rope_theta': 1000000.0, "
            "'routed_scaling_factor': 1.0, 'use_expert_bias': true, "
            MIXED_KEYS "'tie_word_embeddings': true}",
        .frame = lfm2_frame,
        .layers = {lfm2_layer, lfm2_experts},
        .bits = LLAMA_BITS | HAS_QK_NORM | HAS_CORRECTION,
        .shape = {MIXED_SHAPE, LFM2_SHAPE, .hidden = 92, .layers = 4,
                  .delta = "1011", .sparse = "0111", .n_experts = 6,
                  .n_used = 2, .expert_dim = 36, .router = ORACLE_SIGMOID,
                  .renormalises = true},
    },
    {
        .name = "lfm3",
        .config =
            "{'architectures': ['Lfm3ForCausalLM'], 'model_type': 'lfm3', "
            "'attention_bias': false, 'conv_L_cache': $conv_width, "
            "'conv_bias': false, 'head_dim': $head_dim, "
            "'intermediate_size': $hidden, 'layer_types': ['conv', "
            "'sliding_attention', 'full_attention', 'conv'], "
            "'norm_eps': 1e-05, 'rope_parameters': {'full_attention': "
            "{'partial_rotary_factor': 0.5, 'rope_theta': 1000000.0, "
            "'rope_type': 'proportional'}, 'sliding_attention': "
            "{'rope_theta': 10000.0, 'rope_type': 'default'}}, "
            "'sliding_window': $window, 'use_attention_gate': true, "
            "'use_sandwich_norm': true, " MIXED_KEYS
            "'hidden_act': 'silu'}",
        .frame = lfm2_frame,
        .layers = {hf_attention, lfm3_layer},
        .bits = LLAMA_BITS | HAS_QK_NORM | HAS_ATTN_POST_NORM |
                HAS_FFN_POST_NORM | HAS_OUTPUT_GATE,
        .shape = {MIXED_SHAPE, LFM2_SHAPE, .hidden = 92, .layers = 4,
                  .delta = "1001", .window = 7, .sliding = "0100",
                  .window_theta = 10000, .full_part = 0.5,
                  .gates_heads = true},
    },
    {
        .name = "olmo_hybrid",
        .config =
            "{'architectures': ['OlmoHybridForCausalLM'], 'model_type': "
            "'olmo_hybrid', 'linear_allow_neg_eigval': true, "
            OLMO_HYBRID_KEYS "'num_key_value_heads': null, "
            "'rope_parameters': {'rope_theta': null, 'rope_type': "
            "'default'}}",
        .frame = hf_frame,
        .layers = {olmo_makers_norms, hf_attention, olmo_delta_layer, hf_mlp},
        .bits = OLMO_HYBRID_BITS,
        .shape = {OLMO_HYBRID_SHAPE, .positions = ORACLE_NO_POSITIONS,
                  .dim = 80, .hidden = 100, .layers = 3, .heads = 5,
                  .kv_heads = 5, .head_dim = 16, .delta = "110",
                  .after = "001", .beta_scale = 2, .delta_keys = 5,
                  .delta_values = 5, .delta_key_dim = 12,
                  .delta_value_dim = 24, .conv_width = 4},
    },
    {
        .name = "olmo_hybrid-turning",
        .config = OLMO_TURNING_CONFIG,
        .frame = hf_frame,
        .layers = {olmo_saved_norms, hf_attention, olmo_delta_layer, hf_mlp},
        .bits = OLMO_HYBRID_BITS | HAS_QKV_BIAS | HAS_OUT_BIAS,
        .shape = {OLMO_HYBRID_SHAPE, OLMO_TURNING_SHAPE},
    },
    {
        .name = "olmo_hybrid-library",
        .config = OLMO_TURNING_CONFIG,
        .frame = hf_frame,
        .layers = {olmo_norms, hf_attention, olmo_delta_layer, hf_mlp},
        .bits = OLMO_HYBRID_BITS | HAS_QKV_BIAS | HAS_OUT_BIAS,
        .shape = {OLMO_HYBRID_SHAPE, OLMO_TURNING_SHAPE},
    },
    {.name = NULL},
};
