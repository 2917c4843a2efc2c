/*
 * hf_kimi.c - what config.json says of Kimi Linear: the gated delta rule with a
 * decay for each key in most layers, latent attention without positions in the
 * others.
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
void
lmq_hf_begin_kimi(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    lmq_hf_begin_deepseek(config);
    h->n_delta_key_heads = h->n_delta_value_heads =
        read_size(config, "num_heads", "linear_num_heads", 32);
    h->delta_key_dim = h->delta_value_dim = h->step_rank = h->gate_rank =
        read_size(config, "head_dim", "linear_head_dim", 128);
    h->conv_width = read_size(config, "short_conv_kernel_size",
                              "linear_conv_kernel_dim", 4);
    h->has_key_decays = h->has_sigmoid_gates = true;
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
