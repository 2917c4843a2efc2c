/*
 * fuzz_regex.c - any bytes as a pattern and, behind it, a text of valid UTF-8:
 * matches lie in the text, one behind the other, and come to an end.
 *
 * The last byte of the input says how many bytes before it are the text.
 */
#include "config.h"

#include <stdlib.h>

#include "base/text/utf8.h"
#include "runtime/tokenizer/text/regex.h"
#include "tests/fuzz/fuzz.h"

static void
match_all(const struct lmq_regex *regex, struct lmq_chars text)
{
    struct lmq_regex_scratch *scratch = lmq_regex_scratch_new(text.n);
    struct lmq_error err;
    size_t at = 0, start, stop;
    bool found = true;

    while (scratch != NULL && found && at < text.n &&
           lmq_regex_match(regex, scratch, text, at, &found, &start, &stop,
                           &err) == LMQ_OK) {
        if (found && (start < at || stop < start || stop > text.n))
            abort();
        at = found && stop > at ? stop : at + 1;
        while (at < text.n && (text.p[at] & 0xc0) == 0x80)
            at++;
    }
    lmq_regex_scratch_free(scratch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct lmq_regex *regex;
    struct lmq_error err;

    if (n < 2)
        return 0;
    size_t n_text = bytes[n - 1] < n - 1 ? bytes[n - 1] : n - 1;
    size_t n_pattern = n - 1 - n_text;
    struct lmq_chars text = lmq_chars(bytes + n_pattern, n_text);
    text.n = lmq_utf8_valid(text.p, text.n);
    if (lmq_regex_open(lmq_chars(bytes, n_pattern), &regex, &err) != LMQ_OK)
        return 0;
    match_all(regex, text);
    lmq_regex_close(regex);
    return 0;
}
