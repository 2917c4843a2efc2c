/*
 * setup.c - from options and checkpoints to models, a corpus and a memory
 * bound; everything that can be wrong is found before the work.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/output.h"
#include "base/size.h"
#include "runtime/session.h"
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

enum lmq_status
lmq_job_check_page(const struct lmq_job *job, struct lmq_error *err)
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

enum lmq_status
lmq_job_set_up(struct lmq_job *job, struct lmq_error *err)
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

void
lmq_job_tear_down(struct lmq_job *job)
{
    lmq_corpus_free(&job->corpus);
    lmq_tokenizer_close(job->tokenizer);
    lmq_tokenizer_close(job->other);
    lmq_model_close(job->judged);
    lmq_model_close(job->reference);
}
