/*
 * test_mend.c - what rows make up for, against the same from the textbook.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convert/calibrate/feedback/mend.h"
#include "quantize/rotate.h"
#include "tests/build/suite.h"
#include "tests/convert/feedback/textbook.h"

#define COLUMNS TEXTBOOK_COLUMNS
#define TOKENS TEXTBOOK_TOKENS
#define DAMPING TEXTBOOK_DAMPING
#define OUTPUTS 70 /* of which the tests look at some in the middle */
#define FIRST 5
#define ROWS 13 /* not all lanes have one */
#define SHARE 0.35

/* ---- Adding up and solving ---- */

struct work {
    struct lmq_mend *mend;
    const struct lmq_hessian *hessian;
    const float *x, *d;
    size_t n;
    double *buffers[4];
};

static void
add_part(void *context, size_t member, size_t n_members)
{
    struct work *work = context;

    lmq_mend_add(work->mend, work->x, work->d, work->n, work->buffers[member],
                 member, n_members);
}

static void
solve_part(void *context, size_t member, size_t n_members)
{
    struct work *work = context;

    lmq_mend_solve(work->mend, work->hessian, SHARE, work->buffers[member],
                   member, n_members);
}

/* Tokens in calls of `step`; not solved without a Hessian. */
static struct lmq_mend
add_up(const float *x, const float *d, bool is_output, size_t rotated,
       const struct lmq_hessian *hessian, size_t step, struct lmq_team *team)
{
    size_t n_rows = is_output ? OUTPUTS : COLUMNS;
    struct lmq_mend mend;
    struct work work = {.mend = &mend, .hessian = hessian};

    ck_assert(lmq_mend_init(&mend, COLUMNS, n_rows, is_output, rotated));
    for (size_t i = 0; i < 4; i++) {
        work.buffers[i] =
            calloc(2 * lmq_hessian_buffer(COLUMNS), sizeof(double));
        ck_assert_ptr_nonnull(work.buffers[i]);
    }
    for (size_t at = 0; at < TOKENS; at += step) {
        work.x = x + at * COLUMNS;
        work.d = d + at * n_rows;
        work.n = TOKENS - at < step ? TOKENS - at : step;
        lmq_team_run(team, lmq_team_size(team), add_part, &work);
    }
    if (hessian != NULL)
        lmq_team_run(team, lmq_team_size(team), solve_part, &work);
    for (size_t i = 0; i < 4; i++)
        free(work.buffers[i]);
    return mend;
}

/* What is off by some of what is seen, and by more that has nothing to do with
 * it. */
static float *
missed_by(const float *x, size_t n_rows, struct random *random)
{
    float *d = malloc(TOKENS * n_rows * sizeof(*d));

    ck_assert_ptr_nonnull(d);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < n_rows; i++)
            d[t * n_rows + i] =
                (float)(0.02 * (double)x[t * COLUMNS + (i * 7) % COLUMNS] +
                        0.05 * random_normal(random));
    return d;
}

/* ---- From the textbook ---- */

/* V of a row w of the matrix, which adds to output i: the share of what it
 * should give besides, times x, times the inverse of H. */
static void
find_mended(const float *x, const float *d, bool is_output, size_t i,
            const float *w, const double *inverse, double unit, double *v)
{
    double sums[COLUMNS] = {0};

    for (size_t t = 0; t < TOKENS; t++) {
        double missed = is_output ? (double)d[t * OUTPUTS + i] : 0;
        for (size_t j = 0; j < COLUMNS && !is_output; j++)
            missed += (double)w[j] * (double)d[t * COLUMNS + j];
        for (size_t k = 0; k < COLUMNS; k++)
            sums[k] += missed * (double)x[t * COLUMNS + k];
    }
    for (size_t k = 0; k < COLUMNS; k++) {
        v[k] = 0;
        for (size_t j = 0; j < COLUMNS; j++)
            v[k] += SHARE / unit * sums[j] * inverse[j * COLUMNS + k];
    }
}

/* Rows are rounded as if they were these and stood alone. */
static void
offsets_are_what_is_missing(bool is_output)
{
    const struct lmq_quant quant = {4, 32, LMQ_METHOD_GPTQ, LMQ_SCALES_F16, 1,
                                    false};
    const size_t n_groups = lmq_groups_per_row(COLUMNS, 32);
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    float *d = missed_by(x, is_output ? OUTPUTS : COLUMNS, &random);
    static float rows[LMQ_FEEDBACK_ROWS * COLUMNS], mended[COLUMNS];
    static float scales[LMQ_FEEDBACK_ROWS * COLUMNS];
    static int8_t q[LMQ_FEEDBACK_ROWS * COLUMNS];
    static double inverse[COLUMNS * COLUMNS], v[COLUMNS];
    struct lmq_team *team = lmq_team_new(2);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    double *plain = textbook_hessian(x), unit = 0, cost = 0;
    double *offsets = malloc(lmq_mend_room(COLUMNS) * sizeof(*offsets));
    struct lmq_feedback_room room;
    struct lmq_feedback_result result;

    for (size_t i = 0; i < COLUMNS; i++)
        unit += textbook_sum(x, TOKENS, i, i) / COLUMNS;
    textbook_rows(rows, ROWS * COLUMNS, &random);
    textbook_invert(plain, inverse);
    ck_assert(textbook_factor(&h, DAMPING, team));
    ck_assert(lmq_feedback_room_init(&room, COLUMNS));
    struct lmq_mend mend = add_up(x, d, is_output, 0, &h, TOKENS, team);
    ck_assert_ptr_nonnull(offsets);
    lmq_mend_offsets(&mend, rows, COLUMNS, FIRST, ROWS, offsets);
    lmq_feedback_rows(&h, &quant, rows, offsets, ROWS, &room, q, scales,
                      &result);
    for (size_t r = 0; r < ROWS; r++) {
        find_mended(x, d, is_output, FIRST + r, rows + r * COLUMNS, inverse,
                    unit, v);
        for (size_t k = 0; k < COLUMNS; k++) {
            double sum = v[k], found = offsets[k * LMQ_FEEDBACK_ROWS + r];
            for (size_t j = 0; j < k; j++)
                sum += v[j] * h.sums[j * h.stride + k];
            REQUIRE(fabs(sum - found) < 1e-9, "row %zu, %zu: %g, expected %g",
                    r, k, found, sum);
            mended[k] = (float)((double)rows[r * COLUMNS + k] + v[k]);
        }
        cost += textbook_cost(plain, mended, q + r * COLUMNS,
                              scales + r * n_groups, 32);
    }
    ck_assert_double_eq_tol(result.cost, cost, 1e-3 * cost);
    lmq_feedback_room_free(&room);
    lmq_mend_free(&mend);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(offsets);
    free(plain);
    free(d);
    free(x);
}

START_TEST(inputs_are_made_up_for)
{
    offsets_are_what_is_missing(false);
}
END_TEST

START_TEST(outputs_are_made_up_for)
{
    offsets_are_what_is_missing(true);
}
END_TEST

/* ---- Bits ---- */

START_TEST(threads_and_calls_change_no_bit)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    float *d = missed_by(x, OUTPUTS, &random);
    struct lmq_team *one = lmq_team_new(1);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, one);

    ck_assert(textbook_factor(&h, DAMPING, one));
    struct lmq_mend first = add_up(x, d, true, 0, &h, TOKENS, one);
    for (int n = 2; n <= 4; n++) {
        struct lmq_team *team = lmq_team_new(n);
        struct lmq_mend mend =
            add_up(x, d, true, 0, &h, 30 + 7 * (size_t)n, team);
        for (size_t i = 0; i < OUTPUTS; i++)
            REQUIRE(memcmp(mend.sums + i * mend.stride,
                           first.sums + i * first.stride,
                           COLUMNS * sizeof(double)) == 0,
                    "row %zu with %d threads", i, n);
        lmq_mend_free(&mend);
        lmq_team_free(team);
    }
    lmq_mend_free(&first);
    lmq_hessian_free(&h);
    lmq_team_free(one);
    free(d);
    free(x);
}
END_TEST

static void
turn(float *x)
{
    for (size_t t = 0; t < TOKENS; t++)
        lmq_rotate_row(x + t * COLUMNS, COLUMNS, 64);
}

/* Inputs are turned with what is seen, outputs are not. */
START_TEST(what_is_turned_is_turned)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    float *inputs = missed_by(x, COLUMNS, &random);
    float *outputs = missed_by(x, OUTPUTS, &random);
    struct lmq_team *team = lmq_team_new(2);
    struct lmq_mend a = add_up(x, inputs, false, 64, NULL, TOKENS, team);
    struct lmq_mend b = add_up(x, outputs, true, 64, NULL, TOKENS, team);

    turn(x);
    turn(inputs);
    struct lmq_mend c = add_up(x, inputs, false, 0, NULL, TOKENS, team);
    struct lmq_mend d = add_up(x, outputs, true, 0, NULL, TOKENS, team);
    ck_assert_mem_eq(a.sums, c.sums, COLUMNS * a.stride * sizeof(double));
    ck_assert_mem_eq(b.sums, d.sums, OUTPUTS * b.stride * sizeof(double));
    lmq_mend_free(&a);
    lmq_mend_free(&b);
    lmq_mend_free(&c);
    lmq_mend_free(&d);
    lmq_team_free(team);
    free(outputs);
    free(inputs);
    free(x);
}
END_TEST

/* ---- Limits ---- */

/* Whether row 0 makes up for something, of what is missed `factor` times. */
static bool
is_mended(double factor, const float *row)
{
    struct random random = {random_seed()};
    float *x = textbook_tokens(TOKENS, COLUMNS, &random);
    float *d = missed_by(x, OUTPUTS, &random);
    static double offsets[4096 * LMQ_FEEDBACK_ROWS];
    struct lmq_team *team = lmq_team_new(1);
    struct lmq_hessian h = textbook_add_up(x, TOKENS, TOKENS, team);
    bool is_some = false;

    ck_assert_uint_le(lmq_mend_room(COLUMNS),
                      sizeof(offsets) / sizeof(*offsets));
    for (size_t i = 0; i < TOKENS * OUTPUTS; i++)
        d[i] = (float)(factor * (double)d[i]);
    ck_assert(textbook_factor(&h, DAMPING, team));
    struct lmq_mend mend = add_up(x, d, true, 0, &h, TOKENS, team);
    lmq_mend_offsets(&mend, row, COLUMNS, FIRST, 1, offsets);
    for (size_t k = 0; k < COLUMNS; k++) {
        REQUIRE(isfinite(offsets[k * LMQ_FEEDBACK_ROWS]), "column %zu", k);
        is_some |= offsets[k * LMQ_FEEDBACK_ROWS] != 0;
        for (size_t r = 1; r < LMQ_FEEDBACK_ROWS; r++)
            ck_assert(offsets[k * LMQ_FEEDBACK_ROWS + r] == 0);
    }
    lmq_mend_free(&mend);
    lmq_hessian_free(&h);
    lmq_team_free(team);
    free(d);
    free(x);
    return is_some;
}

START_TEST(no_row_becomes_another)
{
    static float row[COLUMNS], zeros[COLUMNS];
    struct random random = {random_seed()};

    textbook_rows(row, COLUMNS, &random);
    ck_assert(is_mended(1, row));
    ck_assert(!is_mended(0, row));
    ck_assert(!is_mended(1, zeros));
    ck_assert(!is_mended(1e20, row));
    ck_assert(!is_mended((double)INFINITY, row));
    ck_assert(!is_mended((double)NAN, row));
}
END_TEST

START_TEST(nothing_is_made_up_for)
{
    static double offsets[4096 * LMQ_FEEDBACK_ROWS];
    static float row[COLUMNS];
    struct lmq_mend mend;

    ck_assert(lmq_mend_init(&mend, COLUMNS, 0, false, 0));
    ck_assert_ptr_null(mend.sums);
    ck_assert(lmq_mend_bytes(COLUMNS, 0) == 0);
    ck_assert(lmq_mend_bytes(COLUMNS, 1) > 0);
    offsets[LMQ_FEEDBACK_ROWS] = 1;
    lmq_mend_offsets(&mend, row, COLUMNS, 0, 1, offsets);
    for (size_t i = 0; i < COLUMNS * LMQ_FEEDBACK_ROWS; i++)
        ck_assert(offsets[i] == 0);
    lmq_mend_free(&mend);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        inputs_are_made_up_for,  outputs_are_made_up_for,
        threads_and_calls_change_no_bit, what_is_turned_is_turned,
        no_row_becomes_another,  nothing_is_made_up_for,
    };

    return RUN_SUITE("mend", tests);
}
