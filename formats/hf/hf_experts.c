/*
 * hf_experts.c - what many families say of experts in config.json: which layers
 * have them, which of them are shared, how they are chosen.
 */
#include "config.h"

#include "formats/hf/hf_reader.h"

void
lmq_hf_mark_dense(struct lmq_hf_config *config, uint32_t n_first,
                  uint32_t period)
{
    if (config->hparams->n_experts == 0 || lmq_hf_mark_listed_dense(config))
        return;
    for (uint32_t i = 0; i < lmq_hf_layers(config); i++)
        if (i < n_first || (i + 1) % period != 0)
            lmq_hf_mark(config, i, LMQ_LAYER_DENSE);
}

void
lmq_hf_mark_first_dense(struct lmq_hf_config *config, const char *key,
                        uint32_t n)
{
    lmq_hf_mark_dense(config, lmq_hf_count(config, config->json, key, n), 1);
}

void
lmq_hf_share_experts(struct lmq_hf_config *config, const char *key,
                     uint32_t n)
{
    struct lmq_hparams *h = config->hparams;

    n = lmq_hf_is_null(config->json, key)
            ? 0
            : lmq_hf_count(config, config->json, key, n);
    if (h->n_experts > 0)
        h->shared_dim = lmq_hf_width(config, h->expert_dim, n);
}

void
lmq_hf_route_by_sigmoid(struct lmq_hparams *h)
{
    h->router = LMQ_ROUTER_SIGMOID;
    h->router_corrects = true;
    h->expert_group_score = LMQ_GROUP_SCORE_BEST_TWO;
}

void
lmq_hf_read_further(struct lmq_hf_config *config, const char *key)
{
    uint32_t n = lmq_hf_count(config, config->json, key, 0);

    if (n > LMQ_MAX_LAYERS)
        lmq_hf_fail(config, "'%s' in the configuration is more than %d", key,
                    LMQ_MAX_LAYERS);
    else if (n > config->source->n_further_layers)
        config->source->n_further_layers = n;
}
