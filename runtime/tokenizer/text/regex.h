/*
 * regex.h - patterns of tokenizers, through PCRE2.
 *
 * Files hold patterns written for Oniguruma or Rust. What those engines read
 * as PCRE2 does is passed on, what differs is translated, and the rest is
 * refused by name.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_REGEX_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_REGEX_H

#include "lmquant.h"
#include "runtime/tokenizer/text/chars.h"

struct lmq_regex;
struct lmq_regex_scratch;

/* Immutable; any number of threads may match at once. */
enum lmq_status lmq_regex_open(struct lmq_chars pattern,
                               struct lmq_regex **out, struct lmq_error *err);
/* The same for a text that stands for itself. */
enum lmq_status lmq_regex_open_literal(struct lmq_chars text,
                                       struct lmq_regex **out,
                                       struct lmq_error *err);
void lmq_regex_close(struct lmq_regex *regex);

/*
 * What one match at a time needs, and what all the matches of one text may
 * cost: n is the size of that text. NULL without memory.
 *
 * A text has 2 seconds of processor time and 2 microseconds per byte for all
 * its patterns; the usual ones take a hundredth of that. Steps are limited
 * too, so that a single match comes back to look at the clock.
 */
struct lmq_regex_scratch *lmq_regex_scratch_new(size_t n);
void lmq_regex_scratch_free(struct lmq_regex_scratch *scratch);

/* The first match in the valid UTF-8 `text` from `at` on. *found is false
 * without one. What costs more than the scratch has left is an error. */
enum lmq_status lmq_regex_match(const struct lmq_regex *regex,
                                struct lmq_regex_scratch *scratch,
                                struct lmq_chars text, size_t at, bool *found,
                                size_t *start, size_t *stop,
                                struct lmq_error *err);

/* Oniguruma's pattern as PCRE2's (pattern.c). Appended without a 0. */
enum lmq_status lmq_pattern_translate(struct lmq_chars pattern,
                                      struct lmq_buffer *out,
                                      struct lmq_error *err);

#endif
