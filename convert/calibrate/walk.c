/*
 * walk.c - streams, keys and values of many windows.
 */
#include "config.h"

#include "convert/calibrate/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "runtime/forward.h"

/* Tokens that go through a layer at a time. */
#define WORK_TOKENS 512
/* And through the head. */
#define HEAD_ROWS ((size_t)32)

/* ---- Memory ---- */

size_t
lmq_walk_longest(const struct lmq_corpus *corpus)
{
    size_t longest = 1;

    for (size_t i = 0; i < corpus->n_windows; i++)
        longest = lmq_size_max(longest, corpus->windows[i].n);
    return longest;
}

/* What products must have room for: layers become integers on the way. */
static struct lmq_model
widest_model(const struct lmq_model *model)
{
    struct lmq_model widest = *model;

    widest.is_int8 = true;
    return widest;
}

double
lmq_walk_bytes(const struct lmq_model *model, const struct lmq_corpus *corpus,
               int threads, bool has_exact)
{
    const struct lmq_hparams *h = &model->hparams;
    struct lmq_model widest = widest_model(model);
    size_t context = lmq_walk_longest(corpus);
    double inputs = 4 * (double)corpus->n_tokens * (double)lmq_inputs_width(h);
    double streams = 4 * (double)corpus->n_tokens *
                         (double)(h->dim + lmq_streams_width(h)) +
                     (double)corpus->n_tokens *
                         (double)lmq_kept_choice(h, context) +
                     (double)corpus->n_windows *
                         lmq_kv_lent_bytes(model, LMQ_KV_F32, context);

    return inputs + (has_exact ? 2 : 1) * streams +
           lmq_kv_bytes(model, LMQ_ANY_LAYER, LMQ_KV_F32, context) +
           lmq_work_bytes(&widest, lmq_size_min(context, WORK_TOKENS), context,
                          threads);
}

static bool
make_lent(const struct lmq_walk *walk, struct lmq_streams *streams)
{
    size_t n = walk->corpus->n_windows * LMQ_KV_LENDERS;
    bool is_complete = true;

    streams->lent = calloc(n, sizeof(*streams->lent));
    if (streams->lent == NULL)
        return false;
    for (size_t i = 0; i < n && is_complete; i += LMQ_KV_LENDERS)
        is_complete = lmq_kv_init_lent(&streams->lent[i], walk->model,
                                       LMQ_KV_F32, walk->context);
    return is_complete;
}

static bool
make_streams(const struct lmq_walk *walk, struct lmq_streams *streams)
{
    const struct lmq_hparams *h = &walk->model->hparams;
    size_t n_tokens = walk->corpus->n_tokens, n_floats, n_further;

    if (!lmq_size_mul(n_tokens, h->dim, &n_floats) ||
        !lmq_size_mul(n_tokens, lmq_streams_width(h), &n_further))
        return false;
    streams->x = lmq_mem_aligned(n_floats, sizeof(float));
    streams->further = lmq_mem_aligned(n_further + 1, sizeof(float));
    streams->choices = lmq_mem_aligned(
        n_tokens + 1, lmq_kept_choice(h, walk->context) + 1);
    return streams->x != NULL && streams->further != NULL &&
           streams->choices != NULL &&
           make_lent(walk, streams);
}

static void
free_streams(const struct lmq_walk *walk, struct lmq_streams *streams)
{
    for (size_t i = 0; streams->lent != NULL &&
                       i < walk->corpus->n_windows * LMQ_KV_LENDERS; i++)
        lmq_kv_free(&streams->lent[i]);
    free(streams->lent);
    lmq_mem_free(streams->x);
    lmq_mem_free(streams->further);
    lmq_mem_free(streams->choices);
}

static enum lmq_status
make_room(struct lmq_walk *walk, bool has_exact, struct lmq_error *err)
{
    size_t n_inputs;

    if (!lmq_size_mul(walk->corpus->n_tokens,
                      lmq_inputs_width(&walk->model->hparams), &n_inputs))
        return lmq_fail_nomem(err);
    walk->inputs = lmq_mem_aligned(n_inputs + 1, sizeof(float));
    bool is_complete = walk->inputs != NULL &&
                       lmq_kv_init(&walk->kv, walk->model, LMQ_ANY_LAYER,
                                   LMQ_KV_F32, walk->context) &&
                       make_streams(walk, &walk->rounded) &&
                       (!has_exact || make_streams(walk, &walk->exact));
    return is_complete ? LMQ_OK : lmq_fail_nomem(err);
}

void
lmq_walk_free(struct lmq_walk *walk)
{
    free_streams(walk, &walk->rounded);
    free_streams(walk, &walk->exact);
    lmq_kv_free(&walk->kv);
    lmq_mem_free(walk->inputs);
    lmq_work_free(&walk->work);
    *walk = (struct lmq_walk){0};
}

/* ---- Walking ---- */

/* At the window's token `first`. */
static void
point_at(struct lmq_walk *walk, const struct lmq_streams *streams,
         size_t window, size_t first)
{
    const struct lmq_hparams *h = &walk->model->hparams;
    size_t token = walk->corpus->windows[window].first + first;

    walk->work.tokens = walk->corpus->tokens + token;
    walk->work.x = streams->x + token * h->dim;
    walk->work.streams = streams->further + token * lmq_streams_width(h);
    walk->work.inputs = walk->inputs + token * lmq_inputs_width(h);
    size_t choice = lmq_kept_choice(h, walk->context);
    if (choice > 0)
        walk->work.chosen = streams->choices + token * choice;
}

enum lmq_status
lmq_walk_begin(struct lmq_walk *walk, struct lmq_model *model,
               const struct lmq_corpus *corpus, int threads, bool has_exact,
               struct lmq_error *err)
{
    struct lmq_model widest = widest_model(model);
    size_t context = lmq_walk_longest(corpus);

    *walk = (struct lmq_walk){
        .model = model, .corpus = corpus, .context = context};
    enum lmq_status status = lmq_work_init(
        &walk->work, &widest, lmq_size_min(context, WORK_TOKENS), context,
        LMQ_ACTIVATIONS_F32, threads, err);
    if (status == LMQ_OK)
        status = make_room(walk, has_exact, err);
    if (status != LMQ_OK)
        return status;
    walk->work_x = walk->work.x;
    walk->work_streams = walk->work.streams;
    for (size_t i = 0; i < corpus->n_windows; i++) {
        point_at(walk, &walk->rounded, i, 0);
        lmq_forward_embed(model, &walk->work,
                          corpus->tokens + corpus->windows[i].first,
                          corpus->windows[i].n, 0);
    }
    if (has_exact) {
        memcpy(walk->exact.x, walk->rounded.x,
               corpus->n_tokens * model->hparams.dim * sizeof(float));
        memcpy(walk->exact.further, walk->rounded.further,
               corpus->n_tokens * lmq_streams_width(&model->hparams) *
                   sizeof(float));
    }
    return lmq_walk_check(walk, -1, err);
}

/* What the layer looks at: its own, which nobody needs later, or what is kept
 * of the window. */
static struct lmq_kv *
kv_of(struct lmq_walk *walk, const struct lmq_streams *streams, size_t layer,
      size_t window)
{
    struct lmq_kv *lent = lmq_kv_lent(&walk->model->hparams,
                                      &streams->lent[window * LMQ_KV_LENDERS],
                                      layer);

    return lent == NULL ? &walk->kv : lent;
}

void
lmq_walk_window(struct lmq_walk *walk, const struct lmq_streams *streams,
                size_t layer, size_t window,
                const struct lmq_witness *witness, bool advances)
{
    struct lmq_work *work = &walk->work;
    size_t n = walk->corpus->windows[window].n;
    size_t dim = walk->model->hparams.dim;
    size_t further = lmq_streams_width(&walk->model->hparams);

    work->length = n;
    work->witness = witness;
    for (size_t at = 0; at < n; at += work->batch) {
        size_t size = lmq_size_min(n - at, work->batch);
        point_at(walk, streams, window, at);
        if (!advances) {
            memcpy(walk->work_x, work->x, size * dim * sizeof(float));
            work->x = walk->work_x;
            if (further > 0)
                memcpy(walk->work_streams, work->streams,
                       further * size * sizeof(float));
            work->streams = walk->work_streams;
        }
        lmq_forward_layer(walk->model, layer,
                          kv_of(walk, streams, layer, window), work, size,
                          at);
    }
    work->witness = NULL;
}

enum lmq_status
lmq_walk_head(struct lmq_walk *walk, const struct lmq_streams *streams,
              size_t window, const struct lmq_witness *witness,
              struct lmq_error *err)
{
    struct lmq_work *work = &walk->work;
    size_t n = walk->corpus->windows[window].n;
    float *logits = lmq_mem_aligned(
        HEAD_ROWS, walk->model->hparams.vocab_size * sizeof(float));

    if (logits == NULL)
        return lmq_fail_nomem(err);
    work->witness = witness;
    for (size_t at = 0; at < n; at += HEAD_ROWS) {
        size_t size = lmq_size_min(n - at, HEAD_ROWS);
        point_at(walk, streams, window, at);
        lmq_forward_head(walk->model, work, size, logits);
    }
    work->witness = NULL;
    lmq_mem_free(logits);
    return LMQ_OK;
}

enum lmq_status
lmq_hint_nonfinite(struct lmq_error *err)
{
    lmq_hint(err, "inspect .tensor NAME .has_stats looks for it in the "
                  "weights, which .on_nonfinite=zero leaves as they are until "
                  "they are rounded");
    return LMQ_ERR_NONFINITE;
}

static bool
are_finite(const struct lmq_walk *walk, const struct lmq_streams *streams)
{
    return streams->x == NULL ||
           lmq_is_finite(streams->x,
                         walk->corpus->n_tokens * walk->model->hparams.dim);
}

enum lmq_status
lmq_walk_check(const struct lmq_walk *walk, int32_t layer,
               struct lmq_error *err)
{
    char where[64] = "the embedding";

    if (are_finite(walk, &walk->rounded) && are_finite(walk, &walk->exact))
        return LMQ_OK;
    if (layer >= 0)
        snprintf(where, sizeof(where), "layer %" PRId32, layer);
    lmq_fail(err, LMQ_ERR_NONFINITE, 0,
             "computes NaN or infinity from the calibration text, first in %s",
             where);
    return lmq_hint_nonfinite(err);
}
