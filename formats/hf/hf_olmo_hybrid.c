/*
 * hf_olmo_hybrid.c - OLMo Hybrid in config.json: the gated delta rule, and
 * attention as in OLMo 3.
 */
#include "config.h"

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* "rope_theta" null, in the object of its parameters or, where that has no such
 * key, beside it. Nothing at all is no null. */
static bool
stands_still(struct lmq_hf_config *config)
{
    static const char key[] = "rope_theta";
    const json_t *rope = lmq_hf_rope_object(config);

    return lmq_hf_is_null(
        json_object_get(rope, key) != NULL ? rope : config->json, key);
}

/* Sizes that are not said follow from those of attention. */
void
lmq_hf_begin_olmo_hybrid(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    const json_t *json = config->json;

    h->n_delta_key_heads =
        lmq_hf_count(config, json, "linear_num_key_heads", h->n_heads);
    h->n_delta_value_heads =
        lmq_hf_count(config, json, "linear_num_value_heads", h->n_heads);
    h->delta_key_dim = lmq_hf_count(
        config, json, "linear_key_head_dim",
        h->n_delta_key_heads == 0
            ? 0
            : (uint32_t)(0.75 * h->dim / h->n_delta_key_heads));
    h->delta_value_dim = lmq_hf_count(config, json, "linear_value_head_dim",
                                      2 * h->delta_key_dim);
    h->state_eps = 1e-5; /* whatever the file says */
    if (lmq_hf_switch(config, json, "linear_allow_neg_eigval", true))
        h->beta_scale = 2;
    if (stands_still(config))
        h->positions = LMQ_POSITIONS_NONE;
}

/* Each fourth layer has attention, or the last of fewer, if nothing else is
 * said. */
void
lmq_hf_windows_olmo_hybrid(struct lmq_hf_config *config)
{
    uint32_t n = lmq_hf_layers(config);

    if (lmq_hf_has(config->json, "layer_types"))
        return;
    for (uint32_t i = 0; i < n; i++)
        if (i % 4 != 3 && (n > 3 || i + 1 < n))
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

/* Norms stand before the parts of recurrent layers, behind those of the
 * others. */
void
lmq_hf_finish_olmo_hybrid(struct lmq_hf_config *config)
{
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (!lmq_layer_is(config->hparams, i, LMQ_LAYER_DELTA))
            lmq_hf_mark(config, i, LMQ_LAYER_AFTER);
    lmq_hf_finish_silu(config);
}
