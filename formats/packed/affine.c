/*
 * affine.c - (code - zero point) * scale, for areas of a matrix.
 *
 * Most packed schemes are this: codes of a few bits, and for each block of
 * them a scale and perhaps a zero point, which are packed too. They differ in
 * where these stand and how they are packed; grids (grid.c) know that, so that
 * one loop serves for all. Members are a further indirection: the group that
 * each input belongs to, where groups were formed after sorting the inputs
 * (act-order).
 */
#include "config.h"

#include "formats/packed/affine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "quantize/tiles.h"

/* Integers that are made at a time. */
#define STEP ((size_t)1 << 17)

static const struct lmq_affine *
affine_of(const struct lmq_tensor *tensor)
{
    return (const struct lmq_affine *)(const void *)tensor->packing;
}

/* ---- Scales and zero points of an area ---- */

/* In one piece of memory, with room for words. */
struct parts {
    struct lmq_area blocks; /* of scales and zeros */
    float *scales, *zeros;  /* (blocks.n_rows, blocks.n_cols) */
    float *members;         /* (area's columns) */
    float *values;          /* (as many as are asked for) */
    unsigned char *raw;
};

static struct lmq_area
blocks_of(const struct lmq_affine *affine, const struct lmq_area *area)
{
    uint64_t last_row = area->row + area->n_rows - 1;
    uint64_t last_column = area->column + area->n_cols - 1;
    struct lmq_area blocks = {
        .row = area->row / affine->block_rows,
        .n_cols = (size_t)affine->n_groups,
    };

    blocks.n_rows =
        (size_t)(last_row / affine->block_rows - blocks.row) + 1;
    if (!affine->has_members) {
        blocks.column = area->column / affine->block_cols;
        blocks.n_cols =
            (size_t)(last_column / affine->block_cols - blocks.column) + 1;
    }
    return blocks;
}

static struct lmq_area
members_of(const struct lmq_area *area)
{
    return (struct lmq_area){0, area->column, 1, area->n_cols};
}

/* The most bytes that a grid of the matrix needs. */
static bool
raw_size(const struct lmq_affine *affine, const struct lmq_area *area,
         const struct lmq_area *blocks, size_t *size)
{
    const struct lmq_area members = members_of(area);
    const struct {
        bool is_there;
        const struct lmq_grid *grid;
        const struct lmq_area *area;
    } reads[] = {
        {true, &affine->codes, area},
        {true, &affine->scales, blocks},
        {affine->has_zeros, &affine->zeros, blocks},
        {affine->has_members, &affine->members, &members},
    };

    *size = 0;
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        size_t one;
        if (!reads[i].is_there)
            continue;
        if (!lmq_grid_raw_size(reads[i].grid, reads[i].area, &one))
            return false;
        if (one > *size)
            *size = one;
    }
    return true;
}

static enum lmq_status
reserve_parts(const struct lmq_affine *affine, const struct lmq_area *area,
              size_t n_values, struct lmq_scratch *scratch, struct parts *parts,
              struct lmq_error *err)
{
    size_t n_blocks, n_floats, n_raw, size;

    parts->blocks = blocks_of(affine, area);
    if (!lmq_size_mul(parts->blocks.n_rows, parts->blocks.n_cols,
                      &n_blocks) ||
        !lmq_size_mul(n_blocks, 2, &n_floats) ||
        !lmq_size_add(n_floats, area->n_cols, &n_floats) ||
        !lmq_size_add(n_floats, n_values, &n_floats) ||
        !lmq_size_mul(n_floats, sizeof(float), &size) ||
        !raw_size(affine, area, &parts->blocks, &n_raw) ||
        !lmq_size_add(size, n_raw, &size))
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_scratch_reserve(scratch, size, err);
    if (status != LMQ_OK)
        return status;
    parts->scales = (float *)(void *)scratch->bytes;
    parts->zeros = parts->scales + n_blocks;
    parts->members = parts->zeros + n_blocks;
    parts->values = parts->members + area->n_cols;
    parts->raw = (unsigned char *)(parts->scales + n_floats);
    return LMQ_OK;
}

/* The file was checked when it was opened; but it may have changed. */
static enum lmq_status
check_members(const struct lmq_affine *affine, const struct lmq_tensor *tensor,
              const float *members, size_t n, struct lmq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(members[i] >= 0 && members[i] < (float)affine->n_groups))
            return lmq_fail(err, LMQ_ERR_FORMAT, affine->members.offset,
                            "tensor '%s': a column belongs to group %.0f of "
                            "%" PRIu64,
                            tensor->stored_name, (double)members[i],
                            affine->n_groups);
    return LMQ_OK;
}

/* Rows of blocks are those of the matrix, of which there are several. */
static enum lmq_status
apply_gains(struct lmq_checkpoint *checkpoint, const struct lmq_affine *affine,
            struct parts *parts, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    float gain = 0;

    for (size_t r = 0; r < parts->blocks.n_rows && status == LMQ_OK; r++) {
        uint64_t row = parts->blocks.row + r;
        const struct lmq_area one = {0, row / affine->gain_rows, 1, 1};
        unsigned char raw[8];
        if (r == 0 || row % affine->gain_rows == 0)
            status = lmq_grid_read(checkpoint, &affine->gains, &one, raw,
                                   &gain, err);
        float *scales = parts->scales + r * parts->blocks.n_cols;
        for (size_t i = 0; i < parts->blocks.n_cols; i++)
            scales[i] *= gain / affine->gain_divisor;
    }
    return status;
}

static enum lmq_status
read_parts(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
           const struct lmq_area *area, struct parts *parts,
           struct lmq_error *err)
{
    const struct lmq_affine *affine = affine_of(tensor);
    const struct lmq_area members = members_of(area);
    size_t n = parts->blocks.n_rows * parts->blocks.n_cols;
    enum lmq_status status =
        lmq_grid_read(checkpoint, &affine->scales, &parts->blocks, parts->raw,
                      parts->scales, err);

    for (size_t i = 0; i < n && affine->is_inverse && status == LMQ_OK; i++)
        parts->scales[i] = 1 / parts->scales[i];
    if (status == LMQ_OK && affine->gain_divisor > 0)
        status = apply_gains(checkpoint, affine, parts, err);
    for (size_t i = 0; i < n && affine->divisor > 0; i++)
        parts->scales[i] /= affine->divisor;
    for (size_t i = 0; i < n && affine->multiplier > 0; i++)
        parts->scales[i] *= affine->multiplier;
    if (!affine->has_zeros)
        memset(parts->zeros, 0, n * sizeof(float));
    else if (status == LMQ_OK)
        status = lmq_grid_read(checkpoint, &affine->zeros, &parts->blocks,
                               parts->raw, parts->zeros, err);
    if (!affine->has_members || status != LMQ_OK)
        return status;
    status = lmq_grid_read(checkpoint, &affine->members, &members, parts->raw,
                           parts->members, err);
    return status == LMQ_OK ? check_members(affine, tensor, parts->members,
                                            area->n_cols, err)
                            : status;
}

/* ---- Elements ---- */

/* Columns from this one on that are of the same group. */
static size_t
same_group(const struct lmq_affine *affine, const struct lmq_area *area,
           const struct parts *parts, size_t column, size_t *group)
{
    if (affine->has_members) {
        *group = (size_t)parts->members[column];
        return 1;
    }
    uint64_t at = area->column + column;
    *group = (size_t)(at / affine->block_cols - parts->blocks.column);
    return (size_t)lmq_u64_min(affine->block_cols - at % affine->block_cols,
                               area->n_cols - column);
}

/* code * scale + bias, rounded after each step as the scheme's own programs do
 * it in the type of its scales. */
static void
scale_and_add(enum lmq_dtype rounding, float scale, float bias, float *values,
              size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = lmq_dtype_round(
            rounding, lmq_dtype_round(rounding, values[i] * scale) + bias);
}

/* Takes the zero points off the codes, and multiplies if scales are wanted. */
static void
decode(const struct lmq_affine *affine, const struct lmq_area *area,
       const struct parts *parts, bool is_scaled, float *values)
{
    for (size_t r = 0; r < area->n_rows; r++) {
        size_t block =
            (size_t)((area->row + r) / affine->block_rows -
                     parts->blocks.row) * parts->blocks.n_cols;
        for (size_t c = 0, n; c < area->n_cols; c += n, values += n) {
            size_t group;
            n = same_group(affine, area, parts, c, &group);
            float zero = parts->zeros[block + group];
            float scale = is_scaled ? parts->scales[block + group] : 1;
            if (affine->adds_zeros) {
                scale_and_add(affine->rounding, scale, zero, values, n);
                continue;
            }
            for (size_t i = 0; i < n; i++)
                values[i] = (values[i] - zero) * scale;
            for (size_t i = 0; i < n && is_scaled && affine->factor > 0; i++)
                values[i] *= affine->factor;
        }
    }
}

/* Scales and zero points of the blocks that the area touches, then its codes;
 * all in the caller's scratch. */
static enum lmq_status
read_area(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          const struct lmq_area *area, float *values,
          struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct lmq_affine *affine = affine_of(tensor);
    struct parts parts;
    enum lmq_status status =
        reserve_parts(affine, area, 0, scratch, &parts, err);

    if (status == LMQ_OK)
        status = read_parts(checkpoint, tensor, area, &parts, err);
    if (status == LMQ_OK)
        status = lmq_grid_read(checkpoint, &affine->codes, area, parts.raw,
                               values, err);
    if (status == LMQ_OK)
        decode(affine, area, &parts, true, values);
    return status;
}

/* ---- Integers ---- */

/* The least width of a container that has all codes less zero points; 0: there
 * is none. A zero point is a code or, where one was added, one more. */
static unsigned
width_of(const struct lmq_affine *affine)
{
    unsigned bits = affine->codes.bits;

    if (affine->codes.levels != NULL ||
        (bits == 0 && affine->codes.dtype != LMQ_DTYPE_I8) ||
        (affine->has_zeros && (bits == 0 || affine->zeros.bits != bits)))
        return 0;
    bits = bits == 0 ? LMQ_BITS_MAX : bits + affine->has_zeros;
    while (!lmq_width_is_valid(bits) && bits < LMQ_BITS_MAX)
        bits++;
    return bits <= LMQ_BITS_MAX ? bits : 0;
}

/* Whether rows can be taken as integers with a scale for each group, bit for
 * bit: they fit, groups go along rows and are not permuted, and a scale is a
 * float16 or float32 as it stands. Else group_size stays 0 and there are only
 * floats. */
static struct lmq_quant
quant_of(const struct lmq_affine *affine)
{
    struct lmq_quant quant = {
        .bits = width_of(affine),
        .method = LMQ_METHOD_ABSMAX,
        .scales = affine->scales.dtype == LMQ_DTYPE_F16 ? LMQ_SCALES_F16
                                                        : LMQ_SCALES_F32,
        .multiplier = 1,
    };
    uint64_t block = lmq_u64_min(affine->block_cols, affine->packing.n_cols);

    if (quant.bits == 0 || affine->has_members || affine->divisor > 0 ||
        affine->multiplier > 0 || affine->is_inverse ||
        affine->scales.is_exponent || affine->scales.dtype == LMQ_DTYPE_F64)
        return quant;
    for (unsigned group = LMQ_GROUP_MIN; group <= LMQ_GROUP_MAX; group *= 2)
        if (block % group == 0)
            quant.group_size = group;
    if (quant.group_size == 0 && block == affine->packing.n_cols)
        quant.group_size = LMQ_GROUP_MAX; /* the last one is shorter */
    return quant;
}

/* Scales of the groups that a row is said to have, each of which lies in one
 * block. Beside a scale of zero all integers are zeros. */
static void
spread_scales(const struct lmq_affine *affine, const struct lmq_quant *quant,
              const struct lmq_area *area, const struct parts *parts,
              int8_t *q, unsigned char *scales)
{
    size_t n = lmq_groups_per_row(area->n_cols, quant->group_size);
    size_t size = lmq_scale_size(quant->scales);
    float factor = affine->factor > 0 ? affine->factor : 1;

    for (size_t r = 0; r < area->n_rows; r++) {
        size_t block =
            (size_t)((area->row + r) / affine->block_rows -
                     parts->blocks.row) * parts->blocks.n_cols;
        for (size_t i = 0; i < n; i++, scales += size) {
            size_t at = i * quant->group_size;
            uint64_t column = area->column + at;
            float scale = factor *
                          parts->scales[block +
                                        (size_t)(column / affine->block_cols -
                                                 parts->blocks.column)];
            if (scale >= 0 && scale <= 0) {
                scale = 0; /* not -0 */
                memset(q + r * area->n_cols + at, 0,
                       lmq_size_min(quant->group_size, area->n_cols - at));
            }
            lmq_scales_store(quant->scales, 1, &scale, 1, scales);
        }
    }
}

/* Rows, or a part of one. */
static enum lmq_status
read_integer_area(struct lmq_checkpoint *checkpoint,
                  const struct lmq_tensor *tensor, const struct lmq_area *area,
                  int8_t *q, unsigned char *scales,
                  struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct lmq_affine *affine = affine_of(tensor);
    size_t n = area->n_rows * area->n_cols;
    struct parts parts;
    enum lmq_status status =
        reserve_parts(affine, area, n, scratch, &parts, err);

    if (status == LMQ_OK)
        status = read_parts(checkpoint, tensor, area, &parts, err);
    if (status == LMQ_OK)
        status = lmq_grid_read(checkpoint, &affine->codes, area, parts.raw,
                               parts.values, err);
    if (status != LMQ_OK)
        return status;
    decode(affine, area, &parts, false, parts.values);
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)parts.values[i];
    spread_scales(affine, &tensor->quant, area, &parts, q, scales);
    return LMQ_OK;
}

static enum lmq_status
read_integers(struct lmq_checkpoint *checkpoint,
              const struct lmq_tensor *tensor, uint64_t row, size_t n,
              int8_t *q, unsigned char *scales, struct lmq_scratch *scratch,
              struct lmq_error *err)
{
    const struct lmq_quant *quant = &tensor->quant;
    size_t n_cols = (size_t)tensor->packing->n_cols, column = 0;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        struct lmq_area area = {row, column, 1,
                                lmq_size_min(STEP, n_cols - column)};
        if (n_cols <= STEP)
            area.n_rows = lmq_size_min(STEP / n_cols, n);
        status = read_integer_area(checkpoint, tensor, &area, q, scales,
                                   scratch, err);
        q += area.n_rows * area.n_cols;
        scales += area.n_rows * lmq_row_scales_size(area.n_cols, quant);
        column += area.n_cols;
        if (column == n_cols) {
            row += area.n_rows;
            n -= area.n_rows;
            column = 0;
        }
    }
    return status;
}

/* ---- For schemes ---- */

/* Most lines repeat the words of the one before, whose numbers are known. */
enum lmq_status
lmq_affine_centre(const struct lmq_packer *packer, struct lmq_affine *affine,
                  uint64_t n_rows, uint64_t n_cols, struct lmq_error *err)
{
    enum { STRIP = 4096 };
    struct lmq_checkpoint *checkpoint = packer->checkpoint;
    const struct lmq_grid *zeros = &affine->zeros;
    const uint64_t n_lines = zeros->is_turned ? n_cols : n_rows;
    const uint64_t length = zeros->is_turned ? n_rows : n_cols;
    const unsigned bits = affine->codes.bits;
    const float middle = bits == 0 ? 0 : (float)(1u << (bits - 1));
    unsigned char raw[STRIP], known[STRIP];
    float values[STRIP];
    size_t n_known = 0;

    for (uint64_t i = 0; i < n_lines; i++)
        for (uint64_t at = 0; at < length; at += STRIP) {
            size_t n = (size_t)lmq_u64_min(STRIP, length - at), size;
            const struct lmq_area area =
                zeros->is_turned ? (struct lmq_area){at, i, n, 1}
                                 : (struct lmq_area){i, at, 1, n};
            enum lmq_status status =
                lmq_grid_read(checkpoint, zeros, &area, raw, NULL, err);
            if (status != LMQ_OK)
                return status;
            lmq_grid_raw_size(zeros, &area, &size);
            if (n == n_known && memcmp(raw, known, size) == 0)
                continue;
            status =
                lmq_grid_read(checkpoint, zeros, &area, known, values, err);
            if (status != LMQ_OK)
                return status;
            n_known = n;
            for (size_t j = 0; j < n; j++)
                if (values[j] < middle || values[j] > middle)
                    return LMQ_OK;
        }
    affine->has_zeros = false;
    affine->codes.minus = (int32_t)middle;
    return LMQ_OK;
}

struct lmq_affine *
lmq_affine_new(const char *name)
{
    struct lmq_affine *affine = calloc(1, sizeof(*affine));

    if (affine != NULL) {
        snprintf(affine->packing.name, sizeof(affine->packing.name), "%s",
                 name);
        affine->packing.read = read_area;
        affine->packing.read_integers = read_integers;
    }
    return affine;
}

enum lmq_status
lmq_affine_join(struct lmq_packer *packer, struct lmq_tensor *tensor,
                const char *ending, const char *new_ending,
                struct lmq_affine *affine, const uint64_t *dims, size_t n_dims,
                struct lmq_tensor *const *parts, size_t n_parts,
                struct lmq_error *err)
{
    enum lmq_status status =
        lmq_packer_join(packer, tensor, ending, new_ending, &affine->packing,
                        dims, n_dims, parts, n_parts, err);

    if (status == LMQ_OK)
        tensor->quant = quant_of(affine);
    return status;
}
