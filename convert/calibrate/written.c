/*
 * written.c - rows and tiles out of an output that is not complete yet.
 */
#include "config.h"

#include "convert/calibrate/written.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/files/part.h"
#include "base/size.h"

/* Tiles that are read at a time. */
#define STEP ((uint64_t)32 * LMQ_TILE_ROWS)

/* The bytes of `n_rows` rows from `row` of the part on, to where these are. */
static enum lmq_status
read_run(const struct lmq_conversion *work, const struct lmq_plan_part *part,
         uint64_t row, uint64_t n_rows, void *values, void *scales,
         struct lmq_error *err)
{
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);
    struct lmq_output *output = work->outputs[part->member];
    uint64_t n_cols = work->plan->sources[part->record]->n_cols;
    struct lmq_run_sizes at = lmq_piece_sizes(stored, row, n_cols);
    struct lmq_run_sizes size = lmq_piece_sizes(stored, n_rows, n_cols);
    enum lmq_status status = lmq_part_read(
        output, stored->extents[LMQ_VALUES].offset + at.values, values,
        (size_t)size.values, err);

    return status == LMQ_OK
               ? lmq_part_read(output,
                               stored->extents[LMQ_SCALES].offset + at.scales,
                               scales, (size_t)size.scales, err)
               : status;
}

static enum lmq_status
read_tiles(const struct lmq_conversion *work, const struct lmq_plan_part *part,
           int8_t *q, unsigned char *scales, struct lmq_error *err)
{
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);
    const struct lmq_quant *quant = &stored->quant;
    size_t n_cols = (size_t)work->plan->sources[part->record]->n_cols;
    size_t row_scales = lmq_groups_per_row(n_cols, quant->group_size) *
                        lmq_scale_size(quant->scales);
    struct lmq_run_sizes room =
        lmq_piece_sizes(stored, lmq_u64_min(STEP, part->n_rows), n_cols);
    unsigned char *values = malloc((size_t)(room.values + room.scales));
    enum lmq_status status = values == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (uint64_t row = 0; row < part->n_rows && status == LMQ_OK;
         row += STEP) {
        size_t n = (size_t)lmq_u64_min(STEP, part->n_rows - row);
        status = read_run(work, part, row, n, values, values + room.values,
                          err);
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
    return lmq_plan_stored(work->plan, part)->layout == LMQ_LAYOUT_TILES
               ? read_tiles(work, part, q, scales, err)
               : read_run(work, part, 0, part->n_rows, q, scales, err);
}
