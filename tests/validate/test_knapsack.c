/*
 * test_knapsack.c - the choice against all choices that there are.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/build/suite.h"
#include "validate/plan/knapsack.h"

#define UNITS 5
#define OPTIONS 5

/* Of all choices that fit, the least value; infinite if none does. */
static double
best_of_all(const struct lmq_knapsack *k)
{
    size_t chosen[UNITS] = {0}, at = 0;
    double best = INFINITY;

    while (at < UNITS) {
        if (lmq_knapsack_sum(k, k->loads, chosen) <= k->limit)
            best = fmin(best, lmq_knapsack_sum(k, k->values, chosen));
        for (at = 0; at < UNITS && ++chosen[at] == OPTIONS; at++)
            chosen[at] = 0;
    }
    return best;
}

START_TEST(a_choice_fits_and_is_the_best)
{
    struct random random = {random_seed() + (uint64_t)_i};
    double loads[UNITS * OPTIONS], values[UNITS * OPTIONS];
    size_t chosen[UNITS];
    struct lmq_error err;
    int n = 0;

    for (int round = 0; round < 200; round++) {
        struct lmq_knapsack k = {UNITS, OPTIONS, loads, values, 0};
        double least = 0, most = 0, bound;
        for (size_t i = 0; i < UNITS; i++) {
            double size = 1 + (double)random_below(&random, 9);
            double cost = exp(2 * random_normal(&random));
            for (size_t j = 0; j < OPTIONS; j++) {
                double bits = j == 0 ? 4 : 5 + (double)j; /* 4, 6, 7, ... */
                loads[i * OPTIONS + j] = size * bits;
                values[i * OPTIONS + j] =
                    cost * exp(0.2 * random_normal(&random)) *
                    pow(4, -(double)j);
            }
            least += 4 * size;
            most += (4 + OPTIONS) * size;
        }
        k.limit = floor(least - 3 +
                        (double)random_below(&random,
                                             (size_t)(most - least) + 4));
        double best = best_of_all(&k);
        ck_assert(lmq_knapsack_solve(&k, chosen, &bound, &err) == LMQ_OK);
        double value = lmq_knapsack_sum(&k, values, chosen);
        if (isinf(best)) {
            ck_assert(isinf(bound));
            continue;
        }
        ck_assert(lmq_knapsack_sum(&k, loads, chosen) <= k.limit);
        ck_assert_msg(fabs(value - best) <= 1e-12 * best, "%g, not %g", value,
                      best);
        ck_assert(bound == value);
        n++;
    }
    ck_assert_int_gt(n, 100);
}
END_TEST

/* Of as many units as a large model has: near the bound, and soon. */
START_TEST(many_units_are_chosen_for_too)
{
    enum { MANY = 400 };
    struct random random = {random_seed()};
    double *loads = calloc((size_t)MANY * OPTIONS, sizeof(*loads));
    double *values = calloc((size_t)MANY * OPTIONS, sizeof(*values)), bound;
    size_t chosen[MANY];
    struct lmq_knapsack k = {MANY, OPTIONS, loads, values, 0};
    struct lmq_error err;

    ck_assert(loads != NULL && values != NULL);
    for (size_t i = 0; i < MANY; i++) {
        double size = 1 + exp(random_normal(&random));
        double cost = exp(2 * random_normal(&random));
        for (size_t j = 0; j < OPTIONS; j++) {
            loads[i * OPTIONS + j] = size * (4 + (double)j);
            values[i * OPTIONS + j] = cost * pow(4, -(double)j);
        }
        k.limit += 6.1 * size;
    }
    ck_assert(lmq_knapsack_solve(&k, chosen, &bound, &err) == LMQ_OK);
    double value = lmq_knapsack_sum(&k, values, chosen);
    ck_assert(lmq_knapsack_sum(&k, loads, chosen) <= k.limit);
    ck_assert_msg(bound <= value && value <= 1.001 * bound, "%g, not %g",
                  value, bound);
    free(loads);
    free(values);
}
END_TEST

/* If all options are worth their price there are too many sums to go through:
 * the bound is that of parts of options, and the choice comes near. */
START_TEST(a_bound_is_told_without_the_best)
{
    enum { MANY = 64 };
    struct random random = {random_seed()};
    double loads[MANY * 2], values[MANY * 2], all = 0, bound;
    size_t chosen[MANY];
    struct lmq_knapsack k = {MANY, 2, loads, values, 0};
    struct lmq_error err;

    for (size_t i = 0; i < MANY; i++) {
        double more = exp(random_normal(&random));
        loads[2 * i] = 4;
        loads[2 * i + 1] = 4 + more;
        values[2 * i] = 1 + 3 * more;
        values[2 * i + 1] = 1;
        k.limit += 4 + 0.6 * more;
        all += 1 + 3 * 0.4 * more;
    }
    ck_assert(lmq_knapsack_solve(&k, chosen, &bound, &err) == LMQ_OK);
    double value = lmq_knapsack_sum(&k, values, chosen);
    ck_assert(lmq_knapsack_sum(&k, loads, chosen) <= k.limit);
    ck_assert_double_eq_tol(bound, all, 1e-9 * all);
    ck_assert_msg(bound < value && value <= 1.0004 * bound, "%.9g, not %.9g",
                  value, bound);
}
END_TEST

START_TEST(what_is_not_offered_is_not_chosen)
{
    const double loads[] = {INFINITY, 2, 5, 1, INFINITY, 4};
    const double values[] = {0, 3, 1, 9, 0, 2};
    const struct lmq_knapsack k = {2, 3, loads, values, 9};
    size_t chosen[2];
    struct lmq_error err;
    double bound;

    ck_assert(lmq_knapsack_solve(&k, chosen, &bound, &err) == LMQ_OK);
    ck_assert_uint_eq(chosen[0], 2);
    ck_assert_uint_eq(chosen[1], 2);
    ck_assert(bound == 3);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {a_choice_fits_and_is_the_best,
                                  many_units_are_chosen_for_too,
                                  a_bound_is_told_without_the_best,
                                  what_is_not_offered_is_not_chosen};

    return RUN_SUITE("knapsack", tests);
}
