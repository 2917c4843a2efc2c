/*
 * session.c - allocates what a sequence needs, and evaluates tokens.
 */
#include "config.h"

#include "runtime/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/threads.h"
#include "quantize/group.h"
#include "runtime/attention.h"
#include "runtime/forward.h"

#define DEFAULT_CONTEXT 4096
#define DEFAULT_BATCH 128
#define MAX_THREADS 256

/* ---- Work ---- */

/* The widest operand of any product. */
static size_t
widest_operand(const struct lmq_hparams *h)
{
    size_t q = (size_t)h->n_heads * h->head_dim, widest = h->dim;

    widest = q > widest ? q : widest;
    return h->hidden_dim > widest ? h->hidden_dim : widest;
}

static bool
make_thread(const struct lmq_model *model, size_t widest,
            struct lmq_thread_work *thread)
{
    size_t dim = model->hparams.head_dim;

    thread->queries =
        lmq_mem_aligned(LMQ_ATTENTION_QUERIES * dim, sizeof(float));
    thread->mixed =
        lmq_mem_aligned(LMQ_ATTENTION_QUERIES * dim, sizeof(float));
    thread->scores = lmq_mem_aligned(
        LMQ_ATTENTION_QUERIES * LMQ_ATTENTION_BLOCK, sizeof(float));
    thread->scratch = lmq_mem_aligned(LMQ_SCRATCH_BYTES, 1);
    if (model->is_int8)
        thread->widened =
            lmq_mem_aligned(LMQ_TILE_ROWS * widest, sizeof(float));
    return thread->queries != NULL && thread->mixed != NULL &&
           thread->scores != NULL && thread->scratch != NULL &&
           (!model->is_int8 || thread->widened != NULL);
}

enum lmq_status
lmq_work_init(struct lmq_work *work, const struct lmq_model *model,
              size_t batch, size_t context, enum lmq_row_type kv_type,
              enum lmq_activations activations, int threads,
              struct lmq_error *err)
{
    const struct lmq_hparams *h = &model->hparams;
    size_t q = (size_t)h->n_heads * h->head_dim;
    size_t kv = (size_t)h->n_kv_heads * h->head_dim;
    size_t widest = widest_operand(h);
    /* Enough for any group: the smallest have the most scales, the largest
     * the most padding. */
    size_t packed = model->is_int8
                        ? lmq_batch_bytes(batch, widest + LMQ_GROUP_MAX,
                                          LMQ_GROUP_MIN)
                        : 1;

    *work = (struct lmq_work){.batch = batch,
                              .n_threads = lmq_threads(threads, MAX_THREADS),
                              .activations = activations,
                              .kv_type = kv_type,
                              .context = context};
    const struct {
        float **buffer;
        size_t width;
    } buffers[] = {
        {&work->x, h->dim},          {&work->norm, h->dim},
        {&work->q, q},               {&work->k, kv},
        {&work->v, kv},              {&work->attention, q},
        {&work->out, h->dim},        {&work->gate, h->hidden_dim},
        {&work->up, h->hidden_dim},  {&work->cosines, h->head_dim / 2},
        {&work->sines, h->head_dim / 2},
    };
    work->packed = packed == 0 ? NULL : lmq_mem_aligned(packed, 1);
    work->threads =
        calloc((size_t)work->n_threads, sizeof(*work->threads));
    bool is_complete = work->packed != NULL && work->threads != NULL;
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        size_t n;
        if (!lmq_size_mul(batch, buffers[i].width, &n) ||
            (*buffers[i].buffer = lmq_mem_aligned(n, sizeof(float))) == NULL)
            is_complete = false;
    }
    for (int i = 0; i < work->n_threads && is_complete; i++)
        is_complete = make_thread(model, widest, &work->threads[i]);
    if (!is_complete) {
        lmq_work_free(work);
        return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

void
lmq_work_free(struct lmq_work *work)
{
    for (int i = 0; work->threads != NULL && i < work->n_threads; i++) {
        lmq_mem_free(work->threads[i].queries);
        lmq_mem_free(work->threads[i].mixed);
        lmq_mem_free(work->threads[i].scores);
        lmq_mem_free(work->threads[i].scratch);
        lmq_mem_free(work->threads[i].widened);
    }
    free(work->threads);
    lmq_mem_free(work->packed);
    lmq_mem_free(work->x);
    lmq_mem_free(work->norm);
    lmq_mem_free(work->q);
    lmq_mem_free(work->k);
    lmq_mem_free(work->v);
    lmq_mem_free(work->attention);
    lmq_mem_free(work->out);
    lmq_mem_free(work->gate);
    lmq_mem_free(work->up);
    lmq_mem_free(work->cosines);
    lmq_mem_free(work->sines);
    *work = (struct lmq_work){0};
}

size_t
lmq_kv_bytes(const struct lmq_model *model, enum lmq_row_type type,
             size_t context)
{
    size_t n = lmq_row_bytes(type, model->hparams.head_dim);

    return lmq_size_mul(n, model->hparams.n_kv_heads, &n) &&
                   lmq_size_mul(n, context, &n)
               ? n
               : 0;
}

/* ---- Options ---- */

enum lmq_status
lmq_activations_parse(const struct lmq_model *model, const char *text,
                      enum lmq_activations *activations,
                      struct lmq_error *err)
{
    static const char *const names[] = {"q8", "q16", "f32"};

    if (text == NULL)
        text = model->activations;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *activations = (enum lmq_activations)i;
            return LMQ_OK;
        }
    return lmq_fail(err, LMQ_ERR_ARG, 0,
                    "the activations are '%s', expected q8, q16 or f32", text);
}

enum lmq_status
lmq_kv_parse(const char *text, enum lmq_row_type *type, struct lmq_error *err)
{
    static const struct {
        const char *name;
        enum lmq_row_type type;
    } types[] = {
        {"f32", LMQ_ROW_F32}, {"f16", LMQ_ROW_F16}, {"q8", LMQ_ROW_Q8}};

    *type = LMQ_ROW_F32;
    for (size_t i = 0; text != NULL && i < 3; i++)
        if (strcmp(text, types[i].name) == 0) {
            *type = types[i].type;
            return LMQ_OK;
        }
    return text == NULL ? LMQ_OK
                        : lmq_fail(err, LMQ_ERR_ARG, 0,
                                   "the type of keys and values is '%s', "
                                   "expected f32, f16 or q8",
                                   text);
}

/* ---- Sessions ---- */

static enum lmq_status
make_cache(struct lmq_session *session, struct lmq_error *err)
{
    const struct lmq_model *model = session->model;
    size_t n = lmq_kv_bytes(model, session->work.kv_type,
                            session->work.context);

    session->kv = calloc(model->hparams.n_layers, sizeof(*session->kv));
    if (session->kv == NULL || n == 0)
        return lmq_fail_nomem(err);
    for (uint32_t i = 0; i < model->hparams.n_layers; i++) {
        session->kv[i].keys = lmq_mem_aligned(n, 1);
        session->kv[i].values = lmq_mem_aligned(n, 1);
        if (session->kv[i].keys == NULL || session->kv[i].values == NULL) {
            lmq_fail(err, LMQ_ERR_NOMEM, 0,
                     "no memory for a context of %zu positions (%.1f GB)",
                     session->work.context,
                     2e-9 * (double)n * model->hparams.n_layers);
            lmq_hint(err, "a smaller context (--ctx) or smaller keys and "
                          "values (--kv f16, q8) need less");
            return LMQ_ERR_NOMEM;
        }
    }
    return LMQ_OK;
}

enum lmq_status
lmq_session_new(const struct lmq_model *model,
                const struct lmq_session_options *options,
                struct lmq_session **out, struct lmq_error *err)
{
    static const struct lmq_session_options no_options;
    enum lmq_activations activations = LMQ_ACTIVATIONS_Q16;
    enum lmq_row_type kv_type;

    *out = NULL;
    if (options == NULL)
        options = &no_options;
    size_t context = options->context != 0
                         ? options->context
                         : lmq_size_min(model->hparams.context,
                                        DEFAULT_CONTEXT);
    size_t batch = options->batch != 0 ? options->batch : DEFAULT_BATCH;
    batch = lmq_size_min(batch, context);
    if (context > LMQ_MAX_CONTEXT)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a context of %zu positions is too large", context);
    enum lmq_status status = lmq_activations_parse(
        model, options->activations, &activations, err);
    if (status == LMQ_OK)
        status = lmq_kv_parse(options->kv, &kv_type, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_session *session = calloc(1, sizeof(*session));
    if (session == NULL)
        return lmq_fail_nomem(err);
    session->model = model;
    status = lmq_work_init(&session->work, model, batch, context, kv_type,
                           activations, options->threads, err);
    if (status == LMQ_OK)
        status = make_cache(session, err);
    session->n_logits_most = options->all_logits ? batch : 1;
    session->logits = lmq_mem_aligned(
        session->n_logits_most * model->hparams.vocab_size, sizeof(float));
    session->history = calloc(context, sizeof(*session->history));
    if (status == LMQ_OK &&
        (session->logits == NULL || session->history == NULL))
        status = lmq_fail_nomem(err);
    if (status != LMQ_OK) {
        lmq_session_free(session);
        return status;
    }
    *out = session;
    return LMQ_OK;
}

void
lmq_session_free(struct lmq_session *session)
{
    if (session == NULL)
        return;
    for (uint32_t i = 0;
         session->kv != NULL && i < session->model->hparams.n_layers; i++) {
        lmq_mem_free(session->kv[i].keys);
        lmq_mem_free(session->kv[i].values);
    }
    lmq_work_free(&session->work);
    lmq_mem_free(session->logits);
    free(session->history);
    free(session->kv);
    free(session);
}

static void
eval_batch(struct lmq_session *session, const int32_t *tokens, size_t n,
           bool is_last)
{
    const struct lmq_model *model = session->model;

    lmq_forward_embed(model, &session->work, tokens, n, session->position);
    for (uint32_t i = 0; i < model->hparams.n_layers; i++)
        lmq_forward_layer(model, i, &session->kv[i], &session->work, n,
                          session->position);
    if (is_last) {
        session->n_logits = lmq_size_min(n, session->n_logits_most);
        lmq_forward_head(model, &session->work, n, session->n_logits,
                         session->logits);
    }
    memmove(session->history + session->position, tokens,
            n * sizeof(*tokens));
    session->position += n;
}

enum lmq_status
lmq_session_eval(struct lmq_session *session, const int32_t *tokens, size_t n,
                 struct lmq_error *err)
{
    size_t room = session->work.context - session->position;

    if (n == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there are no tokens");
    if (n > room) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 "%zu tokens do not fit: %zu of %zu positions are free", n,
                 room, session->work.context);
        lmq_hint(err, "a larger context (--ctx) has more room");
        return LMQ_ERR_ARG;
    }
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 ||
            (uint32_t)tokens[i] >= session->model->hparams.vocab_size)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "token %" PRId32 " is not in the vocabulary of %u",
                            tokens[i], session->model->hparams.vocab_size);
    while (n > 0) {
        size_t step = lmq_size_min(n, session->work.batch);
        eval_batch(session, tokens, step, step == n);
        tokens += step;
        n -= step;
    }
    return LMQ_OK;
}

const float *
lmq_session_logits(const struct lmq_session *session, size_t index)
{
    return index < session->n_logits
               ? session->logits + (session->n_logits - 1 - index) *
                                       session->model->hparams.vocab_size
               : NULL;
}

size_t
lmq_session_position(const struct lmq_session *session)
{
    return session->position;
}

size_t
lmq_session_context(const struct lmq_session *session)
{
    return session->work.context;
}

void
lmq_session_rewind(struct lmq_session *session, size_t position)
{
    if (position < session->position)
        session->position = position;
    session->n_logits = 0;
}

enum lmq_status
lmq_session_slide(struct lmq_session *session, size_t n_sinks,
                  struct lmq_error *err)
{
    size_t n = session->position;
    size_t sinks = lmq_size_min(n_sinks, n / 4);
    size_t kept = n / 2;

    if (n < 2)
        return lmq_fail(err, LMQ_ERR_ARG, 0, "there is nothing to forget");
    /* Evaluated anew, so that every position is right: attention moves to
     * what is left, keys turn to where they stand now. */
    memmove(session->history + sinks, session->history + n - (kept - sinks),
            (kept - sinks) * sizeof(*session->history));
    session->position = 0;
    return lmq_session_eval(session, session->history, kept, err);
}
