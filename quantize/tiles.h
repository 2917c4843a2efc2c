/*
 * tiles.h - the two arrangements of a quantized matrix in a container: the
 * one place that knows them, but for the kernels' inner loops.
 *
 * Rows: int8 row after row, then the scales row after row. Tiles: 16 rows
 * side by side, in the order in which the kernels read them, so that a mapped
 * file is multiplied without repacking:
 *
 *   values: [row tile][column group][group / 4][16 rows][4 columns], as q + 128
 *   scales: [row tile][column group][16 rows]
 *
 * A step are the 64 numbers of 16 rows and 4 columns. With fewer than 8 bits
 * (tiles only) a number is q + 2^(bits - 1), and 8 steps are `bits` lines of 64
 * bytes: byte i of line s / 2 has the lower 4 bits of number i of step s, in
 * its lower half for an even s; what is above them, p = 1 or 2 bits, is in the
 * lines from 4 on, 8 / p steps a line, the first lowest.
 *
 * Rows after the last and columns after the last are zeros (q = 0, scale 0).
 */
#ifndef LMQ_QUANTIZE_TILES_H
#define LMQ_QUANTIZE_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quantize/group.h"

/* Rows of a tile, and columns of a row that lie side by side in it. */
#define LMQ_TILE_ROWS 16
#define LMQ_TILE_COLUMNS 4

/* The values stand in .lmq files (lmq(5), "Layouts"): append only. */
enum lmq_layout { LMQ_LAYOUT_ROWS = 0, LMQ_LAYOUT_TILES = 1, LMQ_LAYOUT_COUNT };

extern const struct lmq_name lmq_layout_names[];

/* Bytes of all values and of all scales of a matrix; false if that wraps. */
bool lmq_layout_sizes(enum lmq_layout layout, uint64_t n_rows, uint64_t n_cols,
                      const struct lmq_quant *quant, uint64_t *values_size,
                      uint64_t *scales_size);

static inline size_t
lmq_scale_size(enum lmq_scales scales)
{
    return scales == LMQ_SCALES_F16 ? 2 : 4;
}

/* Bytes of the scales of a row. */
static inline size_t
lmq_row_scales_size(size_t n_cols, const struct lmq_quant *quant)
{
    return lmq_groups_per_row(n_cols, quant->group_size) *
           lmq_scale_size(quant->scales);
}

/* Scales as stored: divided by the multiplier, little-endian. */
void lmq_scales_store(enum lmq_scales type, float multiplier,
                      const float *scales, size_t n, unsigned char *bytes);
void lmq_scales_load(enum lmq_scales type, float multiplier,
                     const unsigned char *bytes, size_t n, float *scales);

/* ---- Tiles ---- */

/* Of a matrix; the last one may have fewer rows. */
static inline size_t
lmq_tiles_count(size_t n_rows)
{
    return n_rows / LMQ_TILE_ROWS + (n_rows % LMQ_TILE_ROWS != 0);
}

/* Bytes of one column group of a tile: its values, its scales. */
static inline size_t
lmq_tile_group_bytes(size_t group, unsigned bits)
{
    return LMQ_TILE_ROWS * group / 8 * bits;
}

static inline size_t
lmq_tile_scale_bytes(enum lmq_scales type)
{
    return LMQ_TILE_ROWS * lmq_scale_size(type);
}

/* Bytes of one tile. */
size_t lmq_tile_values_size(size_t n_cols, size_t group, unsigned bits);
size_t lmq_tile_scales_size(size_t n_cols, size_t group,
                            enum lmq_scales type);

/*
 * Whether bytes [at, at + n) of all values, or of all scales, of a matrix are
 * what fills tiles up wherever they belong to no row or column of it.
 */
bool lmq_tile_values_are_filled(const unsigned char *bytes, size_t n,
                                uint64_t at, uint64_t n_rows, uint64_t n_cols,
                                const struct lmq_quant *quant);
bool lmq_tile_scales_are_filled(const unsigned char *bytes, size_t n,
                                uint64_t at, uint64_t n_rows, uint64_t n_cols,
                                size_t group, enum lmq_scales type);

/* Where a value of 8 bits stands among those of its tile. */
static inline size_t
lmq_tile_index(size_t row, size_t column)
{
    return (column / LMQ_TILE_COLUMNS * LMQ_TILE_ROWS + row) *
               LMQ_TILE_COLUMNS +
           column % LMQ_TILE_COLUMNS;
}

/* The integer at a row and column of a tile. */
int lmq_tile_number(const unsigned char *tile_values, size_t row,
                    size_t column, unsigned bits);

/*
 * Packs rows of n_cols int8, `stride` bytes apart, and their stored scales,
 * [n_rows][n_groups], into as many tiles as they fill; and 1..16 rows of one
 * tile back, or all rows of many, which then stand side by side.
 */
void lmq_tiles_pack(const int8_t *q, size_t stride, const void *scales,
                    size_t n_rows, size_t n_cols,
                    const struct lmq_quant *quant, unsigned char *tile_values,
                    unsigned char *tile_scales);
void lmq_tile_unpack(const unsigned char *tile_values,
                     const unsigned char *tile_scales, size_t n_rows,
                     size_t n_cols, const struct lmq_quant *quant, int8_t *q,
                     size_t stride, void *scales);
void lmq_tiles_unpack(const unsigned char *tile_values,
                      const unsigned char *tile_scales, size_t n_rows,
                      size_t n_cols, const struct lmq_quant *quant, int8_t *q,
                      void *scales);

#endif
