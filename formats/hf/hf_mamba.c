/*
 * hf_mamba.c - what config.json says of the state space of Mamba 1: Mamba
 * itself, Falcon Mamba, and Jamba, whose layers have attention or it.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* Each channel is a head of one value, of which each key decays for itself. */
static void
begin_selective(struct lmq_hf_config *config, double width,
                const char *rank_key)
{
    struct lmq_hparams *h = config->hparams;
    const json_t *json = config->json;
    const char *rank = json_string_value(json_object_get(json, rank_key));

    h->recurrence = LMQ_RECURRENCE_SELECTIVE;
    if (!(width >= 1) || width > LMQ_MAX_HEADS)
        lmq_hf_fail(config, "a state space has %g channels, expected 1 to %d",
                    width, LMQ_MAX_HEADS);
    else
        h->n_delta_value_heads = (uint32_t)width;
    h->n_delta_key_heads = h->delta_value_dim = 1;
    h->has_bare_states = true;
    h->step_rank = (h->dim + 15) / 16;
    if (rank == NULL || strcmp(rank, "auto") != 0)
        h->step_rank = lmq_hf_count(config, json, rank_key, h->step_rank);
}

/* So many times the model's width. */
static double
expanded(struct lmq_hf_config *config, const char *key)
{
    return floor(lmq_hf_real(config, config->json, key, 2) *
                 (double)config->hparams->dim);
}

/* ---- Mamba ---- */

void
lmq_hf_begin_mamba(struct lmq_hf_config *config)
{
    static const char width_key[] = "intermediate_size";
    double width = expanded(config, "expand");

    if (lmq_hf_has(config->json, width_key))
        width = lmq_hf_count(config, config->json, width_key, 0);
    begin_selective(config, width, "time_step_rank");
    config->hparams->n_heads = config->hparams->head_dim = 1; /* of none */
}

void
lmq_hf_begin_falcon_mamba(struct lmq_hf_config *config)
{
    static const char key[] = "mixer_rms_eps";
    struct lmq_hparams *h = config->hparams;

    lmq_hf_begin_mamba(config);
    h->has_step_norms = true;
    h->latent_eps = lmq_hf_real(config, config->json, key, 1e-6);
    if (!(h->latent_eps > 0)) /* which stands for norm_eps */
        lmq_hparams_refuse(h, "a '%s' of %g", key, h->latent_eps);
}

/* ---- Jamba ---- */

/* One expert, or none, is a feed-forward without a router. */
void
lmq_hf_begin_jamba(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    begin_selective(config, expanded(config, "mamba_expand"), "mamba_dt_rank");
    h->has_step_norms = h->has_step_norm_weights = true;
    if (h->n_experts == 1)
        h->n_experts = 0;
}

/* All layers but every so many-th, from the one on that has this number. */
static void
mark_others(struct lmq_hf_config *config, const char *period_key,
            uint32_t period, const char *offset_key, uint32_t offset,
            enum lmq_layer_kind kind)
{
    period = lmq_hf_period(config, period_key, period);
    offset = lmq_hf_count(config, config->json, offset_key, offset);
    if (offset >= period)
        lmq_hf_fail(config, "'%s' in the configuration is %u, expected less "
                            "than '%s', which is %u",
                    offset_key, offset, period_key, period);
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i % period != offset)
            lmq_hf_mark(config, i, kind);
}

void
lmq_hf_windows_jamba(struct lmq_hf_config *config)
{
    mark_others(config, "attn_layer_period", 8, "attn_layer_offset", 4,
                LMQ_LAYER_DELTA);
    mark_others(config, "expert_layer_period", 2, "expert_layer_offset", 1,
                LMQ_LAYER_DENSE);
}
