/*
 * hf_kimi.c - what config.json says of Kimi Linear, of Ling 3 and of GLM 5
 * next: the gated delta rule with a decay for each key in most layers, latent
 * attention in the others, which has positions in Ling 3 alone.
 *
 * The makers' files say of recurrent layers what they say in an object of its
 * own, in which layers count from 1; the library writes plain keys.
 */
#include "config.h"

#include <inttypes.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

static const char object_key[] = "linear_attn_config";

/* The object's key counts where both are there. */
static uint32_t
read_size(struct lmq_hf_config *config, const char *inner, const char *plain,
          uint32_t absent)
{
    const json_t *own = lmq_hf_object(config, config->json, object_key);

    return lmq_hf_count(config, own, inner,
                        lmq_hf_count(config, config->json, plain, absent));
}

/* Heads of one width: of queries, keys and values, of both latents. */
static void
read_heads(struct lmq_hf_config *config, uint32_t n_heads)
{
    struct lmq_hparams *h = config->hparams;

    h->n_delta_key_heads = h->n_delta_value_heads =
        read_size(config, "num_heads", "linear_num_heads", n_heads);
    h->delta_key_dim = h->delta_value_dim = h->step_rank = h->gate_rank =
        read_size(config, "head_dim", "linear_head_dim", 128);
    h->conv_width = read_size(config, "short_conv_kernel_size",
                              "linear_conv_kernel_dim", 4);
    h->has_key_decays = h->has_sigmoid_gates = true;
}

void
lmq_hf_begin_kimi(struct lmq_hf_config *config)
{
    lmq_hf_begin_deepseek(config);
    read_heads(config, 32);
}

/* Each layer is in one list, once. */
static void
mark_named(struct lmq_hf_config *config, const json_t *list, const char *key,
           enum lmq_layer_kind kind, bool *is_named)
{
    const json_t *element;
    size_t i;

    json_array_foreach(list, i, element) {
        int64_t layer = lmq_hf_number(config, element, key);
        if (layer < 1 || layer > lmq_hf_layers(config) ||
            is_named[layer - 1]) {
            lmq_hf_fail(config, "'%s' in the configuration names layer "
                                "%" PRId64 ", expected each from 1 to %u once",
                        key, layer, lmq_hf_layers(config));
            return;
        }
        lmq_hf_mark(config, layer - 1, kind);
        is_named[layer - 1] = true;
    }
}

/* Where "layer_types" does not say it, two lists do, or every fourth layer but
 * for the first has attention. */
void
lmq_hf_windows_kimi(struct lmq_hf_config *config)
{
    static const char full_key[] = "full_attn_layers";
    static const char delta_key[] = "kda_layers";
    const json_t *own = lmq_hf_object(config, config->json, object_key);
    const json_t *full = lmq_hf_list(config, own, full_key);
    const json_t *delta = lmq_hf_list(config, own, delta_key);
    bool is_named[LMQ_MAX_LAYERS] = {false};

    if (lmq_hf_has(config->json, "layer_types"))
        return;
    if ((full == NULL) != (delta == NULL)) {
        lmq_hf_fail(config, "'%s' in the configuration lacks '%s'",
                    object_key, full == NULL ? full_key : delta_key);
        return;
    }
    mark_named(config, full, full_key, LMQ_LAYER_FULL, is_named);
    mark_named(config, delta, delta_key, LMQ_LAYER_DELTA, is_named);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (full == NULL && (i == 0 || i % 4 != 0))
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
        else if (full != NULL && !is_named[i])
            lmq_hf_fail(config, "layer %u is in neither '%s' nor '%s' in the "
                                "configuration",
                        i + 1, full_key, delta_key);
}

/* Keys have a part that all heads share, as where positions turn it. */
void
lmq_hf_finish_kimi(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *shared_key = "num_shared_experts";

    if (!lmq_hf_has(config->json, shared_key))
        shared_key = "n_shared_experts";
    h->positions = LMQ_POSITIONS_ROTARY;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        lmq_hf_mark(config, i, LMQ_LAYER_NOPE);
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 1);
    lmq_hf_share_experts(config, shared_key, 1);
    if (h->n_experts > 0)
        lmq_hf_route_by_sigmoid(h);
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    lmq_hf_finish_silu(config);
}

/* ---- Ling 3 ---- */

/* What is left of a state has a bound, if nothing else is said. */
static void
read_floor(struct lmq_hf_config *config)
{
    static const char key[] = "kda_lower_bound";
    double bound = lmq_hf_real(config, config->json, key, -5);

    if (!lmq_hf_switch(config, config->json, "kda_safe_gate", true))
        return;
    if (bound >= 0)
        lmq_hf_fail(config, "'%s' in the configuration is %g, expected less "
                            "than 0",
                    key, bound);
    config->hparams->decay_floor = -bound;
}

/* The library writes the width of heads that turn under the makers' key, and
 * theirs under another. */
void
lmq_hf_begin_ling3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const json_t *json = config->json;

    lmq_hf_begin_any_part(config);
    h->n_delta_key_heads = h->n_delta_value_heads =
        lmq_hf_count(config, json, "linear_num_heads", h->n_heads);
    h->delta_key_dim = h->delta_value_dim =
        lmq_hf_count(config, json, "linear_head_dim",
                     lmq_hf_count(config, json, "head_dim", 128));
    h->conv_width =
        lmq_hf_count(config, json, "linear_conv_kernel_dim",
                     lmq_hf_count(config, json, "short_conv_kernel_size", 4));
    h->has_key_decays = h->has_sigmoid_gates = true;
    h->has_attn_gate = h->has_head_gate = true;
    read_floor(config);
}

/* Where "layer_types" does not say it, the last layer of each group has
 * attention, and what is left behind the last whole group. */
void
lmq_hf_windows_ling3(struct lmq_hf_config *config)
{
    uint32_t period = lmq_hf_period(config, "layer_group_size", 6);
    uint32_t n = lmq_hf_layers(config);

    if (lmq_hf_has(config->json, "layer_types"))
        return;
    for (uint32_t i = 0; i < n / period * period; i++)
        if ((i + 1) % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

/* Limits of gates that some layers may have. */
static void
expect_no_limits(struct lmq_hf_config *config, const char *key)
{
    const json_t *list = lmq_hf_list(config, config->json, key), *limit;
    size_t i;

    json_array_foreach(list, i, limit)
        if (!json_is_null(limit) &&
            !(json_is_number(limit) && !(json_number_value(limit) > 0)))
            lmq_hparams_refuse(config->hparams, "'%s' that limits layer %zu",
                               key, i);
}

void
lmq_hf_finish_ling3(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const char *shared_key = "num_shared_experts";

    if (!lmq_hf_has(config->json, shared_key))
        shared_key = "n_shared_experts";
    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 2);
    lmq_hf_share_experts(config, shared_key, 1);
    if (h->n_experts > 0)
        lmq_hf_route_by_sigmoid(h);
    expect_no_limits(config, "expert_swiglu_limit_list");
    expect_no_limits(config, "share_expert_swiglu_limit_list");
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    lmq_hf_finish_silu(config);
}

/* ---- GLM 5 next ---- */

/* Where the makers' object has no bound and is safe, or says nothing of that,
 * it is the usual one. */
static void
read_safe_floor(struct lmq_hf_config *config)
{
    static const char key[] = "linear_lower_bound";
    static const char inner[] = "gate_lower_bound";
    const json_t *own = lmq_hf_object(config, config->json, object_key);
    bool is_own = json_object_get(own, inner) != NULL;
    const json_t *json = is_own ? own : config->json;
    const char *name = is_own ? inner : key;
    bool is_null = json_is_null(json_object_get(json, name));
    double bound = is_null ? 0 : lmq_hf_real(config, json, name, -5);

    if (is_null && own != NULL &&
        lmq_hf_switch(config, own, "safe_gate", true))
        bound = -5;
    else if (!is_null && bound >= 0)
        lmq_hf_fail(config, "'%s' in the configuration is %g, expected less "
                            "than 0",
                    name, bound);
    config->hparams->decay_floor = bound < 0 ? -bound : 0;
}

void
lmq_hf_begin_glm5next(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t nope =
        lmq_hf_count(config, config->json, "qk_nope_head_dim", 256);

    h->head_dim = lmq_hf_width(config, nope, 1);
    h->n_kv_heads = h->n_heads;
    if (nope == 0 || h->value_dim == 0 || h->kv_lora_rank == 0 ||
        h->q_lora_rank == 0)
        lmq_hf_fail(config, "'qk_nope_head_dim', 'v_head_dim', 'kv_lora_rank' "
                            "or 'q_lora_rank' in the configuration is 0");
    read_heads(config, 64);
    read_safe_floor(config);
    lmq_hf_choose_groups(config, "index_topk", 2048, "index_kpool", 16);
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_gain = 2;
    h->has_stream_mean = true;
    if (h->stream_rounds == 0)
        h->stream_rounds = 1; /* there is one whatever is said */
}

/* Where "layer_types" does not say it, every fourth layer has attention. */
void
lmq_hf_windows_glm5next(struct lmq_hf_config *config)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i % 4 != 3 && !lmq_hf_has(config->json, "layer_types"))
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

void
lmq_hf_finish_glm5next(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_mark_first_dense(config, "first_k_dense_replace", 3);
    lmq_hf_share_experts(config, "n_shared_experts", 1);
    if (h->n_experts > 0)
        lmq_hf_route_by_sigmoid(h);
    if (!(h->glu_limit > 0))
        lmq_hparams_refuse(h, "'swiglu_limit' %g", h->glu_limit);
    if (h->n_streams < 2) {
        lmq_hparams_refuse(h, "'hc_mult' %u", h->n_streams);
        h->n_streams = 0;
    }
    lmq_hf_read_further(config, "num_nextn_predict_layers");
    lmq_hf_finish_silu(config);
    lmq_hf_finish_chosen(config);
}
