/*
 * form.c - Unicode's normalization forms, through utf8proc.
 *
 * utf8proc sorts combining marks by exchanging neighbours, which is quadratic
 * for a text that is all marks; here each run is sorted by counting.
 */
#include "config.h"

#include "runtime/tokenizer/text/form.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/text/utf8.h"

struct codes {
    utf8proc_int32_t *codes, *sorted;
    size_t n, capacity, sorted_capacity;
};

static int
decompose(struct lmq_chars text, utf8proc_option_t options, struct codes *c)
{
    for (size_t at = 0; at < text.n;) {
        size_t n = lmq_utf8_length(text.p + at, text.n - at);
        utf8proc_int32_t code =
            (utf8proc_int32_t)lmq_utf8_decode(text.p + at, n);
        utf8proc_int32_t parts[32];
        int boundary = 0;
        utf8proc_ssize_t n_parts =
            utf8proc_decompose_char(code, parts, 32, options, &boundary);
        if (n_parts < 0 || n_parts > 32) {
            parts[0] = code;
            n_parts = 1;
        }
        /* One more than needed: the composer may look behind the end. */
        if (lmq_mem_grow(&c->codes, &c->capacity, c->n + (size_t)n_parts + 1,
                         sizeof(c->codes[0])) != 0)
            return -1;
        memcpy(c->codes + c->n, parts, (size_t)n_parts * sizeof(parts[0]));
        c->n += (size_t)n_parts;
        at += n;
    }
    return 0;
}

static unsigned
combining_class(utf8proc_int32_t code)
{
    utf8proc_propval_t class = utf8proc_get_property(code)->combining_class;

    return class >= 0 && class < 256 ? (unsigned)class : 0;
}

/* A stable sort of n marks by their class. */
static int
sort_run(struct codes *c, size_t start, size_t n)
{
    size_t at[257] = { 0 };
    utf8proc_int32_t *run = c->codes + start;

    if (lmq_mem_grow(&c->sorted, &c->sorted_capacity, n,
                     sizeof(c->sorted[0])) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        at[combining_class(run[i]) + 1]++;
    for (size_t class = 1; class < 257; class++)
        at[class] += at[class - 1];
    for (size_t i = 0; i < n; i++)
        c->sorted[at[combining_class(run[i])]++] = run[i];
    memcpy(run, c->sorted, n * sizeof(run[0]));
    return 0;
}

static int
sort_marks(struct codes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t n = 0;
        while (i + n < c->n && combining_class(c->codes[i + n]) != 0)
            n++;
        if (n > 1 && sort_run(c, i, n) != 0)
            return -1;
        i += n;
    }
    return 0;
}

/* utf8proc takes it for the lack of a final consonant, and drops it behind a
 * syllable. Nothing is composed with it, so that no stretch goes across it. */
#define NO_FINAL 0x11a7

static size_t
compose(utf8proc_int32_t *codes, size_t n)
{
    utf8proc_ssize_t n_composed = utf8proc_normalize_utf32(
        codes, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);

    return n_composed >= 0 && (size_t)n_composed <= n ? (size_t)n_composed : n;
}

int
lmq_form_apply(struct lmq_chars text, bool is_compatible, bool is_composed,
               struct lmq_buffer *out)
{
    struct codes c = { 0 };
    utf8proc_option_t options =
        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
        (is_compatible ? UTF8PROC_COMPAT : (utf8proc_option_t)0);
    size_t n_plain = 0;

    while (n_plain < text.n && text.p[n_plain] < 0x80)
        n_plain++;
    if (n_plain == text.n)
        return lmq_buffer_append(out, text.p, text.n);
    int failed = decompose(text, options, &c);
    if (failed == 0)
        failed = sort_marks(&c);
    for (size_t at = 0, end; at < c.n && failed == 0; at = end) {
        for (end = at + 1; end < c.n && c.codes[end] != NO_FINAL;)
            end++;
        size_t stop = is_composed ? at + compose(c.codes + at, end - at) : end;
        for (; at < stop && failed == 0; at++)
            failed = lmq_buffer_append_char(out, (uint32_t)c.codes[at]);
    }
    free(c.codes);
    free(c.sorted);
    return failed;
}
