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
/* How far a choice may be from the best; the bound tells how far it is. */
#define MOST_LOST 0.02

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

START_TEST(a_choice_fits_and_is_near_the_best)
{
    struct random random = {random_seed() + (uint64_t)_i};
    double loads[UNITS * OPTIONS], values[UNITS * OPTIONS], lost = 0;
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
                double bits = 4 + (double)j;
                loads[i * OPTIONS + j] = size * bits;
                values[i * OPTIONS + j] =
                    cost * exp(0.2 * random_normal(&random)) *
                    pow(4, -(double)j);
            }
            least += 4 * size;
            most += (4 + OPTIONS - 1) * size;
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
        ck_assert_msg(bound <= best * (1 + 1e-12), "%g above %g", bound, best);
        ck_assert(value >= best * (1 - 1e-12));
        lost += value / best - 1;
        n++;
    }
    ck_assert_int_gt(n, 100);
    ck_assert_msg(lost / n <= MOST_LOST, "%g is lost", lost / n);
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
    const TTest *const tests[] = {a_choice_fits_and_is_near_the_best,
                                  what_is_not_offered_is_not_chosen};

    return RUN_SUITE("knapsack", tests);
}
