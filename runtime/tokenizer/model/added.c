/*
 * added.c - tokens that are looked for in the text itself.
 *
 * The leftmost token wins, the longest of those that begin there, as in
 * Hugging Face's added vocabulary.
 */
#include "config.h"

#include "runtime/tokenizer/model/added.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/utf8.h"

enum lmq_status
lmq_added_add(struct lmq_added *added, struct lmq_added_token token,
              struct lmq_chars text, struct lmq_error *err)
{
    if (lmq_mem_grow(&added->tokens, &added->capacity, added->n + 1,
                     sizeof(added->tokens[0])) != 0)
        return lmq_fail_nomem(err);
    token.start = added->texts.n;
    token.n = text.n;
    if (lmq_buffer_append(&added->texts, text.p, text.n) != 0)
        return lmq_fail_nomem(err);
    added->tokens[added->n++] = token;
    return LMQ_OK;
}

/* The first of those with one text is found: special ones stand before others
 * to Hugging Face. */
static int
compare_tokens(const void *a, const void *b)
{
    const struct lmq_added_token *x = a, *y = b;

    if (x->is_special != y->is_special)
        return x->is_special ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

enum lmq_status
lmq_added_build(struct lmq_added *added, struct lmq_error *err)
{
    if (added->n > 0)
        qsort(added->tokens, added->n, sizeof(added->tokens[0]),
              compare_tokens);
    for (size_t i = 0; i < added->n; i++) {
        const struct lmq_added_token *token = &added->tokens[i];
        struct lmq_trie *trie =
            token->is_normalized ? &added->normalized : &added->raw;
        if (token->n > 0 &&
            lmq_trie_add(trie,
                         lmq_chars(added->texts.bytes + token->start,
                                   token->n),
                         (int32_t)i) != 0)
            return lmq_fail_nomem(err);
    }
    lmq_trie_build(&added->raw);
    lmq_trie_build(&added->normalized);
    return LMQ_OK;
}

void
lmq_added_free(struct lmq_added *added)
{
    lmq_buffer_free(&added->texts);
    free(added->tokens);
    lmq_trie_free(&added->raw);
    lmq_trie_free(&added->normalized);
    memset(added, 0, sizeof(*added));
}

/* ---- What stands beside a token ---- */

/* Bytes of the character that ends at `at`, 0 if it is none. */
static size_t
length_before(struct lmq_chars text, size_t at)
{
    for (size_t n = 1; n <= 4 && n <= at; n++)
        if (lmq_utf8_length(text.p + at - n, n) == n)
            return n;
    return 0;
}

/* Joiners, and letters in circles and squares, which are symbols that count as
 * letters. */
static bool
is_odd_word(uint32_t c)
{
    return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
           (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
           (c >= 0x1f170 && c <= 0x1f189);
}

/* As \w of a pattern in Rust. */
static bool
is_word(struct lmq_chars text, size_t at, size_t n)
{
    if (n == 0)
        return false;
    uint32_t c = (uint32_t)lmq_utf8_decode(text.p + at, n);
    if (is_odd_word(c))
        return true;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

static bool
has_word_beside(struct lmq_chars text, size_t start, size_t stop)
{
    size_t n = length_before(text, start);

    return is_word(text, start - n, n) ||
           is_word(text, stop,
                   lmq_utf8_length(text.p + stop, text.n - stop));
}

static void
take_spaces(const struct lmq_added_token *token, struct lmq_chars text,
            size_t floor, struct lmq_added_match *match)
{
    while (token->strips_left && match->start > floor) {
        size_t n = length_before(text, match->start);
        if (n == 0 || n > match->start - floor ||
            !lmq_is_space(lmq_utf8_decode(text.p + match->start - n, n)))
            break;
        match->start -= n;
    }
    if (token->strips_right && match->stop < floor)
        match->stop = floor; /* what another one took is all space */
    while (token->strips_right && match->stop < text.n) {
        size_t n = lmq_utf8_length(text.p + match->stop, text.n - match->stop);
        if (n == 0 ||
            !lmq_is_space(lmq_utf8_decode(text.p + match->stop, n)))
            break;
        match->stop += n;
    }
}

/* ---- Finding ---- */

static bool
is_guarded(const struct lmq_added_token *token,
           const struct lmq_added_rule *rule)
{
    for (size_t i = 0; i < rule->n_guarded; i++)
        if (rule->guarded[i] == token->id)
            return true;
    return token->is_special;
}

/* Whether the text from start to stop lies within a span. */
static bool
is_within(const struct lmq_added_rule *rule, size_t start, size_t stop)
{
    size_t low = 0, high = rule->n_spans;

    while (low < high) { /* the first span that ends behind `start` */
        size_t middle = low + (high - low) / 2;
        if (rule->spans[middle].stop <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rule->n_spans && rule->spans[low].start <= start &&
           stop <= rule->spans[low].stop;
}

/* The longest token that begins at `at`. Within a span also those that else
 * are looked for in the normalized text: it is written as they are. */
static size_t
longest_at(const struct lmq_added *added, const struct lmq_trie *trie,
           struct lmq_chars text, size_t at,
           const struct lmq_added_rule *rule, int32_t *index)
{
    size_t n = lmq_trie_longest(trie, text.p + at, text.n - at, index);
    int32_t other;

    if (rule->n_spans == 0 || trie == &added->normalized)
        return n;
    size_t m = lmq_trie_longest(&added->normalized, text.p + at, text.n - at,
                                &other);
    if (m <= n || !is_within(rule, at, at + m))
        return n;
    *index = other;
    return m;
}

struct lmq_added_match
lmq_added_next(const struct lmq_added *added, const struct lmq_trie *trie,
               struct lmq_chars text, size_t at, size_t floor,
               const struct lmq_added_rule *rule)
{
    struct lmq_added_match match = { text.n, text.n, text.n, -1 };

    while ((trie->n > 0 || rule->n_spans > 0) && at < text.n) {
        int32_t index;
        size_t n = longest_at(added, trie, text, at, rule, &index);
        if (n == 0) {
            at++;
            continue;
        }
        const struct lmq_added_token *token = &added->tokens[index];
        if ((!rule->is_anywhere && is_guarded(token, rule) &&
             !is_within(rule, at, at + n)) ||
            (token->is_single_word && has_word_beside(text, at, at + n))) {
            at += rule->n_spans > 0 ? 1 : n; /* a span may begin within it */
            continue;
        }
        match = (struct lmq_added_match){ at, at + n, at + n, token->id };
        take_spaces(token, text, floor, &match);
        if (!token->strips_left || match.stop > floor)
            break;
        match = (struct lmq_added_match){ text.n, text.n, text.n, -1 };
        at += n; /* nothing is left of it */
    }
    return match;
}
