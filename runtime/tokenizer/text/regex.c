/*
 * regex.c - patterns of tokenizers, through PCRE2.
 */
#include "config.h"

#include "runtime/tokenizer/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/text/utf8.h"

#define MAX_PATTERN_SIZE 65536

/* Steps of a match from one position: enough for most, and for a run of
 * several megabytes of white space with the usual patterns. Nobody looks at
 * the clock within a match, and a step of PCRE2's interpreter may cost a
 * thousand of compiled code, so one gets from the few to the many by degrees.
 */
#define FEW_STEPS 20000
#define STEPS_GROW 4
#define MANY_STEPS (FEW_STEPS * 1024)
#define HEAP_LIMIT_KIB ((uint32_t)256 * 1024)
#define JIT_STACK_MIN ((size_t)64 * 1024)
#define JIT_STACK_MAX ((size_t)32 * 1024 * 1024)

/* Positions that are tried between two looks at the clock, and matches that
 * were found at once. */
#define WINDOW 256
#define CLOCK_EVERY 1024

#define SECONDS_PER_TEXT 2.0
#define SECONDS_PER_BYTE 2e-6

struct lmq_regex {
    pcre2_code *code;
};

/* ---- Opening ---- */

static enum lmq_status
compile(struct lmq_regex *regex, const struct lmq_buffer *pattern,
        struct lmq_error *err)
{
    int code;
    PCRE2_SIZE at;
    /* ^ and $ are ends of lines in Oniguruma's Ruby syntax. */
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                       PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE |
                       PCRE2_USE_OFFSET_LIMIT;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);

    if (context == NULL)
        return lmq_fail_nomem(err);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    regex->code = pcre2_compile(
        pattern->n == 0 ? (PCRE2_SPTR) "" : pattern->bytes, pattern->n,
        options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (regex->code == NULL) {
        PCRE2_UCHAR text[120];
        if (code == PCRE2_ERROR_HEAP_FAILED)
            return lmq_fail_nomem(err);
        pcre2_get_error_message(code, text, sizeof(text));
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the pattern '%.*s' is not understood: %s",
                        (int)(pattern->n < 200 ? pattern->n : 200),
                        (const char *)pattern->bytes, (const char *)text);
    }
    /* Without it matching is slower and the same. */
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    return LMQ_OK;
}

static enum lmq_status
open_pattern(const struct lmq_buffer *pattern, struct lmq_regex **out,
             struct lmq_error *err)
{
    *out = NULL;
    struct lmq_regex *regex = calloc(1, sizeof(*regex));
    if (regex == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = compile(regex, pattern, err);
    if (status != LMQ_OK) {
        lmq_regex_close(regex);
        return status;
    }
    *out = regex;
    return LMQ_OK;
}

enum lmq_status
lmq_regex_open(struct lmq_chars pattern, struct lmq_regex **out,
               struct lmq_error *err)
{
    struct lmq_buffer text = { 0 };

    *out = NULL;
    if (pattern.n > MAX_PATTERN_SIZE)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "a pattern is %zu bytes, the limit is %d", pattern.n,
                        MAX_PATTERN_SIZE);
    enum lmq_status status = lmq_pattern_translate(pattern, &text, err);
    if (status == LMQ_OK)
        status = open_pattern(&text, out, err);
    lmq_buffer_free(&text);
    return status;
}

enum lmq_status
lmq_regex_open_literal(struct lmq_chars text, struct lmq_regex **out,
                       struct lmq_error *err)
{
    struct lmq_buffer quoted = { 0 };

    *out = NULL;
    if (text.n == 0 || text.n > MAX_PATTERN_SIZE / 4)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "a text to look for is %zu bytes", text.n);
    if (lmq_utf8_valid(text.p, text.n) != text.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a text to look for is not UTF-8");
    for (size_t i = 0; i < text.n && !quoted.has_failed; i++) {
        unsigned char c = text.p[i];
        bool is_plain = c >= 0x80 || (c >= '0' && c <= '9') ||
                        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        c < 0x20;
        if (!is_plain)
            lmq_buffer_append(&quoted, "\\", 1);
        lmq_buffer_append(&quoted, &c, 1);
    }
    enum lmq_status status = quoted.has_failed
                                 ? lmq_fail_nomem(err)
                                 : open_pattern(&quoted, out, err);
    lmq_buffer_free(&quoted);
    return status;
}

void
lmq_regex_close(struct lmq_regex *regex)
{
    if (regex == NULL)
        return;
    pcre2_code_free(regex->code);
    free(regex);
}

/* ---- Matching ---- */

struct lmq_regex_scratch {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack; /* when the usual one was too small */
    double end;             /* of the processor time that there is */
    unsigned n_matches;     /* since the last look at the clock */
};

/* Of this thread: neighbours do not count. */
static double
processor_seconds(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct lmq_regex_scratch *
lmq_regex_scratch_new(size_t n)
{
    struct lmq_regex_scratch *scratch = calloc(1, sizeof(*scratch));

    if (scratch == NULL)
        return NULL;
    scratch->data = pcre2_match_data_create(1, NULL);
    scratch->limits = pcre2_match_context_create(NULL);
    scratch->end = processor_seconds() + SECONDS_PER_TEXT +
                   SECONDS_PER_BYTE * (double)n;
    if (scratch->data == NULL || scratch->limits == NULL) {
        lmq_regex_scratch_free(scratch);
        return NULL;
    }
    pcre2_set_heap_limit(scratch->limits, HEAP_LIMIT_KIB);
    return scratch;
}

void
lmq_regex_scratch_free(struct lmq_regex_scratch *scratch)
{
    if (scratch == NULL)
        return;
    pcre2_match_data_free(scratch->data);
    pcre2_match_context_free(scratch->limits);
    pcre2_jit_stack_free(scratch->stack);
    free(scratch);
}

/* A larger stack for compiled code; false if there is one already. */
static bool
grow_stack(struct lmq_regex_scratch *scratch)
{
    if (scratch->stack != NULL)
        return false;
    scratch->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX,
                                            NULL);
    if (scratch->stack != NULL)
        pcre2_jit_stack_assign(scratch->limits, NULL, scratch->stack);
    return scratch->stack != NULL;
}

/* A match that begins at one of the positions at..last. Compiled code counts
 * the steps of each position, the interpreter those of all. */
static int
match_window(const struct lmq_regex *regex, struct lmq_regex_scratch *scratch,
             struct lmq_chars text, size_t at, size_t last, uint32_t steps)
{
    uint32_t options = PCRE2_NO_UTF_CHECK;

    pcre2_set_offset_limit(scratch->limits, last);
    pcre2_set_match_limit(scratch->limits, steps);
    int code = pcre2_match(regex->code, text.p, text.n, at, options,
                           scratch->data, scratch->limits);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT && grow_stack(scratch))
        code = pcre2_match(regex->code, text.p, text.n, at, options,
                           scratch->data, scratch->limits);
    if (code != PCRE2_ERROR_JIT_STACKLIMIT)
        return code;
    /* The compiled code has a small stack, the interpreter the heap. */
    return pcre2_match(regex->code, text.p, text.n, at,
                       options | PCRE2_NO_JIT, scratch->data,
                       scratch->limits);
}

static enum lmq_status
fail_costs(const char *what, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "a pattern of the tokenizer needs too %s for this text", what);
    lmq_hint(err, "usual patterns need a hundredth of what is allowed");
    return LMQ_ERR_UNSUPPORTED;
}

enum lmq_status
lmq_regex_match(const struct lmq_regex *regex,
                struct lmq_regex_scratch *scratch, struct lmq_chars text,
                size_t at, bool *found, size_t *start, size_t *stop,
                struct lmq_error *err)
{
    uint32_t steps = FEW_STEPS;
    size_t window = WINDOW;

    *found = false;
    while (at <= text.n) {
        /* A match that was found at once cost next to nothing. */
        if (scratch->n_matches++ % CLOCK_EVERY == 0 &&
            processor_seconds() > scratch->end)
            return fail_costs("much time", err);
        size_t last = text.n - at < window ? text.n : at + window - 1;
        int code = match_window(regex, scratch, text, at, last, steps);
        if (code >= 0) {
            const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(scratch->data);
            /* \K is refused, so a match does not end before it starts. */
            *start = ends[0];
            *stop = ends[1];
            *found = true;
            return LMQ_OK;
        }
        scratch->n_matches = 0;
        if (code == PCRE2_ERROR_MATCHLIMIT && steps < MANY_STEPS) {
            steps *= STEPS_GROW;
            window = 1;
            continue;
        }
        if (code == PCRE2_ERROR_NOMEMORY)
            return lmq_fail_nomem(err);
        if (code != PCRE2_ERROR_NOMATCH)
            return fail_costs(code == PCRE2_ERROR_MATCHLIMIT ? "many steps"
                                                             : "much memory",
                              err);
        at = last + 1;
        while (at < text.n && (text.p[at] & 0xc0) == 0x80)
            at++;
        steps = FEW_STEPS;
        window = WINDOW;
    }
    return LMQ_OK;
}
