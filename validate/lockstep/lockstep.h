/*
 * lockstep.h - several models over the same tokens, layer by layer.
 *
 * A batch of windows goes through layer l of all sides before any of it goes
 * through layer l + 1; then the layer is dropped. So every weight is read
 * once per batch, memory does not grow with the models, and the residual
 * streams can be compared after each layer.
 */
#ifndef LMQ_VALIDATE_LOCKSTEP_H
#define LMQ_VALIDATE_LOCKSTEP_H

#include "validate/lockstep/logits.h"
#include "validate/lockstep/sides.h"

/* Who decides what a side computes with: the ends of its view of a model, once,
 * to be changed at will; and a layer, before and behind the side's way through
 * it. What enter() does to the matrices of `model` there, leave() must undo,
 * which is called even where that failed. */
struct lmq_owner {
    void *context;
    void (*ends)(void *context, size_t side, struct lmq_model *view);
    enum lmq_status (*enter)(void *context, size_t side, size_t layer,
                             struct lmq_model *model, struct lmq_error *err);
    void (*leave)(void *context, size_t side);
};

/* What is learnt; called in a fixed order, never in parallel. */
struct lmq_observer {
    void *context;
    /* Side `side` after `layer` (-1: the embedding): sums over one window's
     * positions. NULL: nobody asks. */
    void (*layer)(void *context, size_t side, int32_t layer,
                  const struct lmq_stream_drift *drift);
    /* Side `side` at one scored position. */
    enum lmq_status (*position)(void *context, size_t side,
                                const struct lmq_window *window, size_t token,
                                const struct lmq_position_drift *drift,
                                struct lmq_error *err);
    /* Every few hundred positions of a layer, or some of the head; other than
     * LMQ_OK stops. */
    enum lmq_status (*progress)(void *context, double done, double total,
                                struct lmq_error *err);
    bool wants_whole_windows; /* also of what was stopped: within the head it
                                 goes on to the end of the window */
    const struct lmq_owner *owner; /* or NULL */
};

enum lmq_status lmq_lockstep_run(const struct lmq_lockstep *lockstep,
                                 const struct lmq_observer *observer,
                                 struct lmq_error *err);

#endif
