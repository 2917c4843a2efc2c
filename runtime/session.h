/*
 * session.h - one sequence of tokens through a model: the only thing that
 * changes.
 *
 * Everything is allocated when a session is made; evaluating allocates
 * nothing.
 */
#ifndef LMQ_RUNTIME_SESSION_H
#define LMQ_RUNTIME_SESSION_H

#include "runtime/kv.h"
#include "runtime/model.h"
#include "runtime/work.h"

struct lmq_session {
    const struct lmq_model *model;
    struct lmq_work work;
    struct lmq_kv *kv;    /* (lmq_loops(), n_layers) */
    float *logits;        /* (n_logits_most, vocab) */
    size_t n_logits;      /* of the last evaluation */
    size_t n_logits_most;
    int32_t *history;     /* (context): the tokens behind the cache */
    size_t position;      /* how many of them */
    bool is_stale;        /* what layers remember besides keys and values is
                             not that of this position */
};

/* NULL: what the model recommends. */
enum lmq_status lmq_activations_parse(const struct lmq_model *model,
                                      const char *text,
                                      enum lmq_activations *activations,
                                      struct lmq_error *err);

#endif
