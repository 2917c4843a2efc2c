/*
 * planner_choose.c - the best choice under a constraint.
 *
 * For a size or so many bits it follows from what is known of the units; for a
 * divergence choices are measured until one meets it.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/progress.h"
#include "validate/plan/knapsack.h"
#include "validate/plan/planner.h"

/* A divergence that was asked for is met when it is within this below. */
#define KLD_ROOM 0.05

/* ---- Choices ---- */

static double
sum_over(const struct lmq_planner *planner, const double *numbers,
         const size_t *chosen)
{
    double sum = 0;

    for (size_t i = 0; i < planner->units.n; i++)
        sum += numbers[i * planner->offers.n + chosen[i]];
    return sum;
}

static enum lmq_status
weigh(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_choice *choice = &planner->choice;

    choice->bytes = sum_over(planner, planner->offers.bytes, choice->chosen);
    choice->additive = sum_over(planner, planner->costs, choice->chosen);
    choice->predicted = lmq_planner_predict(planner, choice->additive);
    free(planner->recipe);
    planner->recipe = lmq_offers_recipe(&planner->offers, &planner->units,
                                        choice->chosen, "");
    if (planner->recipe == NULL)
        return lmq_fail_nomem(err);
    return lmq_offers_file_size(planner->job.reference_file, planner->recipe,
                                &choice->file, err);
}

static enum lmq_status
choose_bytes(struct lmq_planner *planner, double limit, size_t *chosen,
             double *bound, struct lmq_error *err)
{
    const struct lmq_knapsack knapsack = {
        planner->units.n, planner->offers.n, planner->offers.bytes,
        planner->costs, limit};

    return lmq_knapsack_solve(&knapsack, chosen, bound, err);
}

/* Beside what no choice could cost less than. */
static enum lmq_status
weigh_against(struct lmq_planner *planner, double bound, struct lmq_error *err)
{
    struct lmq_choice *choice = &planner->choice;
    enum lmq_status status = weigh(planner, err);

    if (status == LMQ_OK)
        choice->gap = choice->predicted > 0
                          ? fmax(1 - lmq_planner_predict(planner, bound) /
                                         choice->predicted,
                                 0)
                          : 0;
    return status;
}

/* The choice with the least costs of so many bytes of units. */
static enum lmq_status
choose_within(struct lmq_planner *planner, double limit, struct lmq_error *err)
{
    double bound;
    enum lmq_status status =
        choose_bytes(planner, limit, planner->choice.chosen, &bound, err);

    return status == LMQ_OK ? weigh_against(planner, bound, err) : status;
}

/* Of the offers that take least the first, whatever they cost: with the short
 * recipe that this has, the file is what targets are held against. */
static enum lmq_status
choose_least(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_offers *offers = &planner->offers;
    size_t *chosen = planner->choice.chosen;
    double bound;
    enum lmq_status status =
        choose_bytes(planner, offers->least, chosen, &bound, err);

    for (size_t i = 0; i < planner->units.n && status == LMQ_OK; i++) {
        const double *bytes = offers->bytes + i * offers->n;
        chosen[i] = 0;
        for (size_t j = 1; j < offers->n; j++)
            if (bytes[j] < bytes[chosen[i]])
                chosen[i] = j;
    }
    return status == LMQ_OK ? weigh_against(planner, bound, err) : status;
}

static enum lmq_status
fail_too_small(double wanted, const char *option, double nearest, int digits,
               struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             ".%s is %.*g, and the least that can be had is %.*g", option,
             digits, wanted, digits, nearest);
    lmq_hint(err, "that is each matrix in the encoding that takes least; "
                  "shards and digests would come on top");
    return LMQ_ERR_ARG;
}

enum lmq_status
lmq_planner_check_target(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    double least = planner->offers.least;
    double bits =
        8 * (least + planner->other_bytes) / planner->n_parameters;
    enum lmq_status status = choose_least(planner, err);
    double size = (double)planner->choice.file;

    if (status != LMQ_OK)
        return status;
    if (o->target_size > 0 && size > (double)o->target_size)
        return fail_too_small((double)o->target_size, "target_size", size, 15,
                              err);
    /* What is said is enough: in so many digits it is never less. */
    if (o->target_bits > 0 && bits > o->target_bits)
        return fail_too_small(o->target_bits, "target_bits",
                              bits * (1 + 5e-10), 10, err);
    return LMQ_OK;
}

/* ---- Size and bits ---- */

/* Bytes of the file that are too many. */
static double
over_size(const struct lmq_planner *planner)
{
    return (double)planner->choice.file -
           (double)planner->options->target_size;
}

/* Bytes of units that the file leaves room for with the shortest of recipes,
 * which are those of one offer for all. */
static enum lmq_status
find_room(struct lmq_planner *planner, double *room, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    uint64_t size = 0;

    *room = 0;
    for (size_t j = 0; j < planner->offers.n && status == LMQ_OK; j++) {
        status = lmq_planner_uniform_file(planner, j, &size, err);
        *room = fmax(*room, sum_over(planner, planner->offers.bytes,
                                     planner->scratch) +
                                (double)planner->options->target_size -
                                (double)size);
    }
    return status;
}

/* Within so many bytes of units. The bound: what no choice could cost less
 * than; the first limit's, NAN before that. */
static enum lmq_status
try_limit(struct lmq_planner *planner, double limit, double *bound,
          struct lmq_error *err)
{
    double own;
    enum lmq_status status =
        choose_bytes(planner, fmax(limit, planner->offers.least),
                     planner->choice.chosen, &own, err);

    if (isnan(*bound))
        *bound = own;
    if (status == LMQ_OK)
        status = weigh_against(planner, *bound, err);
    return status == LMQ_OK
               ? lmq_progress_report(planner->job.progress, "choosing", 0, 1,
                                     err)
               : status;
}

/* Bytes that are not worth another round. */
#define NEAR_ENOUGH 8

/* As many bytes for the units as leave room for all that is not one. How much
 * that is depends on the choice, by the length of its recipe: rounds, with less
 * room in each, down to what is sure to fit, and then between what fits and
 * what does not. (Of as few bytes there may be a choice that costs less and
 * needs the longer recipe.) */
static enum lmq_status
choose_size(struct lmq_planner *planner, struct lmq_error *err)
{
    double least = planner->offers.least, bound = NAN, limit;
    enum lmq_status status = find_room(planner, &limit, err);
    double fails = limit;

    if (status == LMQ_OK)
        status = try_limit(planner, limit, &bound, err);
    for (double less = 16; status == LMQ_OK && over_size(planner) > 0;
         less *= 2) {
        if (limit <= least) {
            status = choose_least(planner, err);
            return status == LMQ_OK ? weigh_against(planner, bound, err)
                                    : status;
        }
        fails = limit;
        limit -= over_size(planner) + less;
        status = try_limit(planner, limit, &bound, err);
    }
    while (status == LMQ_OK && fails - limit > NEAR_ENOUGH) {
        double middle = (limit + fails) / 2;
        status = try_limit(planner, middle, &bound, err);
        *(over_size(planner) > 0 ? &fails : &limit) = middle;
    }
    return status == LMQ_OK && over_size(planner) > 0
               ? try_limit(planner, limit, &bound, err)
               : status;
}

/* ---- Divergence ---- */

/* The most that costs may come to for a predicted divergence. */
static double
costs_for(const struct lmq_planner *planner, double kld)
{
    double low = 0, high = 1;

    while (lmq_planner_predict(planner, high) < kld && high < 1e6)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        *(lmq_planner_predict(planner, middle) <= kld ? &low : &high) = middle;
    }
    return low;
}

/* The least bytes with a predicted divergence of no more than `kld`. */
static enum lmq_status
choose_kld(struct lmq_planner *planner, double kld, struct lmq_error *err)
{
    const struct lmq_knapsack knapsack = {
        planner->units.n, planner->offers.n, planner->costs,
        planner->offers.bytes, costs_for(planner, kld)};
    struct lmq_choice *choice = &planner->choice;
    double bound;
    enum lmq_status status =
        lmq_knapsack_solve(&knapsack, choice->chosen, &bound, err);

    if (status == LMQ_OK)
        status = weigh(planner, err);
    choice->gap =
        choice->bytes > 0 ? fmax(1 - bound / choice->bytes, 0) : 0;
    return status;
}

/* What the choice has as little of as can be. */
static double
aim(const struct lmq_planner *planner)
{
    return planner->options->target_kld > 0 ? planner->choice.bytes
                                            : planner->choice.predicted;
}

/* One offer for all may have turned out to be better than the choice: it is as
 * far from what no choice could be below as it is. */
static enum lmq_status
check(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_choice *choice = &planner->choice;
    double least = (1 - choice->gap) * aim(planner);
    enum lmq_status status = lmq_planner_check(planner, err);

    if (status != LMQ_OK || !choice->is_uniform)
        return status;
    status = weigh(planner, err);
    if (status == LMQ_OK && aim(planner) > 0)
        choice->gap = fmax(1 - least / aim(planner), 0);
    return status;
}

/* Changes places with the best if it is better. */
static void
keep_best(struct lmq_planner *planner)
{
    struct lmq_choice choice = planner->choice;

    if (choice.measured > planner->options->target_kld ||
        (planner->has_best && choice.bytes >= planner->best.bytes))
        return;
    planner->choice = planner->best;
    planner->best = choice;
    planner->has_best = true;
}

/* The least that a choice can cost, when none of the rounds has met it. */
static enum lmq_status
try_nearest(struct lmq_planner *planner, struct lmq_error *err)
{
    enum lmq_status status = choose_kld(planner, 0, err);

    if (status == LMQ_OK)
        status = check(planner, err);
    if (status == LMQ_OK)
        keep_best(planner);
    return status;
}

static enum lmq_status
fail_too_near(const struct lmq_planner *planner, struct lmq_error *err)
{
    /* What is said is enough: in so many digits it is never less. */
    lmq_fail(err, LMQ_ERR_ARG, 0,
             ".target_kld is %.10g, and what should lose least loses %.10g",
             planner->options->target_kld,
             planner->choice.measured * (1 + 5e-10));
    lmq_hint(err, "a target of that, or of more, can be met");
    return LMQ_ERR_ARG;
}

/* What was measured decides: the next round asks for less, or for more, between
 * what held and what did not; the last one is to make sure that something
 * does. */
static enum lmq_status
meet_kld(struct lmq_planner *planner, struct lmq_error *err)
{
    const double target = planner->options->target_kld;
    double wanted = target, held = 0, missed = INFINITY; /* by what is wanted */
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < LMQ_ROUNDS_MOST && status == LMQ_OK; i++) {
        size_t n_windows = planner->job.corpus.n_windows;
        status = choose_kld(planner, wanted, err);
        if (status == LMQ_OK)
            status = check(planner, err);
        if (planner->job.corpus.n_windows != n_windows) /* that was of less */
            held = 0, missed = INFINITY, planner->has_best = false;
        double measured = planner->choice.measured;
        bool is_least = planner->choice.bytes <= planner->offers.least;
        bool is_near = measured >= target * (1 - KLD_ROOM);
        if (status == LMQ_OK)
            keep_best(planner);
        if (measured <= target && (is_near || is_least))
            break;
        if (measured <= target)
            held = fmax(held, wanted);
        else
            missed = fmin(missed, wanted);
        wanted *= held > 0 || i + 2 < LMQ_ROUNDS_MOST
                      ? (1 - KLD_ROOM / 2) * target / fmax(measured, target / 4)
                      : 0.8 * target / measured;
        if (missed < INFINITY && (wanted <= held || wanted >= missed))
            wanted = sqrt(fmax(held, missed / 16) * missed);
    }
    if (status == LMQ_OK && !planner->has_best)
        status = try_nearest(planner, err);
    if (status != LMQ_OK)
        return status;
    if (!planner->has_best)
        return fail_too_near(planner, err);
    struct lmq_choice best = planner->best;
    planner->best = planner->choice;
    planner->choice = best;
    return weigh(planner, err);
}

/* ---- All of it ---- */

enum lmq_status
lmq_planner_choose(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;

    if (o->target_kld > 0)
        return meet_kld(planner, err);
    enum lmq_status status =
        o->target_size > 0
            ? choose_size(planner, err)
            : choose_within(planner, lmq_planner_room(planner), err);
    return status == LMQ_OK ? check(planner, err) : status;
}

/* Sizes from the least to the most, in equal ratios. */
enum lmq_status
lmq_planner_draw_front(struct lmq_planner *planner, struct lmq_error *err)
{
    double least = planner->offers.least, most = planner->offers.most;
    enum lmq_status status = LMQ_OK;

    for (int i = 0; i < LMQ_FRONT_POINTS && status == LMQ_OK; i++) {
        double part = (double)i / (LMQ_FRONT_POINTS - 1), bound;
        double limit = least * lmq_exp(part * lmq_log(most / least));
        status = choose_bytes(planner, fmax(limit, least), planner->scratch,
                              &bound, err);
        planner->front[planner->n_front++] = (struct lmq_front_point){
            sum_over(planner, planner->offers.bytes, planner->scratch),
            lmq_planner_predict(
                planner,
                sum_over(planner, planner->costs, planner->scratch))};
    }
    return status;
}
