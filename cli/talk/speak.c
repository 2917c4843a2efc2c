/*
 * speak.c - generates token after token and shows what they say.
 */
#include "config.h"

#include "cli/talk/speak.h"

#include <inttypes.h>
#include <stdio.h>

/* Tokens at the beginning that stay when the context is full: attention rests
 * on them whatever they say. */
#define SINKS 4

/* Tokens of the first step; the next ones are longer until they take a tenth of
 * a second. */
#define STEP 64
#define STEP_MOST 4096
#define STEP_SECONDS 0.1

enum lmq_status
read_tokens(struct run *run, const int32_t *ids, size_t n, size_t *n_read,
            struct lmq_error *err)
{
    size_t step = STEP, room = lmq_session_context(run->session) -
                               lmq_session_position(run->session);
    enum lmq_status status = LMQ_OK;

    *n_read = 0;
    if (n == 0 || n > room) /* which says what is wrong */
        status = lmq_session_eval(run->session, ids, n, err);
    while (*n_read < n && status == LMQ_OK && !run->is_interrupted) {
        double began = seconds_now();
        size_t now = n - *n_read < step ? n - *n_read : step;
        status = lmq_session_eval(run->session, ids + *n_read, now, err);
        if (status == LMQ_OK)
            *n_read += now;
        if (step < STEP_MOST && seconds_now() - began < STEP_SECONDS)
            step *= 2;
        run->is_interrupted |=
            run->progress.report(run->progress.context, "", 0, 0) != 0;
    }
    return status;
}

/* Shows what a token adds to the text, or its id; id -1: what was held back. */
static enum lmq_status
show_token(struct run *run, int32_t id, struct lmq_error *err)
{
    bool has_ids = has_option(run->arguments, "ids");
    const char *text;
    size_t n;

    if (has_ids) {
        if (id >= 0)
            printf("%s%" PRId32, run->n_made == 0 ? "" : " ", id);
        run->is_interrupted |= !flush_output();
    }
    if (run->stops.is_silent && run->stops.n_texts == 0)
        return LMQ_OK;
    enum lmq_status status =
        lmq_detokenizer_next(run->detokenizer, id, &text, &n, err);
    if (status == LMQ_OK)
        run->is_interrupted |= !print_until_stop(&run->stops, text, n);
    if (id < 0)
        end_held(&run->stops);
    if (!run->stops.is_silent)
        run->is_interrupted |= !flush_output();
    return status;
}

static bool
ends(const struct run *run, int32_t id)
{
    if (has_option(run->arguments, "ignore-eos"))
        return false;
    return run->chat != NULL ? lmq_chat_ends(run->chat, id)
                             : lmq_tokenizer_ends(run->tokenizer, id);
}

/* Room for one token more: half of the context is forgotten, but never behind
 * the back of somebody who talks. */
static enum lmq_status
make_room(struct run *run, struct lmq_error *err)
{
    if (lmq_session_position(run->session) < lmq_session_context(run->session))
        return LMQ_OK;
    if (run->chat == NULL)
        return lmq_session_slide(run->session, SINKS, err);
    run->is_full = true;
    return LMQ_OK;
}

enum lmq_status
generate(struct run *run, struct lmq_error *err)
{
    double began = seconds_now();
    enum lmq_status status = LMQ_OK;

    run->n_made = 0;
    run->is_ended = run->is_full = false;
    while (run->n_made < run->n_most && status == LMQ_OK) {
        int32_t id = lmq_sampler_pick(run->sampler,
                                      lmq_session_logits(run->session, 0));
        run->is_ended = ends(run, id);
        run->is_interrupted |=
            run->progress.report(run->progress.context, "", 0, 0) != 0;
        if (run->is_ended || run->is_interrupted)
            break;
        status = show_token(run, id, err);
        run->made[run->n_made++] = id;
        lmq_sampler_accept(run->sampler, id);
        if (run->n_made == run->n_most || run->stops.found != NULL)
            break;
        if (status == LMQ_OK)
            status = make_room(run, err);
        if (run->is_full)
            break;
        if (status == LMQ_OK)
            status = lmq_session_eval(run->session, &id, 1, err);
    }
    run->seconds += seconds_now() - began;
    return status == LMQ_OK ? show_token(run, -1, err) : status;
}
