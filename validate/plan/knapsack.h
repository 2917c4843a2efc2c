/*
 * knapsack.h - one option for each unit, so that the loads fit and the values
 * are least.
 */
#ifndef LMQ_VALIDATE_KNAPSACK_H
#define LMQ_VALIDATE_KNAPSACK_H

#include <stddef.h>

#include "lmquant.h"

struct lmq_knapsack {
    size_t n_units, n_options;
    const double *loads, *values; /* (n_units, n_options); a load that is
                                     infinite: there is no such option */
    double limit; /* of the sum of loads */
};

/*
 * Sets chosen (n_units). No choice has a lower sum of values than *bound, which
 * is the least of those that may take parts of options (Lagrange); the choice
 * comes near. Infinite if nothing fits: then the loads are the least.
 */
enum lmq_status lmq_knapsack_solve(const struct lmq_knapsack *knapsack,
                                   size_t *chosen, double *bound,
                                   struct lmq_error *err);

/* The sum over the options that are chosen. */
double lmq_knapsack_sum(const struct lmq_knapsack *knapsack,
                        const double *numbers, const size_t *chosen);

#endif
