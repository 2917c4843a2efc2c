/*
 * test_sampler.c - picking tokens: filters, penalties, seeds.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"

#define N 8

/* Probabilities 0.4, 0.3, 0.15, 0.08, 0.04, 0.02, 0.007, 0.003 under ids that
 * are not in order. */
static const int32_t order[N] = {3, 6, 0, 7, 1, 5, 2, 4};
static const double shares[N] = {0.4,  0.3,  0.15,  0.08,
                                 0.04, 0.02, 0.007, 0.003};

static void
make_logits(float logits[N])
{
    for (int i = 0; i < N; i++)
        logits[order[i]] = (float)log(shares[i]) + 3;
}

static void
count(const struct lmq_sampler_options *options, int rounds, int counts[N])
{
    struct lmq_sampler *sampler;
    float logits[N];

    memset(counts, 0, N * sizeof(*counts));
    make_logits(logits);
    ck_assert_int_eq(lmq_sampler_new(options, N, &sampler, NULL), LMQ_OK);
    for (int i = 0; i < rounds; i++)
        counts[lmq_sampler_pick(sampler, logits)]++;
    lmq_sampler_free(sampler);
}

/* How many of the likeliest tokens occur at all. */
static int
survivors(const struct lmq_sampler_options *options)
{
    int counts[N], n = 0;

    count(options, 20000, counts);
    for (int i = 0; i < N; i++)
        n += counts[order[i]] > 0;
    for (int i = 0; i < n; i++) /* and they are the likeliest ones */
        ck_assert_int_gt(counts[order[i]], 0);
    return n;
}

START_TEST(without_temperature_the_likeliest_is_picked)
{
    int counts[N];

    count(NULL, 10, counts);
    ck_assert_int_eq(counts[order[0]], 10);
}
END_TEST

START_TEST(of_equal_ones_the_first_is_picked)
{
    const float logits[3] = {1, 2, 2};
    struct lmq_sampler *sampler;

    ck_assert_int_eq(lmq_sampler_new(NULL, 3, &sampler, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_sampler_pick(sampler, logits), 1);
    lmq_sampler_free(sampler);
}
END_TEST

START_TEST(temperature_one_draws_the_distribution)
{
    const struct lmq_sampler_options options = {.temperature = 1, .seed = 5};
    const int rounds = 40000;
    int counts[N];

    count(&options, rounds, counts);
    for (int i = 0; i < N; i++) {
        double wanted = shares[i] * rounds;
        /* five standard deviations: the seed is fixed, so this never flakes */
        ck_assert_double_le(fabs(counts[order[i]] - wanted),
                            5 * sqrt(wanted) + 1);
    }
}
END_TEST

START_TEST(filters_keep_the_likeliest)
{
    struct lmq_sampler_options options = {.temperature = 1};

    ck_assert_int_eq(survivors(&options), 8);
    options.top_k = 3;
    ck_assert_int_eq(survivors(&options), 3);
    options.top_k = 1;
    ck_assert_int_eq(survivors(&options), 1);
    options.top_k = 0;
    options.top_p = 0.69; /* 0.4 + 0.3 reach it */
    ck_assert_int_eq(survivors(&options), 2);
    options.top_p = 0.71;
    ck_assert_int_eq(survivors(&options), 3);
    options.top_p = 0;
    options.min_p = 0.19; /* of 0.4: 0.076 */
    ck_assert_int_eq(survivors(&options), 4);
}
END_TEST

/* How many stand before it: what is likelier, and of equals smaller ids. */
static size_t
rank_of(const float *logits, size_t n, int32_t id)
{
    size_t before = 0;

    for (size_t i = 0; i < n; i++)
        before += logits[i] > logits[id] ||
                  (logits[i] == logits[id] && i < (size_t)id);
    return before;
}

/* Many, most of them equal to others, rising and falling: whatever is looked at
 * first, the best k can be drawn, and nothing else. */
START_TEST(the_best_of_many_are_found)
{
    enum { MANY = 3000 };
    static const long ks[] = {1, 2, 7, 40, 1499, 1500, 2999, 3000, 5000};
    static float logits[MANY];
    static bool is_drawn[MANY];
    struct lmq_sampler *sampler;

    for (int shape = 0; shape < 3; shape++)
        for (size_t i = 0; i < sizeof(ks) / sizeof(ks[0]); i++) {
            struct lmq_sampler_options options = {
                .temperature = 1, .top_k = ks[i], .seed = i + 1};
            size_t k = ks[i] < MANY ? (size_t)ks[i] : MANY, n_drawn = 0;
            memset(is_drawn, 0, sizeof(is_drawn));
            for (int j = 0; j < MANY; j++)
                logits[j] = shape == 0   ? (float)(j / 37)
                            : shape == 1 ? (float)(-j / 37)
                                         : (float)(j * 7919 % 41);
            for (int j = 0; j < MANY; j++)
                logits[j] *= 0.001f;
            ck_assert_int_eq(lmq_sampler_new(&options, MANY, &sampler, NULL),
                             LMQ_OK);
            for (int j = 0; j < 400; j++) {
                int32_t id = lmq_sampler_pick(sampler, logits);
                ck_assert_msg(rank_of(logits, MANY, id) < k,
                              "of the best %zu, shape %d: number %zu", k,
                              shape, rank_of(logits, MANY, id));
                n_drawn += !is_drawn[id];
                is_drawn[id] = true;
            }
            ck_assert_msg(k > 40 || n_drawn == k, "only %zu of %zu", n_drawn,
                          k);
            lmq_sampler_free(sampler);
        }
}
END_TEST

START_TEST(typical_keeps_what_surprises_as_expected)
{
    /* The entropy is 1.51: 0.3 (1.20) and 0.15 (1.90) are the nearest. */
    const struct lmq_sampler_options options = {.temperature = 1,
                                                .typical = 0.4};
    int counts[N];

    count(&options, 1000, counts);
    ck_assert_int_eq(counts[order[1]] + counts[order[2]], 1000);
    ck_assert_int_gt(counts[order[2]], 0);
}
END_TEST

START_TEST(a_low_temperature_sharpens)
{
    const struct lmq_sampler_options options = {.temperature = 0.1};
    int counts[N];

    count(&options, 10000, counts);
    /* (0.3 / 0.4)^10 is 0.056 */
    ck_assert_int_gt(counts[order[0]], 9300);
    ck_assert_int_lt(counts[order[0]], 9650);
}
END_TEST

static int32_t
greedy_after(const struct lmq_sampler_options *options, int32_t seen,
             int times)
{
    struct lmq_sampler *sampler;
    float logits[N];

    make_logits(logits);
    ck_assert_int_eq(lmq_sampler_new(options, N, &sampler, NULL), LMQ_OK);
    for (int i = 0; i < times; i++)
        lmq_sampler_accept(sampler, seen);
    int32_t id = lmq_sampler_pick(sampler, logits);
    lmq_sampler_free(sampler);
    return id;
}

START_TEST(penalties_push_recent_tokens_back)
{
    struct lmq_sampler_options options = {.repeat_penalty = 1.5};

    ck_assert_int_eq(greedy_after(&options, order[0], 0), order[0]);
    ck_assert_int_eq(greedy_after(&options, order[0], 1), order[1]);
    options.repeat_penalty = 0;
    options.presence_penalty = 0.2; /* less than ln(0.4 / 0.3) = 0.29 */
    ck_assert_int_eq(greedy_after(&options, order[0], 9), order[0]);
    options.presence_penalty = 0.3;
    ck_assert_int_eq(greedy_after(&options, order[0], 1), order[1]);
    options.presence_penalty = 0;
    options.frequency_penalty = 0.1;
    ck_assert_int_eq(greedy_after(&options, order[0], 2), order[0]);
    ck_assert_int_eq(greedy_after(&options, order[0], 3), order[1]);
    options.penalty_window = 2; /* only two are remembered */
    ck_assert_int_eq(greedy_after(&options, order[0], 3), order[0]);
}
END_TEST

/* As slowly as it can be said: greedily over all that was accepted so far. */
static int32_t
penalized_best(const struct lmq_sampler_options *o, const int32_t *seen,
               size_t n_seen)
{
    size_t window = (size_t)o->penalty_window;
    size_t first = n_seen > window ? n_seen - window : 0;
    float given[N];
    double logits[N];
    int32_t top = 0;

    make_logits(given);
    for (int32_t id = 0; id < N; id++) {
        bool is_first = true;
        logits[id] = (double)given[id];
        for (size_t i = first; i < n_seen; i++) {
            if (seen[i] != id)
                continue;
            if (is_first) {
                logits[id] = logits[id] > 0 ? logits[id] / o->repeat_penalty
                                            : logits[id] * o->repeat_penalty;
                logits[id] -= o->presence_penalty;
            }
            is_first = false;
            logits[id] -= o->frequency_penalty;
        }
        top = logits[id] > logits[top] ? id : top;
    }
    return top;
}

START_TEST(what_leaves_the_window_is_forgotten)
{
    enum { ROUNDS = 500 };
    struct lmq_sampler_options options = {.repeat_penalty = 1.2,
                                          .presence_penalty = 0.3,
                                          .frequency_penalty = 0.17};
    struct lmq_sampler *sampler;
    int32_t seen[ROUNDS];
    float logits[N];

    make_logits(logits);
    for (options.penalty_window = 1; options.penalty_window < 40;
         options.penalty_window++) {
        ck_assert_int_eq(lmq_sampler_new(&options, N, &sampler, NULL),
                         LMQ_OK);
        for (size_t i = 0; i < ROUNDS; i++) {
            seen[i] = lmq_sampler_pick(sampler, logits);
            ck_assert_int_eq(seen[i], penalized_best(&options, seen, i));
            if (i % 3 == 0) /* or some other one */
                seen[i] = (int32_t)(i * 7 / 3 % N);
            lmq_sampler_accept(sampler, seen[i]);
        }
        lmq_sampler_free(sampler);
    }
}
END_TEST

/* Comparing each token with all before it would take minutes. */
START_TEST(a_large_window_is_looked_at_once)
{
    enum { MANY = 1 << 20 };
    const struct lmq_sampler_options options = {.presence_penalty = 2,
                                                .penalty_window = MANY};
    float *logits = calloc(MANY, sizeof(*logits));
    struct lmq_sampler *sampler;

    ck_assert_ptr_nonnull(logits);
    ck_assert_int_eq(lmq_sampler_new(&options, MANY, &sampler, NULL), LMQ_OK);
    for (int32_t i = 0; i < MANY - 1; i++)
        lmq_sampler_accept(sampler, i);
    ck_assert_int_eq(lmq_sampler_pick(sampler, logits), MANY - 1);
    lmq_sampler_free(sampler);
    free(logits);
}
END_TEST

START_TEST(a_seed_means_the_same_tokens_everywhere)
{
    const struct lmq_sampler_options options = {.temperature = 1, .seed = 42};
    /* xoshiro256** seeded by splitmix64, computed by another program */
    static const int32_t known[] = {3, 3, 6, 7, 2, 0, 0, 7, 0, 6, 6, 3,
                                    0, 3, 0, 7};
    struct lmq_sampler *sampler;
    float logits[N];

    make_logits(logits);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(lmq_sampler_new(&options, N, &sampler, NULL),
                         LMQ_OK);
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            ck_assert_int_eq(lmq_sampler_pick(sampler, logits), known[i]);
        lmq_sampler_free(sampler);
    }
}
END_TEST

/* Exactly so: the exponential of such a number alone would be infinite. */
START_TEST(what_all_logits_have_in_common_does_not_count)
{
    const struct lmq_sampler_options options = {.temperature = 1, .top_p = 0.9,
                                                .seed = 5};
    const float near[N] = {0, 1, 2, 3, 0, 1, 2, 3};
    struct lmq_sampler *samplers[2];
    float far[N];

    for (int i = 0; i < N; i++)
        far[i] = near[i] + 1000;
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(lmq_sampler_new(&options, N, &samplers[k], NULL),
                         LMQ_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(lmq_sampler_pick(samplers[0], near),
                         lmq_sampler_pick(samplers[1], far));
    lmq_sampler_free(samplers[0]);
    lmq_sampler_free(samplers[1]);
}
END_TEST

START_TEST(nothing_but_nan_does_no_harm)
{
    const struct lmq_sampler_options options = {.temperature = 1};
    const float logits[2] = {NAN, NAN};
    struct lmq_sampler *sampler;

    ck_assert_int_eq(lmq_sampler_new(&options, 2, &sampler, NULL), LMQ_OK);
    ck_assert_int_eq(lmq_sampler_pick(sampler, logits), 0);
    lmq_sampler_accept(sampler, -1);
    lmq_sampler_accept(sampler, 2);
    lmq_sampler_free(sampler);
}
END_TEST

/* Who rules tokens out by -infinity may rule out all. */
START_TEST(of_nan_and_nothing_likely_it_is_no_nan)
{
    const float logits[3] = {NAN, -INFINITY, NAN};

    for (long k = 0; k < 5; k++) {
        const struct lmq_sampler_options options = {.temperature = k < 4,
                                                    .top_k = k};
        struct lmq_sampler *sampler;
        ck_assert_int_eq(lmq_sampler_new(&options, 3, &sampler, NULL), LMQ_OK);
        ck_assert_int_eq(lmq_sampler_pick(sampler, logits), 1);
        lmq_sampler_free(sampler);
    }
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
    const struct {
        const char *name;
        struct lmq_sampler_options options;
    } wrong[] = {
        {"temperature", {.temperature = -1}},
        {"temperature", {.temperature = INFINITY}},
        {"top_k", {.top_k = -1}},
        {"top_p", {.top_p = 1.5}},
        {"min_p", {.min_p = NAN}},
        {"typical", {.typical = -0.5}},
        {"repeat_penalty", {.repeat_penalty = -0.5}},
        {"frequency_penalty", {.frequency_penalty = NAN}},
        {"presence_penalty", {.presence_penalty = 1e9}},
        {"penalty_window", {.penalty_window = -1}},
    };
    struct lmq_sampler *sampler;
    struct lmq_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(lmq_sampler_new(&wrong[i].options, N, &sampler, &err),
                         LMQ_ERR_ARG);
        ck_assert_str_eq(err.option, wrong[i].name);
        ck_assert_ptr_null(sampler);
    }
    ck_assert_int_eq(lmq_sampler_new(NULL, 0, &sampler, NULL), LMQ_ERR_ARG);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        without_temperature_the_likeliest_is_picked,
        of_equal_ones_the_first_is_picked,
        temperature_one_draws_the_distribution,
        filters_keep_the_likeliest,
        the_best_of_many_are_found,
        typical_keeps_what_surprises_as_expected,
        a_low_temperature_sharpens,
        penalties_push_recent_tokens_back,
        what_leaves_the_window_is_forgotten,
        a_large_window_is_looked_at_once,
        a_seed_means_the_same_tokens_everywhere,
        what_all_logits_have_in_common_does_not_count,
        nothing_but_nan_does_no_harm,
        of_nan_and_nothing_likely_it_is_no_nan,
        options_out_of_range_are_refused,
    };

    return RUN_SUITE("sampler", tests);
}
