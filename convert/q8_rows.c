/*
 * q8_rows.c - int8 and scales as a checkpoint has them, or out of floats.
 */
#include "config.h"

#include "convert/q8_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/size.h"
#include "quantize/tiles.h"

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

bool
lmq_q8_is_stored(const struct lmq_tensor *tensor, unsigned group)
{
    return tensor->quant.group_size != 0 &&
           tensor->quant.rotation == LMQ_ROTATION_NONE &&
           tensor->quant.group_size % group == 0;
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

static enum lmq_status
fail_nonfinite(const struct lmq_tensor *tensor, uint64_t row,
               struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_NONFINITE, 0,
                    "tensor '%s': NaN or infinity in row %" PRIu64,
                    tensor->stored_name, row);
}

/* ---- As they are stored ---- */

static enum lmq_status
read_stored(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            uint64_t row, size_t n, unsigned group,
            struct lmq_q8_reader *reader, int8_t *q, float *scales,
            struct lmq_error *err)
{
    const struct lmq_quant *quant = &tensor->quant;
    size_t n_cols = (size_t)tensor->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t n_floats = n * n_groups * sizeof(float);
    /* Floats first, so that they are aligned. */
    enum lmq_status status = reserve(
        reader, n_floats + n * n_groups * lmq_scale_size(quant->scales), err);

    if (status != LMQ_OK)
        return status;
    float *large = (float *)(void *)reader->bytes;
    unsigned char *stored = reader->bytes + n_floats;
    status = lmq_checkpoint_read_integers(checkpoint, tensor, row, n, q,
                                          stored, &reader->scratch, err);
    if (status != LMQ_OK)
        return status;
    lmq_quant_widen(quant, q, n, n_cols, stored);
    lmq_scales_load(quant->scales, quant->multiplier, stored, n * n_groups,
                    large);
    for (size_t i = 0; i < n * n_groups; i++)
        if (!isfinite(large[i]))
            return fail_nonfinite(tensor, row + i / n_groups, err);
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
        .bits = LMQ_BITS_MAX,
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
            return fail_nonfinite(tensor, row + i, err);
    }
    if (status == LMQ_OK)
        spread_scales(large, quant.group_size, group, n, n_cols, scales);
    return status;
}

/* Each part has a multiplier, and groups, of its own. */
static enum lmq_status
read_joined(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            uint64_t row, size_t n, unsigned group,
            struct lmq_q8_reader *reader, int8_t *q, float *scales,
            struct lmq_error *err)
{
    size_t n_cols = (size_t)tensor->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, group);
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t own, n_own;
        const struct lmq_tensor *part =
            lmq_joined_find(tensor->joined, row, &own, &n_own);
        size_t step = (size_t)lmq_u64_min(n, n_own);
        status = read_stored(checkpoint, part, own, step, group, reader, q,
                             scales, err);
        q += step * n_cols;
        scales += step * n_groups;
        row += step;
        n -= step;
    }
    return status;
}

enum lmq_status
lmq_q8_read_rows(struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor, uint64_t row, size_t n,
                 unsigned group, struct lmq_q8_reader *reader, int8_t *q,
                 float *scales, struct lmq_error *err)
{
    return (!lmq_q8_is_stored(tensor, group) ? quantize
            : tensor->joined != NULL         ? read_joined
                                             : read_stored)(
        checkpoint, tensor, row, n, group, reader, q, scales, err);
}
