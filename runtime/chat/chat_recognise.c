/*
 * chat_recognise.c - which row of the table a template belongs to.
 *
 * A template is a text to search, nothing else; it may hold any bytes.
 */
#include "config.h"

#include "runtime/chat/chat_formats.h"

#include <string.h>

const struct lmq_chat_format *
lmq_chat_format_named(const char *name)
{
    for (size_t i = 0; i < lmq_n_chat_formats; i++)
        if (strcmp(lmq_chat_formats[i].name, name) == 0)
            return &lmq_chat_formats[i];
    return NULL;
}

/* Whether the mark stands there. Where it has a backslash and an n, the
 * template may have a line feed: so it is in those that were written down in
 * Python. */
static bool
stands_at(const char *text, size_t n, const char *mark)
{
    for (size_t i = 0; *mark != '\0'; i++) {
        if (i == n)
            return false;
        if (text[i] == *mark)
            mark++;
        else if (text[i] == '\n' && mark[0] == '\\' && mark[1] == 'n')
            mark += 2;
        else
            return false;
    }
    return true;
}

/* Where it begins from `at` on; n if it is not there. */
static size_t
find(const char *text, size_t n, size_t at, const char *mark)
{
    while (at < n) {
        const char *next = memchr(text + at, mark[0], n - at);
        if (next == NULL)
            break;
        if (stands_at(next, n - (size_t)(next - text), mark))
            return (size_t)(next - text);
        at = (size_t)(next - text) + 1;
    }
    return n;
}

bool
lmq_chat_has(const char *text, size_t n, const char *mark)
{
    return mark[0] != '\0' && find(text, n, 0, mark) < n;
}

bool
lmq_chat_format_page(const struct lmq_chat_page *page, const char *text,
                     size_t n, const char **words, size_t *n_words)
{
    size_t from = find(text, n, 0, page->from);

    if (from == n)
        return false;
    from += strlen(page->from);
    size_t to = find(text, n, from, page->to);
    *words = text + from;
    *n_words = to - from;
    return to < n && find(text, to, from, "{%") == to &&
           find(text, to, from, "{{") == to;
}

static bool
fits(const struct lmq_chat_format *format, const char *text, size_t n)
{
    const char *words;
    size_t n_words;

    for (size_t i = 0; i < 3 && format->has[i] != NULL; i++)
        if (!lmq_chat_has(text, n, format->has[i]))
            return false;
    for (size_t i = 0; i < 3 && format->lacks[i] != NULL; i++)
        if (lmq_chat_has(text, n, format->lacks[i]))
            return false;
    for (size_t i = 0; i < LMQ_CHAT_PAGES; i++)
        if (format->pages[i].from != NULL &&
            !lmq_chat_format_page(&format->pages[i], text, n, &words,
                                  &n_words))
            return false;
    return format->has[0] != NULL;
}

/* What templates of models say that judge conversations and have none (Llama
 * Guard, ShieldGemma, Granite Guardian), in the frames of another's. */
static const char *const judges[] = {
    "Check if there is unsafe content", "You are a policy expert",
    "You are a safety agent"};

const struct lmq_chat_format *
lmq_chat_format_recognise(const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
        if (lmq_chat_has(text, n, judges[i]))
            return NULL;
    for (size_t i = 0; i < lmq_n_chat_formats; i++)
        if (fits(&lmq_chat_formats[i], text, n))
            return &lmq_chat_formats[i];
    return NULL;
}

/* ---- What the system says by itself ---- */

/* The template as it would print its literals: \n is a line feed. */
static bool
unescape(const char *text, size_t n, struct lmq_buffer *plain)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < n) {
            c = text[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        if (lmq_buffer_append(plain, &c, 1) != 0)
            return false;
    }
    return true;
}

/* Words, and nothing of the template's own language. */
static bool
is_plain(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr("'\"{}%\\", text[i]) != NULL) /* 0 too */
            return false;
    return n > 0;
}

/* A literal that has the whole turn: the frame of the system's, and words
 * between, not too many of them: a template may be nothing but frames. */
#define MOST_WORDS ((size_t)8192)

static bool
find_turn(const struct lmq_chat_format *format, const char *text, size_t n,
          struct lmq_buffer *standard)
{
    const char *before = format->system.before, *after = format->system.after;
    char end[64];

    if (before == NULL || before[0] == '\0' || after == NULL ||
        strlen(after) >= sizeof(end))
        return true;
    strcpy(end, after); /* its line feed may stand outside of the literal */
    end[strcspn(end, "\n")] = '\0';
    if (end[0] == '\0')
        return true;
    for (size_t at = 0; (at = find(text, n, at, before)) < n;) {
        at += strlen(before);
        size_t most = n - at < MOST_WORDS ? n : at + MOST_WORDS;
        size_t stop = find(text, most, at, end);
        if (stop < most && is_plain(text + at, stop - at))
            return lmq_buffer_append(standard, text + at, stop - at) == 0;
    }
    return true;
}

static size_t
skip_blanks(const char *text, size_t n, size_t at)
{
    while (at < n && (text[at] == ' ' || text[at] == '\n'))
        at++;
    return at;
}

/* The literal that begins at `at`; behind it. */
static bool
add_literal(const char *text, size_t n, size_t *at, struct lmq_buffer *words)
{
    size_t start = *at + 1, end = start;

    while (end < n && text[end] != text[*at])
        end += text[end] == '\\' ? 2 : 1;
    end = end < n ? end : n;
    *at = end + 1;
    return unescape(text + start, end - start, words);
}

/* Behind "+ today +", at the next literal; n if something else stands there
 * than what is called a day or a date. */
static size_t
skip_variable(const char *text, size_t n, size_t at)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

    if (at >= n || text[at] != '+')
        return n;
    size_t start = skip_blanks(text, n, at + 1), end = start;
    while (end < n && text[end] != '\0' && strchr(letters, text[end]) != NULL)
        end++;
    at = skip_blanks(text, n, end);
    if (at >= n || text[at] != '+' ||
        (find(text, end, start, "day") == end &&
         find(text, end, start, "date") == end))
        return n;
    at = skip_blanks(text, n, at + 1);
    return at < n && (text[at] == '"' || text[at] == '\'') ? at : n;
}

/* A date has stood at `at`, which is in no conversation here: nor is the
 * sentence that tells it. */
static void
drop_sentence(struct lmq_buffer *words, size_t at)
{
    unsigned char *p = words->bytes;
    size_t start = at, end = at;

    while (start > 0 && p[start - 1] != '\n' &&
           !(p[start - 1] == '.' && start < at && p[start] == ' '))
        start--;
    while (end < words->n && p[end] != '\n' && p[end] != '.')
        end++;
    end += end < words->n && p[end] == '.';
    memmove(p + start, p + end, words->n - end);
    words->n -= end - start;
}

/* The next literal behind a text, or several between which dates stand, unless
 * it is put together of something else; without the white space at its end. */
static bool
find_literal(const char *mark, const char *text, size_t n,
             struct lmq_buffer *standard)
{
    size_t found = find(text, n, 0, mark);
    size_t at = found < n ? found + strlen(mark) : n;

    while (at < n && text[at] != '"' && text[at] != '\'')
        at++;
    bool is_dated = false;
    for (size_t date = 0; at < n; is_dated = true) {
        if (!add_literal(text, n, &at, standard))
            return false;
        if (is_dated && standard->n > 0)
            drop_sentence(standard, date);
        at = skip_blanks(text, n, at);
        if (at < n && strchr("-%}", text[at]) != NULL)
            break;
        at = skip_variable(text, n, at);
        date = standard->n;
        standard->n = at < n ? standard->n : 0;
    }
    while (standard->n > 0 &&
           strchr(" \n\t", standard->bytes[standard->n - 1]) != NULL)
        standard->n--;
    return true;
}

/* A template that begins by saying what the system says if nobody does, or says
 * it where it has found that nobody did, and prints that variable. */
static bool
find_variable(const struct lmq_chat_format *format, const char *text, size_t n,
              struct lmq_buffer *standard)
{
    static const char first[] = "set system_message = ";
    static const char other[] = "{% else %}{% set loop_messages = messages %}"
                                "{% set system_message = ";
    size_t at = find(text, n, 0, first);

    if (format->place != LMQ_SYSTEM_OWN ||
        (!lmq_chat_has(text, n, "+ system_message +") &&
         !lmq_chat_has(text, n, "{{ system_message }}")))
        return true;
    if (at < n && find(text, at, 0, " if ") == at)
        return find_literal(first, text, n, standard);
    at = find(text, n, 0, other);
    at += at < n ? strlen(other) : 0;
    return at < n && (text[at] == '"' || text[at] == '\'')
               ? find_literal(other, text, n, standard)
               : true;
}

bool
lmq_chat_format_standard(const struct lmq_chat_format *format,
                         const char *text, size_t n,
                         struct lmq_buffer *standard)
{
    struct lmq_buffer plain = {0};
    bool is_done = true;

    if (format->standard != NULL)
        return lmq_buffer_append(standard, format->standard,
                                 strlen(format->standard)) == 0;
    if (format->standard_at != NULL)
        return find_literal(format->standard_at, text, n, standard);
    if (n == 0)
        return true;
    is_done = unescape(text, n, &plain);
    if (is_done)
        is_done = find_turn(format, (const char *)plain.bytes, plain.n,
                            standard);
    lmq_buffer_free(&plain);
    if (is_done && standard->n == 0)
        is_done = find_variable(format, text, n, standard);
    return is_done;
}
