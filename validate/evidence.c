/*
 * evidence.c - what a validation saw, as parts of its report: the protocol,
 * the drift by layer, the worst positions, the tensors' own errors.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "base/text/c_locale.h"
#include "base/text/utf8.h"
#include "quantize/group.h"
#include "validate/job.h"

#define CONTEXT_TOKENS 12 /* shown before a bad position */

static json_t *
describe_side(const char *path, const char *format,
              const struct lmq_sizes *sizes)
{
    json_t *json = json_object();

    lmq_put(&json, "path", lmq_json_text(path));
    lmq_put(&json, "format", json_string(format));
    lmq_put(&json, "bytes", lmq_json_size(sizes->file_bytes));
    lmq_put(&json, "bits_per_weight",
            lmq_json_number(sizes->bits_per_weight));
    return json;
}

static json_t *
describe_judged(const struct lmq_judged *candidate)
{
    const struct lmq_sizes sizes = lmq_judged_sizes(candidate);

    return describe_side(lmq_judged_name(candidate),
                         candidate->emulation == LMQ_EMULATE_NONE
                             ? candidate->file->format->name
                             : "emulated",
                         &sizes);
}

static json_t *
describe_protocol(const struct lmq_job *job,
                  const struct lmq_judged *candidate)
{
    const struct lmq_corpus *corpus = &job->corpus;
    const struct lmq_checkpoint *reference = job->reference_file;
    const struct lmq_sizes sizes = lmq_checkpoint_sizes(reference);
    json_t *json = json_object();

    lmq_put(&json, "reference",
            describe_side(reference->path, reference->format->name, &sizes));
    lmq_put(&json, "model", describe_judged(candidate));
    lmq_put(&json, "stride", lmq_json_size(job->protocol.stride));
    lmq_put_name(&json, "score", lmq_score_names, job->protocol.is_second_half);
    lmq_put(&json, "bos", json_boolean(corpus->has_bos));
    lmq_put(&json, "documents", lmq_json_size(corpus->n_documents));
    lmq_put(&json, "windows", lmq_json_size(corpus->n_windows));
    lmq_put(&json, "text_bytes", lmq_json_size(corpus->n_bytes));
    lmq_put(&json, "text_crc32", lmq_json_crc(corpus->crc));
    lmq_put(&json, "activations",
            json_string(lmq_judged_activations(candidate)));
    lmq_put_name(&json, "kv", lmq_kv_names, job->kv_type);
    lmq_put(&json, "tool", json_string("lmquant " PACKAGE_VERSION));
    lmq_put(&json, "instruction_set", json_string(lmq_instruction_set()));
    return json;
}

json_t *
lmq_describe_layers(const struct lmq_job *job,
                    const struct lmq_stream_sums *layers)
{
    json_t *list = json_array();

    for (size_t i = 0; i <= job->n_layers; i++) {
        const struct lmq_stream_sums *d = &layers[i];
        double err_sq = lmq_exact_round(&d->err_sq);
        double reference_sq = lmq_exact_round(&d->reference_sq);
        json_t *json = json_object();
        /* -1 is the embedding. */
        lmq_put(&json, "layer", json_integer((json_int_t)i - 1));
        lmq_put(&json, "rms", lmq_json_number(sqrt(err_sq / (double)d->n)));
        lmq_put(
            &json, "relative_rms",
            lmq_json_number(err_sq > 0 ? sqrt(err_sq / reference_sq) : 0));
        lmq_put(&json, "cosine",
                lmq_json_number(
                    lmq_quant_cosine(lmq_exact_round(&d->dot), reference_sq,
                                     lmq_exact_round(&d->model_sq))));
        lmq_append(&list, json);
    }
    return list;
}

/* Text of some tokens; their numbers if there is no tokenizer. */
static json_t *
text_of(const struct lmq_job *job, const int32_t *ids, size_t n)
{
    struct lmq_buffer buffer = {0};
    json_t *text = NULL;
    enum lmq_status status =
        job->tokenizer == NULL
            ? LMQ_ERR_UNSUPPORTED
            : lmq_tokenizer_decode(job->tokenizer, ids, n,
                                   LMQ_DECODE_UTF8 | LMQ_DECODE_SPECIAL,
                                   &buffer, NULL);

    if (status == LMQ_OK)
        text = json_stringn(
            buffer.n == 0 ? "" : (const char *)buffer.bytes, buffer.n);
    else if (status != LMQ_ERR_NOMEM)
        text = json_sprintf("#%d", (int)ids[n - 1]);
    lmq_buffer_free(&buffer);
    return text;
}

/* One token by itself, its space included; part of a character as #ID. */
static json_t *
piece_of(const struct lmq_job *job, int32_t id)
{
    if (job->tokenizer != NULL) {
        struct lmq_chars piece = lmq_tokenizer_piece(job->tokenizer, id);
        if (piece.n > 0 && lmq_is_utf8(piece.p, piece.n))
            return json_stringn((const char *)piece.p, piece.n);
    }
    return json_sprintf("#%d", (int)id);
}

json_t *
lmq_describe_worst(const struct lmq_job *job, const struct lmq_drift *drift)
{
    json_t *list = json_array();

    for (size_t i = 0; i < drift->n_worst; i++) {
        const struct lmq_worst *worst = &drift->worst[i];
        const int32_t *ids = job->corpus.tokens;
        size_t before = lmq_size_min(CONTEXT_TOKENS,
                                     worst->token - worst->window_first);
        json_t *json = json_object();
        lmq_put(&json, "position",
                lmq_json_size(worst->token - worst->window_first));
        lmq_put(&json, "kld", lmq_json_number(worst->kld));
        lmq_put(&json, "context",
                text_of(job, ids + worst->token - before, before));
        lmq_put(&json, "token", piece_of(job, ids[worst->token]));
        lmq_put(&json, "reference_says", piece_of(job, worst->top1_reference));
        lmq_put(&json, "model_says", piece_of(job, worst->top1));
        lmq_put(&json, "reference_nll", lmq_json_number(worst->nll_reference));
        lmq_put(&json, "model_nll", lmq_json_number(worst->nll));
        lmq_append(&list, json);
    }
    return list;
}

/* What the file says of its tensors; these need not be read again. */
static json_t *
describe_tensors(const struct lmq_checkpoint *checkpoint)
{
    json_t *list = json_array();

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (tensor->alias_of != NULL)
            continue;
        json_t *statements = lmq_tensor_statements(checkpoint, tensor);
        json_t *snr = json_object_get(statements, "snr_db");
        if (statements == NULL) {
            lmq_append(&list, NULL);
        } else if (snr != NULL) {
            json_t *json = json_object();
            lmq_put(&json, "name", lmq_json_text(tensor->name));
            lmq_put(&json, "sqnr_db", json_incref(snr));
            lmq_put(&json, "max_abs",
                    json_incref(json_object_get(statements, "max_error")));
            lmq_append(&list, json);
        }
        json_decref(statements);
    }
    return list;
}

static bool
is_quantized(const struct lmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].encoding != NULL ||
            checkpoint->tensors[i].blocks != NULL)
            return true;
    return false;
}

/* ---- What may be a mistake, though it can be measured ---- */

void
lmq_doubt(json_t **notes, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    lmq_c_vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    lmq_append(notes, lmq_json_text(text));
}

static bool
are_one_file(const char *a, const char *b)
{
    struct stat x, y;

    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
            x.st_ino == y.st_ino);
}

/* The two in the wrong order, or only one of them. */
static void
doubt_order(const struct lmq_job *job, const struct lmq_judged *candidate,
            json_t **notes)
{
    const char *reference = job->reference_file->path;
    const char *judged = candidate->file->path;
    double bits = lmq_checkpoint_sizes(job->reference_file).bits_per_weight;
    double own = lmq_judged_sizes(candidate).bits_per_weight;
    bool is_float = !is_quantized(candidate->file);

    if (are_one_file(reference, judged))
        lmq_doubt(notes, "%.400s is judged against itself%s", judged,
                  !is_float ? ": what its weights lost is not seen"
                  : job->kv_type == LMQ_KV_F32
                      ? ", in float32 both times"
                      : ", but for its keys and values in float32 both times");
    else if (is_quantized(job->reference_file) && is_float)
        lmq_doubt(notes,
              "the reference %.400s is quantized and the judged %.400s is "
              "not: the reference comes first",
              reference, judged);
    else if (is_quantized(job->reference_file) && bits < 0.98 * own)
        lmq_doubt(notes,
              "the reference %.400s has fewer bits per weight, %.2f, than the "
              "judged %.400s, %.2f: right if this was made of it; else the "
              "reference comes first",
              reference, bits, judged, own);
}

static bool
is_crc(const char *text, uint32_t crc)
{
    char own[9];

    snprintf(own, sizeof(own), "%08" PRIx32, crc);
    return text != NULL && strcmp(text, own) == 0;
}

/* All of it or, where it has been read here, one of its texts. */
static bool
has_text(const struct lmq_corpus *corpus, const char *crc)
{
    bool has = is_crc(crc, corpus->crc);

    for (size_t i = 0; !has && i < corpus->n_texts; i++)
        has = is_crc(crc, corpus->crcs[i]);
    return has;
}

/* What a conversion was calibrated with flatters it. */
static void
doubt_text(const struct lmq_job *job, const struct lmq_judged *candidate,
           json_t **notes)
{
    json_t *statements = lmq_checkpoint_statements(candidate->file);
    const json_t *quantization = json_object_get(statements, "quantization");
    const json_t *texts = json_object_get(
        json_object_get(quantization, "calibration"), "texts");
    const json_t *text;
    size_t i;

    json_array_foreach(texts, i, text) {
        if (has_text(&job->corpus,
                     json_string_value(json_object_get(text, "crc32")))) {
            lmq_doubt(notes,
                      "%.400s was calibrated with %s, which flatters it: take "
                      "another",
                      candidate->file->path,
                      job->corpus.n_texts > 1 ? "one of these texts"
                                              : "this very text");
            break;
        }
    }
    json_decref(statements);
}

void
lmq_doubt_window(const struct lmq_job *job, uint32_t context,
                 const char *whose, json_t **notes)
{
    if (job->protocol.context > context)
        lmq_doubt(notes, LMQ_LONG_WINDOWS, job->protocol.context, context,
                  whose);
}

/* What is no whole window goes without a figure. */
static void
doubt_documents(const struct lmq_job *job, json_t **notes)
{
    size_t n = job->corpus.n_short;

    if (n > 0)
        lmq_doubt(notes,
                  "%zu of %zu documents do%s not fill a window of %zu tokens "
                  "and %s left out",
                  n, n + job->corpus.n_documents, n == 1 ? "es" : "",
                  job->protocol.context, n == 1 ? "is" : "are");
}

/* Of all models alike; and of one that sees less than the reference, as a file
 * of a format that has no word for its windows. */
static void
doubt_protocol(const struct lmq_job *job, const struct lmq_judged *candidate,
               json_t **notes)
{
    uint32_t most = job->reference_file->hparams.context;
    uint32_t own = candidate->emulation != LMQ_EMULATE_NONE
                       ? most
                       : candidate->file->hparams.context;

    if (candidate == job->candidates) {
        lmq_doubt_window(job, most, "the reference", notes);
        doubt_documents(job, notes);
    }
    if (own < most)
        lmq_doubt_window(job, own, candidate->file->path, notes);
}

static json_t *
describe_doubts(const struct lmq_job *job, const struct lmq_judged *candidate)
{
    json_t *notes = json_array();

    if (candidate->emulation == LMQ_EMULATE_NONE) {
        doubt_order(job, candidate, &notes);
        doubt_text(job, candidate, &notes);
    }
    doubt_protocol(job, candidate, &notes);
    return notes;
}

/* A model that is a model's quantization agrees with it far more often. */
#define HARDLY_THE_SAME 0.5

/* Fewer tell next to nothing. */
#define FEW_TOKENS 256

/* A perplexity that is no number is too large to be one. */
static void
doubt_reference(const struct lmq_job *job, const json_t *report,
                json_t **notes)
{
    const json_t *ppl =
        json_object_get(json_object_get(report, "reference"), "ppl");

    if (!json_is_number(ppl))
        lmq_doubt(notes,
                  "the reference does no better than to guess: its perplexity "
                  "is too large to be a number; is this its tokenizer, and a "
                  "text of its kind?");
    else if (round(json_number_value(ppl)) >= (double)job->vocabulary)
        lmq_doubt(notes,
                  "the reference does no better than to guess: its perplexity "
                  "is %.0f with %zu tokens; is this its tokenizer, and a text "
                  "of its kind?",
                  json_number_value(ppl), job->vocabulary);
}

void
lmq_doubt_result(const struct lmq_job *job, const struct lmq_judged *candidate,
                 const json_t *report, json_t **notes)
{
    const json_t *figure = json_object_get(report, "top1_agreement");
    double agreement = json_number_value(figure);
    uint64_t n = candidate->drift.n;

    if (candidate == job->candidates && n < FEW_TOKENS)
        lmq_doubt(notes,
                  "%" PRIu64 " token%s scored, which says next to nothing",
                  n, n == 1 ? " is" : "s are");
    if (candidate == job->candidates)
        doubt_reference(job, report, notes);
    if (json_is_number(figure) && agreement < HARDLY_THE_SAME)
        lmq_doubt(notes,
                  "%.400s has the same top token at only %.2f %% of the "
                  "positions: it is hardly the same model",
                  lmq_judged_name(candidate), 100 * agreement);
}

enum lmq_status
lmq_collect_evidence(struct lmq_job *job, struct lmq_error *err)
{
    for (size_t i = 0; i < job->n_candidates; i++) {
        struct lmq_judged *candidate = &job->candidates[i];
        candidate->protocol = describe_protocol(job, candidate);
        candidate->tensors = candidate->emulation == LMQ_EMULATE_NONE
                                 ? describe_tensors(candidate->file)
                                 : json_array();
        candidate->notes = describe_doubts(job, candidate);
        if (candidate->protocol == NULL || candidate->tensors == NULL ||
            candidate->notes == NULL)
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}
