/*
 * test_group.c - quantizing rows, against a plain reference in double.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/cpu.h"
#include "quantize/group.h"
#include "quantize/tiles.h"
#include "tests/build/suite.h"

#define MAX_N 1024

/* x * (1 / scale) in float is off by less than this many steps from the exact
 * quotient: two roundings of 2^-24, times 127. */
#define QUOTIENT_SLACK (127 * 0x1p-22)

struct result {
    int8_t q[MAX_N];
    float scales[MAX_N / LMQ_GROUP_MIN];
    struct lmq_quant_stats stats;
};

static void
quantize(struct lmq_quant quant, const float *x, size_t n,
         struct result *result)
{
    memset(result, 0x55, sizeof(*result));
    result->stats = (struct lmq_quant_stats){0};
    lmq_quantize_row(&quant, x, n, result->q, result->scales, &result->stats);
}

static struct lmq_quant
plain(enum lmq_method method, enum lmq_scales scales)
{
    return (struct lmq_quant){8, 64, method, scales, 1, false};
}

/* ---- The reference ---- */

/* Nearest half, ties to even. */
static double
round_to_half(double value)
{
    int exponent;

    if (value == 0)
        return 0;
    frexp(value, &exponent);
    if (exponent < -13)
        exponent = -13;
    return ldexp(rint(ldexp(value, 11 - exponent)), exponent - 11);
}

static const unsigned widths[] = {4, 5, 6, 8};

/* Of 8 bits the largest magnitude becomes 127. Fewer bits have one integer more
 * below zero, and that the largest becomes: so the scale has the other sign. */
static double
reference_scale(const float *x, size_t n, const struct lmq_quant *quant)
{
    double max = 0, least = 0;

    for (size_t i = 0; i < n; i++) {
        max = larger(max, fabs((double)x[i]));
        least = fmin(least, (double)x[i]);
    }
    double scale = (double)(float)(max / 127);
    if (quant->bits < 8 && max > 0)
        scale = (double)((float)(least == -max ? max : -max) /
                         (float)(1 << (quant->bits - 1)));
    if (quant->scales == LMQ_SCALES_F16)
        scale = round_to_half(scale / (double)quant->multiplier) *
                (double)quant->multiplier;
    return scale;
}

static double
error_sq(const float *x, size_t n, const struct result *result,
         unsigned group_size)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double err = (double)x[i] - result->q[i] *
                                        (double)result->scales[i / group_size];
        sum += err * err;
    }
    return sum;
}

/* What holds for every method: q is the nearest legal step of its scale, the
 * scale is one that the file can hold, the statistics are true. */
static void
assert_lawful(const struct lmq_quant *quant, const float *x, size_t n,
              const struct result *result)
{
    size_t n_groups = lmq_groups_per_row(n, quant->group_size);
    double sum_sq = 0, err_sq = 0, max_abs = 0, max_err = 0, worst = 0;
    int most = quant->bits == 8 ? 127 : (1 << (quant->bits - 1)) - 1;
    int least = quant->bits == 8 ? -127 : -most - 1;

    ck_assert(!result->stats.has_nonfinite);
    ck_assert_uint_eq(result->stats.n, n);
    ck_assert_uint_eq(result->stats.n_groups, n_groups);
    for (size_t g = 0; g < n_groups; g++) {
        size_t at = g * quant->group_size;
        size_t end = at + quant->group_size < n ? at + quant->group_size : n;
        double scale = (double)result->scales[g], group_err = 0;
        ck_assert(isfinite(scale) &&
                  (quant->bits < 8 ? scale != 0 || !signbit(scale)
                                   : !signbit(scale)));
        if (quant->scales == LMQ_SCALES_F16) {
            double stored = fabs(scale) / (double)quant->multiplier;
            ck_assert(round_to_half(stored) == stored && stored <= 65504);
        }
        for (size_t i = at; i < end; i++) {
            int q = result->q[i];
            double wanted =
                scale == 0 ? 0
                           : fmin(fmax((double)x[i] / scale, least), most);
            double slack = scale == 0 ? 0 : 0.5 + QUOTIENT_SLACK;
            REQUIRE(q >= least && q <= most && fabs(q - wanted) <= slack,
                    "element %zu: %d for %.9g", i, q, wanted);
            double err = fabs((double)x[i] - q * scale);
            group_err += err * err;
            sum_sq += (double)x[i] * (double)x[i];
            max_abs = larger(max_abs, fabs((double)x[i]));
            max_err = larger(max_err, err);
        }
        err_sq += group_err;
        worst = larger(worst, group_err);
    }
    /* Sums of float32; and q * scale is rounded to 2^-24 of itself before it
     * is subtracted, which moves an error e of x by as much as 2^-24 x, and
     * its square by 2^-23 e x: summed, no more than the root of both sums. */
    const double slack = 2e-4;
    double moved = 0x1p-22 * sqrt(err_sq * sum_sq) + 0x1p-46 * sum_sq;
    ck_assert_double_eq_tol(result->stats.sum_sq, sum_sq,
                            slack * sum_sq + 1e-300);
    ck_assert_double_eq_tol(result->stats.err_sq, err_sq,
                            slack * err_sq + moved + 1e-300);
    ck_assert((double)result->stats.max_abs == max_abs);
    ck_assert_double_eq_tol((double)result->stats.max_err, max_err,
                            slack * max_err + 1e-6 * max_abs);
    ck_assert_double_eq_tol((double)result->stats.worst_err_sq, worst,
                            slack * worst + moved + 1e-300);
}

/* ---- Rules ---- */

START_TEST(zero_group_has_zero_scale)
{
    float x[130] = {0};
    struct result result;

    x[64] = -0.0f;
    for (int method = 0; method < LMQ_METHOD_COUNT; method++)
        for (int scales = 0; scales < 4 * LMQ_SCALES_COUNT; scales++) {
            struct lmq_quant quant = plain((enum lmq_method)method,
                                           (enum lmq_scales)(scales / 4));
            quant.bits = widths[scales % 4];
            quantize(quant, x, 130, &result);
            for (int g = 0; g < 3; g++) {
                ck_assert(result.scales[g] == 0);
                ck_assert(!signbit(result.scales[g]));
            }
            for (int i = 0; i < 130; i++)
                ck_assert_int_eq(result.q[i], 0);
            ck_assert(result.stats.err_sq == 0);
        }
}
END_TEST

START_TEST(ties_go_to_even)
{
    struct lmq_quant quant = plain(LMQ_METHOD_ABSMAX, LMQ_SCALES_F16);
    float x[64] = {127}; /* so that the scale is 1 */
    struct result result;

    for (int i = 1; i < 64; i++)
        x[i] = ((float)(2 * i) - 64.5f) * (i % 3 == 0 ? -1 : 1);
    quantize(quant, x, 64, &result);
    ck_assert(result.scales[0] == 1);
    for (int i = 1; i < 64; i++)
        ck_assert_int_eq(result.q[i], (int)rint((double)x[i]));
    x[1] = 0.5f, x[2] = 1.5f, x[3] = 2.5f, x[4] = -0.5f, x[5] = -1.5f;
    x[6] = 126.5f, x[7] = -126.5f;
    static const int wanted[] = {127, 0, 2, 2, 0, -2, 126, -126};
    quantize(quant, x, 64, &result);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(result.q[i], wanted[i]);
}
END_TEST

START_TEST(minus_128_never_comes)
{
    struct random random = {random_seed()};
    float x[256];
    struct result result;

    for (int round = 0; round < 2000; round++) {
        struct lmq_quant quant =
            plain((enum lmq_method)(round % 2),
                  (enum lmq_scales)(round / 2 % 2));
        quant.group_size = 32u << round % 4;
        float most = (float)exp(random_normal(&random));
        for (int i = 0; i < 256; i++) /* all at the negative end */
            x[i] = -most * (1 - 0x1p-12f * (float)random_below(&random, 40));
        quantize(quant, x, 256, &result);
        assert_lawful(&quant, x, 256, &result);
    }
}
END_TEST

START_TEST(absmax_is_the_reference)
{
    struct random random = {random_seed()};
    static float x[MAX_N];
    struct result result;

    for (int round = 0; round < 400; round++) {
        struct lmq_quant quant =
            plain(LMQ_METHOD_ABSMAX, (enum lmq_scales)(round % 2));
        quant.bits = widths[random_below(&random, 4)];
        quant.group_size = 32u << random_below(&random, 4);
        size_t n = 1 + random_below(&random, MAX_N - 1);
        double sigma = exp(2 * random_normal(&random));
        for (size_t i = 0; i < n; i++)
            x[i] = (float)(sigma * random_normal(&random));
        quantize(quant, x, n, &result);
        assert_lawful(&quant, x, n, &result);
        for (size_t at = 0; at < n; at += quant.group_size) {
            size_t left = n - at < quant.group_size ? n - at
                                                    : quant.group_size;
            ck_assert((double)result.scales[at / quant.group_size] ==
                      reference_scale(x + at, left, &quant));
        }
    }
}
END_TEST

START_TEST(a_ragged_row_is_its_groups_one_by_one)
{
    struct random random = {random_seed()};
    float x[300];
    struct result whole, part;

    for (int i = 0; i < 300; i++)
        x[i] = (float)random_normal(&random);
    for (unsigned group_size = 32; group_size <= 256; group_size *= 2)
        for (size_t n = 1; n <= 300; n++) {
            struct lmq_quant quant =
                plain((enum lmq_method)(n % 2), LMQ_SCALES_F16);
            quant.bits = widths[n / 2 % 4];
            quant.group_size = group_size;
            quantize(quant, x, n, &whole);
            ck_assert_int_eq(whole.q[n], 0x55); /* nothing behind it */
            for (size_t at = 0; at < n; at += group_size) {
                size_t left = n - at < group_size ? n - at : group_size;
                quantize(quant, x + at, left, &part);
                ck_assert_mem_eq(part.q, whole.q + at, left);
                ck_assert_mem_eq(part.scales, whole.scales + at / group_size,
                                 sizeof(float));
            }
        }
}
END_TEST

START_TEST(values_are_quantized_against_the_rounded_scale)
{
    /* max / 127 is 1 + 2^-12, which rounds to 1 as a half: 100.6 divided by
     * the exact scale would still be 101, 60.51 by the exact one 60. */
    float x[64] = {127 * (1 + 0x1p-12f), 60.51f, -60.51f};
    struct result result;

    quantize(plain(LMQ_METHOD_ABSMAX, LMQ_SCALES_F16), x, 64, &result);
    ck_assert(result.scales[0] == 1);
    ck_assert_int_eq(result.q[0], 127);
    ck_assert_int_eq(result.q[1], 61);
    ck_assert_int_eq(result.q[2], -61);
    quantize(plain(LMQ_METHOD_ABSMAX, LMQ_SCALES_F32), x, 64, &result);
    ck_assert(result.scales[0] == 1 + 0x1p-12f);
    ck_assert_int_eq(result.q[1], 60);
}
END_TEST

/* ---- The search ---- */

/* Numbers such as a search might stumble over, of the order of 1. */
static void
draw_weights(struct random *random, float *x, size_t n)
{
    int kind = (int)random_below(random, 9);

    for (size_t i = 0; i < n; i++) {
        double z = random_normal(random);
        x[i] = (float)(kind == 0   ? z
                       : kind == 1 ? z * z * z       /* heavy tails */
                       : kind == 2 ? copysign(1, z)  /* one magnitude */
                       : kind == 3 ? rint(z * 40)    /* on the grid */
                       : kind == 4 ? rint(z * 8) / 2 /* ties */
                       : kind == 5 ? 1 + 1e-3 * z    /* almost constant */
                       : kind == 6 ? exp(z)          /* one sign */
                       : kind == 7 ? floor(z * 30) + 0.5 + 1e-4 * z
                                   : z * 0.01);
    }
    if (kind == 8) /* an outlier */
        x[random_below(random, (unsigned)n)] = 5;
}

/*
 * Among the steps tried is max / 127 itself, so the search can lose against it
 * only by its arithmetic: sums in float32 whose last bits choose (1e-4), and
 * the rounding of the chosen scale to half precision, which moves each value
 * by at most 2^-12 of itself (2^-24 of the squares; four times that here, for
 * scales near the subnormals).
 */
static void
assert_search_is_no_worse(const float *x, size_t n, struct lmq_quant quant)
{
    struct result found, plainly;

    quant.method = LMQ_METHOD_SEARCH;
    quantize(quant, x, n, &found);
    assert_lawful(&quant, x, n, &found);
    double rounding =
        quant.scales == LMQ_SCALES_F16 ? 0x1p-22 * found.stats.sum_sq : 0;
    double search = error_sq(x, n, &found, quant.group_size);
    quant.method = LMQ_METHOD_ABSMAX;
    quant.scales = LMQ_SCALES_F32;
    quant.multiplier = 1;
    quantize(quant, x, n, &plainly);
    double absmax = error_sq(x, n, &plainly, quant.group_size);
    ck_assert_msg(search <= absmax * (1 + 1e-4) + rounding +
                                1e-12 * found.stats.sum_sq,
                  "%.9g, abs-max has %.9g", search, absmax);
}

START_TEST(search_is_never_worse_than_absmax)
{
    struct random random = {random_seed()};
    float x[256];

    for (int round = 0; round < 3000; round++) {
        struct lmq_quant quant =
            plain(LMQ_METHOD_SEARCH, (enum lmq_scales)(round % 2));
        quant.bits = widths[random_below(&random, 4)];
        quant.group_size = 32u << random_below(&random, 4);
        unsigned n = quant.group_size;
        draw_weights(&random, x, n);
        assert_search_is_no_worse(x, n, quant);
    }
}
END_TEST

START_TEST(search_wins_on_normal_weights)
{
    struct random random = {random_seed()};
    static float x[MAX_N];
    struct result result;
    double search = 0, absmax = 0;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < MAX_N; i++)
            x[i] = (float)(0.02 * random_normal(&random));
        quantize(plain(LMQ_METHOD_SEARCH, LMQ_SCALES_F16), x, MAX_N, &result);
        search += error_sq(x, MAX_N, &result, 64);
        quantize(plain(LMQ_METHOD_ABSMAX, LMQ_SCALES_F16), x, MAX_N, &result);
        absmax += error_sq(x, MAX_N, &result, 64);
    }
    /* About 0.85 is usual; 3200 groups leave no room for luck. */
    ck_assert_msg(search < 0.95 * absmax, "%.4f of abs-max", search / absmax);
}
END_TEST

START_TEST(search_is_exact_on_multiples_of_one_step)
{
    struct random random = {random_seed()};
    float x[64];
    struct result result;

    for (int round = 0; round < 200; round++) {
        float step = ldexpf(1, (int)random_below(&random, 20) - 10);
        for (int i = 0; i < 64; i++)
            x[i] = step * (float)((int)random_below(&random, 255) - 127);
        x[round % 64] = 127 * step;
        quantize(plain(LMQ_METHOD_SEARCH, LMQ_SCALES_F16), x, 64, &result);
        ck_assert(result.stats.err_sq == 0);
        ck_assert(result.scales[0] == step);
    }
}
END_TEST

/* ---- Multipliers ---- */

START_TEST(ordinary_tensors_need_no_multiplier)
{
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F16, 0.02f / 127 * 4) == 1);
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F16, 0) == 1);
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F16, 0x1p-12f) == 1);
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F16, 65504) == 1);
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F32, 1e-30f) == 1);
    ck_assert(lmq_choose_multiplier(LMQ_SCALES_F32, 1e30f) == 1);
}
END_TEST

/* lmq(5): a power of two that is a normal float32. */
START_TEST(every_multiplier_can_stand_in_a_file)
{
    for (int exponent = -149; exponent <= 121; exponent++)
        for (int odd = 0; odd < 2; odd++) {
            float scale = ldexpf(1.0f + 0.5f * (float)odd, exponent);
            float multiplier = lmq_choose_multiplier(LMQ_SCALES_F16, scale);
            int e;
            ck_assert_msg(multiplier >= 0x1p-126f && multiplier <= 0x1p126f &&
                              frexpf(multiplier, &e) == 0.5f,
                          "scale %g: multiplier %g", (double)scale,
                          (double)multiplier);
            ck_assert(scale / multiplier <= 65504);
        }
}
END_TEST

START_TEST(tiny_and_huge_weights_keep_their_quality)
{
    struct random random = {random_seed()};
    static float x[MAX_N], y[MAX_N];
    struct lmq_quant quant = plain(LMQ_METHOD_SEARCH, LMQ_SCALES_F16);
    struct result result;

    for (size_t i = 0; i < MAX_N; i++)
        x[i] = (float)random_normal(&random);
    quantize(quant, x, MAX_N, &result);
    double usual = lmq_quant_snr_db(result.stats.sum_sq, result.stats.err_sq);
    static const float sigmas[] = {1e-6f, 1e-5f, 1e-3f, 1e-12f, 1e6f, 1e12f};
    for (size_t s = 0; s < sizeof(sigmas) / sizeof(sigmas[0]); s++) {
        for (size_t i = 0; i < MAX_N; i++)
            y[i] = x[i] * sigmas[s];
        quant.multiplier = 1;
        quantize(quant, y, MAX_N, &result);
        quant.multiplier =
            lmq_choose_multiplier(LMQ_SCALES_F16, result.stats.max_scale);
        quantize(quant, y, MAX_N, &result);
        assert_lawful(&quant, y, MAX_N, &result);
        double snr =
            lmq_quant_snr_db(result.stats.sum_sq, result.stats.err_sq);
        ck_assert_msg(snr > usual - 0.1, "sigma %g: %.2f dB, usual %.2f",
                      (double)sigmas[s], snr, usual);
    }
}
END_TEST

START_TEST(the_extremes_of_float_do_no_harm)
{
    static const float extremes[] = {FLT_MAX, FLT_MAX / 2, 1e20f, 1e30f,
                                     FLT_MIN, 0x1p-149f,   1e-36f, 1e-40f};
    struct result result;
    float x[64];

    for (size_t k = 0; k < sizeof(extremes) / sizeof(extremes[0]); k++)
        for (int m = 0; m < 16; m++) {
            struct lmq_quant quant =
                plain((enum lmq_method)(m % 2), (enum lmq_scales)(m / 2 % 2));
            quant.bits = (unsigned[]){8, 6, 5, 4}[m / 4];
            for (int i = 0; i < 64; i++)
                x[i] = extremes[k] * (i % 2 == 0 ? 1.0f : -0.37f) /
                       (float)(1 + i / 8);
            quantize(quant, x, 64, &result);
            quant.multiplier =
                lmq_choose_multiplier(quant.scales, result.stats.max_scale);
            quantize(quant, x, 64, &result);
            ck_assert(!result.stats.has_nonfinite);
            ck_assert(isfinite(result.scales[0]));
            ck_assert_msg(!isnan(result.stats.err_sq) &&
                              !isnan(result.stats.sum_sq),
                          "%g", (double)extremes[k]);
            /* So small that the steps are no normal numbers, it is lost. */
            double snr = lmq_quant_snr_db(result.stats.sum_sq,
                                          result.stats.err_sq);
            ck_assert_msg(extremes[k] < 1e-35f ||
                              snr > 6.02 * (quant.bits - 1) - 6,
                          "%g in %u bits: %.1f dB", (double)extremes[k],
                          quant.bits, snr);
            for (int i = 0; i < 64; i++) {
                ck_assert_int_ge(result.q[i], -127);
                if (extremes[k] <= FLT_MAX / 2)
                    ck_assert(isfinite((float)result.q[i] *
                                       result.scales[0]));
            }
        }
}
END_TEST

/* ---- What is not finite ---- */

START_TEST(the_first_nonfinite_element_is_found)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -NAN};
    float x[200];
    struct result result;

    for (size_t n = 1; n <= 200; n += n < 70 ? 1 : 13)
        for (size_t at = 0; at < n; at += 1 + n / 9) {
            for (size_t i = 0; i < n; i++)
                x[i] = 1e-3f * (float)i;
            x[at] = bad[at % 4];
            x[n - 1] = at == n - 1 ? x[at] : NAN;
            quantize(plain((enum lmq_method)(n % 2), LMQ_SCALES_F16), x, n,
                     &result);
            ck_assert(result.stats.has_nonfinite);
            ck_assert_uint_eq(result.stats.nonfinite_at, at);
        }
}
END_TEST

START_TEST(merged_statistics_count_from_the_start_of_the_tensor)
{
    struct lmq_quant_stats total = {0};
    struct lmq_quant_stats first = {
        .n = 100, .sum_sq = 2, .err_sq = 1, .max_abs = 3, .max_err = 1,
        .worst_err_sq = 0.5f, .worst_group = 1, .n_groups = 2};
    struct lmq_quant_stats second = {
        .n = 50, .sum_sq = 1, .err_sq = 2, .max_abs = 2, .max_err = 2,
        .worst_err_sq = 1.5f, .worst_group = 0, .n_groups = 1,
        .has_nonfinite = true, .nonfinite_at = 7};

    lmq_quant_stats_merge(&total, &first, 0, 0);
    ck_assert_uint_eq(total.worst_group, 1);
    lmq_quant_stats_merge(&total, &second, 100, 2);
    ck_assert_uint_eq(total.n, 150);
    ck_assert_uint_eq(total.n_groups, 3);
    ck_assert_uint_eq(total.worst_group, 2);
    ck_assert(total.sum_sq == 3 && total.err_sq == 3);
    ck_assert(total.max_abs == 3 && total.max_err == 2);
    ck_assert(total.has_nonfinite);
    ck_assert_uint_eq(total.nonfinite_at, 107);
    lmq_quant_stats_merge(&total, &second, 150, 3);
    ck_assert_uint_eq(total.nonfinite_at, 107);
}
END_TEST

/* ---- Builds ---- */

typedef void quantize_fn(const struct lmq_quant *quant, const float *x,
                         size_t n, int8_t *q, float *scales,
                         struct lmq_quant_stats *stats);

static void
assert_same_bits(quantize_fn *other, const char *name)
{
    struct random random = {random_seed()};
    static float x[MAX_N];
    struct result a, b;

    for (int round = 0; round < 3000; round++) {
        struct lmq_quant quant = {
            widths[random_below(&random, 4)], 32u << random_below(&random, 4),
            (enum lmq_method)random_below(&random, 2),
            (enum lmq_scales)random_below(&random, 2), 1, false};
        size_t n = 1 + random_below(&random, MAX_N - 1);
        double sigma = exp(8 * random_normal(&random));
        if (quant.scales == LMQ_SCALES_F16)
            quant.multiplier =
                ldexpf(1, (int)random_below(&random, 40) - 20);
        draw_weights(&random, x, n);
        for (size_t i = 0; i < n; i++)
            x[i] = (float)(sigma * (double)x[i]);
        if (round % 50 == 0)
            x[random_below(&random, n)] = NAN;
        if (round % 37 == 0)
            memset(x, 0, n * sizeof(*x));
        memset(&a, 0x55, sizeof(a));
        memset(&b, 0x55, sizeof(b));
        memset(&a.stats, 0, sizeof(a.stats));
        memset(&b.stats, 0, sizeof(b.stats));
        lmq_quantize_row_c(&quant, x, n, a.q, a.scales, &a.stats);
        other(&quant, x, n, b.q, b.scales, &b.stats);
        ck_assert_int_eq(a.stats.has_nonfinite, b.stats.has_nonfinite);
        ck_assert_uint_eq(a.stats.nonfinite_at, b.stats.nonfinite_at);
        if (a.stats.has_nonfinite)
            continue;
        ck_assert_msg(memcmp(&a, &b, sizeof(a)) == 0,
                      "C and %s differ: round %d, %zu elements", name, round,
                      n);
    }
}

START_TEST(avx2_gives_the_bits_of_plain_c)
{
#ifdef LMQ_HAVE_AVX2
    if (lmq_cpu_has(LMQ_CPU_AVX2))
        assert_same_bits(lmq_quantize_row_avx2, "AVX2");
#endif
    (void)assert_same_bits;
}
END_TEST

START_TEST(avx512_gives_the_bits_of_plain_c)
{
#ifdef LMQ_HAVE_AVX512VNNI
    if (lmq_cpu_has(LMQ_CPU_AVX512VNNI))
        assert_same_bits(lmq_quantize_row_avx512, "AVX-512");
#endif
    (void)assert_same_bits;
}
END_TEST

/* ---- The rest ---- */

START_TEST(group_sizes_are_powers_of_two_from_32_to_256)
{
    for (unsigned n = 0; n < 1000; n++)
        ck_assert_int_eq(lmq_group_size_is_valid(n),
                         n == 32 || n == 64 || n == 128 || n == 256);
    ck_assert_uint_eq(lmq_groups_per_row(0, 64), 0);
    ck_assert_uint_eq(lmq_groups_per_row(1, 64), 1);
    ck_assert_uint_eq(lmq_groups_per_row(64, 64), 1);
    ck_assert_uint_eq(lmq_groups_per_row(65, 64), 2);
    ck_assert(lmq_quant_snr_db(100, 1) == 20);
    ck_assert(isinf(lmq_quant_snr_db(1, 0)));
}
END_TEST

START_TEST(a_vector_of_nothing_has_no_direction)
{
    ck_assert(lmq_quant_cosine(0, 0, 0) == 1);
    ck_assert(isnan(lmq_quant_cosine(0, 0, 4)));
    ck_assert(isnan(lmq_quant_cosine(0, 4, 0)));
    ck_assert(lmq_quant_cosine(-6, 4, 9) == -1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        zero_group_has_zero_scale,
        ties_go_to_even,
        minus_128_never_comes,
        absmax_is_the_reference,
        a_ragged_row_is_its_groups_one_by_one,
        values_are_quantized_against_the_rounded_scale,
        search_is_never_worse_than_absmax,
        search_wins_on_normal_weights,
        search_is_exact_on_multiples_of_one_step,
        ordinary_tensors_need_no_multiplier,
        every_multiplier_can_stand_in_a_file,
        tiny_and_huge_weights_keep_their_quality,
        the_extremes_of_float_do_no_harm,
        the_first_nonfinite_element_is_found,
        merged_statistics_count_from_the_start_of_the_tensor,
        avx2_gives_the_bits_of_plain_c,
        avx512_gives_the_bits_of_plain_c,
        group_sizes_are_powers_of_two_from_32_to_256,
        a_vector_of_nothing_has_no_direction,
    };

    return RUN_SUITE("group", tests);
}
