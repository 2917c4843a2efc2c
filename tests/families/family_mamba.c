/*
 * family_mamba.c - the state space of Mamba 2, alone or beside attention, and
 * of Mamba 1.
 */
#include "config.h"

#include "tests/families/family.h"

#define MAMBA_KEYS                                                            \
    "'mamba_chunk_size': 256, 'mamba_d_conv': "                                \
    "$conv_width, 'mamba_d_state': $delta_key_dim, 'mamba_n_groups': "        \
    "$delta_keys, 'mamba_n_heads': $delta_values, 'mamba_proj_bias': false, "

#define NEMOTRON_KEYS                                                         \
    "'attention_bias': false, 'chunk_size': 128, 'conv_kernel': "             \
    "$conv_width, 'expand': 2, 'head_dim': $head_dim, 'intermediate_size': "  \
    "$hidden, 'layer_norm_epsilon': 1e-05, 'mamba_head_dim': "                \
    "$delta_value_dim, 'mamba_hidden_act': 'silu', 'mamba_num_heads': "       \
    "$delta_values, 'mamba_proj_bias': false, 'mlp_bias': false, "            \
    "'mlp_hidden_act': 'relu2', 'n_groups': $delta_keys, 'ssm_state_size': "  \
    "$delta_key_dim, 'time_step_limit': [0.0, Infinity], 'time_step_min': "   \
    "0.001, 'use_bias': false, 'use_conv_bias': true, " MIXED_KEYS

#define NEMOTRON_SHAPE                                                        \
    .recurrence = ORACLE_STATE_SPACE,                                         \
    .activation = oracle_relu2, .positions = ORACLE_NO_POSITIONS, .dim = 56,  \
    .hidden = 84, .head_dim = 12, .delta_keys = 2, .delta_values = 6,         \
    .delta_key_dim = 18, .delta_value_dim = 10, .has_conv_bias = true

#define MAMBA1_KEYS                                                           \
    "'bos_token_id': 0, 'conv_kernel': $conv_width, 'eos_token_id': 0, "      \
    "'hidden_act': 'silu', 'hidden_size': $dim, 'intermediate_size': "        \
    "$delta_values, 'layer_norm_epsilon': 1e-05, 'num_hidden_layers': "       \
    "$layers, 'residual_in_fp32': true, 'state_size': $delta_key_dim, "       \
    "'time_step_rank': $step_rank, 'use_bias': false, 'use_conv_bias': "      \
    "true, 'vocab_size': $vocab, "

#define MAMBA1_SHAPE                                                          \
    .recurrence = ORACLE_SELECTIVE, .positions = ORACLE_NO_POSITIONS,         \
    .delta = "1", .halves = "m", .bare_states = true, .delta_keys = 1,        \
    .delta_value_dim = 1

#define JAMBA_KEYS                                                            \
    "'architectures': ['JambaForCausalLM'], 'hidden_act': 'silu', "           \
    "'intermediate_size': $hidden, 'mamba_conv_bias': true, "                 \
    "'mamba_d_conv': $conv_width, 'mamba_d_state': $delta_key_dim, "          \
    "'mamba_dt_rank': $step_rank, 'mamba_proj_bias': false, "                 \
    "'model_type': 'jamba', 'num_experts': $experts, "                        \
    "'num_experts_per_tok': $used, 'rms_norm_eps': 1e-05, " MIXED_KEYS

#define JAMBA_SHAPE                                                           \
    .recurrence = ORACLE_SELECTIVE, .positions = ORACLE_NO_POSITIONS,         \
    .activation = oracle_silu, .has_conv_bias = true, .bare_states = true,    \
    .delta_keys = 1, .delta_value_dim = 1, .step_eps = 1e-5,                  \
    .step_weights = true

static const struct stored mamba1_layer[] = {
    {AS_NORM, "backbone.layers.#.norm", LAYER(attn_norm)},
    {AS_VALUES_GATES, "backbone.layers.#.mixer.in_proj", LAYER(delta)},
    {AS_CONV, "backbone.layers.#.mixer.conv1d", LAYER(delta)},
    {AS_OF_VALUES, "backbone.layers.#.mixer.x_proj", LAYER(delta)},
    {AS_LINEAR, "backbone.layers.#.mixer.dt_proj", LAYER(delta.alpha)},
    {AS_DECAYS, "backbone.layers.#.mixer.A_log", LAYER(delta)},
    {AS_SKIP, "backbone.layers.#.mixer.D", LAYER(delta)},
    {AS_LINEAR, "backbone.layers.#.mixer.out_proj", LAYER(delta.out)},
    {AS_END, NULL, 0},
};

static const struct stored jamba_layer[] = {
    {AS_VALUES_GATES, "model.layers.#.mamba.in_proj", LAYER(delta)},
    {AS_CONV, "model.layers.#.mamba.conv1d", LAYER(delta)},
    {AS_OF_VALUES, "model.layers.#.mamba.x_proj", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.mamba.dt_proj", LAYER(delta.alpha)},
    {AS_NORM, "model.layers.#.mamba.dt_layernorm", LAYER(delta.alpha_norm)},
    {AS_NORM, "model.layers.#.mamba.b_layernorm", LAYER(delta.k_norm)},
    {AS_NORM, "model.layers.#.mamba.c_layernorm", LAYER(delta.q_norm)},
    {AS_DECAYS, "model.layers.#.mamba.A_log", LAYER(delta)},
    {AS_SKIP, "model.layers.#.mamba.D", LAYER(delta)},
    {AS_LINEAR, "model.layers.#.mamba.out_proj", LAYER(delta.out)},
    {AS_LINEAR, "model.layers.#.feed_forward.router", LAYER(router)},
    {AS_END, NULL, 0},
};

const struct family mamba_families[] = {
    {
        .name = "granite4-mamba",
        .config =
            "{'architectures': ['GraniteMoeHybridForCausalLM'], "
            "'model_type': 'granitemoehybrid', 'attention_bias': false, "
            "'attention_multiplier': 0.1, 'embedding_multiplier': 6.0, "
            "'layer_types': ['mamba', 'attention', 'mamba', 'mamba'], "
            "'logits_scaling': 3.0, 'num_local_experts': 0, "
            "'position_embedding_type': 'nope', 'residual_multiplier': 0.5, "
            "'rms_norm_eps': 1e-05, 'rope_theta': 10000, "
            "'shared_intermediate_size': $hidden, 'mamba_d_head': "
            "$delta_value_dim, 'mamba_expand': 2, " MAMBA_KEYS MIXED_KEYS
            "'hidden_act': 'silu', 'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, mamba_layer, granite4_mlp},
        .bits = LLAMA_BITS,
        .shape = {MIXED_SHAPE, .recurrence = ORACLE_STATE_SPACE,
                  .activation = oracle_silu, .turning = "0",
                  .dim = 64, .hidden = 100, .head_dim = 16, .layers = 4,
                  .delta = "1011", .delta_keys = 1, .delta_values = 8,
                  .delta_key_dim = 18, .delta_value_dim = 16,
                  .has_conv_bias = true, .embedding_scale = 6,
                  .residual_scale = 0.5, .logit_scale = 1.0 / 3,
                  .score_scale = 0.1},
    },
    {
        /* As the library writes it, with experts. */
        .name = "granite4-mamba-experts",
        .config =
            "{'architectures': ['GraniteMoeHybridForCausalLM'], "
            "'model_type': 'granitemoehybrid', "
            "'attention_multiplier': 0.25, 'embedding_multiplier': 1.0, "
            "'layer_types': ['linear_attention', 'full_attention', "
            "'linear_attention'], 'logits_scaling': 1.0, "
            "'intermediate_size': $expert_dim, 'num_local_experts': "
            "$experts, 'num_experts_per_tok': $used, "
            "'position_embedding_type': 'rope', 'residual_multiplier': 1.0, "
            "'rms_norm_eps': 1e-05, 'rope_parameters': {'rope_theta': "
            "10000.0, 'rope_type': 'default'}, 'shared_intermediate_size': "
            "$shared_dim, 'mamba_d_head': 'auto', 'mamba_expand': 2, "
            "'time_step_limit': [0.0, {'__float__': 'Infinity'}], "
            MAMBA_KEYS MIXED_KEYS
            "'hidden_act': 'silu', 'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, mamba_layer, granitemoe_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {MIXED_SHAPE, .recurrence = ORACLE_STATE_SPACE,
                  .activation = oracle_silu, .theta = 10000,
                  .dim = 56, .head_dim = 14, .layers = 3, .delta = "101",
                  .delta_keys = 2,
                  .delta_values = 4, .delta_key_dim = 14,
                  .delta_value_dim = 28, .score_scale = 0.25, .sparse = "1",
                  .n_experts = 5, .n_used = 2, .expert_dim = 36,
                  .shared_dim = 44, .router = ORACLE_SOFTMAX_CHOSEN},
    },
    {
        .name = "bamba",
        .config =
            "{'architectures': ['BambaForCausalLM'], 'model_type': 'bamba', "
            "'attn_layer_indices': [1], 'attn_rotary_emb': 8, "
            "'intermediate_size': $hidden, 'mamba_d_head': 'auto', "
            "'mamba_expand': 2, 'rms_norm_eps': 1e-05, 'rope_theta': "
            "10000.0, " MAMBA_KEYS MIXED_KEYS
            "'hidden_act': 'silu', 'tie_word_embeddings': false}",
        .frame = bamba_frame,
        .layers = {hf_attention, mamba_layer, bamba_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {MIXED_SHAPE, .recurrence = ORACLE_STATE_SPACE,
                  .activation = oracle_silu, .theta = 10000,
                  .has_conv_bias = true, .rotary_dim = 6, .dim = 48,
                  .hidden = 76, .head_dim = 12, .layers = 3,
                  .delta = "101", .delta_keys = 1, .delta_values = 3,
                  .delta_key_dim = 20, .delta_value_dim = 32},
    },
    {
        .name = "falcon-h1",
        .config =
            "{'architectures': ['FalconH1ForCausalLM'], "
            "'model_type': 'falcon_h1', 'attention_bias': false, "
            "'attention_in_multiplier': 1.0, 'attention_out_multiplier': "
            "1.0, 'embedding_multiplier': 3.5, 'intermediate_size': "
            "$hidden, 'key_multiplier': 0.5, 'lm_head_multiplier': 0.25, "
            "'mamba_d_head': $delta_value_dim, 'mamba_d_ssm': null, "
            "'mamba_expand': 2, 'mamba_norm_before_gate': false, "
            "'mamba_rms_norm': false, 'mlp_bias': false, "
            "'mlp_multipliers': [1.0, 1.0], 'projectors_bias': false, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, 'rope_theta': "
            "100000000000.0, 'ssm_in_multiplier': 1.0, 'ssm_multipliers': "
            "[1.0, 1.0, 1.0, 1.0, 1.0], 'ssm_out_multiplier': 1.0, "
            "'time_step_limit': [0.0, Infinity], " MAMBA_KEYS MIXED_KEYS
            "'hidden_act': 'silu', 'tie_word_embeddings': false}",
        .frame = bamba_frame,
        .layers = {hf_attention, mamba_layer, bamba_mlp},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {MIXED_SHAPE, .recurrence = ORACLE_STATE_SPACE,
                  .activation = oracle_silu, .theta = 1e11,
                  .has_conv_bias = true, .is_beside = true,
                  .bare_states = true, .dim = 56, .hidden = 76,
                  .head_dim = 14, .layers = 3, .delta = "1",
                  .delta_keys = 1, .delta_values = 7, .delta_key_dim = 19,
                  .delta_value_dim = 16, .score_factor = 0.5,
                  .embedding_scale = 3.5, .logit_scale = 0.25},
    },
    {
        .name = "nemotronh",
        .config =
            "{'architectures': ['NemotronHForCausalLM'], 'model_type': "
            "'nemotron_h', 'hybrid_override_pattern': 'M-M*-M-', "
            NEMOTRON_KEYS "'tie_word_embeddings': false}",
        .frame = nemotron_frame,
        .layers = {nemotron_layer, nemotron_experts},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD,
        .shape = {MIXED_SHAPE, NEMOTRON_SHAPE, .layers = 7,
                  .delta = "1010010", .halves = "mfmmfmf"},
    },
    {
        /* The third generation, and a layer of the kind that ends it. */
        .name = "nemotronh-experts",
        .config =
            "{'architectures': ['NemotronHForCausalLM'], 'model_type': "
            "'nemotron_h', 'hybrid_override_pattern': 'MEM*EM', "
            "'moe_intermediate_size': $expert_dim, "
            "'moe_shared_expert_intermediate_size': $shared_dim, "
            "'n_group': $groups, 'n_routed_experts': $experts, "
            "'n_shared_experts': 1, 'norm_topk_prob': true, "
            "'num_experts_per_tok': $used, 'routed_scaling_factor': 1.5, "
            "'topk_group': $groups_used, " NEMOTRON_KEYS
            "'tie_word_embeddings': false}",
        .frame = nemotron_frame,
        .layers = {nemotron_layer, nemotron_experts},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_HEAD |
                HAS_CORRECTION,
        .shape = {MIXED_SHAPE, NEMOTRON_SHAPE, .layers = 6,
                  .delta = "101001", .halves = "mfmmfm", .sparse = "1",
                  .n_experts = 6, .n_used = 2, .n_groups = 3,
                  .n_groups_used = 2, .group_best = 2, .expert_dim = 40,
                  .shared_dim = 52, .router = ORACLE_SIGMOID,
                  .renormalises = true, .router_scale = 1.5},
    },
    {
        .name = "mamba2",
        .config =
            "{'architectures': ['Mamba2ForCausalLM'], 'model_type': "
            "'mamba2', 'bos_token_id': 0, 'chunk_size': 256, 'conv_kernel': "
            "$conv_width, 'eos_token_id': 0, 'expand': 2, 'head_dim': "
            "$delta_value_dim, 'hidden_act': 'silu', 'hidden_size': $dim, "
            "'layer_norm_epsilon': 1e-05, 'n_groups': $delta_keys, "
            "'norm_before_gate': true, 'num_heads': $delta_values, "
            "'num_hidden_layers': $layers, 'rms_norm': true, 'state_size': "
            "$delta_key_dim, 'time_step_limit': [0.0, Infinity], "
            "'use_bias': false, 'use_conv_bias': true, 'vocab_size': "
            "$vocab, 'tie_word_embeddings': true}",
        .frame = nemotron_frame,
        .layers = {nemotron_layer},
        .bits = HAS_ATTN_NORM,
        .shape = {MIXED_SHAPE, .recurrence = ORACLE_STATE_SPACE, .dim = 52,
                  .layers = 3, .delta = "1",
                  .halves = "m", .positions = ORACLE_NO_POSITIONS,
                  .has_conv_bias = true,
                  .delta_keys = 2, .delta_values = 4, .delta_key_dim = 22,
                  .delta_value_dim = 26},
    },
    {
        .name = "mamba",
        .config =
            "{'architectures': ['MambaForCausalLM'], 'model_type': 'mamba', "
            "'expand': 2, " MAMBA1_KEYS "'tie_word_embeddings': true}",
        .frame = nemotron_frame,
        .layers = {mamba1_layer},
        .bits = HAS_ATTN_NORM,
        .shape = {MIXED_SHAPE, MAMBA1_SHAPE, .dim = 48, .layers = 3,
                  .has_conv_bias = true, .delta_values = 96,
                  .delta_key_dim = 14, .step_rank = 3},
    },
    {
        .name = "falcon-mamba",
        .config =
            "{'architectures': ['FalconMambaForCausalLM'], 'model_type': "
            "'falcon_mamba', 'expand': 16, 'mixer_rms_eps': 1e-06, "
            MAMBA1_KEYS "'tie_word_embeddings': false}",
        .frame = nemotron_frame,
        .layers = {mamba1_layer},
        .bits = HAS_ATTN_NORM | HAS_HEAD,
        .shape = {MIXED_SHAPE, MAMBA1_SHAPE, .dim = 72, .layers = 3,
                  .has_conv_bias = true, .delta_values = 144,
                  .delta_key_dim = 24, .step_rank = 6, .step_eps = 1e-6},
    },
    {
        .name = "jamba",
        .config =
            "{'attn_layer_offset': 0, 'attn_layer_period': 3, "
            "'expert_layer_offset': 1, 'expert_layer_period': 2, "
            "'mamba_expand': 2, 'mamba_inner_layernorms': true, "
            "'sliding_window': null, " JAMBA_KEYS
            "'tie_word_embeddings': false}",
        .frame = bamba_frame,
        .layers = {hf_attention, jamba_layer, bamba_mlp, llama4_experts},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {MIXED_SHAPE, JAMBA_SHAPE, .dim = 56, .hidden = 84,
                  .head_dim = 14, .layers = 4, .delta = "0110",
                  .delta_values = 112, .delta_key_dim = 11, .step_rank = 5,
                  .sparse = "01", .n_experts = 5, .n_used = 2,
                  .expert_dim = 84},
    },
    {
        /* As the library computes it: experts together, heads of any width. */
        .name = "jamba-library",
        .config =
            "{'attn_layer_offset': 0, 'attn_layer_period': 2, "
            "'expert_layer_offset': 0, 'expert_layer_period': 1, "
            "'head_dim': $head_dim, 'mamba_expand': 1, " JAMBA_KEYS
            "'tie_word_embeddings': true}",
        .frame = bamba_frame,
        .layers = {hf_attention, jamba_layer, bamba_mlp, llama4_fused},
        .bits = LLAMA_BITS,
        .shape = {MIXED_SHAPE, JAMBA_SHAPE, .dim = 48, .hidden = 68,
                  .head_dim = 16, .layers = 3, .delta = "01",
                  .delta_values = 48, .delta_key_dim = 14, .step_rank = 4,
                  .sparse = "1", .n_experts = 6, .n_used = 3,
                  .expert_dim = 68},
    },
    {.name = NULL},
};
