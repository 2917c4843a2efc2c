/*
 * own_text.c - windows of tokens, some at a time: the weights are read once for
 * all of these. Where a text ends within a window the next one begins.
 */
#include "config.h"

#include "convert/calibrate/own_text.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/size.h"
#include "convert/calibrate/walk.h"
#include "runtime/forward.h"
#include "runtime/tokenizer/tokenizer.h"

/* Windows that are written at a time, at most. Who draws when depends on it,
 * and so does the text. */
#define ABREAST ((size_t)32)
#define SEED 1

struct writer {
    const struct lmq_own_text *text;
    int32_t first; /* of a window */
    bool begins;   /* a text that follows another one begins with it, too */
    size_t length; /* tokens of a window */
    size_t abreast; /* windows that there is room for */
    struct lmq_work work;
    struct lmq_kv *kv; /* (n_layers, abreast) */
    float *logits;     /* (abreast, vocab) */
    uint64_t random;
    struct lmq_counter counter;
};

/* ---- Windows ---- */

static int32_t
first_of(const struct lmq_tokenizer *tokenizer)
{
    size_t n;
    const int32_t *ends = lmq_tokenizer_eos(tokenizer, &n);

    if (lmq_tokenizer_bos(tokenizer) >= 0)
        return lmq_tokenizer_bos(tokenizer);
    return n > 0 ? ends[0] : 0;
}

/* Full ones, and one of what is left. */
enum lmq_status
lmq_own_text_lay_out(const struct lmq_own_text *text,
                     struct lmq_corpus *corpus, struct lmq_error *err)
{
    size_t length = lmq_size_min(text->context, text->n_tokens), n;

    *corpus = (struct lmq_corpus){0};
    if ((double)text->n_tokens * sizeof(int32_t) > lmq_mem_limit())
        return lmq_fail(err, LMQ_ERR_NOMEM, 0,
                        "%zu tokens (.calibration_tokens) are more than there "
                        "is memory for",
                        text->n_tokens);
    int32_t *tokens = calloc(length, sizeof(*tokens));
    enum lmq_status status = tokens == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; i < length && status == LMQ_OK; i++)
        tokens[i] = first_of(text->tokenizer);
    for (size_t left = text->n_tokens; left > 1 && status == LMQ_OK;
         left -= n) {
        n = lmq_size_min(left, length);
        status = lmq_corpus_add_window(corpus, -1, tokens, n, 0, err);
    }
    free(tokens);
    if (status != LMQ_OK)
        lmq_corpus_free(corpus);
    return status;
}

/* ---- Room ---- */

static size_t
count_abreast(const struct lmq_corpus *corpus)
{
    return lmq_size_min(corpus->n_windows, ABREAST);
}

enum lmq_status
lmq_own_text_check(const struct lmq_own_text *text,
                   const struct lmq_corpus *corpus, struct lmq_error *err)
{
    const struct lmq_model *model = text->model;
    size_t n = count_abreast(corpus), length = corpus->windows[0].n;
    double weights = 0, all;

    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        weights += (double)lmq_model_layer_bytes(model, i);
    all = weights + lmq_work_bytes(model, n, length, text->threads);
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        all += (double)n * lmq_kv_bytes(model, i, LMQ_KV_F32, length);
    if (all <= lmq_mem_limit())
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_NOMEM, 0,
             "to write a text a model needs all of itself at once, and room "
             "for %zu windows of %zu tokens: %.1f GB and %.1f GB, more than "
             "the %.1f GB that there are",
             n, length, 1e-9 * weights, 1e-9 * (all - weights),
             1e-9 * lmq_mem_limit());
    lmq_hint(err, "a text that is given (.calibration) goes through one layer "
                  "at a time");
    return LMQ_ERR_NOMEM;
}

static enum lmq_status
load_layers(struct lmq_model *model, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < model->hparams.n_layers && status == LMQ_OK; i++)
        status = lmq_model_load_layer(model, i, err);
    return status;
}

static bool
make_room(struct writer *writer)
{
    const struct lmq_model *model = writer->text->model;
    size_t n = model->hparams.n_layers * writer->abreast;
    bool is_complete;

    writer->logits = lmq_mem_aligned(
        writer->abreast, model->hparams.vocab_size * sizeof(float));
    writer->kv = calloc(n, sizeof(*writer->kv));
    is_complete = writer->logits != NULL && writer->kv != NULL;
    for (size_t i = 0; i < n && is_complete; i++)
        is_complete = lmq_kv_init(&writer->kv[i], model, i / writer->abreast,
                                  LMQ_KV_F32, writer->length);
    return is_complete;
}

static enum lmq_status
open_writer(struct writer *writer, struct lmq_error *err)
{
    const struct lmq_own_text *text = writer->text;
    enum lmq_status status = load_layers(text->model, err);

    if (status == LMQ_OK)
        status = lmq_work_init(&writer->work, text->model, writer->abreast,
                               writer->length, LMQ_ACTIVATIONS_Q16,
                               text->threads, err);
    if (status == LMQ_OK && !make_room(writer))
        status = lmq_fail_nomem(err);
    return status;
}

static void
close_writer(struct writer *writer)
{
    struct lmq_model *model = writer->text->model;

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        lmq_model_drop_layer(model, i);
        for (size_t j = 0; j < writer->abreast && writer->kv != NULL; j++)
            lmq_kv_free(&writer->kv[i * writer->abreast + j]);
    }
    free(writer->kv);
    lmq_mem_free(writer->logits);
    lmq_work_free(&writer->work);
}

/* ---- Writing ---- */

/* logits (n, vocab) behind the token at this position of n windows. */
static enum lmq_status
evaluate(struct writer *writer, const int32_t *tokens, size_t n,
         size_t position, struct lmq_error *err)
{
    const struct lmq_model *model = writer->text->model;
    const struct lmq_hparams *h = &model->hparams;
    struct lmq_work *work = &writer->work;
    int32_t last[ABREAST];

    for (size_t i = 0; i < n; i++)
        last[i] = tokens[i * writer->work.length + position];
    work->n_sequences = n;
    lmq_forward_embed(model, work, last, n, position);
    for (size_t i = 0; i < h->n_layers; i++)
        lmq_forward_layer(
            model, i,
            writer->kv + lmq_layer_kv_source(h, i) * writer->abreast, work, n,
            position);
    lmq_forward_head(model, work, n, writer->logits);
    if (lmq_is_finite(writer->logits, n * h->vocab_size))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_NONFINITE, 0,
             "computes NaN or infinity where it writes a text");
    return lmq_hint_nonfinite(err);
}

/* One of n tokens, as likely as the model says. The logits become their
 * exponentials. */
static int32_t
draw(struct writer *writer, float *logits, size_t n)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    double sum = 0, left;
    size_t i = 0;

    kernels->exp_sum(logits, n, kernels->max(logits, n));
    for (size_t j = 0; j < n; j++)
        sum += (double)logits[j];
    left = 0x1p-53 * (double)(lmq_random_next(&writer->random) >> 11) * sum;
    while (i + 1 < n && left >= (double)logits[i])
        left -= (double)logits[i++];
    return (int32_t)i;
}

static int32_t
choose_next(struct writer *writer, int32_t token, float *logits)
{
    bool has_ended = writer->begins && token != writer->first &&
                     lmq_tokenizer_is_eos(writer->text->tokenizer, token);

    return has_ended ? writer->first
                     : draw(writer, logits,
                            writer->text->model->hparams.vocab_size);
}

/* n windows of so many tokens, one behind the other. */
static enum lmq_status
write_windows(struct writer *writer, int32_t *tokens, size_t n, size_t length,
              struct lmq_error *err)
{
    size_t vocabulary = writer->text->model->hparams.vocab_size;
    enum lmq_status status = LMQ_OK;

    writer->work.length = length;
    for (size_t t = 0; t + 1 < length && status == LMQ_OK; t++) {
        status = evaluate(writer, tokens, n, t, err);
        for (size_t i = 0; i < n && status == LMQ_OK; i++) {
            int32_t *at = &tokens[i * length + t];
            at[1] = choose_next(writer, at[0],
                                writer->logits + i * vocabulary);
        }
        writer->counter.done += n;
        if (status == LMQ_OK)
            status = lmq_counter_report(&writer->counter, err);
    }
    return status;
}

/* Those that are as long together. */
static enum lmq_status
write_all(struct writer *writer, struct lmq_corpus *corpus,
          struct lmq_error *err)
{
    const struct lmq_window *windows = corpus->windows;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0, n; at < corpus->n_windows && status == LMQ_OK;
         at += n) {
        n = 1;
        while (n < writer->abreast && at + n < corpus->n_windows &&
               windows[at + n].n == windows[at].n)
            n++;
        status = write_windows(writer, corpus->tokens + windows[at].first, n,
                               windows[at].n, err);
    }
    return status;
}

static uint32_t
crc_of(const struct lmq_corpus *corpus)
{
    uint32_t crc = 0;
    unsigned char bytes[4];

    for (size_t i = 0; i < corpus->n_tokens; i++) {
        lmq_store_u32le(bytes, (uint32_t)corpus->tokens[i]);
        crc = lmq_crc32(crc, bytes, sizeof(bytes));
    }
    return crc;
}

enum lmq_status
lmq_own_text_write(const struct lmq_own_text *text,
                   const struct lmq_progress *progress,
                   struct lmq_corpus *corpus, struct lmq_error *err)
{
    struct writer writer = {.text = text,
                            .random = SEED,
                            .first = first_of(text->tokenizer),
                            .begins = lmq_tokenizer_bos(text->tokenizer) >= 0,
                            .length = corpus->windows[0].n,
                            .abreast = count_abreast(corpus),
                            .counter = {.progress = progress,
                                        .stage = "writing a text",
                                        .total = corpus->n_tokens}};

    enum lmq_status status = open_writer(&writer, err);
    if (status == LMQ_OK)
        status = write_all(&writer, corpus, err);
    close_writer(&writer);
    corpus->crc = crc_of(corpus);
    return status;
}
