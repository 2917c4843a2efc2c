/*
 * session.c - allocates what a sequence needs, and evaluates tokens.
 */
#include "config.h"

#include "runtime/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/size.h"
#include "base/threads/threads.h"
#include "formats/grams/grams.h"
#include "formats/model/rope_scaling.h"
#include "runtime/forward.h"
#include "runtime/layer/norm.h"
#include "runtime/rope.h"

#define DEFAULT_CONTEXT 4096
#define DEFAULT_BATCH 128

enum lmq_status
lmq_activations_parse(const struct lmq_model *model, const char *text,
                      enum lmq_activations *activations,
                      struct lmq_error *err)
{
    int value = LMQ_ACTIVATIONS_Q16;
    enum lmq_status status = lmq_names_parse(
        lmq_activations_names, "activations",
        text == NULL ? model->activations : text, &value, err);

    *activations = (enum lmq_activations)value;
    return status;
}

/* ---- Making and freeing ---- */

static enum lmq_status
make_cache(struct lmq_session *session, enum lmq_kv_type type,
           struct lmq_error *err)
{
    const struct lmq_model *model = session->model;
    const struct lmq_work *work = &session->work;

    const size_t n_layers = model->hparams.n_layers;
    const size_t n = lmq_loops(&model->hparams) * n_layers;

    session->kv = calloc(n, sizeof(*session->kv));
    if (session->kv == NULL)
        return lmq_fail_nomem(err);
    double bytes = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += lmq_kv_bytes(model, i % n_layers, type, work->context);
        least += lmq_kv_bytes(model, i % n_layers, LMQ_KV_Q8, 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (lmq_kv_init(&session->kv[i], model, i % n_layers, type,
                        work->context))
            continue;
        lmq_fail(err, LMQ_ERR_NOMEM, 0,
                 "no memory for a context of %zu positions (%.1f MB)",
                 work->context, 1e-6 * bytes);
        if (bytes < 2 * least)
            lmq_hint(err, "the states of its recurrent layers alone take %.1f "
                          "MB, whatever the context",
                     1e-6 * least);
        else
            lmq_hint(err,
                     "a smaller context (.context) or smaller keys and values "
                     "(.kv f16, f16-q8, q8) need less");
        return LMQ_ERR_NOMEM;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_session_new(const struct lmq_model *model,
                const struct lmq_session_options *given,
                struct lmq_session **out, struct lmq_error *err)
{
    struct lmq_session_options own;
    const struct lmq_session_options *options = &own;
    enum lmq_activations activations = LMQ_ACTIVATIONS_Q16;
    enum lmq_kv_type kv_type;

    *out = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_session_options, &own, given, err);
    if (status != LMQ_OK)
        return status;
    size_t context = options->context != 0
                         ? options->context
                         : lmq_size_min(model->hparams.context,
                                        DEFAULT_CONTEXT);
    size_t batch = options->batch != 0 ? options->batch : DEFAULT_BATCH;
    batch = lmq_size_min(batch, context);
    if (lmq_threads_check(options->threads, err) != LMQ_OK)
        return LMQ_ERR_ARG;
    if (context > LMQ_MAX_CONTEXT)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        ".context is %zu, expected %d at most", context,
                        LMQ_MAX_CONTEXT);
    status = lmq_activations_parse(model, options->activations, &activations,
                                   err);
    if (status == LMQ_OK)
        status = lmq_kv_parse(options->kv, &kv_type, err);
    if (status != LMQ_OK)
        return status;
    size_t n_logits;
    struct lmq_session *session = calloc(1, sizeof(*session));
    if (session == NULL)
        return lmq_fail_nomem(err);
    session->model = model;
    status = lmq_work_init(&session->work, model, batch, context, activations,
                           options->threads, err);
    if (status == LMQ_OK)
        status = make_cache(session, kv_type, err);
    session->n_logits_most = options->all_logits ? batch : 1;
    session->logits =
        lmq_size_mul(session->n_logits_most, model->hparams.vocab_size,
                     &n_logits)
            ? lmq_mem_aligned(n_logits, sizeof(float))
            : NULL;
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
    const struct lmq_hparams *h = &session->model->hparams;
    for (size_t i = 0;
         session->kv != NULL && i < lmq_loops(h) * h->n_layers; i++)
        lmq_kv_free(&session->kv[i]);
    lmq_work_free(&session->work);
    lmq_mem_free(session->logits);
    free(session->history);
    free(session->kv);
    free(session);
}

/* ---- Evaluating ---- */

static enum lmq_status
fail_nonfinite(const struct lmq_session *session, size_t position,
               int32_t token, const char *where, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_NONFINITE, 0,
             "computes NaN or infinity, first at position %zu (token %" PRId32
             "), in %s",
             position, token, where);
    if (session->kv[0].type != LMQ_KV_F32)
        lmq_hint(err, "keys and values may be too large for their type: "
                      ".kv=f32 has room for all");
    else
        lmq_hint(err, "its weights or its description may be damaged: verify "
                      "checks a container, inspect .tensor NAME .has_stats a "
                      "tensor of any");
    lmq_error_in(err, session->model->checkpoint->path);
    return LMQ_ERR_NONFINITE;
}

static bool
has_states(const struct lmq_session *session)
{
    const struct lmq_hparams *h = &session->model->hparams;

    return h->n_delta_value_heads > 0 || lmq_has_pools(h) ||
           lmq_has_grams(h);
}

/* Evaluates the tokens again, one by one: within a batch a NaN shows at
 * earlier positions too. Only the last n_logits go through the last layer,
 * whose keys and values are there, and are asked for their logits. */
static enum lmq_status
find_nonfinite(struct lmq_session *session, const int32_t *tokens, size_t n,
               size_t n_logits, struct lmq_error *err)
{
    const struct lmq_model *model = session->model;
    const struct lmq_hparams *h = &model->hparams;
    const size_t n_steps = lmq_loops(h) * h->n_layers;
    struct lmq_work *work = &session->work;
    size_t dim = h->dim;
    char where[64];

    for (size_t t = 0; t < n; t++) {
        size_t position = session->position + t;
        bool is_wanted = t >= n - n_logits;
        lmq_forward_embed(model, work, tokens + t, 1, position);
        bool is_finite = lmq_is_finite(work->x, dim);
        snprintf(where, sizeof(where), "the embedding");
        for (size_t step = 0; step < n_steps && is_finite; step++) {
            size_t i = step % h->n_layers, first = step - i;
            if (!is_wanted && first + h->n_layers == n_steps &&
                lmq_layer_is_late(h, i))
                break;
            if (i == 0 && step > 0)
                lmq_norm_again(model, work->x, 1);
            lmq_forward_layer(model, i, lmq_kv_of(h, session->kv + first, i),
                              work, 1, position);
            is_finite = lmq_is_finite(work->x, dim) &&
                        lmq_is_finite(work->streams, lmq_streams_width(h));
            snprintf(where, sizeof(where), "layer %zu of 0 to %" PRIu32, i,
                     h->n_layers - 1);
        }
        if (is_finite && is_wanted) {
            lmq_forward_head(model, work, 1, session->logits);
            is_finite =
                lmq_is_finite(session->logits, model->hparams.vocab_size);
            snprintf(where, sizeof(where), "the logits");
        }
        if (!is_finite)
            return fail_nonfinite(session, position, tokens[t], where, err);
    }
    return fail_nonfinite(session, session->position, tokens[0], "a batch",
                          err);
}

/* What layers remember in another form than keys and values cannot be taken
 * back: it becomes that behind the tokens of the history anew. */
static void
restore_states(struct lmq_session *session)
{
    const struct lmq_model *model = session->model;
    size_t step;

    for (size_t at = 0; at < session->position; at += step) {
        step = lmq_size_min(session->position - at, session->work.batch);
        lmq_forward_embed(model, &session->work, session->history + at, step,
                          at);
        lmq_forward_layers(model, session->kv, &session->work, step, 0, at);
    }
    session->is_stale = false;
}

/* Adds the logits after the last n_kept tokens to those that are there. */
static enum lmq_status
eval_batch(struct lmq_session *session, const int32_t *tokens, size_t n,
           size_t n_kept, struct lmq_error *err)
{
    const struct lmq_model *model = session->model;
    float *logits =
        session->logits + session->n_logits * model->hparams.vocab_size;

    double start = lmq_clock_seconds();
    lmq_forward_embed(model, &session->work, tokens, n, session->position);
    bool is_finite = lmq_forward_layers(model, session->kv, &session->work, n,
                                        n_kept, session->position);
    if (n_kept > 0) {
        lmq_forward_head(model, &session->work, n_kept, logits);
        is_finite &=
            lmq_is_finite(logits, n_kept * model->hparams.vocab_size);
    }
    if (n == 1 && n_kept == 1)
        lmq_reading_learn(&session->work.reading,
                          lmq_clock_seconds() - start);
    if (!is_finite) {
        session->n_logits = 0;
        if (has_states(session))
            restore_states(session);
        enum lmq_status status =
            find_nonfinite(session, tokens, n, n_kept, err);
        session->is_stale = has_states(session);
        return status;
    }
    session->n_logits += n_kept;
    memmove(session->history + session->position, tokens,
            n * sizeof(*tokens));
    session->position += n;
    return LMQ_OK;
}

/* In batches, of which the last has all tokens whose logits are kept. */
static enum lmq_status
eval_batches(struct lmq_session *session, const int32_t *tokens, size_t n,
             size_t n_kept, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t step; n > 0 && status == LMQ_OK; n -= step, tokens += step) {
        step = n <= session->work.batch
                   ? n
                   : lmq_size_min(n - n_kept, session->work.batch);
        status =
            eval_batch(session, tokens, step, step == n ? n_kept : 0, err);
    }
    return status;
}

/* As the end of one sequence. Past its original context longrope turns all
 * positions by other factors: then what is cached is evaluated anew. */
static enum lmq_status
eval_sequence(struct lmq_session *session, const int32_t *tokens, size_t n,
              size_t n_kept, struct lmq_error *err)
{
    const struct lmq_hparams *h = &session->model->hparams;
    size_t length = session->position + n, n_cached = session->position;
    bool is_other = lmq_rope_is_long(h, length) !=
                    lmq_rope_is_long(h, session->work.length);
    enum lmq_status status = LMQ_OK;

    session->work.length = length;
    if (session->is_stale && !is_other)
        restore_states(session);
    if (is_other) {
        session->is_stale = false;
        session->position = 0;
        status = eval_batches(session, session->history, n_cached, 0, err);
    }
    return status == LMQ_OK ? eval_batches(session, tokens, n, n_kept, err)
                            : status;
}

/* The logits after a token are those of the sequence that ends with it. If
 * such are kept of sequences on both sides of the original context, there are
 * two to evaluate. */
static enum lmq_status
eval_all(struct lmq_session *session, const int32_t *tokens, size_t n,
         struct lmq_error *err)
{
    const struct lmq_hparams *h = &session->model->hparams;
    size_t end = session->position + n;
    size_t n_kept = lmq_size_min((n - 1) % session->work.batch + 1,
                                 session->n_logits_most);
    enum lmq_status status = LMQ_OK;

    session->n_logits = 0;
    if (lmq_rope_is_long(h, end) && !lmq_rope_is_long(h, end - n_kept + 1)) {
        size_t n_long = end - (size_t)lmq_rope_original_context(h);
        status = eval_sequence(session, tokens, n - n_long, n_kept - n_long,
                               err);
        tokens += n - n_long;
        n = n_kept = n_long;
    }
    return status == LMQ_OK ? eval_sequence(session, tokens, n, n_kept, err)
                            : status;
}

enum lmq_status
lmq_session_eval(struct lmq_session *session, const int32_t *tokens, size_t n,
                 struct lmq_error *err)
{
    size_t room = session->work.context - session->position;

    if (n == 0) {
        lmq_fail(err, LMQ_ERR_ARG, 0, "there are no tokens");
        lmq_hint(err, "not each model has one that begins a text; a space is "
                      "enough to begin with");
        return LMQ_ERR_ARG;
    }
    if (n > room) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 "%zu tokens do not fit: %zu of %zu positions are free", n,
                 room, session->work.context);
        if (session->work.context < lmq_hparams_end(&session->model->hparams))
            lmq_hint(err, "a larger context (.context) has more room");
        return LMQ_ERR_ARG;
    }
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 ||
            (uint32_t)tokens[i] >= session->model->hparams.vocab_size)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "token %" PRId32 " is not in the vocabulary of %u",
                            tokens[i], session->model->hparams.vocab_size);
    return eval_all(session, tokens, n, err);
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
    if (position < session->position) {
        session->position = position;
        session->is_stale = has_states(session) && position > 0;
        session->n_logits = 0;
    }
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
     * what is left, keys are rotated to where they stand now. */
    memmove(session->history + sinks, session->history + n - (kept - sinks),
            (kept - sinks) * sizeof(*session->history));
    session->position = 0;
    return lmq_session_eval(session, session->history, kept, err);
}
