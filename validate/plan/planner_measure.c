/*
 * planner_measure.c - what choices are predicted from.
 *
 * Each unit alone in one encoding, the probe, exactly: a walk that begins at
 * its layer. Its other encodings follow from their errors, since divergence
 * grows with the square of small errors. What is left, that errors are not
 * small and not independent, is measured where all units have the same
 * encoding: that, as a function of the sum. The choice itself is measured over
 * the whole text.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/size.h"
#include "validate/plan/planner.h"

/* Positions that are as one for the error of a mean: neighbours are alike. */
#define BLOCK 64
/* A choice that is less certain than to this part is measured over more. */
#define CERTAIN 0.15
/* So many windows tell how much they differ. */
#define WINDOWS_LEAST 8
/* Parts of a text, one behind the other, that may differ as wholes. */
#define STRETCHES 8

/* ---- Windows ---- */

size_t
lmq_planner_scored(const struct lmq_planner *planner, size_t n_windows)
{
    const struct lmq_corpus *corpus = &planner->job.corpus;
    size_t sum = 0;

    for (size_t i = 0; i < n_windows; i++)
        sum += corpus->windows[i].n - corpus->windows[i].scored;
    return sum;
}

void
lmq_planner_take_windows(struct lmq_planner *planner, size_t n)
{
    struct lmq_corpus *corpus = &planner->job.corpus;

    corpus->n_windows = n;
    corpus->n_scored = lmq_planner_scored(planner, n);
}

/* ---- Mixes ---- */

static struct lmq_side
base_side(const struct lmq_planner *planner)
{
    struct lmq_side side = lmq_side_reference();

    side.name = "plan";
    side.activations = LMQ_ACTIVATIONS_Q16;
    side.kv_type = planner->job.kv_type;
    return side;
}

enum lmq_status
lmq_planner_mix(struct lmq_planner *planner, const struct lmq_mix *mixes,
                size_t n, size_t n_windows, const char *stage,
                struct lmq_drift *drifts, struct lmq_error *err)
{
    const struct lmq_mixing mixing = {.job = &planner->job,
                                      .units = &planner->units,
                                      .base = base_side(planner),
                                      .mixes = mixes,
                                      .n_mixes = n,
                                      .n_windows = n_windows,
                                      .stage = stage};

    return lmq_mixes_measure(&mixing, drifts, err);
}

const struct lmq_encoding_choice *
lmq_planner_offer(const struct lmq_planner *planner, size_t unit, size_t offer)
{
    return &planner->offers.choices[unit * planner->offers.n + offer];
}

static void
free_drifts(struct lmq_drift *drifts, size_t n)
{
    for (size_t i = 0; drifts != NULL && i < n; i++)
        lmq_drift_free(&drifts[i]);
    free(drifts);
}

/* ---- What is due ---- */

bool
lmq_planner_is_due(size_t number, size_t part, size_t n_parts)
{
    return n_parts == 0 || number % n_parts == part - 1;
}

/* Over the few windows; what is due to other parts stays as it is. */
static enum lmq_status
measure_due(struct lmq_planner *planner, const struct lmq_mix *mixes,
            size_t first, size_t n, const char *stage, double *found,
            struct lmq_error *err)
{
    const struct lmq_planning_options *o = planner->options;
    struct lmq_drift *drifts = calloc(n + 1, sizeof(*drifts));
    struct lmq_mix *due = calloc(n + 1, sizeof(*due));
    size_t n_due = 0;
    enum lmq_status status =
        drifts == NULL || due == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        if (lmq_planner_is_due(first + i, o->part, o->n_parts))
            due[n_due++] = mixes[i];
    if (status == LMQ_OK && n_due > 0)
        status = lmq_planner_mix(planner, due, n_due, planner->n_few, stage,
                                 drifts, err);
    n_due = 0;
    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        if (lmq_planner_is_due(first + i, o->part, o->n_parts))
            found[i] = lmq_drift_mean_kld(&drifts[n_due++]);
    free_drifts(drifts, n);
    free(due);
    return status;
}

/* ---- Units ---- */

static enum lmq_status
measure_units(struct lmq_planner *planner, struct lmq_error *err)
{
    size_t n = planner->units.n;
    struct lmq_mix *mixes = calloc(n + 1, sizeof(*mixes));
    const struct lmq_encoding_choice **choices =
        calloc(n * n + 1, sizeof(*choices));
    enum lmq_status status =
        mixes == NULL || choices == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        mixes[i].choices = choices + i * n;
        mixes[i].choices[i] =
            lmq_planner_offer(planner, i, planner->offers.probes[i]);
    }
    if (status == LMQ_OK)
        status = measure_due(planner, mixes, 0, n, "measuring tensors",
                             planner->alone, err);
    free((void *)choices);
    free(mixes);
    return status;
}

/* An encoding without an error costs nothing; where the probe has none, no
 * other has. */
static void
spread_costs(struct lmq_planner *planner)
{
    const struct lmq_offers *offers = &planner->offers;

    for (size_t i = 0; i < planner->units.n; i++) {
        const double *errors = offers->errors + i * offers->n;
        double probe = errors[offers->probes[i]];
        for (size_t j = 0; j < offers->n; j++)
            planner->costs[i * offers->n + j] =
                probe > 0 ? planner->alone[i] * errors[j] / probe : 0;
    }
}

/* The same encoding as offer `j`, but not rotated; the number of offers if
 * there is none. */
static size_t
plain_of(const struct lmq_offers *offers, size_t j)
{
    const struct lmq_offer *own = offers->list[j];
    size_t i = 0;

    while (i < offers->n &&
           (offers->list[i]->rotates || !own->rotates ||
            offers->list[i]->group != own->group ||
            strcmp(offers->list[i]->encoding, own->encoding) != 0))
        i++;
    return i;
}

static double
sum_of_costs(const struct lmq_planner *planner, size_t offer)
{
    double sum = 0;

    for (size_t i = 0; i < planner->units.n; i++)
        sum += planner->costs[i * planner->offers.n + offer];
    return sum;
}

/* What is rotated loses less, or more, than its errors tell, since these come
 * to lie elsewhere: by as much as all units together do. Where an encoding is
 * taken as it is stored, both of these are of something else. */
static void
correct_rotated(struct lmq_planner *planner)
{
    const struct lmq_offers *offers = &planner->offers;

    for (size_t j = 0; j < offers->n; j++) {
        size_t plain = plain_of(offers, j);
        bool is_taken = false;
        if (plain == offers->n)
            continue;
        for (size_t i = 0; i < planner->units.n; i++)
            is_taken |= lmq_planner_offer(planner, i, plain)->is_taken;
        double expected = sum_of_costs(planner, j) * planner->uniform[plain];
        double found = sum_of_costs(planner, plain) * planner->uniform[j];
        if (is_taken || !(expected > 0) || !(found > 0))
            continue;
        for (size_t i = 0; i < planner->units.n; i++)
            planner->costs[i * offers->n + j] *= found / expected;
    }
}

/* ---- All units alike ---- */

/* In the order of the sums. */
static void
add_known(struct lmq_planner *planner, double additive, double measured)
{
    struct lmq_known_point *known = planner->known;
    size_t at = planner->n_known;

    if (!(additive > 0) || !(measured > 0))
        return;
    for (; at > 0 && known[at - 1].additive > lmq_log(additive); at--)
        known[at] = known[at - 1];
    known[at] = (struct lmq_known_point){lmq_log(additive), lmq_log(measured)};
    planner->n_known++;
}

/* Encodings that are nearly as good as each other may have changed places in
 * what was measured: these become one point, the mean of them, so that more
 * costs never predict less divergence. */
static void
make_ascending(struct lmq_planner *planner)
{
    struct lmq_known_point *known = planner->known;
    size_t counts[LMQ_OFFERS_MOST], n = 0;

    for (size_t i = 0; i < planner->n_known; i++) {
        known[n] = known[i];
        counts[n++] = 1;
        while (n > 1 && (known[n - 2].measured >= known[n - 1].measured ||
                         known[n - 2].additive >= known[n - 1].additive)) {
            double a = (double)counts[n - 2], b = (double)counts[n - 1];
            struct lmq_known_point *x = &known[n - 2], *y = &known[n - 1];
            x->additive = (a * x->additive + b * y->additive) / (a + b);
            x->measured = (a * x->measured + b * y->measured) / (a + b);
            counts[n - 2] += counts[n - 1];
            n--;
        }
    }
    planner->n_known = n;
}

double
lmq_planner_predict(const struct lmq_planner *planner, double additive)
{
    const struct lmq_known_point *known = planner->known;
    size_t n = planner->n_known, i = 0;

    if (n == 0 || !(additive > 0))
        return additive;
    double at = lmq_log(additive);
    while (i < n && known[i].additive < at)
        i++;
    /* Beyond what is known the ratio stays. */
    if (i == 0 || i == n) {
        const struct lmq_known_point *end = &known[i == 0 ? 0 : n - 1];
        return lmq_exp(at + end->measured - end->additive);
    }
    const struct lmq_known_point *x = &known[i - 1], *y = &known[i];
    double part = (at - x->additive) / (y->additive - x->additive);
    return lmq_exp(x->measured + part * (y->measured - x->measured));
}

static enum lmq_status
measure_uniform(struct lmq_planner *planner, struct lmq_error *err)
{
    size_t n = planner->offers.n, n_units = planner->units.n;
    struct lmq_mix *mixes = calloc(n, sizeof(*mixes));
    const struct lmq_encoding_choice **choices =
        calloc(n * n_units + 1, sizeof(*choices));
    enum lmq_status status =
        mixes == NULL || choices == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        mixes[i].choices = choices + i * n_units;
        for (size_t j = 0; j < n_units; j++)
            mixes[i].choices[j] = lmq_planner_offer(planner, j, i);
    }
    if (status == LMQ_OK)
        status = measure_due(planner, mixes, n_units, n, "measuring encodings",
                             planner->uniform, err);
    free((void *)choices);
    free(mixes);
    return status;
}

enum lmq_status
lmq_planner_measure(struct lmq_planner *planner, struct lmq_error *err)
{
    enum lmq_status status = measure_units(planner, err);

    return status == LMQ_OK ? measure_uniform(planner, err) : status;
}

void
lmq_planner_learn(struct lmq_planner *planner)
{
    size_t n = planner->offers.n;

    spread_costs(planner);
    correct_rotated(planner);
    for (size_t i = 0; i < n; i++)
        add_known(planner, sum_of_costs(planner, i), planner->uniform[i]);
    make_ascending(planner);
}

/* ---- The choice ---- */

/* The square of the standard error of the mean, if what stands in one block
 * is alike: of so many neighbours at most, of one window. */
static double
spread_by(const struct lmq_planner *planner, const struct lmq_drift *drift,
          size_t block)
{
    const struct lmq_corpus *corpus = &planner->job.corpus;
    double mean = lmq_drift_mean_kld(drift), sum_sq = 0, n_blocks = 0;
    size_t at = 0;

    for (size_t w = 0; w < corpus->n_windows; w++) {
        const struct lmq_window *window = &corpus->windows[w];
        size_t end = at + (window->n - window->scored);
        while (at < end) {
            double sum = 0;
            for (size_t i = 0; i < block && at < end; i++)
                sum += drift->kld[at++] - mean;
            sum_sq += sum * sum;
            n_blocks++;
        }
    }
    double all = (double)drift->n;
    return n_blocks < 2 ? mean * mean
                        : sum_sq * n_blocks / (n_blocks - 1) / (all * all);
}

/* The same, if whole stretches of the text are alike; 0 if it is too short to
 * tell. (Windows are taken from all over it, in another order.) */
static double
spread_by_stretch(const struct lmq_planner *planner,
                  const struct lmq_drift *drift)
{
    const struct lmq_corpus *corpus = &planner->job.corpus;
    double mean = lmq_drift_mean_kld(drift), sums[STRETCHES] = {0}, sum_sq = 0;
    size_t counts[STRETCHES] = {0}, at = 0;

    for (size_t i = 0; i < corpus->n_windows; i++) {
        const struct lmq_window *window = &corpus->windows[i];
        size_t in = (size_t)((double)window->first * STRETCHES /
                             (double)corpus->n_tokens);
        for (size_t j = window->scored; j < window->n; j++)
            sums[in] += drift->kld[at++] - mean;
        counts[in]++;
    }
    for (size_t i = 0; i < STRETCHES; i++) {
        if (counts[i] < WINDOWS_LEAST)
            return 0;
        sum_sq += sums[i] * sums[i];
    }
    double all = (double)drift->n;
    return sum_sq * STRETCHES / (STRETCHES - 1) / (all * all);
}

/* Two texts differ by the errors of both: twice the standard error of that. */
static double
uncertainty(const struct lmq_planner *planner, const struct lmq_drift *drift)
{
    double spread = spread_by(planner, drift, BLOCK);

    if (planner->job.corpus.n_windows >= WINDOWS_LEAST)
        spread = fmax(spread, spread_by(planner, drift, SIZE_MAX));
    return 2 * sqrt(2 * fmax(spread, spread_by_stretch(planner, drift)));
}

double
lmq_planner_over_the_whole(const struct lmq_planner *planner, double kld)
{
    const struct lmq_choice *choice = &planner->choice;

    return choice->few > 0 && choice->measured > 0
               ? kld * choice->measured / choice->few
               : kld;
}

static double
mean_of_few(const struct lmq_planner *planner, const struct lmq_drift *drift)
{
    double sum = 0;

    for (size_t i = 0; i < planner->n_few_scored; i++)
        sum += drift->kld[i];
    return planner->n_few_scored > 0 ? sum / (double)planner->n_few_scored : 0;
}

enum lmq_status
lmq_planner_uniform_file(struct lmq_planner *planner, size_t offer,
                         uint64_t *size, struct lmq_error *err)
{
    for (size_t i = 0; i < planner->units.n; i++)
        planner->scratch[i] = offer;
    char *recipe = lmq_offers_recipe(&planner->offers, &planner->units,
                                     planner->scratch, "");
    enum lmq_status status =
        recipe == NULL ? lmq_fail_nomem(err)
                       : lmq_offers_file_size(planner->job.reference_file,
                                              recipe, size, err);
    free(recipe);
    return status;
}

/* Whether its recipe, too, leaves the file within the target. */
static enum lmq_status
try_rival(struct lmq_planner *planner, size_t offer, bool *fits,
          struct lmq_error *err)
{
    const uint64_t target = planner->options->target_size;
    uint64_t size = 0;
    enum lmq_status status =
        target == 0 ? LMQ_OK
                    : lmq_planner_uniform_file(planner, offer, &size, err);

    *fits = status == LMQ_OK && size <= target;
    return status;
}

double
lmq_planner_room(const struct lmq_planner *planner)
{
    return planner->options->target_bits / 8 * planner->n_parameters -
           planner->other_bytes;
}

/* Bytes of units that a rival may have: what a target of bits leaves; of a size
 * its file tells the rest; for a divergence it is the least that is sought. */
static double
most_bytes(const struct lmq_planner *planner)
{
    const struct lmq_planning_options *o = planner->options;

    if (o->target_size > 0)
        return (double)o->target_size;
    return o->target_bits > 0 ? lmq_planner_room(planner)
                              : planner->choice.bytes;
}

/* The offer for all that is best of those that keep to the target; the number
 * of offers if there is none. */
static enum lmq_status
find_rival(struct lmq_planner *planner, size_t *rival, struct lmq_error *err)
{
    const struct lmq_offers *offers = &planner->offers;
    double most = most_bytes(planner);
    enum lmq_status status = LMQ_OK;

    *rival = offers->n;
    for (size_t j = 0; j < offers->n && status == LMQ_OK; j++) {
        double bytes = 0;
        bool fits;
        for (size_t i = 0; i < planner->units.n; i++)
            bytes += offers->bytes[i * offers->n + j];
        if (bytes > most ||
            (*rival < offers->n &&
             planner->uniform[j] >= planner->uniform[*rival]))
            continue;
        status = try_rival(planner, j, &fits, err);
        *rival = fits ? j : *rival;
    }
    return status;
}

/* The choice, and its rival beside it, which takes its place if it is
 * better. */
static enum lmq_status
compare(struct lmq_planner *planner, const struct lmq_encoding_choice **choices,
        struct lmq_drift drifts[2], struct lmq_error *err)
{
    size_t n = planner->units.n, rival, better = 0;
    const struct lmq_mix mixes[] = {{choices, NULL}, {choices + n, NULL}};
    enum lmq_status status = find_rival(planner, &rival, err);
    size_t n_mixes = 1 + (size_t)(rival < planner->offers.n);

    if (status != LMQ_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        choices[i] = lmq_planner_offer(planner, i, planner->choice.chosen[i]);
        if (n_mixes == 2)
            choices[n + i] = lmq_planner_offer(planner, i, rival);
    }
    status = lmq_planner_mix(planner, mixes, n_mixes,
                             planner->job.corpus.n_windows,
                             "measuring the plan", drifts, err);
    if (status != LMQ_OK)
        return status;
    if (n_mixes == 2 &&
        lmq_drift_mean_kld(&drifts[1]) < lmq_drift_mean_kld(&drifts[0]))
        better = 1;
    for (size_t i = 0; i < n && better == 1; i++)
        planner->choice.chosen[i] = rival;
    planner->choice.is_uniform = better == 1;
    planner->choice.measured = lmq_drift_mean_kld(&drifts[better]);
    planner->choice.error = uncertainty(planner, &drifts[better]);
    planner->choice.few = mean_of_few(planner, &drifts[better]);
    return LMQ_OK;
}

static enum lmq_status
check(struct lmq_planner *planner, struct lmq_error *err)
{
    struct lmq_drift drifts[2] = {0};
    const struct lmq_encoding_choice **choices =
        calloc(2 * planner->units.n + 1, sizeof(*choices));
    enum lmq_status status = choices == NULL
                                 ? lmq_fail_nomem(err)
                                 : compare(planner, choices, drifts, err);

    for (size_t i = 0; i < 2; i++)
        lmq_drift_free(&drifts[i]);
    free((void *)choices);
    return status;
}

enum lmq_status
lmq_planner_check(struct lmq_planner *planner, struct lmq_error *err)
{
    const struct lmq_choice *choice = &planner->choice;
    enum lmq_status status = check(planner, err);

    if (status != LMQ_OK || choice->error <= CERTAIN * choice->measured ||
        planner->job.corpus.n_windows >= planner->n_most)
        return status;
    bool is_uniform = choice->is_uniform;
    lmq_planner_take_windows(planner, planner->n_most);
    status = check(planner, err);
    planner->choice.is_uniform |= is_uniform;
    return status;
}
