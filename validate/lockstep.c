/*
 * lockstep.c - layer-major evaluation of several sides.
 */
#include "config.h"

#include "validate/lockstep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/threads/threads.h"
#include "runtime/forward.h"

/* More windows at a time read the weights no more seldom than it pays. */
#define MAX_BATCH 16
/* Rows of logits that exist at a time, per side. */
#define HEAD_ROWS 32
/* Tokens that go through a layer at a time: the work's buffers are as long. */
#define WORK_TOKENS 512
/* Layers that lend keys and values: one that sees everything, one that does
 * not. */
#define LENDERS 2

struct run {
    const struct lmq_lockstep *in;
    const struct lmq_observer *observer;
    struct lmq_model *views; /* per side: the weights that it computes with */
    struct lmq_work work;
    struct lmq_kv kv[LMQ_ROW_TYPES]; /* of one layer and one window; only
                                        the types that sides have */
    size_t context;   /* tokens of the longest window */
    size_t batch;
    float **streams;  /* per side: (batch, context, dim) */
    float **inputs;   /* per side: (batch, context, n_layers *
                         layer_input_dim) */
    struct lmq_kv *lent; /* (n_sides, batch, LENDERS): keys and values that
                            later layers look at, too */
    float **logits;   /* per side: (HEAD_ROWS, vocabulary) */
    double *scratch;  /* per thread: (2, vocabulary) */
    struct lmq_position_drift *drifts; /* (n_sides, HEAD_ROWS) */
    struct lmq_stream_drift *rows;     /* (context) */
};

/* ---- Memory ---- */

static size_t
longest_window(const struct lmq_lockstep *in)
{
    size_t longest = 1;

    for (size_t i = 0; i < in->n_windows; i++)
        longest = in->corpus->windows[i].n > longest
                      ? in->corpus->windows[i].n
                      : longest;
    return longest;
}

static size_t
work_tokens(size_t longest)
{
    return lmq_size_min(longest, WORK_TOKENS);
}

/* Who only asks about memory may not know the sides: they may have any. */
static bool
has_kv_type(const struct lmq_lockstep *in, enum lmq_row_type type)
{
    for (size_t i = 0; i < in->n_sides && in->sides != NULL; i++)
        if (in->sides[i].kv_type == type)
            return true;
    return in->sides == NULL;
}

static double
kv_bytes(const struct lmq_lockstep *in, size_t context)
{
    double sum = 0;

    for (int type = 0; type < LMQ_ROW_TYPES; type++)
        if (has_kv_type(in, (enum lmq_row_type)type))
            sum += lmq_kv_bytes(in->models[0], LMQ_ANY_LAYER,
                                (enum lmq_row_type)type, context);
    return sum;
}

static const struct lmq_hparams *
hparams_of(const struct lmq_lockstep *in)
{
    return &in->models[0]->hparams;
}

/* The layer that lends to those of a kind; SIZE_MAX: none. */
static size_t
lender_of(const struct lmq_hparams *h, bool is_full)
{
    for (uint32_t i = h->n_layers - h->n_borrowing; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_FULL) == is_full)
            return lmq_layer_kv_source(h, i);
    return SIZE_MAX;
}

static size_t
input_width(const struct lmq_hparams *h)
{
    return (size_t)h->n_layers * h->layer_input_dim;
}

/* What each window keeps of each side from layer to layer. */
static double
window_bytes(const struct lmq_lockstep *in, size_t context)
{
    const struct lmq_hparams *h = hparams_of(in);
    double row = (double)(h->dim + input_width(h)), sum = 0;

    for (size_t side = 0; side < in->n_sides; side++) {
        enum lmq_row_type type =
            in->sides == NULL ? LMQ_ROW_F32 : in->sides[side].kv_type;
        sum += (double)context * 4 * row;
        for (int i = 0; i < LENDERS; i++)
            if (lender_of(h, i == 0) != SIZE_MAX)
                sum += lmq_kv_bytes(in->models[0], lender_of(h, i == 0), type,
                                    context);
    }
    return sum;
}

/* What the work must do for: all models. */
static struct lmq_model
widest_model(const struct lmq_lockstep *in)
{
    struct lmq_model widest = *in->models[in->n_models - 1];

    for (size_t i = 0; i < in->n_models; i++)
        widest.is_int8 |= in->models[i]->is_int8;
    return widest;
}

static double
largest_layer(const struct lmq_model *model)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        uint64_t n = lmq_model_layer_bytes(model, i);
        largest = n > largest ? n : largest;
    }
    return (double)largest;
}

/* What stays of a model from the first layer to the last. */
static double
end_bytes(const struct lmq_model *model)
{
    bool has_copy =
        model->embedding.is_copied && model->head.tensor != NULL;

    return (double)lmq_matrix_bytes(&model->head) +
           (double)lmq_matrix_bytes(&model->inputs_proj) +
           (model->inputs.is_copied ? (double)lmq_matrix_bytes(&model->inputs)
                                    : 0) +
           (has_copy ? (double)lmq_matrix_bytes(&model->embedding) : 0);
}

/* Layers come and go: one of the reference, and beside it one of another. */
static double
weight_bytes(const struct lmq_lockstep *in)
{
    double ends = end_bytes(in->models[0]), layer = 0;

    for (size_t i = 1; i < in->n_models; i++) {
        layer = fmax(layer, largest_layer(in->models[i]));
        ends += end_bytes(in->models[i]);
    }
    return largest_layer(in->models[0]) + layer + ends;
}

size_t
lmq_lockstep_batch(const struct lmq_lockstep *in, struct lmq_error *err)
{
    const struct lmq_hparams *h = hparams_of(in);
    struct lmq_model widest = widest_model(in);
    size_t longest = longest_window(in);
    double threads = lmq_threads(in->threads, 256);
    double head = (double)h->vocab_size *
                  ((double)in->n_sides * HEAD_ROWS * 4 + threads * 16);
    double fixed =
        lmq_work_bytes(&widest, work_tokens(longest), longest, in->threads) +
        kv_bytes(in, longest) + head + weight_bytes(in);
    double context = (double)longest;
    double window = window_bytes(in, longest);
    double room = ((double)in->memory - fixed) / window;

    if (room < 1) {
        lmq_fail(err, LMQ_ERR_NOMEM, 0,
                 "a memory of %.1f MB is too small: %.1f MB are needed for "
                 "windows of %.0f tokens through %zu models",
                 1e-6 * (double)in->memory, 1e-6 * (fixed + window), context,
                 in->n_sides);
        lmq_hint(err, "a larger .memory, or a smaller .context");
        return 0;
    }
    size_t batch = room < MAX_BATCH ? (size_t)room : MAX_BATCH;
    return lmq_size_min(batch, in->n_windows);
}

static void
tear_down(struct run *run)
{
    for (size_t i = 0; i < run->in->n_sides; i++) {
        if (run->views != NULL)
            free(run->views[i].layers);
        if (run->streams != NULL)
            lmq_mem_free(run->streams[i]);
        if (run->inputs != NULL)
            lmq_mem_free(run->inputs[i]);
        if (run->logits != NULL)
            lmq_mem_free(run->logits[i]);
    }
    for (size_t i = 0; run->lent != NULL &&
                       i < run->in->n_sides * run->batch * LENDERS; i++)
        lmq_kv_free(&run->lent[i]);
    lmq_work_free(&run->work);
    for (int type = 0; type < LMQ_ROW_TYPES; type++)
        lmq_kv_free(&run->kv[type]);
    free(run->views);
    free(run->streams);
    free(run->inputs);
    free(run->lent);
    free(run->logits);
    free(run->scratch);
    free(run->drifts);
    free(run->rows);
}

static bool
make_caches(struct run *run)
{
    bool is_complete = true;

    for (int type = 0; type < LMQ_ROW_TYPES && is_complete; type++)
        if (has_kv_type(run->in, (enum lmq_row_type)type))
            is_complete = lmq_kv_init(&run->kv[type], run->in->models[0],
                                      LMQ_ANY_LAYER, (enum lmq_row_type)type,
                                      run->context);
    return is_complete;
}

/* Where keys and values of a window stay for later layers. */
static struct lmq_kv *
lent_at(const struct run *run, size_t side, size_t slot, bool is_full)
{
    return &run->lent[(side * run->batch + slot) * LENDERS +
                      (is_full ? 0 : 1)];
}

static bool
make_lent(struct run *run)
{
    const struct lmq_lockstep *in = run->in;
    const struct lmq_hparams *h = hparams_of(in);
    bool is_complete = true;

    run->lent = calloc(in->n_sides * run->batch * LENDERS,
                       sizeof(*run->lent));
    if (run->lent == NULL)
        return false;
    for (size_t i = 0; i < in->n_sides * run->batch * LENDERS; i++) {
        bool is_full = i % LENDERS == 0;
        size_t side = i / LENDERS / run->batch, lender = lender_of(h, is_full);
        if (lender != SIZE_MAX && is_complete)
            is_complete = lmq_kv_init(
                lent_at(run, side, i / LENDERS % run->batch, is_full),
                in->models[0], lender, in->sides[side].kv_type, run->context);
    }
    return is_complete;
}

static enum lmq_status
set_up(struct run *run, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const struct lmq_hparams *h = hparams_of(in);
    struct lmq_model widest = widest_model(in);
    size_t n_threads;

    run->context = longest_window(in);
    run->batch = lmq_lockstep_batch(in, err);
    if (run->batch == 0)
        return LMQ_ERR_NOMEM;
    enum lmq_status status = lmq_work_init(
        &run->work, &widest, work_tokens(run->context), run->context,
        LMQ_ACTIVATIONS_F32, in->threads, err);
    if (status != LMQ_OK)
        return status;
    n_threads = (size_t)run->work.n_threads;
    run->views = calloc(in->n_sides, sizeof(*run->views));
    run->streams = calloc(in->n_sides, sizeof(*run->streams));
    run->inputs = calloc(in->n_sides, sizeof(*run->inputs));
    run->logits = calloc(in->n_sides, sizeof(*run->logits));
    run->scratch = calloc(n_threads * 2 * h->vocab_size, sizeof(double));
    run->drifts = calloc(in->n_sides * HEAD_ROWS, sizeof(*run->drifts));
    run->rows = calloc(run->context, sizeof(*run->rows));
    bool is_complete = make_caches(run) && make_lent(run) &&
                       run->views != NULL && run->streams != NULL &&
                       run->inputs != NULL && run->logits != NULL &&
                       run->scratch != NULL && run->drifts != NULL &&
                       run->rows != NULL;
    for (size_t i = 0; i < in->n_sides && is_complete; i++) {
        run->views[i] = *in->models[in->sides[i].model];
        run->views[i].layers = calloc(h->n_layers, sizeof(struct lmq_layer));
        run->streams[i] = lmq_mem_aligned(
            run->batch * run->context * h->dim, sizeof(float));
        run->inputs[i] = lmq_mem_aligned(
            run->batch * run->context * input_width(h) + 1, sizeof(float));
        run->logits[i] = lmq_mem_aligned(
            (size_t)HEAD_ROWS * h->vocab_size, sizeof(float));
        is_complete = run->views[i].layers != NULL &&
                      run->streams[i] != NULL && run->inputs[i] != NULL &&
                      run->logits[i] != NULL;
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
    }
    if (restored & LMQ_PARTS_HEAD)
        view->head = reference->head;
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
    if (which->kv_type != LMQ_ROW_F32)
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
    run->work.inputs = run->inputs[side] +
                       (slot * run->context + first) * input_width(h);
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

/* Behind a layer, or before the first (-1). */
static void
compare_streams(struct run *run, const struct lmq_window *windows, size_t n,
                int32_t layer)
{
    if (run->observer->layer == NULL)
        return;
    for (size_t side = 1; side < run->in->n_sides; side++)
        for (size_t slot = 0; slot < n; slot++)
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
        for (size_t slot = 0; slot < n; slot++)
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
        for (size_t slot = 0; slot < n; slot++) {
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
    const struct lmq_hparams *h = hparams_of(run->in);
    bool is_full = lmq_layer_is(h, layer, LMQ_LAYER_FULL);

    if (lmq_layer_kv_source(h, layer) == lender_of(h, is_full))
        return lent_at(run, side, slot, is_full);
    return &run->kv[run->in->sides[side].kv_type];
}

/* One window of one side through a layer; it is one sequence. */
static void
walk_window(struct run *run, size_t layer, size_t side, size_t slot, size_t n)
{
    run->work.length = n;
    for (size_t at = 0; at < n; at += run->work.batch) {
        point_at(run, side, slot, at);
        lmq_forward_layer(&run->views[side], layer,
                          kv_of(run, layer, side, slot), &run->work,
                          lmq_size_min(n - at, run->work.batch), at);
    }
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
        if (in->sides[side].model != model)
            continue;
        compose_layer(run, side, layer);
        for (size_t slot = 0; slot < n; slot++)
            walk_window(run, layer, side, slot, windows[slot].n);
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

/* Positions whose logits are there. */
struct positions {
    struct run *run;
    const int32_t *next; /* (rows): the token that follows */
    size_t rows;
};

/* Each comparison has its own result, and a member its own scratch. */
static void
compare_positions(void *context, size_t member, size_t n_members)
{
    const struct positions *positions = context;
    struct run *run = positions->run;
    size_t rows = positions->rows;
    size_t vocabulary = hparams_of(run->in)->vocab_size;

    for (size_t i = member; i < (run->in->n_sides - 1) * rows;
         i += n_members) {
        size_t side = 1 + i / rows, row = i % rows;
        lmq_compare_logits(run->logits[0] + row * vocabulary,
                           run->logits[side] + row * vocabulary, vocabulary,
                           positions->next[row],
                           run->scratch + member * 2 * vocabulary,
                           &run->drifts[side * HEAD_ROWS + row]);
    }
}

/* The logits of `rows` positions from `first` on, for all sides, and the
 * drift of each side's from the reference's. */
static enum lmq_status
compare_logits(struct run *run, const struct lmq_window *window, size_t slot,
               size_t first, size_t rows, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const int32_t *tokens = in->corpus->tokens + window->first;
    struct positions positions = {run, tokens + first + 1, rows};
    enum lmq_status status = LMQ_OK;

    for (size_t side = 0; side < in->n_sides; side++) {
        point_at(run, side, slot, first);
        lmq_forward_head(&run->views[side], &run->work, rows, rows,
                         run->logits[side]);
        if (!lmq_is_finite(run->logits[side],
                           rows * hparams_of(in)->vocab_size))
            return fail_nonfinite(run, side, "the logits", window, first, rows,
                                  err);
    }
    lmq_team_run(run->work.team, (size_t)run->work.n_threads,
                 compare_positions, &positions);
    for (size_t i = 0; i < rows; i++)
        for (size_t side = 1; side < in->n_sides && status == LMQ_OK; side++)
            status = run->observer->position(
                run->observer->context, side, window, first + i + 1,
                &run->drifts[side * HEAD_ROWS + i], err);
    return status;
}

static enum lmq_status
compare_windows(struct run *run, const struct lmq_window *windows, size_t n,
                struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t slot = 0; slot < n; slot++)
        for (size_t at = windows[slot].scored - 1;
             at + 1 < windows[slot].n && status == LMQ_OK; at += HEAD_ROWS)
            status = compare_logits(
                run, &windows[slot], slot, at,
                lmq_size_min(HEAD_ROWS, windows[slot].n - 1 - at), err);
    return status;
}

static enum lmq_status
run_batch(struct run *run, size_t first, size_t n, struct lmq_error *err)
{
    const struct lmq_lockstep *in = run->in;
    const struct lmq_window *windows = in->corpus->windows + first;
    double n_layers = hparams_of(in)->n_layers;
    double total = (double)in->n_windows * (n_layers + 1);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < in->n_models && status == LMQ_OK; i++)
        status = verify(run, i, -1, err);
    if (status == LMQ_OK)
        status = embed(run, windows, n, err);
    for (size_t l = 0; l < hparams_of(in)->n_layers; l++) {
        if (status == LMQ_OK)
            status = walk_layer(run, l, windows, n, err);
        if (status == LMQ_OK)
            status = run->observer->progress(
                run->observer->context,
                (double)first * (n_layers + 1) + (double)(n * (l + 1)), total,
                err);
    }
    return status == LMQ_OK ? compare_windows(run, windows, n, err) : status;
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
