/*
 * sampler.c - logits -> the next token.
 *
 * Penalties, then the filters (top-k, typical, top-p, min-p), then the
 * temperature, then one draw. Everything is computed in doubles with
 * functions that are the same on every machine, so a seed means the same text
 * everywhere.
 */
#include "config.h"

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

struct candidate {
    double logit, p;
    double surprise; /* for the typical filter */
    int32_t id;
};

struct lmq_sampler {
    struct lmq_sampler_options options;
    size_t vocabulary;
    struct candidate *candidates; /* (vocabulary) */
    int32_t *window;              /* a ring of the last tokens */
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

/* candidates[] is still in the order of the ids. */
static void
apply_penalties(struct lmq_sampler *sampler)
{
    const struct lmq_sampler_options *o = &sampler->options;
    size_t n = lmq_size_min(sampler->n_seen, sampler->window_size);
    double repeat = o->repeat_penalty > 0 ? o->repeat_penalty : 1;

    for (size_t i = 0; i < n; i++) {
        int32_t id = sampler->window[i];
        struct candidate *c = &sampler->candidates[id];
        bool is_first = true;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = sampler->window[j] != id;
        if (is_first) {
            c->logit = c->logit > 0 ? c->logit / repeat : c->logit * repeat;
            c->logit -= o->presence_penalty;
        }
        c->logit -= o->frequency_penalty;
    }
}

/* ---- Filters: each shortens the list, best first ---- */

static int
compare_logits(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

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
    double top = c[0].logit, sum = 0;

    for (size_t i = 1; i < n; i++)
        top = c[i].logit > top ? c[i].logit : top;
    for (size_t i = 0; i < n; i++) {
        c[i].p = lmq_exp((c[i].logit - top) / temperature);
        sum += c[i].p;
    }
    for (size_t i = 0; i < n; i++)
        c[i].p /= sum;
}

/* The shortest beginning of the list whose probabilities reach `share`. */
static size_t
reach(const struct candidate *c, size_t n, double share)
{
    double sum = 0;
    size_t i = 0;

    while (i < n && sum < share)
        sum += c[i++].p;
    return i;
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
    n = reach(c, n, share);
    qsort(c, n, sizeof(*c), compare_logits);
    softmax(c, n, 1);
    return n;
}

static size_t
filter(struct lmq_sampler *sampler, struct candidate *c, size_t n)
{
    const struct lmq_sampler_options *o = &sampler->options;

    if (o->top_k > 0 && (size_t)o->top_k < n)
        n = (size_t)o->top_k;
    softmax(c, n, 1);
    if (o->typical > 0 && o->typical < 1)
        n = keep_typical(c, n, o->typical);
    if (o->top_p > 0 && o->top_p < 1)
        n = reach(c, n, o->top_p);
    if (o->min_p > 0) {
        size_t kept = 1;
        while (kept < n && c[kept].p >= o->min_p * c[0].p)
            kept++;
        n = kept;
    }
    return n;
}

/* ---- Picking ---- */

/* The best first; not those that are hopelessly behind, nor NaN. */
static size_t
collect(struct lmq_sampler *sampler)
{
    struct candidate *c = sampler->candidates;
    double top = -(double)INFINITY;
    size_t n = 0;

    for (size_t i = 0; i < sampler->vocabulary; i++)
        top = c[i].logit > top ? c[i].logit : top;
    double least =
        top - NEGLIGIBLE * fmax(1, sampler->options.temperature);
    for (size_t i = 0; i < sampler->vocabulary; i++)
        if (c[i].logit >= least)
            c[n++] = c[i];
    qsort(c, n, sizeof(*c), compare_logits);
    return n;
}

static int32_t
best(const struct candidate *c, size_t n)
{
    size_t top = 0;

    for (size_t i = 1; i < n; i++)
        if (c[i].logit > c[top].logit)
            top = i;
    return c[top].id;
}

int32_t
lmq_sampler_pick(struct lmq_sampler *sampler, const float *logits)
{
    struct candidate *c = sampler->candidates;

    for (size_t i = 0; i < sampler->vocabulary; i++) {
        c[i].logit = (double)logits[i];
        c[i].id = (int32_t)i;
    }
    if (has_penalties(&sampler->options))
        apply_penalties(sampler);
    if (sampler->options.temperature <= 0)
        return best(c, sampler->vocabulary);
    size_t n = collect(sampler);
    if (n == 0) /* nothing but NaN */
        return 0;
    n = filter(sampler, c, n);
    softmax(c, n, sampler->options.temperature);
    double draw = 0x1p-53 * (double)(next_random(sampler->random) >> 11);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += c[i].p;
        if (draw < sum)
            return c[i].id;
    }
    return c[n - 1].id;
}

void
lmq_sampler_accept(struct lmq_sampler *sampler, int32_t token)
{
    if (token >= 0 && (size_t)token < sampler->vocabulary)
        sampler->window[sampler->n_seen++ % sampler->window_size] = token;
}

/* ---- Making ---- */

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
    if (options->penalty_window < 0 || options->penalty_window > MAX_WINDOW ||
        options->top_k < 0 || !(options->temperature >= 0) || vocabulary == 0)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "the sampling options are out of range");
    struct lmq_sampler *sampler = calloc(1, sizeof(*sampler));
    if (sampler == NULL)
        return lmq_fail_nomem(err);
    sampler->options = *options;
    sampler->vocabulary = vocabulary;
    sampler->window_size = options->penalty_window == 0
                               ? DEFAULT_WINDOW
                               : (size_t)options->penalty_window;
    sampler->candidates = calloc(vocabulary, sizeof(*sampler->candidates));
    sampler->window = calloc(sampler->window_size, sizeof(int32_t));
    if (sampler->candidates == NULL || sampler->window == NULL) {
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
    free(sampler->window);
    free(sampler);
}
