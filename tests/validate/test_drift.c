/*
 * test_drift.c - the figures of a position, and those of many with their
 * uncertainty, against ones that are known.
 */
#include "config.h"

#include <math.h>

#include "base/report.h"
#include "tests/build/suite.h"
#include "validate/drift.h"
#include "validate/job.h"

#define N 11
#define LOGITS 8

/* In the order of the text the divergences are 0, 0.1, ... 1, mixed. */
static double
kld_at(size_t i)
{
    return (double)(i * 4 % N) / 10;
}

static void
add(struct lmq_drift *drift, size_t document, size_t position, size_t context,
    const struct lmq_position_drift *at)
{
    const struct lmq_window window = {.document = document, .first = 1000};

    ck_assert_int_eq(
        lmq_drift_add(drift, &window, position, context, at, NULL), LMQ_OK);
}

static double
number(const json_t *report, const char *key)
{
    return lmq_report_number((const struct lmq_report *)report, key);
}

static void
is(const json_t *report, const char *key, double value)
{
    ck_assert_msg(fabs(number(report, key) - value) <= 1e-12 * fabs(value),
                  "%s is %.17g, not %.17g", key, number(report, key), value);
}

START_TEST(figures_are_those_of_the_positions)
{
    struct lmq_drift drift = {0};
    json_t *report = json_object();

    for (size_t i = 0; i < N; i++)
        add(&drift, 0, i, 2 * N,
            &(struct lmq_position_drift){
                .nll_reference = 2 + (double)i / 16,
                .nll = 2 + (double)i / 16 + kld_at(i),
                .kld = kld_at(i),
                .total_variation = 0.25,
                .delta_p = i % 2 == 0 ? 0.5 : -0.5,
                .top5 = i == 0 ? 0.2 : 1,
                .is_top1_equal = i > 2,
                .is_lost = i < 2,
                .is_gained = i == 2,
                .max_abs = i == 5 ? 3 : 1,
                .sum_abs = 4,
                .sum_sq = 32,
                .dot = 6,
                .norm_reference_sq = 4,
                .norm_sq = 16});
    drift.n_bytes = 2 * N;
    ck_assert_int_eq(lmq_drift_describe(&drift, LOGITS, &report, NULL),
                     LMQ_OK);
    is(report, "reference.nll", 2 + 5.0 / 16);
    is(report, "model.nll", 2 + 5.0 / 16 + 0.5);
    is(report, "model.ppl", exp(2 + 5.0 / 16 + 0.5));
    is(report, "model.bits_per_byte", (2 + 5.0 / 16 + 0.5) / log(2) / 2);
    is(report, "delta_nll", 0.5);
    /* The variance of 0, 0.1, ... 1 is 0.11, of their mean 0.01. */
    is(report, "delta_nll_stderr", 0.1);
    is(report, "ppl_ratio", exp(0.5));
    is(report, "ppl_ratio_stderr", exp(0.5) * 0.1);
    is(report, "kld.mean", 0.5);
    is(report, "kld.stderr", 0.1);
    ck_assert(isnan(number(report, "kld.stderr_by_document")));
    is(report, "kld.median", 0.5);
    is(report, "kld.p90", 0.9);
    is(report, "kld.p95", 0.95);
    is(report, "kld.p99", 0.99);
    is(report, "kld.p999", 0.999);
    is(report, "kld.max", 1);
    is(report, "kld.histogram.counts.0", 1);
    is(report, "kld.histogram.counts.41", 1); /* of 48 from -12 to 2 */
    is(report, "top1_agreement", 8.0 / N);
    is(report, "top5_agreement", 10.2 / N);
    is(report, "flips.rate", 3.0 / N);
    is(report, "flips.lost", 2.0 / N);
    is(report, "flips.gained", 1.0 / N);
    is(report, "rms_delta_p", 0.5);
    is(report, "total_variation", 0.25);
    is(report, "logit_drift.max_abs", 3);
    is(report, "logit_drift.mean_abs", 0.5);
    is(report, "logit_drift.rms", 2);
    is(report, "logit_drift.cosine", 0.75);
    /* Half of the window, in 8 of 16 bins. */
    is(report, "positions.1.from", 1.0 / 16);
    is(report, "positions.1.scored", 1);
    is(report, "positions.0.scored", 2);
    is(report, "positions.0.kld", (kld_at(0) + kld_at(1)) / 2);
    is(report, "positions.7.kld", kld_at(10));
    is(report, "positions.8.scored", 0);
    json_decref(report);
    lmq_drift_free(&drift);
}
END_TEST

/* ---- One position ---- */

#define ROW 19 /* no multiple of what goes at once */

/* How many of the n numbers come before x[i], equal ones in their order. */
static size_t
rank(const float *x, size_t n, size_t i)
{
    size_t before = 0;

    for (size_t j = 0; j < n; j++)
        before += x[j] > x[i] || (x[j] >= x[i] && j < i);
    return before;
}

static void
is_near(double value, double truth)
{
    ck_assert_double_eq_tol(value, truth, 1e-12 * (1 + fabs(truth)));
}

START_TEST(two_rows_of_logits_are_compared)
{
    struct random random = {random_seed()};
    float a[ROW], b[ROW];
    double scratch[2 * ROW];

    for (size_t n = 1; n <= ROW; n++) {
        struct lmq_position_drift drift;
        double sum_a = 0, sum_b = 0, kld = 0, tv = 0, most = 0, abs_sum = 0;
        double sq = 0, dot = 0, aa = 0, bb = 0;
        size_t next = random_below(&random, n), shared = 0, top = 0;
        for (size_t i = 0; i < n; i++) {
            /* Few values, so that some are equal. */
            a[i] = (float)random_below(&random, 8) - 4;
            b[i] = (float)random_below(&random, 8) - 4;
            sum_a += exp((double)a[i]);
            sum_b += exp((double)b[i]);
        }
        for (size_t i = 0; i < n; i++) {
            double x = (double)a[i], y = (double)b[i];
            double p = exp(x) / sum_a, q = exp(y) / sum_b;
            kld += p * log(p / q);
            tv += fabs(p - q) / 2;
            most = fmax(most, fabs(x - y));
            abs_sum += fabs(x - y);
            sq += (x - y) * (x - y);
            dot += x * y;
            aa += x * x;
            bb += y * y;
            top += rank(a, n, i) < 5;
            shared += rank(a, n, i) < 5 && rank(b, n, i) < 5;
        }
        lmq_compare_logits(a, b, n, (int32_t)next, scratch, &drift);
        double p = exp((double)a[next]) / sum_a;
        double q = exp((double)b[next]) / sum_b;
        bool is_right_a = rank(a, n, next) == 0;
        bool is_right_b = rank(b, n, next) == 0;
        is_near(drift.nll_reference, -log(p));
        is_near(drift.nll, -log(q));
        is_near(drift.delta_p, q - p);
        is_near(drift.kld, kld);
        is_near(drift.total_variation, tv);
        is_near(drift.max_abs, most);
        is_near(drift.sum_abs, abs_sum);
        is_near(drift.sum_sq, sq);
        is_near(drift.dot, dot);
        is_near(drift.norm_reference_sq, aa);
        is_near(drift.norm_sq, bb);
        is_near(drift.top5, (double)shared / (double)top);
        ck_assert_uint_eq(rank(a, n, (size_t)drift.top1_reference), 0);
        ck_assert_uint_eq(rank(b, n, (size_t)drift.top1), 0);
        ck_assert(drift.is_top1_equal ==
                  (drift.top1 == drift.top1_reference));
        ck_assert(drift.is_lost == (is_right_a && !is_right_b));
        ck_assert(drift.is_gained == (!is_right_a && is_right_b));
    }
}
END_TEST

START_TEST(two_streams_are_compared)
{
    struct random random = {random_seed()};
    struct lmq_stream_sums sums = {0};
    double err_sq = 0, aa = 0, bb = 0, dot = 0;
    float a[ROW], b[ROW];

    for (size_t n = 1; n <= ROW; n++) {
        struct lmq_stream_drift one = {0}, two = {0};
        for (size_t i = 0; i < n; i++) {
            a[i] = (float)random_below(&random, 99);
            b[i] = (float)random_below(&random, 99);
            double x = (double)a[i], y = (double)b[i];
            err_sq += 2 * (x - y) * (x - y);
            aa += 2 * x * x;
            bb += 2 * y * y;
            dot += 2 * x * y;
        }
        lmq_compare_streams(a, b, n, &one);
        lmq_stream_drift_add(&two, &one);
        lmq_stream_drift_add(&two, &one);
        lmq_stream_sums_add(&sums, &two);
    }
    ck_assert_uint_eq(sums.n, ROW * (ROW + 1));
    ck_assert_double_eq(lmq_exact_round(&sums.err_sq), err_sq);
    ck_assert_double_eq(lmq_exact_round(&sums.reference_sq), aa);
    ck_assert_double_eq(lmq_exact_round(&sums.model_sq), bb);
    ck_assert_double_eq(lmq_exact_round(&sums.dot), dot);
    /* The embedding comes first. */
    const struct lmq_stream_sums layers[] = {sums, sums};
    const struct lmq_job job = {.n_layers = 1};
    json_t *report = lmq_describe_layers(&job, layers);
    is(report, "0.layer", -1);
    is(report, "1.layer", 0);
    is(report, "1.rms", sqrt(err_sq / (ROW * (ROW + 1))));
    is(report, "1.relative_rms", sqrt(err_sq / aa));
    is(report, "1.cosine", dot / sqrt(aa * bb));
    json_decref(report);
}
END_TEST

/* ---- Uncertainty ---- */

/* Four standard errors of a spread that is estimated in 1000 rounds. */
#define BOOTSTRAP_ERROR (4 / sqrt(2 * 1000.0))

/* Neighbours are alike: as many positions as one would like say no more than
 * their documents do. */
START_TEST(documents_are_drawn_as_wholes)
{
    enum { DOCUMENTS = 20, EACH = 50 };
    struct lmq_drift drift = {0};
    struct lmq_spread spread;
    double variance = (DOCUMENTS * DOCUMENTS - 1) / 12.0;

    for (size_t i = 0; i < DOCUMENTS * EACH; i++)
        add(&drift, i / EACH, i % EACH, EACH,
            &(struct lmq_position_drift){.kld = (double)(i / EACH)});
    ck_assert_int_eq(lmq_drift_spread(&drift, drift.kld, &spread, NULL),
                     LMQ_OK);
    double truth = sqrt(variance / (double)DOCUMENTS);
    ck_assert_double_eq(spread.mean, (DOCUMENTS - 1) / 2.0);
    ck_assert_double_eq_tol(spread.by_document, truth,
                            BOOTSTRAP_ERROR * truth);
    ck_assert_double_eq_tol(spread.by_position,
                            sqrt(variance / (DOCUMENTS * EACH - 1)), 1e-9);
    lmq_drift_free(&drift);
}
END_TEST

/* A mean of means would have each document weigh the same. */
START_TEST(a_long_document_weighs_more)
{
    enum { DOCUMENTS = 40, LONG = 9 };
    struct lmq_drift drift = {0};
    struct lmq_spread spread;

    for (size_t d = 0; d < DOCUMENTS; d++)
        for (size_t i = 0; i < (d % 2 == 0 ? 1 : LONG); i++)
            add(&drift, d, i, LONG,
                &(struct lmq_position_drift){.kld = d % 2 == 0 ? 10 : 0});
    ck_assert_int_eq(lmq_drift_spread(&drift, drift.kld, &spread, NULL),
                     LMQ_OK);
    ck_assert_double_eq(spread.mean, 1);
    /* Of k short documents among n: 10 k / (k + 9 (n - k)), linear in k. */
    const double n = DOCUMENTS;
    double truth = 10 * 9 * n / (25 * n * n) * sqrt(n / 4);
    ck_assert_double_eq_tol(spread.by_document, truth, 0.2 * truth);
    lmq_drift_free(&drift);
}
END_TEST

START_TEST(the_worst_are_kept_in_order)
{
    static int32_t tokens[1000 + 3 * LMQ_WORST];
    const struct lmq_job job = {.corpus.tokens = tokens};
    static const char *const texts[][2] = {
        {"0.context", "#2032"}, {"0.token", "#2034"},
        {"0.reference_says", "#17"}, {"0.model_says", "#18"}};
    struct lmq_drift drift = {0};

    for (size_t i = 0; i < 3 * LMQ_WORST; i++)
        add(&drift, 0, i, 3 * LMQ_WORST,
            &(struct lmq_position_drift){.kld = (double)(i * 7 % 30),
                                         .top1_reference = (int32_t)i,
                                         .top1 = (int32_t)i + 1,
                                         .nll_reference = (double)i / 2,
                                         .nll = (double)i / 4});
    ck_assert_uint_eq(drift.n_worst, LMQ_WORST);
    for (size_t i = 0; i < LMQ_WORST; i++) {
        const struct lmq_worst *worst = &drift.worst[i];
        size_t at = worst->token - 1000;
        /* Each divergence comes twice; of equal ones the first. */
        ck_assert_double_eq(worst->kld, 29 - (double)(i / 2));
        ck_assert_uint_eq(at * 7 % 30, 29 - i / 2);
        ck_assert_uint_eq(at / 30, i % 2);
        ck_assert_uint_eq(worst->window_first, 1000);
        ck_assert_int_eq(worst->top1_reference, (int32_t)at);
        ck_assert_int_eq(worst->top1, (int32_t)at + 1);
        ck_assert_double_eq(worst->nll_reference, (double)at / 2);
        ck_assert_double_eq(worst->nll, (double)at / 4);
    }
    for (int32_t i = 0; i < 1000 + 3 * LMQ_WORST; i++)
        tokens[i] = 2 * i;
    json_t *report = lmq_describe_worst(&job, &drift);
    is(report, "0.position", 17);
    is(report, "0.kld", 29);
    is(report, "0.reference_nll", 8.5);
    is(report, "0.model_nll", 4.25);
    for (size_t i = 0; i < 4; i++) /* numbers: there is no tokenizer */
        ck_assert_str_eq(
            lmq_report_string((struct lmq_report *)report, texts[i][0]),
            texts[i][1]);
    json_decref(report);
    lmq_drift_free(&drift);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {figures_are_those_of_the_positions,
                                  two_rows_of_logits_are_compared,
                                  two_streams_are_compared,
                                  documents_are_drawn_as_wholes,
                                  a_long_document_weighs_more,
                                  the_worst_are_kept_in_order};

    return RUN_SUITE("drift", tests);
}
