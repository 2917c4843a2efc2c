/*
 * scale_shape.c - one scale for the matrix, for each row, for each block.
 */
#include "config.h"

#include "formats/packed/scale_shape.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/size.h"

/* What DeepSeek V3 and those after it have, where config.json does not say. */
#define USUAL_BLOCK 128

/* Of several matrices one after the other, or of one. */
struct shape {
    uint64_t n, rows, cols;
};

/* ---- Shapes ---- */

static struct shape
shape_of(const uint64_t *dims, size_t n_dims)
{
    struct shape shape = {1, 1, n_dims == 0 ? 1 : dims[n_dims - 1]};

    if (n_dims > 1)
        shape.rows = dims[n_dims - 2];
    for (size_t i = 0; i + 2 < n_dims; i++)
        shape.n *= dims[i];
    return shape;
}

static bool
counts_fit(const struct shape *matrix, const struct shape *scales,
           uint64_t rows, uint64_t cols)
{
    return rows > 0 && cols > 0 && matrix->n == scales->n &&
           lmq_u64_ceil_div(matrix->rows, rows) == scales->rows &&
           lmq_u64_ceil_div(matrix->cols, cols) == scales->cols;
}

/* Scales of several matrices are those of one if no block crosses them. */
static bool
fits(const struct shape *matrix, const struct shape *scales, uint64_t rows,
     uint64_t cols)
{
    return counts_fit(matrix, scales, rows, cols) &&
           (matrix->n == 1 || matrix->rows % rows == 0);
}

/* ---- What config.json says ---- */

/* The same blocks of this matrix, where one ends before they do. */
static bool
are_same(const struct shape *matrix, const uint64_t a[2], const uint64_t b[2])
{
    return lmq_u64_min(a[0], matrix->rows) == lmq_u64_min(b[0], matrix->rows) &&
           lmq_u64_min(a[1], matrix->cols) == lmq_u64_min(b[1], matrix->cols);
}

/* Takes one that it says, unless one that these scales fit has been taken. */
static enum lmq_status
take_block_size(const json_t *size, const struct shape *matrix,
                const struct shape *scales, uint64_t block[2],
                struct lmq_error *err)
{
    uint64_t own[2];

    for (size_t i = 0; i < 2; i++) {
        json_int_t n = json_integer_value(json_array_get(size, i));
        if (json_array_size(size) != 2 || n < 1 || n > LMQ_MAX_WIDTH)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "weight_block_size or block_structure in "
                            "config.json is no pair of sizes from 1 to %d",
                            LMQ_MAX_WIDTH);
        own[i] = (uint64_t)n;
    }
    const bool others_fit = counts_fit(matrix, scales, block[0], block[1]);
    const bool is_one = scales->n * scales->rows * scales->cols == 1;
    if (counts_fit(matrix, scales, own[0], own[1]) && others_fit && !is_one &&
        !are_same(matrix, own, block))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "of the sizes of blocks in config.json both "
                        "%" PRIu64 " x %" PRIu64 " and %" PRIu64 " x %" PRIu64
                        " may be those of a matrix of %" PRIu64 " x %" PRIu64,
                        block[0], block[1], own[0], own[1], matrix->rows,
                        matrix->cols);
    if (!others_fit) {
        block[0] = own[0];
        block[1] = own[1];
    }
    return LMQ_OK;
}

/* 0, 0 if it does not say. compressed-tensors keeps it in the groups, which may
 * have several. */
static enum lmq_status
read_block_size(const json_t *config, const struct shape *matrix,
                const struct shape *scales, uint64_t block[2],
                struct lmq_error *err)
{
    const json_t *size = json_object_get(config, "weight_block_size");
    enum lmq_status status = LMQ_OK;
    const char *name;
    json_t *group;

    block[0] = block[1] = 0;
    if (size != NULL && !json_is_null(size))
        return take_block_size(size, matrix, scales, block, err);
    json_object_foreach(
        (json_t *)(uintptr_t)json_object_get(config, "config_groups"), name,
        group)
    {
        size = json_object_get(json_object_get(group, "weights"),
                               "block_structure");
        if (size != NULL && !json_is_null(size) && status == LMQ_OK)
            status = take_block_size(size, matrix, scales, block, err);
    }
    return status;
}

/* ---- Which ---- */

/* The size of the blocks; one scale first: it fits everything else. Where sizes
 * are said, others are those of rows, or of parts of them. */
static bool
find_blocks(const struct shape *matrix, const struct shape *scales,
            const uint64_t said[2], uint64_t blocks[2])
{
    const uint64_t candidates[][2] = {
        {said[0], said[1]},
        {USUAL_BLOCK, USUAL_BLOCK},
        {scales->rows == 0 ? 0 : matrix->rows / scales->rows,
         scales->cols == 0 ? 0 : matrix->cols / scales->cols},
    };
    bool is_even = scales->rows > 0 && matrix->rows % scales->rows == 0 &&
                   scales->cols > 0 && matrix->cols % scales->cols == 0 &&
                   (said[0] == 0 || scales->cols == 1 ||
                    scales->rows == matrix->rows);

    if (scales->n * scales->rows * scales->cols == 1) {
        blocks[0] = blocks[1] = LMQ_BLOCK_ALL;
        return true;
    }
    if (counts_fit(matrix, scales, said[0], said[1]) &&
        !fits(matrix, scales, said[0], said[1])) {
        blocks[0] = matrix->rows; /* of each, if it is less than a block */
        blocks[1] = said[1];
        return scales->rows == 1; /* else each ends with smaller ones */
    }
    for (size_t i = said[0] == 0; i < (is_even ? 3 : 2); i++)
        if (fits(matrix, scales, candidates[i][0], candidates[i][1]) &&
            (i != 1 || said[0] == 0)) {
            blocks[0] = candidates[i][0];
            blocks[1] = candidates[i][1];
            return true;
        }
    return false;
}

/* A list is a column. ModelOpt leaves what blocks have been summed over:
 * (rows, 1, columns, 1). */
static struct shape
scales_of(const struct lmq_tensor *scale, size_t n_dims)
{
    if (n_dims == 2 && scale->n_dims == 4 && scale->dims[1] == 1 &&
        scale->dims[3] == 1)
        return (struct shape){1, scale->dims[0], scale->dims[2]};
    return scale->n_dims == 1 ? (struct shape){1, scale->dims[0], 1}
                              : shape_of(scale->dims, scale->n_dims);
}

static enum lmq_status
fail_shape(const char *name, const struct lmq_tensor *scale,
           struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, scale->offset,
             "the %" PRIu64 " scales '%s' fit neither the rows nor the "
             "blocks of '%s'",
             scale->n_elements, scale->stored_name, name);
    lmq_hint(err, "weight_block_size in config.json gives the size of "
                  "blocks; without it they are %d x %d; of several experts in "
                  "one tensor each must have whole ones",
             USUAL_BLOCK, USUAL_BLOCK);
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_scale_shape_set(const struct lmq_packer *packer, struct lmq_affine *affine,
                    const char *name, const uint64_t *dims, size_t n_dims,
                    const struct lmq_tensor *scale, struct lmq_error *err)
{
    struct shape matrix = shape_of(dims, n_dims);
    struct shape scales = scales_of(scale, n_dims);
    uint64_t said[2], blocks[2];
    enum lmq_status status =
        read_block_size(packer->config, &matrix, &scales, said, err);

    if (status != LMQ_OK)
        return status;
    if (!find_blocks(&matrix, &scales, said, blocks))
        return fail_shape(name, scale, err);
    affine->scales = lmq_packer_grid(scale);
    affine->scales.n_words = scales.cols;
    affine->scales.is_exponent = scale->dtype == LMQ_DTYPE_U8;
    affine->n_groups = scales.cols;
    affine->block_rows = blocks[0];
    affine->block_cols =
        scales.cols == 1 && said[0] == 0 ? LMQ_BLOCK_ALL : blocks[1];
    return LMQ_OK;
}

const char *
lmq_scale_shape_text(const struct lmq_affine *affine, char *text, size_t size)
{
    if (affine->block_rows == LMQ_BLOCK_ALL)
        snprintf(text, size, "a scale for each");
    else if (affine->block_rows == 1 && affine->block_cols == LMQ_BLOCK_ALL)
        snprintf(text, size, "a scale for each row");
    else if (affine->has_members)
        snprintf(text, size, "groups of columns that stand apart");
    else if (affine->block_rows == 1)
        snprintf(text, size, "groups of %" PRIu64, affine->block_cols);
    else if (affine->block_cols == LMQ_BLOCK_ALL)
        snprintf(text, size, "block scales of %" PRIu64 " rows",
                 affine->block_rows);
    else
        snprintf(text, size, "block scales %" PRIu64 " x %" PRIu64,
                 affine->block_rows, affine->block_cols);
    return text;
}
