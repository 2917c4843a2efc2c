/*
 * family_linear.c - families of which most layers have attention without a
 * softmax, and no delta rule.
 */
#include "config.h"

#include "tests/families/family.h"

/* ---- Names ---- */

static const struct stored lightning_layer[] = {
    {AS_DELTA_QKV_BY_HEAD, "model.layers.#.self_attn.qkv_proj", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.self_attn.output_gate", LAYER(delta.gate)},
    {AS_NORM, "model.layers.#.self_attn.norm", LAYER(delta.norm)},
    {AS_LINEAR, "model.layers.#.self_attn.out_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

static const struct stored griffin_layer[] = {
    {AS_NORM, "model.layers.#.temporal_pre_norm", LAYER(attn_norm)},
    {AS_NORM, "model.layers.#.channel_pre_norm", LAYER(ffn_norm)},
    {AS_LINEAR, "model.layers.#.temporal_block.q_proj", LAYER(q)},
    {AS_LINEAR, "model.layers.#.temporal_block.k_proj", LAYER(k)},
    {AS_LINEAR, "model.layers.#.temporal_block.v_proj", LAYER(v)},
    {AS_LINEAR, "model.layers.#.temporal_block.o_proj", LAYER(o)},
    {AS_LINEAR, "model.layers.#.temporal_block.linear_x", LAYER(delta.v)},
    {AS_LINEAR, "model.layers.#.temporal_block.linear_y", LAYER(delta.gate)},
    {AS_LINEAR, "model.layers.#.temporal_block.linear_out", LAYER(delta.out)},
    {AS_CONV, "model.layers.#.temporal_block.conv_1d", LAYER(delta)},
    {AS_DECAYS, "model.layers.#.temporal_block.rg_lru.recurrent_param",
     LAYER(delta)},
    {AS_BLOCKS, "model.layers.#.temporal_block.rg_lru.recurrent_gate",
     LAYER(delta.alpha)},
    {AS_BLOCKS, "model.layers.#.temporal_block.rg_lru.input_gate",
     LAYER(delta.beta)},
    {AS_LINEAR, "model.layers.#.mlp_block.gate_proj", LAYER(mlp.gate)},
    {AS_LINEAR, "model.layers.#.mlp_block.up_proj", LAYER(mlp.up)},
    {AS_LINEAR, "model.layers.#.mlp_block.down_proj", LAYER(mlp.down)},
    {AS_END, NULL, 0},
};

static const struct stored griffin_frame[] = {
    {AS_EMBEDDING, "model.embed_tokens", 0},
    {AS_NORM, "model.final_norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

/* ---- Families ---- */

#define LIGHTNING_KEYS                                                        \
    "'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, "        \
    "'head_dim': $head_dim, 'hidden_act': 'silu', 'hidden_size': $dim, "      \
    "'intermediate_size': $expert_dim, 'max_position_embeddings': "           \
    "$positions, 'num_attention_heads': $heads, 'num_experts_per_tok': "      \
    "$used, 'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, " \
    "'num_local_experts': $experts, 'output_router_logits': false, "          \
    "'router_aux_loss_coef': 0.001, 'router_jitter_noise': 0.0, "             \
    "'sliding_window': null, 'tie_word_embeddings': false, "                  \
    "'vocab_size': $vocab"

#define LIGHTNING_SHAPE                                                       \
    .vocab = 61, .max_positions = 64, .activation = oracle_silu,              \
    .theta = 10000000, .adds_to_normed = true,                                \
    .recurrence = ORACLE_LIGHTNING, .state_eps = 1e-6, .sparse = "1",         \
    .renormalises = true

const struct family linear_families[] = {
    {
        .name = "minimax01",
        .config =
            "{'architectures': ['MiniMaxForCausalLM'], 'model_type': "
            "'minimax', 'block_size': 16, 'full_attn_alpha_factor': 1.5, "
            "'full_attn_beta_factor': 0.75, 'layer_types': "
            "['linear_attention', 'linear_attention', 'full_attention', "
            "'linear_attention'], 'linear_attn_alpha_factor': 2.0, "
            "'linear_attn_beta_factor': 1.25, 'mlp_alpha_factor': 1.75, "
            "'mlp_beta_factor': 0.5, 'rms_norm_eps': 1e-05, 'rope_theta': "
            "10000000, " LIGHTNING_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, lightning_layer, mixtral_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LIGHTNING_SHAPE, .eps = 1e-5, .dim = 56, .layers = 4,
                  .heads = 6, .kv_heads = 3, .head_dim = 12, .delta = "1101",
                  .delta_keys = 6, .delta_values = 6, .delta_key_dim = 12,
                  .delta_value_dim = 12, .n_experts = 6, .n_used = 2,
                  .expert_dim = 36, .keeps = {1.5, 2, 1.75},
                  .adds = {0.75, 1.25, 0.5}},
    },
    {
        /* As its makers have it: half of a head turns, and one scale. */
        .name = "minimax01-makers",
        .config =
            "{'architectures': ['MiniMaxText01ForCausalLM'], 'model_type': "
            "'minimax_text_01', 'attn_type_list': [0, 1, 0], "
            "'layernorm_full_attention_alpha': 2.5, "
            "'layernorm_full_attention_beta': 1.0, "
            "'layernorm_linear_attention_alpha': 2.5, "
            "'layernorm_linear_attention_beta': 1.0, 'layernorm_mlp_alpha': "
            "2.5, 'layernorm_mlp_beta': 1.0, 'postnorm': true, "
            "'rms_norm_eps': 1e-06, 'rope_theta': 10000000, 'rotary_dim': "
            "$rotary_dim, 'shared_intermediate_size': 0, "
            "'shared_moe_mode': 'sigmoid', " LIGHTNING_KEYS "}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, lightning_layer, mixtral_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LIGHTNING_SHAPE, .eps = 1e-6, .dim = 64, .layers = 3,
                  .heads = 4, .kv_heads = 2, .head_dim = 16, .rotary_dim = 8,
                  .delta = "101", .delta_keys = 4, .delta_values = 4,
                  .delta_key_dim = 16, .delta_value_dim = 16, .n_experts = 5,
                  .n_used = 2, .expert_dim = 32, .keeps = {2.5, 2.5, 2.5}},
    },
    {
        /* A window that is shorter than the text; wider states than streams,
         * and the factor of embeddings is a bfloat16: 8 of 64. */
        .name = "recurrent_gemma",
        .config =
            "{'architectures': ['RecurrentGemmaForCausalLM'], "
            "'attention_bias': false, 'attention_dropout': 0.0, "
            "'attention_window_size': $window, 'block_types': ['recurrent', "
            "'recurrent', 'attention'], 'bos_token_id': 2, 'conv1d_width': "
            "$conv_width, 'eos_token_id': 1, 'head_dim': $head_dim, "
            "'hidden_activation': 'gelu_pytorch_tanh', 'hidden_size': $dim, "
            "'intermediate_size': $twice_hidden, 'logits_soft_cap': 4.0, "
            "'lru_width': $lru_width, 'model_type': 'recurrent_gemma', "
            "'num_attention_heads': $heads, 'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, 'partial_rotary_factor': 0.5, "
            "'rms_norm_eps': 1e-06, 'rope_theta': 10000.0, "
            "'tie_word_embeddings': true, 'vocab_size': $vocab, "
            "'w_init_variance_scale': 0.01}",
        .frame = griffin_frame,
        .layers = {griffin_layer},
        .bits = LLAMA_BITS | NORMS_LESS_ONE | HAS_OUT_BIAS | HAS_MLP_BIAS |
                SCALES_EMBEDDING,
        .shape = {.vocab = 61, .max_positions = 64, .eps = 1e-6,
                  .activation = oracle_gelu_tanh, .theta = 10000, .dim = 64,
                  .hidden = 92, .layers = 5, .heads = 4, .kv_heads = 1,
                  .head_dim = 16, .rotary_dim = 8, .window = 9,
                  .sliding = "1", .logit_cap = 4, .delta = "110",
                  .recurrence = ORACLE_LRU, .delta_values = 4,
                  .delta_value_dim = 18, .delta_key_dim = 1,
                  .conv_width = 4, .has_conv_bias = true},
    },
    {.name = NULL},
};
