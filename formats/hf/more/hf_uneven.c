/*
 * hf_uneven.c - what families whose layers differ in heads and widths do in
 * config.json beside their rows: Laguna, Step 3.5, OpenELM, DeciLM.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* A number for each layer, if there is such a list. */
static void
read_numbers(struct lmq_hf_config *config, const char *key, uint32_t most,
             uint32_t *each)
{
    const json_t *list = lmq_hf_list(config, config->json, key);

    if (list == NULL)
        return;
    lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        int64_t number = lmq_hf_number(config, json_array_get(list, i), key);
        if (number < 1 || number > most) {
            lmq_hf_fail(config, "'%s' in the configuration is %lld for layer "
                                "%u, expected 1 to %u",
                        key, (long long)number, i, most);
            return;
        }
        each[i] = (uint32_t)number;
    }
}

/* ---- Laguna ---- */

/* true is one gate for each head, too; whatever is no word that the library
 * knows it takes for a gate of each number. */
static void
read_gates(struct lmq_hf_config *config)
{
    static const char key[] = "gating";
    const json_t *said = json_object_get(config->json, key);
    const char *word = json_string_value(said);
    struct lmq_hparams *h = config->hparams;

    h->has_attn_gate = h->has_softplus_gate = true;
    h->has_head_gate = said == NULL || json_is_true(said) ||
                       (word != NULL && strcmp(word, "per-head") == 0);
    if (!h->has_head_gate &&
        (word == NULL || strcmp(word, "per-element") != 0))
        lmq_hparams_refuse(h, "'%s' that is neither true, 'per-head' nor "
                              "'per-element'",
                           key);
}

void
lmq_hf_finish_laguna(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    bool has_window = false;

    read_numbers(config, "num_attention_heads_per_layer", LMQ_MAX_HEADS,
                 h->layer_heads);
    read_gates(config);
    lmq_hf_mark_dense(config, 1, 1);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        has_window |= lmq_layer_window(h, i) > 0;
    if (!has_window)
        h->rotary_dim = h->full_rotary_dim;
}

/* ---- Step 3.5 ---- */

/* Lists of layers count those for more tokens, too. */
void
lmq_hf_begin_step35(struct lmq_hf_config *config)
{
    lmq_hf_read_further(config, "num_nextn_predict_layers");
}

static bool
differ(double a, double b)
{
    return a < b || a > b;
}

/* A number for all layers, or a list of one for each: of layers that see
 * everything, and of those with a window, all of a kind alike. null is `none`.
 * Without layers of a kind its number is that of the other. */
static void
read_by_kind(struct lmq_hf_config *config, const char *key, double absent,
             double *full, double *near)
{
    const json_t *said = json_object_get(config->json, key);
    bool has_full = false, has_near = false;

    *full = *near = absent;
    if (!json_is_array(said)) {
        *full = *near = lmq_hf_real(config, config->json, key, absent);
        return;
    }
    lmq_hf_expect_layers(config, key, json_array_size(said));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const json_t *item = json_array_get(said, i);
        bool is_near = lmq_layer_window(config->hparams, i) > 0;
        bool *has = is_near ? &has_near : &has_full;
        double number = json_number_value(item);
        if (!json_is_number(item))
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "numbers",
                        key);
        if (*has && differ(is_near ? *near : *full, number))
            lmq_hparams_refuse(config->hparams,
                               "layers of one kind that differ in '%s'", key);
        *(is_near ? near : full) = number;
        *has = true;
    }
    if (!has_full)
        *full = *near;
    if (!has_near)
        *near = *full;
}

static uint32_t
rotary_dim_of(struct lmq_hf_config *config, double part)
{
    if (part > 0 && part <= 1)
        return (uint32_t)(config->hparams->head_dim * part);
    lmq_hf_fail(config, "'partial_rotary_factors' in the configuration has a "
                        "%g",
                part);
    return 0;
}

/* Layers with a window turn by a base of their own, another part of a head, and
 * unscaled. */
static void
read_turning(struct lmq_hf_config *config)
{
    static const char scaled[] = "yarn_only_types";
    const json_t *types = json_object_get(config->json, scaled);
    const char *only = json_string_value(json_array_get(types, 0));
    struct lmq_hparams *h = config->hparams;
    double part, near_part;

    read_by_kind(config, "rope_theta", 10000, &h->rope_theta,
                 &h->rope_local_theta);
    read_by_kind(config, "partial_rotary_factors", 1, &part, &near_part);
    h->full_rotary_dim = rotary_dim_of(config, part);
    h->rotary_dim = rotary_dim_of(config, near_part);
    if (h->rope_scaling != LMQ_ROPE_PLAIN &&
        (json_array_size(types) != 1 || only == NULL ||
         strcmp(only, "full_attention") != 0))
        lmq_hparams_refuse(h, "rotary scaling of other layers than "
                              "'full_attention' in '%s'",
                           scaled);
}

/* Layers with a window may have other heads. */
static void
read_other_heads(struct lmq_hf_config *config)
{
    const json_t *other =
        lmq_hf_object(config, config->json, "attention_other_setting");
    struct lmq_hparams *h = config->hparams;
    uint32_t heads =
        lmq_hf_count(config, other, "num_attention_heads", h->n_heads);
    uint32_t groups =
        lmq_hf_count(config, other, "num_attention_groups", h->n_kv_heads);

    if (strcmp(lmq_hf_text(config, other, "attention_type",
                           "sliding_attention"),
               "sliding_attention") != 0 ||
        lmq_hf_count(config, other, "head_dim", h->head_dim) != h->head_dim)
        lmq_hparams_refuse(h, "an 'attention_other_setting' of other layers "
                              "or of other widths of heads");
    if (heads == 0 || heads > LMQ_MAX_HEADS || groups == 0 ||
        groups > LMQ_MAX_HEADS)
        lmq_hf_fail(config, "%u heads that share %u keys make no model", heads,
                    groups);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        bool is_near = lmq_layer_window(h, i) > 0;
        h->layer_heads[i] = is_near ? heads : h->n_heads;
        h->layer_kv_heads[i] = is_near ? groups : h->n_kv_heads;
    }
}

/* 0 and null are none. */
static void
read_limits(struct lmq_hf_config *config, const char *key, double *limit,
            enum lmq_layer_kind kind)
{
    const json_t *list = lmq_hf_list(config, config->json, key);

    if (list == NULL)
        return;
    lmq_hf_expect_layers(config, key, json_array_size(list));
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        const json_t *item = json_array_get(list, i);
        double number = json_number_value(item);
        if (json_is_null(item) || (json_is_number(item) && number == 0))
            continue;
        if (!json_is_number(item) || !(number > 0))
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "limits",
                        key);
        if (*limit > 0 && differ(*limit, number))
            lmq_hparams_refuse(config->hparams, "layers that differ in '%s'",
                               key);
        *limit = number;
        lmq_hf_mark(config, i, kind);
    }
}

/* The numbers of layers with experts, with commas between them; without them
 * all but the first. */
static void
read_dense(struct lmq_hf_config *config)
{
    static const char key[] = "moe_layers_enum";
    const char *at = lmq_hf_text(config, config->json, key, NULL);
    const char *text = at;

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (text != NULL || i == 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
    while (at != NULL) {
        char *end;
        long layer = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0' && *end != ' ')) {
            lmq_hf_fail(config, "'%s' in the configuration is '%.60s', "
                                "expected numbers of layers",
                        key, text);
            return;
        }
        lmq_hf_unmark(config, layer, LMQ_LAYER_DENSE);
        end += strspn(end, " ");
        at = *end == ',' ? end + 1 : NULL;
    }
}

/* Whether there are gates versions of the class take differently, where it is
 * not said. */
void
lmq_hf_finish_step35(struct lmq_hf_config *config)
{
    static const char gates[] = "use_head_wise_attn_gate";
    struct lmq_hparams *h = config->hparams;
    const json_t *turning =
        lmq_hf_list(config, config->json, "use_rope_layers");

    read_turning(config);
    read_other_heads(config);
    read_dense(config);
    read_limits(config, "swiglu_limits", &h->expert_act_limit,
                LMQ_LAYER_LIMITED_EXPERTS);
    read_limits(config, "swiglu_limits_shared", &h->act_limit,
                LMQ_LAYER_LIMITED);
    if (!lmq_hf_has(config->json, gates))
        lmq_hparams_refuse(h, "a model of this kind without '%s'", gates);
    if (!lmq_hf_has(config->json, "layer_types"))
        lmq_hparams_refuse(h, "a model of this kind without 'layer_types'");
    for (size_t i = 0; i < json_array_size(turning); i++) {
        const json_t *item = json_array_get(turning, i);
        if (!json_is_true(item) && json_integer_value(item) == 0)
            lmq_hparams_refuse(h, "layers without positions in "
                                  "'use_rope_layers'");
    }
    h->has_attn_gate = h->has_head_gate =
        lmq_hf_switch(config, config->json, gates, false);
    lmq_hf_route_by_sigmoid(h);
    h->router_renormalises = true;
}

/* ---- Maple ---- */

/* How far gates and what they multiply go is in its makers' code alone. */
void
lmq_hf_finish_maple(struct lmq_hf_config *config)
{
    static const char still[] = "nope_on_global_attention";
    struct lmq_hparams *h = config->hparams;

    if (!lmq_hf_switch(config, config->json, still, false))
        lmq_hparams_refuse(h, "a model of this kind without '%s'", still);
    if (!lmq_hf_has(config->json, "layer_types"))
        lmq_hparams_refuse(h, "a model of this kind without 'layer_types'");
    lmq_hf_finish_still_full(config);
    h->router_renormalises = true;
    h->glu_limit = 7;
}

/* ---- OpenELM ---- */

/* The multiple of `divisor` that is nearest, but not much below. */
static uint32_t
divisible(struct lmq_hf_config *config, double width, uint32_t divisor)
{
    if (!(width >= 0 && width <= LMQ_MAX_WIDTH) || divisor == 0) {
        lmq_hf_fail(config, "a width of %g in steps of %u makes no model",
                    width, divisor);
        return 1;
    }
    uint64_t near = (uint64_t)(width + divisor / 2.0) / divisor * divisor;
    if (near < divisor)
        near = divisor;
    if ((double)near < 0.9 * width)
        near += divisor;
    return lmq_hf_width(config, near, 1);
}

/* One factor for all layers; two, of the first and of the last, with those
 * between them in even steps, of two digits; or, where `may_list`, one for each
 * layer. */
static double
factor_of(struct lmq_hf_config *config, const char *key, double absent,
          uint32_t layer, bool may_list)
{
    const json_t *said = json_object_get(config->json, key);
    uint32_t n_layers = config->hparams->n_layers;
    size_t n = json_array_size(said);

    if (!json_is_array(said))
        return lmq_hf_real(config, config->json, key, absent);
    for (size_t i = 0; i < n; i++)
        if (!json_is_number(json_array_get(said, i)))
            lmq_hf_fail(config, "'%s' in the configuration is no list of "
                                "numbers",
                        key);
    if (n != 2 && !(may_list && n == n_layers)) {
        lmq_hf_fail(config, "'%s' in the configuration has %zu numbers, for "
                            "%u layers",
                    key, n, n_layers);
        return absent;
    }
    if (n != 2)
        return json_number_value(json_array_get(said, layer));
    double first = json_number_value(json_array_get(said, 0));
    double last = json_number_value(json_array_get(said, 1));
    double step = n_layers > 1 ? (last - first) / (n_layers - 1) : 0;
    double between = layer + 1 < n_layers || layer == 0 ? first + layer * step
                                                        : last;
    return rint(between * 100) / 100;
}

/* Heads and widths follow from factors; the class does not read the numbers of
 * heads that files have beside these, and others read nothing else. */
void
lmq_hf_begin_openelm(struct lmq_hf_config *config)
{
    static const char queries[] = "num_query_heads", keys[] = "num_kv_heads";
    struct lmq_hparams *h = config->hparams;
    uint32_t groups = lmq_hf_count(config, config->json, "num_gqa_groups", 1);
    uint32_t step = lmq_hf_count(config, config->json, "ffn_dim_divisor", 256);

    if (groups == 0 || groups > LMQ_MAX_HEADS || h->head_dim == 0) {
        lmq_hf_fail(config, "%u heads of %u that share a key make no model",
                    groups, h->head_dim);
        return;
    }
    read_numbers(config, queries, LMQ_MAX_HEADS, h->layer_heads);
    read_numbers(config, keys, LMQ_MAX_HEADS, h->layer_kv_heads);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++) {
        double heads = factor_of(config, "qkv_multipliers", 1, i, false);
        double width = factor_of(config, "ffn_multipliers", 4, i, true);
        uint32_t n = divisible(config, h->dim * heads,
                               lmq_hf_width(config, h->head_dim, groups)) /
                     h->head_dim;
        if ((h->layer_heads[i] != 0 && h->layer_heads[i] != n) ||
            (h->layer_kv_heads[i] != 0 &&
             h->layer_kv_heads[i] != n / groups))
            lmq_hparams_refuse(h, "'%s' or '%s' that do not follow from "
                                  "'qkv_multipliers'",
                               queries, keys);
        h->layer_heads[i] = n;
        h->layer_kv_heads[i] = n / groups;
        h->layer_hidden_dims[i] = divisible(config, h->dim * width, step);
    }
    h->n_heads = lmq_hf_layers(config) > 0 ? h->layer_heads[0] : 0;
    h->n_kv_heads = lmq_hf_layers(config) > 0 ? h->layer_kv_heads[0] : 0;
    h->hidden_dim = lmq_hf_layers(config) > 0 ? h->layer_hidden_dims[0] : 0;
}

/* ---- DeciLM ---- */

/* Of a part of a layer: nothing but what is known, and nothing that is put in
 * its place. */
static void
check_part(struct lmq_hf_config *config, const json_t *part,
           const char *const known[])
{
    void *iter = json_object_iter((json_t *)(uintptr_t)part);

    for (; iter != NULL;
         iter = json_object_iter_next((json_t *)(uintptr_t)part, iter)) {
        const char *key = json_object_iter_key(iter);
        const json_t *value = json_object_iter_value(iter);
        size_t i = 0;
        while (known[i] != NULL && strcmp(key, known[i]) != 0)
            i++;
        if (known[i] == NULL && !json_is_null(value) && !json_is_false(value))
            lmq_hparams_refuse(config->hparams, "'%.60s' in 'block_configs'",
                               key);
    }
}

static void
read_attention(struct lmq_hf_config *config, const json_t *part, uint32_t i)
{
    static const char *const known[] = {"no_op", "n_heads_in_group", NULL};
    static const char key[] = "n_heads_in_group";
    struct lmq_hparams *h = config->hparams;

    check_part(config, part, known);
    if (lmq_hf_switch(config, part, "no_op", false)) {
        lmq_hf_mark(config, i, LMQ_LAYER_FEED);
        return;
    }
    uint32_t group = lmq_hf_count(config, part, key, 0);
    if (group == 0 || h->n_heads % group != 0) {
        if (h->unsupported[0] == '\0')
            lmq_hf_fail(config, "'%s' in the configuration is %u for layer "
                                "%u, of %u heads",
                        key, group, i, h->n_heads);
        return;
    }
    h->layer_kv_heads[i] = h->n_heads / group;
}

/* Two thirds of a multiple of the width, up to a multiple of 256. */
static void
read_feed(struct lmq_hf_config *config, const json_t *part, uint32_t i)
{
    static const char *const known[] = {"no_op", "ffn_mult", NULL};
    struct lmq_hparams *h = config->hparams;

    check_part(config, part, known);
    if (lmq_hf_switch(config, part, "no_op", false)) {
        lmq_hf_mark(config, i, LMQ_LAYER_BARE);
        return;
    }
    double width = 2 * lmq_hf_real(config, part, "ffn_mult", 0) * h->dim / 3;
    if (!(width >= 1 && width <= LMQ_MAX_WIDTH)) {
        if (h->unsupported[0] == '\0')
            lmq_hf_fail(config, "'ffn_mult' in the configuration makes a "
                                "feed-forward of %g in layer %u",
                        width, i);
        return;
    }
    h->layer_hidden_dims[i] = ((uint32_t)width + 255) / 256 * 256;
}

static uint32_t
largest(const struct lmq_hf_config *config, const uint32_t *each)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        most = each[i] > most ? each[i] : most;
    return most;
}

/* Of each layer whether it has attention and a feed-forward, and how large
 * they are; older files have the numbers of heads alone. */
void
lmq_hf_begin_deci(struct lmq_hf_config *config)
{
    static const char key[] = "block_configs";
    const json_t *blocks = lmq_hf_list(config, config->json, key);
    struct lmq_hparams *h = config->hparams;

    if (blocks == NULL)
        read_numbers(config, "num_key_value_heads_per_layer", LMQ_MAX_HEADS,
                     h->layer_kv_heads);
    else
        lmq_hf_expect_layers(config, key, json_array_size(blocks));
    for (uint32_t i = 0; blocks != NULL && i < lmq_hf_layers(config); i++) {
        const json_t *block = json_array_get(blocks, i);
        const json_t *attention = lmq_hf_object(config, block, "attention");
        const json_t *feed = lmq_hf_object(config, block, "ffn");
        if (attention == NULL || feed == NULL) {
            lmq_hf_fail(config, "'%s' in the configuration does not say what "
                                "layer %u is",
                        key, i);
            return;
        }
        read_attention(config, attention, i);
        read_feed(config, feed, i);
    }
    if (largest(config, h->layer_kv_heads) > 0)
        h->n_kv_heads = largest(config, h->layer_kv_heads);
    if (largest(config, h->layer_hidden_dims) > 0)
        h->hidden_dim = largest(config, h->layer_hidden_dims);
}
