/*
 * read_ranges.h - which parts of a file were read, and the CRCs of these.
 */
#ifndef LMQ_BASE_READ_RANGES_H
#define LMQ_BASE_READ_RANGES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

struct lmq_digest_range {
    uint64_t offset, size;
    uint32_t crc;
};

/* What was read in pieces too small to remember each: it lies in there. */
struct lmq_read_span {
    uint64_t from, to;
};

struct lmq_read_ranges {
    pthread_mutex_t lock; /* guards what follows */
    struct lmq_digest_range *ranges;
    size_t n_ranges, ranges_capacity;
    size_t n_told; /* of them, by lmq_input_ranges() */
    struct lmq_read_span *spans; /* since then */
    size_t n_spans, spans_capacity;
};

void lmq_read_ranges_init(struct lmq_read_ranges *read);
void lmq_read_ranges_free(struct lmq_read_ranges *read);

enum lmq_status lmq_read_ranges_add(struct lmq_read_ranges *read,
                                    const struct lmq_digest_range *range,
                                    struct lmq_error *err);
enum lmq_status lmq_read_ranges_add_span(struct lmq_read_ranges *read,
                                         uint64_t from, uint64_t to,
                                         struct lmq_error *err);

/* From here on nobody may read meanwhile. */

/* Those behind n_told; NULL if there are none. */
struct lmq_digest_range *
lmq_read_ranges_untold(const struct lmq_read_ranges *read, size_t *n);

/* These in order and side by side joined; what reaches into another becomes a
 * span. Spans in order, too. */
enum lmq_status lmq_read_ranges_join(struct lmq_read_ranges *read,
                                     struct lmq_error *err);

/* All ranges, in order; some may be in others. */
void lmq_read_ranges_sort(struct lmq_read_ranges *read);

#endif
