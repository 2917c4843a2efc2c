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

START_TEST(packing_and_unpacking_are_inverse)
{
    struct random random = {random_seed()};

    for (int round = 0; round < 300; round++) {
        unsigned group = 32u << random_below(&random, 4);
        enum lmq_scales type = (enum lmq_scales)random_below(&random, 2);
        size_t rows = 1 + random_below(&random, LMQ_TILE_ROWS);
        size_t cols = 1 + random_below(&random, 600);
        size_t n_scales =
            rows * lmq_groups_per_row(cols, group) * lmq_scale_size(type);
        size_t values_size = lmq_tile_values_size(cols, group);
        size_t scales_size = lmq_tile_scales_size(cols, group, type);
        size_t stride = cols + random_below(&random, 3);
        int8_t *q = calloc(rows, stride), *q_back = calloc(rows, stride);
        unsigned char *scales = malloc(n_scales), *back = malloc(n_scales);
        unsigned char *tile = malloc(values_size);
        unsigned char *tile_scales = malloc(scales_size);

        for (size_t i = 0; i < rows * stride; i++)
            q[i] = i % stride < cols
                       ? (int8_t)((int)random_below(&random, 255) - 127)
                       : 0; /* between the rows nothing is touched */
        for (size_t i = 0; i < n_scales; i++)
            scales[i] = (unsigned char)random_u64(&random);
        lmq_tiles_pack(q, stride, scales, rows, cols, group, type, tile,
                       tile_scales);
        lmq_tile_unpack(tile, tile_scales, rows, cols, group, type, q_back,
                        stride, back);
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
    int8_t q[ROWS * COLS];
    unsigned char scales[ROWS * 2 * 2], tile[16 * PADDED], ts[16 * 2 * 2];

    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (int8_t)(i % 255 - 127);
    for (size_t i = 0; i < sizeof(scales); i++)
        scales[i] = (unsigned char)(i + 1);
    ck_assert_uint_eq(lmq_tile_values_size(COLS, GROUP), sizeof(tile));
    ck_assert_uint_eq(lmq_tile_scales_size(COLS, GROUP, LMQ_SCALES_F16),
                      sizeof(ts));
    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, GROUP, LMQ_SCALES_F16, tile,
                   ts);
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

START_TEST(sizes_of_layouts_are_right_or_refused)
{
    uint64_t values, scales;

    ck_assert(lmq_layout_sizes(LMQ_LAYOUT_ROWS, 10, 65, 64, LMQ_SCALES_F16,
                               &values, &scales));
    ck_assert_uint_eq(values, 650);
    ck_assert_uint_eq(scales, 10 * 2 * 2);
    ck_assert(lmq_layout_sizes(LMQ_LAYOUT_TILES, 17, 65, 64, LMQ_SCALES_F32,
                               &values, &scales));
    ck_assert_uint_eq(values, 32 * 128);
    ck_assert_uint_eq(scales, 32 * 2 * 4);
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_ROWS, UINT64_MAX, 2, 64,
                                LMQ_SCALES_F16, &values, &scales));
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_TILES, UINT64_MAX, 1, 64,
                                LMQ_SCALES_F16, &values, &scales));
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_TILES, 1, UINT64_MAX, 64,
                                LMQ_SCALES_F16, &values, &scales));
    /* The values fit, the scales do not. */
    ck_assert(!lmq_layout_sizes(LMQ_LAYOUT_ROWS, UINT64_MAX / 2, 1, 32,
                                LMQ_SCALES_F32, &values, &scales));
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
    int8_t q[ROWS * COLS];
    float scales[ROWS * 2];
    unsigned char whole[N], each[N], ws[3 * 16 * 2 * 4], es[sizeof(ws)];
    size_t values_size = lmq_tile_values_size(COLS, GROUP);
    size_t scales_size = lmq_tile_scales_size(COLS, GROUP, LMQ_SCALES_F32);

    for (int i = 0; i < ROWS * COLS; i++)
        q[i] = (int8_t)(i % 255 - 127);
    for (int i = 0; i < ROWS * 2; i++)
        scales[i] = (float)i;
    ck_assert_uint_eq(lmq_tiles_count(ROWS), 3);
    lmq_tiles_pack(q, COLS, scales, ROWS, COLS, GROUP, LMQ_SCALES_F32, whole,
                   ws);
    for (size_t i = 0; i < 3; i++)
        lmq_tiles_pack(q + i * 16 * COLS, COLS, scales + i * 16 * 2,
                       i < 2 ? 16 : 5, COLS, GROUP, LMQ_SCALES_F32,
                       each + i * values_size, es + i * scales_size);
    ck_assert_mem_eq(whole, each, N);
    ck_assert_mem_eq(ws, es, sizeof(ws));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        packing_and_unpacking_are_inverse,
        a_tile_lies_as_the_page_says,
        rows_fill_one_tile_after_the_other,
        sizes_of_layouts_are_right_or_refused,
        stored_scales_come_back,
    };

    return RUN_SUITE("tiles", tests);
}
