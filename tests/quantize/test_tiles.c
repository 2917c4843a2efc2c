/*
 * test_tiles.c - arranging quantized rows, and taking them apart again.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "quantize/tiles.h"
#include "tests/build/suite.h"

static const unsigned widths[] = {4, 5, 6, 8};

static int8_t
random_q(struct random *random, unsigned bits)
{
    int least = lmq_q_least(bits), n = lmq_q_most(bits) - least + 1;

    return (int8_t)((int)random_below(random, (size_t)n) + least);
}

START_TEST(packing_and_unpacking_are_inverse)
{
    struct random random = {random_seed()};

    for (int round = 0; round < 300; round++) {
        unsigned bits = widths[random_below(&random, 4)];
        unsigned group = 32u << random_below(&random, 4);
        enum lmq_scales type = (enum lmq_scales)random_below(&random, 2);
        const struct lmq_quant quant = {
            .bits = bits, .group_size = group, .scales = type};
        size_t rows = 1 + random_below(&random, LMQ_TILE_ROWS);
        size_t cols = 1 + random_below(&random, 600);
        size_t n_scales =
            rows * lmq_groups_per_row(cols, group) * lmq_scale_size(type);
        size_t values_size = lmq_tile_values_size(cols, group, bits);
        size_t scales_size = lmq_tile_scales_size(cols, group, type);
        size_t stride = cols + random_below(&random, 3);
        int8_t *q = calloc(rows, stride), *q_back = calloc(rows, stride);
        unsigned char *scales = malloc(n_scales), *back = malloc(n_scales);
        unsigned char *tile = malloc(values_size);
        unsigned char *tile_scales = malloc(scales_size);

        for (size_t i = 0; i < rows * stride; i++)
            q[i] = i % stride < cols
                       ? random_q(&random, bits)
                       : 0; /* between the rows nothing is touched */
        for (size_t i = 0; i < n_scales; i++)
            scales[i] = (unsigned char)random_u64(&random);
        lmq_tiles_pack(q, stride, scales, rows, cols, &quant, tile,
                       tile_scales);
        lmq_tile_unpack(tile, tile_scales, rows, cols, &quant, q_back, stride,
                        back);
        for (size_t i = 0; i < rows * stride; i++)
            ck_assert(i % stride >= cols ||
                      lmq_tile_number(tile, i / stride, i % stride, bits) ==
                          q[i]);
        ck_assert_mem_eq(q, q_back, rows * stride);
        ck_assert_mem_eq(scales, back, n_scales);
        free(q);
        free(q_back);
        free(scales);
        free(back);
        free(tile);
        free(tile_scales);
    }
}
END_TEST

/* values: [column group][group / 4][16 rows][4 columns], as q + 128. */
START_TEST(a_tile_lies_as_the_page_says)
{
    enum { ROWS = 5, COLS = 71, GROUP = 64, PADDED = 128 };
    const struct lmq_quant quant = {.bits = 8, .group_size = GROUP};
    int8_t q[ROWS * COLS];
    unsigned char scales[ROWS * 2 * 2], tile[16 * PADDED], ts[16 * 2 * 2];

    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (int8_t)(i % 255 - 127);
    for (size_t i = 0; i < sizeof(scales); i++)
        scales[i] = (unsigned char)(i + 1);
    ck_assert_uint_eq(lmq_tile_values_size(COLS, GROUP, 8), sizeof(tile));
    ck_assert_uint_eq(lmq_tile_scales_size(COLS, GROUP, LMQ_SCALES_F16),
                      sizeof(ts));
    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, &quant, tile, ts);
    for (int row = 0; row < 16; row++) {
        for (int col = 0; col < PADDED; col++) {
            int at = col / 4 * 64 + row * 4 + col % 4;
            int wanted =
                row < ROWS && col < COLS ? q[row * COLS + col] + 128 : 128;
            ck_assert_int_eq(tile[at], wanted);
        }
        for (int g = 0; g < 2; g++)
            for (int b = 0; b < 2; b++)
                ck_assert_int_eq(ts[(g * 16 + row) * 2 + b],
                                 row < ROWS ? scales[(row * 2 + g) * 2 + b]
                                            : 0);
    }
}
END_TEST

/* Bit by bit: of 32 columns four lines with the lower halves of numbers, then
 * a line with a bit of each, or two with two. */
static unsigned
number_at(const unsigned char *tile, int row, int col, unsigned bits)
{
    const unsigned char *block = tile + col / 32 * 64 * (int)bits;
    int step = col % 32 / 4, byte = row * 4 + col % 4;
    unsigned u = block[step / 2 * 64 + byte] >> (step % 2 == 0 ? 0 : 4) & 15;

    if (bits == 5)
        u |= (block[4 * 64 + byte] >> step & 1u) << 4;
    if (bits == 6)
        u |= (block[(4 + step / 4) * 64 + byte] >> step % 4 * 2 & 3u) << 4;
    return u;
}

START_TEST(a_narrow_tile_lies_as_the_page_says)
{
    enum { ROWS = 5, COLS = 71, GROUP = 64, PADDED = 128 };
    const unsigned bits = widths[_i];
    const struct lmq_quant quant = {.bits = bits, .group_size = GROUP};
    int half = 1 << (bits - 1);
    int8_t q[ROWS * COLS];
    unsigned char scales[ROWS * 2 * 2] = {0}, ts[16 * 2 * 2];
    unsigned char tile[16 * PADDED];
    size_t size = 16 * PADDED / 8 * bits;

    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (int8_t)(i % (2 * half) - half);
    ck_assert_uint_eq(lmq_tile_values_size(COLS, GROUP, bits), size);
    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, &quant, tile, ts);
    for (int row = 0; row < 16; row++)
        for (int col = 0; col < PADDED; col++) {
            int wanted = row < ROWS && col < COLS ? q[row * COLS + col] : 0;
            ck_assert_int_eq((int)number_at(tile, row, col, bits) - half,
                             wanted);
        }
}
END_TEST

/* Each bit of the tile flipped: found if and only if it is of the padding. */
START_TEST(padding_is_told_from_numbers)
{
    enum { ROWS = 5, COLS = 71, GROUP = 64, PADDED = 128 };
    const unsigned bits = widths[_i];
    const struct lmq_quant quant = {.bits = bits, .group_size = GROUP};
    int8_t q[ROWS * COLS] = {0};
    unsigned char scales[ROWS * 2 * 2] = {0}, ts[16 * 2 * 2];
    unsigned char tile[16 * PADDED];
    size_t size = lmq_tile_values_size(COLS, GROUP, bits);
    size_t n_found = 0;

    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, &quant, tile, ts);
    ck_assert(lmq_tile_values_are_filled(tile, size, 0, ROWS, COLS, &quant));
    for (size_t i = 0; i < 8 * size; i++) {
        tile[i / 8] ^= (unsigned char)(1 << i % 8);
        bool is_sound = true;
        for (int row = 0; row < ROWS; row++)
            for (int col = 0; col < COLS; col++)
                is_sound &= lmq_tile_number(tile, (size_t)row, (size_t)col,
                                            bits) == 0;
        /* In two pieces, as a reader has them. */
        bool is_filled =
            lmq_tile_values_are_filled(tile, 200, 0, ROWS, COLS, &quant) &&
            lmq_tile_values_are_filled(tile + 200, size - 200, 200, ROWS,
                                       COLS, &quant);
        ck_assert_msg(is_filled != is_sound, "bit %zu", i);
        n_found += !is_filled;
        tile[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_uint_eq(n_found, (16 * PADDED - ROWS * COLS) * bits);
}
END_TEST

START_TEST(sizes_of_layouts_are_right_or_refused)
{
    const struct lmq_quant half = {8, 64, LMQ_METHOD_SEARCH, LMQ_SCALES_F16,
                                   1, false};
    const struct lmq_quant full = {8, 64, LMQ_METHOD_SEARCH, LMQ_SCALES_F32,
                                   1, false};
    const struct lmq_quant small = {8, 32, LMQ_METHOD_SEARCH, LMQ_SCALES_F32,
                                    1, false};
    const struct lmq_quant narrow = {5, 64, LMQ_METHOD_SEARCH,
                                     LMQ_SCALES_F16, 1, false};
    uint64_t values, scales;

    ck_assert(lmq_layout_sizes(LMQ_LAYOUT_ROWS, 10, 65, &half, &values,
                               &scales));
    ck_assert_uint_eq(values, 650);
    ck_assert_uint_eq(scales, 10 * 2 * 2);
    ck_assert(lmq_layout_sizes(LMQ_LAYOUT_TILES, 17, 65, &full, &values,
                               &scales));
    ck_assert_uint_eq(values, 32 * 128);
    ck_assert_uint_eq(scales, 32 * 2 * 4);
    ck_assert(lmq_layout_sizes(LMQ_LAYOUT_TILES, 17, 65, &narrow, &values,
                               &scales));
    ck_assert_uint_eq(values, 32 * 128 / 8 * 5);
    ck_assert_uint_eq(scales, 32 * 2 * 2);
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_ROWS, UINT64_MAX, 2, &half,
                                &values, &scales));
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_TILES, UINT64_MAX, 1, &half,
                                &values, &scales));
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_TILES, 1, UINT64_MAX, &half,
                                &values, &scales));
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_TILES, 1, UINT64_MAX, &narrow,
                                &values, &scales));
    /* The values fit, the scales do not. */
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_ROWS, UINT64_MAX / 2, 1, &small,
                                &values, &scales));
}
END_TEST

START_TEST(stored_scales_come_back)
{
    struct random random = {random_seed()};
    unsigned char bytes[4 * 50];
    float scales[50], back[50];

    for (int exponent = -30; exponent <= 30; exponent++) {
        float multiplier = ldexpf(1, exponent);
        for (int i = 0; i < 50; i++) /* eleven bits: a half holds them */
            scales[i] = multiplier / 4096 *
                        (float)(1024 + random_below(&random, 1024));
        lmq_scales_store(LMQ_SCALES_F16, multiplier, scales, 50, bytes);
        lmq_scales_load(LMQ_SCALES_F16, multiplier, bytes, 50, back);
        ck_assert_mem_eq(scales, back, sizeof(scales));
        lmq_scales_store(LMQ_SCALES_F32, 1, scales, 50, bytes);
        lmq_scales_load(LMQ_SCALES_F32, 1, bytes, 50, back);
        ck_assert_mem_eq(scales, back, sizeof(scales));
        ck_assert(lmq_load_f32le(bytes) == scales[0]);
    }
}
END_TEST

START_TEST(rows_fill_one_tile_after_the_other)
{
    enum { ROWS = 37, COLS = 40, GROUP = 32, N = 3 * 16 * 64 };
    const unsigned bits = widths[_i];
    const struct lmq_quant quant = {bits, GROUP, LMQ_METHOD_SEARCH,
                                    LMQ_SCALES_F32, 1, false};
    int8_t q[ROWS * COLS];
    float scales[ROWS * 2];
    unsigned char whole[N], each[N], ws[3 * 16 * 2 * 4], es[sizeof(ws)];
    size_t values_size = lmq_tile_values_size(COLS, GROUP, bits);
    size_t scales_size = lmq_tile_scales_size(COLS, GROUP, LMQ_SCALES_F32);

    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (int8_t)(i % (2 * lmq_q_most(bits)) - lmq_q_most(bits));
    for (int i = 0; i < ROWS * 2; i++)
        scales[i] = (float)i;
    ck_assert_uint_eq(lmq_tiles_count(ROWS), 3);
    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, &quant, whole, ws);
    for (size_t i = 0; i < 3; i++)
        lmq_tiles_pack(q + i * 16 * COLS, COLS, scales + i * 16 * 2,
                       i < 2 ? 16 : 5, COLS, &quant, each + i * values_size,
                       es + i * scales_size);
    ck_assert_mem_eq(whole, each, 3 * values_size);
    ck_assert_mem_eq(ws, es, sizeof(ws));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        packing_and_unpacking_are_inverse,
        a_tile_lies_as_the_page_says,
        sizes_of_layouts_are_right_or_refused,
        stored_scales_come_back,
    };

    const TTest *const of_widths[] = {
        rows_fill_one_tile_after_the_other,
    };
    const TTest *const of_narrow_widths[] = {
        a_narrow_tile_lies_as_the_page_says,
        padding_is_told_from_numbers,
    };

    return RUN_SUITE("tiles", tests) |
           RUN_SUITE_OVER("tiles of all widths", of_widths, 0, 4) |
           RUN_SUITE_OVER("narrow tiles", of_narrow_widths, 0, 3);
}
