/*
 * variants_norms.c - descriptions in which norms are where few models have
 * them, or have no weights; or several streams are before them.
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

/* A layer of each part alone, and a recurrence; streams that mix, wider than a
 * block of them that is worked on at a time. */
void
variant_hyper(struct lmq_hparams *h)
{
    h->n_layers = 4;
    h->dim = 300;
    h->layers[0] = LMQ_LAYER_DELTA;
    h->layers[1] = LMQ_LAYER_FEED;
    h->layers[2] = LMQ_LAYER_BARE;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 9;
    h->delta_value_dim = 15;
    h->conv_width = 3;
    h->n_streams = 3;
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_rounds = 3;
    h->stream_eps = 1e-3;
    h->stream_gain = 2;
    h->stream_floor = 0.01;
}

/* Gates wider than a piece of a row; two layers that are given something of the
 * last tokens, which reaches further back than a batch. */
void
variant_gated(struct lmq_hparams *h)
{
    h->norm_place = LMQ_NORMS_AROUND;
    h->layers[0] = LMQ_LAYER_GRAMS;
    h->layers[2] = LMQ_LAYER_GRAMS | LMQ_LAYER_BARE;
    h->n_streams = 4;
    h->stream_kind = LMQ_STREAMS_GATED;
    h->stream_rank = 540;
    h->stream_gain = 1.5;
    h->stream_floor = 0.1;
    h->gram_size = 4;
    h->gram_heads = 2;
    h->gram_dim = 10;
    h->gram_conv_width = 5;
    h->gram_stop = 3;
    h->n_gram_factors = 8;
    h->n_gram_rows = 12;
    for (uint32_t i = 0; i < 12; i++) {
        h->gram_factors[i] = 2 * 0x0123456789abcdu + 98765 * i + 1;
        h->gram_rows[i] = 10 + i;
    }
}

/* Lightning attention, of which heads share keys; blocks add to what they are
 * given. */
void
variant_kept(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->norm_place = LMQ_NORMS_AROUND;
    h->layers[0] = h->layers[2] = LMQ_LAYER_DELTA;
    h->recurrence = LMQ_RECURRENCE_LIGHTNING;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 6;
    h->delta_key_dim = 11;
    h->delta_value_dim = 17;
    h->state_eps = 0.01;
    h->decay_first = 1.5;
    h->decay_step = 0.75;
    h->has_normed_residual = true;
    h->attn_keep = 1.5;
    h->delta_keep = 0.75;
    h->feed_keep = 1.25;
    h->attn_add = 0.5;
    h->delta_add = 1.75;
    h->feed_add = 2;
}

/* Norms behind turning. */
void
variant_squares(struct lmq_hparams *h)
{
    h->activation = LMQ_ACTIVATION_RELU2;
    h->is_gated = false;
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->qk_norm_late = true;
    h->score_growth = 0.1;
    h->score_growth_period = 9;
}

/* A norm for each head, experts without gates. */
void
variant_learned(struct lmq_hparams *h)
{
    h->norm = LMQ_NORM_LAYER;
    h->qk_norm = LMQ_QK_NORM_HEADS;
    h->positions = LMQ_POSITIONS_LEARNED;
    h->activation = LMQ_ACTIVATION_SIGMOID;
    h->n_experts = 3;
    h->n_experts_used = 1;
    h->expert_dim = 24;
    h->shared_dim = 20;
    h->is_gated = false;
}
