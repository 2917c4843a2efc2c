/*
 * planner.c - a plan from its options to its recipe.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/output.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/text/c_locale.h"
#include "validate/parts/part_set.h"
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

/* ---- Before the work ---- */

static bool
is_part(const struct lmq_planning_options *o)
{
    return o->part != 0 || o->n_parts != 0;
}

static enum lmq_status
check_part(const struct lmq_planning_options *o, struct lmq_error *err)
{
    if (lmq_part_check(o->part, o->n_parts, err) != LMQ_OK)
        return LMQ_ERR_ARG;
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
    if (lmq_job_check_texts(planner->job.options, err) != LMQ_OK)
        return LMQ_ERR_ARG;
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

/* Whether window i of n is one of n_wanted that are spread over them: in the
 * middle of each share, or anywhere in it. */
static bool
is_spread(size_t i, size_t n, size_t n_wanted, bool is_anywhere)
{
    size_t share = (i * n_wanted + n_wanted - 1) / n;

    if (!is_anywhere)
        return (i * n_wanted + n / 2) / n != ((i + 1) * n_wanted + n / 2) / n;
    size_t first = share * n / n_wanted, end = (share + 1) * n / n_wanted;
    uint32_t mixed = (uint32_t)(share + 1) * UINT32_C(2654435761) >> 8;
    return i == first + mixed % (end - first);
}

/* Moves some of the first n windows to the front, which are spread over them:
 * so many that they have `tokens`; says how many these are. Paragraphs may take
 * turns in what they are, and the middles of shares with them. */
static enum lmq_status
spread_windows(struct lmq_corpus *corpus, size_t n, size_t tokens,
               bool is_anywhere, size_t *n_front, struct lmq_error *err)
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
        if (is_spread(i, n, n_wanted, is_anywhere))
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
    bool splits = planner->options->splits_documents != 0;
    size_t most, many = 0;
    /* What was asked for is not exceeded. */
    size_t times = planner->options->max_tokens == 0 ? MANY_TIMES : 1;

    if (!lmq_size_mul(planner->n_many_tokens, times, &most))
        most = planner->n_many_tokens;
    enum lmq_status status = spread_windows(corpus, corpus->n_windows, most,
                                            splits, &planner->n_most, err);
    if (status == LMQ_OK)
        status = spread_windows(corpus, planner->n_most,
                                planner->n_many_tokens, splits, &many, err);
    if (status == LMQ_OK)
        status =
            spread_windows(corpus, many, FEW_TOKENS, splits, &planner->n_few,
                           err);
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

/* ---- The recipe ---- */

static char *
recipe_text(const struct lmq_planner *planner)
{
    const struct lmq_choice *choice = &planner->choice;
    char remarks[512];
    locale_t former = lmq_c_locale_enter();

    snprintf(remarks, sizeof(remarks),
             "# Made by lmquant plan. A container of %" PRIu64
             " bytes; the mean divergence\n"
             "# from its source was %.3e over %zu tokens, and is expected from "
             "%.3e to\n# %.3e over others of the kind.\n",
             choice->file, choice->measured, planner->job.corpus.n_scored,
             fmax(choice->measured - choice->error, 0),
             choice->measured + choice->error);
    lmq_c_locale_leave(former);
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
    status = lmq_planner_choose(planner, err);
    if (status == LMQ_OK && planner->options->chooses_kv)
        status = lmq_planner_weigh_kv(planner, err);
    return status == LMQ_OK ? lmq_planner_draw_front(planner, err) : status;
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
        status = lmq_planner_check_target(planner, err);
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
    options.splits_documents = own.splits_documents;
    planner.n_many_tokens = own.max_tokens == 0 ? MANY_TOKENS : own.max_tokens;
    if (!lmq_size_mul(planner.n_many_tokens, READ_TIMES, &options.max_tokens))
        options.max_tokens = 0;
    options.memory = own.memory;
    options.skips_checksums = own.skips_checksums;
    status = make_plan(&planner, output, report, err);
    tear_down(&planner);
    return status;
}
