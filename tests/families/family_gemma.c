/*
 * family_gemma.c - Gemma 4: layers with other heads, keys and values that
 * several layers share, inputs of layers, experts beside a network.
 */
#include "config.h"

#include "tests/families/family.h"

#define ROPE_KEYS                                                             \
    "'rope_parameters': {'full_attention': {'partial_rotary_factor': 0.25, "  \
    "'rope_theta': 1000000.0, 'rope_type': 'proportional'}, "                 \
    "'sliding_attention': {'rope_theta': 10000.0, "                           \
    "'rope_type': 'default'}}, "

#define TEXT_KEYS                                                             \
    "'attention_bias': false, 'attention_dropout': 0.0, "                     \
    "'head_dim': $head_dim, 'hidden_activation': 'gelu_pytorch_tanh', "       \
    "'hidden_size': $dim, 'initializer_range': 0.02, "                        \
    "'intermediate_size': $hidden, 'max_position_embeddings': $positions, "   \
    "'model_type': 'gemma4_text', 'num_attention_heads': $heads, "            \
    "'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, "        \
    "'pad_token_id': 0, 'rms_norm_eps': 3e-05, " ROPE_KEYS                    \
    "'sliding_window': $window, 'use_cache': true, 'vocab_size': $vocab, "    \
    "'vocab_size_per_layer_input': $vocab, "

#define GEMMA_BITS                                                            \
    (LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM | HAS_QK_NORM |      \
     SCALES_EMBEDDING | HAS_LAYER_SCALE)

#define GEMMA_SHAPE                                                           \
    .activation = oracle_gelu_tanh, .max_positions = 64, .eps = 3e-5,         \
    .theta = 1000000, .window_theta = 10000, .score_scale = 1,                \
    .full_part = 0.25, .norms_values = true, .vocab = 61

const struct family gemma_families[] = {
    {
        .name = "gemma4",
        .config =
            "{'architectures': ['Gemma4ForCausalLM'], 'bos_token_id': 2, "
            "'eos_token_id': 1, " TEXT_KEYS "'attention_k_eq_v': false, "
            "'enable_moe_block': false, 'final_logit_softcapping': 30.0, "
            "'hidden_size_per_layer_input': $input_dim, "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'full_attention', 'sliding_attention', 'sliding_attention', "
            "'full_attention'], 'num_kv_shared_layers': $borrowing, "
            "'per_layer_config': {'2': {'head_dim': $full_dim}, "
            "'5': {'head_dim': $full_dim}}, 'tie_word_embeddings': true, "
            "'use_bidirectional_attention': null, "
            "'use_double_wide_mlp': true}",
        .frame = gemma4_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp, gemma4_layer},
        .bits = GEMMA_BITS,
        .shape = {GEMMA_SHAPE, .dim = 60, .hidden = 52, .layers = 6,
                  .heads = 4, .kv_heads = 1, .head_dim = 18,
                  .full_head_dim = 26, .logit_cap = 30, .window = 9,
                  .sliding = "110", .n_borrowing = 3, .borrowing_hidden = 104,
                  .input_dim = 12},
    },
    {
        /* The text of a model that also sees images, as first published. */
        .name = "gemma4-with-images",
        .config =
            "{'architectures': ['Gemma4ForConditionalGeneration'], "
            "'audio_config': null, 'eos_token_id': [1, 50], "
            "'image_token_id': 60, 'model_type': 'gemma4', "
            "'text_config': {" TEXT_KEYS "'attention_k_eq_v': true, "
            "'enable_moe_block': false, 'final_logit_softcapping': 30.0, "
            "'global_head_dim': $full_dim, 'hidden_size_per_layer_input': 0, "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'full_attention', 'sliding_attention', 'full_attention'], "
            "'moe_intermediate_size': null, 'num_experts': null, "
            "'num_global_key_value_heads': $full_heads, "
            "'num_kv_shared_layers': 0, 'top_k_experts': null, "
            "'use_bidirectional_attention': 'vision', "
            "'use_double_wide_mlp': false}, 'tie_word_embeddings': true, "
            "'vision_config': {'hidden_size': 1152, "
            "'model_type': 'gemma4_vision'}, "
            "'vision_soft_tokens_per_image': 280}",
        .prefix = "language_model.",
        .frame = gemma4_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp, gemma4_layer},
        .bits = GEMMA_BITS,
        .shape = {GEMMA_SHAPE, .dim = 52, .hidden = 76, .layers = 5,
                  .heads = 4, .kv_heads = 4, .head_dim = 14,
                  .full_head_dim = 22, .full_kv_heads = 2, .logit_cap = 30,
                  .window = 13, .sliding = "11010",
                  .full_keys_are_values = true},
    },
    {
        .name = "gemma4-experts",
        .config =
            "{'architectures': ['Gemma4ForCausalLM'], 'bos_token_id': 2, "
            "'eos_token_id': 1, " TEXT_KEYS "'attention_k_eq_v': true, "
            "'enable_moe_block': true, 'final_logit_softcapping': null, "
            "'global_head_dim': $full_dim, 'hidden_size_per_layer_input': 0, "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention', 'full_attention'], "
            "'moe_intermediate_size': $expert_dim, 'num_experts': $experts, "
            "'num_global_key_value_heads': $full_heads, "
            "'num_kv_shared_layers': 0, 'tie_word_embeddings': true, "
            "'top_k_experts': $used, 'use_double_wide_mlp': false}",
        .frame = gemma4_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp, gemma4_layer,
                   gemma4_experts},
        .bits = GEMMA_BITS | HAS_MLP_AND_EXPERTS,
        .shape = {GEMMA_SHAPE, .dim = 48, .hidden = 40, .layers = 4,
                  .heads = 4, .kv_heads = 2, .head_dim = 16,
                  .full_head_dim = 24, .full_kv_heads = 1, .window = 9,
                  .sliding = "10", .full_keys_are_values = true,
                  .sparse = "1", .n_experts = 6, .n_used = 3,
                  .expert_dim = 28, .renormalises = true},
    },
    {.name = NULL},
};
