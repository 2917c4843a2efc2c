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
 * each its strips of the Hessians. */
struct go {
    struct lmq_cal_layer *layer;
    struct lmq_seen own, others; /* with peers */
    const struct lmq_seen *seen; /* one of them */
};

static bool
has_peers(const struct lmq_cal_layer *layer)
{
    return lmq_peers_n(layer->calibrator->peers) > 1;
}

/* One thread's share of some tokens. */
static void
add_run(struct lmq_cal_layer *layer, size_t input, const float *x,
        size_t stride, size_t n_tokens, size_t member, size_t n_members)
{
    struct lmq_calibrator *calibrator = layer->calibrator;
    struct lmq_hessian *hessian = &layer->inputs[input].hessian;
    size_t rank = lmq_peers_rank(calibrator->peers);
    size_t n = lmq_peers_n(calibrator->peers);

    lmq_hessian_add(hessian, x, stride, n_tokens, calibrator->buffers[member],
                    rank + n * member, n * n_members);
    if (member == 0)
        hessian->n_tokens += n_tokens;
}

/* All matrices that share an input see it; one of them is enough. */
static void
see(void *context, const struct lmq_member *member,
    const struct lmq_matrix *matrix, const struct lmq_operand *operand)
{
    struct go *go = context;
    struct lmq_cal_layer *layer = go->layer;

    for (size_t i = 0; i < layer->n_inputs; i++) {
        struct lmq_cal_input *input = &layer->inputs[i];
        if (!input->is_watched || input->leader != matrix)
            continue;
        if (has_peers(layer))
            lmq_seen_add(&go->own, member, i, operand);
        else
            add_run(layer, i, operand->x, operand->stride, operand->n,
                    member->number, member->n_members);
    }
}

static void
add_seen(void *context, size_t member, size_t n_members)
{
    const struct go *go = context;
    const struct lmq_seen *seen = go->seen;

    for (size_t i = 0; i < seen->cursors[0].n_runs; i++) {
        const struct lmq_seen_run *run = &seen->runs[i];
        size_t n_cols = go->layer->inputs[run->input].n_cols;
        add_run(go->layer, (size_t)run->input, seen->x + run->at, n_cols,
                (size_t)run->n_tokens, member, n_members);
    }
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
    lmq_seen_clear(&go->own);
    return status;
}

static enum lmq_status
walk_window(struct lmq_cal_layer *layer, size_t window,
            const struct lmq_witness *witness, struct lmq_error *err)
{
    struct lmq_walk *walk = &layer->calibrator->walk;

    if (window >= walk->corpus->n_windows)
        return LMQ_OK;
    if (lmq_cal_is_head(layer))
        return lmq_walk_head(walk, window, witness, err);
    lmq_walk_window(walk, layer->index, window, witness, witness == NULL);
    return LMQ_OK;
}

/* The streams go on if nobody looks. */
static enum lmq_status
walk(struct lmq_cal_layer *layer, struct go *go, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = layer->calibrator;
    const struct lmq_corpus *corpus = &calibrator->corpus;
    const struct lmq_witness witness = {go, see};
    unsigned n = lmq_peers_n(calibrator->peers);
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < corpus->n_windows && status == LMQ_OK; i += n) {
        status = walk_window(layer, i + lmq_peers_rank(calibrator->peers),
                             go == NULL ? NULL : &witness, err);
        if (status == LMQ_OK && go != NULL && has_peers(layer))
            status = add_all(go, i, err);
        for (size_t j = i; j < lmq_size_min(i + n, corpus->n_windows); j++)
            calibrator->counter.done += corpus->windows[j].n;
        if (status == LMQ_OK)
            status = lmq_counter_report(&calibrator->counter, err);
    }
    return status;
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
add_up(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    const struct lmq_calibrator *calibrator = layer->calibrator;
    size_t window = calibrator->walk.context, n = calibrator->n_buffers;
    struct go go = {.layer = layer};
    enum lmq_status status = LMQ_OK;

    if (has_peers(layer))
        status = lmq_seen_init(&go.own, layer, window, n, err);
    if (has_peers(layer) && status == LMQ_OK)
        status = lmq_seen_init(&go.others, layer, window, n, err);
    if (status == LMQ_OK)
        status = walk(layer, &go, err);
    lmq_seen_free(&go.own);
    lmq_seen_free(&go.others);
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
        lmq_hessian_free(&input->hessian);
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
        room -= lmq_hessian_bytes(input->n_cols);
        if (i > first && room < 0)
            break;
        if (!lmq_hessian_init(&input->hessian, input->n_cols))
            return lmq_fail_nomem(err);
        input->hessian.rotated = input->rotated;
        input->is_watched = true;
        *end = i + 1;
    }
    return LMQ_OK;
}

static enum lmq_status
learn(struct lmq_cal_layer *layer, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0, end = 0; at < layer->n_inputs && status == LMQ_OK;
         at = end) {
        status = watch(layer, at, &end, err);
        if (status == LMQ_OK)
            status = add_up(layer, err);
        for (size_t i = at; i < end && status == LMQ_OK; i++) {
            layer->inputs[i].is_watched = false;
            status = quantize_input(layer, i, err);
        }
    }
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
    enum lmq_status status = LMQ_OK;

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
        status = walk(&layer, NULL, err);
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
                                &calibrator->corpus, calibrator->threads, err);
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

/* Room for two windows of what is seen, beside what one machine alone wants. */
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
    if (status != LMQ_OK || calibrator->bytes + 2 * most <= lmq_mem_limit())
        return status;
    lmq_fail(err, LMQ_ERR_NOMEM, 0,
             "calibrating takes %.1f GB, more than the %.1f GB that there are: "
             "%.1f GB for what processes show each other, %.1f GB for the rest",
             1e-9 * (calibrator->bytes + 2 * most), 1e-9 * lmq_mem_limit(),
             2e-9 * most, 1e-9 * calibrator->bytes);
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
        return lmq_peers_n(peers) > 1 ? check_room(plan, err) : LMQ_OK;
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
