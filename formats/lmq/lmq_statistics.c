/*
 * lmq_statistics.c - what converting did to each tensor, as a section of its
 * own: a program that only computes does not read it.
 *
 * For each record, in the order of the directory: sums of squares of the
 * weights and of the errors, the worst group, the largest weight, the largest
 * error. With them signal to noise can be told without the source, and errors
 * of pieces can be added up.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/lmq/lmq.h"

#define ST_RESERVED 36

size_t
lmq_statistics_size(size_t n)
{
    return LMQ_STATISTICS_HEADER + n * LMQ_STATISTICS_SIZE;
}

enum lmq_status
lmq_statistics_store(const struct lmq_record *records, size_t n,
                     unsigned char **bytes, size_t *size,
                     struct lmq_error *err)
{
    *size = lmq_statistics_size(n);
    *bytes = calloc(1, *size);
    if (*bytes == NULL)
        return lmq_fail_nomem(err);
    lmq_store_u32le(*bytes, (uint32_t)n);
    lmq_store_u32le(*bytes + 4, LMQ_STATISTICS_SIZE);
    for (size_t i = 0; i < n; i++) {
        unsigned char *p = *bytes + lmq_statistics_size(i);
        lmq_store_f64le(p, records[i].sum_sq);
        lmq_store_f64le(p + 8, records[i].err_sq);
        lmq_store_u64le(p + 16, records[i].worst_group);
        lmq_store_f32le(p + 24, records[i].max_abs);
        lmq_store_f32le(p + 28, records[i].max_err);
        lmq_store_f32le(p + 32, records[i].worst_err_sq);
    }
    return LMQ_OK;
}

/* Sums of squares of very large weights may be infinite. */
static bool
is_measure(double value)
{
    return value >= 0 && !signbit(value);
}

bool
lmq_statistics_are_sound(const struct lmq_record *record)
{
    return is_measure(record->sum_sq) && is_measure(record->err_sq) &&
           is_measure((double)record->max_abs) &&
           is_measure((double)record->max_err) &&
           is_measure((double)record->worst_err_sq);
}

/* Records may become longer in later versions, as those of the directory. */
enum lmq_status
lmq_statistics_load(const unsigned char *bytes, size_t size,
                    const struct lmq_superblock *superblock,
                    struct lmq_record *records, size_t n,
                    struct lmq_error *err)
{
    size_t step = size < LMQ_STATISTICS_HEADER ? 0 : lmq_load_u32le(bytes + 4);

    if (step < LMQ_STATISTICS_SIZE || step > LMQ_MAX_RECORD_SIZE ||
        lmq_load_u32le(bytes) != n || size != LMQ_STATISTICS_HEADER + n * step)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the statistics (%zu bytes) are not those of %zu "
                        "tensors",
                        size, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = bytes + LMQ_STATISTICS_HEADER + i * step;
        struct lmq_record *record = &records[i];
        record->sum_sq = lmq_load_f64le(p);
        record->err_sq = lmq_load_f64le(p + 8);
        record->worst_group = lmq_load_u64le(p + 16);
        record->max_abs = lmq_load_f32le(p + 24);
        record->max_err = lmq_load_f32le(p + 28);
        record->worst_err_sq = lmq_load_f32le(p + 32);
        if (!lmq_statistics_are_sound(record) ||
            !lmq_is_reserved(superblock, p + ST_RESERVED,
                             LMQ_STATISTICS_SIZE - ST_RESERVED))
            return lmq_fail(err, LMQ_ERR_FORMAT, (uint64_t)(p - bytes),
                            "the statistics of tensor '%s' are no numbers "
                            "from 0",
                            record->name);
    }
    return LMQ_OK;
}
