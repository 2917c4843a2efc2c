/*
 * variants_recurrent.c - descriptions in which layers have a recurrence.
 */
#include "config.h"

#include "tests/families/more/variants_recurrent.h"

void
variant_delta(struct lmq_hparams *h)
{
    h->layers[0] = h->layers[2] = LMQ_LAYER_DELTA;
    h->norm = LMQ_NORM_LAYER;
    h->residual = LMQ_RESIDUAL_PARALLEL;
    h->has_attn_gate = true;
    h->value_dim = 20; /* is the width of the gate's heads */
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 6; /* wider than attention */
    h->delta_key_dim = 9;
    h->delta_value_dim = 35;
    h->conv_width = 3;
}

/* Time steps by key, gates by latents, also beside attention. */
void
variant_key_decays(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE;
    h->layers[2] = LMQ_LAYER_DELTA;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 13;
    h->delta_value_dim = 21;
    h->conv_width = 3;
    h->gate_rank = 10;
    h->has_key_decays = true;
}

void
variant_convolved(struct lmq_hparams *h)
{
    h->layers[0] = h->layers[2] = LMQ_LAYER_DELTA;
    h->norm_place = LMQ_NORMS_AFTER;
    h->has_attn_gate = true;
    h->sliding_window = 9;
    h->recurrence = LMQ_RECURRENCE_CONVOLUTION;
    h->n_delta_value_heads = 3;
    h->delta_value_dim = 37;
    h->conv_width = 2;
}

/* Attention and a state in one layer, a state alone in another. */
void
variant_beside(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE | LMQ_LAYER_FULL;
    h->layers[1] = LMQ_LAYER_DELTA;
    h->layers[2] = LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE;
    h->recurrence = LMQ_RECURRENCE_STATE_SPACE;
    h->has_bare_states = true;
    h->has_attn_gate = true;
    h->sliding_window = 9;
    h->n_delta_key_heads = 2;
    h->n_delta_value_heads = 4;
    h->delta_key_dim = 13;
    h->delta_value_dim = 17;
    h->conv_width = 4;
}

/* A layer of each of both kinds has its norms behind its blocks. */
void
variant_mixed(struct lmq_hparams *h)
{
    variant_delta(h);
    h->layers[1] |= LMQ_LAYER_AFTER;
    h->layers[2] |= LMQ_LAYER_AFTER;
    h->norm_place = LMQ_NORMS_AROUND;
    h->beta_scale = 2;
    h->state_eps = 0.01;
}

/* One head that is wider than pieces of rows are. */
void
variant_wide_values(struct lmq_hparams *h)
{
    h->layers[0] = LMQ_LAYER_DELTA;
    h->has_attn_gate = true;
    h->activation_slope = 1.5;
    h->recurrence = LMQ_RECURRENCE_LRU;
    h->n_delta_value_heads = 1;
    h->delta_value_dim = 700;
    h->conv_width = 2;
}

/* Values decay each for itself, and have no keys. */
void
variant_lru(struct lmq_hparams *h)
{
    h->layers[0] = h->layers[1] = LMQ_LAYER_DELTA;
    h->norm_place = LMQ_NORMS_AROUND;
    h->activation = LMQ_ACTIVATION_GELU;
    h->has_attn_gate = true;
    h->sliding_window = 9;
    h->recurrence = LMQ_RECURRENCE_LRU;
    h->n_delta_value_heads = 3;
    h->delta_value_dim = 35;
    h->conv_width = 4;
}
