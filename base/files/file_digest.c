/*
 * file_digest.c - CRCs of files that were read, without reading them twice.
 */
#include "config.h"

#include <zlib.h>

#include "base/files/file.h"
#include "base/files/read_ranges.h"
#include "base/size.h"

enum lmq_status
lmq_input_know(struct lmq_input *input, const struct lmq_digest_range *range,
               struct lmq_error *err)
{
    return lmq_read_ranges_add(lmq_input_read_ranges(input), range, err);
}

/* Reads again what stands there, if anything does. */
static enum lmq_status
know(struct lmq_input *input, uint64_t from, uint64_t to,
     struct lmq_error *err)
{
    struct lmq_digest_range range = {from, to - from, 0};

    if (to <= from)
        return LMQ_OK;
    enum lmq_status status =
        lmq_input_crc(input, range.offset, range.size, &range.crc, err);
    return status == LMQ_OK ? lmq_input_know(input, &range, err) : status;
}

/* Of the spans what is in none of the ranges; both are in order. */
static enum lmq_status
know_spans(struct lmq_input *input, struct lmq_error *err)
{
    struct lmq_read_ranges *read = lmq_input_read_ranges(input);
    const size_t n_joined = read->n_ranges;
    size_t next = read->n_told;
    uint64_t at = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < read->n_spans; i++) {
        const struct lmq_read_span span = read->spans[i];
        at = lmq_u64_max(at, span.from);
        while (at < span.to && status == LMQ_OK) {
            struct lmq_digest_range range = {span.to, 0, 0};
            if (next < n_joined && read->ranges[next].offset < span.to)
                range = read->ranges[next];
            status = know(input, at, range.offset, err);
            at = lmq_u64_max(at, range.offset + range.size);
            next += at < span.to;
        }
    }
    read->n_spans = 0;
    return status;
}

enum lmq_status
lmq_input_ranges(struct lmq_input *input,
                 const struct lmq_digest_range **ranges, size_t *n,
                 struct lmq_error *err)
{
    struct lmq_read_ranges *read = lmq_input_read_ranges(input);
    enum lmq_status status = lmq_read_ranges_join(read, err);

    if (status == LMQ_OK && read->n_spans > 0) {
        status = know_spans(input, err);
        if (status == LMQ_OK)
            status = lmq_read_ranges_join(read, err);
    }
    *ranges = lmq_read_ranges_untold(read, n);
    read->n_told = read->n_ranges;
    return status;
}

enum lmq_status
lmq_input_digest(struct lmq_input *input, uint32_t *crc, struct lmq_error *err)
{
    struct lmq_read_ranges *read = lmq_input_read_ranges(input);
    uint64_t at = 0;

    *crc = 0;
    lmq_read_ranges_sort(read);
    for (size_t i = 0; i < read->n_ranges; i++) {
        const struct lmq_digest_range *range = &read->ranges[i];
        if (range->offset < at)
            continue; /* read twice */
        enum lmq_status status =
            lmq_input_crc(input, at, range->offset - at, crc, err);
        if (status != LMQ_OK)
            return status;
        *crc = (uint32_t)crc32_combine(*crc, range->crc, (off_t)range->size);
        at = range->offset + range->size;
    }
    return lmq_input_crc(input, at, lmq_input_size(input) - at, crc, err);
}
