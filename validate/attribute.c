/*
 * attribute.c - where does the divergence come from?
 *
 * The judged model runs several times side by side, each time with another
 * part as the reference has it; what goes away then is that part's share.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "validate/job.h"
#include "validate/plan/tensor_shares.h"

/* Tokens that the many models of an attribution run over. */
#define ATTRIBUTION_TOKENS 1024

/* Kinds of parts that an attribution restores. */
static const struct {
    const char *name;
    unsigned parts;
} part_kinds[] = {
    {"attention", LMQ_PARTS_ATTENTION},
    {"feed-forward", LMQ_PARTS_FFN},
    {"embedding", LMQ_PARTS_EMBEDDING},
    {"head", LMQ_PARTS_HEAD},
};

#define N_KINDS (sizeof(part_kinds) / sizeof(part_kinds[0]))
_Static_assert(N_KINDS == LMQ_ATTRIBUTED_PARTS, "gates may name these");

/* Types of keys and values; the first is what the others cost more than. */
static const struct {
    const char *name;
    enum lmq_kv_type type;
} kv_types[] = {
    {"f32", LMQ_KV_F32},
    {"f16", LMQ_KV_F16},
    {"q8", LMQ_KV_Q8},
    {"f16-q8", LMQ_KV_F16_Q8},
};

#define N_KV (sizeof(kv_types) / sizeof(kv_types[0]))
_Static_assert(N_KV == LMQ_ATTRIBUTED_KV, "gates may name these");

/* Where the sides stand. */
#define AT_ACTIVATIONS 2
#define AT_KV 3
#define AT_PARTS (AT_KV + N_KV)
#define AT_LAYERS (AT_PARTS + N_KINDS)

size_t
lmq_attribute_sides(const struct lmq_job *job)
{
    return AT_LAYERS + job->models[0]->hparams.n_layers;
}

static json_t *
describe_share(const char *kind, const char *name, double full, double without)
{
    json_t *json = json_object();

    lmq_put(&json, "kind", json_string(kind));
    lmq_put(&json, "name", lmq_json_text(name));
    lmq_put(&json, "kld_without", lmq_json_number(without));
    lmq_put(&json, "share", lmq_json_number((full - without) / full));
    return json;
}

/* What each type of keys and values adds to the divergence. */
static json_t *
describe_kv(const struct lmq_drift *drifts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < N_KV; i++) {
        double kld = lmq_drift_mean_kld(&drifts[i]);
        double added = kld - lmq_drift_mean_kld(&drifts[0]);
        json_t *json = json_object();
        lmq_put(&json, "type", json_string(kv_types[i].name));
        lmq_put(&json, "kld", lmq_json_number(kld));
        lmq_put(&json, "added", lmq_json_number(added));
        lmq_append(&list, json);
    }
    return list;
}

static double
share_of(const json_t *row)
{
    return json_number_value(json_object_get(row, "share"));
}

/* The largest first; equal ones stay as they are, which qsort() may not do. */
static json_t *
sorted_shares(json_t **shares, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 1; i < n; i++) {
        json_t *row = shares[i];
        size_t at = i;
        for (; at > 0 && share_of(shares[at - 1]) < share_of(row); at--)
            shares[at] = shares[at - 1];
        shares[at] = row;
    }
    for (size_t i = 0; i < n; i++)
        lmq_append(&list, shares[i]);
    return list;
}

/* The windows that make up the tokens of an attribution. */
static size_t
few_windows(const struct lmq_job *job, size_t *n_tokens)
{
    size_t n = 0;

    *n_tokens = 0;
    while (n < job->corpus.n_windows && *n_tokens < ATTRIBUTION_TOKENS)
        *n_tokens += job->corpus.windows[n++].n;
    return n;
}

/* Sides: reference, the judged model, the judged model without quantized
 * activations and keys and values, with each type of keys and values, without
 * each kind of part, without each layer. */
enum lmq_status
lmq_attribute(struct lmq_job *job, size_t index, struct lmq_error *err)
{
    size_t n_layers = job->models[0]->hparams.n_layers;
    size_t n_sides = lmq_attribute_sides(job), n_tokens;
    size_t n_windows = few_windows(job, &n_tokens);
    struct lmq_side *sides = calloc(n_sides, sizeof(*sides));
    struct lmq_drift *drifts = calloc(n_sides, sizeof(*drifts));
    json_t **shares = calloc(n_sides, sizeof(*shares));
    char(*names)[24] = calloc(n_sides, sizeof(*names));
    enum lmq_status status = LMQ_OK;

    if (sides == NULL || drifts == NULL || shares == NULL || names == NULL) {
        status = lmq_fail_nomem(err);
        goto done;
    }
    sides[0] = lmq_side_reference();
    sides[1] = lmq_side_judged(job, index, "");
    sides[AT_ACTIVATIONS] = lmq_side_judged(job, index, "activations");
    sides[AT_ACTIVATIONS].activations = LMQ_ACTIVATIONS_F32;
    sides[AT_ACTIVATIONS].kv_type = LMQ_KV_F32;
    for (size_t i = 0; i < N_KV; i++) {
        sides[AT_KV + i] = lmq_side_judged(job, index, kv_types[i].name);
        sides[AT_KV + i].kv_type = kv_types[i].type;
    }
    for (size_t i = 0; i < N_KINDS; i++) {
        sides[AT_PARTS + i] = lmq_side_judged(job, index, part_kinds[i].name);
        sides[AT_PARTS + i].restored = part_kinds[i].parts;
    }
    for (size_t i = 0; i < n_layers; i++) {
        size_t at = AT_LAYERS + i;
        snprintf(names[at], sizeof(names[at]), "%zu", i);
        sides[at] = lmq_side_judged(job, index, names[at]);
        sides[at].restored_layer = (int32_t)i;
        sides[at].joins = i;
        sides[at].base = 1;
    }
    status = lmq_job_gather(job, sides, n_sides, 0, n_windows,
                            "attributing", drifts, NULL, err);
    if (status != LMQ_OK)
        goto done;
    double full = lmq_drift_mean_kld(&drifts[1]);
    double weights = lmq_drift_mean_kld(&drifts[AT_ACTIVATIONS]);
    double float_kv = lmq_drift_mean_kld(&drifts[AT_KV]);
    for (size_t i = AT_PARTS; i < n_sides; i++)
        shares[i] = describe_share(i < AT_LAYERS ? "part" : "layer",
                                   sides[i].name, full,
                                   lmq_drift_mean_kld(&drifts[i]));
    json_t *json = json_object();
    lmq_put(&json, "tokens", lmq_json_size(n_tokens));
    lmq_put(&json, "kld", lmq_json_number(full));
    lmq_put(&json, "weights", lmq_json_number(weights / full));
    lmq_put(&json, "activations",
            lmq_json_number((float_kv - weights) / full));
    lmq_put(&json, "keys_values", lmq_json_number((full - float_kv) / full));
    lmq_put(&json, "kv", describe_kv(drifts + AT_KV));
    lmq_put(&json, "parts", sorted_shares(shares + AT_PARTS, N_KINDS));
    lmq_put(&json, "layers", sorted_shares(shares + AT_LAYERS, n_layers));
    if (lmq_wants_tensors(job))
        status = lmq_attribute_tensors(job, index, n_windows, full, &json, err);
    lmq_put(&job->candidates[index].report, "attribution", json);
done:
    for (size_t i = 0; drifts != NULL && i < n_sides; i++)
        lmq_drift_free(&drifts[i]);
    free(sides);
    free(drifts);
    free((void *)shares);
    free(names);
    return status;
}

/* The reference against itself: what is left is the noise of the method. */
enum lmq_status
lmq_measure_floor(struct lmq_job *job, struct lmq_error *err)
{
    struct lmq_side sides[] = {lmq_side_reference(), lmq_side_reference()};
    struct lmq_drift drifts[2] = {0};
    size_t n_tokens, n_windows = few_windows(job, &n_tokens);
    enum lmq_status status = lmq_job_gather(job, sides, 2, 0, n_windows,
                                    "measuring the floor", drifts, NULL, err);

    if (status == LMQ_OK) {
        json_t *json = json_object();
        lmq_put(&json, "tokens", lmq_json_size(n_tokens));
        lmq_put(&json, "kld",
                lmq_json_number(lmq_drift_mean_kld(&drifts[1])));
        lmq_put(&json, "logit_max_abs", lmq_json_number(drifts[1].max_abs));
        for (size_t i = 0; i < job->n_candidates; i++)
            lmq_put(&job->candidates[i].report, "floor", json_incref(json));
        json_decref(json);
    }
    lmq_drift_free(&drifts[1]);
    return status;
}
