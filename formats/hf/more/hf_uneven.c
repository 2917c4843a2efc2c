/*
 * hf_uneven.c - what families whose layers differ in heads and widths do in
 * config.json beside their rows: Laguna, OpenELM, DeciLM.
 */
#include "config.h"

#include <math.h>
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
