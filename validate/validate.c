/*
 * validate.c - the judge: opens both models, lets them run in lock-step, and
 * writes down what came out.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "formats/describe.h"
#include "runtime/tokenizer.h"
#include "validate/drift.h"
#include "validate/metrics.h"

#define DEFAULT_CONTEXT 512
/* Tokens that the many models of an attribution run over. */
#define ATTRIBUTION_TOKENS 1024
#define CONTEXT_TOKENS 12 /* shown before a bad position */

/* Kinds of parts that an attribution restores. */
static const struct {
    const char *name;
    unsigned parts;
} part_kinds[] = {
    {"attention", LMQ_PARTS_ATTENTION},
    {"feed-forward", LMQ_PARTS_FFN},
    {"embedding", LMQ_PARTS_EMBEDDING},
    {"head", LMQ_PARTS_HEAD},
};

#define N_KINDS (sizeof(part_kinds) / sizeof(part_kinds[0]))

struct job {
    const struct lmq_validate_options *options;
    const struct lmq_progress *progress;
    struct lmq_checkpoint *reference_file, *judged_file;
    struct lmq_model *reference, *judged;
    struct lmq_tokenizer *tokenizer;
    struct lmq_protocol protocol;
    struct lmq_corpus corpus;
    enum lmq_activations activations;
    enum lmq_row_type kv_type;
    size_t memory;
    double started;
    size_t n_windows, n_tokens; /* done in the last lock-step */
    bool is_partial;
};

/* What one lock-step gathers. */
struct gathering {
    struct job *job;
    struct lmq_drift *drifts;         /* per side; the first is unused */
    struct lmq_stream_drift *layers;  /* (n_layers + 1), from the embedding */
    const char *stage;
    size_t n_windows, n_tokens;       /* done */
};

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Options ---- */

/* Everything that can be wrong is found before the work. */
static enum lmq_status
parse_options(struct job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    size_t context = o->context != 0 ? o->context : DEFAULT_CONTEXT;
    bool is_second_half =
        o->score != NULL && strcmp(o->score, "second-half") == 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < o->n_gates && status == LMQ_OK; i++)
        status = lmq_metrics_check_gate(o->gates[i], err);
    if (status == LMQ_OK)
        status = lmq_kv_parse(o->kv, &job->kv_type, err);
    if (status != LMQ_OK)
        return status;
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
                        "--score second-half goes without --stride");
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
check_gates(const struct job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;

    for (size_t i = 0; i < o->n_gates; i++) {
        const char *gate = o->gates[i];
        unsigned long layer;
        if (strncmp(gate, "floor.", 6) == 0 && !o->has_floor)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' goes with --floor", gate);
        if (strncmp(gate, "attribution.", 12) == 0 && !o->has_attribution)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' goes with --attribute", gate);
        if (sscanf(gate, "layers.%lu.", &layer) == 1 &&
            layer > job->reference->hparams.n_layers)
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            "the gate '%s' names a layer that is not there: "
                            "layers.0 is the embedding, layers.%u the last",
                            gate, job->reference->hparams.n_layers);
    }
    return LMQ_OK;
}

/* ---- Setting up ---- */

static enum lmq_status
check_alike(const struct job *job, struct lmq_error *err)
{
    const struct lmq_hparams *a = &job->reference->hparams;
    const struct lmq_hparams *b = &job->judged->hparams;

    if (a->n_layers == b->n_layers && a->dim == b->dim &&
        a->vocab_size == b->vocab_size && a->hidden_dim == b->hidden_dim &&
        a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads &&
        a->head_dim == b->head_dim)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is another kind of model: %u layers of %u, vocabulary %u; the "
             "reference has %u of %u, %u",
             b->n_layers, b->dim, b->vocab_size, a->n_layers, a->dim,
             a->vocab_size);
    lmq_error_in(err, job->judged_file->path);
    return LMQ_ERR_FORMAT;
}

/* The tokenizer of either side; both must agree if both have one. */
static enum lmq_status
open_tokenizer(struct job *job, struct lmq_error *err)
{
    struct lmq_tokenizer *other = NULL;
    bool has_first = job->reference_file->n_blobs > 0;
    bool has_second = job->judged_file->n_blobs > 0;
    enum lmq_status status;

    if (!has_first && !has_second && job->options->tokens != NULL)
        return LMQ_OK;
    status = lmq_tokenizer_from_checkpoint(
        has_first || !has_second ? job->reference_file : job->judged_file,
        &job->tokenizer, err);
    if (status != LMQ_OK || !has_first || !has_second)
        return status;
    status = lmq_tokenizer_from_checkpoint(job->judged_file, &other, err);
    if (status == LMQ_OK && lmq_tokenizer_digest(other) !=
                                lmq_tokenizer_digest(job->tokenizer)) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "its tokenizer differs from the reference's");
        lmq_hint(err, "the same text would be other tokens; --tokenizer FILE "
                      "gives both the same");
        lmq_error_in(err, job->judged_file->path);
    }
    lmq_tokenizer_close(other);
    return status;
}

static enum lmq_status
make_corpus(struct job *job, struct lmq_error *err)
{
    const struct lmq_validate_options *o = job->options;
    size_t vocabulary = job->reference->hparams.vocab_size;
    int32_t bos = -1;

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
    return lmq_corpus_from_texts(job->tokenizer, o->texts, o->n_texts,
                                 &job->protocol, &job->corpus, err);
}

/* An attribution has the most sides. */
static size_t
most_sides(const struct job *job)
{
    return job->options->has_attribution
               ? 3 + N_KINDS + job->reference->hparams.n_layers
               : 2;
}

static enum lmq_status
check_memory(const struct job *job, struct lmq_error *err)
{
    const struct lmq_lockstep lockstep = {
        .reference = job->reference,
        .judged = job->judged,
        .n_sides = most_sides(job),
        .corpus = &job->corpus,
        .n_windows = job->corpus.n_windows,
        .memory = job->memory,
        .threads = job->options->threads,
    };

    return lmq_lockstep_batch(&lockstep, err) == 0 ? LMQ_ERR_NOMEM : LMQ_OK;
}

static enum lmq_status
set_up(struct job *job, struct lmq_error *err)
{
    enum lmq_status status = parse_options(job, err);

    if (status == LMQ_OK)
        status = lmq_model_open_lazily(job->reference_file, &job->reference,
                                       err);
    if (status == LMQ_OK)
        status = lmq_model_open_lazily(job->judged_file, &job->judged, err);
    if (status == LMQ_OK)
        status = lmq_activations_parse(job->judged, job->options->activations,
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
tear_down(struct job *job)
{
    lmq_corpus_free(&job->corpus);
    lmq_tokenizer_close(job->tokenizer);
    lmq_model_close(job->judged);
    lmq_model_close(job->reference);
}

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
    const struct job *job = gathering->job;
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

/* Runs the sides over the first n_windows windows. */
static enum lmq_status
gather(struct job *job, const struct lmq_side *sides, size_t n_sides,
       size_t n_windows, const char *stage, struct lmq_drift *drifts,
       struct lmq_stream_drift *layers, struct lmq_error *err)
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
        .threads = job->options->threads,
    };

    enum lmq_status status = lmq_lockstep_run(&lockstep, &observer, err);
    job->n_windows = gathering.n_windows;
    job->n_tokens = gathering.n_tokens;
    return status;
}

/* The reference: all in float32, int8 weights widened. */
static struct lmq_side
reference_side(void)
{
    return (struct lmq_side){.name = "reference",
                             .is_reference = true,
                             .activations = LMQ_ACTIVATIONS_F32,
                             .kv_type = LMQ_ROW_F32,
                             .restored_layer = -1};
}

static struct lmq_side
judged_side(const struct job *job, const char *name)
{
    return (struct lmq_side){.name = name,
                             .activations = job->activations,
                             .kv_type = job->kv_type,
                             .restored_layer = -1};
}

/* ---- Describing ---- */

static json_t *
describe_side(const struct lmq_checkpoint *checkpoint)
{
    uint64_t bytes = 0;
    json_t *json = json_object();

    for (size_t i = 0; i < checkpoint->n_files; i++)
        bytes += lmq_input_size(checkpoint->files[i]);
    json_object_set_new(json, "path", lmq_json_text(checkpoint->path));
    json_object_set_new(json, "format",
                        json_string(checkpoint->format->name));
    json_object_set_new(json, "bytes", lmq_json_size(bytes));
    return json;
}

static json_t *
describe_protocol(const struct job *job)
{
    static const char *const modes[] = {"q8", "q16", "f32"};
    const struct lmq_corpus *corpus = &job->corpus;
    json_t *json = json_object();
    char crc[9];

    snprintf(crc, sizeof(crc), "%08" PRIx32, corpus->crc);
    json_object_set_new(json, "reference", describe_side(job->reference_file));
    json_object_set_new(json, "model", describe_side(job->judged_file));
    json_object_set_new(json, "stride", lmq_json_size(job->protocol.stride));
    json_object_set_new(json, "score",
                        json_string(job->protocol.is_second_half
                                        ? "second-half"
                                        : "all"));
    json_object_set_new(json, "bos", json_boolean(corpus->has_bos));
    json_object_set_new(json, "documents",
                        lmq_json_size(corpus->n_documents));
    json_object_set_new(json, "windows", lmq_json_size(job->n_windows));
    json_object_set_new(json, "text_bytes", lmq_json_size(corpus->n_bytes));
    json_object_set_new(json, "text_crc32", json_string(crc));
    json_object_set_new(
        json, "activations",
        json_string(job->judged->is_int8 ? modes[job->activations] : "f32"));
    json_object_set_new(json, "kv",
                        json_string(job->kv_type == LMQ_ROW_F32   ? "f32"
                                    : job->kv_type == LMQ_ROW_F16 ? "f16"
                                                                  : "q8"));
    json_object_set_new(json, "tool", json_string("lmquant " PACKAGE_VERSION));
    json_object_set_new(json, "instruction_set",
                        json_string(lmq_instruction_set()));
    return json;
}

static json_t *
describe_layers(const struct job *job, const struct lmq_stream_drift *layers)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i <= job->reference->hparams.n_layers; i++) {
        const struct lmq_stream_drift *d = &layers[i];
        double norms = sqrt(d->reference_sq) * sqrt(d->model_sq);
        json_t *json = json_object();
        /* -1 is the embedding. */
        json_object_set_new(json, "layer", json_integer((json_int_t)i - 1));
        json_object_set_new(json, "rms",
                            lmq_json_number(sqrt(d->err_sq / (double)d->n)));
        json_object_set_new(
            json, "relative_rms",
            lmq_json_number(d->reference_sq > 0
                                ? sqrt(d->err_sq / d->reference_sq)
                                : 0));
        json_object_set_new(json, "cosine",
                            lmq_json_number(norms > 0 ? d->dot / norms : 1));
        json_array_append_new(list, json);
    }
    return list;
}

/* Text of some tokens; their numbers if there is no tokenizer. */
static json_t *
text_of(const struct job *job, const int32_t *ids, size_t n)
{
    struct lmq_buffer buffer = {0};
    json_t *text = NULL;

    if (job->tokenizer != NULL &&
        lmq_tokenizer_decode(job->tokenizer, ids, n,
                             LMQ_DECODE_UTF8 | LMQ_DECODE_SPECIAL, &buffer,
                             NULL) == LMQ_OK)
        text = json_stringn(
            buffer.n == 0 ? "" : (const char *)buffer.bytes, buffer.n);
    lmq_buffer_free(&buffer);
    return text != NULL ? text : json_sprintf("#%d", (int)ids[n - 1]);
}

/* One token by itself, its space included; part of a character as #ID. */
static json_t *
piece_of(const struct job *job, int32_t id)
{
    json_t *text = NULL;

    if (job->tokenizer != NULL) {
        struct lmq_chars piece = lmq_tokenizer_piece(job->tokenizer, id);
        if (piece.n > 0)
            text = json_stringn((const char *)piece.p, piece.n);
    }
    return text != NULL ? text : json_sprintf("#%d", (int)id);
}

static json_t *
describe_worst(const struct job *job, const struct lmq_drift *drift)
{
    json_t *list = json_array();

    for (size_t i = 0; i < drift->n_worst; i++) {
        const struct lmq_worst *worst = &drift->worst[i];
        const int32_t *ids = job->corpus.tokens;
        size_t before = lmq_size_min(CONTEXT_TOKENS,
                                     worst->token - worst->window_first);
        json_t *json = json_object();
        json_object_set_new(json, "position",
                            lmq_json_size(worst->token - worst->window_first));
        json_object_set_new(json, "kld", lmq_json_number(worst->kld));
        json_object_set_new(json, "context",
                            text_of(job, ids + worst->token - before, before));
        json_object_set_new(json, "token",
                            piece_of(job, ids[worst->token]));
        json_object_set_new(json, "reference_says",
                            piece_of(job, worst->top1_reference));
        json_object_set_new(json, "model_says",
                            piece_of(job, worst->top1));
        json_object_set_new(json, "reference_nll",
                            lmq_json_number(worst->nll_reference));
        json_object_set_new(json, "model_nll", lmq_json_number(worst->nll));
        json_array_append_new(list, json);
    }
    return list;
}

/* What the container says of itself; the tensors need not be read again. */
static json_t *
describe_tensors(const struct job *job)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(job->judged_file);
    json_t *list = json_array();

    for (size_t i = 0; container != NULL && i < container->n_records; i++) {
        const struct lmq_record *record = &container->records[i];
        if (record->encoding != LMQ_ENCODING_Q8)
            continue;
        json_t *json = json_object();
        json_object_set_new(json, "name", lmq_json_text(record->name));
        json_object_set_new(
            json, "sqnr_db",
            lmq_json_number(lmq_quant_snr_db(record->sum_sq, record->err_sq)));
        json_object_set_new(json, "max_abs",
                            lmq_json_number((double)record->max_err));
        json_array_append_new(list, json);
    }
    return list;
}

/* ---- Attribution ---- */

static json_t *
describe_share(const char *kind, const char *name, double full, double without)
{
    json_t *json = json_object();

    json_object_set_new(json, "kind", json_string(kind));
    json_object_set_new(json, "name", lmq_json_text(name));
    json_object_set_new(json, "kld_without", lmq_json_number(without));
    json_object_set_new(json, "share",
                        lmq_json_number((full - without) / full));
    return json;
}

static int
compare_shares(const void *a, const void *b)
{
    double x = json_number_value(
        json_object_get(*(json_t *const *)a, "share"));
    double y = json_number_value(
        json_object_get(*(json_t *const *)b, "share"));

    return (x < y) - (x > y);
}

static json_t *
sorted_shares(json_t **shares, size_t n)
{
    json_t *list = json_array();

    qsort(shares, n, sizeof(*shares), compare_shares);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, shares[i]);
    return list;
}

/* The windows that make up the tokens of an attribution. */
static size_t
few_windows(const struct job *job, size_t *n_tokens)
{
    size_t n = 0;

    *n_tokens = 0;
    while (n < job->corpus.n_windows && *n_tokens < ATTRIBUTION_TOKENS)
        *n_tokens += job->corpus.windows[n++].n;
    return n;
}

/* Sides: reference, the judged model, the judged model without quantized
 * activations, without each kind of part, without each layer. */
static enum lmq_status
attribute(struct job *job, json_t *report, struct lmq_error *err)
{
    size_t n_layers = job->reference->hparams.n_layers;
    size_t n_sides = most_sides(job), n_tokens;
    size_t n_windows = few_windows(job, &n_tokens);
    struct lmq_side *sides = calloc(n_sides, sizeof(*sides));
    struct lmq_drift *drifts = calloc(n_sides, sizeof(*drifts));
    json_t **shares = calloc(n_sides, sizeof(*shares));
    char(*names)[16] = calloc(n_sides, sizeof(*names));
    enum lmq_status status = LMQ_OK;

    if (sides == NULL || drifts == NULL || shares == NULL || names == NULL) {
        status = lmq_fail_nomem(err);
        goto done;
    }
    sides[0] = reference_side();
    sides[1] = judged_side(job, "");
    sides[2] = judged_side(job, "activations");
    sides[2].activations = LMQ_ACTIVATIONS_F32;
    sides[2].kv_type = LMQ_ROW_F32;
    for (size_t i = 0; i < N_KINDS; i++) {
        sides[3 + i] = judged_side(job, part_kinds[i].name);
        sides[3 + i].restored = part_kinds[i].parts;
    }
    for (size_t i = 0; i < n_layers; i++) {
        size_t at = 3 + N_KINDS + i;
        snprintf(names[at], sizeof(names[at]), "%zu", i);
        sides[at] = judged_side(job, names[at]);
        sides[at].restored_layer = (int32_t)i;
    }
    status = gather(job, sides, n_sides, n_windows, "attributing", drifts,
                    NULL, err);
    if (status != LMQ_OK)
        goto done;
    double full = drifts[1].kld_sum / (double)drifts[1].n;
    for (size_t i = 2; i < n_sides; i++)
        shares[i] = describe_share(
            i == 2             ? "activations"
            : i < 3 + N_KINDS ? "part"
                               : "layer",
            sides[i].name, full, drifts[i].kld_sum / (double)drifts[i].n);
    json_t *json = json_object();
    double weights = drifts[2].kld_sum / (double)drifts[2].n;
    json_object_set_new(json, "tokens", lmq_json_size(n_tokens));
    json_object_set_new(json, "kld", lmq_json_number(full));
    json_object_set_new(json, "weights", lmq_json_number(weights / full));
    json_object_set_new(json, "activations",
                        lmq_json_number(1 - weights / full));
    json_decref(shares[2]);
    json_object_set_new(json, "parts", sorted_shares(shares + 3, N_KINDS));
    json_object_set_new(json, "layers",
                        sorted_shares(shares + 3 + N_KINDS, n_layers));
    json_object_set_new(report, "attribution", json);
done:
    for (size_t i = 0; drifts != NULL && i < n_sides; i++)
        lmq_drift_free(&drifts[i]);
    free(sides);
    free(drifts);
    free((void *)shares);
    free(names);
    return status;
}

/* The reference against itself: what is left is the noise of the method. */
static enum lmq_status
measure_floor(struct job *job, json_t *report, struct lmq_error *err)
{
    struct lmq_side sides[] = {reference_side(), reference_side()};
    struct lmq_drift drifts[2] = {0};
    size_t n_tokens, n_windows = few_windows(job, &n_tokens);
    enum lmq_status status = gather(job, sides, 2, n_windows,
                                    "measuring the floor", drifts, NULL, err);

    if (status == LMQ_OK) {
        json_t *json = json_object();
        json_object_set_new(json, "tokens", lmq_json_size(n_tokens));
        json_object_set_new(
            json, "kld",
            lmq_json_number(drifts[1].kld_sum / (double)drifts[1].n));
        json_object_set_new(json, "logit_max_abs",
                            lmq_json_number(drifts[1].max_abs));
        json_object_set_new(report, "floor", json);
    }
    lmq_drift_free(&drifts[1]);
    return status;
}

/* ---- All of it ---- */

static enum lmq_status
compare(struct job *job, json_t *report, struct lmq_error *err)
{
    const struct lmq_side sides[] = {reference_side(),
                                     judged_side(job, "model")};
    size_t n_layers = job->reference->hparams.n_layers;
    struct lmq_drift drifts[2] = {0};

    struct lmq_stream_drift *layers = calloc(n_layers + 1, sizeof(*layers));
    if (layers == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        gather(job, sides, 2, job->corpus.n_windows, "validating", drifts,
               layers, err);
    /* What was done until an interruption counts. */
    if (status == LMQ_ERR_CANCELLED && drifts[1].n > 0) {
        job->is_partial = true;
        status = LMQ_OK;
    }
    if (status == LMQ_OK) {
        double seconds = now() - job->started;
        json_object_set_new(report, "partial", json_boolean(job->is_partial));
        json_object_set_new(report, "tokens", lmq_json_size(job->n_tokens));
        json_object_set_new(report, "scored", lmq_json_size(drifts[1].n));
        json_object_set_new(report, "ctx",
                            lmq_json_size(job->protocol.context));
        status = lmq_drift_describe(&drifts[1],
                                    job->reference->hparams.vocab_size,
                                    report, err);
        json_object_set_new(report, "layers", describe_layers(job, layers));
        json_object_set_new(report, "tensors", describe_tensors(job));
        json_object_set_new(report, "worst", describe_worst(job, &drifts[1]));
        json_object_set_new(report, "protocol", describe_protocol(job));
        json_object_set_new(report, "seconds", lmq_json_number(seconds));
        json_object_set_new(
            report, "tokens_per_second",
            lmq_json_number((double)job->n_tokens / seconds));
    }
    lmq_drift_free(&drifts[1]);
    free(layers);
    return status;
}

enum lmq_status
lmq_validate(struct lmq_checkpoint *reference, struct lmq_checkpoint *judged,
             const struct lmq_validate_options *options,
             const struct lmq_progress *progress, struct lmq_report **report,
             int *is_partial, struct lmq_error *err)
{
    struct job job = {.options = options,
                      .progress = progress,
                      .reference_file = reference,
                      .judged_file = judged,
                      .started = now()};
    json_t *json = json_object();
    size_t n_broken;

    *report = NULL;
    *is_partial = 0;
    enum lmq_status status = set_up(&job, err);
    if (status == LMQ_OK)
        status = compare(&job, json, err);
    if (status == LMQ_OK && options->has_floor && !job.is_partial)
        status = measure_floor(&job, json, err);
    if (status == LMQ_OK && options->has_attribution && !job.is_partial)
        status = attribute(&job, json, err);
    /* The comparison stands, whatever was interrupted after it. */
    if (status == LMQ_ERR_CANCELLED && json_object_get(json, "kld") != NULL) {
        job.is_partial = true;
        json_object_set_new(json, "partial", json_true());
        status = LMQ_OK;
    }
    if (status == LMQ_OK)
        status = lmq_gates_apply(lmq_report_from(json), options->gates,
                                 job.is_partial ? 0 : options->n_gates,
                                 &n_broken, err);
    if (status == LMQ_OK) {
        *report = lmq_report_from(json);
        *is_partial = job.is_partial;
    } else {
        json_decref(json);
    }
    tear_down(&job);
    return status;
}
