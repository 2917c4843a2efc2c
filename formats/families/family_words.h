/*
 * family_words.h - what the rows of the tables of families are written with:
 * keys and lists of them, usual values.
 */
#ifndef LMQ_FORMATS_FAMILIES_FAMILY_WORDS_H
#define LMQ_FORMATS_FAMILIES_FAMILY_WORDS_H

#include <math.h>

#include "formats/families/family_row.h"
#include "formats/model/hparams_fields.h"

/* (families_older.c, families_later.c, families_latest.c,
 * families_recurrent.c, families_further.c, families_uneven.c) */
extern const struct lmq_family lmq_older_families[], lmq_later_families[],
    lmq_latest_families[], lmq_recurrent_families[], lmq_further_families[],
    lmq_uneven_families[];
extern const size_t lmq_n_older_families, lmq_n_later_families,
    lmq_n_latest_families, lmq_n_recurrent_families, lmq_n_further_families,
    lmq_n_uneven_families;

/* ---- Keys of config.json ---- */

#define KEEP LMQ_HF_KEEP
#define ALIAS LMQ_HF_ALIAS
#define KEY(name, field, absent) {name, LMQ_FIELD(field), absent, false}
#define KEY_OR_NULL(name, field, absent)                                      \
    {name, LMQ_FIELD(field), absent, true}
#define END {NULL, 0, 0, false}

/* Keys with one value, or none. */
#define WORD(key, word) {key, word, (double)NAN}
#define NUMBER(key, number) {key, NULL, number}
#define END_ONLY {NULL, NULL, 0}

/* The sizes of a class, which files of a model of several senses leave out. */
#define SIZES(dim_, hidden_dim_, n_layers_, n_heads_, vocab_size_)            \
    KEY("hidden_size", dim, dim_),                                            \
        KEY("intermediate_size", hidden_dim, hidden_dim_),                    \
        KEY("num_hidden_layers", n_layers, n_layers_),                        \
        KEY("num_attention_heads", n_heads, n_heads_),                        \
        KEY("vocab_size", vocab_size, vocab_size_)

static const struct lmq_hf_key sizes[] = {
    KEY("hidden_size", dim, 0),
    KEY("intermediate_size", hidden_dim, 0),
    KEY("num_hidden_layers", n_layers, 0),
    KEY("num_attention_heads", n_heads, 0),
    KEY("vocab_size", vocab_size, 0),
    KEY("max_position_embeddings", context, KEEP),
    KEY_OR_NULL("num_key_value_heads", n_kv_heads, KEEP),
    END,
};

static const struct lmq_hf_key head_dim[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    END,
};

static const struct lmq_hf_key granite_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY("embedding_multiplier", embedding_scale, 1),
    KEY("residual_multiplier", residual_scale, 1),
    KEY("attention_multiplier", attn_scale, 1),
    END,
};

static const struct lmq_hf_key cohere_keys[] = {
    KEY_OR_NULL("head_dim", head_dim, KEEP),
    KEY("logit_scale", logit_scale, 0.0625),
    END,
};

/* As DeepSeek V3 routes. */
static const struct lmq_hf_only by_sigmoid[] = {
    WORD("topk_method", "noaux_tc"),
    WORD("scoring_func", "sigmoid"),
    END_ONLY,
};

/* The library does not look at it in classes that never had it. */
static const struct lmq_hf_only no_scaling[] = {
    {"rope_scaling", NULL, (double)NAN},
    END_ONLY,
};

/* ---- Rows ---- */

#define RMS_EPS(value) .eps_key = "rms_norm_eps", .eps = (value)
#define LAYER_EPS(value) .eps_key = "layer_norm_eps", .eps = (value)
#define GPT_EPS(value) .eps_key = "layer_norm_epsilon", .eps = (value)
#define GELU_KEY .activation_key = "hidden_activation"

/* A class of several senses. */
#define TEXT_OF(name, type) {name, type, "text_config", false}
#define TEXT_OF_OR_FLAT(name, type) {name, type, "text_config", true}

#define BIASES                                                                \
    .biases = {.qkv = {"attention_bias", false},                              \
               .out = {"attention_bias", false}}
#define MLP_BIASES                                                            \
    .biases = {.qkv = {"attention_bias", false},                              \
               .out = {"attention_bias", false},                              \
               .mlp = {"mlp_bias", false}}
#define ALL_BIASES(key, absent)                                               \
    .biases = {.qkv = {key, absent}, .out = {key, absent},                    \
               .mlp = {key, absent}}

#define LLAMA_KEYS (LMQ_GGUF_RMS | LMQ_GGUF_ROPE)
#define DELTA_KEYS (LLAMA_KEYS | LMQ_GGUF_DELTA | LMQ_GGUF_FURTHER)
#define GPT_KEYS (LMQ_GGUF_LAYER | LMQ_GGUF_ROPE)
#define LLAMA_BIASES                                                          \
    (LMQ_GGUF_BIAS_QKV | LMQ_GGUF_BIAS_OUT | LMQ_GGUF_BIAS_FFN)
#define GPT_BIASES (LMQ_GGUF_BIAS_NORM | LLAMA_BIASES)

#endif
