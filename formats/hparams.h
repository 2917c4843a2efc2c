/*
 * hparams.h - the hyper-parameters of a decoder-only model, in one form for
 * all formats.
 *
 * A reader fills in what its file says and the defaults that its format
 * implies. What the file asks for and this program does not understand goes
 * to `unsupported`: such a model can be converted and inspected, not run.
 */
#ifndef LMQ_FORMATS_HPARAMS_H
#define LMQ_FORMATS_HPARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lmquant.h"

#define LMQ_MAX_EOS 8

/* Caps on numbers from files: far above any model, far below overflow. */
#define LMQ_MAX_LAYERS 4096
#define LMQ_MAX_HEADS 65536
#define LMQ_MAX_WIDTH (1 << 24)
#define LMQ_MAX_CONTEXT (1 << 28)

enum lmq_rope_scaling {
    LMQ_ROPE_PLAIN,
    LMQ_ROPE_LINEAR,
    LMQ_ROPE_LLAMA3,
    LMQ_ROPE_SCALING_COUNT
};

enum lmq_tie { LMQ_TIE_UNSAID, LMQ_TIE_NO, LMQ_TIE_YES };

struct lmq_hparams {
    char architecture[64];   /* "llama", "mistral", ... or "" */
    char unsupported[160];   /* why it cannot run, or "" */
    uint32_t n_layers;
    uint32_t dim;
    uint32_t hidden_dim;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t vocab_size;
    uint32_t context;        /* positions it was trained for */
    uint32_t sliding_window; /* 0: none */
    double norm_eps;
    double rope_theta;
    enum lmq_rope_scaling rope_scaling;
    double rope_factor, rope_low_factor, rope_high_factor;
    uint32_t rope_context;   /* context before scaling */
    enum lmq_tie tie;        /* what the configuration says */
    int32_t bos;             /* -1: none */
    int32_t eos[LMQ_MAX_EOS];
    uint32_t n_eos;
};

/* Nothing said yet: zeros, bos -1, the defaults of the Llama family. */
void lmq_hparams_init(struct lmq_hparams *hparams);

/* Every number within its cap, heads that divide, ...: what a forward pass
 * divides by or allocates with. */
enum lmq_status lmq_hparams_check(const struct lmq_hparams *hparams,
                                  struct lmq_error *err);

/* Notes why the model cannot be run; the first reason stays. */
void lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
    LMQ_PRINTF(2, 3);

/* The form in which a container and a report keep them (lmq(5), "model"). */
json_t *lmq_hparams_to_json(const struct lmq_hparams *hparams);
enum lmq_status lmq_hparams_from_json(const json_t *json,
                                      struct lmq_hparams *hparams,
                                      struct lmq_error *err);

#endif
