/*
 * calibrator.c - from a text and a plan to a calibrator: all that can be wrong
 * is found before the work.
 */
#include "config.h"

#include "convert/calibrate/calibrator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/size.h"
#include "base/threads/threads.h"
#include "convert/calibrate/mendable.h"
#include "convert/calibrate/own_text.h"
#include "convert/calibrate/walk.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/work.h"

#define DEFAULT_CONTEXT 512
#define DEFAULT_TOKENS 32768
#define DEFAULT_DAMPING 0.01
#define DEFAULT_MEND 0.4

/* ---- The text ---- */

/* As many windows as are wanted, from everywhere in the text. */
static void
thin_out(struct lmq_corpus *corpus, size_t n_tokens)
{
    size_t n = corpus->n_windows, at = 0, wanted;

    if (corpus->n_tokens <= n_tokens)
        return;
    /* Of short documents windows are shorter; both are below 2^31. */
    wanted = lmq_size_max((size_t)((uint64_t)n * n_tokens / corpus->n_tokens),
                          1);
    corpus->n_windows = 0;
    for (size_t i = 0; i < wanted; i++) {
        struct lmq_window window =
            corpus->windows[(size_t)((uint64_t)i * n / wanted)];
        if (i > 0 && at + window.n > n_tokens)
            break;
        memmove(corpus->tokens + at, corpus->tokens + window.first,
                window.n * sizeof(*corpus->tokens));
        window.first = at;
        at += window.n;
        corpus->windows[corpus->n_windows++] = window;
    }
    corpus->n_tokens = at;
}

static json_t *
describe_texts(const struct lmq_texts *texts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < texts->n; i++) {
        const struct lmq_text *text = &texts->texts[i];
        json_t *one = json_object();
        lmq_put(&one, "name", lmq_json_text(lmq_path_base(text->path)));
        lmq_put(&one, "size", lmq_json_size(text->n));
        lmq_put(&one, "crc32",
                lmq_json_crc(lmq_crc32(0, text->bytes, text->n)));
        lmq_append(&list, one);
    }
    return list;
}

static json_t *
describe(const struct lmq_calibrator *calibrator,
         const struct lmq_calibration *given, const struct lmq_texts *texts)
{
    json_t *json = json_object();

    lmq_put(&json, "texts", describe_texts(texts));
    lmq_put(&json, "tokens", lmq_json_size(calibrator->corpus.n_tokens));
    lmq_put(&json, "windows", lmq_json_size(calibrator->corpus.n_windows));
    lmq_put(&json, "ctx", lmq_json_size(given->context));
    lmq_put(&json, "split_documents", json_boolean(given->splits_documents));
    lmq_put(&json, "damping", lmq_json_number(calibrator->damping));
    lmq_put(&json, "mend", lmq_json_number(calibrator->mend));
    return json;
}

static struct lmq_own_text
own_text_of(const struct lmq_calibrator *calibrator,
            const struct lmq_calibration *given)
{
    return (struct lmq_own_text){
        .model = calibrator->model,
        .tokenizer = calibrator->tokenizer,
        .n_tokens = given->n_tokens,
        .context = given->context,
        .threads = given->threads,
    };
}

static enum lmq_status
cut_texts(struct lmq_calibrator *calibrator,
          const struct lmq_calibration *given, const struct lmq_texts *texts,
          struct lmq_error *err)
{
    const struct lmq_protocol protocol = {
        .context = given->context,
        .stride = given->context,
        .splits_documents = given->splits_documents,
    };
    enum lmq_status status =
        lmq_corpus_from_texts(calibrator->tokenizer, texts, &protocol,
                              &calibrator->corpus, err);

    if (status == LMQ_OK)
        thin_out(&calibrator->corpus, given->n_tokens);
    return status;
}

/* What is read; of what is to be written as much as is known before. */
static enum lmq_status
make_corpus(struct lmq_calibrator *calibrator, struct lmq_plan *plan,
            const struct lmq_calibration *given,
            const struct lmq_progress *progress, struct lmq_error *err)
{
    const struct lmq_own_text own = own_text_of(calibrator, given);
    struct lmq_texts texts;

    if (given->context < 2 || given->context > LMQ_MAX_CONTEXT)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".context is %zu, expected 2 to %d",
                        given->context, LMQ_MAX_CONTEXT);
    if (given->writes_text && given->n_tokens < 2)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "from one token nothing is learnt: expected 2 or more "
                        "(.calibration_tokens)");
    enum lmq_status status =
        lmq_texts_read(given->texts, given->n, progress, &texts, err);
    if (status != LMQ_OK)
        return status;
    status = given->writes_text
                 ? lmq_own_text_lay_out(&own, &calibrator->corpus, err)
                 : cut_texts(calibrator, given, &texts, err);
    if (status == LMQ_OK) /* a dry run says so, too */
        status = lmq_work_check(calibrator->model, 1,
                                lmq_walk_longest(&calibrator->corpus), err);
    if (status == LMQ_OK) {
        if (given->context > calibrator->model->hparams.context)
            lmq_notes_add(&plan->notes, LMQ_LONG_WINDOWS, given->context,
                          calibrator->model->hparams.context,
                          "the checkpoint");
        plan->calibration = describe(calibrator, given, &texts);
        if (plan->calibration == NULL)
            status = lmq_fail_nomem(err);
    }
    lmq_texts_free(&texts);
    return status;
}

static enum lmq_status
write_text(struct lmq_calibrator *calibrator, struct lmq_plan *plan,
           const struct lmq_calibration *given,
           const struct lmq_progress *progress, struct lmq_error *err)
{
    const struct lmq_own_text own = own_text_of(calibrator, given);
    enum lmq_status status =
        lmq_own_text_check(&own, &calibrator->corpus, err);

    if (status == LMQ_OK && !given->is_dry)
        status = lmq_own_text_write(&own, progress, &calibrator->corpus, err);
    if (status != LMQ_OK)
        return status;
    lmq_put(&plan->calibration, "own_text",
            lmq_json_crc(calibrator->corpus.crc));
    return plan->calibration == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* ---- Room ---- */

/* What the largest take. */
struct sizes {
    size_t widest; /* columns of a matrix */
    double sums;   /* of an input */
    double layer;  /* while it is worked on: as it is read, its integers twice,
                      their scales */
};

static double
sums_of(const struct lmq_calibrator *calibrator,
        const struct lmq_matrix *matrix)
{
    bool is_output;
    size_t n_rows =
        calibrator->mend > 0
            ? lmq_mendable(&calibrator->model->hparams,
                           &matrix->tensor->place, matrix->n_cols, &is_output)
            : 0;

    return lmq_hessian_bytes(matrix->n_cols) +
           lmq_mend_bytes(matrix->n_cols, n_rows);
}

static struct sizes
measure(const struct lmq_calibrator *calibrator)
{
    const struct lmq_model *model = calibrator->model;
    struct sizes sizes = {.widest = 1};

    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        double sum = 0;
        for (size_t j = 0; j < model->layers[i].n_matrices; j++) {
            const struct lmq_matrix *matrix = model->layers[i].matrices[j];
            sizes.widest = lmq_size_max(sizes.widest, matrix->n_cols);
            sizes.sums = fmax(sizes.sums, sums_of(calibrator, matrix));
            sum += (double)matrix->n_rows * (double)matrix->n_cols *
                   (2.25 + (matrix->is_copied ? 4 : 0));
        }
        sizes.layer = fmax(sizes.layer, sum);
    }
    return sizes;
}

/* Doubles of a thread that adds up: tokens as they are, and what they have
 * drifted by. */
static size_t
buffer_of(size_t widest)
{
    return 2 * lmq_hessian_buffer(widest);
}

static bool
make_quantizer(void *state, const void *context)
{
    struct lmq_quantizer *quantizer = state;
    const size_t *widest = context;

    quantizer->x =
        lmq_mem_aligned(*widest, LMQ_FEEDBACK_ROWS * sizeof(float));
    quantizer->offsets =
        lmq_mem_aligned(lmq_mend_room(*widest), sizeof(double));
    return quantizer->x != NULL && quantizer->offsets != NULL &&
           lmq_feedback_room_init(&quantizer->room, *widest);
}

static void
clear_quantizer(void *state)
{
    struct lmq_quantizer *quantizer = state;

    lmq_mem_free(quantizer->x);
    lmq_mem_free(quantizer->offsets);
    lmq_scratch_free(&quantizer->scratch);
    lmq_feedback_room_free(&quantizer->room);
}

static enum lmq_status
check_memory(struct lmq_calibrator *calibrator, const struct sizes *sizes,
             int threads, struct lmq_error *err)
{
    double own = (double)calibrator->n_buffers *
                 (8 * (double)(buffer_of(sizes->widest) +
                               lmq_mend_room(sizes->widest)) +
                  lmq_feedback_room_bytes(sizes->widest));
    double walk = lmq_walk_bytes(calibrator->model, &calibrator->corpus,
                                 threads, calibrator->mend > 0);
    double least = sizes->layer + own + walk + sizes->sums;

    calibrator->bytes = least;
    if (least <= lmq_mem_limit())
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_NOMEM, 0,
             "calibrating takes %.1f GB, more than the %.1f GB that there are: "
             "%.1f GB for what %zu columns are multiplied with, %.1f GB for "
             "%zu tokens, %.1f GB for a layer",
             1e-9 * least, 1e-9 * lmq_mem_limit(), 1e-9 * sizes->sums,
             sizes->widest, 1e-9 * walk, calibrator->corpus.n_tokens,
             1e-9 * sizes->layer);
    lmq_hint(err, "a smaller .calibration_tokens, or .method search without a "
                  "text");
    return LMQ_ERR_NOMEM;
}

static enum lmq_status
make_room(struct lmq_calibrator *calibrator, int threads,
          struct lmq_error *err)
{
    struct sizes sizes = measure(calibrator);

    calibrator->n_buffers = (size_t)lmq_threads(threads, 256);
    enum lmq_status status =
        check_memory(calibrator, &sizes, threads, err);
    if (status != LMQ_OK)
        return status;
    calibrator->buffers = calloc(calibrator->n_buffers, sizeof(double *));
    if (calibrator->buffers == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < calibrator->n_buffers; i++) {
        calibrator->buffers[i] =
            lmq_mem_aligned(buffer_of(sizes.widest), sizeof(double));
        if (calibrator->buffers[i] == NULL)
            return lmq_fail_nomem(err);
    }
    return lmq_workers_open(&calibrator->workers, threads, 256,
                            sizeof(struct lmq_quantizer), make_quantizer,
                            clear_quantizer, &sizes.widest, err);
}

/* ---- All of it ---- */

/* Rows that are quantized, of the layers in front of `end`. */
static uint64_t
count_rows(const struct lmq_plan *plan, size_t end)
{
    uint64_t n = 0;

    for (size_t i = 0; i < plan->n_records; i++)
        if (plan->records[i].encoding == LMQ_ENCODING_Q8 &&
            plan->records[i].place.layer >= 0 &&
            (size_t)plan->records[i].place.layer < end)
            n += plan->records[i].n_rows;
    return n;
}

/* Whether something of a layer is to be learnt. */
static bool
is_new(const struct lmq_plan *plan, size_t layer)
{
    for (size_t i = 0; i < plan->n_parts; i++) {
        const struct lmq_record *record =
            &plan->records[plan->parts[i].record];
        if (record->place.layer == (int32_t)layer &&
            record->encoding == LMQ_ENCODING_Q8 && !plan->parts[i].is_done)
            return true;
    }
    return false;
}

/* Once through each layer and the head, and once more to learn; and once as the
 * checkpoint has them. */
void
lmq_calibrator_expect(struct lmq_plan *plan, size_t end)
{
    struct lmq_calibrator *calibrator = plan->calibrator;
    size_t n_layers = calibrator->model->hparams.n_layers;
    size_t n_goes = calibrator->mend > 0 ? 2 * end : end;

    for (size_t i = 0; i < lmq_size_min(end, n_layers); i++)
        n_goes += is_new(plan, i);
    calibrator->counter = (struct lmq_counter){
        .stage = "calibrating",
        .total = (uint64_t)calibrator->corpus.n_tokens * n_goes +
                 count_rows(plan, end)};
}

/* Only who rounds with feedback can make up for it. */
static double
mend_of(const struct lmq_plan *plan, const struct lmq_calibration *given)
{
    for (size_t i = 0; i < plan->n_records; i++)
        if (plan->records[i].encoding == LMQ_ENCODING_Q8 &&
            plan->records[i].quant.method == LMQ_METHOD_GPTQ)
            return given->mend == 0 ? DEFAULT_MEND : fmax(given->mend, 0);
    return 0;
}

static struct lmq_calibration
fill_in(const struct lmq_plan *plan, const struct lmq_calibration *given)
{
    struct lmq_calibration all = *given;

    if (all.n_tokens == 0)
        all.n_tokens = DEFAULT_TOKENS;
    if (all.context == 0)
        all.context = lmq_size_min(DEFAULT_CONTEXT,
                                   plan->checkpoint->hparams.context);
    if (!(all.damping > 0))
        all.damping = DEFAULT_DAMPING;
    return all;
}

/* What a layer sees each time would have to be put together. */
static enum lmq_status
check_loops(const struct lmq_hparams *h, struct lmq_error *err)
{
    return lmq_loops(h) == 1
               ? LMQ_OK
               : lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "a model that goes %zu times through its layers "
                          "cannot be calibrated",
                          lmq_loops(h));
}

enum lmq_status
lmq_calibrator_open(struct lmq_plan *plan,
                    const struct lmq_calibration *options,
                    const struct lmq_progress *progress, struct lmq_error *err)
{
    const struct lmq_calibration given = fill_in(plan, options);
    struct lmq_calibrator *calibrator = calloc(1, sizeof(*calibrator));

    plan->calibrator = calibrator;
    plan->calibrated = calloc(plan->n_records + 1, sizeof(*plan->calibrated));
    if (calibrator == NULL || plan->calibrated == NULL)
        return lmq_fail_nomem(err);
    calibrator->takes = calloc(plan->n_records + 1, sizeof(bool));
    if (calibrator->takes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < plan->n_records; i++)
        calibrator->takes[i] = plan->takes[i];
    calibrator->damping = given.damping;
    calibrator->mend = mend_of(plan, &given);
    calibrator->threads = given.threads;
    calibrator->peers = given.peers;
    enum lmq_status status = lmq_model_open_lazily(
        plan->checkpoint, &calibrator->model, err);
    if (status == LMQ_OK)
        status = check_loops(&calibrator->model->hparams, err);
    if (status == LMQ_OK)
        status = lmq_tokenizer_from_checkpoint(plan->checkpoint,
                                               &calibrator->tokenizer, err);
    if (status == LMQ_OK)
        status = make_corpus(calibrator, plan, &given, progress, err);
    if (status == LMQ_OK)
        status = make_room(calibrator, given.threads, err);
    if (status == LMQ_OK && given.writes_text)
        status = write_text(calibrator, plan, &given, progress, err);
    return status;
}

void
lmq_calibrator_close(struct lmq_calibrator *calibrator)
{
    if (calibrator == NULL)
        return;
    for (size_t i = 0; i < calibrator->n_buffers &&
                       calibrator->buffers != NULL; i++)
        lmq_mem_free(calibrator->buffers[i]);
    free((void *)calibrator->buffers);
    lmq_workers_close(&calibrator->workers);
    lmq_walk_free(&calibrator->walk);
    lmq_tokenizer_close(calibrator->tokenizer);
    lmq_model_close(calibrator->model);
    lmq_corpus_free(&calibrator->corpus);
    free(calibrator->takes);
    free(calibrator);
}
