/*
 * tiles.c - arranges quantized rows as the container stores them.
 */
#include "config.h"

#include "quantize/tiles.h"

#include <string.h>

#include "base/bytes.h"
#include "base/size.h"
#include "quantize/dtype.h"

const struct lmq_name lmq_layout_names[] = {
    {"rows", LMQ_LAYOUT_ROWS},
    {"tiles", LMQ_LAYOUT_TILES},
    {NULL, 0},
};

bool
lmq_layout_sizes(enum lmq_layout layout, uint64_t n_rows, uint64_t n_cols,
                 unsigned group, enum lmq_scales scales, uint64_t *values_size,
                 uint64_t *scales_size)
{
    uint64_t n_groups = lmq_u64_ceil_div(n_cols, group);

    if (layout == LMQ_LAYOUT_TILES) {
        if (!lmq_u64_align(n_rows, LMQ_TILE_ROWS, &n_rows) ||
            !lmq_u64_mul(n_groups, group, &n_cols))
            return false;
    }
    return lmq_u64_mul(n_rows, n_cols, values_size) &&
           lmq_u64_mul(n_rows, n_groups, scales_size) &&
           lmq_u64_mul(*scales_size, lmq_scale_size(scales), scales_size);
}

void
lmq_scales_store(enum lmq_scales type, float multiplier, const float *scales,
                 size_t n, unsigned char *bytes)
{
    for (size_t i = 0; i < n; i++) {
        if (type == LMQ_SCALES_F16)
            lmq_store_u16le(bytes + 2 * i,
                            lmq_f32_to_f16(scales[i] / multiplier));
        else
            lmq_store_f32le(bytes + 4 * i, scales[i]);
    }
}

void
lmq_scales_load(enum lmq_scales type, float multiplier,
                const unsigned char *bytes, size_t n, float *scales)
{
    for (size_t i = 0; i < n; i++)
        scales[i] = (type == LMQ_SCALES_F16
                         ? lmq_f16_to_f32(lmq_load_u16le(bytes + 2 * i))
                         : lmq_load_f32le(bytes + 4 * i)) *
                    multiplier;
}

size_t
lmq_tile_values_size(size_t n_cols, size_t group)
{
    return lmq_groups_per_row(n_cols, group) * lmq_tile_group_bytes(group);
}

size_t
lmq_tile_scales_size(size_t n_cols, size_t group, enum lmq_scales type)
{
    return lmq_groups_per_row(n_cols, group) * lmq_tile_scale_bytes(type);
}

/* One row into its tile. */
static void
pack_row(const int8_t *q, size_t n_cols, unsigned char *to)
{
    size_t column = 0;

    for (; column + LMQ_TILE_COLUMNS <= n_cols; column += LMQ_TILE_COLUMNS) {
        uint32_t four;
        memcpy(&four, q + column, sizeof(four));
        four ^= 0x80808080u; /* q + 128 in each byte */
        memcpy(to, &four, sizeof(four));
        to += LMQ_TILE_ROWS * LMQ_TILE_COLUMNS;
    }
    for (size_t i = 0; column + i < n_cols; i++)
        to[i] = (unsigned char)(q[column + i] + 128);
}

void
lmq_tiles_pack(const int8_t *q, size_t stride, const void *scales,
               size_t n_rows, size_t n_cols, size_t group,
               enum lmq_scales type, unsigned char *tile_values,
               unsigned char *tile_scales)
{
    size_t n_groups = lmq_groups_per_row(n_cols, group);
    size_t n_tiles = lmq_tiles_count(n_rows), size = lmq_scale_size(type);
    size_t values_size = lmq_tile_values_size(n_cols, group);
    size_t scales_size = lmq_tile_scales_size(n_cols, group, type);
    const unsigned char *from = scales;

    memset(tile_values, 128, n_tiles * values_size);
    memset(tile_scales, 0, n_tiles * scales_size);
    for (size_t i = 0; i < n_rows; i++) {
        size_t tile = i / LMQ_TILE_ROWS, row = i % LMQ_TILE_ROWS;
        unsigned char *to = tile_scales + tile * scales_size + row * size;
        pack_row(q + i * stride, n_cols,
                 tile_values + tile * values_size + lmq_tile_index(row, 0));
        for (size_t g = 0; g < n_groups; g++, from += size)
            memcpy(to + g * lmq_tile_scale_bytes(type), from, size);
    }
}

void
lmq_tile_unpack(const unsigned char *tile_values,
                const unsigned char *tile_scales, size_t n_rows, size_t n_cols,
                size_t group, enum lmq_scales type, int8_t *q, size_t stride,
                void *scales)
{
    size_t n_groups = lmq_groups_per_row(n_cols, group);
    size_t size = lmq_scale_size(type);
    unsigned char *to_scales = scales;

    for (size_t row = 0; row < n_rows; row++) {
        for (size_t column = 0; column < n_cols; column++)
            q[row * stride + column] =
                (int8_t)(tile_values[lmq_tile_index(row, column)] - 128);
        for (size_t g = 0; g < n_groups; g++)
            memcpy(to_scales + (row * n_groups + g) * size,
                   tile_scales + (g * LMQ_TILE_ROWS + row) * size, size);
    }
}

/* ---- Padding ---- */

bool
lmq_tile_values_are_filled(const unsigned char *bytes, size_t n, uint64_t at,
                           uint64_t n_rows, uint64_t n_cols, size_t group)
{
    uint64_t size = lmq_tile_values_size((size_t)n_cols, group);
    bool is_filled = true;

    if (n_rows % LMQ_TILE_ROWS == 0 && n_cols % group == 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        uint64_t tile = (at + i) / size, in_tile = (at + i) % size;
        uint64_t four = in_tile / LMQ_TILE_COLUMNS;
        uint64_t row = tile * LMQ_TILE_ROWS + four % LMQ_TILE_ROWS;
        uint64_t column = four / LMQ_TILE_ROWS * LMQ_TILE_COLUMNS +
                          in_tile % LMQ_TILE_COLUMNS;
        is_filled &= (row < n_rows && column < n_cols) || bytes[i] == 128;
    }
    return is_filled;
}

bool
lmq_tile_scales_are_filled(const unsigned char *bytes, size_t n, uint64_t at,
                           uint64_t n_rows, uint64_t n_cols, size_t group,
                           enum lmq_scales type)
{
    uint64_t size = lmq_tile_scales_size((size_t)n_cols, group, type);
    bool is_filled = true;

    if (n_rows % LMQ_TILE_ROWS == 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        uint64_t tile = (at + i) / size, in_tile = (at + i) % size;
        uint64_t row = tile * LMQ_TILE_ROWS +
                       in_tile / lmq_scale_size(type) % LMQ_TILE_ROWS;
        is_filled &= row < n_rows || bytes[i] == 0;
    }
    return is_filled;
}
