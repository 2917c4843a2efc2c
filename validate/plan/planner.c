/*
 * planner.c - the best choice under a constraint, as a recipe.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/elementary.h"
#include "base/error.h"
#include "base/files/output.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "validate/parts/part_set.h"
#include "validate/plan/knapsack.h"
#include "validate/plan/planner.h"

/* Tokens that units are measured over; and choices, unless it is said. */
#define FEW_TOKENS 2048
#define MANY_TOKENS 16384
/* So many times as many of these where the choice stays uncertain else. */
#define MANY_TIMES 4
/* Of a text that is longer than that by more, the first part is looked at. */
#define READ_TIMES 256
/* Fewer scored tokens say nothing. */
#define TOKENS_LEAST 256
/* A divergence that was asked for is met when it is within this below. */
#define KLD_ROOM 0.05

/* ---- Before the work ---- */

static bool
is_part(const struct lmq_planning_options *o)
{
    return o->part != 0 || o->n_parts != 0;
}

static enum lmq_status
check_part(const struct lmq_planning_options *o, struct lmq_error *err)
{
    if (o->part < 1 || o->part > o->n_parts)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "there is no part %u of %u: expected 1 to %u", o->part,
                        o->n_parts, o->n_parts);
    if (o->n_measured > 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".measured does not go with .part: it belongs to what "
                        "makes the plan of all parts");
    return LMQ_OK;
}

static enum lmq_status
check_options(const struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    int n_targets = (o->target_size > 0) + (o->target_bits != 0) +
                    (o->target_kld != 0);

    if (is_part(o) && check_part(o, err) != LMQ_OK)
        return LMQ_ERR_ARG;
    if (n_targets > 1 || (n_targets == 0 && !is_part(o))) {
        lmq_fail(err, LMQ_ERR_ARG, 0, "%s",
                 n_targets == 0 ? "there is no target"
                                : "there is more than one target");
        lmq_hint(err, "one of .target_size, .target_bits and .target_kld");
        return LMQ_ERR_ARG;
    }
    if (o->tokens != NULL && o->n_texts > 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0, ".tokens is in place of .texts");
    if (o->target_bits < 0 || !isfinite(o->target_bits))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".target_bits is %g, expected a number above 0",
                        o->target_bits);
    if (o->target_kld < 0 || !isfinite(o->target_kld))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".target_kld is %g, expected a number above 0",
                        o->target_kld);
    return LMQ_OK;
}

/* Neither replaces what is read. */
static enum lmq_status
check_outputs(const struct lmq_planner *planner, const char *output,
              struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    struct lmq_originals originals = {0};
    enum lmq_status status = lmq_originals_add_all(
        &originals, &planner->job.reference_file->originals, err);

    for (size_t i = 0; i < o->n_texts && status == LMQ_OK; i++)
        status = lmq_originals_add_text(&originals, o->texts[i], false, err);
    if (status == LMQ_OK && o->tokens != NULL)
        status = lmq_originals_add(&originals, o->tokens, false, err);
    for (size_t i = 0; i < o->n_measured && !o->measured_are_texts &&
                       status == LMQ_OK; i++)
        status = lmq_originals_add(&originals, o->measured[i], false, err);
    if (status == LMQ_OK && output != NULL)
        status =
            lmq_output_check(output, o->replaces != 0, &originals, err);
    if (status == LMQ_OK && o->page != NULL)
        status =
            lmq_output_check(o->page, o->replaces != 0, &originals, err);
    lmq_originals_free(&originals);
    if (status == LMQ_OK && output != NULL && o->page != NULL &&
        lmq_output_is_same(output, o->page))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "the recipe and the page are the same file");
    return status;
}

/* Moves some of the first n windows to the front, which are spread over them:
 * so many that they have `tokens`; says how many these are. */
static enum lmq_status
spread_windows(struct lmq_corpus *corpus, size_t n, size_t tokens,
               size_t *n_front, struct lmq_error *err)
{
    struct lmq_window *rest = calloc(n + 1, sizeof(*rest));
    size_t n_tokens = 0, n_wanted, n_rest = 0;

    if (rest == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        n_tokens += corpus->windows[i].n;
    n_wanted = lmq_size_min(
        n, (size_t)ceil((double)tokens * (double)n / (double)n_tokens));
    *n_front = 0;
    for (size_t i = 0; i < n; i++)
        if ((i * n_wanted + n / 2) / n != ((i + 1) * n_wanted + n / 2) / n)
            corpus->windows[(*n_front)++] = corpus->windows[i];
        else
            rest[n_rest++] = corpus->windows[i];
    memcpy(corpus->windows + *n_front, rest, n_rest * sizeof(*rest));
    free(rest);
    return LMQ_OK;
}

/* Parts of a text differ: choices are measured all over it, and units too, in
 * fewer windows, which are the first from here on; behind them stand those that
 * it may take more. */
static enum lmq_status
choose_windows(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_corpus *corpus = &planner->job.corpus;
    size_t most, many = 0;
    /* What was asked for is not exceeded. */
    size_t times = planner->options->max_tokens == 0 ? MANY_TIMES : 1;

    if (!lmq_size_mul(planner->n_many_tokens, times, &most))
        most = planner->n_many_tokens;
    enum lmq_status status = spread_windows(corpus, corpus->n_windows, most,
                                            &planner->n_most, err);
    if (status == LMQ_OK)
        status = spread_windows(corpus, planner->n_most,
                                planner->n_many_tokens, &many, err);
    if (status == LMQ_OK)
        status =
            spread_windows(corpus, many, FEW_TOKENS, &planner->n_few, err);
    lmq_planner_take_windows(planner, many);
    planner->n_few_scored = lmq_planner_scored(planner, planner->n_few);
    return status;
}

static enum lmq_status
check_text(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_corpus *corpus = &planner->job.corpus;
    enum lmq_status status = corpus->n_scored < TOKENS_LEAST
                                 ? LMQ_OK
                                 : choose_windows(planner, err);

    if (status == LMQ_OK && corpus->n_scored < TOKENS_LEAST) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the text is too short: %zu tokens are scored, %d are the "
                 "least",
                 corpus->n_scored, TOKENS_LEAST);
        lmq_hint(err, "some thousands make a plan; .texts may be several, and "
                      ".max_tokens more");
        return LMQ_ERR_FORMAT;
    }
    return status;
}

static void
count_weights(struct lmq_planner *planner)
{
    const struct lmq_checkpoint *checkpoint = planner->job.reference_file;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->alias_of == NULL)
            planner->n_parameters += (double)tensor->n_elements;
        if (lmq_tensor_is_head(tensor) && planner->units.n > 0 &&
            planner->units.units[0].is_tied && tensor->alias_of == NULL)
            planner->n_parameters -= (double)tensor->n_elements;
    }
    planner->other_bytes =
        4 * (planner->n_parameters - (double)planner->units.n_weights);
}

static enum lmq_status
find_offers(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_job *job = &planner->job;
    bool is_tied;
    enum lmq_status status =
        lmq_offers_tied(job->reference_file, &is_tied, err);

    if (status == LMQ_OK)
        status = lmq_units_find(job->reference_file, is_tied, &planner->units,
                                err);
    if (status == LMQ_OK)
        status =
            lmq_variant_workers(&planner->workers, job->session.threads, err);
    if (status == LMQ_OK)
        status = lmq_offers_make(job->reference_file, &planner->units,
                                 planner->options->rotates != 0,
                                 &planner->workers, job->progress,
                                 &planner->offers, err);
    /* Mixes bring threads of their own. */
    lmq_workers_close(&planner->workers);
    if (status != LMQ_OK)
        return status;
    size_t n = planner->units.n;
    planner->alone = calloc(n + 1, sizeof(*planner->alone));
    planner->costs =
        calloc(n * planner->offers.n + 1, sizeof(*planner->costs));
    planner->choice.chosen = calloc(n + 1, sizeof(*planner->choice.chosen));
    planner->best.chosen = calloc(n + 1, sizeof(*planner->best.chosen));
    planner->scratch = calloc(n + 1, sizeof(*planner->scratch));
    count_weights(planner);
    return planner->alone == NULL || planner->costs == NULL ||
                   planner->choice.chosen == NULL ||
                   planner->best.chosen == NULL || planner->scratch == NULL
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

/* ---- Choosing ---- */

static double
sum_over(const struct lmq_planner *planner, const double *numbers,
         const size_t *chosen)
{
    double sum = 0;

    for (size_t i = 0; i < planner->units.n; i++)
        sum += numbers[i * planner->offers.n + chosen[i]];
    return sum;
}

static enum lmq_status
weigh(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_choice *choice = &planner->choice;

    choice->bytes = sum_over(planner, planner->offers.bytes, choice->chosen);
    choice->additive = sum_over(planner, planner->costs, choice->chosen);
    choice->predicted = lmq_planner_predict(planner, choice->additive);
    free(planner->recipe);
    planner->recipe = lmq_offers_recipe(&planner->offers, &planner->units,
                                        choice->chosen, "");
    if (planner->recipe == NULL)
        return lmq_fail_nomem(err);
    return lmq_offers_file_size(planner->job.reference_file, planner->recipe,
                                &choice->file, err);
}

static enum lmq_status
choose_bytes(struct lmq_planner *planner, double limit, size_t *chosen,
             double *bound, struct lmq_error *err)
{
    const struct lmq_knapsack knapsack = {
        planner->units.n, planner->offers.n, planner->offers.bytes,
        planner->costs, limit};

    return lmq_knapsack_solve(&knapsack, chosen, bound, err);
}

/* The choice with the least costs of so many bytes of units. */
static enum lmq_status
choose_within(struct lmq_planner *planner, double limit, struct lmq_error *err)
{
    struct lmq_choice *choice = &planner->choice;
    double bound;
    enum lmq_status status =
        choose_bytes(planner, limit, choice->chosen, &bound, err);

    if (status == LMQ_OK)
        status = weigh(planner, err);
    if (status == LMQ_OK)
        choice->gap = choice->predicted > 0
                          ? fmax(1 - lmq_planner_predict(planner, bound) /
                                         choice->predicted,
                                 0)
                          : 0;
    return status;
}

static enum lmq_status
fail_too_small(double wanted, const char *option, double nearest, int digits,
               struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             ".%s is %.*g, and the least that can be had is %.*g", option,
             digits, wanted, digits, nearest);
    lmq_hint(err, "that is each matrix in the encoding that takes least; "
                  "shards and digests would come on top");
    return LMQ_ERR_ARG;
}

/* Before anything is measured: costs are none yet. */
static enum lmq_status
check_target(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    double least = planner->offers.least;
    double bits =
        8 * (least + planner->other_bytes) / planner->n_parameters;
    enum lmq_status status = choose_within(planner, least, err);
    double size = (double)planner->choice.file;

    if (status != LMQ_OK)
        return status;
    if (o->target_size > 0 && size > (double)o->target_size)
        return fail_too_small((double)o->target_size, "target_size", size, 15,
                              err);
    /* What is said is enough: in so many digits it is never less. */
    if (o->target_bits > 0 && bits > o->target_bits)
        return fail_too_small(o->target_bits, "target_bits",
                              bits * (1 + 5e-10), 10, err);
    return LMQ_OK;
}

/* As many bytes for the units as leave room for all that is not one. How much
 * that is depends on the choice, by the length of its recipe: rounds, with less
 * room in each, down to what is sure to fit. */
static enum lmq_status
choose_size(struct lmq_planner *planner, struct lmq_error *err)
{
    double target = (double)planner->options->target_size;
    double least = planner->offers.least;
    const struct lmq_choice *choice = &planner->choice;
    enum lmq_status status = choose_within(planner, least, err);

    if (status != LMQ_OK)
        return status;
    double limit = target - ((double)choice->file - choice->bytes);
    for (double less = 16;; less *= 2) {
        limit = fmax(limit, least);
        status = choose_within(planner, limit, err);
        double over = (double)choice->file - target;
        if (status != LMQ_OK || over <= 0)
            return status;
        limit -= over + less;
    }
}

static enum lmq_status
choose_bits(struct lmq_planner *planner, struct lmq_error *err)
{
    double target = planner->options->target_bits;
    double limit =
        target / 8 * planner->n_parameters - planner->other_bytes;

    return choose_within(planner, limit, err);
}

/* The most that costs may come to for a predicted divergence. */
static double
costs_for(const struct lmq_planner *planner, double kld)
{
    double low = 0, high = 1;

    while (lmq_planner_predict(planner, high) < kld && high < 1e6)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        *(lmq_planner_predict(planner, middle) <= kld ? &low : &high) = middle;
    }
    return low;
}

/* The least bytes with a predicted divergence of no more than `kld`. */
static enum lmq_status
choose_kld(struct lmq_planner *planner, double kld, struct lmq_error *err)
{
    const struct lmq_knapsack knapsack = {
        planner->units.n, planner->offers.n, planner->costs,
        planner->offers.bytes, costs_for(planner, kld)};
    struct lmq_choice *choice = &planner->choice;
    double bound;
    enum lmq_status status =
        lmq_knapsack_solve(&knapsack, choice->chosen, &bound, err);

    if (status == LMQ_OK)
        status = weigh(planner, err);
    choice->gap =
        choice->bytes > 0 ? fmax(1 - bound / choice->bytes, 0) : 0;
    return status;
}

/* One offer for all may have turned out to be better than the choice. */
static enum lmq_status
check(struct lmq_planner *planner, struct lmq_error *err)
{
    enum lmq_status status = lmq_planner_check(planner, err);

    return status == LMQ_OK && planner->choice.is_uniform
               ? weigh(planner, err)
               : status;
}

/* Changes places with the best if it is better. */
static void
keep_best(struct lmq_planner *planner)
{
    struct lmq_choice choice = planner->choice;

    if (choice.measured > planner->options->target_kld ||
        (planner->has_best && choice.bytes >= planner->best.bytes))
        return;
    planner->choice = planner->best;
    planner->best = choice;
    planner->has_best = true;
}

static enum lmq_status
fail_too_near(const struct lmq_planner *planner, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             ".target_kld is %g, and the nearest that was found is %g",
             planner->options->target_kld, planner->choice.measured);
    lmq_hint(err, "a target of that, or of more, can be met");
    return LMQ_ERR_ARG;
}

/* What was measured decides: the next round asks for less, or for more, between
 * what held and what did not; the last one makes sure that something does. */
static enum lmq_status
meet_kld(struct lmq_planner *planner, struct lmq_error *err)
{
    const double target = planner->options->target_kld;
    double wanted = target, held = 0, missed = INFINITY; /* by what is wanted */
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < LMQ_ROUNDS_MOST && status == LMQ_OK; i++) {
        size_t n_windows = planner->job.corpus.n_windows;
        status = choose_kld(planner, wanted, err);
        if (status == LMQ_OK)
            status = check(planner, err);
        if (planner->job.corpus.n_windows != n_windows) /* that was of less */
            held = 0, missed = INFINITY, planner->has_best = false;
        double measured = planner->choice.measured;
        bool is_least = planner->choice.bytes <= planner->offers.least;
        bool is_near = measured >= target * (1 - KLD_ROOM);
        if (status == LMQ_OK)
            keep_best(planner);
        if (measured <= target && (is_near || is_least))
            break;
        if (measured <= target)
            held = fmax(held, wanted);
        else
            missed = fmin(missed, wanted);
        wanted *= held > 0 || i + 2 < LMQ_ROUNDS_MOST
                      ? (1 - KLD_ROOM / 2) * target / fmax(measured, target / 4)
                      : 0.8 * target / measured;
        if (missed < INFINITY && (wanted <= held || wanted >= missed))
            wanted = sqrt(fmax(held, missed / 16) * missed);
    }
    if (status != LMQ_OK)
        return status;
    if (!planner->has_best)
        return fail_too_near(planner, err);
    struct lmq_choice best = planner->best;
    planner->best = planner->choice;
    planner->choice = best;
    return weigh(planner, err);
}

static enum lmq_status
choose(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;

    if (o->target_kld > 0)
        return meet_kld(planner, err);
    enum lmq_status status = o->target_size > 0 ? choose_size(planner, err)
                                                : choose_bits(planner, err);
    return status == LMQ_OK ? check(planner, err) : status;
}

/* Sizes from the least to the most, in equal ratios. */
static enum lmq_status
draw_front(struct lmq_planner *planner, struct lmq_error *err)
{
    double least = planner->offers.least, most = planner->offers.most;
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < LMQ_FRONT_POINTS && status == LMQ_OK; i++) {
        double part = (double)i / (LMQ_FRONT_POINTS - 1), bound;
        double limit = least * lmq_exp(part * lmq_log(most / least));
        status = choose_bytes(planner, fmax(limit, least), planner->scratch,
                              &bound, err);
        planner->front[planner->n_front++] = (struct lmq_front_point){
            sum_over(planner, planner->offers.bytes, planner->scratch),
            lmq_planner_predict(
                planner,
                sum_over(planner, planner->costs, planner->scratch))};
    }
    return status;
}

/* ---- The recipe ---- */

static char *
recipe_text(const struct lmq_planner *planner)
{
    const struct lmq_choice *choice = &planner->choice;
    char remarks[512];

    snprintf(remarks, sizeof(remarks),
             "# Made by lmquant plan. A container of %" PRIu64
             " bytes; the mean divergence\n"
             "# from its source was %.3e over %zu tokens, and is expected from "
             "%.3e to\n# %.3e over others of the kind.\n",
             choice->file, choice->measured, planner->job.corpus.n_scored,
             fmax(choice->measured - choice->error, 0),
             choice->measured + choice->error);
    return lmq_offers_recipe(&planner->offers, &planner->units, choice->chosen,
                             remarks);
}

/* A file that waits for its name. */
static enum lmq_status
write_text(const struct lmq_planner *planner, const char *path,
           const char *text, struct lmq_output **output, struct lmq_error *err)
{
    if (text == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_output_create(
        path, strlen(text), planner->options->replaces != 0,
        &planner->job.reference_file->originals, output, err);
    return status == LMQ_OK
               ? lmq_output_write(*output, 0, text, strlen(text), err)
               : status;
}

/* Recipe and page, or the one that is wanted: both appear, or none. */
static enum lmq_status
write_outputs(const struct lmq_planner *planner, const char *recipe,
              const struct lmq_report *report, struct lmq_error *err)
{
    const char *page = planner->options->page;
    struct lmq_output *outputs[2] = {NULL, NULL};
    size_t n = 0;
    char *text = NULL;
    enum lmq_status status = LMQ_OK;

    if (recipe != NULL) {
        text = recipe_text(planner);
        status = write_text(planner, recipe, text, &outputs[n++], err);
        free(text);
    }
    if (page != NULL && status == LMQ_OK) {
        status = lmq_plan_html(report, &text, err);
        if (status == LMQ_OK) {
            status = write_text(planner, page, text, &outputs[n++], err);
            lmq_text_free(text);
        }
    }
    if (status == LMQ_OK)
        status = lmq_progress_approve(planner->job.progress, report, err);
    if (status == LMQ_OK)
        return lmq_output_commit_all(outputs, n, planner->job.progress, err);
    for (size_t i = 0; i < n; i++)
        lmq_output_abort(outputs[i]);
    return status;
}

/* ---- All of it ---- */

static enum lmq_status
find_best(struct lmq_planner *planner, struct lmq_error *err)
{
    enum lmq_status status = planner->options->n_measured > 0
                                 ? lmq_planner_take_parts(planner, err)
                                 : lmq_planner_measure(planner, err);

    if (status != LMQ_OK)
        return status;
    lmq_planner_learn(planner);
    status = choose(planner, err);
    if (status == LMQ_OK && planner->options->chooses_kv)
        status = lmq_planner_weigh_kv(planner, err);
    return status == LMQ_OK ? draw_front(planner, err) : status;
}

static enum lmq_status
make_plan(struct lmq_planner *planner, const char *output,
          struct lmq_report **report, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    struct lmq_job *job = &planner->job;
    json_t *json = NULL;
    enum lmq_status status = check_options(planner, err);

    if (status == LMQ_OK)
        status = check_outputs(planner, output, err);
    if (status == LMQ_OK)
        status = lmq_job_set_up(job, err);
    if (status == LMQ_OK)
        status = check_text(planner, err);
    if (status == LMQ_OK)
        status = find_offers(planner, err);
    if (status == LMQ_OK)
        status = check_target(planner, err);
    if (status == LMQ_OK)
        status = is_part(o) ? lmq_planner_measure(planner, err)
                            : find_best(planner, err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&job->reference_file->originals, err);
    if (status != LMQ_OK)
        return status;
    if (is_part(o))
        status = lmq_planner_describe_part(planner, &json, err);
    else
        json = lmq_planner_describe(planner, output);
    if (status != LMQ_OK)
        return status;
    if (json != NULL && !is_part(o))
        status = write_outputs(planner, output, lmq_report_from(json), err);
    if (status == LMQ_OK)
        return lmq_report_finish(json, report, err);
    json_decref(json);
    return status;
}

enum lmq_status
lmq_plan_write_part(const struct lmq_report *part, const char *path,
                    int replaces, struct lmq_error *err)
{
    return lmq_part_write((const json_t *)part, path, replaces != 0, err);
}

static void
tear_down(struct lmq_planner *planner)
{
    lmq_job_tear_down(&planner->job);
    lmq_units_free(&planner->units);
    lmq_offers_free(&planner->offers);
    free(planner->alone);
    free(planner->costs);
    free(planner->choice.chosen);
    free(planner->best.chosen);
    free(planner->scratch);
    free(planner->recipe);
}

enum lmq_status
lmq_plan_recipe(struct lmq_checkpoint *checkpoint, const char *output,
                const struct lmq_planning_options *given,
                const struct lmq_progress *progress,
                struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_planning_options own;
    struct lmq_validate_options options = {.size = sizeof(options)};
    struct lmq_planner planner = {
        .options = &own,
        .job = {.options = &options, .progress = progress, .makes_sides = true,
                .reference_file = checkpoint,
                .started = lmq_clock_seconds()}};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_planning_options, &own, given, err);
    if (status == LMQ_OK)
        status = LMQ_OPTIONS_TAKE(struct lmq_session_options,
                                  &planner.job.session, own.session, err);
    if (status != LMQ_OK)
        return status;
    options.texts = own.texts;
    options.n_texts = own.n_texts;
    options.tokens = own.tokens;
    planner.n_many_tokens = own.max_tokens == 0 ? MANY_TOKENS : own.max_tokens;
    if (!lmq_size_mul(planner.n_many_tokens, READ_TIMES, &options.max_tokens))
        options.max_tokens = 0;
    options.memory = own.memory;
    options.skips_checksums = own.skips_checksums;
    status = make_plan(&planner, output, report, err);
    tear_down(&planner);
    return status;
}
