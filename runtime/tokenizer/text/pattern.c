/*
 * pattern.c - Oniguruma's patterns as PCRE2's.
 *
 * Most of what tokenizers use is the same in both. Not the same: \s (PCRE2
 * adds U+180E), \w and \b (what is a letter), script names (PCRE2 means script
 * extensions), and rare constructs, which are refused.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/text/regex.h"

#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define WORD_IN_CLASS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
/* Oniguruma's outside of brackets: of the numbers that are neither digits nor
 * letters those that Latin-1 has. */
#define WORD WORD_IN_CLASS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

struct translation {
    struct lmq_chars in;
    size_t at;
    struct lmq_buffer *out;
    unsigned in_class; /* how deep in classes */
    const char *refused;
};

static void
put(struct translation *t, const char *text)
{
    lmq_buffer_append(t->out, text, strlen(text));
}

static void
copy(struct translation *t, size_t n)
{
    lmq_buffer_append(t->out, t->in.p + t->at, n);
    t->at += n;
}

/* The byte `ahead` of the current one, 0 behind the end. */
static unsigned char
peek(const struct translation *t, size_t ahead)
{
    return t->in.n - t->at > ahead ? t->in.p[t->at + ahead] : 0;
}

static void
replace(struct translation *t, const char *outside, const char *in_class)
{
    const char *text = t->in_class ? in_class : outside;

    if (text == NULL) {
        t->refused = "an escape in a class";
        return;
    }
    put(t, text);
    t->at += 2;
}

/* Neither a general category, of one or two letters, nor a script. */
static bool
is_other_property(const unsigned char *name, size_t n)
{
    static const char *const names[] = {"Any", "Alphabetic", "Uppercase",
                                        "Lowercase", "Ideographic"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == n && memcmp(name, names[i], n) == 0)
            return true;
    return false;
}

/* \p{Lu} and \p{Han}: scripts are written so that PCRE2 does not take their
 * extensions. */
static void
translate_property(struct translation *t)
{
    size_t n = 0;
    const unsigned char *name = t->in.p + t->at + 3;

    if (peek(t, 2) != '{') { /* without, \\pL is the letters pL */
        t->at++;
        copy(t, 1);
        return;
    }
    while (peek(t, 3 + n) != '}') {
        unsigned char c = peek(t, 3 + n);
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                         c == '_' || c == '&';
        if (!is_letter) {
            t->refused = "a property";
            return;
        }
        n++;
    }
    copy(t, 3);
    if (n > 2 && !is_other_property(name, n))
        put(t, "sc:");
    copy(t, n + 1);
}

/* \uHHHH and \xHH, \x{H...}: exact forms, since the engines differ in what
 * they make of others. */
static void
translate_code(struct translation *t)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    bool is_braced = peek(t, 1) == 'x' && peek(t, 2) == '{';
    size_t wanted = peek(t, 1) == 'u' ? 4 : 2;
    size_t start = is_braced ? 3 : 2, n = 0;

    while (n < 8 && peek(t, start + n) != 0 &&
           strchr(digits, peek(t, start + n)) != NULL &&
           (is_braced || n < wanted))
        n++;
    if (n == 0 || (is_braced ? peek(t, start + n) != '}' : n != wanted)) {
        t->refused = "a code point";
        return;
    }
    put(t, "\\x{");
    t->at += start;
    copy(t, n);
    put(t, "}");
    if (is_braced)
        t->at++;
}

static void
translate_escape(struct translation *t)
{
    unsigned char c = peek(t, 1);

    switch (c) {
    case 's':
        replace(t, "[" SPACE "]", SPACE);
        break;
    case 'S':
        replace(t, "[^" SPACE "]", NULL);
        break;
    case 'w':
        replace(t, "[" WORD "]", WORD_IN_CLASS);
        break;
    case 'W':
        replace(t, "[^" WORD "]", NULL);
        break;
    case 'b':
        replace(t,
                "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD
                "]))",
                NULL);
        break;
    case 'v':
        replace(t, "\\x{0b}", "\\x{0b}");
        break;
    case 'p':
    case 'P':
        translate_property(t);
        break;
    case 'x':
    case 'u':
        translate_code(t);
        break;
    case 'A':
    case 'z':
    case 'Z':
        if (t->in_class)
            t->refused = "an escape in a class";
        else
            copy(t, 2);
        break;
    default:
        if ((c >= 'a' && c <= 'z' && strchr("adefnrt", c) == NULL) ||
            (c >= 'A' && c <= 'Z' && c != 'D') || (c >= '0' && c <= '9') ||
            c == 0 || c >= 0x80)
            t->refused = "an escape";
        else
            copy(t, 2);
    }
}

/* A class in a class adds what it has: "[a[bc]]" is "[abc]". */
static void
begin_inner_class(struct translation *t)
{
    if (strchr("^:-]", peek(t, 1)) != NULL || t->in.p[t->at - 1] == '-')
        t->refused = "a class in a class";
    t->in_class++;
    t->at++;
}

static void
end_inner_class(struct translation *t)
{
    if (t->in.p[t->at - 1] == '-' || peek(t, 1) == '-')
        t->refused = "a class in a class";
    t->in_class--;
    t->at++;
}

static void
translate_in_class(struct translation *t)
{
    unsigned char c = peek(t, 0);

    if (c == '\\') {
        translate_escape(t);
    } else if (c == '&' && peek(t, 1) == '&') {
        t->refused = "an intersection";
    } else if (c == '[') {
        begin_inner_class(t);
    } else if (c == ']' && t->in_class > 1) {
        end_inner_class(t);
    } else {
        t->in_class -= c == ']';
        copy(t, 1);
    }
}

static void
begin_class(struct translation *t)
{
    size_t n = peek(t, 1) == '^' ? 2 : 1;

    if (peek(t, n) == ']')
        t->refused = "a class that begins with ]";
    else
        copy(t, n);
    t->in_class = 1;
}

static void
translate_group(struct translation *t)
{
    /* Not "?i)": its reach differs where there are alternatives. */
    static const char *const allowed[] = { "?:",  "?=", "?!",  "?<=",
                                           "?<!", "?>", "?i:", "?-i:" };

    if (peek(t, 1) == '?') {
        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
            size_t n = strlen(allowed[i]);
            if (t->in.n - t->at > n &&
                memcmp(t->in.p + t->at + 1, allowed[i], n) == 0) {
                copy(t, n + 1);
                return;
            }
        }
        t->refused = "a group";
    } else if (peek(t, 1) == '*') {
        t->refused = "a verb";
    } else {
        copy(t, 1);
    }
}

/* x{2,3}+ is possessive in PCRE2 and Rust, a repeat of repeats in Ruby, where
 * x{1,3}+ is x+; x{2}? may be there or not in Ruby. */
static void
translate_brace(struct translation *t)
{
    size_t n = 1;

    while ((peek(t, n) >= '0' && peek(t, n) <= '9') || peek(t, n) == ',')
        n++;
    if (n > 1 && peek(t, n) == '}') {
        bool is_exact = memchr(t->in.p + t->at, ',', n) == NULL;
        bool is_any = peek(t, 1) == '1' && peek(t, 2) == ',' &&
                      peek(t, 3) != '0' && peek(t, n + 1) == '+';
        if (is_any) {
            put(t, "+");
            t->at += n + 2;
        } else if (peek(t, 1) == ',' || peek(t, n + 1) == '+' ||
            (peek(t, n + 1) == '?' && is_exact))
            t->refused = "a repeat";
        else
            copy(t, n + 1);
    } else {
        copy(t, 1);
    }
}

enum lmq_status
lmq_pattern_translate(struct lmq_chars pattern, struct lmq_buffer *out,
                      struct lmq_error *err)
{
    struct translation t = { pattern, 0, out, 0, NULL };

    if (lmq_utf8_valid(pattern.p, pattern.n) != pattern.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "a pattern is not UTF-8");
    while (t.at < pattern.n && !out->has_failed && t.refused == NULL) {
        if (t.in_class > 0)
            translate_in_class(&t);
        else if (peek(&t, 0) == '\\')
            translate_escape(&t);
        else if (peek(&t, 0) == '[')
            begin_class(&t);
        else if (peek(&t, 0) == '(')
            translate_group(&t);
        else if (peek(&t, 0) == '{')
            translate_brace(&t);
        else
            copy(&t, 1);
    }
    if (out->has_failed)
        return lmq_fail_nomem(err);
    if (t.refused != NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the pattern '%.*s' has %s that is not supported "
                        "(at byte %zu)",
                        (int)(pattern.n < 200 ? pattern.n : 200),
                        (const char *)pattern.p, t.refused, t.at);
    return LMQ_OK;
}
