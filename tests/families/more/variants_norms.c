/*
 * variants_norms.c - descriptions in which norms are where few models have
 * them, or have no weights.
 */
#include "config.h"

#include "tests/families/more/variants_norms.h"

/* No norm has weights. */
void
variant_bare(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_RMS_PLAIN;
    h->norm_place = LMQ_NORMS_AROUND;
    h->qk_norm = LMQ_QK_NORM_BARE;
    h->has_embedding_norm = true;
}

/* The last layer has a feed-forward whose heads are not as wide as the model;
 * biases of norms, too. */
void
variant_inside(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->layers[2] = LMQ_LAYER_DENSE;
    h->has_sub_norms = true;
    h->has_mixture_norm = true;
    h->has_attn_gate = true;
    h->value_dim = 10;
    h->n_experts = 5;
    h->n_experts_used = 2;
    h->expert_dim = 30;
    h->shared_dim = 26;
}
