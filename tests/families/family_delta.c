/*
 * family_delta.c - Qwen 3 Next and Qwen 3.5: the gated delta rule in most
 * layers, attention with a gate in the others.
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

const struct family delta_families[] = {
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
        .config =
            "{'architectures': ['Qwen3_5MoeForCausalLM'], "
            "'model_type': 'qwen3_5_moe_text', 'layer_types': "
            "['linear_attention', 'linear_attention', 'full_attention'], "
            MROPE_KEYS EXPERT_KEYS DELTA_KEYS "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, qwen35_attention, delta_layer, qwen_experts},
        .bits = DELTA_BITS | HAS_HEAD | HAS_SWITCH,
        .shape = {DELTA_SHAPE, .dim = 52, .layers = 3, .delta = "110",
                  .delta_keys = 2, .delta_values = 6, .delta_key_dim = 24,
                  .delta_value_dim = 24, .sparse = "1", .n_experts = 7,
                  .n_used = 3, .expert_dim = 36, .shared_dim = 44,
                  .renormalises = true},
    },
    {.name = NULL},
};
