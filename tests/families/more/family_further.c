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
        .name = "qwen",
        .config =
            "{'architectures': ['QWenLMHeadModel'], 'attn_dropout_prob': "
            "0.0, 'bf16': false, 'emb_dropout_prob': 0.0, 'fp16': false, "
            "'hidden_size': $dim, 'initializer_range': 0.02, "
            "'intermediate_size': 168, 'kv_channels': $head_dim, "
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
    {.name = NULL},
};
