/*
 * gather.c - one run in lock-step, and what its observers add up.
 */
#include "config.h"

#include <stdio.h>

#include "base/progress.h"
#include "validate/job.h"

/* What one lock-step gathers. */
struct gathering {
    struct lmq_job *job;
    struct lmq_drift *drifts;         /* per side; the first is unused */
    struct lmq_stream_drift *layers;  /* (n_layers + 1), from the embedding */
    const char *stage;
    size_t n_windows, n_tokens;       /* done */
};

/* ---- Observing ---- */

static void
observe_layer(void *context, int32_t layer,
              const struct lmq_stream_drift *drift)
{
    struct gathering *gathering = context;

    if (gathering->layers != NULL)
        lmq_stream_drift_add(&gathering->layers[layer + 1], drift);
}

static enum lmq_status
observe_position(void *context, size_t side, const struct lmq_window *window,
                 size_t token, const struct lmq_position_drift *drift,
                 struct lmq_error *err)
{
    struct gathering *gathering = context;
    const struct lmq_job *job = gathering->job;
    struct lmq_drift *total = &gathering->drifts[side];

    if (side == 1 && token + 1 == window->n) {
        gathering->n_windows++;
        gathering->n_tokens += window->n;
    }
    if (job->tokenizer != NULL)
        total->n_bytes += lmq_tokenizer_piece(
                              job->tokenizer,
                              job->corpus.tokens[window->first + token])
                              .n;
    return lmq_drift_add(total, window, token, job->protocol.context, drift,
                         err);
}

static enum lmq_status
observe_progress(void *context, double done, double total,
                 struct lmq_error *err)
{
    struct gathering *gathering = context;
    const struct lmq_drift *drift = &gathering->drifts[1];
    const struct lmq_corpus *corpus = &gathering->job->corpus;
    char stage[64];

    if (drift->n > 0)
        snprintf(stage, sizeof(stage), "%s: perplexity %.4f, %.4f",
                 gathering->stage,
                 lmq_drift_perplexity(drift->nll_reference, drift->n),
                 lmq_drift_perplexity(drift->nll, drift->n));
    else
        snprintf(stage, sizeof(stage), "%s", gathering->stage);
    return lmq_progress_report(
        gathering->job->progress, stage,
        (uint64_t)(done / total * (double)corpus->n_tokens), corpus->n_tokens,
        err);
}

enum lmq_status
lmq_job_gather(struct lmq_job *job, const struct lmq_side *sides,
               size_t n_sides, size_t n_windows, const char *stage,
               struct lmq_drift *drifts, struct lmq_stream_drift *layers,
               struct lmq_error *err)
{
    struct gathering gathering = {
        .job = job, .drifts = drifts, .layers = layers, .stage = stage};
    const struct lmq_observer observer = {&gathering, observe_layer,
                                          observe_position, observe_progress};
    const struct lmq_lockstep lockstep = {
        .reference = job->reference,
        .judged = job->judged,
        .sides = sides,
        .n_sides = n_sides,
        .corpus = &job->corpus,
        .n_windows = n_windows,
        .memory = job->memory,
        .threads = job->session.threads,
        .skips_checksums = job->options->skips_checksums != 0,
    };

    enum lmq_status status = lmq_lockstep_run(&lockstep, &observer, err);
    job->n_windows = gathering.n_windows;
    job->n_tokens = gathering.n_tokens;
    return status;
}

struct lmq_side
lmq_side_reference(void)
{
    return (struct lmq_side){.name = "reference",
                             .is_reference = true,
                             .activations = LMQ_ACTIVATIONS_F32,
                             .kv_type = LMQ_ROW_F32,
                             .restored_layer = -1};
}

struct lmq_side
lmq_side_judged(const struct lmq_job *job, const char *name)
{
    return (struct lmq_side){.name = name,
                             .activations = job->activations,
                             .kv_type = job->kv_type,
                             .restored_layer = -1};
}
