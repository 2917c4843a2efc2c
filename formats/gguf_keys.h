/*
 * gguf_keys.h - what GGUF calls the numbers of a description, read and
 * written from the same tables.
 *
 * Much of a description is not in a GGUF file: its general.architecture
 * implies it. gguf_families.c has a row for each that we know.
 */
#ifndef LMQ_FORMATS_GGUF_KEYS_H
#define LMQ_FORMATS_GGUF_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/checkpoint.h"
#include "formats/gguf_build.h"
#include "formats/gguf_meta.h"
#include "formats/hparams.h"

/* ---- Families ---- */

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
    LMQ_GGUF_PARALLEL = 4096,
    LMQ_GGUF_EXPERT_DIM = 8192 /* experts have another width */
};

/* Which tensors have biases. */
enum {
    LMQ_GGUF_BIAS_NORM = 1,
    LMQ_GGUF_BIAS_QKV = 2,
    LMQ_GGUF_BIAS_OUT = 4,
    LMQ_GGUF_BIAS_FFN = 8,
    LMQ_GGUF_BIAS_HEAD = 16
};

/* Whether there is an output.weight besides the embedding. */
enum lmq_gguf_head {
    LMQ_GGUF_HEAD_MAY,
    LMQ_GGUF_HEAD_MUST, /* be it the same once more */
    LMQ_GGUF_HEAD_NEVER
};

/* What only the tensors tell. */
struct lmq_gguf_evidence {
    uint32_t vocab_size;      /* rows of the embedding */
    bool has_head;            /* one of its own */
    bool has_qk_norm;
    bool has_ffn_norm;
    bool has_second_norm;     /* attn_norm_2: Falcon's */
    bool has_query_latents;   /* attn_q_a */
    bool has_correction;      /* exp_probs_b */
    const double *always;     /* rope_freqs: factors of the rotary angles */
    const double *near, *far; /* rope_factors_short, _long */
    uint32_t n_always, n_near, n_far;
};

struct lmq_gguf_family {
    const char *name;         /* general.architecture */
    const char *architecture; /* what we call it */
    unsigned keys;
    bool has_rotary_pairs;    /* side by side; else in halves */
    bool fuses_qkv;           /* attn_qkv is one tensor */
    bool fuses_gate_up;       /* ffn_up has the gate's rows before its own */
    enum lmq_norm norm;
    enum lmq_norm_place norm_place;
    enum lmq_residual residual;
    enum lmq_qk_norm qk_norm; /* if there are weights for one */
    enum lmq_positions positions;
    enum lmq_activation activation;
    bool is_gated;
    uint32_t window_period;   /* each so many-th layer sees everything; 0: all
                                 layers have the window */
    /* llama.cpp loads nothing else. */
    enum lmq_gguf_head head;
    unsigned may_biases, must_biases;
    /* Before the keys: defaults other than a Llama's. May be NULL. */
    void (*begin)(struct lmq_hparams *hparams);
    /* After them: what the architecture implies. May be NULL. */
    void (*finish)(struct lmq_hparams *hparams,
                   const struct lmq_gguf_evidence *evidence);
};

/* NULL if it is not known. */
const struct lmq_gguf_family *lmq_gguf_family(const unsigned char *name,
                                              size_t size);
/* The one in which a model of ours is written. */
const struct lmq_gguf_family *
lmq_gguf_family_for(const char *architecture);

/* ---- Keys ---- */

/*
 * Fills in *hparams and tells how `source` arranges things. An architecture
 * that is not known is no error: the model is refused then, and *family NULL.
 * Keys of the architecture that are not understood are noted.
 */
enum lmq_status
lmq_gguf_read_keys(const struct lmq_gguf_meta *meta,
                   const struct lmq_gguf_evidence *evidence,
                   struct lmq_checkpoint *checkpoint,
                   const struct lmq_gguf_family **family,
                   struct lmq_error *err);

/* The same way back: only the keys of the architecture, and its name. */
void lmq_gguf_write_keys(struct lmq_gguf_builder *builder,
                         const struct lmq_gguf_family *family,
                         const struct lmq_hparams *hparams);

#endif
