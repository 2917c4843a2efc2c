/*
 * sampler.c - logits -> the next token.
 *
 * Penalties, then the filters (top-k, typical, top-p, min-p), then the
 * temperature, then one draw. Everything is computed in doubles with
 * functions that are the same on every machine, so a seed means the same text
 * everywhere.
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/options.h"
#include "base/random.h"
#include "base/size.h"
#include "lmquant.h"

#define DEFAULT_WINDOW 64
#define MAX_WINDOW (1 << 20)

/* Tokens this many nats below the best cannot be drawn in practice (1e-14);
 * leaving them out spares sorting the whole vocabulary. */
#define NEGLIGIBLE 32.0

/* Comparisons that do not wait for each other. */
#define LANES ((size_t)8)

struct candidate {
    double logit, p;
    double surprise; /* for the typical filter */
    int32_t id;
};

struct seen {
    uint32_t n, last; /* how often, and the place of the last one */
};

struct lmq_sampler {
    struct lmq_sampler_options options;
    size_t vocabulary;
    double *logits;               /* (vocabulary), after penalties */
    struct candidate *candidates; /* (vocabulary) */
    int32_t *window;              /* a ring of the last tokens */
    struct seen *seen;            /* (vocabulary), of each within it */
    size_t window_size, n_seen;
    uint64_t random[4];
};

/* ---- Random numbers: xoshiro256**, seeded by splitmix64 ---- */

static uint64_t
rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t
next_random(uint64_t s[4])
{
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static void
seed_random(uint64_t s[4], uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        s[i] = lmq_random_next(&seed);
}

/* ---- Penalties ---- */

static bool
has_penalties(const struct lmq_sampler_options *o)
{
    return (o->repeat_penalty > 0 && o->repeat_penalty != 1) ||
           o->frequency_penalty != 0 || o->presence_penalty != 0;
}

/* Each token once, at the place where it was seen last. Its frequency counts
 * step by step: a product would be rounded differently. */
static void
apply_penalties(struct lmq_sampler *sampler)
{
    const struct lmq_sampler_options *o = &sampler->options;
    size_t n = lmq_size_min(sampler->n_seen, sampler->window_size);
    double repeat = o->repeat_penalty > 0 ? o->repeat_penalty : 1;

    for (size_t i = 0; i < n; i++) {
        const struct seen *seen = &sampler->seen[sampler->window[i]];
        double *logit = &sampler->logits[sampler->window[i]];
        if (seen->last != i)
            continue;
        *logit = *logit > 0 ? *logit / repeat : *logit * repeat;
        *logit -= o->presence_penalty;
        for (uint32_t j = 0; j < seen->n; j++)
            *logit -= o->frequency_penalty;
    }
}

/* ---- Ranks: the best first, as far as somebody asks ---- */

static int
compare_logits(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* A heap with the best on top; those that are known stand behind it, the best
 * last. To sort a vocabulary of 262144 takes longer than a small model. */
struct ranks {
    struct candidate *c;
    size_t n, n_known;
};

static void
sink(struct candidate *c, size_t n, size_t at)
{
    const struct candidate moved = c[at];

    for (size_t below = 2 * at + 1; below < n; below = 2 * at + 1) {
        if (below + 1 < n && compare_logits(&c[below + 1], &c[below]) < 0)
            below++;
        if (compare_logits(&moved, &c[below]) < 0)
            break;
        c[at] = c[below];
        at = below;
    }
    c[at] = moved;
}

static struct ranks
rank(struct candidate *c, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(c, n, i);
    return (struct ranks){c, n, 0};
}

/* The i-th, from 0. */
static const struct candidate *
ranked(struct ranks *ranks, size_t i)
{
    struct candidate *c = ranks->c;

    while (ranks->n_known <= i) {
        size_t last = ranks->n - ++ranks->n_known;
        struct candidate top = c[0];
        c[0] = c[last];
        c[last] = top;
        sink(c, last, 0);
    }
    return &c[ranks->n - 1 - i];
}

/* Leaves the best n, in their order: that is a heap too. */
static void
keep(struct ranks *ranks, size_t n)
{
    struct candidate *c = ranks->c;

    ranked(ranks, n - 1);
    for (size_t i = 0, j = ranks->n - 1; i < j; i++, j--) {
        struct candidate other = c[i];
        c[i] = c[j];
        c[j] = other;
    }
    *ranks = (struct ranks){c, n, 0};
}

/* ---- Filters: each leaves fewer ---- */

static int
compare_surprise(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->surprise != y->surprise)
        return x->surprise < y->surprise ? -1 : 1;
    return compare_logits(a, b);
}

static void
softmax(struct candidate *c, size_t n, double temperature)
{
    double top = c[0].logit, sum = 0; /* of a heap, or of a list in order */

    for (size_t i = 0; i < n; i++) {
        c[i].p = lmq_exp((c[i].logit - top) / temperature);
        sum += c[i].p;
    }
    for (size_t i = 0; i < n; i++)
        c[i].p /= sum;
}

/* Those whose information is nearest to the expected one. */
static size_t
keep_typical(struct candidate *c, size_t n, double share)
{
    double entropy = 0;

    for (size_t i = 0; i < n; i++)
        if (c[i].p > 0)
            entropy -= c[i].p * lmq_log(c[i].p);
    for (size_t i = 0; i < n; i++)
        c[i].surprise = c[i].p > 0
                            ? fabs(-lmq_log(c[i].p) - entropy)
                            : (double)INFINITY;
    qsort(c, n, sizeof(*c), compare_surprise);
    double sum = 0;
    size_t kept = 0;
    while (kept < n && sum < share)
        sum += c[kept++].p;
    n = kept;
    qsort(c, n, sizeof(*c), compare_logits);
    softmax(c, n, 1);
    return n;
}

/* Whether something depends on how likely the candidates are. */
static bool
has_shares(const struct lmq_sampler_options *o)
{
    return (o->typical > 0 && o->typical < 1) ||
           (o->top_p > 0 && o->top_p < 1) || o->min_p > 0;
}

static void
filter(const struct lmq_sampler_options *o, struct ranks *ranks)
{
    struct candidate *c = ranks->c;
    size_t n;

    if (!has_shares(o))
        return;
    softmax(c, ranks->n, 1);
    if (o->typical > 0 && o->typical < 1)
        ranks->n = keep_typical(c, ranks->n, o->typical);
    n = ranks->n;
    if (o->top_p > 0 && o->top_p < 1) {
        double sum = 0;
        for (n = 0; n < ranks->n && sum < o->top_p; n++)
            sum += ranked(ranks, n)->p;
    }
    if (o->min_p > 0) {
        double least = o->min_p * ranked(ranks, 0)->p;
        size_t kept = 1;
        while (kept < n && ranked(ranks, kept)->p >= least)
            kept++;
        n = kept;
    }
    if (n < ranks->n || ranks->n_known > 0)
        keep(ranks, n);
}

/* ---- Picking ---- */

/* Without NaN. */
static double
largest(const double *x, size_t n)
{
    double tops[LANES];

    for (size_t j = 0; j < LANES; j++)
        tops[j] = -(double)INFINITY;
    for (size_t i = 0; i < n; i++)
        tops[i % LANES] =
            x[i] > tops[i % LANES] ? x[i] : tops[i % LANES];
    for (size_t j = 1; j < LANES; j++)
        tops[0] = tops[j] > tops[0] ? tops[j] : tops[0];
    return tops[0];
}

/* The best `most`, not those that are hopelessly behind, nor NaN. Of many
 * logits few are looked at twice: those above the worst of the best so far; one
 * that is equal to it has a larger id, and so stands behind it. */
static struct ranks
collect(struct lmq_sampler *sampler, size_t most)
{
    const double *logits = sampler->logits;
    struct candidate *c = sampler->candidates;
    double least = largest(logits, sampler->vocabulary) -
                   NEGLIGIBLE * fmax(1, sampler->options.temperature);
    double worst = (double)NAN; /* not known yet: nothing is below it */
    size_t n = 0;

    for (size_t i = 0; i < sampler->vocabulary; i++) {
        if (!(logits[i] >= least) || logits[i] <= worst)
            continue;
        c[n++] = (struct candidate){.logit = logits[i], .id = (int32_t)i};
        if (n == 2 * most) {
            struct ranks ranks = rank(c, n);
            keep(&ranks, most);
            n = most;
            worst = c[n - 1].logit;
        }
    }
    struct ranks ranks = rank(c, n);
    if (n > most)
        keep(&ranks, most);
    return ranks;
}

static int32_t
best(const double *logits, size_t n)
{
    size_t top = 0;

    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[top] ||
            (isnan(logits[top]) && !isnan(logits[i])))
            top = i;
    return (int32_t)top;
}

int32_t
lmq_sampler_pick(struct lmq_sampler *sampler, const float *logits)
{
    const struct lmq_sampler_options *o = &sampler->options;
    size_t most = o->top_k > 0
                      ? lmq_size_min((size_t)o->top_k, sampler->vocabulary)
                      : sampler->vocabulary;

    for (size_t i = 0; i < sampler->vocabulary; i++)
        sampler->logits[i] = (double)logits[i];
    if (has_penalties(o))
        apply_penalties(sampler);
    if (o->temperature <= 0)
        return best(sampler->logits, sampler->vocabulary);
    struct ranks ranks = collect(sampler, most);
    if (ranks.n == 0) /* nothing but NaN */
        return 0;
    filter(o, &ranks);
    softmax(ranks.c, ranks.n, o->temperature);
    double draw = 0x1p-53 * (double)(next_random(sampler->random) >> 11);
    double sum = 0;
    for (size_t i = 0; i < ranks.n; i++) {
        const struct candidate *next = ranked(&ranks, i);
        sum += next->p;
        if (draw < sum)
            return next->id;
    }
    return ranked(&ranks, ranks.n - 1)->id;
}

void
lmq_sampler_accept(struct lmq_sampler *sampler, int32_t token)
{
    if (token < 0 || (size_t)token >= sampler->vocabulary)
        return;
    size_t place = sampler->n_seen % sampler->window_size;
    if (sampler->n_seen++ >= sampler->window_size)
        sampler->seen[sampler->window[place]].n--;
    sampler->window[place] = token;
    sampler->seen[token].n++;
    sampler->seen[token].last = (uint32_t)place;
}

/* ---- Making ---- */

static enum lmq_status
check_options(const struct lmq_sampler_options *o, struct lmq_error *err)
{
    const struct {
        const char *name;
        double value, least, most;
    } numbers[] = {
        {"temperature", o->temperature, 0, 1000},
        {"top_k", (double)o->top_k, 0, (double)LONG_MAX},
        {"top_p", o->top_p, 0, 1},
        {"min_p", o->min_p, 0, 1},
        {"typical", o->typical, 0, 1},
        {"repeat_penalty", o->repeat_penalty, 0, 1000},
        {"frequency_penalty", o->frequency_penalty, -1000, 1000},
        {"presence_penalty", o->presence_penalty, -1000, 1000},
        {"penalty_window", (double)o->penalty_window, 0, MAX_WINDOW},
    };

    /* Not by less and more: none may be NaN. */
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!(numbers[i].value >= numbers[i].least &&
              numbers[i].value <= numbers[i].most))
            return lmq_fail(err, LMQ_ERR_ARG, 0,
                            ".%s is %g, expected %g to %g", numbers[i].name,
                            numbers[i].value, numbers[i].least,
                            numbers[i].most);
    return LMQ_OK;
}

enum lmq_status
lmq_sampler_new(const struct lmq_sampler_options *given, size_t vocabulary,
                struct lmq_sampler **out, struct lmq_error *err)
{
    struct lmq_sampler_options own;
    const struct lmq_sampler_options *options = &own;

    *out = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_sampler_options, &own, given, err);
    if (status != LMQ_OK)
        return status;
    status = check_options(options, err);
    if (status != LMQ_OK)
        return status;
    if (vocabulary == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "a vocabulary of no tokens has none to pick");
    struct lmq_sampler *sampler = calloc(1, sizeof(*sampler));
    if (sampler == NULL)
        return lmq_fail_nomem(err);
    sampler->options = *options;
    sampler->vocabulary = vocabulary;
    sampler->window_size = options->penalty_window == 0
                               ? DEFAULT_WINDOW
                               : (size_t)options->penalty_window;
    sampler->candidates = calloc(vocabulary, sizeof(*sampler->candidates));
    sampler->logits = calloc(vocabulary, sizeof(*sampler->logits));
    sampler->window = calloc(sampler->window_size, sizeof(int32_t));
    sampler->seen = calloc(vocabulary, sizeof(*sampler->seen));
    if (sampler->candidates == NULL || sampler->logits == NULL ||
        sampler->window == NULL || sampler->seen == NULL) {
        lmq_sampler_free(sampler);
        return lmq_fail_nomem(err);
    }
    seed_random(sampler->random, options->seed);
    *out = sampler;
    return LMQ_OK;
}

void
lmq_sampler_free(struct lmq_sampler *sampler)
{
    if (sampler == NULL)
        return;
    free(sampler->candidates);
    free(sampler->logits);
    free(sampler->window);
    free(sampler->seen);
    free(sampler);
}
