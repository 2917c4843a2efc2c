/*
 * family_row.h - a family of models: what is the same in all of them, and how
 * config.json and GGUF say the rest.
 *
 * hf_config.c and gguf_keys.c read and write by the rows of families*.c. What
 * no row can say is in the functions of hf_special.c, gguf_special.c and the
 * like.
 */
#ifndef LMQ_FORMATS_FAMILIES_FAMILY_ROW_H
#define LMQ_FORMATS_FAMILIES_FAMILY_ROW_H

#include <jansson.h>
#include <stddef.h>

#include "formats/checkpoint/checkpoint.h"
#include "formats/model/hparams.h"

struct lmq_hf_config;
struct lmq_gguf_evidence;

/* ---- In Hugging Face's config.json ---- */

/* The field stays as it is without the key. */
#define LMQ_HF_KEEP (-1.0)
/* The same, and the key is read only: another one says it, too. */
#define LMQ_HF_ALIAS (-2.0)

/* A key and the field that it fills. */
struct lmq_hf_key {
    const char *key;   /* NULL ends a list */
    size_t field;      /* its offset in struct lmq_hparams */
    double absent;     /* the field's value then */
    bool null_is_none; /* null means 0 and not what absence means */
};

/* A key that may have one value, which is what we compute. */
struct lmq_hf_only {
    const char *key;  /* NULL ends a list */
    const char *word; /* NULL: no text */
    double number;    /* or a switch, 0 or 1; NAN: neither */
};

struct lmq_hf_class {
    const char *name;   /* in "architectures"; may be NULL */
    const char *type;   /* "model_type", when that is absent */
    const char *nested; /* a model of several senses: the keys of its text part
                           stand in the object under this one, which names the
                           type of that part; if it does not, it is this one */
    bool may_be_flat;   /* or they stand outside, as older files have it */
};

/* The key that says whether matrices have a bias. NULL: they never have;
 * LMQ_HF_ALWAYS: they always have. */
#define LMQ_HF_ALWAYS ""

struct lmq_hf_bias {
    const char *key;
    bool absent; /* whether they have one then */
};

struct lmq_hf_biases {
    struct lmq_hf_bias qkv, out, mlp, head;
};

#define LMQ_HF_MOST_CLASSES 7
#define LMQ_HF_MOST_LISTS 4

struct lmq_hf_form {
    struct lmq_hf_class classes[LMQ_HF_MOST_CLASSES]; /* first: written */
    struct lmq_source source;

    const char *eps_key;        /* NULL: always `eps` */
    double eps;
    const char *activation_key; /* NULL: "hidden_act"; "": none counts */
    const char *qk_norm_key;    /* whether there are such norms; NULL: yes */
    bool has_qk_norm_unsaid;    /* if the key is absent */
    bool has_tied_head;         /* if the configuration does not say */
    bool has_layer_types;       /* "layer_types" counts; else it must agree */

    /* The values of absent keys. */
    uint32_t context;
    uint32_t original_context; /* before scaling; 0: `context` */
    uint32_t n_kv_heads;     /* 0: as many as heads */
    uint32_t head_dim;       /* 0: width / heads */
    double theta;
    const char *theta_key;   /* what the class reads in place of rope_theta */
    double partial;          /* of a head, that turns; 0: all, always */
    const char *partial_key; /* in place of partial_rotary_factor */
    bool has_sections;       /* rotary ones, for images */
    bool has_mscales;        /* the gain of rotary scaling, short and long */
    bool has_inner_context;  /* that of longrope may stand in it alone */
    bool has_still_kinds;    /* a kind of layers may not turn: null; one that
                                no layer is of may be absent */
    bool has_parts;          /* as much of a head turns as is said for a kind of
                                layers; else all alike */
    double local_theta;      /* of layers with a window; 0: like the others */
    const char *local_key;   /* the key for it; NULL: none */
    bool theta_differs;      /* from version to version: refused if absent */
    bool turns_unsaid;       /* in a way of its own where nothing is said of
                                scaling; older versions did not: refused */
    bool has_rope_alpha;     /* "dynamic" scaling may have a fixed "alpha" */
    bool has_score_growth;   /* "llama_4_scaling_beta" */
    bool has_own_layers;     /* kinds of layers, and how each turns, are said
                                in its own way: read by `windows` */

    const struct lmq_hf_key *keys[LMQ_HF_MOST_LISTS];
    const struct lmq_hf_only *only; /* may be NULL */
    /* Before sizes are derived and rotary positions are read; windows; when
     * all else is done. NULL where nothing is special. */
    void (*begin)(struct lmq_hf_config *config);
    void (*windows)(struct lmq_hf_config *config);
    void (*finish)(struct lmq_hf_config *config);

    /* Only of families that are written. */
    enum lmq_names names;    /* 0: they are not */
    unsigned joins;          /* bits of joined.h */
    struct lmq_hf_biases biases;
    /* The keys of the three functions above; may be NULL. */
    void (*write)(const struct lmq_hparams *hparams, json_t **config);
};

/* ---- In GGUF ---- */

/* Which keys a family has, besides those that all have. */
enum {
    LMQ_GGUF_RMS = 1,      /* the epsilon of an RMS norm */
    LMQ_GGUF_LAYER = 2,    /* that of a layer norm */
    LMQ_GGUF_ROPE = 4,
    LMQ_GGUF_WINDOW = 8,
    LMQ_GGUF_CAPS = 16,
    LMQ_GGUF_LOGIT = 32,   /* logit_scale */
    LMQ_GGUF_SCALES = 64,  /* residual, embedding, attention */
    LMQ_GGUF_CLIP = 128,
    LMQ_GGUF_EXPERTS = 256,
    LMQ_GGUF_ROUTER = 512, /* how a router chooses */
    LMQ_GGUF_LATENT = 1024,
    LMQ_GGUF_LOCAL = 2048, /* a rotary base for layers with a window */
    LMQ_GGUF_SELECTIVE = 4096, /* states of which each key decays for itself */
    LMQ_GGUF_EXPERT_DIM = 8192, /* experts have another width */
    LMQ_GGUF_ALIBI = 16384, /* whether it is used, and how steep it is */
    LMQ_GGUF_STEP = 32768, /* experts in every so many-th layer */
    LMQ_GGUF_GROWTH = 65536, /* of scores */
    LMQ_GGUF_FURTHER = 131072, /* block_count counts layers for more tokens */
    LMQ_GGUF_SECTIONS = 262144, /* turns by sections, all alike for text */
    LMQ_GGUF_CHUNK = 524288, /* chunks of attention, or a window of 0 */
    LMQ_GGUF_DELTA = 1048576, /* the gated delta rule, whose decay is stored
                                 itself */
    LMQ_GGUF_KINDS = 2097152, /* heads and widths by kinds of layers */
    LMQ_GGUF_PERIOD = 4194304, /* after how many positions scores grow */
    LMQ_GGUF_STATES = 8388608, /* state spaces where no keys are */
    LMQ_GGUF_SHORT = 16777216, /* short convolutions where no keys are */
    LMQ_GGUF_HALVES = 33554432, /* layers are half a layer */
    LMQ_GGUF_TWO_EPS = 67108864, /* the epsilon under either name or both */
    LMQ_GGUF_SHARED_DIM = 134217728, /* the width of all shared experts, not
                                        only how many they are */
    LMQ_GGUF_INDEXER = 268435456, /* of sparse attention */
    LMQ_GGUF_LISTS = 536870912, /* of each layer whether it has a window */
    LMQ_GGUF_KEY_KINDS = 1073741824 /* heads of keys alone by kinds of layers,
                                       and a scale of what heads give */
};

/* The last ones, which are no int: the delta rule of which each key decays for
 * itself, where no keys are; several streams; and of that rule the one with a
 * bound of decays, which has no latents, and what decays above 0. */
#define LMQ_GGUF_KEY_DECAYS 0x80000000U
#define LMQ_GGUF_STREAMS ((uint64_t)0x100000000)
#define LMQ_GGUF_DECAY_FLOOR ((uint64_t)0x400000000)
/* And several times through all layers. */
#define LMQ_GGUF_LOOPS ((uint64_t)0x200000000)

/* Lightning attention in some layers; what all blocks add to is scaled. */
#define LMQ_GGUF_LIGHTNING ((uint64_t)0x1000000000)

/* What is activated is limited, in some layers. */
#define LMQ_GGUF_LIMITS ((uint64_t)0x800000000)

/* Streams by hyper-connections; sparse attention that chooses groups of
 * positions, in layers that stand still. */
#define LMQ_GGUF_HYPER ((uint64_t)0x2000000000)
#define LMQ_GGUF_GROUPS ((uint64_t)0x4000000000)
/* Pools of keys that are values, which turn by another base than what has only
 * a window; tables of experts by tokens. */
#define LMQ_GGUF_POOLS ((uint64_t)0x8000000000)
/* Positions that are chosen by a description; of each layer whether it does or
 * follows. */
#define LMQ_GGUF_CHOICES ((uint64_t)0x10000000000)
#define LMQ_GGUF_CHOOSERS ((uint64_t)0x20000000000)

/* Layers with states whose heads are counted; with states, whichever rule they
 * follow; layers without keys among others, by the numbers of these. */
#define LMQ_GGUF_OF_HEADS (LMQ_GGUF_DELTA | LMQ_GGUF_STATES)
#define LMQ_GGUF_ANY_STATE                                                    \
    (LMQ_GGUF_OF_HEADS | LMQ_GGUF_SELECTIVE | LMQ_GGUF_KEY_DECAYS)
#define LMQ_GGUF_BY_LAYER                                                     \
    (LMQ_GGUF_STATES | LMQ_GGUF_SELECTIVE | LMQ_GGUF_SHORT |                  \
     LMQ_GGUF_KEY_DECAYS)

/* Which tensors have biases. */
enum {
    LMQ_GGUF_BIAS_NORM = 1,
    LMQ_GGUF_BIAS_QKV = 2,
    LMQ_GGUF_BIAS_OUT = 4,
    LMQ_GGUF_BIAS_FFN = 8,
    LMQ_GGUF_BIAS_HEAD = 16,
    LMQ_GGUF_BIAS_EXPERTS = 32, /* and the router */
    LMQ_GGUF_BIAS_CONV = 64
};

/* Whether there is an output.weight besides the embedding. */
enum lmq_gguf_head {
    LMQ_GGUF_HEAD_MAY,
    LMQ_GGUF_HEAD_MUST, /* be it the same once more */
    LMQ_GGUF_HEAD_NEVER
};

struct lmq_gguf_form {
    const char *name;       /* general.architecture; NULL: GGUF lacks it. Of
                               several rows with one name the first counts */
    uint64_t keys;
    bool has_rotary_pairs;  /* side by side; else in halves */
    bool has_index_halves;  /* but not in what chooses positions */
    bool says_residual;     /* whether both halves look at the same */
    bool counts_by_layer;   /* heads and widths of each layer may differ */
    bool has_voids;         /* 0 of these: what the layer does not have */
    bool has_local_part;    /* rope.dimension_count_swa: how much of a head
                               turns in layers with windows */
    bool halves_part;       /* rope.dimension_count is twice what turns in
                               layers that see everything; factors of
                               frequencies go on, 1, to what turns in others */
    bool limits_gates;      /* of LMQ_GGUF_LIMITS that of experts is a limit
                               before the activation, of all layers, which is
                               0 where there is none */
    bool limits_all_gates;  /* likewise of feed-forwards that are none */
    bool is_only_read;      /* it has tensors that a model lacks here */
    const char *why_not;    /* it is neither read nor written; NULL: it is */
    bool norm_by_eps;       /* the epsilon's name says the kind of norm */
    bool fuses_qkv;         /* attn_qkv is one tensor */
    bool fuses_gate_up;     /* ffn_up has the gate's rows before its own */
    bool fuses_shared;      /* likewise ffn_up_shexp */
    bool has_post_norm_name; /* of the feed-forward's: post_attention_norm */
    bool has_double_feed;   /* feed_forward_length is twice what it is */
    bool says_activation;   /* under hidden_activation; without it: SiLU */
    bool may_stand_still;   /* rope.scaling.finetuned false: nothing turns */
    bool lacks_still;       /* which newer llama.cpps leave out: only read */
    bool has_full_first;    /* of so many layers the first sees everything */
    bool has_turns;         /* attention.rope_pattern: which layers turn */
    bool has_both;          /* attention and a state in each layer */
    bool has_bare_feed_norm; /* ffn_norm, without ".weight" */
    bool folds_scales;      /* of embedding and logits: into the tensors */
    bool weighs_bare_norms; /* norms of queries and keys have weights that
                               are how scores are scaled, and 1 */
    bool has_tiled_values;  /* of the delta rule: lmq_tiled_values() */
    bool has_late_norm_name; /* of the last norm: token_embd_norm */
    bool has_bare_correction; /* exp_probs_b, without ".bias" */
    unsigned joins;         /* bits of joined.h */
    bool lacks_qk_norm;     /* though models of the family may have one */
    /* llama.cpp loads nothing else. */
    enum lmq_gguf_head head;
    unsigned may_biases, must_biases;
    /* Before the keys: defaults other than a Llama's. May be NULL. */
    void (*begin)(struct lmq_hparams *hparams);
    /* After them: what the architecture implies. May be NULL. */
    void (*finish)(struct lmq_hparams *hparams,
                   const struct lmq_gguf_evidence *evidence);
};

/* ---- Families ---- */

/* What a row leaves out is as in Llama: RMS norms before each half, one half
 * after the other, rotary positions, SiLU. */
struct lmq_family {
    const char *name; /* hparams.architecture */
    enum lmq_norm norm;
    enum lmq_norm_place norm_place;
    enum lmq_residual residual;
    enum lmq_positions positions;
    enum lmq_qk_norm qk_norm; /* if a model has one */
    enum lmq_activation activation; /* if config.json names no other */
    bool is_plain;    /* a feed-forward without gate */
    uint32_t window_period; /* each so many-th layer sees everything, if the
                               file does not say; 0: all have the window */
    struct lmq_hf_form hf;
    struct lmq_gguf_form gguf;
};

#endif
