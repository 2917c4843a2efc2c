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
    {.name = NULL},
};
