/*
 * hf_gemma4.c - Gemma 4 in config.json.
 *
 * Layers that see everything have other heads than those with a window. Newer
 * versions of the library say so for each layer ("per_layer_config"), older
 * files by keys of their own.
 */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- Heads ---- */

/* Those of the first layer that the object speaks of, under its number; all
 * others must have the same. */
static const json_t *
first_override(struct lmq_hf_config *config, const json_t *by_layer)
{
    const json_t *first = NULL;
    const char *number;
    json_t *each;

    json_object_foreach((json_t *)(uintptr_t)by_layer, number, each) {
        const char *key;
        json_t *value;
        if (first == NULL)
            first = each;
        if (!json_is_object(each) || !json_equal(first, each))
            lmq_hparams_refuse(config->hparams,
                               "layers that differ in 'per_layer_config'");
        json_object_foreach(each, key, value)
            if (strcmp(key, "head_dim") != 0 &&
                strcmp(key, "num_key_value_heads") != 0)
                lmq_hparams_refuse(config->hparams,
                                   "'%.60s' in 'per_layer_config'", key);
    }
    return json_is_object(first) ? first : NULL;
}

static void
read_full_heads(struct lmq_hf_config *config)
{
    const json_t *json = config->json;
    const json_t *by_layer = lmq_hf_object(config, json, "per_layer_config");
    struct lmq_hparams *h = config->hparams;

    if (by_layer != NULL) {
        const json_t *full = first_override(config, by_layer);
        h->full_head_dim = lmq_hf_count(config, full, "head_dim", h->head_dim);
        h->full_kv_heads = lmq_hf_count(config, full, "num_key_value_heads",
                                        h->n_kv_heads);
        return;
    }
    h->full_head_dim = lmq_hf_count(config, json, "global_head_dim", 512);
    if (h->full_keys_are_values)
        h->full_kv_heads = lmq_hf_count(
            config, json, "num_global_key_value_heads", h->n_kv_heads);
}

/* The layers that the object names are those that see everything; none, if
 * their heads are those of the others. Numbers are filled up with zeros to the
 * length of the longest. */
static void
check_overrides(struct lmq_hf_config *config)
{
    const json_t *by_layer =
        lmq_hf_object(config, config->json, "per_layer_config");
    const struct lmq_hparams *h = config->hparams;
    bool is_named[LMQ_MAX_LAYERS] = {false};
    const char *number;
    json_t *each;

    if (json_object_size(by_layer) == 0)
        return;
    json_object_foreach((json_t *)(uintptr_t)by_layer, number, each) {
        char *end;
        unsigned long layer = strtoul(number, &end, 10);
        if (!isdigit((unsigned char)number[0]) || *end != '\0' ||
            layer >= h->n_layers)
            lmq_hparams_refuse(config->hparams,
                               "'%.60s' in 'per_layer_config'", number);
        else
            is_named[layer] = true;
    }
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (is_named[i] != lmq_layer_is(h, i, LMQ_LAYER_FULL))
            lmq_hparams_refuse(config->hparams,
                               "'per_layer_config' of layer %" PRIu32, i);
}

/* ---- All of it ---- */

void
lmq_hf_begin_gemma4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    read_full_heads(config);
    h->attn_scale = 1;
    h->has_value_norm = h->has_layer_scale = true;
    if (lmq_hf_switch(config, config->json, "use_double_wide_mlp", false))
        h->borrowing_hidden_dim = lmq_hf_width(config, h->hidden_dim, 2);
    if (!lmq_hf_switch(config, config->json, "enable_moe_block", false)) {
        h->n_experts = 0;
        return;
    }
    h->shared_dim = h->hidden_dim;
    h->has_expert_norms = h->router_renormalises = true;
    if (h->n_borrowing > 0 && h->borrowing_hidden_dim > 0)
        lmq_hparams_refuse(h, "'use_double_wide_mlp' together with experts");
}

/* The last layer always sees everything, and some have a window: what is said
 * of these and of the others would mean nothing else. */
void
lmq_hf_finish_gemma4(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    bool has_window = false;

    for (uint32_t i = 0; i < h->n_layers; i++)
        if (i + 1 == h->n_layers)
            h->layers[i] |= LMQ_LAYER_FULL;
        else
            has_window |= lmq_layer_window(h, i) > 0;
    check_overrides(config);
    h->embedding_scale = sqrt((double)h->dim);
    if (h->layer_input_dim > 0 &&
        lmq_hf_count(config, config->json, "vocab_size_per_layer_input",
                     262144) != h->vocab_size)
        lmq_hparams_refuse(h, "'vocab_size_per_layer_input' other than "
                              "'vocab_size'");
    if (h->rope_scaling == LMQ_ROPE_PLAIN) /* a part of all */
        lmq_hf_turn_part(config, 1, 1);
    if (!has_window) {
        lmq_hparams_refuse(h, "a model of this kind without windows");
        h->rope_scaling = LMQ_ROPE_PLAIN;
    }
}
