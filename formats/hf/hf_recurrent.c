/*
 * hf_recurrent.c - what config.json says of layers that remember a state: the
 * gated delta rule (Qwen 3 Next, 3.5).
 */
#include "config.h"

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* ---- The gated delta rule ---- */

/* Where "layer_types" does not say it, every so many-th layer has attention. */
void
lmq_hf_windows_delta(struct lmq_hf_config *config)
{
    uint32_t period = lmq_hf_period(config, "full_attention_interval", 4);

    if (lmq_hf_has(config->json, "layer_types"))
        return;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if ((i + 1) % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

/* The activation is that of the convolution, too. */
void
lmq_hf_finish_qwen3next(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->has_attn_gate = true;
    if (h->activation != LMQ_ACTIVATION_SILU)
        lmq_hparams_refuse(h, "a convolution with another activation than "
                              "SiLU");
    if (h->n_experts == 0)
        return;
    if (h->hidden_dim == 0) /* all layers have experts */
        h->hidden_dim = h->expert_dim;
    lmq_hf_finish_qwen_experts(config);
}

void
lmq_hf_finish_qwen35(struct lmq_hf_config *config)
{
    config->hparams->router_renormalises = true;
    lmq_hf_finish_qwen3next(config);
}
