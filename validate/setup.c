/*
 * setup.c - from options and checkpoints to models, a corpus and a memory
 * bound; everything that can be wrong is found before the work.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/size.h"
#include "base/threads/threads.h"
#include "formats/model/hparams_compare.h"
#include "runtime/session.h"
#include "validate/diff/diff_tokenizers.h"
#include "validate/gates.h"
#include "validate/job.h"
#include "validate/parts/parts.h"
#include "validate/plan/tensor_shares.h"

#define DEFAULT_CONTEXT 512

/* ---- Options ---- */

/* Whether what the gate looks at is measured. */
static enum lmq_status
check_measured(const struct lmq_job *job, const char *gate,
               struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    const struct {
        const char *prefix;
        bool is_measured;
        const char *option;
    } needs[] = {
        {"", o->baseline != NULL || !lmq_gate_has_baseline(gate),
         ".baseline"},
        {"task.", o->task != NULL, ".task"},
        {"floor.", o->has_floor != 0, ".has_floor"},
        {"attribution.tensors.", lmq_wants_tensors(job),
         ".attribution=tensor"},
        {"attribution.cure.", lmq_wants_tensors(job), ".attribution=tensor"},
        {"attribution.", o->has_attribution != 0, ".has_attribution"},
    };

    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
        if (strncmp(gate, needs[i].prefix, strlen(needs[i].prefix)) == 0 &&
            !needs[i].is_measured)
            return lmq_fail(err, LMQ_ERR_ARG, 0, "the gate '%s' goes with %s",
                            gate, needs[i].option);
    if (strncmp(gate, "task.", 5) == 0 && lmq_gate_has_baseline(gate))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "the gate '%s' cannot look at a baseline: its "
                        "questions may have been others",
                        gate);
    return LMQ_OK;
}

enum lmq_status
lmq_job_check_texts(const struct lmq_validate_options *o,
                    struct lmq_error *err)
{
    if (o->tokens != NULL && o->n_texts > 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".tokens is in place of .texts");
    if (o->tokens != NULL && o->splits_documents != 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".splits_documents is for texts: .tokens has no "
                        "paragraphs");
    return LMQ_OK;
}

/* What can be wrong whatever the models are; without a reference too. */
static enum lmq_status
parse_options(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    int is_second_half = false, of_tensors = false, ignored = 0;
    enum lmq_status status = o->n_parts > 0 || o->part > 0
                                 ? lmq_part_check_options(o, err)
                                 : LMQ_OK;

    if (status == LMQ_OK)
        status = lmq_names_parse(lmq_score_names, "score", o->score,
                                 &is_second_half, err);
    if (status == LMQ_OK)
        status = lmq_names_parse(lmq_attribution_names, "attribution",
                                 o->attribution, &of_tensors, err);
    if (status == LMQ_OK && of_tensors && !o->has_attribution)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".attribution goes with .has_attribution");
    for (size_t i = 0; i < o->n_gates && status == LMQ_OK; i++) {
        status = lmq_validate_check_gate(o->gates[i], err);
        if (status == LMQ_OK)
            status = check_measured(
                job, o->gates[i] + strspn(o->gates[i], " \t"), err);
    }
    if (status == LMQ_OK)
        status = lmq_names_parse(lmq_activations_names, "activations",
                                 job->session.activations, &ignored, err);
    for (size_t i = 0; i < o->n_emulations && status == LMQ_OK; i++)
        status = lmq_names_parse(lmq_emulation_names, "emulations",
                                 o->emulations[i], &ignored, err);
    if (status == LMQ_OK)
        status = lmq_kv_parse(job->session.kv, &job->kv_type, err);
    if (status == LMQ_OK)
        status = lmq_threads_check(job->session.threads, err);
    if (status != LMQ_OK)
        return status;
    if (job->session.batch != 0 || job->session.all_logits != 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a validation computes whole windows: .batch and "
                        ".all_logits have no meaning for it");
    status = lmq_job_check_texts(o, err);
    if (status != LMQ_OK)
        return status;
    job->protocol = (struct lmq_protocol){
        .is_second_half = is_second_half != 0,
        .splits_documents = o->splits_documents != 0,
        .max_tokens = o->max_tokens,
    };
    return LMQ_OK;
}

static enum lmq_status
choose_window(struct lmq_job *job, struct lmq_error *err)
{
    size_t most = job->reference_file == NULL /* 0: not known */
                      ? 0
                      : job->reference_file->hparams.context;
    size_t context = job->session.context != 0 ? job->session.context
                     : most == 0 || most > DEFAULT_CONTEXT ? DEFAULT_CONTEXT
                                                           : most;
    size_t stride =
        job->options->stride != 0 ? job->options->stride : context;

    if (context < 2 || context > LMQ_MAX_CONTEXT || stride > context) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 "a window of %zu tokens with a stride of %zu makes no "
                 "sense: expected 2 or more, and a stride up to that",
                 context, stride);
        if (job->session.context == 0)
            lmq_hint(err, ".context sets the window");
        return LMQ_ERR_ARG;
    }
    if (job->protocol.is_second_half && stride != context)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".score second-half goes without .stride");
    job->protocol.context = context;
    job->protocol.stride = stride;
    return LMQ_OK;
}

enum lmq_status
lmq_validate_check(const struct lmq_validate_options *given,
                   struct lmq_error *err)
{
    struct lmq_validate_options own;
    struct lmq_job job = {.options = &own};
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_validate_options, &own, given, err);

    if (status == LMQ_OK)
        status = LMQ_OPTIONS_TAKE(struct lmq_session_options, &job.session,
                                  own.session, err);
    if (status == LMQ_OK)
        status = parse_options(&job, err);
    /* The usual window is the model's. */
    return status == LMQ_OK && job.session.context != 0
               ? choose_window(&job, err)
               : status;
}

/* A file that says nothing of its tensors' errors has none in the report. */
static enum lmq_status
check_tensor(const struct lmq_job *job, const char *gate, size_t index,
             struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++) {
        const json_t *tensors = job->candidates[i].tensors;
        if (index >= json_array_size(tensors))
            status = lmq_fail(err, LMQ_ERR_ARG, 0,
                              "the gate '%s' names a tensor that is not "
                              "there: %.200s tells the errors of %zu",
                              gate, lmq_judged_name(&job->candidates[i]),
                              json_array_size(tensors));
    }
    return status;
}

/* What a gate names must be there. */
static enum lmq_status
check_gates(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    for (size_t i = 0; i < o->n_gates; i++) {
        const char *gate = o->gates[i] + strspn(o->gates[i], " \t");
        unsigned long layer, tensor;
        if (sscanf(gate, "layers.%lu.", &layer) == 1 &&
            layer > job->n_layers)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' names a layer that is not there: "
                            "layers.0 is the embedding, layers.%zu the last",
                            gate, job->n_layers);
        if (sscanf(gate, "attribution.layers.%lu.", &layer) == 1 &&
            layer >= job->n_layers)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' names what is not there: the last "
                            "is attribution.layers.%zu",
                            gate, job->n_layers - 1);
        if (sscanf(gate, "tensors.%lu.", &tensor) == 1) {
            enum lmq_status status = check_tensor(job, gate, tensor, err);
            if (status != LMQ_OK)
                return status;
        }
    }
    return LMQ_OK;
}

enum lmq_status
lmq_job_check_page(const struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *options = job->options;
    struct lmq_originals originals = {0};
    enum lmq_status status = lmq_originals_add_all(
        &originals, &job->reference_file->originals, err);

    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = lmq_originals_add_all(
            &originals, &job->candidates[i].file->originals, err);
    for (size_t i = 0; i < options->n_texts && status == LMQ_OK; i++)
        status = lmq_originals_add_text(&originals, options->texts[i], false,
                                        err);
    if (status == LMQ_OK && options->tokens != NULL)
        status = lmq_originals_add(&originals, options->tokens, false, err);
    if (status == LMQ_OK && options->task != NULL)
        status = lmq_originals_add(&originals, options->task, false, err);
    if (status == LMQ_OK && options->baseline != NULL)
        status = lmq_originals_add(&originals, options->baseline, false, err);
    if (status == LMQ_OK)
        status = lmq_output_check(options->page, options->replaces != 0,
                                  &originals, err);
    lmq_originals_free(&originals);
    return status;
}

/* ---- Models ---- */

static enum lmq_status
check_alike(const struct lmq_job *job, const struct lmq_judged *candidate,
            struct lmq_error *err)
{
    const struct lmq_hparams *a = &job->models[0]->hparams;
    const struct lmq_hparams *b = &candidate->model->hparams;
    const char *key = lmq_hparams_difference(a, b);

    if (key == NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is another kind of model than the reference: they differ in %s "
             "(%u layers of %u, vocabulary %u; the reference: %u of %u, %u)",
             key, b->n_layers, b->dim, b->vocab_size, a->n_layers, a->dim,
             a->vocab_size);
    lmq_error_in(err, candidate->file->path);
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
open_candidate(struct lmq_job *job, size_t index, struct lmq_error *err)
{
    struct lmq_judged *candidate = &job->candidates[index];
    enum lmq_status status =
        candidate->emulation == LMQ_EMULATE_NONE
            ? lmq_model_open_lazily(candidate->file, &candidate->model, err)
            : lmq_model_open_emulated(candidate->file, candidate->emulation,
                                      &candidate->model, err);

    if (status != LMQ_OK)
        return status;
    job->models[index + 1] = candidate->model;
    status = lmq_activations_parse(candidate->model, job->session.activations,
                                   &candidate->activations, err);
    return status == LMQ_OK ? check_alike(job, candidate, err) : status;
}

static enum lmq_status
open_models(struct lmq_job *job, struct lmq_error *err)
{
    job->models = calloc(job->n_candidates + 1, sizeof(*job->models));
    if (job->models == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_model_open_lazily(job->reference_file, &job->models[0], err);
    if (status == LMQ_OK) {
        job->n_layers = job->models[0]->hparams.n_layers;
        job->vocabulary = job->models[0]->hparams.vocab_size;
    }
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = open_candidate(job, i, err);
    return status;
}

/* ---- The text ---- */

static enum lmq_status
fail_tokenizers(const struct lmq_judged *candidate, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "its tokenizer differs from the reference's");
    lmq_hint(err, "the same text would be other tokens, the same tokens "
                  "another text; .tokenizer FILE gives both the same");
    lmq_error_in(err, candidate->file->path);
    return LMQ_ERR_FORMAT;
}

/* The reference's tokenizer, or that of the first who has one. Others that are
 * not the same have to agree about the text (make_corpus). */
static enum lmq_status
open_tokenizers(struct lmq_job *job, struct lmq_error *err)
{
    struct lmq_checkpoint *first = job->reference_file;

    for (size_t i = 0; i < job->n_candidates && first->n_blobs == 0; i++)
        first = job->candidates[i].file;
    if (first->n_blobs == 0 && job->options->tokens != NULL)
        return LMQ_OK;
    if (first->n_blobs == 0)
        first = job->reference_file;
    enum lmq_status status =
        lmq_tokenizer_from_checkpoint(first, &job->tokenizer, err);
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++) {
        struct lmq_judged *candidate = &job->candidates[i];
        if (candidate->file->n_blobs > 0 &&
            !lmq_have_same_tokenizer_files(first, candidate->file))
            status = lmq_tokenizer_from_checkpoint(
                candidate->file, &candidate->tokenizer, err);
    }
    return status;
}

/* One vocabulary can be written down in ways that differ where no text comes,
 * and be used in ways that differ where one does; what counts is that this
 * text is the same tokens for both. */
static enum lmq_status
compare_tokenizers(const struct lmq_job *job,
                   const struct lmq_judged *candidate,
                   const struct lmq_texts *texts, struct lmq_error *err)
{
    const struct lmq_corpus *a = &job->corpus;
    struct lmq_corpus b = {0};

    if (candidate->tokenizer == NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_corpus_from_texts(
        candidate->tokenizer, texts, &job->protocol, &b, err);
    if (status == LMQ_OK &&
        (a->n_tokens != b.n_tokens || a->n_windows != b.n_windows ||
         memcmp(a->tokens, b.tokens, a->n_tokens * sizeof(*a->tokens)) != 0))
        status = fail_tokenizers(candidate, err);
    lmq_corpus_free(&b);
    return status;
}

static enum lmq_status
read_texts(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    struct lmq_texts texts;

    if (o->n_texts == 0) {
        lmq_fail(err, LMQ_ERR_ARG, 0, "there is no text");
        lmq_hint(err, ".texts FILE names one");
        return LMQ_ERR_ARG;
    }
    enum lmq_status status =
        lmq_texts_read(o->texts, o->n_texts, job->progress, &texts, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_corpus_from_texts(job->tokenizer, &texts, &job->protocol,
                                   &job->corpus, err);
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = compare_tokenizers(job, &job->candidates[i], &texts, err);
    lmq_texts_free(&texts);
    return status;
}

/* Without a text the ids must stand for the same in all. */
static enum lmq_status
read_ids(struct lmq_job *job, struct lmq_error *err)
{
    const struct lmq_hparams *h = &job->models[0]->hparams;
    int32_t bos = -1, id;

    for (size_t i = 0; i < job->n_candidates; i++)
        if (job->candidates[i].tokenizer != NULL &&
            !lmq_tokenizer_same_ids(job->candidates[i].tokenizer,
                                    job->tokenizer, &id))
            return fail_tokenizers(&job->candidates[i], err);
    if (job->tokenizer == NULL)
        bos = h->bos;
    else if (lmq_tokenizer_default_flags(job->tokenizer) & LMQ_ENCODE_BOS)
        bos = lmq_tokenizer_bos(job->tokenizer);
    if (bos >= (int32_t)h->vocab_size)
        bos = -1;
    return lmq_corpus_from_ids(job->options->tokens, h->vocab_size, bos,
                               &job->protocol, &job->corpus, err);
}

/* ---- The task ---- */

/* Its choices must be the same tokens to all. */
static enum lmq_status
compare_tasks(const struct lmq_job *job, const struct lmq_judged *candidate,
              const struct lmq_texts *texts, struct lmq_error *err)
{
    const struct lmq_corpus *a = &job->task.corpus;
    struct lmq_task task;

    if (candidate->tokenizer == NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_task_read(
        candidate->tokenizer, texts, job->protocol.context, &task, err);
    if (status != LMQ_OK)
        return status;
    if (a->n_tokens != task.corpus.n_tokens ||
        memcmp(a->tokens, task.corpus.tokens,
               a->n_tokens * sizeof(*a->tokens)) != 0)
        status = fail_tokenizers(candidate, err);
    lmq_task_free(&task);
    return status;
}

static enum lmq_status
read_task(struct lmq_job *job, struct lmq_error *err)
{
    const char *path = job->options->task;
    struct lmq_texts texts;

    if (path == NULL)
        return LMQ_OK;
    if (job->tokenizer == NULL) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "has no tokenizer, which .task needs");
        lmq_hint(err, ".tokenizer FILE names one");
        lmq_error_in(err, job->reference_file->path);
        return LMQ_ERR_FORMAT;
    }
    enum lmq_status status =
        lmq_texts_read(&path, 1, job->progress, &texts, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_task_read(job->tokenizer, &texts, job->protocol.context,
                           &job->task, err);
    for (size_t i = 0; i < job->n_candidates && status == LMQ_OK; i++)
        status = compare_tasks(job, &job->candidates[i], &texts, err);
    lmq_texts_free(&texts);
    return status;
}

/* ---- Memory ---- */

/* Whether the first n candidates fit, side by side and as an attribution, of
 * one at a time, has them. */
static enum lmq_status
check_corpus(const struct lmq_job *job, const struct lmq_corpus *corpus,
             size_t n, struct lmq_error *err)
{
    struct lmq_lockstep lockstep = {
        .models = job->models,
        .n_models = n + 1,
        .n_sides = n + 1 + job->makes_sides,
        .has_integers = job->makes_sides,
        .corpus = corpus,
        .n_windows = corpus->n_windows,
        .memory = job->memory,
        .threads = job->session.threads,
    };

    if (job->options->has_attribution)
        lockstep.n_sides =
            lmq_size_max(lockstep.n_sides, lmq_attribute_sides(job));
    return lmq_lockstep_batch(&lockstep, err) == 0 ? LMQ_ERR_NOMEM : LMQ_OK;
}

static enum lmq_status
check_sides(const struct lmq_job *job, size_t n, struct lmq_error *err)
{
    enum lmq_status status = check_corpus(job, &job->corpus, n, err);

    return status == LMQ_OK && job->task.n > 0
               ? check_corpus(job, &job->task.corpus, n, err)
               : status;
}

static enum lmq_status
check_memory(const struct lmq_job *job, struct lmq_error *err)
{
    size_t n = job->n_candidates;
    enum lmq_status status = check_sides(job, n, err);

    if (status == LMQ_OK)
        return LMQ_OK;
    while (n > 0 && check_sides(job, n, NULL) != LMQ_OK)
        n--;
    if (n > 0)
        lmq_hint(err, "a larger .memory, a smaller .context, or not more than "
                      "the first %zu of the %zu models at a time",
                 n, job->n_candidates);
    return status;
}

/* ---- All of it ---- */

enum lmq_status
lmq_job_set_up(struct lmq_job *job, struct lmq_error *err)
{
    enum lmq_status status = parse_options(job, err);

    if (status == LMQ_OK)
        status = choose_window(job, err);
    if (status == LMQ_OK)
        status = open_models(job, err);
    if (status == LMQ_OK)
        status = open_tokenizers(job, err);
    if (status == LMQ_OK)
        status = job->options->tokens != NULL ? read_ids(job, err)
                                              : read_texts(job, err);
    if (status == LMQ_OK)
        status = read_task(job, err);
    if (status == LMQ_OK)
        status = lmq_collect_evidence(job, err);
    if (status == LMQ_OK)
        status = check_gates(job, err);
    if (status == LMQ_OK)
        status = lmq_baseline_open(job, err);
    job->memory = job->options->memory != 0
                      ? (size_t)lmq_u64_min(job->options->memory, SIZE_MAX)
                      : (size_t)fmin(lmq_mem_available() / 2,
                                     (double)(SIZE_MAX / 2));
    return status == LMQ_OK ? check_memory(job, err) : status;
}

void
lmq_job_tear_down(struct lmq_job *job)
{
    lmq_corpus_free(&job->corpus);
    lmq_task_free(&job->task);
    lmq_tokenizer_close(job->tokenizer);
    for (size_t i = 0; i < job->n_candidates && job->candidates != NULL; i++) {
        struct lmq_judged *candidate = &job->candidates[i];
        lmq_tokenizer_close(candidate->tokenizer);
        lmq_drift_free(&candidate->drift);
        json_decref(candidate->protocol);
        json_decref(candidate->tensors);
        json_decref(candidate->notes);
        json_decref(candidate->worst);
        json_decref(candidate->report);
    }
    for (size_t i = 0; i <= job->n_candidates && job->models != NULL; i++)
        lmq_model_close(job->models[i]);
    json_decref(job->baseline);
    free(job->models);
    free(job->candidates);
    free(job->layers);
}
