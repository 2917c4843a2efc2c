/*
 * knapsack.c - the multiple-choice knapsack: the options of a unit that lie on
 * its convex hull are taken in the order of what they save for their load; what
 * is left over is then filled up, by one unit or by an exchange between two.
 * From there knapsack_exact.c looks for the best.
 */
#include "config.h"

#include "validate/plan/knapsack.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* Exchanges at most: each lowers the sum. */
#define EXCHANGES_MOST 200
/* Pairs of options that are looked at for one. */
#define PAIRS_MOST 30000000.0

/* From one option of a unit to the next on its hull. */
struct step {
    size_t unit, to;
    double load, saving; /* both above 0 */
};

static double
load_of(const struct lmq_knapsack *k, size_t unit, size_t option)
{
    return k->loads[unit * k->n_options + option];
}

static double
value_of(const struct lmq_knapsack *k, size_t unit, size_t option)
{
    return k->values[unit * k->n_options + option];
}

/* The least load, and of these the least value. */
static size_t
lightest(const struct lmq_knapsack *k, size_t unit)
{
    size_t best = 0;

    for (size_t i = 1; i < k->n_options; i++) {
        double load = load_of(k, unit, i), least = load_of(k, unit, best);
        if (load < least ||
            (load == least && value_of(k, unit, i) < value_of(k, unit, best)))
            best = i;
    }
    return best;
}

/* The option from which the hull goes on: what saves most for its load. */
static bool
next_on_hull(const struct lmq_knapsack *k, size_t unit, size_t from,
             struct step *step)
{
    bool has_one = false;

    for (size_t i = 0; i < k->n_options; i++) {
        double load = load_of(k, unit, i) - load_of(k, unit, from);
        double saving = value_of(k, unit, from) - value_of(k, unit, i);
        if (!(load > 0) || isinf(load) || !(saving > 0))
            continue;
        double more = saving * step->load - step->saving * load;
        if (!has_one || more > 0 || (more == 0 && load > step->load)) {
            *step = (struct step){unit, i, load, saving};
            has_one = true;
        }
    }
    return has_one;
}

static int
compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    double more = y->saving * x->load - x->saving * y->load;

    if (more != 0)
        return more > 0 ? 1 : -1;
    if (x->unit != y->unit)
        return x->unit > y->unit ? 1 : -1;
    return (x->load > y->load) - (x->load < y->load);
}

static size_t
find_steps(const struct lmq_knapsack *k, const size_t *from,
           struct step *steps)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n_units; i++) {
        struct step step;
        size_t at = from[i];
        while (next_on_hull(k, i, at, &step)) {
            steps[n++] = step;
            at = step.to;
        }
    }
    qsort(steps, n, sizeof(*steps), compare_steps);
    return n;
}

/* Steps while they fit; behind one of a unit that did not, none of it is
 * taken. The first that does not fit gives the bound, and the price of a unit
 * of load: 0 if all fit. */
static double
take_steps(const struct lmq_knapsack *k, const struct step *steps, size_t n,
           size_t *chosen, bool *is_closed, double *room, double *price)
{
    double value = lmq_knapsack_sum(k, k->values, chosen), bound = NAN;

    for (size_t i = 0; i < n; i++) {
        const struct step *step = &steps[i];
        if (is_closed[step->unit])
            continue;
        if (step->load <= *room) {
            chosen[step->unit] = step->to;
            *room -= step->load;
            value -= step->saving;
            continue;
        }
        if (isnan(bound)) {
            bound = value - step->saving * (*room / step->load);
            *price = step->saving / step->load;
        }
        is_closed[step->unit] = true;
    }
    return isnan(bound) ? value : bound;
}

/* ---- Filling up ---- */

struct exchange {
    size_t unit, to, other, other_to;
    double saving, load;
};

/* The best that one unit does alone, or with another that gives way. */
static void
find_exchange(const struct lmq_knapsack *k, const size_t *chosen, double room,
              bool has_pairs, struct exchange *best)
{
    size_t n = k->n_units, m = k->n_options;

    *best = (struct exchange){0};
    for (size_t a = 0; a < n * m; a++) {
        size_t unit = a / m, to = a % m;
        double load = k->loads[a] - load_of(k, unit, chosen[unit]);
        double saving = value_of(k, unit, chosen[unit]) - k->values[a];
        if (!(saving > best->saving) || isinf(load))
            continue;
        if (load <= room)
            *best = (struct exchange){unit, to, unit, to, saving, load};
        for (size_t b = 0; has_pairs && b < n * m && load > room; b++) {
            size_t other = b / m, other_to = b % m;
            double sum =
                load + k->loads[b] - load_of(k, other, chosen[other]);
            double both = saving + value_of(k, other, chosen[other]) -
                          k->values[b];
            if (other != unit && sum <= room && both > best->saving)
                *best = (struct exchange){unit, to, other, other_to, both,
                                          sum};
        }
    }
}

static void
fill_up(const struct lmq_knapsack *k, size_t *chosen, double room)
{
    double options = (double)k->n_units * (double)k->n_options;
    bool has_pairs = options * options <= PAIRS_MOST;
    double least = 1e-12 * fabs(lmq_knapsack_sum(k, k->values, chosen));

    for (int i = 0; i < EXCHANGES_MOST; i++) {
        struct exchange best;
        find_exchange(k, chosen, room, has_pairs, &best);
        if (!(best.saving > least))
            return;
        chosen[best.unit] = best.to;
        chosen[best.other] = best.other_to;
        room -= best.load;
    }
}

/* With all that there is room for, and no price: nothing is left to gain. */
static enum lmq_status
improve(const struct lmq_knapsack *k, double price, size_t *chosen,
        double *bound, struct lmq_error *err)
{
    bool is_exact = !(price > 0);
    enum lmq_status status =
        !is_exact
            ? lmq_knapsack_search(k, price, *bound, chosen, &is_exact, err)
            : LMQ_OK;

    if (is_exact)
        *bound = lmq_knapsack_sum(k, k->values, chosen);
    return status;
}

enum lmq_status
lmq_knapsack_solve(const struct lmq_knapsack *k, size_t *chosen,
                   double *bound, struct lmq_error *err)
{
    struct step *steps =
        calloc(k->n_units * k->n_options + 1, sizeof(*steps));
    bool *is_closed = calloc(k->n_units + 1, sizeof(*is_closed));
    enum lmq_status status = steps == NULL || is_closed == NULL
                                 ? lmq_fail_nomem(err)
                                 : LMQ_OK;

    for (size_t i = 0; i < k->n_units && status == LMQ_OK; i++)
        chosen[i] = lightest(k, i);
    double room = status == LMQ_OK
                      ? k->limit - lmq_knapsack_sum(k, k->loads, chosen)
                      : -1;
    *bound = INFINITY;
    if (room >= 0) {
        size_t n = find_steps(k, chosen, steps);
        double price = 0;
        *bound = take_steps(k, steps, n, chosen, is_closed, &room, &price);
        fill_up(k, chosen, room);
        status = improve(k, price, chosen, bound, err);
    }
    free(steps);
    free(is_closed);
    return status;
}
