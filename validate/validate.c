/*
 * validate.c - runs both models in lock-step, and writes the report.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "validate/job.h"

/* ---- Remarks ---- */

static bool
is_quantized(const struct lmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].encoding != NULL ||
            checkpoint->tensors[i].blocks != NULL)
            return true;
    return false;
}

/* What may be a mistake, though it can be measured. */
static json_t *
describe_doubts(const struct lmq_job *job)
{
    json_t *notes = json_array();
    char text[1024];

    if (is_quantized(job->reference_file) && !is_quantized(job->judged_file))
        snprintf(text, sizeof(text),
                 "the reference %.400s is quantized and the judged %.400s is "
                 "not: the reference comes first",
                 job->reference_file->path, job->judged_file->path);
    else if (strcmp(job->reference_file->path, job->judged_file->path) == 0 &&
             !is_quantized(job->judged_file))
        snprintf(text, sizeof(text),
                 "%.400s is judged against itself, in float32 both times",
                 job->judged_file->path);
    else
        return notes;
    json_array_append_new(notes, lmq_json_text(text));
    return notes;
}

/* ---- All of it ---- */

static enum lmq_status
compare(struct lmq_job *job, json_t **report, struct lmq_error *err)
{
    const struct lmq_side sides[] = {lmq_side_reference(),
                                     lmq_side_judged(job, "model")};
    size_t n_layers = job->reference->hparams.n_layers;
    struct lmq_drift drifts[2] = {0};

    struct lmq_stream_drift *layers = calloc(n_layers + 1, sizeof(*layers));
    if (layers == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_job_gather(job, sides, 2, job->corpus.n_windows, "validating",
                       drifts, layers, err);
    /* What was done until an interruption counts. */
    if (status == LMQ_ERR_CANCELLED && drifts[1].n > 0) {
        job->is_partial = true;
        status = LMQ_OK;
    }
    if (status == LMQ_OK) {
        double seconds = lmq_clock_seconds() - job->started;
        lmq_put(report, "partial", json_boolean(job->is_partial));
        lmq_put(report, "tokens", lmq_json_size(job->n_tokens));
        lmq_put(report, "scored", lmq_json_size(drifts[1].n));
        lmq_put(report, "ctx", lmq_json_size(job->protocol.context));
        status = lmq_drift_describe(&drifts[1],
                                    job->reference->hparams.vocab_size,
                                    report, err);
        lmq_put(report, "layers", lmq_describe_layers(job, layers));
        lmq_put(report, "tensors", lmq_describe_tensors(job));
        lmq_put(report, "worst", lmq_describe_worst(job, &drifts[1]));
        lmq_put(report, "protocol", lmq_describe_protocol(job));
        lmq_put(report, "notes", describe_doubts(job));
        lmq_put(report, "seconds", lmq_json_number(seconds));
        lmq_put(report, "tokens_per_second",
                lmq_json_number((double)job->n_tokens / seconds));
    }
    lmq_drift_free(&drifts[1]);
    free(layers);
    return status;
}

enum lmq_status
lmq_validate(struct lmq_checkpoint *reference, struct lmq_checkpoint *judged,
             const struct lmq_validate_options *given,
             const struct lmq_progress *progress, struct lmq_report **report,
             int *is_partial, struct lmq_error *err)
{
    struct lmq_validate_options own;
    const struct lmq_validate_options *options = &own;
    struct lmq_job job = {.options = options,
                      .progress = progress,
                      .reference_file = reference,
                      .judged_file = judged,
                      .started = lmq_clock_seconds()};
    size_t n_broken;

    if (report != NULL)
        *report = NULL;
    if (is_partial != NULL)
        *is_partial = 0;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_validate_options, &own, given, err);
    if (status == LMQ_OK)
        status = LMQ_OPTIONS_TAKE(struct lmq_session_options, &job.session,
                                  options->session, err);
    if (status != LMQ_OK)
        return status;
    json_t *json = json_object();
    if (options->page != NULL)
        status = lmq_job_check_page(&job, err);
    if (status == LMQ_OK)
        status = lmq_job_set_up(&job, err);
    if (status == LMQ_OK)
        status = compare(&job, &json, err);
    if (status == LMQ_OK && options->has_floor && !job.is_partial)
        status = lmq_measure_floor(&job, &json, err);
    if (status == LMQ_OK && options->has_attribution && !job.is_partial)
        status = lmq_attribute(&job, &json, err);
    /* The comparison stands, whatever was interrupted after it. */
    if (status == LMQ_ERR_CANCELLED && json_object_get(json, "kld") != NULL) {
        job.is_partial = true;
        lmq_put(&json, "partial", json_true());
        status = LMQ_OK;
    }
    if (status == LMQ_OK && json == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&reference->originals, err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&judged->originals, err);
    if (status == LMQ_OK)
        status = lmq_gates_apply(lmq_report_from(json), options->gates,
                                 job.is_partial ? 0 : options->n_gates,
                                 &n_broken, err);
    if (status == LMQ_OK) {
        status = lmq_report_finish(json, report, err);
        if (is_partial != NULL)
            *is_partial = job.is_partial;
    } else {
        json_decref(json);
    }
    lmq_job_tear_down(&job);
    return status;
}
