/*
 * test_rows.c - rows that were quantized by somebody else.
 */
#include "config.h"

#include <math.h>

#include "quantize/group.h"
#include "quantize/tiles.h"
#include "tests/build/suite.h"

/* lmq(5), "Quantized values". */
START_TEST(rows_are_taken_unless_a_container_forbids_them)
{
    static const struct {
        int8_t q;
        float scale;
        bool is_legal;
        unsigned bits;
    } rows[] = {
        {127, 1, true, 8},   {-127, 0x1p-126f, true, 8},
        {0, 0, true, 8},     {-128, 1, false, 8},
        {1, 0, false, 8},    {0, -0.0f, false, 8},
        {1, -1, false, 8},   {1, 0x1p-127f, false, 8},
        {0, INFINITY, false, 8}, {0, (float)NAN, false, 8},
        {2, 0x1p127f, false, 8}, {1, 0x1p127f, true, 8},
        {7, 1, true, 4},     {8, 1, false, 4},
        {-8, -1, true, 4},   {-9, 1, false, 4},
        {0, -0.0f, false, 4}, {1, -INFINITY, false, 4},
        {15, -1, true, 5},   {16, 1, false, 5},
        {-32, 1, true, 6},   {-33, 1, false, 6},
        {2, -0x1p127f, false, 6}, {1, -0x1p-127f, false, 6},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lmq_quant_stats stats = {0};
        struct lmq_quant quant = {.bits = rows[i].bits, .group_size = 32};
        int8_t q[40] = {[35] = rows[i].q};
        float scales[2] = {2, rows[i].scale};
        ck_assert_msg(lmq_quant_take_row(&quant, q, 40, scales, &stats) ==
                          rows[i].is_legal,
                      "row %zu", i);
    }
    struct lmq_quant_stats stats = {0};
    struct lmq_quant narrow = {.bits = 4, .group_size = 32};
    ck_assert(lmq_quant_take_row(&narrow, (int8_t[]){3, -4}, 2,
                                 (float[]){-0.5f}, &stats));
    ck_assert(stats.sum_sq == 6.25 && stats.max_abs == 2);
    ck_assert(stats.err_sq == 0 && stats.n == 2 && stats.n_groups == 1);
}
END_TEST

START_TEST(widened_rows_have_no_scales_below_zero)
{
    struct random random = {random_seed()};
    static int8_t q[3 * 300], before[3 * 300];
    static float wanted[3 * 10], scales[3 * 10];
    unsigned char stored[4 * 3 * 10];

    for (int round = 0; round < 200; round++) {
        const struct lmq_quant quant = {
            .bits = 4 + (unsigned)random_below(&random, 3),
            .group_size = 32u << random_below(&random, 4),
            .scales = (enum lmq_scales)(round % 2),
            .multiplier = 1,
        };
        size_t n = 1 + random_below(&random, 300);
        size_t groups = lmq_groups_per_row(n, quant.group_size);
        for (size_t i = 0; i < 3 * n; i++)
            before[i] = q[i] = (int8_t)((int)random_below(&random, 16) - 8);
        for (size_t i = 0; i < 3 * groups; i++)
            wanted[i] = ldexpf(random_below(&random, 2) == 0 ? 1 : -1,
                               (int)random_below(&random, 8));
        lmq_scales_store(quant.scales, 1, wanted, 3 * groups, stored);
        lmq_quant_widen(&quant, q, 3, n, stored);
        lmq_scales_load(quant.scales, 1, stored, 3 * groups, scales);
        for (size_t i = 0; i < 3 * n; i++) {
            size_t g = i / n * groups + i % n / quant.group_size;
            ck_assert(scales[g] == fabsf(wanted[g]));
            ck_assert((float)q[i] * scales[g] ==
                      (float)before[i] * wanted[g]);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        rows_are_taken_unless_a_container_forbids_them,
        widened_rows_have_no_scales_below_zero,
    };

    return RUN_SUITE("rows", tests);
}
