/*
 * test_feedback.c - Hessians and rounding with feedback, against the same in
 * plain doubles from the textbook.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/team.h"
#include "convert/calibrate/feedback/feedback.h"
#include "convert/calibrate/feedback/outer.h"
#include "tests/build/suite.h"
#include "tests/convert/feedback/textbook.h"

#define COLUMNS TEXTBOOK_COLUMNS
#define TOKENS TEXTBOOK_TOKENS
#define DAMPING TEXTBOOK_DAMPING
#define ROWS LMQ_FEEDBACK_ROWS

/* What rows make up for besides; test_mend.c has more. */
static const double nothing[COLUMNS * ROWS];

/* ---- Adding up ---- */

START_TEST(sums_are_in_the_order_of_tokens)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    struct lmq_team *team = lmq_team_new(3);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, 37, team);

    ck_assert_uint_eq(h.n_tokens, TOKENS);
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = i; j < COLUMNS; j++)
            REQUIRE(h.sums[i * h.stride + j] == textbook_sum(x, TOKENS, i, j),
                    "%zu, %zu", i, j);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(x);
}
END_TEST

START_TEST(every_build_adds_the_same_bits)
{
    static double a[2][40 * 24], p[33 * 40], q[33 * 24];
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(p) / sizeof(*p); i++)
        p[i] = random_normal(&random);
    for (size_t i = 0; i < sizeof(q) / sizeof(*q); i++)
        q[i] = random_normal(&random);
    for (size_t i = 0; i < 40 * 24; i++)
        a[0][i] = a[1][i] = random_normal(&random);
    const struct lmq_strip left = {p, 40}, right = {q, 24};
    lmq_outer_add_c(a[0], 24, left, right, 40, 24, 33);
    lmq_outer_add(a[1], 24, left, right, 40, 24, 33);
    ck_assert_mem_eq(a[0], a[1], sizeof(a[0]));
}
END_TEST

/* ---- Factoring ---- */

START_TEST(factors_are_the_hessian_again)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    struct lmq_team *team = lmq_team_new(2);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    double unit = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        unit += textbook_sum(x, TOKENS, i, i) / COLUMNS;
    ck_assert(textbook_factor(&h, DAMPING, team));
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = i; j < COLUMNS; j++) {
            double sum = 0, expected = textbook_sum(x, TOKENS, i, j) / unit;
            for (size_t k = j; k < COLUMNS; k++)
                sum += (k == i ? 1 : h.sums[i * h.stride + k]) *
                       h.weights[k] *
                       (k == j ? 1 : h.sums[j * h.stride + k]);
            expected += i == j ? DAMPING : 0;
            REQUIRE(fabs(sum - expected) < 1e-10 * (1 + fabs(expected)),
                    "%zu, %zu: %g, expected %g", i, j, sum, expected);
        }
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(x);
}
END_TEST

START_TEST(threads_change_no_bit)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    struct lmq_hessian first = {0};

    for (int n = 1; n <= 4; n++) {
        struct lmq_team *team = lmq_team_new(n);
        struct lmq_hessian h = textbook_add_up(x, TOKENS, 100, team);
        ck_assert(textbook_factor(&h, DAMPING, team));
        if (n == 1)
            first = h;
        for (size_t i = 0; i < COLUMNS; i++)
            REQUIRE(memcmp(h.sums + i * h.stride + i + 1,
                           first.sums + i * h.stride + i + 1,
                           (COLUMNS - i - 1) * sizeof(double)) == 0,
                    "row %zu with %d threads", i, n);
        ck_assert_mem_eq(h.weights, first.weights, COLUMNS * sizeof(double));
        if (n > 1)
            lmq_hessian_free(&h);
        lmq_team_free(team);
    }
    lmq_hessian_free(&first);
    free(x);
}
END_TEST

/* x[t][i] times factor[i % n]. */
static bool
can_factor(const float *factors, size_t n, size_t n_tokens, double damping)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    struct lmq_team *team = lmq_team_new(2);

    for (size_t i = 0; i < TOKENS * COLUMNS; i++)
        x[i] *= factors[i % COLUMNS % n];
    struct lmq_hessian h = textbook_add_up(x, n_tokens, TOKENS, team);
    bool can = textbook_factor(&h, damping, team);
    /* What is dead counts as what is not does on average. */
    for (size_t i = 0; i < COLUMNS && can; i++)
        REQUIRE(factors[i % n] > 0
                    ? h.weights[i] > 0 && isfinite(h.weights[i])
                    : h.weights[i] == 1 + damping, "column %zu", i);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(x);
    return can;
}

START_TEST(what_is_degenerate_is_damped)
{
    ck_assert(can_factor((float[]){1}, 1, 3, DAMPING));       /* rank 3 */
    ck_assert(can_factor((float[]){1, 0, 1}, 3, 50, DAMPING)); /* dead */
    ck_assert(can_factor((float[]){1e30f, 1}, 2, 50, DAMPING));
    ck_assert(can_factor((float[]){1e-30f}, 1, 50, DAMPING));
    ck_assert(can_factor((float[]){1}, 1, 3, 1e-6));
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    ck_assert(!can_factor((float[]){0}, 1, 50, DAMPING));
    ck_assert(!can_factor((float[]){1}, 1, 0, DAMPING));
    ck_assert(!can_factor((float[]){NAN, 1}, 2, 50, DAMPING));
    ck_assert(!can_factor((float[]){INFINITY, 1}, 2, 50, DAMPING));
}
END_TEST

/* ---- Feedback ---- */

/* As it is published: the errors of a column go to all later ones by the
 * inverse of what is left of H, from which the column is then eliminated. */
static void
textbook(const double *inverse, const float *x, const float *scales,
         const struct lmq_quant *quant, int *q)
{
    static double left[COLUMNS * COLUMNS];
    double w[COLUMNS];

    memcpy(left, inverse, sizeof(left));
    for (size_t i = 0; i < COLUMNS; i++)
        w[i] = (double)x[i];
    for (size_t p = 0; p < COLUMNS; p++) {
        double scale = (double)scales[p / quant->group_size];
        double d = left[p * COLUMNS + p], at = scale == 0 ? 0 : w[p] / scale;
        at = fmin(fmax(rint(at), lmq_q_least(quant->bits)),
                  lmq_q_most(quant->bits));
        q[p] = (int)at;
        double error = (w[p] - at * scale) / d;
        for (size_t j = p; j < COLUMNS; j++)
            w[j] -= error * left[p * COLUMNS + j];
        for (size_t i = p + 1; i < COLUMNS; i++)
            for (size_t j = p + 1; j < COLUMNS; j++)
                left[i * COLUMNS + j] -= left[i * COLUMNS + p] *
                                         left[p * COLUMNS + j] / d;
    }
}

static const unsigned widths[] = {4, 5, 6, 8};

/* 13 rows: not all lanes have one. */
START_TEST(numbers_are_those_of_the_textbook)
{
    const struct lmq_quant quant = {widths[_i], 32, LMQ_METHOD_GPTQ,
                                    LMQ_SCALES_F16, 1, false};
    const size_t n = 13, n_groups = lmq_groups_per_row(COLUMNS, 32);
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    static float rows[ROWS * COLUMNS], scales[ROWS * COLUMNS];
    static int8_t q[ROWS * COLUMNS];
    static double inverse[COLUMNS * COLUMNS];
    struct lmq_team *team = lmq_team_new(2);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    double *plain = textbook_hessian(x), cost = 0, searched = 0;
    struct lmq_feedback_room room;
    struct lmq_feedback_result result;
    size_t n_other = 0;

    textbook_rows(rows, n * COLUMNS, &random);
    ck_assert(textbook_factor(&h, DAMPING, team));
    ck_assert(lmq_feedback_room_init(&room, COLUMNS));
    lmq_feedback_rows(&h, &quant, rows, nothing, n, &room, q, scales, &result);
    textbook_invert(plain, inverse);
    for (size_t r = 0; r < n; r++) {
        const float *row = rows + r * COLUMNS, *own = scales + r * n_groups;
        struct lmq_quant search = quant;
        struct lmq_quant_stats stats = {0};
        int8_t by_search[COLUMNS];
        float search_scales[COLUMNS];
        int expected[COLUMNS];
        search.method = LMQ_METHOD_SEARCH;
        lmq_quantize_row(&search, row, COLUMNS, by_search, search_scales,
                         &stats);
        double a = textbook_cost(plain, row, q + r * COLUMNS, own, 32);
        double b = textbook_cost(plain, row, by_search, search_scales, 32);
        REQUIRE(a <= b * (1 + 1e-9), "row %zu costs %g, by search %g", r, a,
                b);
        cost += a;
        searched += b;
        textbook(inverse, row, own, &quant, expected);
        for (size_t i = 0; i < COLUMNS; i++)
            n_other += expected[i] != q[r * COLUMNS + i];
    }
    /* Ties may fall on the other side, and later numbers after them. */
    ck_assert_msg(n_other <= n * COLUMNS / 50, "%zu differ", n_other);
    ck_assert_double_eq_tol(result.cost, cost, 1e-8 * cost);
    ck_assert_double_eq_tol(result.searched, searched, 1e-8 * searched);
    ck_assert_msg(cost < 0.8 * searched, "%g, by search %g", cost, searched);
    lmq_feedback_room_free(&room);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(plain);
    free(x);
}
END_TEST

/* Of a matrix that is rotated they are before they come: not once more. */
START_TEST(rows_come_rotated)
{
    struct lmq_quant quant = {widths[_i], 64, LMQ_METHOD_GPTQ,
                              LMQ_SCALES_F16, 1, false};
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    static float rows[ROWS * COLUMNS], scales[2][ROWS * COLUMNS];
    static int8_t q[2][ROWS * COLUMNS];
    struct lmq_team *team = lmq_team_new(2);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    struct lmq_feedback_room room;
    struct lmq_feedback_result results[2];

    textbook_rows(rows, 13 * COLUMNS, &random);
    ck_assert(textbook_factor(&h, DAMPING, team));
    ck_assert(lmq_feedback_room_init(&room, COLUMNS));
    for (int i = 0; i < 2; i++) {
        quant.rotation = i == 1 ? LMQ_ROTATION_ALL : LMQ_ROTATION_NONE;
        lmq_feedback_rows(&h, &quant, rows, nothing, 13, &room, q[i],
                          scales[i], &results[i]);
    }
    ck_assert_mem_eq(q[0], q[1], sizeof(q[0]));
    ck_assert_mem_eq(scales[0], scales[1], sizeof(scales[0]));
    ck_assert(results[0].searched == results[1].searched);
    lmq_feedback_room_free(&room);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(x);
}
END_TEST

/* A row of zeros, one that is huge, one that is tiny. */
START_TEST(extreme_rows_stay_legal)
{
    const struct lmq_quant quant = {widths[_i], 64, LMQ_METHOD_GPTQ,
                                    LMQ_SCALES_F32, 1, false};
    static float rows[4 * COLUMNS], scales[4 * COLUMNS];
    static int8_t q[4 * COLUMNS];
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    struct lmq_team *team = lmq_team_new(1);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    struct lmq_feedback_room room;
    struct lmq_feedback_result result;

    textbook_rows(rows, 4 * COLUMNS, &random);
    for (size_t i = 0; i < COLUMNS; i++) {
        rows[i] = 0;
        rows[COLUMNS + i] *= 1e38f;
        rows[2 * COLUMNS + i] *= 1e-36f;
    }
    ck_assert(textbook_factor(&h, DAMPING, team));
    ck_assert(lmq_feedback_room_init(&room, COLUMNS));
    lmq_feedback_rows(&h, &quant, rows, nothing, 4, &room, q, scales, &result);
    for (size_t r = 0; r < 4; r++) {
        struct lmq_quant_stats stats = {0};
        REQUIRE(lmq_quant_take_row(&quant, q + r * COLUMNS, COLUMNS,
                                   scales + r * 3, &stats),
                "row %zu is illegal", r);
    }
    for (size_t i = 0; i < COLUMNS; i++)
        ck_assert_int_eq(q[i], 0);
    lmq_feedback_room_free(&room);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(x);
}
END_TEST

/* ---- Weights of errors ---- */

static double
weighted_error(const struct lmq_quant *quant, const float *x,
               const float *weights, size_t n, float scale)
{
    float inverse = scale < 0 || scale > 0 ? 1 / scale : 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        int q = lmq_quant_round(quant->bits, x[i], inverse);
        double err = (double)x[i] - (double)q * (double)scale;
        sum += (double)weights[i] * err * err;
    }
    return sum;
}

START_TEST(weights_decide_the_scale)
{
    const struct lmq_quant quant = {widths[_i], 64, LMQ_METHOD_SEARCH,
                                    LMQ_SCALES_F16, 1, false};
    struct random random = {random_seed()};
    double with = 0, without = 0;

    for (size_t round = 0; round < 200; round++) {
        float x[64], weights[64], ones[64], a, b, c;
        size_t n = round % 2 == 0 ? 64 : 1 + random_below(&random, 64);
        textbook_rows(x, n, &random);
        for (size_t i = 0; i < n; i++) {
            weights[i] = (float)exp(-3 * fabs(random_normal(&random)));
            ones[i] = 1;
        }
        weights[0] = 1;
        float top = lmq_quant_weighted_scale(&quant, x, weights, n, &a);
        REQUIRE(lmq_quant_weighted_scale_c(&quant, x, weights, n, &b) == top &&
                    memcmp(&a, &b, sizeof(a)) == 0,
                "another scale in plain C");
        lmq_quant_weighted_scale(&quant, x, ones, n, &c);
        with += weighted_error(&quant, x, weights, n, a);
        without += weighted_error(&quant, x, weights, n, c);
    }
    ck_assert_msg(with < 0.99 * without, "%g, without weights %g", with,
                  without);
}
END_TEST

/* Of any row what lmq_quantize_row() says itself, but for the last bits. */
START_TEST(a_row_is_measured_as_it_is_quantized)
{
    const struct lmq_quant quant = {widths[_i], 64, LMQ_METHOD_SEARCH,
                                    LMQ_SCALES_F16, 1, false};
    struct random random = {random_seed()};
    struct lmq_quant_stats a = {0}, b = {0};
    float x[COLUMNS], scales[COLUMNS];
    int8_t q[COLUMNS];

    textbook_rows(x, COLUMNS, &random);
    lmq_quantize_row(&quant, x, COLUMNS, q, scales, &a);
    lmq_quant_measure_row(&quant, x, COLUMNS, q, scales, &b);
    ck_assert_uint_eq(a.n, b.n);
    ck_assert_uint_eq(a.n_groups, b.n_groups);
    ck_assert_uint_eq(a.worst_group, b.worst_group);
    ck_assert(a.max_abs == b.max_abs && a.max_err == b.max_err);
    ck_assert_double_eq_tol(a.err_sq, b.err_sq, 1e-5 * a.err_sq);
    ck_assert_double_eq_tol(a.sum_sq, b.sum_sq, 1e-5 * a.sum_sq);
    for (size_t i = 0; i < COLUMNS; i++) {
        float scale = scales[i / 64];
        ck_assert_int_eq(q[i], lmq_quant_round(quant.bits, x[i],
                                               scale != 0 ? 1 / scale : 0));
    }
    ck_assert_int_eq(lmq_quant_round(quant.bits, 1e30f, 1e30f),
                     lmq_q_most(quant.bits));
    ck_assert_int_eq(lmq_quant_round(quant.bits, -1e30f, 1e30f),
                     lmq_q_least(quant.bits));
}
END_TEST

int
main(void)
{
    const TTest *const plain[] = {
        sums_are_in_the_order_of_tokens, every_build_adds_the_same_bits,
        factors_are_the_hessian_again,   threads_change_no_bit,
        what_is_degenerate_is_damped,    what_is_no_number_is_refused,
    };
    const TTest *const over_widths[] = {
        numbers_are_those_of_the_textbook, rows_come_rotated,
        extreme_rows_stay_legal,
        weights_decide_the_scale, a_row_is_measured_as_it_is_quantized};
    int failed = RUN_SUITE("hessian", plain);

    return RUN_SUITE_OVER("feedback", over_widths, 0, 4) | failed;
}
