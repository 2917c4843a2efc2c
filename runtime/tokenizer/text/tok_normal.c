/*
 * tok_normal.c - the steps that change the text before it is taken apart.
 *
 * Each step takes a whole section and appends the result. What is no UTF-8
 * passes through, so that byte tokens can still carry it. Unicode forms are
 * form.c's business.
 */
#include "config.h"

#include "runtime/tokenizer/text/tok_normal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/text/form.h"

/* A grapheme as long as this or longer is looked up by characters only. */
#define MAX_GRAPHEME 6

void
lmq_normal_free(struct lmq_normal_step *step)
{
    lmq_buffer_free(&step->text);
    lmq_regex_close(step->regex);
    free(step->charsmap.bytes);
    lmq_trie_free(&step->kept);
    memset(step, 0, sizeof(*step));
}

/* ---- Steps over runs of valid UTF-8 ---- */

static enum lmq_status
replace_run(const struct lmq_normal_step *step, struct lmq_chars run,
            struct lmq_regex_scratch *scratch, struct lmq_buffer *out,
            struct lmq_error *err)
{
    size_t from = 0, at = 0;
    bool was_found = false;

    while (at <= run.n) {
        bool found;
        size_t start, stop;
        enum lmq_status status = lmq_regex_match(
            step->regex, scratch, run, at, &found, &start, &stop, err);
        if (status != LMQ_OK)
            return status;
        if (!found)
            break;
        /* Nothing right behind a match belongs to it. */
        bool is_part = was_found && stop == from;
        was_found = true;
        if (!is_part &&
            (lmq_buffer_append(out, run.p + from, start - from) != 0 ||
             lmq_buffer_append(out, step->text.bytes, step->text.n) != 0))
            return lmq_buffer_fail(out, run.n, err);
        from = stop;
        at = stop;
        if (start == stop)
            at += stop < run.n
                      ? lmq_utf8_length(run.p + stop, run.n - stop)
                      : 1;
    }
    return lmq_buffer_append(out, run.p + from, run.n - from) == 0
               ? LMQ_OK
               : lmq_buffer_fail(out, run.n, err);
}

static enum lmq_status
replace_all(const struct lmq_normal_step *step,
            struct lmq_regex_scratch *scratch, struct lmq_chars text,
            struct lmq_buffer *out, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0; at < text.n && status == LMQ_OK;) {
        size_t n = lmq_utf8_valid(text.p + at, text.n - at);
        size_t n_raw = lmq_utf8_invalid(text.p + at + n, text.n - at - n);
        if (n > 0)
            status = replace_run(step, lmq_chars(text.p + at, n), scratch,
                                 out, err);
        if (status == LMQ_OK &&
            lmq_buffer_append(out, text.p + at + n, n_raw) != 0)
            status = lmq_buffer_fail(out, text.n, err);
        at += n + n_raw;
    }
    return status;
}

/* SentencePiece's rules as Hugging Face applies them: by grapheme, the
 * shortest rule that matches its beginning replacing the whole. */
static int
map_grapheme(const struct lmq_charsmap *charsmap, struct lmq_chars grapheme,
             struct lmq_buffer *out)
{
    struct lmq_chars to;

    if (grapheme.n < MAX_GRAPHEME &&
        lmq_charsmap_find(charsmap, grapheme, false, &to) > 0)
        return lmq_buffer_append(out, to.p, to.n);
    for (size_t at = 0; at < grapheme.n;) {
        size_t n = lmq_utf8_length(grapheme.p + at, grapheme.n - at);
        struct lmq_chars part = lmq_chars(grapheme.p + at, n);
        if (lmq_charsmap_find(charsmap, part, false, &to) > 0)
            part = to;
        if (lmq_buffer_append(out, part.p, part.n) != 0)
            return -1;
        at += n;
    }
    return 0;
}

static int
map_graphemes(const struct lmq_charsmap *charsmap, struct lmq_chars run,
              struct lmq_buffer *out)
{
    size_t start = 0;
    utf8proc_int32_t state = 0, before = 0;

    for (size_t at = 0; at < run.n;) {
        size_t n = lmq_utf8_length(run.p + at, run.n - at);
        utf8proc_int32_t code =
            (utf8proc_int32_t)lmq_utf8_decode(run.p + at, n);
        if (at > 0 && utf8proc_grapheme_break_stateful(before, code, &state)) {
            if (map_grapheme(charsmap, lmq_chars(run.p + start, at - start),
                             out) != 0)
                return -1;
            start = at;
        }
        before = code;
        at += n;
    }
    return map_grapheme(charsmap, lmq_chars(run.p + start, run.n - start),
                        out);
}

/* ---- Steps over characters ---- */

static int
append_lower(uint32_t code, struct lmq_buffer *out)
{
    /* The one letter whose lower case is two code points anywhere. */
    if (code == 0x130)
        return lmq_buffer_append(out, "i\xcc\x87", 3);
    return lmq_buffer_append_char(
        out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

static int
append_without_mark(uint32_t code, struct lmq_buffer *out)
{
    utf8proc_category_t category =
        utf8proc_category((utf8proc_int32_t)code);

    if (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
        category == UTF8PROC_CATEGORY_ME)
        return 0;
    return lmq_buffer_append_char(out, code);
}

static int
append_nmt(uint32_t code, struct lmq_buffer *out)
{
    if ((code >= 1 && code <= 8) || code == 0x0b ||
        (code >= 0x0e && code <= 0x1f) || code == 0x7f || code == 0x8f ||
        code == 0x9f)
        return 0;
    if (code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d ||
        code == 0x1680 || (code >= 0x200b && code <= 0x200f) ||
        code == 0x2028 || code == 0x2029 || code == 0x2581 ||
        code == 0xfeff || code == 0xfffd)
        code = ' ';
    return lmq_buffer_append_char(out, code);
}

static int
each_character(struct lmq_chars run, struct lmq_buffer *out,
               int (*append)(uint32_t code, struct lmq_buffer *out))
{
    for (size_t at = 0; at < run.n;) {
        size_t n = lmq_utf8_length(run.p + at, run.n - at);
        if (append(lmq_utf8_decode(run.p + at, n), out) != 0)
            return -1;
        at += n;
    }
    return 0;
}

static int
apply_to_run(const struct lmq_normal_step *step, struct lmq_chars run,
             struct lmq_buffer *out)
{
    switch (step->kind) {
    case LMQ_NORMAL_FORM:
        return lmq_form_apply(run, step->is_compatible, step->is_composed,
                              out);
    case LMQ_NORMAL_LOWER:
        return each_character(run, out, append_lower);
    case LMQ_NORMAL_STRIP_ACCENTS:
        return each_character(run, out, append_without_mark);
    case LMQ_NORMAL_NMT:
        return each_character(run, out, append_nmt);
    default:
        return map_graphemes(&step->charsmap, run, out);
    }
}

static enum lmq_status
apply_to_runs(const struct lmq_normal_step *step, struct lmq_chars text,
              struct lmq_buffer *out, struct lmq_error *err)
{
    for (size_t at = 0; at < text.n;) {
        size_t n = lmq_utf8_valid(text.p + at, text.n - at);
        size_t n_raw = lmq_utf8_invalid(text.p + at + n, text.n - at - n);
        if ((n > 0 &&
             apply_to_run(step, lmq_chars(text.p + at, n), out) != 0) ||
            lmq_buffer_append(out, text.p + at + n, n_raw) != 0)
            return lmq_buffer_fail(out, text.n, err);
        at += n + n_raw;
    }
    return LMQ_OK;
}

static struct lmq_chars
strip(struct lmq_chars text, bool left, bool right)
{
    while (left && text.n > 0) {
        size_t n = lmq_utf8_length(text.p, text.n);
        if (n == 0 || !lmq_is_space(lmq_utf8_decode(text.p, n)))
            break;
        text.p += n;
        text.n -= n;
    }
    while (right && text.n > 0) {
        size_t n = 1;
        while (n < 4 && n < text.n && (text.p[text.n - n] & 0xc0) == 0x80)
            n++;
        const unsigned char *p = text.p + text.n - n;
        if (lmq_utf8_length(p, n) != n || !lmq_is_space(lmq_utf8_decode(p, n)))
            break;
        text.n -= n;
    }
    return text;
}

/* ---- SentencePiece's normalizer ---- */

/* The next bytes of the text that are treated as one and what they become. */
static size_t
next_rule(const struct lmq_normal_step *step, struct lmq_chars text,
          struct lmq_chars *to)
{
    int32_t id;
    size_t n = lmq_trie_longest(&step->kept, text.p, text.n, &id);

    if (n == 0)
        n = lmq_charsmap_find(&step->charsmap, text, true, to);
    else
        *to = lmq_chars(text.p, n);
    if (n == 0) {
        n = lmq_utf8_length(text.p, text.n);
        if (n == 0)
            n = 1;
        *to = lmq_chars(text.p, n);
    }
    return n;
}

static bool
begins_anything(const struct lmq_normal_step *step, unsigned char a,
                unsigned char b)
{
    struct lmq_trie_walk walk = lmq_trie_begin(&step->kept);

    return (lmq_trie_step(&step->kept, &walk, a) &&
            lmq_trie_step(&step->kept, &walk, b)) ||
           lmq_charsmap_begins(&step->charsmap,
                               lmq_chars((unsigned char[]){a, b}, 2));
}

void
lmq_normal_find_plain(struct lmq_normal_step *step)
{
    for (unsigned char a = 0; a < 128; a++) {
        struct lmq_chars to;
        bool is_plain = next_rule(step, lmq_chars(&a, 1), &to) == 1 &&
                        to.p == &a && !(step->removes_extra_spaces && a == ' ');
        int32_t id;
        is_plain = is_plain && lmq_trie_longest(&step->kept, &a, 1, &id) == 0;
        for (unsigned char b = 0; b < 128 && is_plain; b++)
            is_plain = !begins_anything(step, a, b);
        step->is_plain[a] = is_plain;
    }
}

/* Bytes to begin with that stand for themselves: each is plain, and so is what
 * comes behind the last one. */
static size_t
plain_bytes(const struct lmq_normal_step *step, struct lmq_chars text)
{
    size_t n = 0;

    while (n + 1 < text.n && text.p[n] < 128 && text.p[n + 1] < 128 &&
           step->is_plain[text.p[n]])
        n++;
    return n;
}

static struct lmq_chars
skip_leading_spaces(const struct lmq_normal_step *step, struct lmq_chars text)
{
    while (text.n > 0) {
        struct lmq_chars to;
        size_t n = next_rule(step, text, &to);
        if (!lmq_chars_equal(to, lmq_chars(" ", 1)))
            break;
        text.p += n;
        text.n -= n;
    }
    return text;
}

static int
append_escaped(const struct lmq_normal_step *step, struct lmq_chars text,
               struct lmq_buffer *out)
{
    size_t from = 0;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != ' ')
            continue;
        if (lmq_buffer_append(out, text.p + from, i - from) != 0 ||
            lmq_buffer_append(out, step->text.bytes, step->text.n) != 0)
            return -1;
        from = i + 1;
    }
    return lmq_buffer_append(out, text.p + from, text.n - from);
}

static enum lmq_status
sentencepiece(const struct lmq_normal_step *step, struct lmq_chars text,
              struct lmq_buffer *out, struct lmq_error *err)
{
    const struct lmq_buffer *space = &step->text;
    bool removes = step->removes_extra_spaces, was_space = removes;
    size_t begin = out->n;

    if (removes)
        text = skip_leading_spaces(step, text);
    if (text.n == 0)
        return LMQ_OK;
    if (step->adds_prefix &&
        lmq_buffer_append(out, space->bytes, space->n) != 0)
        return lmq_buffer_fail(out, text.n, err);
    while (text.n > 0) {
        size_t n = plain_bytes(step, text);
        struct lmq_chars to = lmq_chars(text.p, n);
        if (n == 0)
            n = next_rule(step, text, &to);
        while (was_space && to.n > 0 && to.p[0] == ' ') {
            to.p++;
            to.n--;
        }
        if (append_escaped(step, to, out) != 0)
            return lmq_buffer_fail(out, text.n, err);
        if (to.n > 0)
            was_space = removes && to.p[to.n - 1] == ' ';
        text.p += n;
        text.n -= n;
    }
    while (removes && out->n - begin >= space->n &&
           memcmp(out->bytes + out->n - space->n, space->bytes, space->n) == 0)
        out->n -= space->n;
    return LMQ_OK;
}

/* ---- All of them ---- */

enum lmq_status
lmq_normal_apply(const struct lmq_normal_step *step,
                 struct lmq_regex_scratch *scratch, struct lmq_chars text,
                 struct lmq_buffer *out, struct lmq_error *err)
{
    switch (step->kind) {
    case LMQ_NORMAL_PREPEND:
        if (text.n > 0 &&
            lmq_buffer_append(out, step->text.bytes, step->text.n) != 0)
            return lmq_buffer_fail(out, text.n, err);
        break;
    case LMQ_NORMAL_STRIP:
        text = strip(text, step->left, step->right);
        break;
    case LMQ_NORMAL_REPLACE:
        return replace_all(step, scratch, text, out, err);
    case LMQ_NORMAL_SENTENCEPIECE:
        return sentencepiece(step, text, out, err);
    default:
        return apply_to_runs(step, text, out, err);
    }
    return lmq_buffer_append(out, text.p, text.n) == 0
               ? LMQ_OK
               : lmq_buffer_fail(out, text.n, err);
}
