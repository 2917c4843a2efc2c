/*
 * lockstep.c - layer-major evaluation of several sides.
 */
#include "config.h"

#include "validate/lockstep/lockstep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "runtime/forward.h"
#include "runtime/layer/norm.h"

struct run {
    const struct lmq_lockstep *in;
    const struct lmq_observer *observer;
    struct lmq_model *views; /* per side: the weights that it computes with */
    struct lmq_layer *layers; /* (n_layers): those of whichever view walks */
    struct lmq_work work;
    struct lmq_kv kv[LMQ_KV_TYPES]; /* of one layer and one window; only
                                        the types that sides have */
    size_t context;   /* tokens of the longest window */
    size_t batch;
    size_t loop;      /* through all layers */
    double done;      /* windows times layers, of which the head is one */
    float **streams;  /* per side: (batch, context, dim) */
    float **further;  /* per side: (batch, context, n_streams - 1, dim) */
    float **inputs;   /* per side: (batch, context, n_layers *
                         layer_input_dim) */
    unsigned char **choices; /* per side: (batch, context, lmq_kept_choice()),
                                of what layers see that follow one */
    struct lmq_kv *lent; /* (n_sides, batch, LMQ_KV_LENDERS): keys and values
                            that later layers look at, too */
    float *logits[2]; /* (LMQ_HEAD_ROWS, vocabulary): the reference's, and of
                         one side after the other */
    double *scratch;  /* per thread: (2, vocabulary) */
    struct lmq_position_drift *drifts; /* (n_sides, LMQ_HEAD_ROWS) */
    struct lmq_stream_drift *rows;     /* (context) */
};

static const struct lmq_hparams *
hparams_of(const struct lmq_lockstep *in)
{
    return &in->models[0]->hparams;
}

/* Layers as they are gone through. */
static size_t
steps_of(const struct lmq_lockstep *in)
{
    return lmq_loops(hparams_of(in)) * hparams_of(in)->n_layers;
}

/* ---- Memory ---- */

static void
tear_down(struct run *run)
{
    for (size_t i = 0; i < run->in->n_sides; i++) {
        if (run->streams != NULL)
            lmq_mem_free(run->streams[i]);
        if (run->further != NULL)
            lmq_mem_free(run->further[i]);
        if (run->inputs != NULL)
            lmq_mem_free(run->inputs[i]);
        if (run->choices != NULL)
            lmq_mem_free(run->choices[i]);
    }
    for (int i = 0; i < 2; i++)
        lmq_mem_free(run->logits[i]);
    for (size_t i = 0; run->lent != NULL &&
                       i < run->in->n_sides * run->batch * LMQ_KV_LENDERS; i++)
        lmq_kv_free(&run->lent[i]);
    lmq_work_free(&run->work);
    for (int type = 0; type < LMQ_KV_TYPES; type++)
        lmq_kv_free(&run->kv[type]);
    free(run->views);
    free(run->layers);
    free(run->streams);
    free(run->further);
    free(run->inputs);
    free(run->choices);
    free(run->lent);
    free(run->scratch);
    free(run->drifts);
    free(run->rows);
}

static bool
make_caches(struct run *run)
{
    bool is_complete = true;

    for (int type = 0; type < LMQ_KV_TYPES && is_complete; type++)
        if (lmq_lockstep_has_kv(run->in, (enum lmq_kv_type)type))
            is_complete = lmq_kv_init(&run->kv[type], run->in->models[0],
                                      LMQ_ANY_LAYER, (enum lmq_kv_type)type,
                                      run->context);
    return is_complete;
}

/* Where keys and values of a window stay for later layers. */
static struct lmq_kv *
lent_at(const struct run *run, size_t side, size_t slot)
{
    return &run->lent[(side * run->batch + slot) * LMQ_KV_LENDERS];
}

static bool
make_lent(struct run *run)
{
    const struct lmq_lockstep *in = run->in;
    bool is_complete = true;

    run->lent = calloc(in->n_sides * run->batch * LMQ_KV_LENDERS,
                       sizeof(*run->lent));
    if (run->lent == NULL)
        return false;
    for (size_t side = 0; side < in->n_sides; side++)
        for (size_t slot = 0; slot < run->batch && is_complete; slot++)
            is_complete = lmq_kv_init_lent(
                lent_at(run, side, slot), in->models[0],
                in->sides[side].kv_type, run->context);
    return is_complete;
}

static enum lmq_status
set_up(struct run *run, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const struct lmq_hparams *h = hparams_of(in);
    struct lmq_model widest = lmq_lockstep_widest(in);
    size_t n_threads;

    run->context = lmq_lockstep_longest(in);
    run->batch = lmq_lockstep_batch(in, err);
    if (run->batch == 0)
        return LMQ_ERR_NOMEM;
    enum lmq_status status = lmq_work_init(
        &run->work, &widest, lmq_size_min(run->context, LMQ_WORK_TOKENS),
        run->context, LMQ_ACTIVATIONS_F32, in->threads, err);
    if (status != LMQ_OK)
        return status;
    n_threads = (size_t)run->work.n_threads;
    run->views = calloc(in->n_sides, sizeof(*run->views));
    run->streams = calloc(in->n_sides, sizeof(*run->streams));
    run->further = calloc(in->n_sides, sizeof(*run->further));
    run->inputs = calloc(in->n_sides, sizeof(*run->inputs));
    run->choices = calloc(in->n_sides, sizeof(*run->choices));
    run->layers = calloc(h->n_layers, sizeof(*run->layers));
    for (int i = 0; i < 2; i++)
        run->logits[i] = lmq_mem_aligned((size_t)LMQ_HEAD_ROWS * h->vocab_size,
                                         sizeof(float));
    run->scratch = calloc(n_threads * 2 * h->vocab_size, sizeof(double));
    run->drifts = calloc(in->n_sides * LMQ_HEAD_ROWS, sizeof(*run->drifts));
    run->rows = calloc(run->context, sizeof(*run->rows));
    bool is_complete = make_caches(run) && make_lent(run) &&
                       run->views != NULL && run->streams != NULL &&
                       run->further != NULL && run->inputs != NULL &&
                       run->choices != NULL &&
                       run->layers != NULL &&
                       run->logits[0] != NULL && run->logits[1] != NULL &&
                       run->scratch != NULL && run->drifts != NULL &&
                       run->rows != NULL;
    for (size_t i = 0; i < in->n_sides && is_complete; i++) {
        run->views[i] = *in->models[in->sides[i].model];
        run->views[i].layers = run->layers;
        run->streams[i] = lmq_mem_aligned(
            run->batch * run->context * h->dim, sizeof(float));
        run->further[i] = lmq_mem_aligned(
            run->batch * run->context * lmq_streams_width(h) + 1,
            sizeof(float));
        run->inputs[i] = lmq_mem_aligned(
            run->batch * run->context * lmq_inputs_width(h) + 1, sizeof(float));
        run->choices[i] = lmq_mem_aligned(
            run->batch * run->context, lmq_kept_choice(h, run->context) + 1);
        is_complete = run->streams[i] != NULL && run->further[i] != NULL &&
                      run->inputs[i] != NULL && run->choices[i] != NULL;
    }
    return is_complete ? LMQ_OK : lmq_fail_nomem(err);
}

/* ---- Weights of a side ---- */

static void
compose_ends(struct run *run, size_t side)
{
    const struct lmq_model *reference = run->in->models[0];
    unsigned restored = run->in->sides[side].restored;
    struct lmq_model *view = &run->views[side];

    if (restored & LMQ_PARTS_EMBEDDING) {
        view->embedding = reference->embedding;
        view->inputs = reference->inputs;
        view->inputs_proj = reference->inputs_proj;
        view->inputs_norm = reference->inputs_norm;
        memcpy(view->streams_in, reference->streams_in,
               sizeof(view->streams_in));
    }
    if (restored & LMQ_PARTS_HEAD) {
        view->head = reference->head;
        memcpy(view->streams_out, reference->streams_out,
               sizeof(view->streams_out));
    }
    const struct lmq_owner *owner = run->observer->owner;
    if (owner != NULL)
        owner->ends(owner->context, side, view);
}

static void
compose_layer(struct run *run, size_t side, size_t index)
{
    const struct lmq_side *which = &run->in->sides[side];
    const struct lmq_layer *reference = &run->in->models[0]->layers[index];
    struct lmq_layer *layer = &run->views[side].layers[index];
    bool is_all = which->restored_layer == (int32_t)index;

    *layer = run->in->models[which->model]->layers[index];
    if (is_all || (which->restored & LMQ_PARTS_ATTENTION))
        layer->attention = reference->attention;
    if (is_all || (which->restored & LMQ_PARTS_FFN))
        layer->feed = reference->feed;
}

/* ---- Numbers that are none ---- */

static enum lmq_status
fail_nonfinite(const struct run *run, size_t side, const char *where,
               const struct lmq_window *window, size_t first, size_t n,
               struct lmq_error *err)
{
    const struct lmq_side *which = &run->in->sides[side];
    const struct lmq_model *model = run->in->models[which->model];

    lmq_fail(err, LMQ_ERR_NONFINITE, 0,
             "computes NaN or infinity (%s), first in %s, among the tokens "
             "%zu to %zu of the text",
             which->name, where, window->first + first,
             window->first + first + n - 1);
    if (which->kv_type != LMQ_KV_F32)
        lmq_hint(err, "keys and values may be too large for their type: "
                      ".kv=f32 has room for all");
    else
        lmq_hint(err, "what is not finite cannot be compared: inspect "
                      ".tensor NAME .has_stats looks for it in the weights");
    lmq_error_in(err, model->checkpoint->path);
    return LMQ_ERR_NONFINITE;
}

/* ---- A batch ---- */

static float *
stream_of(const struct run *run, size_t side, size_t slot)
{
    return run->streams[side] +
           slot * run->context * hparams_of(run->in)->dim;
}

/* The walk of one side's window begins or goes on, at its token `first`. */
static void
point_at(struct run *run, size_t side, size_t slot, size_t first)
{
    const struct lmq_hparams *h = hparams_of(run->in);

    run->work.x = stream_of(run, side, slot) + first * h->dim;
    size_t token = slot * run->context + first;
    run->work.streams = run->further[side] + token * lmq_streams_width(h);
    run->work.inputs = run->inputs[side] + token * lmq_inputs_width(h);
    size_t choice = lmq_kept_choice(h, run->context);
    if (choice > 0)
        run->work.chosen = run->choices[side] + token * choice;
    run->work.activations = run->in->sides[side].activations;
}

/* One window after a layer. */
struct streams {
    struct run *run;
    const float *a, *b; /* (n, dim) */
    size_t n;
};

static void
compare_rows(void *context, size_t member, size_t n_members)
{
    const struct streams *streams = context;
    size_t dim = hparams_of(streams->run->in)->dim;

    for (size_t t = member; t < streams->n; t += n_members)
        lmq_compare_streams(streams->a + t * dim, streams->b + t * dim, dim,
                            &streams->run->rows[t]);
}

static void
compare_window(struct run *run, const struct lmq_window *window, size_t slot,
               size_t side, int32_t layer)
{
    struct streams streams = {.run = run, .a = stream_of(run, 0, slot),
                              .b = stream_of(run, side, slot),
                              .n = window->n};
    struct lmq_stream_drift total = {0};

    lmq_team_run(run->work.team, (size_t)run->work.n_threads, compare_rows,
                 &streams);
    for (size_t t = 0; t < window->n; t++)
        lmq_stream_drift_add(&total, &run->rows[t]);
    run->observer->layer(run->observer->context, side, layer, &total);
}

/* Whether a side has a stream of its own behind a layer (-1: before the
 * first). */
static bool
has_joined(const struct run *run, size_t side, int32_t layer)
{
    const struct lmq_hparams *h = hparams_of(run->in);
    size_t joins = lmq_side_joins(&run->in->sides[side], h);

    return joins == 0 || (int64_t)joins <= layer ||
           (run->loop > 0 && joins < h->n_layers);
}

/* The side that it has been until now. */
static void
join(struct run *run, size_t side, const struct lmq_window *windows, size_t n)
{
    const struct lmq_hparams *h = hparams_of(run->in);
    size_t base = run->in->sides[side].base, width = lmq_inputs_width(h);
    size_t further = lmq_streams_width(h);
    size_t choice = lmq_kept_choice(h, run->context);

    for (size_t slot = 0; slot < n; slot++) {
        size_t at = slot * run->context * width;
        size_t chosen = slot * run->context * choice;
        memcpy(run->choices[side] + chosen, run->choices[base] + chosen,
               windows[slot].n * choice);
        size_t beside = slot * run->context * further;
        memcpy(run->further[side] + beside, run->further[base] + beside,
               windows[slot].n * further * sizeof(float));
        memcpy(stream_of(run, side, slot), stream_of(run, base, slot),
               windows[slot].n * h->dim * sizeof(float));
        memcpy(run->inputs[side] + at, run->inputs[base] + at,
               windows[slot].n * width * sizeof(float));
    }
}

/* All that go their own way from this layer on, while the others have not
 * been through it. */
static void
join_all(struct run *run, size_t layer, const struct lmq_window *windows,
         size_t n)
{
    for (size_t side = 1; side < run->in->n_sides && layer > 0; side++)
        if (lmq_side_joins(&run->in->sides[side], hparams_of(run->in)) == layer)
            join(run, side, windows, n);
}

/* Behind a layer, or before the first (-1); of several times through layers, in
 * the last. */
static void
compare_streams(struct run *run, const struct lmq_window *windows, size_t n,
                int32_t layer)
{
    bool comes_again = run->loop + 1 < lmq_loops(hparams_of(run->in));

    if (run->observer->layer == NULL || (layer >= 0 && comes_again))
        return;
    for (size_t side = 1; side < run->in->n_sides; side++)
        for (size_t slot = 0; slot < n && has_joined(run, side, layer); slot++)
            compare_window(run, &windows[slot], slot, side, layer);
}

static enum lmq_status
check_streams(const struct run *run, const struct lmq_window *windows,
              size_t n, int32_t layer, struct lmq_error *err)
{
    size_t dim = hparams_of(run->in)->dim;
    char where[64] = "the embedding";

    if (layer >= 0)
        snprintf(where, sizeof(where), "layer %" PRId32, layer);
    for (size_t side = 0; side < run->in->n_sides; side++)
        for (size_t slot = 0; slot < n && has_joined(run, side, layer); slot++)
            if (!lmq_is_finite(stream_of(run, side, slot),
                               windows[slot].n * dim))
                return fail_nonfinite(run, side, where, &windows[slot], 0,
                                      windows[slot].n, err);
    return LMQ_OK;
}

static enum lmq_status
embed(struct run *run, const struct lmq_window *windows, size_t n,
      struct lmq_error *err)
{
    for (size_t side = 0; side < run->in->n_sides; side++)
        for (size_t slot = 0; slot < n && has_joined(run, side, -1); slot++) {
            point_at(run, side, slot, 0);
            lmq_forward_embed(&run->views[side], &run->work,
                              run->in->corpus->tokens + windows[slot].first,
                              windows[slot].n, 0);
        }
    compare_streams(run, windows, n, -1);
    return check_streams(run, windows, n, -1, err);
}

/* What the layer looks at: its own, which nobody needs later, or what is kept
 * of the window. */
static struct lmq_kv *
kv_of(struct run *run, size_t layer, size_t side, size_t slot)
{
    struct lmq_kv *lent =
        lmq_kv_lent(hparams_of(run->in), lent_at(run, side, slot), layer);

    return lent == NULL ? &run->kv[run->in->sides[side].kv_type] : lent;
}

/* Of a window, `rows` of n positions of one side are through one more layer:
 * of long windows that takes minutes. */
static enum lmq_status
report(struct run *run, size_t rows, size_t n, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;

    run->done += (double)rows / (double)n / (double)in->n_sides;
    return run->observer->progress(
        run->observer->context, run->done,
        (double)in->n_windows * ((double)steps_of(in) + 1), err);
}

/* One window of one side through a layer; it is one sequence. */
static enum lmq_status
walk_window(struct run *run, size_t layer, size_t side, size_t slot,
            const struct lmq_window *window, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    size_t n = window->n;

    run->work.length = n;
    for (size_t at = 0; at < n && status == LMQ_OK; at += run->work.batch) {
        size_t rows = lmq_size_min(n - at, run->work.batch);
        point_at(run, side, slot, at);
        run->work.tokens = run->in->corpus->tokens + window->first + at;
        lmq_forward_layer(&run->views[side], layer,
                          kv_of(run, layer, side, slot), &run->work, rows, at);
        status = report(run, rows, n, err);
    }
    return status;
}

/* Compares checksums, of each matrix before it is first used. */
static enum lmq_status
verify(const struct run *run, size_t model, int32_t layer,
       struct lmq_error *err)
{
    return run->in->skips_checksums
               ? LMQ_OK
               : lmq_model_verify(run->in->models[model], layer, err);
}

/* One side, with what its owner makes of the layer. */
static enum lmq_status
walk_side(struct run *run, size_t layer, size_t side,
          const struct lmq_window *windows, size_t n, struct lmq_error *err)
{
    const struct lmq_owner *owner = run->observer->owner;
    struct lmq_model *model = run->in->models[run->in->sides[side].model];
    enum lmq_status status =
        owner == NULL ? LMQ_OK
                      : owner->enter(owner->context, side, layer, model, err);

    if (status == LMQ_OK) {
        compose_layer(run, side, layer);
        for (size_t slot = 0; slot < n && status == LMQ_OK; slot++)
            status = walk_window(run, layer, side, slot, &windows[slot], err);
    }
    if (owner != NULL)
        owner->leave(owner->context, side);
    return status;
}

/* All sides of one model through a layer of it, which is there then. */
static enum lmq_status
walk_model(struct run *run, size_t layer, size_t model,
           const struct lmq_window *windows, size_t n, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    enum lmq_status status = verify(run, model, (int32_t)layer, err);

    if (status == LMQ_OK)
        status = lmq_model_load_layer(in->models[model], layer, err);
    for (size_t side = 0; side < in->n_sides && status == LMQ_OK; side++) {
        if (in->sides[side].model == model &&
            has_joined(run, side, (int32_t)layer))
            status = walk_side(run, layer, side, windows, n, err);
    }
    return status;
}

static bool
is_needed(const struct lmq_lockstep *in, size_t model)
{
    for (size_t i = 0; i < in->n_sides; i++)
        if (in->sides[i].model == model)
            return true;
    return false;
}

/* The reference's layer stays to the end: others may have parts of it. */
static enum lmq_status
walk_layer(struct run *run, size_t layer, const struct lmq_window *windows,
           size_t n, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    enum lmq_status status = LMQ_OK;

    if (run->loop == 0)
        join_all(run, layer, windows, n);
    for (size_t i = 0; i < in->n_models && status == LMQ_OK; i++) {
        if (!is_needed(in, i))
            continue;
        status = walk_model(run, layer, i, windows, n, err);
        if (i > 0)
            lmq_model_drop_layer(in->models[i], layer);
    }
    lmq_model_drop_layer(in->models[0], layer);
    if (status != LMQ_OK)
        return status;
    compare_streams(run, windows, n, (int32_t)layer);
    return check_streams(run, windows, n, (int32_t)layer, err);
}

/* Positions whose logits are there, of the reference and of one side. */
struct positions {
    struct run *run;
    const int32_t *next; /* (rows): the token that follows */
    size_t rows, side;
};

/* Each comparison has its own result, and a member its own scratch. */
static void
compare_positions(void *context, size_t member, size_t n_members)
{
    const struct positions *positions = context;
    struct run *run = positions->run;
    size_t vocabulary = hparams_of(run->in)->vocab_size;

    for (size_t row = member; row < positions->rows; row += n_members)
        lmq_compare_logits(
            run->logits[0] + row * vocabulary,
            run->logits[1] + row * vocabulary, vocabulary,
            positions->next[row], run->scratch + member * 2 * vocabulary,
            &run->drifts[positions->side * LMQ_HEAD_ROWS + row]);
}

/* The logits of `rows` positions from `first` on, for all sides, and the
 * drift of each side's from the reference's. */
static enum lmq_status
compare_logits(struct run *run, const struct lmq_window *window, size_t slot,
               size_t first, size_t rows, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const int32_t *tokens = in->corpus->tokens + window->first;
    struct positions positions = {run, tokens + first + 1, rows, 0};
    enum lmq_status status = LMQ_OK;

    for (size_t side = 0; side < in->n_sides; side++) {
        float *logits = run->logits[side > 0];
        point_at(run, side, slot, first);
        lmq_forward_head(&run->views[side], &run->work, rows, logits);
        if (!lmq_is_finite(logits, rows * hparams_of(in)->vocab_size))
            return fail_nonfinite(run, side, "the logits", window, first, rows,
                                  err);
        positions.side = side;
        if (side > 0)
            lmq_team_run(run->work.team, (size_t)run->work.n_threads,
                         compare_positions, &positions);
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t side = 1; side < in->n_sides && status == LMQ_OK; side++)
            status = run->observer->position(
                run->observer->context, side, window, first + i + 1,
                &run->drifts[side * LMQ_HEAD_ROWS + i], err);
    return status;
}

/* Where what was observed counts, who stops it has to wait for the end of the
 * window. */
static enum lmq_status
compare_positions_of(struct run *run, const struct lmq_window *window,
                     size_t slot, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK, stopped = LMQ_OK;
    bool goes_on = true;

    for (size_t at = window->scored - 1; at + 1 < window->n && goes_on;
         at += LMQ_HEAD_ROWS) {
        size_t rows = lmq_size_min(LMQ_HEAD_ROWS, window->n - 1 - at);
        status = compare_logits(run, window, slot, at, rows, err);
        if (status == LMQ_OK && stopped == LMQ_OK)
            stopped = report(run, rows * run->in->n_sides,
                             window->n - window->scored, err);
        goes_on = status == LMQ_OK && (stopped == LMQ_OK ||
                                       run->observer->wants_whole_windows);
    }
    return status == LMQ_OK ? stopped : status;
}

static enum lmq_status
compare_windows(struct run *run, const struct lmq_window *windows, size_t n,
                struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t slot = 0; slot < n && status == LMQ_OK; slot++)
        status = compare_positions_of(run, &windows[slot], slot, err);
    return status;
}

/* All sides between two times through the layers. */
static void
go_again(struct run *run, const struct lmq_window *windows, size_t n)
{
    run->loop++;
    for (size_t side = 0; side < run->in->n_sides; side++)
        for (size_t slot = 0; slot < n && has_joined(run, side, -1); slot++) {
            point_at(run, side, slot, 0);
            lmq_norm_again(&run->views[side], run->work.x, windows[slot].n);
        }
}

static enum lmq_status
run_batch(struct run *run, size_t first, size_t n, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const struct lmq_window *windows =
        in->corpus->windows + in->first_window + first;
    size_t n_layers = hparams_of(in)->n_layers, n_steps = steps_of(in);
    enum lmq_status status = LMQ_OK;

    run->loop = 0;
    for (size_t i = 0; i < in->n_models && status == LMQ_OK; i++)
        status = verify(run, i, -1, err);
    if (status == LMQ_OK)
        status = embed(run, windows, n, err);
    for (size_t i = 0; i < n_steps && status == LMQ_OK; i++) {
        run->done = (double)(first * (n_steps + 1) + n * i);
        if (i > 0 && i % n_layers == 0)
            go_again(run, windows, n);
        status = walk_layer(run, i % n_layers, windows, n, err);
    }
    if (status != LMQ_OK)
        return status;
    run->done = (double)(first * (n_steps + 1) + n * n_steps);
    join_all(run, n_layers, windows, n);
    return compare_windows(run, windows, n, err);
}

enum lmq_status
lmq_lockstep_run(const struct lmq_lockstep *lockstep,
                 const struct lmq_observer *observer, struct lmq_error *err)
{
    struct run run = {.in = lockstep, .observer = observer};
    enum lmq_status status = set_up(&run, err);

    for (size_t i = 0; i < lockstep->n_sides && status == LMQ_OK; i++)
        compose_ends(&run, i);
    for (size_t at = 0; at < lockstep->n_windows && status == LMQ_OK;
         at += run.batch)
        status = run_batch(&run, at,
                           lmq_size_min(run.batch, lockstep->n_windows - at),
                           err);
    tear_down(&run);
    return status;
}
