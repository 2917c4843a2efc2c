/*
 * q8_rows.c - int8 and scales out of a container, or out of floats.
 */
#include "config.h"

#include "convert/q8_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

void
lmq_q8_reader_free(struct lmq_q8_reader *reader)
{
    lmq_scratch_free(&reader->scratch);
    free(reader->bytes);
    *reader = (struct lmq_q8_reader){0};
}

static enum lmq_status
reserve(struct lmq_q8_reader *reader, size_t size, struct lmq_error *err)
{
    if (reader->size >= size)
        return LMQ_OK;
    free(reader->bytes);
    reader->size = 0;
    reader->bytes = malloc(size);
    if (reader->bytes == NULL)
        return lmq_fail_nomem(err);
    reader->size = size;
    return LMQ_OK;
}

/* The record with the values, aliases followed; NULL outside containers. */
static const struct lmq_record *
record_of(const struct lmq_checkpoint *checkpoint,
          const struct lmq_tensor *tensor)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(checkpoint);

    if (container == NULL)
        return NULL;
    const struct lmq_record *record = &container->records[tensor->number];
    return record->alias == LMQ_NO_ALIAS ? record
                                         : &container->records[record->alias];
}

bool
lmq_q8_is_stored(const struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor, unsigned group)
{
    const struct lmq_record *record = record_of(checkpoint, tensor);

    return record != NULL && record->encoding == LMQ_ENCODING_Q8 &&
           record->quant.group_size % group == 0;
}

/* One scale of a large group for each small one in it. */
static void
spread_scales(const float *large, unsigned large_group, unsigned group,
              size_t n_rows, size_t n_cols, float *scales)
{
    size_t n_large = lmq_groups_per_row(n_cols, large_group);
    size_t n_small = lmq_groups_per_row(n_cols, group);

    for (size_t row = 0; row < n_rows; row++)
        for (size_t i = 0; i < n_small; i++)
            scales[row * n_small + i] =
                large[row * n_large + i * group / large_group];
}

/* ---- From a container ---- */

static enum lmq_status
load_rows(struct lmq_input *input, const struct lmq_record *record,
          uint64_t row, size_t n, size_t n_cols, int8_t *q,
          unsigned char *scales, struct lmq_error *err)
{
    size_t row_scales = lmq_groups_per_row(n_cols, record->quant.group_size) *
                        lmq_scale_size(record->quant.scales);
    enum lmq_status status = lmq_input_read(
        input, record->values.offset + row * n_cols, q, n * n_cols, err);

    if (status == LMQ_OK)
        status = lmq_input_read(input,
                                record->scales.offset + row * row_scales,
                                scales, n * row_scales, err);
    return status;
}

/* `room` is for a tile, stored and as rows. */
static enum lmq_status
load_tiles(struct lmq_input *input, const struct lmq_record *record,
           uint64_t row, size_t n, size_t n_cols, unsigned char *room,
           int8_t *q, unsigned char *scales, struct lmq_error *err)
{
    unsigned group = record->quant.group_size;
    enum lmq_scales type = record->quant.scales;
    size_t row_scales =
        lmq_groups_per_row(n_cols, group) * lmq_scale_size(type);
    size_t tile_values = lmq_tile_values_size(n_cols, group);
    size_t tile_scales = lmq_tile_scales_size(n_cols, group, type);
    unsigned char *stored_scales = room + tile_values;
    unsigned char *row_room = stored_scales + tile_scales;
    int8_t *row_values = (int8_t *)row_room + LMQ_TILE_ROWS * row_scales;
    uint64_t n_rows = record->dims[0];
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t tile = row / LMQ_TILE_ROWS;
        size_t skip = (size_t)(row % LMQ_TILE_ROWS);
        size_t in_tile = (size_t)lmq_u64_min(
            LMQ_TILE_ROWS, n_rows - tile * LMQ_TILE_ROWS);
        size_t step = lmq_size_min(n, in_tile - skip);
        status = lmq_input_read(
            input, record->values.offset + tile * tile_values, room,
            tile_values, err);
        if (status == LMQ_OK)
            status = lmq_input_read(
                input, record->scales.offset + tile * tile_scales,
                stored_scales, tile_scales, err);
        if (status != LMQ_OK)
            return status;
        lmq_tile_unpack(room, stored_scales, in_tile, n_cols, group, type,
                        row_values, n_cols, row_room);
        memcpy(q, row_values + skip * n_cols, step * n_cols);
        memcpy(scales, row_room + skip * row_scales, step * row_scales);
        q += step * n_cols;
        scales += step * row_scales;
        row += step;
        n -= step;
    }
    return status;
}

static enum lmq_status
read_container(struct lmq_checkpoint *checkpoint,
               const struct lmq_record *record, uint64_t row, size_t n,
               size_t n_cols, unsigned group, struct lmq_q8_reader *reader,
               int8_t *q, float *scales, struct lmq_error *err)
{
    const struct lmq_quant *quant = &record->quant;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t n_floats = n * n_groups * sizeof(float);
    size_t n_stored = n * n_groups * lmq_scale_size(quant->scales);
    size_t tile = lmq_tile_values_size(n_cols, quant->group_size) +
                  lmq_tile_scales_size(n_cols, quant->group_size,
                                       quant->scales);
    /* Floats first, so that they are aligned. */
    enum lmq_status status = reserve(
        reader,
        n_floats + n_stored + tile +
            LMQ_TILE_ROWS * (n_cols + n_groups * sizeof(float)),
        err);

    if (status != LMQ_OK)
        return status;
    float *large = (float *)(void *)reader->bytes;
    unsigned char *stored = reader->bytes + n_floats;
    status = record->layout == LMQ_LAYOUT_TILES
                 ? load_tiles(checkpoint->files[0], record, row, n, n_cols,
                              stored + n_stored, q, stored, err)
                 : load_rows(checkpoint->files[0], record, row, n, n_cols, q,
                             stored, err);
    if (status != LMQ_OK)
        return status;
    lmq_scales_load(quant->scales, quant->multiplier, stored, n * n_groups,
                    large);
    spread_scales(large, quant->group_size, group, n, n_cols, scales);
    return LMQ_OK;
}

/* ---- From floats ---- */

static enum lmq_status
quantize(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
         uint64_t row, size_t n, unsigned group, struct lmq_q8_reader *reader,
         int8_t *q, float *scales, struct lmq_error *err)
{
    size_t n_cols = (size_t)tensor->n_cols;
    const struct lmq_quant quant = {
        .group_size = group < LMQ_GROUP_MIN ? LMQ_GROUP_MIN : group,
        .method = LMQ_METHOD_SEARCH,
        .scales = LMQ_SCALES_F32,
        .multiplier = 1,
    };
    size_t n_groups = lmq_groups_per_row(n_cols, quant.group_size);
    enum lmq_status status =
        reserve(reader, n * (n_cols + n_groups) * sizeof(float), err);

    if (status != LMQ_OK)
        return status;
    float *x = (float *)(void *)reader->bytes, *large = x + n * n_cols;
    status = lmq_checkpoint_read(checkpoint, tensor, row * n_cols, n * n_cols,
                                 x, &reader->scratch, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        struct lmq_quant_stats stats = {0};
        lmq_quantize_row(&quant, x + i * n_cols, n_cols, q + i * n_cols,
                         large + i * n_groups, &stats);
        if (stats.has_nonfinite)
            return lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                            "tensor '%s': NaN or infinity in row %" PRIu64,
                            tensor->stored_name, row + i);
    }
    if (status == LMQ_OK)
        spread_scales(large, quant.group_size, group, n, n_cols, scales);
    return status;
}

enum lmq_status
lmq_q8_read_rows(struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor, uint64_t row, size_t n,
                 unsigned group, struct lmq_q8_reader *reader, int8_t *q,
                 float *scales, struct lmq_error *err)
{
    if (!lmq_q8_is_stored(checkpoint, tensor, group))
        return quantize(checkpoint, tensor, row, n, group, reader, q, scales,
                        err);
    return read_container(checkpoint, record_of(checkpoint, tensor), row, n,
                          (size_t)tensor->n_cols, group, reader, q, scales,
                          err);
}
