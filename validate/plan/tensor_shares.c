/*
 * tensor_shares.c - which tensors does the divergence come from, and what would
 * it take to cure it?
 *
 * The judged model runs many times side by side, each time with another tensor
 * as the reference has it. Up to that tensor's layer all are the same, so a
 * side begins there: half a pass for each, on the average, and exact. What
 * would be done about the worst is measured too, all of it together.
 */
#include "config.h"

#include "validate/plan/tensor_shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "base/text/buffer.h"
#include "validate/plan/mixes.h"
#include "validate/plan/remedies.h"

/* Steps of a cure. */
#define STEPS_MOST 5
/* A tensor of a smaller share is no part of a cure. */
#define SHARE_LEAST 0.01

const struct lmq_name lmq_attribution_names[] = {
    {"layer", false}, {"tensor", true}, {NULL, 0}};

bool
lmq_wants_tensors(const struct lmq_job *job)
{
    const struct lmq_name *name =
        lmq_names_find(lmq_attribution_names, job->options->attribution);

    return name != NULL && name->value != 0;
}

struct share {
    const struct lmq_unit *unit;
    const struct lmq_remedy *remedy; /* all zero of an emulation */
    double without, part; /* what is left of the divergence, what goes away */
};

struct shares {
    struct lmq_job *job;
    const struct lmq_checkpoint *judged; /* NULL: an emulation */
    uint64_t n_parameters; /* norms, too: what bits per weight are of */
    struct lmq_units units;
    struct lmq_remedy *remedies; /* as the units */
    struct share *list;          /* these, too */
    struct share **order;
    struct lmq_mixing mixing;
    const struct lmq_encoding_choice **choices; /* (mixes, units) */
    struct lmq_mix *mixes;
    struct lmq_drift *drifts;
    double full;
};

/* ---- Measuring ---- */

static enum lmq_status
find_shares(struct shares *shares, struct lmq_error *err)
{
    const struct lmq_job *job = shares->job;
    /* A head that it has of its own is decided about alone, also if it is the
     * embedding for the reference. */
    const struct lmq_checkpoint *file =
        shares->judged != NULL ? shares->judged : job->reference_file;
    enum lmq_status status = lmq_units_find(
        file, lmq_checkpoint_is_tied(file), &shares->units, err);
    size_t n = shares->units.n, n_mixes = n > STEPS_MOST ? n : STEPS_MOST;

    if (status != LMQ_OK)
        return status;
    shares->n_parameters = lmq_checkpoint_sizes(file).parameters;
    shares->remedies = calloc(n + 1, sizeof(*shares->remedies));
    shares->list = calloc(n + 1, sizeof(*shares->list));
    shares->order = calloc(n + 1, sizeof(*shares->order));
    shares->choices = calloc(n_mixes * n + 1, sizeof(*shares->choices));
    shares->mixes = calloc(n_mixes, sizeof(*shares->mixes));
    shares->drifts = calloc(n_mixes, sizeof(*shares->drifts));
    if (shares->remedies == NULL || shares->list == NULL ||
        shares->order == NULL || shares->choices == NULL ||
        shares->mixes == NULL || shares->drifts == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n_mixes; i++)
        shares->mixes[i].choices = shares->choices + i * n;
    for (size_t i = 0; i < n; i++) {
        shares->list[i] = (struct share){.unit = &shares->units.units[i],
                                         .remedy = &shares->remedies[i]};
        shares->order[i] = &shares->list[i];
    }
    shares->mixing.units = &shares->units;
    shares->mixing.mixes = shares->mixes;
    return shares->judged == NULL
               ? LMQ_OK
               : lmq_remedies_find(job, shares->judged, &shares->units,
                                   shares->remedies, err);
}

static enum lmq_status
measure(struct shares *shares, size_t n, struct lmq_error *err)
{
    for (size_t i = 0; i < n; i++)
        lmq_drift_free(&shares->drifts[i]);
    memset(shares->drifts, 0, n * sizeof(*shares->drifts));
    shares->mixing.n_mixes = n;
    return lmq_mixes_measure(&shares->mixing, shares->drifts, err);
}

/* Each unit alone, as the reference has it. */
static enum lmq_status
measure_shares(struct shares *shares, struct lmq_error *err)
{
    size_t n = shares->units.n;

    for (size_t i = 0; i < n; i++)
        shares->mixes[i].choices[i] = &lmq_as_reference;
    enum lmq_status status = measure(shares, n, err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        struct share *share = &shares->list[i];
        share->without = lmq_drift_mean_kld(&shares->drifts[i]);
        share->part = (shares->full - share->without) / shares->full;
        shares->mixes[i].choices[i] = NULL;
    }
    return status;
}

/* ---- Orders ---- */

static int
compare_indices(const struct share *x, const struct share *y)
{
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static int
compare_parts(const void *a, const void *b)
{
    const struct share *x = *(struct share *const *)a;
    const struct share *y = *(struct share *const *)b;

    if (x->part != y->part)
        return x->part < y->part ? 1 : -1;
    return compare_indices(x, y);
}

/* What a bit buys; nothing of what has no remedy, or hardly any share. */
static double
worth(const struct share *share)
{
    const struct lmq_remedy *remedy = share->remedy;

    return remedy->encoding != NULL && share->part >= SHARE_LEAST
               ? share->part / (remedy->bits_then - remedy->bits)
               : 0;
}

static int
compare_worth(const void *a, const void *b)
{
    const struct share *x = *(struct share *const *)a;
    const struct share *y = *(struct share *const *)b;
    double of_x = worth(x), of_y = worth(y);

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return compare_indices(x, y);
}

/* ---- The report ---- */

static json_t *
describe_shares(const struct shares *shares)
{
    json_t *list = json_array();

    qsort((void *)shares->order, shares->units.n, sizeof(*shares->order),
          compare_parts);
    for (size_t i = 0; i < shares->units.n; i++) {
        const struct share *share = shares->order[i];
        double n = (double)share->unit->n_weights;
        json_t *json = json_object();
        lmq_put(&json, "name", lmq_json_text(share->unit->name));
        lmq_put(&json, "layer", share->unit->layer < 0
                                    ? json_null()
                                    : json_integer(share->unit->layer));
        lmq_put(&json, "role", json_string(lmq_role_name(share->unit->role)));
        lmq_put(&json, "parameters", lmq_json_size(share->unit->n_weights));
        if (share->remedy->type != NULL) {
            lmq_put(&json, "type", json_string(share->remedy->type));
            lmq_put(&json, "bits_per_weight",
                    lmq_json_number(share->remedy->bits / n));
        }
        lmq_put(&json, "kld_without", lmq_json_number(share->without));
        lmq_put(&json, "share", lmq_json_number(share->part));
        lmq_append(&list, json);
    }
    return list;
}

static bool
is_kept(const struct share *share)
{
    return strcmp(share->remedy->encoding, "keep") == 0;
}

/* "--set=blk.2.ffn_down=q8 --keep=token_embd" as convert takes it; quoted where
 * a shell would look at it. */
static void
add_option(struct lmq_buffer *text, const struct share *share,
           const char *name)
{
    const char *quote = strchr(name, '*') == NULL ? "" : "'";

    lmq_buffer_print(text, "%s--%s=%s%s%s%s", text->n > 0 ? " " : "",
                     is_kept(share) ? "keep" : "set", quote, name,
                     is_kept(share) ? "" : "=q8", quote);
}

static json_t *
describe_options(const struct shares *shares, size_t n)
{
    struct lmq_buffer text = {0};

    for (size_t i = 0; i < n; i++) {
        const struct share *share = shares->order[i];
        add_option(&text, share, share->unit->name);
        if (share->unit->is_tied)
            add_option(&text, share, lmq_role_name(LMQ_ROLE_HEAD));
    }
    char *bytes = lmq_buffer_text(&text);
    json_t *json = bytes == NULL ? NULL : json_string(bytes);
    free(bytes);
    return json;
}

/* The first n in the order of worth, which were measured together. */
static json_t *
describe_step(const struct shares *shares, size_t n)
{
    json_t *json = json_object(), *names = json_array();
    double without = lmq_drift_mean_kld(&shares->drifts[n - 1]);
    double sum = 0, bits = 0;

    for (size_t i = 0; i < n; i++) {
        const struct share *share = shares->order[i];
        sum += share->part;
        bits += share->remedy->bits_then - share->remedy->bits;
        lmq_append(&names, lmq_json_text(share->unit->name));
    }
    lmq_put(&json, "names", names);
    lmq_put(&json, "options", describe_options(shares, n));
    lmq_put(&json, "kld_without", lmq_json_number(without));
    lmq_put(&json, "share",
            lmq_json_number((shares->full - without) / shares->full));
    lmq_put(&json, "share_of_each", lmq_json_number(sum));
    lmq_put(&json, "bits_added",
            lmq_json_number(bits / (double)shares->n_parameters));
    return json;
}

/* The worst few, one more in each step. */
static enum lmq_status
describe_cure(struct shares *shares, json_t **cure, struct lmq_error *err)
{
    size_t n_steps = 0;
    json_t *steps = json_array();
    enum lmq_status status = LMQ_OK;

    qsort((void *)shares->order, shares->units.n, sizeof(*shares->order),
          compare_worth);
    while (n_steps < lmq_size_min(STEPS_MOST, shares->units.n) &&
           worth(shares->order[n_steps]) > 0)
        n_steps++;
    for (size_t i = 0; i < n_steps; i++)
        for (size_t j = 0; j <= i; j++) {
            const struct share *share = shares->order[j];
            shares->mixes[i].choices[share->unit - shares->units.units] =
                is_kept(share) ? &lmq_as_reference : &share->remedy->choice;
        }
    if (n_steps > 0)
        status = measure(shares, n_steps, err);
    for (size_t i = 0; i < n_steps && status == LMQ_OK; i++)
        lmq_append(&steps, describe_step(shares, i + 1));
    *cure = steps;
    return status;
}

static enum lmq_status
attribute(struct shares *shares, json_t **attribution, struct lmq_error *err)
{
    json_t *cure = NULL;
    enum lmq_status status = find_shares(shares, err);

    if (status == LMQ_OK)
        status = measure_shares(shares, err);
    if (status != LMQ_OK)
        return status;
    lmq_put(attribution, "tensors", describe_shares(shares));
    if (shares->judged != NULL) {
        status = describe_cure(shares, &cure, err);
        lmq_put(attribution, "cure", cure);
    }
    return status;
}

enum lmq_status
lmq_attribute_tensors(struct lmq_job *job, size_t index, size_t n_windows,
                      double full, json_t **attribution,
                      struct lmq_error *err)
{
    const struct lmq_judged *candidate = &job->candidates[index];
    struct shares shares = {
        .job = job,
        .judged = candidate->emulation == LMQ_EMULATE_NONE ? candidate->file
                                                           : NULL,
        .full = full,
        .mixing = {.job = job,
                   .base = lmq_side_judged(job, index, "tensor"),
                   .n_windows = n_windows,
                   .stage = "attributing to tensors"}};
    enum lmq_status status = attribute(&shares, attribution, err);
    size_t n_mixes = shares.units.n > STEPS_MOST ? shares.units.n : STEPS_MOST;

    for (size_t i = 0; shares.drifts != NULL && i < n_mixes; i++)
        lmq_drift_free(&shares.drifts[i]);
    free(shares.drifts);
    free(shares.mixes);
    free((void *)shares.choices);
    free((void *)shares.order);
    free(shares.list);
    free(shares.remedies);
    lmq_units_free(&shares.units);
    return status;
}
