/*
 * family_llama.c - Llama, and families that differ from it in a number, a
 * norm or a window.
 */
#include "config.h"

#include "tests/families/family.h"

#define LN4 1.3862943611198906

/* Of every Llama below, but for what it says itself. */
#define LLAMA_SIZES                                                           \
    .dim = 60, .hidden = 84, .layers = 3, .heads = 6, .head_dim = 10,         \
    .vocab = 61, .activation = oracle_silu

#define LLAMA_NAMES                                                           \
    .frame = hf_frame, .layers = {hf_norms, hf_attention, hf_mlp}

#define SIZE_KEYS                                                             \
    "'hidden_size': $dim, 'intermediate_size': $hidden, "                     \
    "'num_hidden_layers': $layers, 'num_attention_heads': $heads, "           \
    "'num_key_value_heads': $kv_heads, 'vocab_size': $vocab, "                \
    "'max_position_embeddings': $positions, 'bos_token_id': 1, "              \
    "'eos_token_id': 2, 'initializer_range': 0.02, 'use_cache': true, "

#define LLAMA_KEYS                                                            \
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "         \
    "'hidden_act': 'silu', 'attention_bias': false, 'mlp_bias': false, "      \
    "'rms_norm_eps': 1e-05, 'pretraining_tp': 1, " SIZE_KEYS

/* Gemma 4: layers with other heads, keys and values that several layers share,
 * inputs of layers, experts beside a network. */
#define GEMMA4_ROPE                                                           \
    "'rope_parameters': {'full_attention': {'partial_rotary_factor': 0.25, "  \
    "'rope_theta': 1000000.0, 'rope_type': 'proportional'}, "                 \
    "'sliding_attention': {'rope_theta': 10000.0, "                           \
    "'rope_type': 'default'}}, "

#define GEMMA4_KEYS                                                           \
    "'attention_bias': false, 'attention_dropout': 0.0, "                     \
    "'head_dim': $head_dim, 'hidden_activation': 'gelu_pytorch_tanh', "       \
    "'hidden_size': $dim, 'initializer_range': 0.02, "                        \
    "'intermediate_size': $hidden, 'max_position_embeddings': $positions, "   \
    "'model_type': 'gemma4_text', 'num_attention_heads': $heads, "            \
    "'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, "        \
    "'pad_token_id': 0, 'rms_norm_eps': 3e-05, " GEMMA4_ROPE                  \
    "'sliding_window': $window, 'use_cache': true, 'vocab_size': $vocab, "    \
    "'vocab_size_per_layer_input': $vocab, "

#define GEMMA4_BITS                                                           \
    (LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM | HAS_QK_NORM |      \
     SCALES_EMBEDDING | HAS_LAYER_SCALE)

#define GEMMA4_SHAPE                                                          \
    .activation = oracle_gelu_tanh, .max_positions = 64, .eps = 3e-5,         \
    .theta = 1000000, .window_theta = 10000, .score_scale = 1,                \
    .full_part = 0.25, .norms_values = true, .vocab = 61

/* Gemma 3n: several streams, something past attention, sparse layers. */
static const struct stored gemma3n_frame[] = {
    {AS_STRAY, "vision_tower.timm_model.conv_stem.conv.weight", 0},
    {AS_STRAY, "embed_audio.hard_embedding_norm.weight", 0},
    {AS_EMBEDDING, "model.embed_tokens", MODEL(embedding)},
    {AS_INPUTS, "model.embed_tokens_per_layer", 0},
    {AS_WEIGHT, "model.per_layer_model_projection", MODEL(inputs_proj)},
    {AS_NORM, "model.per_layer_projection_norm", MODEL(inputs_norm)},
    {AS_WEIGHT, "model.altup_projections.0", MODEL(streams_in[0])},
    {AS_WEIGHT, "model.altup_projections.1", MODEL(streams_in[1])},
    {AS_WEIGHT, "model.altup_projections.2", MODEL(streams_in[2])},
    {AS_WEIGHT, "model.altup_unembed_projections.0", MODEL(streams_out[0])},
    {AS_WEIGHT, "model.altup_unembed_projections.1", MODEL(streams_out[1])},
    {AS_WEIGHT, "model.altup_unembed_projections.2", MODEL(streams_out[2])},
    {AS_NORM, "model.norm", MODEL(norm)},
    {AS_END, NULL, 0},
};

static const struct stored gemma3n_layer[] = {
    {AS_LINEAR, "model.layers.#.per_layer_input_gate", LAYER(input_gate)},
    {AS_LINEAR, "model.layers.#.per_layer_projection", LAYER(input_out)},
    {AS_NORM, "model.layers.#.post_per_layer_input_norm", LAYER(input_norm)},
    {AS_LINEAR, "model.layers.#.altup.modality_router",
     LAYER(stream_router)},
    {AS_NORM, "model.layers.#.altup.router_norm", LAYER(stream_norm)},
    {AS_LINEAR, "model.layers.#.altup.prediction_coefs",
     LAYER(stream_predict)},
    {AS_LINEAR, "model.layers.#.altup.correction_coefs",
     LAYER(stream_correct)},
    {AS_VECTOR, "model.layers.#.altup.correct_output_scale",
     LAYER(stream_scale)},
    {AS_LINEAR, "model.layers.#.laurel.linear_left", LAYER(bypass_a)},
    {AS_LINEAR, "model.layers.#.laurel.linear_right", LAYER(bypass_b)},
    {AS_NORM, "model.layers.#.laurel.post_laurel_norm", LAYER(bypass_norm)},
    {AS_END, NULL, 0},
};

#define GEMMA3N_KEYS                                                          \
    "'altup_active_idx': 0, 'altup_coef_clip': 120.0, "                       \
    "'altup_correct_scale': true, 'altup_num_inputs': $streams, "             \
    "'attention_bias': false, 'attention_dropout': 0.0, "                     \
    "'final_logit_softcapping': 30.0, 'head_dim': $head_dim, "                \
    "'hidden_activation': 'gelu_pytorch_tanh', 'hidden_size': $dim, "         \
    "'hidden_size_per_layer_input': $input_dim, 'initializer_range': 0.02, "  \
    "'laurel_rank': $bypass_rank, 'max_position_embeddings': $positions, "    \
    "'model_type': 'gemma3n_text', 'num_attention_heads': $heads, "           \
    "'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, "        \
    "'num_kv_shared_layers': $borrowing, 'rms_norm_eps': 3e-05, "             \
    "'sliding_window': $window, 'use_cache': true, 'vocab_size': $vocab, "    \
    "'vocab_size_per_layer_input': $input_vocab, "

/* The share of a normal distribution below 1.25 deviations. */
#define GEMMA3N_SHARE "0.8943502263331446"

#define GEMMA3N_BITS                                                          \
    (LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM | HAS_QK_NORM |      \
     SCALES_EMBEDDING)

#define GEMMA3N_SHAPE                                                         \
    .activation = oracle_gelu_tanh, .max_positions = 64, .eps = 3e-5,         \
    .theta = 1000000, .window_theta = 10000, .score_scale = 1,                \
    .norms_values = true, .vocab = 61, .logit_cap = 30, .cut = 1.25

const struct family llama_families[] = {
    {
        .name = "llama2",
        .config = LLAMA_KEYS "'rope_scaling': null, "
                             "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms, hf_attention, hf_mlp, hf_frequencies},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 6, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000},
    },
    {
        .name = "llama3",
        .config = LLAMA_KEYS
            "'rope_theta': 500000.0, 'rope_scaling': {'factor': 8.0, "
            "'low_freq_factor': 1.0, 'high_freq_factor': 4.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'llama3'}, 'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 256,
                  .eps = 1e-5, .theta = 500000, .rope = ORACLE_ROPE_LLAMA3,
                  .factor = 8, .low = 1, .high = 4, .original = 32},
    },
    {
        /* Newer files have the base and its scaling in one place. */
        .name = "llama3-newer",
        .config = LLAMA_KEYS
            "'rope_parameters': {'factor': 8.0, 'high_freq_factor': 4.0, "
            "'low_freq_factor': 1.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_theta': 500000.0, 'rope_type': 'llama3'}, "
            "'dtype': 'bfloat16', 'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 256,
                  .eps = 1e-5, .theta = 500000, .rope = ORACLE_ROPE_LLAMA3,
                  .factor = 8, .low = 1, .high = 4, .original = 32},
    },
    {
        .name = "llama-tied-biased",
        .config =
            "{'architectures': ['LlamaForCausalLM'], 'hidden_act': 'silu', "
            "'attention_bias': true, 'mlp_bias': true, 'head_dim': $head_dim, "
            "'rms_norm_eps': 3e-05, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_QKV_BIAS | HAS_OUT_BIAS | HAS_MLP_BIAS,
        .shape = {.dim = 52, .hidden = 100, .layers = 3, .heads = 5,
                  .kv_heads = 1, .head_dim = 14, .vocab = 61,
                  .activation = oracle_silu, .max_positions = 64,
                  .eps = 3e-5, .theta = 10000},
    },
    {
        .name = "llama-linear",
        .config = LLAMA_KEYS "'rope_scaling': {'type': 'linear', "
                             "'factor': 4.0}, 'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 3, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000, .rope = ORACLE_ROPE_LINEAR,
                  .factor = 4},
    },
    {
        /* Token by token, as it is computed with a cache: each position by
         * the length that the text then had. */
        .name = "llama-dynamic",
        .config = LLAMA_KEYS "'rope_scaling': {'type': 'dynamic', "
                             "'factor': 2.0}, 'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 16,
                  .eps = 1e-5, .theta = 10000, .rope = ORACLE_ROPE_DYNAMIC,
                  .factor = 2, .original = 16},
    },
    {
        .name = "llama-yarn",
        .config = LLAMA_KEYS
            "'rope_scaling': {'rope_type': 'yarn', 'factor': 4.0, "
            "'original_max_position_embeddings': $original}, "
            "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000, .rope = ORACLE_ROPE_YARN,
                  .factor = 4, .low = 1, .high = 32, .original = 16,
                  .rope_scale = 1 + 0.1 * LN4},
    },
    {
        .name = "mistral",
        .config =
            "{'architectures': ['MistralForCausalLM'], "
            "'model_type': 'mistral', 'hidden_act': 'silu', "
            "'rms_norm_eps': 1e-05, 'rope_theta': 10000.0, "
            "'sliding_window': $window, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000, .window = 9, .sliding = "1"},
    },
    {
        .name = "mistral-nemo",
        .config =
            "{'architectures': ['MistralForCausalLM'], 'head_dim': $head_dim, "
            "'hidden_act': 'silu', 'rms_norm_eps': 1e-05, "
            "'rope_theta': 1000000.0, 'sliding_window': null, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 68, .hidden = 92, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 12, .vocab = 61,
                  .activation = oracle_silu, .max_positions = 64,
                  .eps = 1e-5, .theta = 1000000},
    },
    {
        .name = "qwen2",
        .config =
            "{'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', "
            "'hidden_act': 'silu', 'rms_norm_eps': 3e-05, "
            "'rope_theta': 1000000.0, 'sliding_window': 32768, "
            "'max_window_layers': 24, 'use_sliding_window': false, "
            SIZE_KEYS "'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_QKV_BIAS,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 64,
                  .eps = 3e-5, .theta = 1000000},
    },
    {
        .name = "qwen2-window",
        .config =
            "{'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', "
            "'hidden_act': 'silu', 'rms_norm_eps': 3e-05, "
            "'rope_theta': 1000000.0, 'sliding_window': $window, "
            "'max_window_layers': 1, 'use_sliding_window': true, "
            SIZE_KEYS "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 64,
                  .eps = 3e-5, .theta = 1000000, .window = 11,
                  .sliding = "011"},
    },
    {
        /* As its authors say how to lengthen it: the context stays what it
         * was. */
        .name = "qwen2-yarn",
        .config =
            "{'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', "
            "'hidden_act': 'silu', 'rms_norm_eps': 3e-05, "
            "'rope_theta': 1000000.0, 'rope_scaling': {'factor': 4.0, "
            "'original_max_position_embeddings': $original, "
            "'type': 'yarn'}, 'use_sliding_window': false, "
            SIZE_KEYS "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_QKV_BIAS,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 16,
                  .eps = 3e-5, .theta = 1000000, .rope = ORACLE_ROPE_YARN,
                  .factor = 4, .low = 1, .high = 32, .original = 16,
                  .rope_scale = 1 + 0.1 * LN4},
    },
    {
        .name = "qwen3",
        .config =
            "{'architectures': ['Qwen3ForCausalLM'], 'model_type': 'qwen3', "
            "'attention_bias': false, 'head_dim': $head_dim, "
            "'hidden_act': 'silu', 'rms_norm_eps': 3e-05, "
            "'rope_theta': 1000000, 'rope_scaling': null, "
            "'sliding_window': null, 'max_window_layers': 28, "
            "'use_sliding_window': false, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_QK_NORM,
        .shape = {.dim = 56, .hidden = 100, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 18, .vocab = 61,
                  .activation = oracle_silu, .max_positions = 64,
                  .eps = 3e-5, .theta = 1000000},
    },
    {
        .name = "smollm3",
        .config =
            "{'architectures': ['SmolLM3ForCausalLM'], "
            "'model_type': 'smollm3', 'attention_bias': false, "
            "'hidden_act': 'silu', 'mlp_bias': false, "
            "'layer_types': ['full_attention', 'full_attention', "
            "'full_attention', 'full_attention'], 'max_window_layers': 28, "
            "'no_rope_layer_interval': 4, 'no_rope_layers': [1, 1, 1, 0], "
            "'rms_norm_eps': 3e-05, 'rope_scaling': null, "
            "'rope_theta': 5000000.0, 'sliding_window': null, "
            "'use_sliding_window': false, 'pretraining_tp': 2, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS,
        .shape = {.dim = 48, .hidden = 76, .layers = 4, .heads = 4,
                  .kv_heads = 1, .head_dim = 12, .vocab = 61,
                  .activation = oracle_silu, .max_positions = 64,
                  .eps = 3e-5, .theta = 5000000, .turning = "1110"},
    },
    {
        .name = "granite",
        .config =
            "{'architectures': ['GraniteForCausalLM'], "
            "'model_type': 'granite', 'attention_bias': false, "
            "'attention_multiplier': 0.0625, 'embedding_multiplier': 12.0, "
            "'hidden_act': 'silu', 'logits_scaling': 8.0, "
            "'mlp_bias': false, 'residual_multiplier': 0.22, "
            "'rms_norm_eps': 1e-05, 'rope_scaling': null, "
            "'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': true}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS,
        .shape = {LLAMA_SIZES, .kv_heads = 2, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000, .score_scale = 0.0625,
                  .embedding_scale = 12, .residual_scale = 0.22,
                  .logit_scale = 0.125},
    },
    {
        .name = "gemma",
        .config =
            "{'architectures': ['GemmaForCausalLM'], 'model_type': 'gemma', "
            "'attention_bias': false, 'head_dim': $head_dim, "
            "'hidden_act': 'gelu', 'hidden_activation': null, "
            "'rms_norm_eps': 3e-05, 'rope_scaling': null, "
            "'rope_theta': 10000.0, " SIZE_KEYS "'pad_token_id': 0}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {.dim = 60, .hidden = 116, .layers = 3, .heads = 3,
                  .kv_heads = 1, .head_dim = 16, .vocab = 61,
                  .activation = oracle_gelu_tanh, .max_positions = 64,
                  .eps = 3e-5, .theta = 10000},
    },
    {
        .name = "gemma2",
        .config =
            "{'architectures': ['Gemma2ForCausalLM'], "
            "'model_type': 'gemma2', 'attention_bias': false, "
            "'attn_logit_softcapping': 5.0, 'cache_implementation': "
            "'hybrid', 'final_logit_softcapping': 8.0, "
            "'head_dim': $head_dim, 'hidden_act': 'gelu_pytorch_tanh', "
            "'hidden_activation': 'gelu_pytorch_tanh', "
            "'query_pre_attn_scalar': 25, 'rms_norm_eps': 3e-05, "
            "'rope_theta': 10000.0, 'sliding_window': $window, "
            "'sliding_window_size': $window, " SIZE_KEYS
            "'pad_token_id': 0}",
        .frame = hf_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {.dim = 60, .hidden = 116, .layers = 4, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .activation = oracle_gelu_tanh, .max_positions = 64,
                  .eps = 3e-5, .theta = 10000, .score_scale = 0.2,
                  .score_cap = 5, .logit_cap = 8, .window = 9,
                  .sliding = "10"},
    },
    {
        .name = "gemma3",
        .config =
            "{'architectures': ['Gemma3ForCausalLM'], "
            "'model_type': 'gemma3_text', 'attention_bias': false, "
            "'attn_logit_softcapping': null, "
            "'cache_implementation': 'hybrid', "
            "'final_logit_softcapping': null, 'head_dim': $head_dim, "
            "'hidden_activation': 'gelu_pytorch_tanh', "
            "'query_pre_attn_scalar': 25, 'rms_norm_eps': 3e-05, "
            "'rope_local_base_freq': 10000, 'rope_scaling': null, "
            "'rope_theta': 1000000, 'sliding_window': $window, "
            "'sliding_window_pattern': 3, " SIZE_KEYS "'pad_token_id': 0}",
        .frame = hf_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_QK_NORM | NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {.dim = 60, .hidden = 116, .layers = 4, .heads = 4,
                  .kv_heads = 1, .head_dim = 18, .vocab = 61,
                  .activation = oracle_gelu_tanh, .max_positions = 64,
                  .eps = 3e-5, .theta = 1000000, .window_theta = 10000,
                  .score_scale = 0.2, .window = 9, .sliding = "110"},
    },
    {
        .name = "gemma3-scaled",
        .config =
            "{'architectures': ['Gemma3ForCausalLM'], "
            "'model_type': 'gemma3_text', 'head_dim': $head_dim, "
            "'hidden_activation': 'gelu_pytorch_tanh', "
            "'layer_types': ['sliding_attention', 'full_attention', "
            "'sliding_attention', 'full_attention'], "
            "'query_pre_attn_scalar': 16, 'rms_norm_eps': 3e-05, "
            "'rope_local_base_freq': 10000.0, "
            "'rope_scaling': {'factor': 8.0, 'rope_type': 'linear'}, "
            "'rope_theta': 1000000.0, 'sliding_window': $window, "
            SIZE_KEYS "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_QK_NORM | NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {.dim = 52, .hidden = 76, .layers = 4, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .activation = oracle_gelu_tanh, .max_positions = 64,
                  .eps = 3e-5, .theta = 1000000, .window_theta = 10000,
                  .rope = ORACLE_ROPE_LINEAR, .factor = 8,
                  .score_scale = 0.25, .window = 13, .sliding = "10"},
    },
    {
        /* The text of a model that also sees images. */
        .name = "gemma3-with-images",
        .config =
            "{'architectures': ['Gemma3ForConditionalGeneration'], "
            "'model_type': 'gemma3', 'image_token_index': 60, "
            "'eos_token_id': [1, 2], 'text_config': {"
            "'head_dim': $head_dim, 'hidden_size': $dim, "
            "'intermediate_size': $hidden, 'model_type': 'gemma3_text', "
            "'num_attention_heads': $heads, "
            "'num_hidden_layers': $layers, "
            "'num_key_value_heads': $kv_heads, "
            "'max_position_embeddings': $positions, "
            "'query_pre_attn_scalar': 16, "
            "'rope_scaling': {'factor': 8.0, 'rope_type': 'linear'}, "
            "'sliding_window': $window, 'vocab_size': $vocab}, "
            "'vision_config': {'hidden_size': 1152, "
            "'model_type': 'siglip_vision_model'}}",
        .prefix = "language_model.",
        .frame = gemma3_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp},
        .bits = LLAMA_BITS | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_QK_NORM | NORMS_LESS_ONE | SCALES_EMBEDDING,
        .shape = {.dim = 52, .hidden = 76, .layers = 7, .heads = 4,
                  .kv_heads = 2, .head_dim = 14, .vocab = 61,
                  .activation = oracle_gelu_tanh, .max_positions = 64,
                  .eps = 1e-6, .theta = 1000000, .window_theta = 10000,
                  .rope = ORACLE_ROPE_LINEAR, .factor = 8,
                  .score_scale = 0.25, .window = 13, .sliding = "111110"},
    },
    {
        .name = "olmo",
        .config =
            "{'architectures': ['OlmoForCausalLM'], 'model_type': 'olmo', "
            "'attention_bias': false, 'clip_qkv': 1.5, "
            "'hidden_act': 'silu', 'rope_scaling': null, "
            "'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        LLAMA_NAMES,
        .bits = LLAMA_BITS | HAS_HEAD | HAS_PLAIN_NORMS,
        .shape = {LLAMA_SIZES, .kv_heads = 3, .max_positions = 64,
                  .eps = 1e-5, .theta = 10000, .norm = ORACLE_LAYER,
                  .clip = 1.5},
    },
    {
        .name = "olmo2",
        .config =
            "{'architectures': ['Olmo2ForCausalLM'], "
            "'model_type': 'olmo2', 'attention_bias': false, "
            "'hidden_act': 'silu', 'rms_norm_eps': 3e-05, "
            "'rope_scaling': null, 'rope_theta': 500000, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms_after, hf_attention, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_HEAD | HAS_QK_NORM_WHOLE,
        .shape = {LLAMA_SIZES, .kv_heads = 3, .max_positions = 64,
                  .eps = 3e-5, .theta = 500000},
    },
    {
        .name = "olmo3",
        .config =
            "{'architectures': ['Olmo3ForCausalLM'], "
            "'model_type': 'olmo3', 'attention_bias': false, "
            "'hidden_act': 'silu', 'layer_types': ['sliding_attention', "
            "'sliding_attention', 'sliding_attention', 'full_attention', "
            "'sliding_attention'], 'rms_norm_eps': 3e-05, "
            "'rope_scaling': {'attention_factor': 1.1386294361119891, "
            "'beta_fast': 32.0, 'beta_slow': 1.0, 'factor': 4.0, "
            "'original_max_position_embeddings': $original, "
            "'rope_type': 'yarn'}, 'rope_theta': 500000, "
            "'sliding_window': $window, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {hf_norms_after, hf_attention, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_POST_NORM | HAS_FFN_POST_NORM |
                HAS_HEAD | HAS_QK_NORM_WHOLE,
        .shape = {.dim = 60, .hidden = 84, .layers = 5, .heads = 6,
                  .kv_heads = 3, .head_dim = 10, .vocab = 61,
                  .activation = oracle_silu, .max_positions = 64,
                  .eps = 3e-5, .theta = 500000, .window_theta = 500000,
                  .rope = ORACLE_ROPE_YARN, .factor = 4, .low = 1,
                  .high = 32, .original = 16, .rope_scale = 1 + 0.1 * LN4,
                  .window = 9, .sliding = "1110"},
    },
    {
        .name = "gemma3n",
        .config =
            "{'activation_sparsity_pattern': [" GEMMA3N_SHARE ", "
            GEMMA3N_SHARE ", 0.0, 0.0, 0.0, 0.0], "
            "'architectures': ['Gemma3nForCausalLM'], 'bos_token_id': 2, "
            "'eos_token_id': 1, " GEMMA3N_KEYS "'intermediate_size': "
            "[$hidden, $hidden, $hidden, $hidden, $hidden, $hidden], "
            "'layer_types': ['sliding_attention', 'sliding_attention', "
            "'full_attention', 'sliding_attention', 'sliding_attention', "
            "'full_attention'], 'pad_token_id': null, "
            "'rope_parameters': {'full_attention': "
            "{'rope_theta': 1000000.0, 'rope_type': 'default'}, "
            "'sliding_attention': {'rope_theta': 10000.0, "
            "'rope_type': 'default'}}, 'tie_word_embeddings': true}",
        .frame = gemma3n_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp, gemma3n_layer},
        .bits = GEMMA3N_BITS,
        .shape = {GEMMA3N_SHAPE, .dim = 60, .hidden = 76, .layers = 6,
                  .heads = 4, .kv_heads = 2, .head_dim = 18, .window = 9,
                  .sliding = "110", .n_borrowing = 3, .input_dim = 12,
                  .input_vocab = 53, .streams = 4, .bypass_rank = 14,
                  .cutting = "110000"},
    },
    {
        /* The text of a model of several senses, as first published. */
        .name = "gemma3n-with-images",
        .config =
            "{'architectures': ['Gemma3nForConditionalGeneration'], "
            "'audio_config': {'model_type': 'gemma3n_audio'}, "
            "'eos_token_id': [1, 50], 'model_type': 'gemma3n', "
            "'text_config': {'activation_sparsity_pattern': null, "
            GEMMA3N_KEYS "'intermediate_size': $hidden, 'layer_types': null, "
            "'rope_local_base_freq': 10000.0, 'rope_scaling': null, "
            "'rope_theta': 1000000.0}, 'vision_config': "
            "{'model_type': 'gemma3n_vision'}}",
        .prefix = "model.language_model.",
        .frame = gemma3n_frame,
        .layers = {hf_norms_around, hf_attention, hf_mlp, gemma3n_layer},
        .bits = GEMMA3N_BITS,
        .shape = {GEMMA3N_SHAPE, .dim = 52, .hidden = 68, .layers = 5,
                  .heads = 6, .kv_heads = 1, .head_dim = 14, .window = 13,
                  .sliding = "11110", .input_dim = 10, .input_vocab = 61,
                  .streams = 2, .bypass_rank = 9},
    },
    {
        .name = "gemma4",
        .config =
            "{'architectures': ['Gemma4ForCausalLM'], 'bos_token_id': 2, "
            "'eos_token_id': 1, " GEMMA4_KEYS "'attention_k_eq_v': false, "
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
        .bits = GEMMA4_BITS,
        .shape = {GEMMA4_SHAPE, .dim = 60, .hidden = 52, .layers = 6,
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
            "'text_config': {" GEMMA4_KEYS "'attention_k_eq_v': true, "
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
        .bits = GEMMA4_BITS,
        .shape = {GEMMA4_SHAPE, .dim = 52, .hidden = 76, .layers = 5,
                  .heads = 4, .kv_heads = 4, .head_dim = 14,
                  .full_head_dim = 22, .full_kv_heads = 2, .logit_cap = 30,
                  .window = 13, .sliding = "11010",
                  .full_keys_are_values = true},
    },
    {
        .name = "gemma4-experts",
        .config =
            "{'architectures': ['Gemma4ForCausalLM'], 'bos_token_id': 2, "
            "'eos_token_id': 1, " GEMMA4_KEYS "'attention_k_eq_v': true, "
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
        .bits = GEMMA4_BITS | HAS_MLP_AND_EXPERTS,
        .shape = {GEMMA4_SHAPE, .dim = 48, .hidden = 40, .layers = 4,
                  .heads = 4, .kv_heads = 2, .head_dim = 16,
                  .full_head_dim = 24, .full_kv_heads = 1, .window = 9,
                  .sliding = "10", .full_keys_are_values = true,
                  .sparse = "1", .n_experts = 6, .n_used = 3,
                  .expert_dim = 28, .renormalises = true},
    },
    {.name = NULL},
};
