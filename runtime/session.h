/*
 * session.h - one sequence of tokens through a model: the only thing that
 * changes.
 *
 * Everything is allocated when a session is made; evaluating allocates
 * nothing.
 */
#ifndef LMQ_RUNTIME_SESSION_H
#define LMQ_RUNTIME_SESSION_H

#include "runtime/model.h"

/* How the activations enter an int8 product. */
enum lmq_activations {
    LMQ_ACTIVATIONS_Q8,  /* int8 in the weights' groups */
    LMQ_ACTIVATIONS_Q16, /* 16 bits: two int8 halves */
    LMQ_ACTIVATIONS_F32  /* not at all: the weights are widened instead */
};

/* The keys and values of one layer: [kv head][position][head_dim]. */
struct lmq_kv {
    unsigned char *keys, *values;
};

/* What the forward pass works with: buffers for `batch` tokens. */
struct lmq_work {
    size_t batch;
    int n_threads;
    enum lmq_activations activations;
    enum lmq_row_type kv_type;
    size_t context;   /* positions that an lmq_kv has room for */
    float *x;         /* (batch, dim): the residual stream */
    float *norm;      /* (batch, dim) */
    float *q;         /* (batch, heads * head_dim) */
    float *k, *v;     /* (batch, kv heads * head_dim) */
    float *attention; /* (batch, heads * head_dim) */
    float *out;       /* (batch, dim) */
    float *gate, *up; /* (batch, hidden_dim) */
    float *cosines, *sines; /* (batch, head_dim / 2) */
    unsigned char *packed;  /* quantized activations of one operand */
    struct lmq_thread_work *threads; /* (n_threads) */
};

struct lmq_session {
    const struct lmq_model *model;
    struct lmq_work work;
    struct lmq_kv *kv;    /* (n_layers) */
    float *logits;        /* (n_logits_most, vocab) */
    size_t n_logits;      /* of the last evaluation */
    size_t n_logits_most;
    int32_t *history;     /* (context): the tokens behind the cache */
    size_t position;      /* how many of them */
};

/* Shared with the validator, which brings its own keys and values. */
enum lmq_status lmq_work_init(struct lmq_work *work,
                              const struct lmq_model *model, size_t batch,
                              size_t context, enum lmq_row_type kv_type,
                              enum lmq_activations activations, int threads,
                              struct lmq_error *err);
void lmq_work_free(struct lmq_work *work);

/* The names of options; NULL is the default, for activations what the model
 * recommends. */
enum lmq_status lmq_activations_parse(const struct lmq_model *model,
                                      const char *text,
                                      enum lmq_activations *activations,
                                      struct lmq_error *err);
enum lmq_status lmq_kv_parse(const char *text, enum lmq_row_type *type,
                             struct lmq_error *err);

/* Bytes of the keys (or values) of one layer; 0 if that wraps. */
size_t lmq_kv_bytes(const struct lmq_model *model, enum lmq_row_type type,
                    size_t context);

#endif
