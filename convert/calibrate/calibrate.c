/*
 * calibrate.c - what a layer's matrices see, and what becomes of them.
 *
 * Hessians are the largest thing here, so only as many as fit into a bound are
 * added up at a time, and the layer is gone through again for the others. All
 * of them are of the layer as the checkpoint has it: so the bound decides how
 * long it takes, and not what comes out. (To quantize the parts of a layer one
 * after the other, each behind the quantized ones before it, takes four goes
 * instead of one. stories260K, mean KLD: 3.46e-4 instead of 3.47e-4 with 8
 * bits, 0.081 instead of 0.084 with 4.)
 */
#include "config.h"

#include "convert/calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/calibrate/items.h"
#include "convert/calibrate/rounding.h"
#include "convert/calibrate/seen.h"
#include "convert/set_name.h"

/* A Hessian of fewer tokens than columns divided by this says too little: what
 * it makes better for these tokens is worse for others. */
#define COLUMNS_PER_TOKEN 4

/* Notes of inputs that saw too little, one by one, before the rest is only
 * mentioned. */
#define NOTES_MOST 8

/* A tied head is an embedding too, of which no product tells how much an error
 * matters: each column's as much as those of the head on average. (Between 0.01
 * and 4 that makes no difference: stories260K, mean KLD 3.5e-4 for all of
 * these, 4.1e-4 if the head is left to search.) */
#define TIED_DAMPING 1.0

/* ---- Adding up ---- */

/* One window goes through a layer at a time; of many processes each takes one,
 * and then all add up what each of them has seen, in the order of the windows:
 * each its strips of the sums. */
struct go {
    struct lmq_cal_layer *layer;
    struct lmq_seen own, others; /* with peers */
    const struct lmq_seen *seen; /* one of them */
    bool drifts;   /* something does, so the checkpoint's windows go first */
    bool advances; /* and these go on */
};

static bool
has_peers(const struct lmq_cal_layer *layer)
{
    return lmq_peers_n(layer->calibrator->peers) > 1;
}

/* All matrices that share an input see it; one of them is enough. SIZE_MAX: it
 * is not looked at. */
static size_t
watched_input(const struct lmq_cal_layer *layer,
              const struct lmq_matrix *matrix)
{
    size_t i = 0;

    while (i < layer->n_inputs && (!layer->inputs[i].is_watched ||
                                   layer->inputs[i].leader != matrix))
        i++;
    return i < layer->n_inputs ? i : SIZE_MAX;
}

static void
expect(void *context, const struct lmq_member *member,
       const struct lmq_matrix *matrix, const struct lmq_operand *operand)
{
    struct go *go = context;
    size_t input = watched_input(go->layer, matrix);

    if (input != SIZE_MAX)
        lmq_seen_expect(&go->own, go->layer, member, input, operand);
}

static void
see(void *context, const struct lmq_member *member,
    const struct lmq_matrix *matrix, const struct lmq_operand *operand)
{
    struct go *go = context;
    size_t input = watched_input(go->layer, matrix);

    if (input != SIZE_MAX)
        lmq_seen_add(&go->own, go->layer, member, input, operand);
}

/* A thread's share of some tokens. */
static void
add_run(const struct go *go, const struct lmq_seen_run *run, size_t member,
        size_t n_members)
{
    struct lmq_calibrator *calibrator = go->layer->calibrator;
    struct lmq_cal_input *input = &go->layer->inputs[run->input];
    size_t rank = lmq_peers_rank(calibrator->peers);
    size_t n = lmq_peers_n(calibrator->peers);
    double *buffer = calibrator->buffers[member];
    const float *x = go->seen->x + run->at;

    lmq_hessian_add(&input->hessian, x, input->n_cols, (size_t)run->n_tokens,
                    buffer, rank + n * member, n * n_members);
    if (input->mend.n_rows > 0)
        lmq_mend_add(&input->mend, x, x + run->n_tokens * input->n_cols,
                      (size_t)run->n_tokens, buffer, rank + n * member,
                      n * n_members);
    if (member == 0)
        input->hessian.n_tokens += (size_t)run->n_tokens;
}

static void
add_seen(void *context, size_t member, size_t n_members)
{
    const struct go *go = context;

    for (size_t i = 0; i < go->seen->cursors[0].n_runs; i++)
        add_run(go, &go->seen->runs[i], member, n_members);
}

/* `first` is the window of the first process. */
static enum lmq_status
add_all(struct go *go, size_t first, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = go->layer->calibrator;
    const struct lmq_peers *peers = calibrator->peers;
    struct lmq_team *team = calibrator->walk.work.team;
    enum lmq_status status = LMQ_OK;

    for (unsigned i = 0; i < lmq_peers_n(peers) &&
                         first + i < calibrator->corpus.n_windows &&
                         status == LMQ_OK;
         i++) {
        struct lmq_seen *seen =
            i == lmq_peers_rank(peers) ? &go->own : &go->others;
        status = lmq_seen_share(seen, peers, i, err);
        go->seen = seen;
        if (status == LMQ_OK)
            lmq_team_run(team, lmq_team_size(team), add_seen, go);
    }
    return status;
}

static enum lmq_status
walk_window(struct lmq_cal_layer *layer, const struct lmq_streams *streams,
            size_t window, const struct lmq_witness *witness, bool advances,
            struct lmq_error *err)
{
    struct lmq_walk *walk = &layer->calibrator->walk;

    if (lmq_cal_is_head(layer))
        return lmq_walk_head(walk, streams, window, witness, err);
    lmq_walk_window(walk, streams, layer->index, window, witness, advances);
    return LMQ_OK;
}

/* Of this process. */
static enum lmq_status
look_at_window(struct go *go, size_t window, struct lmq_error *err)
{
    const struct lmq_walk *walk = &go->layer->calibrator->walk;
    const struct lmq_witness expected = {go, expect}, seen = {go, see};
    enum lmq_status status = LMQ_OK;

    lmq_seen_clear(&go->own);
    if (window >= walk->corpus->n_windows)
        return LMQ_OK;
    if (go->drifts)
        status = walk_window(go->layer, &walk->exact, window, &expected,
                             go->advances, err);
    lmq_seen_clear(&go->own);
    return status == LMQ_OK ? walk_window(go->layer, &walk->rounded, window,
                                          &seen, false, err)
                            : status;
}

/* Windows [at, at + n) have gone through a layer so often. */
static enum lmq_status
count_windows(struct lmq_calibrator *calibrator, size_t at, size_t n,
              uint64_t n_times, struct lmq_error *err)
{
    const struct lmq_corpus *corpus = &calibrator->corpus;

    for (size_t i = at; i < lmq_size_min(at + n, corpus->n_windows); i++)
        calibrator->counter.done += n_times * corpus->windows[i].n;
    return lmq_counter_report(&calibrator->counter, err);
}

static enum lmq_status
look(struct go *go, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = go->layer->calibrator;
    size_t n = lmq_peers_n(calibrator->peers);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < calibrator->corpus.n_windows && status == LMQ_OK;
         i += n) {
        status = look_at_window(go, i + lmq_peers_rank(calibrator->peers),
                                err);
        if (status == LMQ_OK)
            status = add_all(go, i, err);
        if (status == LMQ_OK)
            status = count_windows(calibrator, i, n, go->drifts ? 2 : 1, err);
    }
    return status;
}

/* The streams go on. */
static enum lmq_status
advance(struct lmq_cal_layer *layer, const struct lmq_streams *streams,
        struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = layer->calibrator;
    size_t n = lmq_peers_n(calibrator->peers);
    size_t rank = lmq_peers_rank(calibrator->peers);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < calibrator->corpus.n_windows && status == LMQ_OK;
         i += n) {
        if (i + rank < calibrator->corpus.n_windows)
            status = walk_window(layer, streams, i + rank, NULL, true, err);
        if (status == LMQ_OK)
            status = count_windows(calibrator, i, n, 1, err);
    }
    return status;
}

/* Those of the checkpoint, if there are any, before the layer is another. */
static enum lmq_status
advance_exact(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    const struct lmq_streams *exact = &layer->calibrator->walk.exact;

    return exact->x == NULL || lmq_cal_is_head(layer)
               ? LMQ_OK
               : advance(layer, exact, err);
}

/* Strips of a Hessian, from who has added them up. */
static enum lmq_status
share_hessian(const struct lmq_cal_layer *layer,
              const struct lmq_hessian *hessian, struct lmq_error *err)
{
    const struct lmq_peers *peers = layer->calibrator->peers;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < lmq_hessian_strips(hessian) && status == LMQ_OK &&
                       has_peers(layer); i++) {
        size_t n_bytes;
        void *strip = lmq_hessian_strip(hessian, i, &n_bytes);
        status = lmq_peers_share(peers, (unsigned)(i % lmq_peers_n(peers)),
                                 strip, n_bytes, err);
    }
    return status;
}

/* The windows through the layer for those that are watched. */
static enum lmq_status
add_up(struct go *go, struct lmq_error *err)
{
    struct lmq_cal_layer *layer = go->layer;
    const struct lmq_calibrator *calibrator = layer->calibrator;
    size_t window = calibrator->walk.context, n = calibrator->n_buffers;
    enum lmq_status status = lmq_seen_init(&go->own, layer, window, n, err);

    if (has_peers(layer) && status == LMQ_OK)
        status = lmq_seen_init(&go->others, layer, window, n, err);
    if (status == LMQ_OK)
        status = look(go, err);
    lmq_seen_free(&go->own);
    lmq_seen_free(&go->others);
    for (size_t i = 0; i < layer->n_inputs && status == LMQ_OK; i++)
        if (layer->inputs[i].is_watched)
            status = share_hessian(layer, &layer->inputs[i].hessian, err);
    return status;
}

/* ---- A go ---- */

/* Whether somebody wants feedback, for which it is factored. */
static bool
is_for_feedback(const struct lmq_cal_layer *layer, size_t input)
{
    for (size_t i = 0; i < layer->n_items; i++)
        if (layer->items[i].input == input &&
            layer->plan->records[layer->items[i].record].quant.method ==
                LMQ_METHOD_GPTQ)
            return true;
    return false;
}

/* Whether so many columns have seen enough tokens to say something. */
static bool
is_enough(uint64_t n_tokens, size_t n_cols)
{
    return n_tokens * COLUMNS_PER_TOKEN >= n_cols;
}

/* What is to be made up for, once the Hessian is factored. */
struct solving {
    const struct lmq_calibrator *calibrator;
    struct lmq_cal_input *input;
};

/* The fewer tokens there are for each column the more of what fits them is an
 * accident. (SmolLM2-135M, 512 tokens, mean KLD: 6.7e-4 with all of the share,
 * 5.0e-4 with none.) Of a product so much is added as the residual says. */
static double
share_of(const struct lmq_calibrator *calibrator,
         const struct lmq_cal_input *input)
{
    double n_tokens = (double)input->hessian.n_tokens;
    double share =
        calibrator->mend * n_tokens / (n_tokens + (double)input->n_cols);

    return input->mend.is_output
               ? share / calibrator->model->hparams.residual_scale
               : share;
}

static void
solve(void *context, size_t member, size_t n_members)
{
    const struct solving *solving = context;
    const struct lmq_calibrator *calibrator = solving->calibrator;
    size_t rank = lmq_peers_rank(calibrator->peers);
    size_t n = lmq_peers_n(calibrator->peers);

    lmq_mend_solve(&solving->input->mend, &solving->input->hessian,
                   share_of(calibrator, solving->input),
                   calibrator->buffers[member], rank + n * member,
                   n * n_members);
}

static enum lmq_status
settle_mend(const struct lmq_calibrator *calibrator,
             struct lmq_cal_input *input, struct lmq_error *err)
{
    struct solving solving = {calibrator, input};
    struct lmq_team *team = calibrator->walk.work.team;
    const struct lmq_peers *peers = calibrator->peers;
    enum lmq_status status = LMQ_OK;

    lmq_team_run(team, lmq_team_size(team), solve, &solving);
    for (size_t i = 0; i < lmq_mend_strips(&input->mend) &&
                       status == LMQ_OK; i++) {
        size_t n_bytes;
        void *strip = lmq_mend_strip(&input->mend, i, &n_bytes);
        status = lmq_peers_share(peers, (unsigned)(i % lmq_peers_n(peers)),
                                 strip, n_bytes, err);
    }
    return status;
}

/* *hessian is NULL: it says nothing. */
static enum lmq_status
settle(struct lmq_cal_layer *layer, size_t index,
       const struct lmq_hessian **hessian, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = layer->calibrator;
    struct lmq_cal_input *input = &layer->inputs[index];
    const struct lmq_workforce who = {calibrator->walk.work.team,
                                      calibrator->peers,
                                      &calibrator->counter};
    double damping = calibrator->damping;
    enum lmq_status status = LMQ_OK;
    bool is_settled = false;

    if (lmq_cal_is_head(layer) && layer->plan->tie_rule[0] != '\0')
        damping = fmax(damping, TIED_DAMPING);
    if (is_enough(input->hessian.n_tokens, input->n_cols)) {
        if (is_for_feedback(layer, index))
            status = lmq_hessian_factor(&input->hessian, damping, &who,
                                        &is_settled, err);
        else
            is_settled = lmq_hessian_weigh(&input->hessian, damping);
        if (status == LMQ_OK && is_settled && input->mend.n_rows > 0)
            status = settle_mend(calibrator, input, err);
    }
    *hessian = is_settled ? &input->hessian : NULL;
    return status;
}

/* Those of an input; SIZE_MAX: that want none. */
static enum lmq_status
quantize_input(struct lmq_cal_layer *layer, size_t index,
               struct lmq_error *err)
{
    struct lmq_cal_input *input =
        index == SIZE_MAX ? NULL : &layer->inputs[index];
    const struct lmq_hessian *hessian = NULL;
    enum lmq_status status = LMQ_OK;

    if (input != NULL)
        status = settle(layer, index, &hessian, err);
    for (size_t i = 0; i < layer->n_items && status == LMQ_OK; i++)
        if (layer->items[i].input == index)
            status = lmq_cal_quantize(layer, &layer->items[i], hessian, err);
    if (input != NULL)
        lmq_cal_forget(input);
    return status;
}

/* Inputs [first, *end) are as many as there is room for, at least one. */
static enum lmq_status
watch(struct lmq_cal_layer *layer, size_t first, size_t *end,
      struct lmq_error *err)
{
    double room = LMQ_CALIBRATION_BYTES;

    for (size_t i = first; i < layer->n_inputs; i++) {
        struct lmq_cal_input *input = &layer->inputs[i];
        struct lmq_mend *mend = &input->mend;
        room -= lmq_hessian_bytes(input->n_cols) +
                lmq_mend_bytes(input->n_cols, mend->n_rows);
        if (i > first && room < 0)
            break;
        if (!lmq_hessian_init(&input->hessian, input->n_cols) ||
            !lmq_mend_init(mend, input->n_cols, mend->n_rows,
                            mend->is_output, input->rotated))
            return lmq_fail_nomem(err);
        input->hessian.rotated = input->rotated;
        input->is_watched = true;
        *end = i + 1;
    }
    return LMQ_OK;
}

/* Whether something of inputs [first, end) drifts. */
static bool
drifts(const struct lmq_cal_layer *layer, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (layer->inputs[i].mend.n_rows > 0)
            return true;
    return false;
}

static enum lmq_status
learn(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    bool has_advanced = false;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0, end = 0; at < layer->n_inputs && status == LMQ_OK;
         at = end) {
        status = watch(layer, at, &end, err);
        struct go go = {.layer = layer, .drifts = drifts(layer, at, end)};
        go.advances = go.drifts && end == layer->n_inputs;
        has_advanced |= go.advances;
        if (status == LMQ_OK)
            status = add_up(&go, err);
        for (size_t i = at; i < end && status == LMQ_OK; i++) {
            layer->inputs[i].is_watched = false;
            status = quantize_input(layer, i, err);
        }
    }
    if (status == LMQ_OK && !has_advanced)
        status = advance_exact(layer, err);
    if (status == LMQ_OK)
        status = quantize_input(layer, SIZE_MAX, err);
    for (size_t i = 0; i < layer->n_items && status == LMQ_OK; i++)
        if (!lmq_cal_is_head(layer))
            status = lmq_cal_use(layer, &layer->items[i], err);
    return status;
}

/* ---- What an earlier process has done ---- */

/* The text goes through what was written, and nothing is learnt again. */
static enum lmq_status
recall(struct lmq_cal_layer *layer, const struct lmq_conversion *work,
       struct lmq_error *err)
{
    enum lmq_status status = advance_exact(layer, err);

    for (size_t i = 0; i < layer->n_items && status == LMQ_OK; i++) {
        const struct lmq_cal_item *item = &layer->items[i];
        if (!lmq_cal_is_head(layer))
            status = lmq_cal_use_written(layer, item, work, err);
        layer->calibrator->counter.done += item->matrix->n_rows;
    }
    return status;
}

/* ---- All of it ---- */

static enum lmq_status
run_layer(const struct lmq_conversion *work, size_t index,
          struct lmq_error *err)
{
    struct lmq_cal_layer layer = {.calibrator = work->plan->calibrator,
                                  .plan = work->plan,
                                  .index = index};
    bool is_written = false;
    enum lmq_status status = lmq_cal_list(&layer, err);

    if (status == LMQ_OK)
        status = lmq_cal_is_written(&layer, &is_written, err);
    if (status == LMQ_OK)
        status = is_written ? recall(&layer, work, err) : learn(&layer, err);
    if (status == LMQ_OK && !lmq_cal_is_head(&layer))
        status = advance(&layer, &layer.calibrator->walk.rounded, err);
    lmq_cal_free(&layer);
    return status;
}

enum lmq_status
lmq_calibrator_layer(const struct lmq_conversion *work, size_t index,
                     const struct lmq_progress *progress,
                     struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = work->plan->calibrator;
    enum lmq_status status = LMQ_OK;

    calibrator->counter.progress = progress;
    if (index == calibrator->model->hparams.n_layers)
        return run_layer(work, index, err);
    if (index == 0)
        status = lmq_walk_begin(&calibrator->walk, calibrator->model,
                                &calibrator->corpus, calibrator->threads,
                                calibrator->mend > 0, err);
    if (status == LMQ_OK)
        status = lmq_model_load_layer(calibrator->model, index, err);
    if (status == LMQ_OK)
        status = run_layer(work, index, err);
    lmq_model_drop_layer(calibrator->model, index);
    return status == LMQ_OK
               ? lmq_walk_check(&calibrator->walk, (int32_t)index, err)
               : status;
}

/* What must be alike. */
struct subject {
    unsigned char id[LMQ_SET_ID];
    uint32_t crc; /* of what is told of the calibration */
};

/* Room for a window of what is seen, for another one that is shown, and for the
 * rest. */
static enum lmq_status
check_room(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_calibrator *calibrator = plan->calibrator;
    size_t window = lmq_walk_longest(&calibrator->corpus);
    double most = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i <= calibrator->model->hparams.n_layers &&
                       status == LMQ_OK; i++) {
        struct lmq_cal_layer layer = {plan->calibrator, plan, .index = i};
        status = lmq_cal_list(&layer, err);
        if (status == LMQ_OK)
            most = fmax(most, lmq_seen_bytes(&layer, window));
        lmq_cal_free(&layer);
    }
    most *= lmq_peers_n(calibrator->peers) > 1 ? 2 : 1;
    if (status != LMQ_OK || calibrator->bytes + most <= lmq_mem_limit())
        return status;
    lmq_fail(err, LMQ_ERR_NOMEM, 0,
             "calibrating takes %.1f GB, more than the %.1f GB that there are: "
             "%.1f GB for what is seen in a window, %.1f GB for the rest",
             1e-9 * (calibrator->bytes + most), 1e-9 * lmq_mem_limit(),
             1e-9 * most, 1e-9 * calibrator->bytes);
    lmq_hint(err, "a smaller .context");
    return LMQ_ERR_NOMEM;
}

enum lmq_status
lmq_calibrator_meet(struct lmq_plan *plan, struct lmq_error *err)
{
    const struct lmq_peers *peers = plan->calibrator->peers;
    struct subject own = {0};
    char *told = lmq_json_dump(plan->calibration, JSON_COMPACT);
    enum lmq_status status = told == NULL
                                 ? lmq_fail_nomem(err)
                                 : lmq_plan_identify(plan, own.id, err);

    if (told != NULL)
        own.crc = lmq_crc32(0, told, strlen(told));
    free(told);
    struct subject first = own;
    if (status == LMQ_OK)
        status = lmq_peers_share(peers, 0, &first, sizeof(first), err);
    if (status != LMQ_OK)
        return status;
    if (memcmp(first.id, own.id, sizeof(own.id)) == 0 && first.crc == own.crc)
        return check_room(plan, err);
    return lmq_fail(err, LMQ_ERR_ARG, 0,
                    "process %u of %u has another source, text or options "
                    "than the first",
                    lmq_peers_rank(peers) + 1, lmq_peers_n(peers));
}

bool
lmq_calibrator_is_alone(const struct lmq_calibrator *calibrator)
{
    return calibrator != NULL && lmq_peers_n(calibrator->peers) == 1;
}

size_t
lmq_calibrator_head(const struct lmq_plan *plan)
{
    return lmq_cal_head(plan);
}

enum lmq_status
lmq_calibrator_agree(struct lmq_plan *plan, size_t *end, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = plan->calibrator;
    const uint64_t own = *end;
    enum lmq_status status = LMQ_OK;

    for (unsigned i = 0; i < lmq_peers_n(calibrator->peers) &&
                         status == LMQ_OK; i++) {
        uint64_t said = own;
        status = lmq_peers_share(calibrator->peers, i, &said, sizeof(said),
                                 err);
        *end = lmq_size_max(*end, (size_t)said);
    }
    lmq_calibrator_expect(plan, *end);
    return status;
}

static void
note_starved(struct lmq_plan *plan, const char *name, uint64_t n_tokens,
             size_t n_before)
{
    if (n_before < NOTES_MOST)
        lmq_notes_add(&plan->notes,
                      "'%s' sees only %llu tokens of the calibration text: it "
                      "is quantized by search",
                      name, (unsigned long long)n_tokens);
    else if (n_before == NOTES_MOST)
        lmq_notes_add(&plan->notes,
                      "and so do others: the report tells the tokens of each "
                      "tensor");
}

void
lmq_calibrated_note(struct lmq_plan *plan)
{
    size_t n_starved = 0;

    for (size_t i = 0; i < plan->n_records && plan->calibrated != NULL; i++) {
        const struct lmq_calibrated *known = &plan->calibrated[i];
        const struct lmq_tensor *tensor = plan->sources[i];
        if (!known->is_known || !known->is_blind || !known->is_first ||
            tensor == NULL)
            continue;
        if (is_enough(known->n_tokens, (size_t)tensor->n_cols))
            lmq_notes_add(&plan->notes,
                          "what '%s' is multiplied with is 0, or not finite: "
                          "it is quantized by search",
                          tensor->name);
        else
            note_starved(plan, tensor->name, known->n_tokens, n_starved++);
    }
}

void
lmq_calibrated_forget(struct lmq_plan *plan)
{
    for (size_t i = 0; i < plan->n_records && plan->calibrated != NULL; i++) {
        lmq_mem_free(plan->calibrated[i].q);
        lmq_mem_free(plan->calibrated[i].scales);
        plan->calibrated[i].q = NULL;
        plan->calibrated[i].scales = NULL;
    }
}
