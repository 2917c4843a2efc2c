/*
 * gather.c - who is judged; one run of all in lock-step, and what its observers
 * add up.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/progress.h"
#include "validate/job.h"

/* What one lock-step gathers. */
struct gathering {
    struct lmq_job *job;
    size_t n_sides;
    struct lmq_drift *drifts;         /* per side; the first is unused */
    struct lmq_stream_sums *layers;   /* (n_sides, n_layers + 1), from the
                                         embedding; NULL: not wanted */
    const char *stage;
    size_t n_windows, n_tokens;       /* done */
    uint64_t total;                   /* tokens */
};

/* ---- Observing ---- */

static void
observe_layer(void *context, size_t side, int32_t layer,
              const struct lmq_stream_drift *drift)
{
    struct gathering *gathering = context;
    size_t n = gathering->job->models[0]->hparams.n_layers + (size_t)1;

    lmq_stream_sums_add(
        &gathering->layers[side * n + (size_t)(layer + 1)], drift);
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
    if (window->adds_blank && token == window->scored)
        total->n_bytes--;
    return lmq_drift_add(total, window, token, job->protocol.context, drift,
                         err);
}

static enum lmq_status
observe_progress(void *context, double done, double total,
                 struct lmq_error *err)
{
    struct gathering *gathering = context;
    const struct lmq_drift *drift = &gathering->drifts[1];
    char stage[64];
    int n = snprintf(stage, sizeof(stage), "%s", gathering->stage);

    if (drift->n > 0)
        n += snprintf(stage + n, sizeof(stage) - (size_t)n,
                      ": perplexity %.4f",
                      lmq_drift_perplexity(
                          lmq_drift_sum(drift, LMQ_SUM_NLL_REFERENCE),
                          drift->n));
    if (drift->n > 0 && gathering->n_sides == 2)
        snprintf(stage + n, sizeof(stage) - (size_t)n, ", %.4f",
                 lmq_drift_perplexity(lmq_drift_sum(drift, LMQ_SUM_NLL),
                                      drift->n));
    return lmq_progress_report(
        gathering->job->progress, stage,
        (uint64_t)(done / total * (double)gathering->total), gathering->total,
        err);
}

enum lmq_status
lmq_job_gather(struct lmq_job *job, const struct lmq_side *sides,
               size_t n_sides, size_t first, size_t n_windows,
               const char *stage,
               struct lmq_drift *drifts, struct lmq_stream_sums *layers,
               struct lmq_error *err)
{
    struct gathering gathering = {.job = job,
                                  .n_sides = n_sides,
                                  .drifts = drifts,
                                  .layers = layers,
                                  .stage = stage};
    const struct lmq_observer observer = {
        .owner = job->owner,
        .context = &gathering,
        .layer = layers == NULL ? NULL : observe_layer,
        .position = observe_position,
        .progress = observe_progress,
        /* Else nobody looks at them. */
        .wants_whole_windows = layers != NULL && job->options->n_parts == 0};
    const struct lmq_lockstep lockstep = {
        .models = job->models,
        .n_models = job->n_candidates + 1,
        .has_integers = job->owner != NULL,
        .sides = sides,
        .n_sides = n_sides,
        .corpus = &job->corpus,
        .first_window = first,
        .n_windows = n_windows,
        .memory = job->memory,
        .threads = job->session.threads,
        .skips_checksums = job->options->skips_checksums != 0,
    };

    for (size_t i = first; i < first + n_windows; i++)
        gathering.total += job->corpus.windows[i].n;
    /* A part of more parts than windows has nothing to do. */
    enum lmq_status status =
        n_windows == 0 ? LMQ_OK : lmq_lockstep_run(&lockstep, &observer, err);
    job->n_windows = gathering.n_windows;
    job->n_tokens = gathering.n_tokens;
    return status;
}

struct lmq_side
lmq_side_reference(void)
{
    return (struct lmq_side){.name = "reference",
                             .activations = LMQ_ACTIVATIONS_F32,
                             .kv_type = LMQ_KV_F32,
                             .restored_layer = -1};
}

struct lmq_side
lmq_side_judged(const struct lmq_job *job, size_t index, const char *name)
{
    return (struct lmq_side){.name = name,
                             .model = index + 1,
                             .activations = job->candidates[index].activations,
                             .kv_type = job->kv_type,
                             .restored_layer = -1};
}

/* ---- Who is judged ---- */

static enum lmq_status
name_emulation(struct lmq_job *job, struct lmq_judged *candidate,
               const char *name, struct lmq_error *err)
{
    int value = LMQ_EMULATE_NONE;
    enum lmq_status status = lmq_names_parse(lmq_emulation_names, "emulations",
                                             name, &value, err);

    candidate->file = job->reference_file;
    candidate->emulation = (enum lmq_emulation)value;
    snprintf(candidate->name, sizeof(candidate->name), "%.16s (emulated)",
             name);
    return status;
}

enum lmq_status
lmq_job_name_candidates(struct lmq_job *job,
                        struct lmq_checkpoint *const *files, size_t n_files,
                        struct lmq_error *err)
{
    const struct lmq_validate_options *options = job->options;
    const char *activations = job->session.activations;
    enum lmq_status status = LMQ_OK;

    if (n_files + options->n_emulations == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there is no model to judge");
    if (n_files == 0 && activations != NULL && strcmp(activations, "f32") != 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".activations %.40s goes with a model: what is "
                        "emulated rounds as the other program does, or, with "
                        "f32, not at all",
                        activations);
    job->n_candidates = n_files + options->n_emulations;
    job->candidates = calloc(job->n_candidates, sizeof(*job->candidates));
    if (job->candidates == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_files; i++)
        job->candidates[i].file = files[i];
    for (size_t i = 0; i < options->n_emulations && status == LMQ_OK; i++)
        status = name_emulation(job, &job->candidates[n_files + i],
                                options->emulations[i], err);
    return status;
}

const char *
lmq_judged_name(const struct lmq_judged *candidate)
{
    if (candidate->file == NULL)
        return lmq_report_string(
            (const struct lmq_report *)candidate->protocol, "model.path");
    return candidate->emulation == LMQ_EMULATE_NONE ? candidate->file->path
                                                    : candidate->name;
}

struct lmq_sizes
lmq_judged_sizes(const struct lmq_judged *candidate)
{
    const struct lmq_checkpoint *file = candidate->file;
    struct lmq_sizes sizes = {0};

    if (candidate->emulation == LMQ_EMULATE_NONE)
        return lmq_checkpoint_sizes(file);
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct lmq_tensor *tensor = &file->tensors[i];
        struct lmq_rounding rounding;
        bool is_again = tensor->alias_of != NULL ||
                        (lmq_tensor_is_head(tensor) &&
                         lmq_checkpoint_is_tied(file));
        if (is_again ||
            lmq_emulation_find(candidate->emulation, &file->hparams, tensor,
                               &rounding, NULL) != LMQ_OK)
            continue;
        sizes.parameters += tensor->n_elements;
        sizes.tensor_bytes +=
            rounding.block > 0
                ? tensor->n_elements / rounding.block * rounding.block_bytes
                : 4 * tensor->n_elements;
    }
    sizes.file_bytes = sizes.tensor_bytes;
    sizes.bits_per_weight =
        8 * (double)sizes.tensor_bytes / (double)sizes.parameters;
    return sizes;
}

const char *
lmq_judged_activations(const struct lmq_judged *candidate)
{
    if (!candidate->model->is_int8 ||
        candidate->activations == LMQ_ACTIVATIONS_F32)
        return "f32";
    if (candidate->emulation == LMQ_EMULATE_NONE)
        return lmq_names_of(lmq_activations_names, candidate->activations);
    return lmq_emulation_activations(candidate->emulation,
                                     &candidate->model->hparams);
}
