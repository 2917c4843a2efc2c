/*
 * family.h - small checkpoints with random weights, one for each family of
 * models and for each of their variants.
 *
 * A family is a row of a table: its config.json as real ones look, the names
 * and the arrangement of its tensors, and what the oracle is told of it. The
 * weights are made once, as matrices that mean something (queries, keys, ...);
 * the writer arranges them as the family stores them, and the oracle computes
 * with them as they are. Neither knows the readers.
 */
#ifndef LMQ_TESTS_FAMILIES_FAMILY_H
#define LMQ_TESTS_FAMILIES_FAMILY_H

#include <stddef.h>
#include <stdint.h>

#include "tests/families/oracle.h"

/* ---- How tensors are stored ---- */

enum stored_as {
    AS_END,
    AS_LINEAR,         /* name.weight, and name.bias if there is one */
    AS_NORM,           /* the same, a vector */
    AS_PLAIN_NORM,     /* the same, never minus 1 */
    AS_NORM_OF_HEADS,  /* (heads, head_dim) */
    AS_NORMS_OF_HEADS, /* one vector a head: the name has its number */
    AS_SINKS,          /* a number for each head; the full name */
    AS_SCALE,          /* one number; the full name */
    AS_XIELU,          /* number `at` of four; the full name. Of the last two it
                          is no vector */
    AS_SCALES,         /* a number for each expert; the full name */
    AS_VECTOR,         /* a norm's weights; the full name */
    AS_INPUTS,         /* of all layers */
    AS_CORRECTION,     /* a number for each expert; the full name */
    AS_DECAYS,         /* a number for each value head, or for each of its
                          keys or values; the full name */
    AS_DECAYS_OF_HEADS, /* (1, 1, value heads, 1); the full name */
    AS_STEPS,          /* the bias of alpha; the full name */
    AS_WEIGHT,         /* name.weight, of what has its bias elsewhere; the full
                          name if "=" stands behind it */
    AS_CONV,           /* (channels, 1, width), and a bias if there is one; of
                          all, or of those of a linear of the layer */
    AS_CONV_LAST,      /* (channels, width, 1), likewise */
    AS_CONV_PART,      /* as AS_CONV, of queries (`at` 0), keys or values */
    AS_CONV_THIRD,     /* the same, three parts of one size, of which the last
                          may lack some */
    AS_LATENT_KEYS,    /* of each head: (latent, width of a key), turned */
    AS_LATENT_VALUES,  /* of each head: (width of a value, latent) */
    AS_STATES,         /* rows of gates, values, keys, queries, time steps */
    AS_KQV,            /* rows of keys, queries, values */
    AS_VALUES_GATES,   /* rows of values, gates */
    AS_OF_VALUES,      /* rows of latents of time steps, keys, queries */
    AS_SKIP,           /* a number for each value head; the full name */
    AS_DEEP,           /* (rows, 1, columns) */
    AS_SHARDS,         /* rows in parts, whose names have their numbers */
    AS_BLOCKS,         /* name_weight, of each head (inputs, outputs), and
                          name_bias */
    AS_DELTA_QKV,      /* rows of queries, keys, values */
    AS_DELTA_QKV_BY_HEAD, /* of each key head: its query, the key, the value */
    AS_DELTA_QKVZ,     /* of each key head: query, key, values, gates */
    AS_DELTA_BA,       /* likewise beta and alpha */
    AS_Q_GATE,         /* of each head: its query, its gate */
    AS_EXPERTS,        /* a linear each: the name has the expert's number */
    AS_EXPERTS_FUSED,  /* all in three dimensions; the full name */
    AS_EXPERTS_BELOW,  /* the same in two dimensions, one below the other */
    AS_EXPERTS_TURNED, /* the same, each with outputs as columns */
    AS_EXPERTS_GATE_UP, /* the same, the gate's rows before the other ones */
    AS_QKV,            /* rows of queries, keys, values */
    AS_QKV_BY_HEAD,    /* of each key head: its queries, the key, the value */
    AS_QKV_BY_QUARTER, /* of each: queries, values, keys */
    AS_GATE_UP,        /* rows of the gate, then the other half */
    AS_MASK,           /* (1, 1, positions, positions): what old files carry */
    AS_FREQUENCIES,    /* the rotary ones, likewise */
    AS_EMBEDDING,
    AS_TABLE,
    AS_LATE_TABLE,     /* the same behind two rows that nobody reads */
    AS_STRAY           /* of another sense than text; the full name */
};

/* A tensor, or some, of a layer or of the whole model. `at` is the place in
 * struct oracle_layer (of AS_EXPERTS*: in struct oracle_mlp), or in struct
 * oracle_model. What the model does not have is not stored. */
struct stored {
    enum stored_as as;
    const char *name;
    size_t at;
};

#define LAYER(part) offsetof(struct oracle_layer, part)
#define MODEL(part) offsetof(struct oracle_model, part)
#define MLP(part) offsetof(struct oracle_mlp, part)

/* ---- Families ---- */

/* What weights a family has besides those of every model. */
enum family_bits {
    HAS_GATE = 1 << 0,
    HAS_ATTN_NORM = 1 << 1,
    HAS_FFN_NORM = 1 << 2,
    HAS_ATTN_POST_NORM = 1 << 3,
    HAS_FFN_POST_NORM = 1 << 4,
    HAS_NORM_BIAS = 1 << 5,
    HAS_PLAIN_NORMS = 1 << 6, /* no weights at all */
    HAS_QKV_BIAS = 1 << 7,
    HAS_OUT_BIAS = 1 << 8,
    HAS_MLP_BIAS = 1 << 9,
    HAS_HEAD = 1 << 10,       /* else it is the embedding */
    HAS_HEAD_COPY = 1 << 11,  /* which is stored twice */
    HAS_HEAD_BIAS = 1 << 12,
    HAS_QK_NORM = 1 << 13,       /* one for all heads */
    HAS_QK_NORM_HEADS = 1 << 14, /* weights for each head */
    HAS_QK_NORM_WHOLE = 1 << 15, /* all heads together */
    HAS_SINKS = 1 << 16,
    HAS_CORRECTION = 1 << 17,
    HAS_ROUTER_BIAS = 1 << 18,
    HAS_SWITCH = 1 << 19,        /* of the shared expert */
    /* How they are stored */
    NORMS_LESS_ONE = 1 << 20,
    COLUMNS_ARE_OUTPUTS = 1 << 21,
    EXPERTS_TURNED = 1 << 23, /* fused ones: columns are outputs */
    GATE_UP_BY_ROW = 1 << 24, /* fused: rows of both take turns */
    HAS_OUTPUT_GATE = 1 << 25,
    /* The embedding times sqrt(dim) */
    SCALES_EMBEDDING = 1 << 22,
    HAS_EMBEDDING_NORM = 1 << 27,
    HAS_UNIT_HEAD = 1 << 26, /* its rows have length 1, stored or not */
    HAS_MLP_AND_EXPERTS = 1 << 28, /* each with norms */
    HAS_LAYER_SCALE = 1 << 29,
    HAS_XIELU = 1 << 30
};

#define LLAMA_BITS (HAS_GATE | HAS_ATTN_NORM | HAS_FFN_NORM)

#define FAMILY_MOST_LISTS 6

struct family {
    const char *name;
    const char *config; /* ' stands for ", $dim for a size; see fill() */
    const char *prefix; /* of all names; NULL: none */
    const struct stored *frame;                     /* of the model */
    const struct stored *layers[FAMILY_MOST_LISTS]; /* of each layer */
    unsigned bits;
    struct oracle_shape shape;
    size_t n_tokens; /* to be tested with; 0: FAMILY_TOKENS */
    size_t context;  /* of the session; 0: as many as tokens */
};

#define FAMILY_TOKENS 40

/* NULL past the last one. */
const struct family *family_at(size_t i);
/* NULL if there is none of that name. */
const struct family *family_find(const char *name);
/* Why there is no GGUF of it: a part of the message; NULL if there is one. */
const char *family_without_gguf(const struct family *family,
                                const char *architecture);

/* Of a program that takes the name of a family: [*first, *end) is that one, or
 * without a name all. */
void family_range(int argc, char *const *argv, size_t *first, size_t *end);

/* The lists of names, in family_names.c. */
extern const struct stored hf_frame[], gemma3_frame[], gemma4_frame[],
    gemma4_layer[], gemma4_experts[], apertus_layer[],
    qwen35_frame[], nemotron_frame[], lfm2_frame[], bamba_frame[],
    phi2_frame[],
    neox_frame[], falcon_frame[], gpt2_frame[], gpt2_bare_frame[],
    plain_frame[];
extern const struct stored indexer[];
extern const struct stored hf_attention[], hf_norms[], hf_norms_around[],
    hf_norms_after[], hf_mlp[], hf_frequencies[], cohere_norms[],
    qwen3next_attention[], qwen35_attention[], delta_layer[],
    mamba_layer[], bamba_mlp[], nemotron_layer[], nemotron_experts[],
    lfm2_layer[], lfm2_experts[],
    stablelm_norms[], phi2_layer[], phi3_layer[], neox_layer[],
    falcon_layer[], falcon_one_norm[], falcon_two_norms[], gpt2_layer[],
    gpt2_bare_layer[], mixtral_experts[], qwen_experts[], fused_experts[],
    gptoss_layer[], llama4_layer[], llama4_fused[], llama4_experts[],
    minimax_experts[], hunyuan_norms[],
    hunyuan_experts[], ernie_experts[], granitemoe_layer[], glm_layer[],
    glm4_norms[], vaultgemma_norms[], granite4_mlp[], starcoder_layer[],
    deepseek_attention[], mlx_latent_layer[],
    deepseek_experts[], plain_attention[], plain_qk_norms[],
    plain_head_norms[], plain_norms[], plain_mlp[], plain_experts[];

extern const struct family llama_families[], other_families[],
    expert_families[], older_families[], recurrent_families[],
    mamba_families[], later_families[], plain_families[], latest_families[],
    further_families[], uneven_families[], linear_families[],
    pools_families[], lately_families[], gated_families[];

/* Of those whose layers are of several kinds. */
#define MIXED_KEYS                                                            \
    "'bos_token_id': 1, 'eos_token_id': 2, 'hidden_size': $dim, "             \
    "'max_position_embeddings': $positions, 'num_attention_heads': $heads, "  \
    "'num_hidden_layers': $layers, 'num_key_value_heads': $kv_heads, "        \
    "'use_cache': true, 'vocab_size': $vocab, "

#define MIXED_SHAPE                                                           \
    .vocab = 61, .max_positions = 64, .eps = 1e-5, .heads = 4,                \
    .kv_heads = 2, .conv_width = 4

/* ---- Models ---- */

struct family_model {
    const struct family *family;
    struct oracle_model oracle;
    float **owned;
    size_t n_owned;
    uint64_t random;
};

/* Widths are `grow` times those of the table; vocab 0: the table's. Logits
 * have a deviation of about 2.5, as those of real models do. */
struct family_model *family_make(const struct family *family, size_t grow,
                                 size_t vocab, uint64_t seed);
void family_free(struct family_model *model);

/* Random weights; outputs of a linear are `gain` times as large as inputs, and
 * it has a bias if the family has the bit. */
float *family_normals(struct family_model *model, size_t n, double mean,
                      double deviation);
struct oracle_linear family_linear(struct family_model *model, size_t rows,
                                   size_t cols, double gain, unsigned bias);
struct oracle_norm family_norm(struct family_model *model, size_t span,
                               size_t n, double mean);

/* All widths times `grow` (family_config.c). */
void family_grow(struct oracle_shape *s, size_t grow, unsigned bits);
/* Its config.json (family_config.c). */
struct bytes;
void family_config(const struct family_model *model, struct bytes *bytes);

/* Rows of length 1. */
void family_make_unit(struct oracle_linear *linear);

/* A folder with config.json and model.safetensors. */
void family_write(const struct family_model *model, const char *folder);

#endif
