/*
 * tok_regex.c - patterns of tokenizers, through PCRE2.
 */
#include "config.h"

#include "runtime/tok_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"

#define MAX_PATTERN_SIZE 65536

/* Steps of one match. A run of a megabyte of white space takes a few million
 * with the usual patterns. */
#define MATCH_LIMIT 50000000
#define HEAP_LIMIT_KIB (256 * 1024)

struct lmq_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
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
                       PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);

    if (context == NULL)
        return lmq_fail_nomem(err);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    regex->code = pcre2_compile(pattern->bytes, pattern->n, options, &code,
                                &at, context);
    pcre2_compile_context_free(context);
    if (regex->code == NULL) {
        PCRE2_UCHAR text[120];
        pcre2_get_error_message(code, text, sizeof(text));
        return lmq_fail(err,
                        code == PCRE2_ERROR_NOMEMORY ? LMQ_ERR_NOMEM
                                                     : LMQ_ERR_UNSUPPORTED,
                        0, "the pattern '%.*s' is not understood: %s",
                        (int)(pattern->n < 200 ? pattern->n : 200),
                        (const char *)pattern->bytes, (const char *)text);
    }
    /* Without it matching is slower and the same. */
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    regex->limits = pcre2_match_context_create(NULL);
    if (regex->limits == NULL)
        return lmq_fail_nomem(err);
    pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
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
    int failed = 0;

    *out = NULL;
    if (text.n == 0 || text.n > MAX_PATTERN_SIZE / 4)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "a text to look for is %zu bytes", text.n);
    if (lmq_utf8_valid(text.p, text.n) != text.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a text to look for is not UTF-8");
    for (size_t i = 0; i < text.n && failed == 0; i++) {
        unsigned char c = text.p[i];
        bool is_plain = c >= 0x80 || (c >= '0' && c <= '9') ||
                        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        c < 0x20;
        if (!is_plain)
            failed |= lmq_buffer_append(&quoted, "\\", 1);
        failed |= lmq_buffer_append(&quoted, &c, 1);
    }
    enum lmq_status status = failed != 0 ? lmq_fail_nomem(err)
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
    pcre2_match_context_free(regex->limits);
    free(regex);
}

/* ---- Matching ---- */

/* struct lmq_regex_scratch is PCRE2's match data under our name. */

struct lmq_regex_scratch *
lmq_regex_scratch_new(void)
{
    return (struct lmq_regex_scratch *)pcre2_match_data_create(1, NULL);
}

void
lmq_regex_scratch_free(struct lmq_regex_scratch *scratch)
{
    pcre2_match_data_free((pcre2_match_data *)scratch);
}

enum lmq_status
lmq_regex_match(const struct lmq_regex *regex,
                struct lmq_regex_scratch *scratch, struct lmq_chars text,
                size_t at, bool *found, size_t *start, size_t *stop,
                struct lmq_error *err)
{
    pcre2_match_data *data = (pcre2_match_data *)scratch;
    int code = pcre2_match(regex->code, text.p, text.n, at,
                           PCRE2_NO_UTF_CHECK, data, regex->limits);

    /* The compiled code has a small stack, the interpreter the heap. */
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(regex->code, text.p, text.n, at,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                           regex->limits);
    *found = code >= 0;
    if (code >= 0) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
        /* \K is refused, so a match does not end before it starts. */
        *start = ends[0];
        *stop = ends[1];
        return LMQ_OK;
    }
    if (code == PCRE2_ERROR_NOMATCH)
        return LMQ_OK;
    if (code == PCRE2_ERROR_NOMEMORY)
        return lmq_fail_nomem(err);
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "a pattern of the tokenizer needs too many steps for this "
                    "text (PCRE2 says %d)", code);
}
