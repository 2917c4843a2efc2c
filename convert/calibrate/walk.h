/*
 * walk.h - the windows of a text through a model, layer by layer.
 *
 * All windows go through layer l before any of them goes through layer l + 1:
 * so a layer can be looked at, and be changed, while the others are not there.
 */
#ifndef LMQ_CONVERT_CALIBRATE_WALK_H
#define LMQ_CONVERT_CALIBRATE_WALK_H

#include "runtime/kv.h"
#include "runtime/product.h"
#include "runtime/tokenizer/corpus.h"

/* What stands before a layer, of all windows. */
struct lmq_streams {
    float *x;            /* (n_tokens, dim) */
    float *further;      /* (n_tokens, n_streams - 1, dim) */
    unsigned char *choices; /* (n_tokens, lmq_kept_choice()): what layers see
                               that follow one which chooses */
    struct lmq_kv *lent; /* (n_windows, LMQ_KV_LENDERS) */
};

struct lmq_walk {
    struct lmq_model *model; /* opened lazily; layers come and go */
    const struct lmq_corpus *corpus;
    size_t context;          /* tokens of the longest window */
    struct lmq_work work;
    float *work_x;           /* its own stream, */
    float *work_streams;     /* and those beside it */
    struct lmq_streams rounded; /* behind layers as they have become */
    struct lmq_streams exact;   /* as the checkpoint has them; or nothing */
    float *inputs;           /* (n_tokens, n_layers, layer_input_dim) */
    struct lmq_kv kv;        /* of one window in one layer */
};

/* The streams are the embeddings; exact ones, too, if they are wanted. To be
 * freed even if it fails. */
enum lmq_status lmq_walk_begin(struct lmq_walk *walk, struct lmq_model *model,
                               const struct lmq_corpus *corpus, int threads,
                               bool has_exact, struct lmq_error *err);
void lmq_walk_free(struct lmq_walk *walk);

/* Tokens of the longest window. */
size_t lmq_walk_longest(const struct lmq_corpus *corpus);

/* About what it takes, besides a layer. */
double lmq_walk_bytes(const struct lmq_model *model,
                      const struct lmq_corpus *corpus, int threads,
                      bool has_exact);

/* One window of these streams, which are the walk's, through a layer that is
 * there. The witness, if there is one, sees the products; the stream is what
 * comes out only if it `advances`. */
void lmq_walk_window(struct lmq_walk *walk, const struct lmq_streams *streams,
                     size_t layer, size_t window,
                     const struct lmq_witness *witness, bool advances);

/* The same of the head, behind the last layer. The logits are thrown away. */
enum lmq_status lmq_walk_head(struct lmq_walk *walk,
                              const struct lmq_streams *streams,
                              size_t window,
                              const struct lmq_witness *witness,
                              struct lmq_error *err);

/* LMQ_ERR_NONFINITE if there is NaN or infinity in the streams; behind which
 * layer, -1 for none, is told. */
enum lmq_status lmq_walk_check(const struct lmq_walk *walk, int32_t layer,
                               struct lmq_error *err);
/* What to do about what is computed and not finite; returns the status. */
enum lmq_status lmq_hint_nonfinite(struct lmq_error *err);

#endif
