/*
 * part_fields.h - how the sums of a part are written down: what its writer and
 * its reader share.
 */
#ifndef LMQ_VALIDATE_PART_FIELDS_H
#define LMQ_VALIDATE_PART_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/tokenizer/corpus.h"
#include "validate/drift.h"

extern const char *const lmq_part_sum_names[LMQ_SUMS];

/* An exact sum as a string. */
json_t *lmq_part_sum(const struct lmq_exact_sum *sum);

/* n doubles as 16 hexadecimal digits each, the bits of the highest value
 * first; no number of JSON is as exact, as short and as quickly read. The
 * second is false if the text is not of so many. */
json_t *lmq_part_numbers(const double *numbers, size_t n);
/* How many such a text has, right or wrong. */
size_t lmq_part_count_numbers(const json_t *text);
bool lmq_part_read_numbers(const json_t *text, double *numbers, size_t n);

/* All tokens and how they are cut: the same text may be others elsewhere. */
json_t *lmq_part_tokens(const struct lmq_corpus *corpus);

/* The windows, or questions, of a part: all parts are about as many. */
struct lmq_part_range {
    size_t first, n;
};

struct lmq_part_range lmq_part_of(size_t total, size_t part, size_t n_parts);

#endif
