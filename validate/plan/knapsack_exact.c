/*
 * knapsack_exact.c - the best choice of all, where that can be had.
 *
 * With a price on load (Lagrange) each option of a unit has a cost of its own,
 * and the sum of the least of these is below any choice that fits. An option
 * that costs more than the unit's least adds that much to the bound; a choice
 * whose additions come to more than what the one at hand is above the bound is
 * not better. So few options are left, and their sums are gone through unit by
 * unit, those dropped for which there is another with no more of either.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "validate/plan/knapsack.h"

/* Sums that are looked at in all; what takes more is left as it is. */
#define SUMS_MOST ((size_t)1 << 21)

/* Options of the first units, added up. */
struct sum {
    double load, value;
    double above; /* what they add to the bound */
    size_t from;  /* the sum without the last unit */
    size_t option;
};

struct search {
    const struct lmq_knapsack *knapsack;
    double price;
    double most_above;   /* what is not below this is no better */
    struct sum *sums;    /* those of 0, 1, 2, ... units, one after the other */
    size_t n, capacity;
    size_t *begins;      /* (units + 1) */
    double *lightest;    /* (units + 1): least load of all units from there */
};

double
lmq_knapsack_sum(const struct lmq_knapsack *k, const double *numbers,
                 const size_t *chosen)
{
    double sum = 0;

    for (size_t i = 0; i < k->n_units; i++)
        sum += numbers[i * k->n_options + chosen[i]];
    return sum;
}

static double
cost_of(const struct search *search, size_t unit, size_t option)
{
    const struct lmq_knapsack *k = search->knapsack;
    size_t at = unit * k->n_options + option;

    return isinf(k->loads[at]) ? INFINITY
                               : k->values[at] + search->price * k->loads[at];
}

static int
compare_sums(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;

    if (x->load != y->load)
        return x->load > y->load ? 1 : -1;
    if (x->value != y->value)
        return x->value > y->value ? 1 : -1;
    if (x->from != y->from)
        return x->from > y->from ? 1 : -1;
    return (x->option > y->option) - (x->option < y->option);
}

/* Of the sums from `begin` on, in the order of their loads, those are kept that
 * have less value than all lighter ones. */
static void
drop_dominated(struct search *search, size_t begin)
{
    size_t n = begin;

    qsort(search->sums + begin, search->n - begin, sizeof(*search->sums),
          compare_sums);
    for (size_t i = begin; i < search->n; i++)
        if (n == begin || search->sums[i].value < search->sums[n - 1].value)
            search->sums[n++] = search->sums[i];
    search->n = n;
}

/* Each sum so far with each option of the next unit; false if these are too
 * many. */
static enum lmq_status
extend(struct search *search, size_t unit, bool *is_done,
       struct lmq_error *err)
{
    const struct lmq_knapsack *k = search->knapsack;
    size_t begin = search->begins[unit], end = search->n;
    double least = INFINITY;

    search->begins[unit + 1] = end;
    for (size_t j = 0; j < k->n_options; j++)
        least = fmin(least, cost_of(search, unit, j));
    for (size_t j = 0; j < k->n_options; j++) {
        double more = cost_of(search, unit, j) - least;
        size_t at = unit * k->n_options + j;
        if (!(more < search->most_above))
            continue;
        for (size_t i = begin; i < end; i++) {
            struct sum sum = {search->sums[i].load + k->loads[at],
                              search->sums[i].value + k->values[at],
                              search->sums[i].above + more, i, j};
            if (!(sum.above < search->most_above) ||
                sum.load + search->lightest[unit + 1] > k->limit)
                continue;
            *is_done = search->n < SUMS_MOST;
            if (!*is_done)
                return LMQ_OK;
            if (lmq_mem_grow(&search->sums, &search->capacity, search->n + 1,
                             sizeof(*search->sums)) != 0)
                return lmq_fail_nomem(err);
            search->sums[search->n++] = sum;
        }
    }
    drop_dominated(search, end);
    return LMQ_OK;
}

/* The last of the sums of all units has the least value. */
static void
take_best(const struct search *search, size_t *chosen)
{
    const struct lmq_knapsack *k = search->knapsack;
    size_t at = search->n - 1;

    if (search->begins[k->n_units] == search->n ||
        !(search->sums[at].value <
          lmq_knapsack_sum(k, k->values, chosen)))
        return;
    for (size_t i = k->n_units; i-- > 0; at = search->sums[at].from)
        chosen[i] = search->sums[at].option;
}

static enum lmq_status
go_through(struct search *search, size_t *chosen, bool *is_exact,
           struct lmq_error *err)
{
    const struct lmq_knapsack *k = search->knapsack;
    enum lmq_status status = LMQ_OK;
    bool is_done = true;

    for (size_t i = k->n_units; i-- > 0;) {
        double least = INFINITY;
        for (size_t j = 0; j < k->n_options; j++)
            least = fmin(least, k->loads[i * k->n_options + j]);
        search->lightest[i] = search->lightest[i + 1] + least;
    }
    if (lmq_mem_grow(&search->sums, &search->capacity, 1,
                     sizeof(*search->sums)) != 0)
        return lmq_fail_nomem(err);
    search->sums[search->n++] = (struct sum){0};
    for (size_t i = 0; i < k->n_units && is_done && status == LMQ_OK; i++)
        status = extend(search, i, &is_done, err);
    *is_exact = status == LMQ_OK && is_done;
    if (*is_exact)
        take_best(search, chosen);
    return status;
}

enum lmq_status
lmq_knapsack_search(const struct lmq_knapsack *k, double price, double bound,
                    size_t *chosen, bool *is_exact, struct lmq_error *err)
{
    struct search search = {
        .knapsack = k,
        .price = price,
        .most_above = lmq_knapsack_sum(k, k->values, chosen) - bound,
        .begins = calloc(k->n_units + 1, sizeof(*search.begins)),
        .lightest = calloc(k->n_units + 1, sizeof(*search.lightest))};
    enum lmq_status status =
        search.begins == NULL || search.lightest == NULL
            ? lmq_fail_nomem(err)
            : go_through(&search, chosen, is_exact, err);

    free(search.sums);
    free(search.begins);
    free(search.lightest);
    return status;
}
