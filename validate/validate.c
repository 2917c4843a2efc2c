/*
 * validate.c - runs the reference and the candidates in lock-step, and writes
 * the report.
 */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/output.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "validate/parts/parts.h"

/* ---- The comparison ---- */

static enum lmq_status
describe_candidate(const struct lmq_job *job, struct lmq_judged *candidate,
                   const struct lmq_stream_sums *layers, double seconds,
                   struct lmq_error *err)
{
    const struct lmq_drift *drift = &candidate->drift;
    json_t **report = &candidate->report;

    *report = json_object();
    lmq_put(report, "verdict", json_null()); /* known in the end */
    lmq_put(report, "partial", json_boolean(job->is_partial));
    lmq_put(report, "tokens", lmq_json_size(job->n_tokens));
    lmq_put(report, "scored", lmq_json_size(drift->n));
    lmq_put(report, "ctx", lmq_json_size(job->protocol.context));
    enum lmq_status status =
        lmq_drift_describe(drift, job->vocabulary, report, err);
    lmq_put(report, "layers", lmq_describe_layers(job, layers));
    lmq_put(report, "tensors", json_incref(candidate->tensors));
    lmq_put(report, "worst", json_incref(candidate->worst));
    lmq_put(&candidate->protocol, "documents",
            lmq_json_size(lmq_drift_documents(drift)));
    lmq_put(&candidate->protocol, "windows", lmq_json_size(job->n_windows));
    lmq_put(report, "protocol", json_incref(candidate->protocol));
    json_t *notes = json_incref(candidate->notes);
    lmq_baseline_doubts(job, candidate, &notes);
    lmq_doubt_result(job, candidate, *report, &notes);
    lmq_put(report, "notes", notes);
    if (candidate->baseline != NULL)
        lmq_put(report, "baseline", lmq_describe_baseline(job, candidate));
    lmq_put(report, "seconds", lmq_json_number(seconds));
    lmq_put(report, "tokens_per_second",
            lmq_json_number((double)job->n_tokens / seconds));
    return status;
}

enum lmq_status
lmq_describe_candidates(struct lmq_job *job, double seconds,
                        struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = describe_candidate(
            job, &job->candidates[i],
            job->layers + (i + 1) * (job->n_layers + 1), seconds, err);
    return status;
}

static enum lmq_status
run(struct lmq_job *job, struct lmq_side *sides, struct lmq_drift *drifts,
    struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    struct lmq_part_range own = {0, job->corpus.n_windows};
    size_t n = job->n_candidates;

    if (o->n_parts > 0)
        own = lmq_part_of(job->corpus.n_windows, o->part, o->n_parts);

    sides[0] = lmq_side_reference();
    for (size_t i = 0; i < n; i++)
        sides[i + 1] = lmq_side_judged(job, i, "model");
    enum lmq_status status =
        lmq_job_gather(job, sides, n + 1, own.first, own.n, "validating",
                       drifts, job->layers, err);
    for (size_t i = 0; i < n; i++)
        job->candidates[i].drift = drifts[i + 1];
    /* What was done until an interruption counts; a part is whole or none. */
    if (status == LMQ_ERR_CANCELLED && drifts[1].n > 0 &&
        o->n_parts == 0) {
        job->is_partial = true;
        status = LMQ_OK;
    }
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        struct lmq_judged *candidate = &job->candidates[i];
        candidate->worst = lmq_describe_worst(job, &candidate->drift);
        if (candidate->worst == NULL)
            status = lmq_fail_nomem(err);
    }
    return status;
}

static enum lmq_status
compare(struct lmq_job *job, struct lmq_error *err)
{
    size_t n_sides = job->n_candidates + 1;
    struct lmq_side *sides = calloc(n_sides, sizeof(*sides));
    struct lmq_drift *drifts = calloc(n_sides, sizeof(*drifts));

    job->layers =
        calloc(n_sides * (job->n_layers + 1), sizeof(*job->layers));
    enum lmq_status status =
        sides == NULL || drifts == NULL || job->layers == NULL
            ? lmq_fail_nomem(err)
            : run(job, sides, drifts, err);
    free(sides);
    free(drifts);
    return status;
}

/* ---- What is asked for besides ---- */

static enum lmq_status
explain(struct lmq_job *job, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    if (job->options->task != NULL)
        status = lmq_answer_task(job, err);
    if (status == LMQ_OK && job->options->has_floor)
        status = lmq_measure_floor(job, err);
    if (status == LMQ_OK && job->options->has_attribution)
        for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
            status = lmq_attribute(job, i, err);
    if (status != LMQ_ERR_CANCELLED)
        return status;
    /* The comparison stands, whatever was interrupted after it. */
    job->is_partial = true;
    for (size_t i = 0; i < job->n_candidates; i++)
        lmq_put(&job->candidates[i].report, "partial", json_true());
    return LMQ_OK;
}

/* ---- The report ---- */

static enum lmq_status
check_unchanged(const struct lmq_job *job, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_originals_unchanged(&job->reference_file->originals, err);

    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = lmq_originals_unchanged(&job->candidates[i].file->originals,
                                         err);
    return status;
}

static void
copy_key(json_t **to, const json_t *from, const char *key)
{
    lmq_put(to, key, json_incref(json_object_get(from, key)));
}

/* One candidate's report is the report; those of several are its parts. */
static enum lmq_status
join_reports(const struct lmq_job *job, json_t **report, struct lmq_error *err)
{
    const json_t *first = job->candidates[0].report;
    json_t *models = json_array(), *differences = NULL;

    if (job->n_candidates == 1) {
        json_decref(models);
        *report = json_incref(job->candidates[0].report);
        return LMQ_OK;
    }
    *report = json_object();
    lmq_put(report, "verdict", lmq_describe_verdict(job));
    copy_key(report, first, "partial");
    copy_key(report, first, "tokens");
    copy_key(report, first, "scored");
    copy_key(report, first, "ctx");
    lmq_put(report, "notes", lmq_collect_notes(job));
    for (size_t i = 0; i < job->n_candidates; i++)
        lmq_append(&models, json_incref(job->candidates[i].report));
    lmq_put(report, "models", models);
    lmq_put(report, "ranking", lmq_describe_ranking(job));
    lmq_put(report, "front", lmq_describe_front(job));
    enum lmq_status status = lmq_compare_candidates(job, &differences, err);
    lmq_put(report, "differences", differences);
    copy_key(report, first, "seconds");
    copy_key(report, first, "tokens_per_second");
    return status;
}

/* All that was built is there? What is missing was short of memory. */
static enum lmq_status
check_reports(const struct lmq_job *job, struct lmq_error *err)
{
    for (size_t i = 0; i < job->n_candidates; i++)
        if (job->candidates[i].report == NULL)
            return lmq_fail_nomem(err);
    return LMQ_OK;
}

enum lmq_status
lmq_assemble(struct lmq_job *job, struct lmq_report **report,
             struct lmq_error *err)
{
    json_t *json = NULL;
    enum lmq_status status = check_reports(job, err);

    if (status == LMQ_OK)
        status = lmq_apply_gates(job, err);
    if (status == LMQ_OK)
        status = check_reports(job, err);
    if (status == LMQ_OK)
        status = join_reports(job, &json, err);
    if (status == LMQ_OK)
        return lmq_report_finish(json, report, err);
    json_decref(json);
    return status;
}

/* The report on all of the text. */
static enum lmq_status
report_on(struct lmq_job *job, struct lmq_report **report,
          struct lmq_error *err)
{
    enum lmq_status status = lmq_describe_candidates(
        job, lmq_clock_seconds() - job->started, err);

    if (status == LMQ_OK && !job->is_partial)
        status = explain(job, err);
    if (status == LMQ_OK)
        status = check_unchanged(job, err);
    return status == LMQ_OK ? lmq_assemble(job, report, err) : status;
}

/* What merging needs of one part of it. */
static enum lmq_status
write_part(struct lmq_job *job, struct lmq_report **report,
           struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    const struct lmq_part_range own =
        lmq_part_of(job->task.n, o->part, o->n_parts);
    size_t n = (job->n_candidates + 1) * job->task.corpus.n_windows;
    double seconds = lmq_clock_seconds() - job->started;
    double *nll = calloc(n + 1, sizeof(*nll));
    json_t *json = NULL;
    enum lmq_status status =
        nll == NULL ? lmq_fail_nomem(err)
                    : lmq_ask_task(job, own.first, own.n, nll, err);

    if (status == LMQ_OK)
        status = lmq_part_describe(job, nll, seconds, &json, err);
    if (status == LMQ_OK)
        status = check_unchanged(job, err);
    free(nll);
    if (status == LMQ_OK)
        return lmq_report_finish(json, report, err);
    json_decref(json);
    return status;
}

static enum lmq_status
validate(struct lmq_job *job, struct lmq_report **report,
         struct lmq_error *err)
{
    bool is_part = job->options->n_parts > 0;
    enum lmq_status status = LMQ_OK;

    if (job->options->page != NULL)
        status = lmq_job_check_page(job, err);
    if (status == LMQ_OK)
        status = lmq_job_set_up(job, err);
    if (status == LMQ_OK)
        status = compare(job, err);
    if (status != LMQ_OK)
        return status;
    return is_part ? write_part(job, report, err)
                   : report_on(job, report, err);
}

enum lmq_status
lmq_validate_several(struct lmq_checkpoint *reference,
                     struct lmq_checkpoint *const *judged, size_t n_judged,
                     const struct lmq_validate_options *given,
                     const struct lmq_progress *progress,
                     struct lmq_report **report, int *is_partial,
                     struct lmq_error *err)
{
    struct lmq_validate_options own;
    struct lmq_job job = {.options = &own,
                          .progress = progress,
                          .reference_file = reference,
                          .started = lmq_clock_seconds()};

    if (report != NULL)
        *report = NULL;
    if (is_partial != NULL)
        *is_partial = 0;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_validate_options, &own, given, err);
    if (status == LMQ_OK)
        status = LMQ_OPTIONS_TAKE(struct lmq_session_options, &job.session,
                                  own.session, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_job_name_candidates(&job, judged, n_judged, err);
    if (status == LMQ_OK)
        status = validate(&job, report, err);
    if (status == LMQ_OK && is_partial != NULL)
        *is_partial = job.is_partial;
    lmq_job_tear_down(&job);
    return status;
}

enum lmq_status
lmq_validate(struct lmq_checkpoint *reference, struct lmq_checkpoint *judged,
             const struct lmq_validate_options *options,
             const struct lmq_progress *progress, struct lmq_report **report,
             int *is_partial, struct lmq_error *err)
{
    return lmq_validate_several(reference, &judged, 1, options, progress,
                                report, is_partial, err);
}
