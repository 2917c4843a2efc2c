/*
 * hparams.c - checks hyper-parameters; writes and reads them as JSON.
 *
 * One table of the numeric fields serves both directions, so a container says
 * what was read.
 */
#include "config.h"

#include "formats/hparams.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"

#define AT(field) offsetof(struct lmq_hparams, field)

/* ---- The fields ---- */

/* Those of version 1.0 are always in a container; the others only if they
 * differ from what lmq_hparams_init() says. */
enum presence { ALWAYS, SELDOM };

static const struct {
    const char *key;
    size_t offset;
    uint32_t most;
    enum presence presence;
    bool may_be_zero;
} counts[] = {
    {"n_layers", AT(n_layers), LMQ_MAX_LAYERS, ALWAYS, false},
    {"dim", AT(dim), LMQ_MAX_WIDTH, ALWAYS, false},
    {"hidden_dim", AT(hidden_dim), LMQ_MAX_WIDTH, ALWAYS, false},
    {"n_heads", AT(n_heads), LMQ_MAX_HEADS, ALWAYS, false},
    {"n_kv_heads", AT(n_kv_heads), LMQ_MAX_HEADS, ALWAYS, false},
    {"head_dim", AT(head_dim), LMQ_MAX_WIDTH, ALWAYS, false},
    {"vocab_size", AT(vocab_size), LMQ_MAX_WIDTH, ALWAYS, false},
    {"context", AT(context), LMQ_MAX_CONTEXT, ALWAYS, false},
    {"sliding_window", AT(sliding_window), LMQ_MAX_CONTEXT, ALWAYS, true},
    {"rope_context", AT(rope_context), LMQ_MAX_CONTEXT, ALWAYS, true},
    {"value_dim", AT(value_dim), LMQ_MAX_WIDTH, SELDOM, true},
    {"q_lora_rank", AT(q_lora_rank), LMQ_MAX_WIDTH, SELDOM, true},
    {"kv_lora_rank", AT(kv_lora_rank), LMQ_MAX_WIDTH, SELDOM, true},
    {"rotary_dim", AT(rotary_dim), LMQ_MAX_WIDTH, SELDOM, true},
    {"n_experts", AT(n_experts), LMQ_MAX_EXPERTS, SELDOM, true},
    {"n_experts_used", AT(n_experts_used), LMQ_MAX_EXPERTS, SELDOM, true},
    {"expert_dim", AT(expert_dim), LMQ_MAX_WIDTH, SELDOM, true},
    {"shared_dim", AT(shared_dim), LMQ_MAX_WIDTH, SELDOM, true},
    {"n_expert_groups", AT(n_expert_groups), LMQ_MAX_EXPERTS, SELDOM, true},
    {"n_expert_groups_used", AT(n_expert_groups_used), LMQ_MAX_EXPERTS,
     SELDOM, true},
};

static const struct {
    const char *key;
    size_t offset;
    enum presence presence;
} reals[] = {
    {"norm_eps", AT(norm_eps), ALWAYS},
    {"rope_theta", AT(rope_theta), ALWAYS},
    {"rope_factor", AT(rope_factor), ALWAYS},
    {"rope_low_factor", AT(rope_low_factor), ALWAYS},
    {"rope_high_factor", AT(rope_high_factor), ALWAYS},
    {"rope_local_theta", AT(rope_local_theta), SELDOM},
    {"rope_beta_fast", AT(rope_beta_fast), SELDOM},
    {"rope_beta_slow", AT(rope_beta_slow), SELDOM},
    {"rope_attention_factor", AT(rope_attention_factor), SELDOM},
    {"embedding_scale", AT(embedding_scale), SELDOM},
    {"residual_scale", AT(residual_scale), SELDOM},
    {"logit_scale", AT(logit_scale), SELDOM},
    {"logit_softcap", AT(logit_softcap), SELDOM},
    {"attn_scale", AT(attn_scale), SELDOM},
    {"attn_softcap", AT(attn_softcap), SELDOM},
    {"qkv_clip", AT(qkv_clip), SELDOM},
    {"router_scale", AT(router_scale), SELDOM},
};

static const struct {
    const char *key;
    size_t offset;
} switches[] = {
    {"gated", AT(is_gated)},
    {"sinks", AT(has_sinks)},
    {"router_renormalises", AT(router_renormalises)},
    {"router_corrects", AT(router_corrects)},
};

/* Kinds by name, in the order of their enumerators. */
#define MOST_KINDS 9
static const struct {
    const char *key;
    const char *what; /* for a message */
    size_t offset;
    enum presence presence;
    const char *names[MOST_KINDS]; /* ends with NULL */
} kinds[] = {
    {"rope_scaling", "rotary scaling", AT(rope_scaling), ALWAYS,
     {"none", "linear", "llama3", "ntk", "dynamic", "yarn", "longrope",
      "factors", NULL}},
    {"norm", "norm", AT(norm), SELDOM,
     {"rms", "layer", "layer_plain", NULL}},
    {"norm_place", "place of norms", AT(norm_place), SELDOM,
     {"before", "after", "around", NULL}},
    {"residual", "residual", AT(residual), SELDOM,
     {"sequential", "parallel", "parallel_one_norm", NULL}},
    {"qk_norm", "norm of queries and keys", AT(qk_norm), SELDOM,
     {"none", "head", "heads", "whole", NULL}},
    {"positions", "kind of positions", AT(positions), SELDOM,
     {"rotary", "learned", "alibi", "none", "alibi_scaled", NULL}},
    {"activation", "activation", AT(activation), SELDOM,
     {"silu", "gelu", "gelu_tanh", "relu", "sigmoid", NULL}},
    {"router", "router", AT(router), SELDOM,
     {"softmax", "softmax_chosen", "sigmoid", NULL}},
    {"expert_group_worth", "worth of expert groups", AT(expert_group_worth),
     SELDOM,
     {"best", "best_two", NULL}},
};

/* Lists of layers, by what is different in them. */
static const struct {
    const char *key;
    enum lmq_layer_kind kind;
} layer_lists[] = {
    {"full_layers", LMQ_LAYER_FULL},
    {"still_layers", LMQ_LAYER_STILL},
    {"dense_layers", LMQ_LAYER_DENSE},
};

static const struct {
    const char *key;
    size_t offset;
} factor_lists[] = {
    {"rope_short", AT(rope_short)},
    {"rope_long", AT(rope_long)},
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static void *
at(struct lmq_hparams *hparams, size_t offset)
{
    return (char *)hparams + offset;
}

static const void *
at_const(const struct lmq_hparams *hparams, size_t offset)
{
    return (const char *)hparams + offset;
}

static uint32_t
count_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const uint32_t *)at_const(hparams, offset);
}

static double
real_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const double *)at_const(hparams, offset);
}

static bool
switch_at(const struct lmq_hparams *hparams, size_t offset)
{
    return *(const bool *)at_const(hparams, offset);
}

/* All enumerations are small and not negative. */
static int
kind_at(const struct lmq_hparams *hparams, size_t offset)
{
    int kind;

    memcpy(&kind, at_const(hparams, offset), sizeof(kind));
    return kind;
}

void
lmq_hparams_init(struct lmq_hparams *hparams)
{
    *hparams = (struct lmq_hparams){
        .norm_eps = 1e-5,
        .embedding_scale = 1,
        .residual_scale = 1,
        .logit_scale = 1,
        .rope_theta = 10000,
        .rope_factor = 1,
        .rope_beta_fast = 32,
        .rope_beta_slow = 1,
        .rope_attention_factor = 1,
        .is_gated = true,
        .router_scale = 1,
        .bos = -1,
    };
}

uint32_t
lmq_hparams_rotary_dim(const struct lmq_hparams *hparams)
{
    if (hparams->positions != LMQ_POSITIONS_ROTARY)
        return 0;
    return hparams->rotary_dim == 0 ? hparams->head_dim : hparams->rotary_dim;
}

uint32_t
lmq_hparams_value_dim(const struct lmq_hparams *hparams)
{
    return hparams->value_dim == 0 ? hparams->head_dim : hparams->value_dim;
}

void
lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
{
    va_list args;

    if (hparams->unsupported[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(hparams->unsupported, sizeof(hparams->unsupported), format,
              args);
    va_end(args);
}

void
lmq_hparams_settle(struct lmq_hparams *h)
{
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    if (h->value_dim == h->head_dim)
        h->value_dim = 0;
    if (h->rotary_dim == h->head_dim || h->positions != LMQ_POSITIONS_ROTARY)
        h->rotary_dim = 0;
    if (h->rope_scaling == LMQ_ROPE_PLAIN) {
        h->rope_factor = usual.rope_factor;
        h->rope_low_factor = usual.rope_low_factor;
        h->rope_high_factor = usual.rope_high_factor;
        h->rope_context = usual.rope_context;
    }
    if (h->rope_scaling != LMQ_ROPE_YARN) {
        h->rope_beta_fast = usual.rope_beta_fast;
        h->rope_beta_slow = usual.rope_beta_slow;
    }
    if (h->n_experts == 0) {
        h->n_experts_used = h->expert_dim = h->shared_dim = 0;
        h->n_expert_groups = h->n_expert_groups_used = 0;
        h->router = usual.router;
        h->router_scale = usual.router_scale;
        h->router_renormalises = h->router_corrects = false;
    }
}

/* ---- Checking ---- */

static enum lmq_status
check_numbers(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        uint32_t value = count_at(h, counts[i].offset);
        if (value > counts[i].most || (value == 0 && !counts[i].may_be_zero))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %u, expected %d to %u", counts[i].key,
                            value, counts[i].may_be_zero ? 0 : 1,
                            counts[i].most);
    }
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        double value = real_at(h, reals[i].offset);
        if (!isfinite(value) || value < 0 || value > 1e30)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %g, expected a number from 0", reals[i].key,
                            value);
    }
    return LMQ_OK;
}

static enum lmq_status
check_heads(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t rotary = lmq_hparams_rotary_dim(h);

    if (h->n_heads % h->n_kv_heads != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u heads cannot share %u key/value heads evenly",
                        h->n_heads, h->n_kv_heads);
    if (rotary % 2 != 0 || rotary > h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rotary positions need an even number of dimensions, "
                        "at most the head size %u, found %u",
                        h->head_dim, rotary);
    if ((uint64_t)h->n_heads * h->head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->n_heads * lmq_hparams_value_dim(h) > LMQ_MAX_WIDTH ||
        (uint64_t)h->kv_lora_rank + h->head_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%u heads of %u are too wide",
                        h->n_heads, h->head_dim);
    if (h->kv_lora_rank > 0 && rotary >= h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "latent attention with heads of %u, of which %u turn, "
                        "leaves nothing still",
                        h->head_dim, rotary);
    return LMQ_OK;
}

static enum lmq_status
check_rope(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->rope_theta < 1 || h->rope_theta > 1e15 || h->rope_factor < 1e-6 ||
        h->rope_factor > 1e6)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_theta is %g and rope_factor %g, expected 1 to "
                        "1e15 and 1e-6 to 1e6",
                        h->rope_theta, h->rope_factor);
    if (h->rope_local_theta != 0 &&
        (h->rope_local_theta < 1 || h->rope_local_theta > 1e15))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_local_theta is %g, expected 1 to 1e15",
                        h->rope_local_theta);
    bool has_factors = h->rope_scaling == LMQ_ROPE_LONGROPE ||
                       h->rope_scaling == LMQ_ROPE_FACTORS;
    if (!has_factors)
        return LMQ_OK;
    if (h->n_rope_factors != lmq_hparams_rotary_dim(h) / 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "there are %u rotary factors, expected %u",
                        h->n_rope_factors, lmq_hparams_rotary_dim(h) / 2);
    for (uint32_t i = 0; i < h->n_rope_factors; i++)
        if (!(h->rope_short[i] >= 1e-6 && h->rope_short[i] <= 1e9) ||
            (h->rope_scaling == LMQ_ROPE_LONGROPE &&
             !(h->rope_long[i] >= 1e-6 && h->rope_long[i] <= 1e9)))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "rotary factor %u is %g or %g, expected 1e-6 to "
                            "1e9",
                            i, h->rope_short[i], h->rope_long[i]);
    return LMQ_OK;
}

static enum lmq_status
check_experts(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t groups = h->n_expert_groups;

    if (h->n_experts == 0)
        return LMQ_OK;
    if (h->n_experts_used == 0 || h->n_experts_used > h->n_experts ||
        h->expert_dim == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u experts of %u dimensions make no model",
                        h->n_experts_used, h->n_experts, h->expert_dim);
    if (groups > 0 &&
        (h->n_experts % groups != 0 || h->n_expert_groups_used == 0 ||
         h->n_expert_groups_used > groups ||
         (uint64_t)h->n_expert_groups_used * (h->n_experts / groups) <
             h->n_experts_used))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u groups do not give %u of %u experts",
                        h->n_expert_groups_used, groups, h->n_experts_used,
                        h->n_experts);
    return LMQ_OK;
}

enum lmq_status
lmq_hparams_check(const struct lmq_hparams *hparams, struct lmq_error *err)
{
    enum lmq_status status = check_numbers(hparams, err);

    if (status == LMQ_OK)
        status = check_heads(hparams, err);
    if (status == LMQ_OK)
        status = check_rope(hparams, err);
    if (status == LMQ_OK)
        status = check_experts(hparams, err);
    return status;
}

/* What a model can differ in and still be put side by side with another. */
static bool
is_free(size_t offset)
{
    return offset == AT(context) || offset == AT(sliding_window) ||
           offset == AT(rope_context) || offset == AT(rope_scaling);
}

const char *
lmq_hparams_difference(const struct lmq_hparams *a,
                       const struct lmq_hparams *b)
{
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (count_at(a, counts[i].offset) != count_at(b, counts[i].offset) &&
            !is_free(counts[i].offset))
            return counts[i].key;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kind_at(a, kinds[i].offset) != kind_at(b, kinds[i].offset) &&
            !is_free(kinds[i].offset))
            return kinds[i].key;
    for (size_t i = 0; i < COUNT_OF(switches); i++)
        if (switch_at(a, switches[i].offset) !=
            switch_at(b, switches[i].offset))
            return switches[i].key;
    for (uint32_t i = 0; i < a->n_layers; i++)
        if (lmq_layer_is(a, i, LMQ_LAYER_DENSE) !=
            lmq_layer_is(b, i, LMQ_LAYER_DENSE))
            return "dense_layers";
    return NULL;
}

/* ---- To JSON ---- */

static json_t *
layers_to_json(const struct lmq_hparams *hparams, enum lmq_layer_kind kind)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_layers; i++)
        if (lmq_layer_is(hparams, i, kind))
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *
factors_to_json(const struct lmq_hparams *hparams, size_t offset)
{
    const double *factors = at_const(hparams, offset);
    json_t *list = json_array();

    for (uint32_t i = 0; i < hparams->n_rope_factors; i++)
        json_array_append_new(list, lmq_json_number(factors[i]));
    return list;
}

/* What version 1.0 does not know. */
static json_t *
extras_to_json(const struct lmq_hparams *h)
{
    struct lmq_hparams usual;
    json_t *json = json_object();

    lmq_hparams_init(&usual);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (counts[i].presence == SELDOM &&
            count_at(h, counts[i].offset) != count_at(&usual, counts[i].offset))
            json_object_set_new(json, counts[i].key,
                                json_integer(count_at(h, counts[i].offset)));
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        double value = real_at(h, reals[i].offset);
        double normal = real_at(&usual, reals[i].offset);
        if (reals[i].presence == SELDOM && (value < normal || value > normal))
            json_object_set_new(json, reals[i].key, lmq_json_number(value));
    }
    for (size_t i = 0; i < COUNT_OF(switches); i++)
        if (switch_at(h, switches[i].offset) !=
            switch_at(&usual, switches[i].offset))
            json_object_set_new(json, switches[i].key,
                                json_boolean(switch_at(h, switches[i].offset)));
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].presence == SELDOM &&
            kind_at(h, kinds[i].offset) != kind_at(&usual, kinds[i].offset))
            json_object_set_new(
                json, kinds[i].key,
                json_string(kinds[i].names[kind_at(h, kinds[i].offset)]));
    for (size_t i = 0; i < COUNT_OF(layer_lists); i++) {
        json_t *list = layers_to_json(h, layer_lists[i].kind);
        if (json_array_size(list) > 0)
            json_object_set(json, layer_lists[i].key, list);
        json_decref(list);
    }
    for (size_t i = 0; i < COUNT_OF(factor_lists) && h->n_rope_factors > 0; i++)
        json_object_set_new(json, factor_lists[i].key,
                            factors_to_json(h, factor_lists[i].offset));
    return json;
}

json_t *
lmq_hparams_to_json(const struct lmq_hparams *hparams, bool *is_newer)
{
    json_t *json = json_object(), *eos = json_array();
    json_t *extras = extras_to_json(hparams);

    json_object_set_new(json, "architecture",
                        lmq_json_text(hparams->architecture));
    if (hparams->unsupported[0] != '\0')
        json_object_set_new(json, "unsupported",
                            lmq_json_text(hparams->unsupported));
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (counts[i].presence == ALWAYS)
            json_object_set_new(
                json, counts[i].key,
                json_integer(count_at(hparams, counts[i].offset)));
    for (size_t i = 0; i < COUNT_OF(reals); i++)
        if (reals[i].presence == ALWAYS)
            json_object_set_new(
                json, reals[i].key,
                lmq_json_number(real_at(hparams, reals[i].offset)));
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].presence == ALWAYS)
            json_object_set_new(
                json, kinds[i].key,
                json_string(
                    kinds[i].names[kind_at(hparams, kinds[i].offset)]));
    if (hparams->bos >= 0)
        json_object_set_new(json, "bos", json_integer(hparams->bos));
    for (uint32_t i = 0; i < hparams->n_eos; i++)
        json_array_append_new(eos, json_integer(hparams->eos[i]));
    json_object_set_new(json, "eos", eos);
    if (is_newer != NULL)
        *is_newer = json_object_size(extras) > 0;
    json_object_update(json, extras);
    json_decref(extras);
    return json;
}

/* ---- From JSON ---- */

static enum lmq_status
read_numbers(const json_t *json, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        const json_t *value = json_object_get(json, counts[i].key);
        json_int_t count = json_integer_value(value);
        if (value == NULL && counts[i].presence == SELDOM)
            continue;
        if (!json_is_integer(value) || count < 0 || count > counts[i].most)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number up to %u",
                            counts[i].key, counts[i].most);
        *(uint32_t *)at(hparams, counts[i].offset) = (uint32_t)count;
    }
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        const json_t *value = json_object_get(json, reals[i].key);
        if (value == NULL && reals[i].presence == SELDOM)
            continue;
        if (!json_is_number(value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is no number", reals[i].key);
        *(double *)at(hparams, reals[i].offset) = json_number_value(value);
    }
    return LMQ_OK;
}

static enum lmq_status
read_switches(const json_t *json, struct lmq_hparams *hparams,
              struct lmq_error *err)
{
    for (size_t i = 0; i < COUNT_OF(switches); i++) {
        const json_t *value = json_object_get(json, switches[i].key);
        if (value == NULL)
            continue;
        if (!json_is_boolean(value))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s is neither true nor false",
                            switches[i].key);
        *(bool *)at(hparams, switches[i].offset) = json_is_true(value);
    }
    return LMQ_OK;
}

static void
read_kinds(const json_t *json, struct lmq_hparams *hparams)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const json_t *value = json_object_get(json, kinds[i].key);
        const char *name = json_string_value(value);
        int kind = 0;
        if (value == NULL && kinds[i].presence == SELDOM)
            continue;
        while (kinds[i].names[kind] != NULL &&
               (name == NULL || strcmp(name, kinds[i].names[kind]) != 0))
            kind++;
        if (kinds[i].names[kind] != NULL)
            memcpy(at(hparams, kinds[i].offset), &kind, sizeof(kind));
        else
            lmq_hparams_refuse(hparams, "%s '%.60s'", kinds[i].what,
                               name == NULL ? "" : name);
    }
}

static enum lmq_status
read_layers(const json_t *json, struct lmq_hparams *hparams,
            struct lmq_error *err)
{
    for (size_t i = 0; i < COUNT_OF(layer_lists); i++) {
        json_t *list = json_object_get(json, layer_lists[i].key), *layer;
        size_t j;
        if (list != NULL && !json_is_array(list))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s are no list", layer_lists[i].key);
        json_array_foreach(list, j, layer) {
            json_int_t number = json_integer_value(layer);
            if (!json_is_integer(layer) || number < 0 ||
                number >= hparams->n_layers)
                return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                                "the model's %s name a layer that it does "
                                "not have",
                                layer_lists[i].key);
            hparams->layers[number] |= (unsigned char)layer_lists[i].kind;
        }
    }
    return LMQ_OK;
}

static enum lmq_status
read_factors(const json_t *json, struct lmq_hparams *hparams,
             struct lmq_error *err)
{
    for (size_t i = 0; i < COUNT_OF(factor_lists); i++) {
        json_t *list = json_object_get(json, factor_lists[i].key), *factor;
        double *factors = at(hparams, factor_lists[i].offset);
        size_t j, n = json_array_size(list);
        if (list == NULL)
            continue;
        if (!json_is_array(list) || n > LMQ_MAX_ROPE_FACTORS ||
            (i > 0 && n != hparams->n_rope_factors))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the model's %s are no list of up to %d numbers, "
                            "as many as of the other kind",
                            factor_lists[i].key, LMQ_MAX_ROPE_FACTORS);
        hparams->n_rope_factors = (uint32_t)n;
        json_array_foreach(list, j, factor)
            factors[j] = json_number_value(factor);
    }
    return LMQ_OK;
}

static void
read_text(const json_t *json, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(json, key));

    snprintf(text, size, "%s", value == NULL ? "" : value);
}

static void
read_ids(const json_t *json, struct lmq_hparams *hparams)
{
    const json_t *bos = json_object_get(json, "bos");
    json_t *eos = json_object_get(json, "eos"), *id;
    size_t i;

    if (json_is_integer(bos) && json_integer_value(bos) >= 0 &&
        json_integer_value(bos) <= INT32_MAX)
        hparams->bos = (int32_t)json_integer_value(bos);
    json_array_foreach(eos, i, id)
        if (json_is_integer(id) && json_integer_value(id) >= 0 &&
            json_integer_value(id) <= INT32_MAX && hparams->n_eos < LMQ_MAX_EOS)
            hparams->eos[hparams->n_eos++] = (int32_t)json_integer_value(id);
}

enum lmq_status
lmq_hparams_from_json(const json_t *json, struct lmq_hparams *hparams,
                      struct lmq_error *err)
{
    lmq_hparams_init(hparams);
    enum lmq_status status = read_numbers(json, hparams, err);
    if (status == LMQ_OK)
        status = read_switches(json, hparams, err);
    if (status == LMQ_OK)
        status = read_layers(json, hparams, err);
    if (status == LMQ_OK)
        status = read_factors(json, hparams, err);
    if (status != LMQ_OK)
        return status;
    read_text(json, "architecture", hparams->architecture,
              sizeof(hparams->architecture));
    read_text(json, "unsupported", hparams->unsupported,
              sizeof(hparams->unsupported));
    read_kinds(json, hparams);
    read_ids(json, hparams);
    return LMQ_OK;
}
