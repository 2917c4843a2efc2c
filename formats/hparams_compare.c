/*
 * hparams_compare.c - whether two descriptions are of the same model.
 *
 * A description is settled first: what has no consequence, or can be said in
 * two ways, gets one form. Then the two are compared as JSON, key by key.
 */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "formats/hparams.h"

/* A float32 keeps seven digits. */
#define TOLERANCE 2e-7

/* ---- Settling ---- */

static double
llama3_factor(const struct lmq_hparams *h, double frequency)
{
    double turns = h->rope_context * frequency / (2 * acos(-1.0));

    if (turns > h->rope_high_factor)
        return 1;
    if (turns < h->rope_low_factor)
        return h->rope_factor;
    double smooth = (turns - h->rope_low_factor) /
                    (h->rope_high_factor - h->rope_low_factor);
    return 1 / ((1 - smooth) / h->rope_factor + smooth);
}

void
lmq_hparams_settle_rope(struct lmq_hparams *h)
{
    uint32_t rotary = lmq_hparams_rotary_dim(h);

    if (h->rope_scaling == LMQ_ROPE_NTK && rotary > 2) {
        h->rope_theta *= pow(h->rope_factor, rotary / (rotary - 2.0));
        h->rope_scaling = LMQ_ROPE_PLAIN;
    } else if (h->rope_scaling == LMQ_ROPE_LLAMA3 &&
               rotary / 2 <= LMQ_MAX_ROPE_FACTORS) {
        for (uint32_t i = 0; i < rotary / 2; i++)
            h->rope_short[i] =
                llama3_factor(h, pow(h->rope_theta, -2.0 * i / rotary));
        h->n_rope_factors = rotary / 2;
        h->rope_scaling = LMQ_ROPE_FACTORS;
    }
    if (h->rope_scaling == LMQ_ROPE_PLAIN ||
        h->rope_scaling == LMQ_ROPE_FACTORS)
        h->rope_factor = 1;
}

static void
clear_kind(struct lmq_hparams *h, enum lmq_layer_kind kind)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i] &= (unsigned char)~(unsigned)kind;
}

static void
settle_positions(struct lmq_hparams *h)
{
    bool is_yarn = h->rope_scaling == LMQ_ROPE_YARN;

    lmq_hparams_settle_rope(h);
    h->rotary_dim = lmq_hparams_rotary_dim(h);
    h->rope_low_factor = h->rope_high_factor = 0;
    if (!is_yarn && h->rope_scaling != LMQ_ROPE_LINEAR)
        h->rope_factor = 1;
    if (!is_yarn)
        h->rope_beta_fast = h->rope_beta_slow = 0;
    if (!is_yarn && h->rope_scaling != LMQ_ROPE_LONGROPE)
        h->rope_context = 0;
    if (h->positions != LMQ_POSITIONS_ROTARY) {
        h->rope_theta = 10000; /* whatever: nothing turns */
        clear_kind(h, LMQ_LAYER_STILL);
    }
    if (h->sliding_window >= h->context && !(h->rope_local_theta > 0))
        h->sliding_window = 0;
    if (h->sliding_window == 0) {
        h->rope_local_theta = 0;
        clear_kind(h, LMQ_LAYER_FULL);
    }
}

static void
settle_experts(struct lmq_hparams *h)
{
    bool has_dense = h->n_experts == 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_dense |= !lmq_layer_has_experts(h, i);
    if (!has_dense)
        h->hidden_dim = 0;
    if (h->router == LMQ_ROUTER_SOFTMAX_CHOSEN) {
        h->router = LMQ_ROUTER_SOFTMAX;
        h->router_renormalises = true;
    }
    if (h->n_expert_groups <= 1)
        h->n_expert_groups = h->n_expert_groups_used = 0;
    if (h->n_expert_groups == 0)
        h->expert_group_worth = 0;
    if (h->n_experts > 0)
        return;
    h->n_experts_used = h->expert_dim = h->shared_dim = 0;
    h->router = 0;
    h->router_renormalises = h->router_corrects = false;
    h->router_scale = 1;
    clear_kind(h, LMQ_LAYER_DENSE);
}

static void
settle(struct lmq_hparams *h)
{
    h->architecture[0] = h->unsupported[0] = '\0';
    h->bos = -1;
    h->n_eos = 0;
    h->value_dim = lmq_hparams_value_dim(h);
    if (!(h->attn_scale > 0))
        h->attn_scale = 1 / sqrt((double)h->head_dim);
    settle_positions(h);
    settle_experts(h);
}

/* ---- Comparing ---- */

static bool
is_same(const json_t *a, const json_t *b)
{
    size_t n = json_array_size(a);

    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return fabs(x - y) <= TOLERANCE * fmax(fabs(x), fabs(y));
    }
    if (!json_is_array(a) || !json_is_array(b))
        return json_equal(a, b) != 0;
    if (json_array_size(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_same(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return true;
}

json_t *
lmq_hparams_compare(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    struct lmq_hparams one = *a, two = *b;
    json_t *differences = json_array(), *value;
    const char *key;

    settle(&one);
    settle(&two);
    json_t *said = lmq_hparams_to_json(&one, NULL);
    json_t *heard = lmq_hparams_to_json(&two, NULL);
    /* Each with what only the other one has. */
    json_object_foreach(heard, key, value)
        if (json_object_get(said, key) == NULL)
            lmq_put(&said, key, json_null());
    if (said == NULL || heard == NULL) {
        json_decref(differences);
        differences = NULL;
    }
    json_object_foreach(said, key, value) {
        json_t *other = json_object_get(heard, key);
        if (is_same(value, other) || (json_is_null(value) && other == NULL))
            continue;
        json_t *difference = json_object();
        lmq_put(&difference, "key", json_string(key));
        lmq_put(&difference, "a", json_incref(value));
        lmq_put(&difference, "b",
                            other == NULL ? json_null() : json_incref(other));
        lmq_append(&differences, difference);
    }
    json_decref(said);
    json_decref(heard);
    return differences;
}
