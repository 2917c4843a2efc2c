/*
 * family_others.c - GPT-2, GPT-NeoX, Falcon, Phi, StableLM, Cohere.
 */
#include "config.h"

#include "tests/families/family.h"

#define SIZE_KEYS                                                             \
    "'hidden_size': $dim, 'num_hidden_layers': $layers, "                     \
    "'num_attention_heads': $heads, 'vocab_size': $vocab, "                   \
    "'bos_token_id': 1, 'eos_token_id': 2, 'initializer_range': 0.02, "       \
    "'use_cache': true, "

#define GPT2_KEYS                                                             \
    "{'activation_function': 'gelu_new', "                                    \
    "'architectures': ['GPT2LMHeadModel'], 'attn_pdrop': 0.1, "               \
    "'bos_token_id': 1, 'embd_pdrop': 0.1, 'eos_token_id': 2, "               \
    "'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, "                \
    "'model_type': 'gpt2', 'n_ctx': $positions, 'n_embd': $dim, "             \
    "'n_head': $heads, 'n_layer': $layers, 'n_positions': $positions, "       \
    "'resid_pdrop': 0.1, 'summary_activation': null, "                        \
    "'summary_type': 'cls_index', 'vocab_size': $vocab, "

#define GPT2_SHAPE                                                            \
    .dim = 52, .hidden = 4 * 52, .layers = 3, .heads = 4, .kv_heads = 4,      \
    .head_dim = 13, .vocab = 61, .max_positions = 48, .eps = 1e-5,            \
    .norm = ORACLE_LAYER, .activation = oracle_gelu_tanh,                     \
    .positions = ORACLE_LEARNED

#define GPT2_BITS                                                             \
    (HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_QKV_BIAS |            \
     HAS_OUT_BIAS | HAS_MLP_BIAS | COLUMNS_ARE_OUTPUTS)

#define NEOX_KEYS                                                             \
    "{'architectures': ['GPTNeoXForCausalLM'], 'hidden_act': 'gelu', "        \
    "'intermediate_size': $hidden, 'layer_norm_eps': 1e-05, "                 \
    "'max_position_embeddings': $positions, 'model_type': 'gpt_neox', "       \
    "'rotary_emb_base': 10000, 'rotary_pct': 0.25, " SIZE_KEYS                \
    "'tie_word_embeddings': false, "

#define NEOX_BITS                                                             \
    (HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_QKV_BIAS |            \
     HAS_OUT_BIAS | HAS_MLP_BIAS | HAS_HEAD)

#define FALCON_KEYS                                                           \
    "{'architectures': ['FalconForCausalLM'], 'attention_dropout': 0.0, "     \
    "'hidden_dropout': 0.0, 'layer_norm_epsilon': 1e-05, "                    \
    "'model_type': 'falcon', " SIZE_KEYS

/* No rotary positions, everything has biases. */
#define FALCON_RW                                                             \
    .config = FALCON_KEYS "'alibi': true, 'bias': true, "                     \
                          "'multi_query': false, "                            \
                          "'new_decoder_architecture': false, "               \
                          "'parallel_attn': false}",                          \
    .frame = falcon_frame,                                                    \
    .layers = {falcon_one_norm, falcon_layer},                                \
    .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_QKV_BIAS |     \
            HAS_OUT_BIAS | HAS_MLP_BIAS | HAS_HEAD_COPY

/* Of the first releases. */
#define OLD_FALCON_KEYS                                                       \
    "{'alibi': false, 'apply_residual_connection_post_layernorm': false, "    \
    "'architectures': ['RWForCausalLM'], 'attention_dropout': 0.0, "          \
    "'bias': false, 'bos_token_id': 1, 'eos_token_id': 2, "                   \
    "'hidden_dropout': 0.0, 'hidden_size': $dim, "                            \
    "'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, "                \
    "'n_head': $heads, 'n_layer': $layers, 'parallel_attn': true, "           \
    "'use_cache': true, 'vocab_size': $vocab, "

#define STABLELM_KEYS                                                         \
    "{'architectures': ['StableLmForCausalLM'], 'hidden_act': 'silu', "       \
    "'intermediate_size': $hidden, 'layer_norm_eps': 1e-05, "                 \
    "'max_position_embeddings': $positions, 'model_type': 'stablelm', "       \
    "'num_key_value_heads': $kv_heads, 'partial_rotary_factor': 0.25, "       \
    "'rope_theta': 10000, " SIZE_KEYS "'tie_word_embeddings': false, "

#define PHI3_KEYS                                                             \
    "{'architectures': ['Phi3ForCausalLM'], 'attention_bias': false, "        \
    "'embd_pdrop': 0.0, 'hidden_act': 'silu', "                               \
    "'intermediate_size': $hidden, "                                          \
    "'max_position_embeddings': $positions, 'model_type': 'phi3', "           \
    "'num_key_value_heads': $kv_heads, "                                      \
    "'original_max_position_embeddings': $original, "                         \
    "'rms_norm_eps': 1e-05, 'rope_theta': 10000.0, " SIZE_KEYS

/* The square root of 1 + ln(128 / 32) / ln(32). */
#define LONGROPE_SCALE 1.1832159566199232

#define PHI3_LONG_KEYS                                                        \
    PHI3_KEYS "'rope_scaling': {'long_factor': [$long], "                     \
              "'short_factor': [$short], 'type': 'longrope'}, "               \
              "'sliding_window': 262144, 'tie_word_embeddings': false}"

#define PHI3_LONG_SHAPE                                                       \
    .dim = 60, .hidden = 84, .layers = 3, .heads = 5, .kv_heads = 5,          \
    .head_dim = 12, .vocab = 61, .max_positions = 128, .eps = 1e-5,           \
    .activation = oracle_silu, .theta = 10000, .rope = ORACLE_ROPE_LONG,      \
    .original = 32, .rope_scale = LONGROPE_SCALE

#define COHERE_KEYS                                                           \
    "{'architectures': ['CohereForCausalLM'], 'attention_bias': false, "      \
    "'hidden_act': 'silu', 'intermediate_size': $hidden, "                    \
    "'layer_norm_eps': 1e-05, 'logit_scale': 0.0625, "                        \
    "'max_position_embeddings': $positions, 'model_type': 'cohere', "         \
    "'num_key_value_heads': $kv_heads, 'rope_theta': 75000000.0, "            \
    SIZE_KEYS

const struct family other_families[] = {
    {
        .name = "gpt2",
        .config = GPT2_KEYS "'n_inner': null}",
        .frame = gpt2_frame,
        .layers = {gpt2_layer},
        .bits = GPT2_BITS | HAS_HEAD_COPY,
        .shape = {GPT2_SHAPE},
    },
    {
        .name = "gpt2-bare",
        .config = GPT2_KEYS "'task_specific_params': {}}",
        .frame = gpt2_bare_frame,
        .layers = {gpt2_bare_layer},
        .bits = GPT2_BITS,
        .shape = {GPT2_SHAPE},
    },
    {
        .name = "gptneox",
        .config = NEOX_KEYS "'use_parallel_residual': true}",
        .frame = neox_frame,
        .layers = {neox_layer},
        .bits = NEOX_BITS,
        .shape = {.dim = 64, .hidden = 92, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .rotary_dim = 4, .theta = 10000},
    },
    {
        .name = "gptneox-sequential",
        .config = NEOX_KEYS "'use_parallel_residual': false}",
        .frame = neox_frame,
        .layers = {neox_layer},
        .bits = NEOX_BITS,
        .shape = {.dim = 48, .hidden = 92, .layers = 3, .heads = 2,
                  .kv_heads = 2, .head_dim = 24, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .rotary_dim = 6,
                  .theta = 10000},
    },
    {
        /* One key head for all */
        .name = "falcon-7b",
        .config = FALCON_KEYS "'alibi': false, 'bias': false, "
                              "'multi_query': true, "
                              "'new_decoder_architecture': false, "
                              "'parallel_attn': true}",
        .frame = falcon_frame,
        .layers = {falcon_one_norm, falcon_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_HEAD_COPY,
        .shape = {.dim = 60, .hidden = 4 * 60, .layers = 3, .heads = 5,
                  .kv_heads = 1, .head_dim = 12, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .theta = 10000},
    },
    {
        /* A key head for some, and two norms */
        .name = "falcon-40b",
        .config = FALCON_KEYS "'alibi': false, 'bias': false, "
                              "'multi_query': true, "
                              "'new_decoder_architecture': true, "
                              "'num_kv_heads': $kv_heads, "
                              "'parallel_attn': true}",
        .frame = falcon_frame,
        .layers = {falcon_two_norms, falcon_layer},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_HEAD_COPY,
        .shape = {.dim = 48, .hidden = 4 * 48, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 8, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .theta = 10000},
    },
    {
        .name = "falcon-7b-old",
        .config = OLD_FALCON_KEYS "'model_type': 'RefinedWebModel', "
                                  "'multi_query': true}",
        .frame = falcon_frame,
        .layers = {falcon_one_norm, falcon_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_HEAD_COPY,
        .shape = {.dim = 60, .hidden = 4 * 60, .layers = 3, .heads = 5,
                  .kv_heads = 1, .head_dim = 12, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .theta = 10000},
    },
    {
        .name = "falcon-40b-old",
        .config = OLD_FALCON_KEYS "'model_type': 'RefinedWeb', "
                                  "'n_head_kv': $kv_heads}",
        .frame = falcon_frame,
        .layers = {falcon_two_norms, falcon_layer},
        .bits = HAS_ATTN_NORM | HAS_FFN_NORM | HAS_NORM_BIAS | HAS_HEAD_COPY,
        .shape = {.dim = 48, .hidden = 4 * 48, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 8, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .theta = 10000},
    },
    {
        .name = "falcon-11b",
        .config = FALCON_KEYS "'activation': 'gelu', 'alibi': false, "
                              "'bias': false, 'ffn_hidden_size': $hidden, "
                              "'max_position_embeddings': $positions, "
                              "'multi_query': true, "
                              "'new_decoder_architecture': true, "
                              "'num_kv_heads': $kv_heads, "
                              "'num_ln_in_parallel_attn': 1, "
                              "'parallel_attn': true, "
                              "'rope_theta': 500042.0, "
                              "'tie_word_embeddings': false}",
        .frame = falcon_frame,
        .layers = {falcon_one_norm, falcon_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_HEAD,
        .shape = {.dim = 48, .hidden = 100, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 12, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu, .is_parallel = true,
                  .theta = 500042},
    },
    {
        .name = "falcon-rw", FALCON_RW,
        .shape = {.dim = 56, .hidden = 4 * 56, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 14, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu,
                  .positions = ORACLE_ALIBI_SCALED},
    },
    {
        /* So many heads that bfloat16 rounds their slopes */
        .name = "falcon-rw-heads", FALCON_RW,
        .shape = {.dim = 64, .hidden = 4 * 64, .layers = 2, .heads = 16,
                  .kv_heads = 16, .head_dim = 4, .vocab = 61,
                  .max_positions = 2048, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu,
                  .positions = ORACLE_ALIBI_SCALED},
    },
    {
        .name = "phi2",
        .config =
            "{'architectures': ['PhiForCausalLM'], 'embd_pdrop': 0.0, "
            "'hidden_act': 'gelu_new', 'intermediate_size': $hidden, "
            "'layer_norm_eps': 1e-05, "
            "'max_position_embeddings': $positions, 'model_type': 'phi', "
            "'num_key_value_heads': $kv_heads, "
            "'partial_rotary_factor': 0.4, 'qk_layernorm': false, "
            "'resid_pdrop': 0.1, 'rope_scaling': null, "
            "'rope_theta': 10000.0, " SIZE_KEYS
            "'tie_word_embeddings': false}",
        .frame = phi2_frame,
        .layers = {phi2_layer},
        .bits = HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_QKV_BIAS | HAS_OUT_BIAS |
                HAS_MLP_BIAS | HAS_HEAD | HAS_HEAD_BIAS,
        .shape = {.dim = 60, .hidden = 108, .layers = 3, .heads = 3,
                  .kv_heads = 3, .head_dim = 20, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_gelu_tanh, .is_parallel = true,
                  .rotary_dim = 8, .theta = 10000},
    },
    {
        .name = "phi3",
        .config = PHI3_KEYS "'rope_scaling': null, "
                            "'sliding_window': $window, "
                            "'tie_word_embeddings': false}",
        .frame = hf_frame,
        .layers = {phi3_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 3, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .original = 64, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000, .window = 10,
                  .sliding = "1"},
    },
    {
        .name = "phi3-long-in-short",
        .config = PHI3_LONG_KEYS,
        .frame = hf_frame,
        .layers = {phi3_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {PHI3_LONG_SHAPE},
        .n_tokens = 30,
        .context = 64,
    },
    {
        .name = "phi3-long",
        .config = PHI3_LONG_KEYS,
        .frame = hf_frame,
        .layers = {phi3_layer},
        .bits = LLAMA_BITS | HAS_HEAD,
        .shape = {PHI3_LONG_SHAPE},
    },
    {
        .name = "phi4-mini",
        .config =
            PHI3_KEYS "'partial_rotary_factor': 0.75, "
                      "'rope_scaling': {'long_factor': [$long], "
                      "'short_factor': [$short], 'type': 'longrope'}, "
                      "'sliding_window': 262144, "
                      "'tie_word_embeddings': true}",
        .frame = hf_frame,
        .layers = {phi3_layer},
        .bits = LLAMA_BITS,
        .shape = {.dim = 64, .hidden = 84, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 128, .eps = 1e-5,
                  .activation = oracle_silu, .theta = 10000,
                  .rotary_dim = 12, .rope = ORACLE_ROPE_LONG,
                  .original = 32, .rope_scale = LONGROPE_SCALE},
    },
    {
        .name = "stablelm",
        .config = STABLELM_KEYS "'qk_layernorm': false, "
                                "'use_parallel_residual': false, "
                                "'use_qkv_bias': true}",
        .frame = hf_frame,
        .layers = {stablelm_norms, hf_mlp},
        .bits = LLAMA_BITS | HAS_NORM_BIAS | HAS_QKV_BIAS | HAS_HEAD,
        .shape = {.dim = 64, .hidden = 84, .layers = 3, .heads = 4,
                  .kv_heads = 4, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .rotary_dim = 4,
                  .theta = 10000},
    },
    {
        .name = "stablelm-12b",
        .config = STABLELM_KEYS "'qk_layernorm': true, "
                                "'use_parallel_residual': true, "
                                "'use_qkv_bias': false}",
        .frame = hf_frame,
        .layers = {stablelm_norms, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM | HAS_NORM_BIAS | HAS_HEAD |
                HAS_QK_NORM_HEADS,
        .shape = {.dim = 64, .hidden = 84, .layers = 3, .heads = 4,
                  .kv_heads = 2, .head_dim = 16, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .is_parallel = true,
                  .rotary_dim = 4, .theta = 10000},
    },
    {
        .name = "cohere",
        .config = COHERE_KEYS "'use_qk_norm': false}",
        .frame = hf_frame,
        .layers = {cohere_norms, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 6, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .is_parallel = true,
                  .is_interleaved = true, .theta = 75000000,
                  .logit_scale = 0.0625},
    },
    {
        .name = "cohere-plus",
        .config = COHERE_KEYS "'tie_word_embeddings': true, "
                              "'use_qk_norm': true}",
        .frame = hf_frame,
        .layers = {cohere_norms, hf_mlp},
        .bits = HAS_GATE | HAS_ATTN_NORM | HAS_QK_NORM_HEADS,
        .shape = {.dim = 60, .hidden = 84, .layers = 3, .heads = 6,
                  .kv_heads = 2, .head_dim = 10, .vocab = 61,
                  .max_positions = 64, .eps = 1e-5, .norm = ORACLE_LAYER,
                  .activation = oracle_silu, .is_parallel = true,
                  .is_interleaved = true, .theta = 75000000,
                  .logit_scale = 0.0625},
    },
    {.name = NULL},
};
