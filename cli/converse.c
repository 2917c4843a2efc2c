/*
 * converse.c - a conversation: lines in, answers out.
 *
 * Each time the whole conversation is written down anew, and what the session
 * has evaluated already stays: only what is new is computed, whatever the
 * format moved or left out.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/talk/speak.h"

struct talk {
    struct run *run;
    bool is_terminal; /* somebody sits there */
    struct lmq_chat_message *messages; /* the texts and tokens are owned */
    size_t n, capacity;
    int32_t *known; /* what the session has evaluated */
    size_t n_known, n_context;
    char *line; /* as getline() has it */
    const char *stopped; /* the text that ended the last answer, or NULL */
    size_t n_answers, n_read, n_made;
};

/* ---- What was said ---- */

static bool
has_system(const struct talk *talk)
{
    return talk->n > 0 && strcmp(talk->messages[0].role, "system") == 0;
}

static void
forget(struct talk *talk, size_t at, size_t n)
{
    for (size_t i = at; i < at + n; i++) {
        free((char *)talk->messages[i].text);
        free((int32_t *)talk->messages[i].tokens);
    }
    if (n > 0) /* else there may be no list */
        memmove(talk->messages + at, talk->messages + at + n,
            (talk->n - at - n) * sizeof(*talk->messages));
    talk->n -= n;
}

static bool
say(struct talk *talk, struct lmq_chat_message message)
{
    if (talk->n == talk->capacity) {
        size_t capacity = 2 * talk->capacity + 16;
        void *grown =
            realloc(talk->messages, capacity * sizeof(*talk->messages));
        if (grown == NULL) {
            perror("lmquant");
            return false;
        }
        talk->messages = grown;
        talk->capacity = capacity;
    }
    char *text = calloc(message.n + 1, 1);
    int32_t *tokens = message.tokens == NULL
                          ? NULL
                          : calloc(message.n_tokens + 1, sizeof(*tokens));
    if (text == NULL || (tokens == NULL && message.tokens != NULL)) {
        free(text);
        free(tokens);
        perror("lmquant");
        return false;
    }
    if (message.n > 0)
        memcpy(text, message.text, message.n);
    if (tokens != NULL && message.n_tokens > 0)
        memcpy(tokens, message.tokens, message.n_tokens * sizeof(*tokens));
    message.text = text;
    message.tokens = tokens;
    talk->messages[talk->n++] = message;
    return true;
}

/* ---- Asking the model ---- */

/* The conversation as tokens; if it has no room, without its oldest turns. A
 * quarter of the context is left for the answer, unless the question alone
 * needs it. */
static enum lmq_status
write_down(struct talk *talk, int32_t **ids, size_t *n_ids,
           struct lmq_error *err)
{
    size_t n_forgotten = 0, most = talk->n_context - talk->n_context / 4;
    enum lmq_status status;

    for (;;) {
        size_t first = has_system(talk);
        status = lmq_chat_tokens(talk->run->chat, talk->messages, talk->n,
                                 ids, n_ids, err);
        if (status != LMQ_OK || *n_ids <= most || talk->n <= first + 1)
            break;
        lmq_tokens_free(*ids);
        *ids = NULL;
        forget(talk, first, 2); /* a question and its answer */
        n_forgotten++;
    }
    if (n_forgotten > 0)
        print_note(talk->run->arguments,
                   "the context is full: the oldest question%s, with the "
                   "answer%s, %s forgotten",
                   n_forgotten == 1 ? "" : "s", n_forgotten == 1 ? "" : "s",
                   n_forgotten == 1 ? "is" : "are");
    return status;
}

/* Evaluates what the session does not know yet. */
static enum lmq_status
read_on(struct talk *talk, const int32_t *ids, size_t n, struct lmq_error *err)
{
    struct run *run = talk->run;
    double began = seconds_now();
    size_t same = 0, n_read;

    while (same < talk->n_known && same + 1 < n &&
           talk->known[same] == ids[same])
        same++;
    lmq_session_rewind(run->session, same);
    enum lmq_status status =
        read_tokens(run, ids + same, n - same, &n_read, err);
    talk->n_known = same + n_read;
    for (size_t i = same; i < talk->n_known; i++) {
        talk->known[i] = ids[i];
        lmq_sampler_accept(run->sampler, ids[i]);
    }
    talk->n_read += n_read;
    run->prompt_seconds += seconds_now() - began;
    return status;
}

/* All tokens of an answer but perhaps the last one are evaluated. */
static void
remember(struct talk *talk)
{
    size_t n = lmq_session_position(talk->run->session) - talk->n_known;

    memcpy(talk->known + talk->n_known, talk->run->made,
           n * sizeof(*talk->known));
    talk->n_known += n;
}

static enum lmq_status
answer(struct talk *talk, struct lmq_error *err)
{
    struct run *run = talk->run;
    int32_t *ids = NULL;
    size_t n = 0;
    enum lmq_status status = write_down(talk, &ids, &n, err);

    if (status == LMQ_OK && n > talk->n_context) {
        print_error("the question has %zu tokens with all around it, the "
                    "context room for %zu",
                    n, talk->n_context);
        run->is_full = true;
        lmq_tokens_free(ids);
        return LMQ_OK;
    }
    if (status == LMQ_OK)
        status = read_on(talk, ids, n, err);
    lmq_tokens_free(ids);
    if (status != LMQ_OK || run->is_interrupted)
        return status;
    lmq_detokenizer_free(run->detokenizer);
    run->detokenizer = NULL;
    status = lmq_detokenizer_new(run->tokenizer,
                                 lmq_chat_text_flags(run->chat),
                                 &run->detokenizer, err);
    if (status == LMQ_OK)
        status = generate(run, err);
    if (status == LMQ_OK)
        remember(talk);
    talk->stopped = run->stops.found;
    print_held(&run->stops);
    putchar('\n');
    run->is_interrupted |= !flush_output();
    talk->n_made += run->n_made;
    talk->n_answers++;
    if (run->is_full)
        print_note(run->arguments,
                   "the context of %zu is full: the answer ends here",
                   talk->n_context);
    return status;
}

/* ---- Turns ---- */

/* Whether to go on. Somebody at a terminal ends an answer with ^C, and the
 * conversation with ^D. */
static bool
goes_on(struct talk *talk)
{
    struct run *run = talk->run;

    if (!run->is_interrupted)
        return true;
    if (!talk->is_terminal || !forget_interrupt())
        return false;
    run->is_interrupted = false;
    return true;
}

/* What stands before `end`; n if that is not there. The text may hold any
 * byte. */
static size_t
n_before(const char *text, size_t n, const char *end)
{
    const size_t length = strlen(end);

    for (size_t i = 0; i + length <= n; i++)
        if (memcmp(text + i, end, length) == 0)
            return i;
    return n;
}

/* What is shown of the first n tokens of an answer. */
static enum lmq_status
show(const struct run *run, size_t n, char **text, size_t *n_text,
     struct lmq_error *err)
{
    return lmq_detokenize(run->tokenizer, run->made, n,
                          lmq_chat_text_flags(run->chat), text, n_text, err);
}

/* Leaves of an answer what stands before the text that ended it: whole tokens,
 * and of one that has more than that the *text before. */
static enum lmq_status
cut_answer(const struct talk *talk, struct lmq_chat_message *said, char **text,
           struct lmq_error *err)
{
    size_t n_kept, n_shown;
    enum lmq_status status = show(talk->run, said->n_tokens, text, &n_shown,
                                  err);

    n_kept = n_before(*text, n_shown, talk->stopped);
    while (status == LMQ_OK && n_shown > n_kept) {
        char *shown;
        status = show(talk->run, --said->n_tokens, &shown, &n_shown, err);
        lmq_text_free(shown);
    }
    if (status == LMQ_OK) {
        said->text = *text + n_shown;
        said->n = n_kept - n_shown;
    }
    return status;
}

/* As it was generated, but without a text that ended it. */
static bool
keep_answer(struct talk *talk)
{
    const struct run *run = talk->run;
    struct lmq_chat_message said = {"assistant", NULL, 0, run->made,
                                    run->n_made};
    char *text = NULL;
    struct lmq_error err;
    bool is_cut = talk->stopped != NULL;

    if (is_cut && cut_answer(talk, &said, &text, &err) != LMQ_OK) {
        report_error(&err);
        return false;
    }
    bool is_kept = say(talk, said);
    lmq_text_free(text);
    return is_kept;
}

/* One question. *code is the exit code if it does not go on. */
static bool
ask(struct talk *talk, const char *text, size_t n, int *code)
{
    struct run *run = talk->run;
    struct lmq_error err;
    struct lmq_chat_message question = {"user", text, n, NULL, 0};

    *code = EXIT_SYSTEM;
    if (!say(talk, question))
        return false;
    run->n_made = 0;
    run->is_full = false;
    talk->stopped = NULL;
    enum lmq_status status = answer(talk, &err);
    if (status != LMQ_OK) {
        *code = report_error(&err);
        return false;
    }
    if (run->n_made == 0 && run->is_full) { /* there is no room for it */
        forget(talk, talk->n - 1, 1);
        *code = EXIT_USAGE;
        return talk->is_terminal;
    }
    return keep_answer(talk) && goes_on(talk);
}

enum asked {
    ASKED,
    NOT_ASKED, /* ^C: the line is nothing */
    ENDED,     /* the input, or somebody wants an end */
    FAILED     /* errno */
};

/* One line more; false if there is none. Nothing is at work meanwhile that a
 * signal would have to wait for. */
static bool
read_line(struct talk *talk, const char *prompt, char **line,
          size_t *capacity, ssize_t *length)
{
    if (talk->is_terminal)
        fputs(prompt, stderr);
    rest(true);
    errno = 0;
    *length = getline(line, capacity, stdin);
    int code = errno;
    rest(false);
    errno = code;
    return *length >= 0;
}

/* A line, or several of which all but the last end in a backslash; without the
 * line feed. */
static enum asked
read_question(struct talk *talk, size_t *n)
{
    char *more = NULL, *grown = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool is_read;

    *n = 0;
    while ((is_read = read_line(talk, *n == 0 ? "> " : ". ", &more, &capacity,
                                &length))) {
        grown = realloc(talk->line, *n + (size_t)length + 1);
        if (grown == NULL)
            break;
        talk->line = grown;
        memcpy(talk->line + *n, more, (size_t)length + 1);
        *n += (size_t)length;
        if (*n > 0 && talk->line[*n - 1] == '\n')
            --*n;
        if (*n == 0 || talk->line[*n - 1] != '\\' || feof(stdin))
            break;
        talk->line[*n - 1] = '\n';
    }
    int code = errno;
    free(more);
    errno = code;
    if (is_read)
        return grown == NULL ? FAILED : ASKED;
    if (feof(stdin))
        return *n > 0 ? ASKED : ENDED;
    if (code != EINTR)
        return FAILED;
    clearerr(stdin);
    return talk->is_terminal && forget_interrupt() ? NOT_ASKED : ENDED;
}

static int
read_questions(struct talk *talk)
{
    int code = EXIT_DONE;
    size_t n;

    for (;;) {
        enum asked asked = read_question(talk, &n);
        int reason = errno;
        if (asked != ASKED && talk->is_terminal)
            fputc('\n', stderr);
        if (asked == FAILED) {
            print_error("standard input: cannot read: %s", strerror(reason));
            return EXIT_SYSTEM;
        }
        if (asked == ENDED)
            return reason == EINTR ? EXIT_SYSTEM : EXIT_DONE;
        if (talk->is_terminal)
            forget_interrupt(); /* ^C before the line was read ends no answer */
        if (asked == ASKED && n > 0 && !ask(talk, talk->line, n, &code))
            return code;
    }
}

static void
print_summary(const struct talk *talk)
{
    const struct run *run = talk->run;

    if (has_option(run->arguments, "quiet"))
        return;
    fprintf(stderr,
            "answers: %zu; read: %zu token%s, %.1f/s; generated: %zu "
            "token%s, %.1f/s\n",
            talk->n_answers, talk->n_read, plural((double)talk->n_read),
            run->prompt_seconds > 0
                ? (double)talk->n_read / run->prompt_seconds
                : 0,
            talk->n_made, plural((double)talk->n_made),
            run->seconds > 0 ? (double)talk->n_made / run->seconds : 0);
}

int
converse(struct run *run)
{
    const char *system = option_text(run->arguments, "system");
    struct talk talk = {
        .run = run,
        .is_terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO),
        .n_context = lmq_session_context(run->session),
    };
    struct lmq_chat_message first = {
        "system", system, system == NULL ? 0 : strlen(system), NULL, 0};
    int code = EXIT_SYSTEM;
    bool is_open = true;

    talk.known = calloc(talk.n_context, sizeof(*talk.known));
    if (talk.known == NULL) {
        perror("lmquant");
        return EXIT_SYSTEM;
    }
    if (system != NULL)
        is_open = say(&talk, first);
    if (is_open && run->n_text > 0)
        is_open = ask(&talk, run->text, run->n_text, &code);
    if (is_open)
        code = read_questions(&talk);
    if (code == EXIT_DONE || talk.n_answers > 0) /* else nothing was said */
        print_summary(&talk);
    forget(&talk, 0, talk.n);
    free(talk.messages);
    free(talk.known);
    free(talk.line);
    return code;
}
