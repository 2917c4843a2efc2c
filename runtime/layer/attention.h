/*
 * attention.h - out = softmax(q k^T * scale + mask) v, head by head.
 */
#ifndef LMQ_RUNTIME_LAYER_ATTENTION_H
#define LMQ_RUNTIME_LAYER_ATTENTION_H

#include "runtime/member.h"

/* Queries, what they look at, and how. */
struct lmq_heads {
    const float *queries; /* (n, n_heads, width of a key) */
    float *out;           /* (n, n_heads, width of a value) */
    size_t n_heads, n_kv_heads;
    size_t window;        /* 0: none */
    size_t chunk;         /* 0: none */
    float scale;          /* of the scores */
    double growth;        /* of the scores: hparams.h; 0: none */
    const float *head_growth; /* (n_heads), of the scores by ln(1 + position),
                                 or NULL; */
    const float *head_scales; /* and what is added to that */
    float softcap;        /* of the scores; 0: none */
    const float *slopes;  /* (n_heads), of ALiBi; or NULL */
    bool is_coarse;       /* ALiBi as Falcon has it */
    const float *sinks;   /* (n_heads), or NULL */
    float value_scale;    /* of what comes of it */
    size_t pool;          /* positions that a pool stands for; 0: none do */
    const unsigned char *chosen; /* (n, chosen_stride): bits of what each token
                                    sees, of pools if there are any, else of
                                    positions; NULL: all */
    size_t chosen_stride; /* bytes */
};

/* The heads of the member's layer, but for queries and out. */
struct lmq_heads lmq_heads_of(const struct lmq_member *member);

/*
 * Causal attention of the member's tokens. A running softmax over blocks of
 * positions, so that memory does not grow with the context. All members take
 * part.
 */
void lmq_attention(const struct lmq_member *member,
                   const struct lmq_heads *heads);

#endif
