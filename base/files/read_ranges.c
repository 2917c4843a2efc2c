/*
 * read_ranges.c - which parts of a file were read.
 */
#include "config.h"

#include "base/files/read_ranges.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

/* Spans that are nearer to each other are one. */
#define SPAN_GAP ((uint64_t)16 << 20)

void
lmq_read_ranges_init(struct lmq_read_ranges *read)
{
    pthread_mutex_init(&read->lock, NULL);
}

void
lmq_read_ranges_free(struct lmq_read_ranges *read)
{
    pthread_mutex_destroy(&read->lock);
    free(read->ranges);
    free(read->spans);
}

enum lmq_status
lmq_read_ranges_add(struct lmq_read_ranges *read,
                    const struct lmq_digest_range *range,
                    struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    pthread_mutex_lock(&read->lock);
    if (lmq_mem_grow(&read->ranges, &read->ranges_capacity,
                     read->n_ranges + 1, sizeof(*range)) != 0)
        status = lmq_fail_nomem(err);
    else
        read->ranges[read->n_ranges++] = *range;
    pthread_mutex_unlock(&read->lock);
    return status;
}

/* The newest that is near; NULL: none is. */
static struct lmq_read_span *
find_near(struct lmq_read_ranges *read, uint64_t from, uint64_t to)
{
    for (size_t i = read->n_spans; i > 0; i--) {
        struct lmq_read_span *span = &read->spans[i - 1];
        if (from <= span->to + SPAN_GAP && span->from <= to + SPAN_GAP)
            return span;
    }
    return NULL;
}

enum lmq_status
lmq_read_ranges_add_span(struct lmq_read_ranges *read, uint64_t from,
                         uint64_t to, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    pthread_mutex_lock(&read->lock);
    struct lmq_read_span *near = find_near(read, from, to);
    if (near != NULL) {
        near->from = lmq_u64_min(near->from, from);
        near->to = lmq_u64_max(near->to, to);
    } else if (lmq_mem_grow(&read->spans, &read->spans_capacity,
                            read->n_spans + 1, sizeof(*near)) != 0) {
        status = lmq_fail_nomem(err);
    } else {
        read->spans[read->n_spans++] = (struct lmq_read_span){from, to};
    }
    pthread_mutex_unlock(&read->lock);
    return status;
}

/* ---- Nobody reads ---- */

/* Of those that begin together the largest first. */
static int
compare_ranges(const void *a, const void *b)
{
    const struct lmq_digest_range *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->size > y->size ? -1 : x->size < y->size;
}

void
lmq_read_ranges_sort(struct lmq_read_ranges *read)
{
    if (read->n_ranges > 0)
        qsort(read->ranges, read->n_ranges, sizeof(*read->ranges),
              compare_ranges);
}

static int
compare_spans(const void *a, const void *b)
{
    const struct lmq_read_span *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

struct lmq_digest_range *
lmq_read_ranges_untold(const struct lmq_read_ranges *read, size_t *n)
{
    *n = read->n_ranges - read->n_told;
    return *n == 0 ? NULL : read->ranges + read->n_told;
}

enum lmq_status
lmq_read_ranges_join(struct lmq_read_ranges *read, struct lmq_error *err)
{
    size_t count, kept = 0;
    struct lmq_digest_range *ranges = lmq_read_ranges_untold(read, &count);
    enum lmq_status status = LMQ_OK;

    if (count > 0)
        qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (size_t i = 0; i < count && status == LMQ_OK; i++) {
        struct lmq_digest_range *last = &ranges[kept - (kept > 0)];
        uint64_t end = last->offset + last->size;
        uint64_t to = ranges[i].offset + ranges[i].size;
        if (kept > 0 && end == ranges[i].offset) {
            last->crc = (uint32_t)crc32_combine(last->crc, ranges[i].crc,
                                                (off_t)ranges[i].size);
            last->size += ranges[i].size;
        } else if (kept == 0 || ranges[i].offset > end) {
            ranges[kept++] = ranges[i];
        } else if (to > end) { /* else it was read twice */
            status = lmq_read_ranges_add_span(read, end, to, err);
        }
    }
    read->n_ranges = read->n_told + kept;
    if (read->n_spans > 0)
        qsort(read->spans, read->n_spans, sizeof(*read->spans),
              compare_spans);
    return status;
}
