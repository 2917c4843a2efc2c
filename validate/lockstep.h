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

#include "runtime/kv.h"
#include "runtime/work.h"
#include "runtime/tokenizer/corpus.h"
#include "validate/logits.h"

/* Parts of a model that a side can take from the reference. */
enum lmq_part_mask {
    LMQ_PARTS_ATTENTION = 1,
    LMQ_PARTS_FFN = 2,
    LMQ_PARTS_EMBEDDING = 4,
    LMQ_PARTS_HEAD = 8
};

/* One of the models, perhaps with parts of the reference. */
struct lmq_side {
    const char *name;
    size_t model;           /* of lmq_lockstep.models; 0: the reference */
    enum lmq_activations activations;
    enum lmq_row_type kv_type;
    unsigned restored;      /* lmq_part_mask: taken from the reference */
    int32_t restored_layer; /* this layer too; -1: none */
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
    /* After each layer of a batch, and at its end; other than LMQ_OK stops. */
    enum lmq_status (*progress)(void *context, double done, double total,
                                struct lmq_error *err);
};

struct lmq_lockstep {
    struct lmq_model *const *models; /* opened lazily; first the reference */
    size_t n_models;
    const struct lmq_side *sides; /* the first is the reference; models may
                                     have none */
    size_t n_sides;
    const struct lmq_corpus *corpus;
    size_t n_windows; /* of the corpus, from the first on */
    size_t memory;    /* bytes that buffers may take, a layer of the reference
                         and one of another model */
    int threads;
    bool skips_checksums; /* of containers; else compared in the first batch */
};

/* Windows that are in flight at a time within the memory; 0 and an error if
 * not even one fits. */
size_t lmq_lockstep_batch(const struct lmq_lockstep *lockstep,
                          struct lmq_error *err);

enum lmq_status lmq_lockstep_run(const struct lmq_lockstep *lockstep,
                                 const struct lmq_observer *observer,
                                 struct lmq_error *err);

#endif
