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
                 const struct lmq_quant *quant, uint64_t *values_size,
                 uint64_t *scales_size)
{
    uint64_t n_groups = lmq_u64_ceil_div(n_cols, quant->group_size);

    if (layout == LMQ_LAYOUT_TILES) {
        if (!lmq_u64_align(n_rows, LMQ_TILE_ROWS, &n_rows) ||
            !lmq_u64_mul(n_groups, quant->group_size, &n_cols))
            return false;
        n_cols = n_cols / 8 * quant->bits;
    }
    return lmq_u64_mul(n_rows, n_cols, values_size) &&
           lmq_u64_mul(n_rows, n_groups, scales_size) &&
           lmq_u64_mul(*scales_size, lmq_scale_size(quant->scales),
                       scales_size);
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
lmq_tile_values_size(size_t n_cols, size_t group, unsigned bits)
{
    return lmq_groups_per_row(n_cols, group) *
           lmq_tile_group_bytes(group, bits);
}

size_t
lmq_tile_scales_size(size_t n_cols, size_t group, enum lmq_scales type)
{
    return lmq_groups_per_row(n_cols, group) * lmq_tile_scale_bytes(type);
}

/* ---- Numbers of fewer than 8 bits ---- */

#define LINE ((size_t)64) /* bytes of a step of 8 bits, and of a line */
#define BLOCK_STEPS ((size_t)8)
#define BLOCK_COLUMNS (BLOCK_STEPS * LMQ_TILE_COLUMNS)
#define NIBBLE_LINES ((size_t)4)
#define EACH 0x01010101u /* a number in each byte of four */

/* Where a step of a block stands: its lower four bits, and those above. */
struct step {
    size_t nibble_line, nibble_shift, plane_line, plane_shift;
};

static struct step
step_of(size_t step, unsigned bits)
{
    size_t above = step * (bits - 4);

    return (struct step){step / 2, step % 2 * 4, NIBBLE_LINES + above / 8,
                         above % 8};
}

static uint32_t
load_word(const unsigned char *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

/* Four numbers of a row side by side, into bytes that are zero there. `to` is
 * the row's place in the first line of their block. */
static void
put_four(uint32_t four, size_t step, unsigned bits, unsigned char *to)
{
    const struct step at = step_of(step, bits);
    uint32_t half = 1u << (bits - 1), mask = 2 * half - 1;
    uint32_t number = (four & mask * EACH) ^ half * EACH;
    unsigned char *nibbles = to + at.nibble_line * LINE;
    uint32_t word = load_word(nibbles) |
                    (number & 0x0f * EACH) << at.nibble_shift;

    memcpy(nibbles, &word, sizeof(word));
    if (bits == 4)
        return;
    unsigned char *plane = to + at.plane_line * LINE;
    word = load_word(plane) |
           (number >> 4 & (mask >> 4) * EACH) << at.plane_shift;
    memcpy(plane, &word, sizeof(word));
}

static uint32_t
get_four(const unsigned char *from, size_t step, unsigned bits)
{
    const struct step at = step_of(step, bits);
    uint32_t half = 1u << (bits - 1), above = (1u << (bits - 4)) - 1;
    uint32_t number =
        load_word(from + at.nibble_line * LINE) >> at.nibble_shift &
        0x0f * EACH;

    if (bits > 4)
        number |= (load_word(from + at.plane_line * LINE) >> at.plane_shift &
                   above * EACH)
                  << 4;
    /* In each byte, and without a borrow from the next. */
    return ((number | 0x80 * EACH) - half * EACH) ^ 0x80 * EACH;
}

/* The place of a row in the first line of the block of a column. */
static size_t
block_at(size_t row, size_t column, unsigned bits)
{
    return column / BLOCK_COLUMNS * LINE * bits + row * LMQ_TILE_COLUMNS;
}

int
lmq_tile_number(const unsigned char *tile_values, size_t row, size_t column,
                unsigned bits)
{
    int8_t four[LMQ_TILE_COLUMNS];

    if (bits == LMQ_BITS_MAX)
        return tile_values[lmq_tile_index(row, column)] - 128;
    uint32_t word =
        get_four(tile_values + block_at(row, column, bits),
                 column % BLOCK_COLUMNS / LMQ_TILE_COLUMNS, bits);
    memcpy(four, &word, sizeof(four));
    return four[column % LMQ_TILE_COLUMNS];
}

/* With the padding, up to the end of the last group; NULL: only that. */
static void
pack_narrow(const int8_t *q, size_t n_cols, size_t padded, unsigned bits,
            unsigned char *to)
{
    for (size_t column = 0; column < padded; column += LMQ_TILE_COLUMNS) {
        uint32_t four = 0;
        if (q != NULL && column < n_cols)
            memcpy(&four, q + column,
                   lmq_size_min(LMQ_TILE_COLUMNS, n_cols - column));
        put_four(four, column % BLOCK_COLUMNS / LMQ_TILE_COLUMNS, bits,
                 to + block_at(0, column, bits));
    }
}

static void
unpack_narrow(const unsigned char *from, size_t n_cols, unsigned bits,
              int8_t *q)
{
    for (size_t column = 0; column < n_cols; column += LMQ_TILE_COLUMNS) {
        uint32_t four =
            get_four(from + block_at(0, column, bits),
                     column % BLOCK_COLUMNS / LMQ_TILE_COLUMNS, bits);
        memcpy(q + column, &four,
               lmq_size_min(LMQ_TILE_COLUMNS, n_cols - column));
    }
}

/* ---- Tiles ---- */

/* One row into its tile. */
static void
pack_row(const int8_t *q, size_t n_cols, unsigned char *to)
{
    size_t column = 0;

    for (; column + LMQ_TILE_COLUMNS <= n_cols; column += LMQ_TILE_COLUMNS) {
        uint32_t four = load_word((const unsigned char *)q + column) ^
                        0x80 * EACH; /* q + 128 in each byte */
        memcpy(to, &four, sizeof(four));
        to += LMQ_TILE_ROWS * LMQ_TILE_COLUMNS;
    }
    for (size_t i = 0; column + i < n_cols; i++)
        to[i] = (unsigned char)(q[column + i] + 128);
}

#define SIDES ((size_t)4) /* rows that are packed side by side */

typedef uint32_t quad __attribute__((vector_size(16)));

#ifndef __has_builtin
#define __has_builtin(name) 0
#endif
#if __has_builtin(__builtin_shufflevector)
#define PICK __builtin_shufflevector
#else /* gcc before 12 */
#define PICK(a, b, ...) __builtin_shuffle(a, b, (quad){__VA_ARGS__})
#endif

/* So many rows into their tile: four columns of each stand side by side there,
 * so what is written is a line of as many rows as a vector holds. */
static void
pack_sides(const int8_t *q, size_t stride, size_t n_cols, unsigned char *to)
{
    const size_t step = sizeof(quad), line = LMQ_TILE_ROWS * LMQ_TILE_COLUMNS;
    size_t column = 0;

    for (; column + step <= n_cols; column += step) {
        quad row[SIDES], pairs[SIDES];
        for (size_t i = 0; i < SIDES; i++) {
            memcpy(&row[i], q + i * stride + column, step);
            row[i] ^= 0x80 * EACH; /* q + 128 in each byte */
        }
        for (size_t i = 0; i < 2; i++) { /* of rows 2 i and 2 i + 1 */
            pairs[i] = PICK(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
            pairs[2 + i] = PICK(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
        }
        for (size_t i = 0; i < SIDES; i += 2, to += 2 * line) {
            quad even = PICK(pairs[i], pairs[i + 1], 0, 1, 4, 5);
            quad odd = PICK(pairs[i], pairs[i + 1], 2, 3, 6, 7);
            memcpy(to, &even, step);
            memcpy(to + line, &odd, step);
        }
    }
    for (size_t i = 0; i < SIDES; i++)
        pack_row(q + i * stride + column, n_cols - column,
                 to + i * LMQ_TILE_COLUMNS);
}

static void
pack_values(const int8_t *q, size_t stride, size_t n_rows, size_t n_cols,
            const struct lmq_quant *quant, unsigned char *tile_values)
{
    unsigned bits = quant->bits;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t size = lmq_tile_values_size(n_cols, quant->group_size, bits);
    size_t n_padded = lmq_tiles_count(n_rows) * LMQ_TILE_ROWS;
    bool is_narrow = bits < LMQ_BITS_MAX;

    memset(tile_values, is_narrow ? 0 : 128, n_padded / LMQ_TILE_ROWS * size);
    for (size_t i = 0, n; i < (is_narrow ? n_padded : n_rows); i += n) {
        const int8_t *row = i < n_rows ? q + i * stride : NULL;
        unsigned char *to = tile_values + i / LMQ_TILE_ROWS * size +
                            i % LMQ_TILE_ROWS * LMQ_TILE_COLUMNS;
        n = !is_narrow && n_rows - i >= SIDES ? SIDES : 1;
        if (is_narrow)
            pack_narrow(row, n_cols, n_groups * quant->group_size, bits, to);
        else if (n == SIDES)
            pack_sides(row, stride, n_cols, to);
        else
            pack_row(row, n_cols, to);
    }
}

void
lmq_tiles_pack(const int8_t *q, size_t stride, const void *scales,
               size_t n_rows, size_t n_cols, const struct lmq_quant *quant,
               unsigned char *tile_values, unsigned char *tile_scales)
{
    enum lmq_scales type = quant->scales;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t size = lmq_scale_size(type);
    size_t scales_size =
        lmq_tile_scales_size(n_cols, quant->group_size, type);
    const unsigned char *from = scales;

    pack_values(q, stride, n_rows, n_cols, quant, tile_values);
    memset(tile_scales, 0, lmq_tiles_count(n_rows) * scales_size);
    for (size_t i = 0; i < n_rows; i++) {
        unsigned char *to = tile_scales + i / LMQ_TILE_ROWS * scales_size +
                            i % LMQ_TILE_ROWS * size;
        for (size_t g = 0; g < n_groups; g++, from += size)
            memcpy(to + g * lmq_tile_scale_bytes(type), from, size);
    }
}

void
lmq_tile_unpack(const unsigned char *tile_values,
                const unsigned char *tile_scales, size_t n_rows, size_t n_cols,
                const struct lmq_quant *quant, int8_t *q, size_t stride,
                void *scales)
{
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t size = lmq_scale_size(quant->scales);
    unsigned char *to_scales = scales;

    for (size_t row = 0; row < n_rows; row++) {
        if (quant->bits < LMQ_BITS_MAX)
            unpack_narrow(tile_values + row * LMQ_TILE_COLUMNS, n_cols,
                          quant->bits, q + row * stride);
        else
            for (size_t column = 0; column < n_cols; column++)
                q[row * stride + column] =
                    (int8_t)(tile_values[lmq_tile_index(row, column)] - 128);
        for (size_t g = 0; g < n_groups; g++)
            memcpy(to_scales + (row * n_groups + g) * size,
                   tile_scales + (g * LMQ_TILE_ROWS + row) * size, size);
    }
}

void
lmq_tiles_unpack(const unsigned char *tile_values,
                 const unsigned char *tile_scales, size_t n_rows,
                 size_t n_cols, const struct lmq_quant *quant, int8_t *q,
                 void *scales)
{
    size_t values_size =
        lmq_tile_values_size(n_cols, quant->group_size, quant->bits);
    size_t scales_size =
        lmq_tile_scales_size(n_cols, quant->group_size, quant->scales);
    size_t row_scales = lmq_row_scales_size(n_cols, quant);
    unsigned char *to_scales = scales;

    for (size_t row = 0; row < n_rows; row += LMQ_TILE_ROWS) {
        lmq_tile_unpack(tile_values, tile_scales,
                        lmq_size_min(LMQ_TILE_ROWS, n_rows - row), n_cols,
                        quant, q + row * n_cols, n_cols,
                        to_scales + row * row_scales);
        tile_values += values_size;
        tile_scales += scales_size;
    }
}

/* ---- Padding ---- */

/* Byte `in_block` of a block of narrow numbers that begins at a column: whether
 * what belongs to no column before n_cols is q = 0. */
static bool
is_filled_byte(unsigned byte, size_t in_block, uint64_t column,
               uint64_t n_cols, unsigned bits)
{
    size_t line = in_block / LINE, above = bits - 4;
    bool is_plane = line >= NIBBLE_LINES;
    size_t width = is_plane ? above : 4, n = 8 / width;
    size_t first = is_plane ? (line - NIBBLE_LINES) * n : line * n;
    unsigned half = 1u << (bits - 1), zero = is_plane ? half >> 4 : half & 15;

    column += first * LMQ_TILE_COLUMNS + in_block % LMQ_TILE_COLUMNS;
    for (size_t i = 0; i < n; i++, column += LMQ_TILE_COLUMNS)
        if (column >= n_cols &&
            (byte >> i * width & ((1u << width) - 1)) != zero)
            return false;
    return true;
}

bool
lmq_tile_values_are_filled(const unsigned char *bytes, size_t n, uint64_t at,
                           uint64_t n_rows, uint64_t n_cols,
                           const struct lmq_quant *quant)
{
    unsigned bits = quant->bits;
    uint64_t size =
        lmq_tile_values_size((size_t)n_cols, quant->group_size, bits);
    bool is_filled = true;

    if (n_rows % LMQ_TILE_ROWS == 0 && n_cols % quant->group_size == 0)
        return true;
    for (size_t i = 0; i < n; i++) {
        uint64_t tile = (at + i) / size, in_tile = (at + i) % size;
        uint64_t four = in_tile / LMQ_TILE_COLUMNS;
        uint64_t row = tile * LMQ_TILE_ROWS + four % LMQ_TILE_ROWS;
        uint64_t column = four / LMQ_TILE_ROWS * LMQ_TILE_COLUMNS +
                          in_tile % LMQ_TILE_COLUMNS;
        if (bits == LMQ_BITS_MAX)
            is_filled &= (row < n_rows && column < n_cols) || bytes[i] == 128;
        else
            is_filled &= is_filled_byte(
                bytes[i], (size_t)(in_tile % (LINE * bits)),
                in_tile / (LINE * bits) * BLOCK_COLUMNS,
                row < n_rows ? n_cols : 0, bits);
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
