/*
 * merge.c - all parts of a validation become the report that one run makes.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/options.h"
#include "base/report.h"
#include "validate/parts/parts.h"

struct merging {
    struct lmq_part_set set;
    struct lmq_validate_options validate; /* what a job needs of them */
    struct lmq_job job;
    double *nll, seconds;
};

/* ---- Adding them up ---- */

static size_t
count_choices(const json_t *questions)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(questions); i++)
        n += json_array_size(
            json_object_get(json_array_get(questions, i), "bytes"));
    return n;
}

static size_t
count_numbers(const json_t *sides)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(sides); i++)
        n += lmq_part_count_numbers(json_array_get(sides, i));
    return n;
}

/* Room for as many questions as there are, if that is what they say. */
static enum lmq_status
make_task(struct merging *merging, struct lmq_error *err)
{
    struct lmq_task *task = &merging->job.task;
    size_t n = 0, n_choices = 0, n_numbers = 0, n_wanted;

    for (size_t i = 0; i < merging->set.n; i++) {
        const json_t *from =
            json_object_get(merging->set.parts[i].json, "task");
        const json_t *questions = json_object_get(from, "questions");
        n += json_array_size(questions);
        n_choices += count_choices(questions);
        n_numbers += count_numbers(json_object_get(from, "nll"));
    }
    n_wanted = (merging->job.n_candidates + 1) * n_choices;
    if (n != task->n || n_choices != task->corpus.n_windows)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the parts have %zu questions with %zu choices, but "
                        "say that there are %zu with %zu",
                        n, n_choices, task->n, task->corpus.n_windows);
    if (n_numbers != n_wanted)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the parts have %zu numbers in task.nll, expected %zu",
                        n_numbers, n_wanted);
    task->questions = calloc(n + 1, sizeof(*task->questions));
    task->bytes = calloc(n_choices + 1, sizeof(*task->bytes));
    merging->nll = calloc(n_wanted + 1, sizeof(*merging->nll));
    return task->questions == NULL || task->bytes == NULL ||
                   merging->nll == NULL
               ? lmq_fail_nomem(err)
               : LMQ_OK;
}

static enum lmq_status
add_part(struct merging *merging, const struct lmq_run_part *part,
         struct lmq_error *err)
{
    const json_t *seconds = json_object_get(part->json, "seconds");

    merging->validate.part = (unsigned)part->number;
    merging->seconds += json_number_value(seconds);
    return lmq_part_add(&merging->job, part->json, merging->nll, err);
}

static enum lmq_status
add_all(struct merging *merging, struct lmq_error *err)
{
    const struct lmq_run_part *first = &merging->set.parts[0];
    enum lmq_status status =
        lmq_part_begin(&merging->job, first->json, err);

    if (status == LMQ_OK)
        status = make_task(merging, err);
    if (status != LMQ_OK)
        lmq_error_in(err, first->name);
    for (size_t i = 0; i < merging->set.n && status == LMQ_OK; i++) {
        struct lmq_run_part *part = &merging->set.parts[i];
        status = add_part(merging, part, err);
        if (status == LMQ_OK)
            status = lmq_part_check_whole(part, err);
        if (status != LMQ_OK)
            lmq_error_in(err, part->name);
        json_decref(part->json); /* it may be large */
        part->json = NULL;
    }
    if (status == LMQ_OK) {
        status = lmq_part_end(&merging->job, err);
        if (status != LMQ_OK)
            lmq_error_in(err, first->name);
    }
    return status;
}

/* ---- The report ---- */

static enum lmq_status
check_gates(const struct lmq_merge_options *options, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < options->n_gates && status == LMQ_OK; i++)
        status = lmq_validate_check_gate(options->gates[i], err);
    return status;
}

static enum lmq_status
report_on(struct merging *merging, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_job *job = &merging->job;
    enum lmq_status status = lmq_baseline_open(job, err);

    if (status == LMQ_OK)
        status = lmq_describe_candidates(job, merging->seconds, err);
    if (status == LMQ_OK && job->task.n > 0)
        lmq_score_task(job, merging->nll);
    return status == LMQ_OK ? lmq_assemble(job, report, err) : status;
}

/* The page may replace none of what it is made of. */
static enum lmq_status
check_page(const char *const *paths, size_t n,
           const struct lmq_merge_options *options, struct lmq_error *err)
{
    struct lmq_originals originals = {0};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = lmq_originals_add(&originals, paths[i], false, err);
    if (status == LMQ_OK && options->baseline != NULL)
        status = lmq_originals_add(&originals, options->baseline, false, err);
    if (status == LMQ_OK)
        status = lmq_output_check(options->page, options->replaces != 0,
                                  &originals, err);
    lmq_originals_free(&originals);
    return status;
}

/* From files, or from texts of theirs. */
static enum lmq_status
merge_any(const char *const *names, const char *const *texts, size_t n,
          const struct lmq_merge_options *given, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_merge_options options;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_merge_options, &options, given, err);

    if (report != NULL)
        *report = NULL;
    if (status == LMQ_OK)
        status = check_gates(&options, err);
    if (status != LMQ_OK || n == 0)
        return status;
    struct merging merging = {
        .validate = {.size = sizeof(merging.validate),
                     .n_parts = (unsigned)n,
                     .baseline = options.baseline,
                     .gates = options.gates,
                     .n_gates = options.n_gates}};
    merging.job.options = &merging.validate;
    if (options.page != NULL)
        status = check_page(names, texts == NULL ? n : 0, &options, err);
    if (status == LMQ_OK)
        status = lmq_part_set_open(&merging.set, &lmq_validation_parts, names,
                                   texts, n, err);
    if (status == LMQ_OK)
        status = add_all(&merging, err);
    if (status == LMQ_OK)
        status = report_on(&merging, report, err);
    lmq_part_set_close(&merging.set);
    lmq_job_tear_down(&merging.job);
    free(merging.nll);
    return status;
}

enum lmq_status
lmq_merge(const char *const *paths, size_t n,
          const struct lmq_merge_options *options, struct lmq_report **report,
          struct lmq_error *err)
{
    return merge_any(paths, NULL, n, options, report, err);
}

enum lmq_status
lmq_merge_texts(const char *const *names, const char *const *texts, size_t n,
                const struct lmq_merge_options *options,
                struct lmq_report **report, struct lmq_error *err)
{
    return merge_any(names, texts, n, options, report, err);
}
