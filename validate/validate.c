/*
 * validate.c - opens both models, runs them in lock-step, and writes the
 * report.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "validate/diff_tokenizers.h"
#include "validate/job.h"
#include "validate/metrics.h"

#define DEFAULT_CONTEXT 512

/* ---- Options ---- */

/* Everything that can be wrong is found before the work. */
static enum lmq_status
parse_options(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    size_t context =
        job->session.context != 0
            ? job->session.context
            : lmq_size_min(DEFAULT_CONTEXT,
                           job->reference_file->hparams.context);
    bool is_second_half =
        o->score != NULL && strcmp(o->score, "second-half") == 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < o->n_gates && status == LMQ_OK; i++)
        status = lmq_metrics_check_gate(o->gates[i], err);
    if (status == LMQ_OK)
        status = lmq_kv_parse(job->session.kv, &job->kv_type, err);
    if (status != LMQ_OK)
        return status;
    if (job->session.batch != 0 || job->session.all_logits != 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a validation computes whole windows: .batch and "
                        ".all_logits have no meaning for it");
    if (o->score != NULL && !is_second_half && strcmp(o->score, "all") != 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "the score is '%s', expected all or second-half",
                        o->score);
    job->protocol = (struct lmq_protocol){
        .context = context,
        .stride = o->stride != 0 ? o->stride : context,
        .is_second_half = is_second_half,
        .splits_documents = o->splits_documents != 0,
        .max_tokens = o->max_tokens,
    };
    if (context < 2 || context > LMQ_MAX_CONTEXT ||
        job->protocol.stride > context)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a window of %zu tokens with a stride of %zu makes no "
                        "sense: expected 2 or more, and a stride up to that",
                        context, job->protocol.stride);
    if (is_second_half && job->protocol.stride != context)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".score second-half goes without .stride");
    return LMQ_OK;
}

static size_t
default_memory(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    unsigned long available = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "MemAvailable: %lu kB", &available) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return available > 0 ? (size_t)available * 512
                         : (size_t)(pages / 2) * (size_t)size;
}

/* What a gate needs must be measured, and be there. */
static enum lmq_status
check_gates(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;

    for (size_t i = 0; i < o->n_gates; i++) {
        const char *gate = o->gates[i] + strspn(o->gates[i], " \t");
        unsigned long layer;
        if (strncmp(gate, "floor.", 6) == 0 && !o->has_floor)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' goes with .has_floor", gate);
        if (strncmp(gate, "attribution.", 12) == 0 && !o->has_attribution)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' goes with .has_attribution", gate);
        if (sscanf(gate, "layers.%lu.", &layer) == 1 &&
            layer > job->reference->hparams.n_layers)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' names a layer that is not there: "
                            "layers.0 is the embedding, layers.%u the last",
                            gate, job->reference->hparams.n_layers);
    }
    return LMQ_OK;
}

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

/* ---- Setting up ---- */

static enum lmq_status
check_alike(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_hparams *a = &job->reference->hparams;
    const struct lmq_hparams *b = &job->judged->hparams;
    const char *key = lmq_hparams_difference(a, b);

    if (key == NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is another kind of model than the reference: they differ in %s "
             "(%u layers of %u, vocabulary %u; the reference: %u of %u, %u)",
             key, b->n_layers, b->dim, b->vocab_size, a->n_layers, a->dim,
             a->vocab_size);
    lmq_error_in(err, job->judged_file->path);
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
fail_tokenizers(const struct lmq_job *job, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "its tokenizer differs from the reference's");
    lmq_hint(err, "the same text would be other tokens; .tokenizer FILE "
                  "gives both the same");
    lmq_error_in(err, job->judged_file->path);
    return LMQ_ERR_FORMAT;
}

/* The tokenizer of either side. If both have one that is not the same, they
 * have to agree about the text (make_corpus). */
static enum lmq_status
open_tokenizer(struct lmq_job *job, struct lmq_error *err)
{
    bool has_first = job->reference_file->n_blobs > 0;
    bool has_second = job->judged_file->n_blobs > 0;
    enum lmq_status status;

    if (!has_first && !has_second && job->options->tokens != NULL)
        return LMQ_OK;
    status = lmq_tokenizer_from_checkpoint(
        has_first || !has_second ? job->reference_file : job->judged_file,
        &job->tokenizer, err);
    if (status != LMQ_OK || !has_first || !has_second ||
        lmq_have_same_tokenizer_files(job->reference_file, job->judged_file))
        return status;
    return lmq_tokenizer_from_checkpoint(job->judged_file, &job->other, err);
}

/* One vocabulary can be written down in ways that differ where no text comes,
 * and be used in ways that differ where one does; what counts is that this text is the same tokens for both. */
static enum lmq_status
compare_tokenizers(const struct lmq_job *job, const struct lmq_texts *texts,
                   struct lmq_error *err)
{
    const struct lmq_corpus *a = &job->corpus;
    struct lmq_corpus b = {0};
    enum lmq_status status = lmq_corpus_from_texts(job->other, texts,
                                                   &job->protocol, &b, err);

    if (status == LMQ_OK &&
        (a->n_tokens != b.n_tokens || a->n_windows != b.n_windows ||
         memcmp(a->tokens, b.tokens, a->n_tokens * sizeof(*a->tokens)) != 0))
        status = fail_tokenizers(job, err);
    lmq_corpus_free(&b);
    return status;
}

static enum lmq_status
make_corpus(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    size_t vocabulary = job->reference->hparams.vocab_size;
    int32_t bos = -1;

    /* Without a text the ids must stand for the same in both. */
    if (o->tokens != NULL && job->other != NULL &&
        lmq_tokenizer_digest(job->other) !=
            lmq_tokenizer_digest(job->tokenizer))
        return fail_tokenizers(job, err);
    if (o->tokens != NULL) {
        if (job->tokenizer == NULL)
            bos = job->reference->hparams.bos;
        else if (lmq_tokenizer_default_flags(job->tokenizer) & LMQ_ENCODE_BOS)
            bos = lmq_tokenizer_bos(job->tokenizer);
        if (bos >= (int32_t)vocabulary)
            bos = -1;
        return lmq_corpus_from_ids(o->tokens, vocabulary, bos, &job->protocol,
                                   &job->corpus, err);
    }
    if (o->n_texts == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there is no text");
    struct lmq_texts texts;
    enum lmq_status status =
        lmq_texts_read(o->texts, o->n_texts, &texts, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_corpus_from_texts(job->tokenizer, &texts, &job->protocol,
                                   &job->corpus, err);
    if (status == LMQ_OK && job->other != NULL)
        status = compare_tokenizers(job, &texts, err);
    lmq_texts_free(&texts);
    return status;
}

static enum lmq_status
check_memory(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_lockstep lockstep = {
        .reference = job->reference,
        .judged = job->judged,
        /* An attribution has the most sides. */
        .n_sides =
            job->options->has_attribution ? lmq_attribute_sides(job) : 2,
        .corpus = &job->corpus,
        .n_windows = job->corpus.n_windows,
        .memory = job->memory,
        .threads = job->session.threads,
    };

    return lmq_lockstep_batch(&lockstep, err) == 0 ? LMQ_ERR_NOMEM : LMQ_OK;
}

static enum lmq_status
set_up(struct lmq_job *job, struct lmq_error *err)
{
    enum lmq_status status = parse_options(job, err);

    if (status == LMQ_OK)
        status = lmq_model_open_lazily(job->reference_file, &job->reference,
                                       err);
    if (status == LMQ_OK)
        status = lmq_model_open_lazily(job->judged_file, &job->judged, err);
    if (status == LMQ_OK)
        status = lmq_activations_parse(job->judged, job->session.activations,
                                       &job->activations, err);
    if (status == LMQ_OK)
        status = check_alike(job, err);
    if (status == LMQ_OK)
        status = check_gates(job, err);
    if (status == LMQ_OK)
        status = open_tokenizer(job, err);
    if (status == LMQ_OK)
        status = make_corpus(job, err);
    job->memory = job->options->memory != 0 ? (size_t)job->options->memory
                                            : default_memory();
    return status == LMQ_OK ? check_memory(job, err) : status;
}

static void
tear_down(struct lmq_job *job)
{
    lmq_corpus_free(&job->corpus);
    lmq_tokenizer_close(job->tokenizer);
    lmq_tokenizer_close(job->other);
    lmq_model_close(job->judged);
    lmq_model_close(job->reference);
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

/* Better now than after the work. */
static enum lmq_status
check_page(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *options = job->options;
    struct lmq_originals originals = {0};
    enum lmq_status status = lmq_originals_add_all(
        &originals, &job->reference_file->originals, err);

    if (status == LMQ_OK)
        status = lmq_originals_add_all(&originals,
                                       &job->judged_file->originals, err);
    for (size_t i = 0; i < options->n_texts && status == LMQ_OK; i++)
        status = lmq_originals_add(&originals, options->texts[i], false, err);
    if (status == LMQ_OK && options->tokens != NULL)
        status = lmq_originals_add(&originals, options->tokens, false, err);
    if (status == LMQ_OK)
        status = lmq_output_check(options->page, options->replaces != 0,
                                  &originals, err);
    lmq_originals_free(&originals);
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
        status = check_page(&job, err);
    if (status == LMQ_OK)
        status = set_up(&job, err);
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
    tear_down(&job);
    return status;
}
