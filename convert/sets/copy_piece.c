/*
 * copy_piece.c - what one thread does to a piece that is copied.
 *
 * Tensors are cut between tiles, so the bytes of some rows are the same in
 * whatever file they stand. Only leaves of digests need them as rows.
 */
#include "config.h"

#include "convert/sets/copy_piece.h"

#include <inttypes.h>
#include <zlib.h>

#include "base/error.h"
#include "formats/lmq/lmq_set.h"

static const struct lmq_slice *
slice_of(const struct lmq_plan *plan, size_t record, uint64_t row)
{
    return lmq_whole_find(
        lmq_set_whole_of(plan->checkpoint, plan->sources[record]), row);
}

uint64_t
lmq_copy_end(const struct lmq_plan *plan, size_t record, uint64_t row)
{
    const struct lmq_record *stored = slice_of(plan, record, row)->record;

    return stored->first_row + stored->n_rows;
}

/* Bytes of the piece within what stands before it in a file. */
static struct lmq_run_sizes
place_in(const struct lmq_record *record, uint64_t n_cols, uint64_t first_row,
         const struct lmq_piece *piece)
{
    struct lmq_run_sizes above =
        lmq_piece_sizes(record, piece->row - first_row, n_cols);
    struct lmq_run_sizes beside = lmq_piece_sizes(record, 1, piece->column);

    return (struct lmq_run_sizes){above.values + beside.values,
                                  above.scales + beside.scales};
}

enum lmq_status
lmq_copy_piece(const struct lmq_conversion *work, struct lmq_piece *piece,
               struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_plan *plan = work->plan;
    const struct lmq_plan_part *part = &plan->parts[piece->part];
    const struct lmq_slice *slice = slice_of(plan, piece->record, piece->row);
    const struct lmq_record *record = slice->record;
    struct lmq_input *input = plan->checkpoint->files[slice->member];
    uint64_t n_cols = plan->sources[piece->record]->n_cols;
    struct lmq_run_sizes own =
        lmq_piece_sizes(record, piece->n_rows, piece->n_cols);
    struct lmq_run_sizes from =
        place_in(record, n_cols, record->first_row, piece);
    struct lmq_run_sizes to = place_in(record, n_cols, part->first_row, piece);
    bool is_tiled = record->layout == LMQ_LAYOUT_TILES;
    void *values = is_tiled ? (void *)worker->tile_values : worker->q;
    void *scales = is_tiled ? worker->tile_scales : worker->stored_scales;
    enum lmq_status status = lmq_input_read(
        input, record->extents[LMQ_VALUES].offset + from.values, values,
        (size_t)own.values, err);

    if (status == LMQ_OK)
        status = lmq_piece_write(work, piece, LMQ_VALUES, values, to.values,
                                 own.values, err);
    if (status != LMQ_OK || record->encoding != LMQ_ENCODING_Q8)
        return status == LMQ_OK
                   ? lmq_piece_digest_rows(work, piece, worker, err)
                   : status;
    status = lmq_input_read(input,
                            record->extents[LMQ_SCALES].offset + from.scales,
                            scales, (size_t)own.scales, err);
    if (status == LMQ_OK)
        status = lmq_piece_write(work, piece, LMQ_SCALES, scales, to.scales,
                                 own.scales, err);
    /* Digests are of rows. */
    if (status == LMQ_OK && is_tiled && piece->leaves != NULL)
        lmq_tiles_unpack(worker->tile_values, worker->tile_scales,
                         piece->n_rows, piece->n_cols, &record->quant,
                         worker->q, worker->stored_scales);
    return status == LMQ_OK ? lmq_piece_digest_rows(work, piece, worker, err)
                            : status;
}

static enum lmq_status
fail_damaged(const struct lmq_plan *plan, const struct lmq_slice *slice,
             size_t extent, uint32_t crc, struct lmq_error *err)
{
    const struct lmq_extent *expected = &slice->record->extents[extent];

    lmq_fail(err, LMQ_ERR_FORMAT, expected->offset,
             "tensor '%s' is damaged: its CRC-32 is %08" PRIx32
             ", expected %08" PRIx32,
             slice->record->name, crc, expected->crc);
    lmq_hint(err, "lmquant verify names all that is damaged");
    lmq_error_in(err,
                 lmq_input_path(plan->checkpoint->files[slice->member]));
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_copy_check_piece(struct lmq_copy_check *check, const struct lmq_plan *plan,
                     const struct lmq_piece *piece, struct lmq_error *err)
{
    const struct lmq_slice *slice = slice_of(plan, piece->record, piece->row);
    const struct lmq_record *record = slice->record;
    uint64_t n_cols = plan->sources[piece->record]->n_cols;

    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        check->crcs[i] = (uint32_t)crc32_combine(
            check->crcs[i], piece->crcs[i], (off_t)piece->sizes[i]);
    if (piece->row + piece->n_rows < record->first_row + record->n_rows ||
        piece->column + piece->n_cols < n_cols)
        return LMQ_OK;
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        if (check->crcs[i] != record->extents[i].crc)
            return fail_damaged(plan, slice, i, check->crcs[i], err);
    *check = (struct lmq_copy_check){{0}};
    return LMQ_OK;
}
