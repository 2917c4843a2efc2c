/*
 * knapsack.h - one option for each unit, so that the loads fit and the values
 * are least.
 */
#ifndef LMQ_VALIDATE_KNAPSACK_H
#define LMQ_VALIDATE_KNAPSACK_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

struct lmq_knapsack {
    size_t n_units, n_options;
    const double *loads, *values; /* (n_units, n_options); a load that is
                                     infinite: there is no such option */
    double limit; /* of the sum of loads */
};

/*
 * Sets chosen (n_units). No choice has a lower sum of values than *bound: that
 * of the choice, if it could be shown to be the best; else the least of those
 * that may take parts of options (Lagrange), and the choice comes near.
 * Infinite if nothing fits: then the loads are the least.
 */
enum lmq_status lmq_knapsack_solve(const struct lmq_knapsack *knapsack,
                                   size_t *chosen, double *bound,
                                   struct lmq_error *err);

/* ---- knapsack_exact.c ---- */

/* Makes a choice that fits the best there is, if it takes not too long: what a
 * unit of load is worth at the bound of all that fit. */
enum lmq_status lmq_knapsack_search(const struct lmq_knapsack *knapsack,
                                    double price, double bound, size_t *chosen,
                                    bool *is_exact, struct lmq_error *err);

/* The sum over the options that are chosen. */
double lmq_knapsack_sum(const struct lmq_knapsack *knapsack,
                        const double *numbers, const size_t *chosen);

#endif
