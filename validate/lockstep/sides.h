/*
 * sides.h - who walks in lock-step, over what, and what memory that takes.
 */
#ifndef LMQ_VALIDATE_SIDES_H
#define LMQ_VALIDATE_SIDES_H

#include "runtime/kv.h"
#include "runtime/tokenizer/corpus.h"
#include "runtime/work.h"

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
    enum lmq_kv_type kv_type;
    unsigned restored;      /* lmq_part_mask: taken from the reference */
    int32_t restored_layer; /* this layer too; -1: none */
    /* Up to this layer it is what the side `base`, one before it that joins
     * none, is; from there on it goes its own way. 0: always. */
    size_t joins, base;
};

struct lmq_lockstep {
    struct lmq_model *const *models; /* the reference first; opened lazily */
    size_t n_models;
    const struct lmq_side *sides; /* the reference first */
    size_t n_sides;
    const struct lmq_corpus *corpus;
    size_t first_window, n_windows; /* of the corpus */
    size_t memory;    /* bytes that buffers may take, a layer of the reference
                         and one of another model */
    int threads;
    bool skips_checksums; /* of containers; else compared in the first batch */
    bool has_integers;    /* sides get them, whether models have any or not */
};

/* More windows at a time read the weights no more seldom than it pays. */
#define LMQ_BATCH_MAX 16
/* Rows of logits that exist at a time, of the reference and of one side. */
#define LMQ_HEAD_ROWS 32
/* Tokens that go through a layer at a time: the work's buffers are as long. */
#define LMQ_WORK_TOKENS 512

/* Windows that are in flight at a time within the memory; 0 and an error if
 * not even one fits. */
size_t lmq_lockstep_batch(const struct lmq_lockstep *lockstep,
                          struct lmq_error *err);

/* Tokens of the longest window. */
size_t lmq_lockstep_longest(const struct lmq_lockstep *lockstep);

/* Who only asks about memory may not know the sides: they may have any. */
bool lmq_lockstep_has_kv(const struct lmq_lockstep *lockstep,
                         enum lmq_kv_type type);

/* What the work must do for: all models. */
struct lmq_model lmq_lockstep_widest(const struct lmq_lockstep *lockstep);

/* The layer from which a side goes its own way. Where layers look at keys and
 * values of others, it does so from the first. */
static inline size_t
lmq_side_joins(const struct lmq_side *side, const struct lmq_hparams *hparams)
{
    return hparams->n_borrowing > 0 ? 0 : side->joins;
}

#endif
