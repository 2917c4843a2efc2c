/*
 * test_rotate.c - groups are rotated as lmq(5) says, and quantized so.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "quantize/group.h"
#include "quantize/rotate.h"
#include "tests/build/suite.h"

/* As lmq(5) says it, one number after the other. */
static void
rotate_slowly(float *x, size_t group)
{
    for (size_t h = group / 2; h > 0; h /= 2)
        for (size_t i = 0; i < group; i++)
            if ((i & h) == 0) {
                float a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
    for (size_t i = 0; i < group; i++)
        x[i] /= sqrtf((float)group);
}

START_TEST(a_group_is_rotated_as_the_page_says_and_back)
{
    struct random random = {random_seed()};

    for (unsigned group = LMQ_GROUP_MIN; group <= LMQ_GROUP_MAX; group *= 2)
        for (size_t n = 1; n <= group; n++) {
            float x[LMQ_GROUP_MAX], y[LMQ_GROUP_MAX], z[LMQ_GROUP_MAX];
            double before = 0, after = 0;
            for (size_t i = 0; i < n; i++)
                x[i] = y[i] = z[i] = (float)random_normal(&random) *
                                     (i % 61 == 7 ? 40.0f : 1.0f);
            lmq_rotate_group(y, n, group, LMQ_ROTATION_NONE);
            ck_assert_mem_eq(y, x, n * sizeof(*y));
            lmq_rotate_group(y, n, group, LMQ_ROTATION_ALL);
            for (size_t at = 0, size = 256; size > 1; size /= 4)
                for (; n - at >= size; at += size)
                    rotate_slowly(z + at, size);
            ck_assert_mem_eq(y, z, n * sizeof(*y));
            for (size_t i = 0; i < n; i++) {
                before += (double)x[i] * (double)x[i];
                after += (double)y[i] * (double)y[i];
            }
            ck_assert(fabs(after / before - 1) < 1e-5);
            lmq_rotate_group(y, n, group, LMQ_ROTATION_ALL);
            for (size_t i = 0; i < n; i++)
                ck_assert(fabsf(y[i] - x[i]) < 1e-4f);
        }
}
END_TEST

/* As files of version 1.0 have it. */
START_TEST(a_group_that_is_not_whole_may_stay)
{
    struct random random = {random_seed()};

    for (unsigned group = 64; group <= 256; group *= 4)
        for (size_t n = group - 5; n <= group; n += 5) {
            float x[LMQ_GROUP_MAX], y[LMQ_GROUP_MAX];
            for (size_t i = 0; i < n; i++)
                x[i] = y[i] = (float)random_normal(&random);
            lmq_rotate_group(y, n, group, LMQ_ROTATION_WHOLE);
            if (n == group)
                rotate_slowly(x, n);
            ck_assert_mem_eq(y, x, n * sizeof(*y));
        }
}
END_TEST

/* Keys and queries: their product stays. */
START_TEST(rows_of_any_length_are_rotated_as_a_whole)
{
    struct random random = {random_seed()};

    for (size_t n = 0; n <= 600; n += n < 70 ? 1 : 53) {
        float x[600], y[600], again[600];
        double before = 0, after = 0, length = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = again[i] = (float)random_normal(&random);
            y[i] = (float)random_normal(&random);
            before += (double)x[i] * (double)y[i];
            length += (double)x[i] * (double)x[i];
        }
        lmq_rotate_all(x, n);
        lmq_rotate_all(y, n);
        for (size_t i = 0; i < n; i++)
            after += (double)x[i] * (double)y[i];
        ck_assert(fabs(after - before) <= 1e-5 * (length + 1));
        if (n >= 4)
            ck_assert(memcmp(x, again, n * sizeof(*x)) != 0);
        lmq_rotate_all(x, n);
        for (size_t i = 0; i < n; i++)
            ck_assert(fabsf(x[i] - again[i]) < 1e-5f);
    }
    float spread[84] = {[3] = 8, [70] = 4, [81] = 2};
    lmq_rotate_all(spread, 84); /* 64, 16, 4 */
    for (size_t i = 0; i < 84; i++)
        ck_assert(fabsf(spread[i]) == 1);
}
END_TEST

/* What is quantized is the rotated row; a group that is not whole, and a number
 * that is none, are where they are in the row. */
START_TEST(a_row_is_rotated_before_it_is_quantized)
{
    struct lmq_quant plain = {.bits = 8,
                              .group_size = 64,
                              .method = LMQ_METHOD_SEARCH,
                              .scales = LMQ_SCALES_F16,
                              .multiplier = 1};
    struct lmq_quant turning = plain;
    struct random random = {random_seed()};
    float x[172], y[172], scales[2][3];
    int8_t q[2][172];
    struct lmq_quant_stats stats[2] = {{0}, {0}};

    turning.rotation = LMQ_ROTATION_ALL;
    for (size_t i = 0; i < 172; i++)
        x[i] = y[i] = (float)random_normal(&random);
    lmq_rotate_row(y, 172, 64);
    lmq_quantize_row(&turning, x, 172, q[0], scales[0], &stats[0]);
    lmq_quantize_row(&plain, y, 172, q[1], scales[1], &stats[1]);
    ck_assert_mem_eq(q[0], q[1], 172);
    ck_assert_mem_eq(scales[0], scales[1], sizeof(scales[0]));
    ck_assert(stats[0].err_sq == stats[1].err_sq);
    ck_assert_uint_eq(stats[0].worst_group, stats[1].worst_group);
    for (size_t at = 5; at < 172; at += 80) {
        struct lmq_quant_stats found = {0};
        memcpy(y, x, sizeof(y));
        y[at] = NAN;
        lmq_quantize_row(&turning, y, 172, q[0], scales[0], &found);
        ck_assert(found.has_nonfinite);
        ck_assert_uint_eq(found.nonfinite_at, at);
    }
}
END_TEST

/* Turned back, it would not be finite. */
START_TEST(a_group_that_is_too_large_to_turn_back_is_told)
{
    const struct lmq_quant turning = {.bits = 8,
                                      .group_size = 64,
                                      .method = LMQ_METHOD_SEARCH,
                                      .scales = LMQ_SCALES_F32,
                                      .multiplier = 1,
                                      .rotation = LMQ_ROTATION_ALL};
    float x[128], scales[2];
    int8_t q[128];

    for (int power = 120; power < 128; power++) {
        struct lmq_quant_stats stats = {0};
        for (size_t i = 0; i < 128; i++)
            x[i] = i == 70 ? ldexpf(1.5f, power) : 1;
        lmq_quantize_row(&turning, x, 128, q, scales, &stats);
        if (stats.has_nonfinite) {
            ck_assert(power > 121 && stats.is_turned_over);
            ck_assert_uint_eq(stats.nonfinite_at, 64);
            continue;
        }
        for (size_t i = 64; i < 128; i++)
            x[i] = (float)q[i] * scales[1];
        lmq_rotate_all(x + 64, 64);
        for (size_t i = 64; i < 128; i++)
            ck_assert(isfinite(x[i]));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_group_is_rotated_as_the_page_says_and_back,
        a_group_that_is_not_whole_may_stay,
        rows_of_any_length_are_rotated_as_a_whole,
        a_row_is_rotated_before_it_is_quantized,
        a_group_that_is_too_large_to_turn_back_is_told,
    };

    return RUN_SUITE("rotate", tests);
}
