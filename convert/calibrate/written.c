/*
 * written.c - rows and tiles out of an output that is not complete yet.
 */
#include "config.h"

#include "convert/calibrate/written.h"

#include <stdlib.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/part.h"
#include "base/size.h"

/* Tiles that are read at a time. */
#define STEP ((uint64_t)32 * LMQ_TILE_ROWS)

static struct lmq_output *
output_of(const struct lmq_conversion *work, const struct lmq_plan_part *part)
{
    struct lmq_output *own = work->outputs[part->member];

    return own != NULL ? own : work->others[part->member];
}

/* The bytes of `n_rows` rows from `row` of the part on, to where these are;
 * `crcs` are those of what was read before. */
static enum lmq_status
read_run(const struct lmq_conversion *work, const struct lmq_plan_part *part,
         uint64_t row, uint64_t n_rows, void *values, void *scales,
         uint32_t crcs[2], struct lmq_error *err)
{
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);
    struct lmq_output *output = output_of(work, part);
    uint64_t n_cols = work->plan->sources[part->record]->n_cols;
    struct lmq_run_sizes at = lmq_piece_sizes(stored, row, n_cols);
    struct lmq_run_sizes size = lmq_piece_sizes(stored, n_rows, n_cols);
    enum lmq_status status = lmq_part_read(
        output, stored->extents[LMQ_VALUES].offset + at.values, values,
        (size_t)size.values, err);

    if (status == LMQ_OK)
        status = lmq_part_read(
            output, stored->extents[LMQ_SCALES].offset + at.scales, scales,
            (size_t)size.scales, err);
    if (status != LMQ_OK)
        return status;
    crcs[0] = lmq_crc32(crcs[0], values, (size_t)size.values);
    crcs[1] = lmq_crc32(crcs[1], scales, (size_t)size.scales);
    return LMQ_OK;
}

static enum lmq_status
read_tiles(const struct lmq_conversion *work, const struct lmq_plan_part *part,
           int8_t *q, unsigned char *scales, uint32_t crcs[2],
           struct lmq_error *err)
{
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);
    const struct lmq_quant *quant = &stored->quant;
    size_t n_cols = (size_t)work->plan->sources[part->record]->n_cols;
    size_t row_scales = lmq_row_scales_size(n_cols, quant);
    struct lmq_run_sizes room =
        lmq_piece_sizes(stored, lmq_u64_min(STEP, part->n_rows), n_cols);
    unsigned char *values = malloc((size_t)(room.values + room.scales));
    enum lmq_status status = values == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (uint64_t row = 0; row < part->n_rows && status == LMQ_OK;
         row += STEP) {
        size_t n = (size_t)lmq_u64_min(STEP, part->n_rows - row);
        status = read_run(work, part, row, n, values, values + room.values,
                          crcs, err);
        if (status == LMQ_OK)
            lmq_tiles_unpack(values, values + room.values, n, n_cols, quant,
                             q + row * n_cols, scales + row * row_scales);
    }
    free(values);
    return status;
}

enum lmq_status
lmq_written_read(const struct lmq_conversion *work,
                 const struct lmq_plan_part *part, int8_t *q,
                 unsigned char *scales, struct lmq_error *err)
{
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);
    uint32_t crcs[2] = {0};
    enum lmq_status status =
        stored->layout == LMQ_LAYOUT_TILES
            ? read_tiles(work, part, q, scales, crcs, err)
            : read_run(work, part, 0, part->n_rows, q, scales, crcs, err);

    if (status != LMQ_OK || (crcs[0] == stored->extents[LMQ_VALUES].crc &&
                             crcs[1] == stored->extents[LMQ_SCALES].crc))
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, stored->extents[LMQ_VALUES].offset,
             "tensor '%s' is not as it was written before", stored->name);
    lmq_hint(err, "remove it and its journal, and begin it anew");
    lmq_error_in(err, lmq_part_name(output_of(work, part)));
    return LMQ_ERR_FORMAT;
}
