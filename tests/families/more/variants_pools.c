/*
 * variants_pools.c - descriptions whose values are keys, or that choose what is
 * seen.
 */
#include "config.h"

#include "tests/families/more/variants_pools.h"

/* Pools of either kind, of which some are chosen, also where nothing turns;
 * layers with and without a table of experts. */
void
variant_pools(struct lmq_hparams *h)
{
    h->n_layers = 4;
    h->n_kv_heads = 1;
    h->head_dim = 28; /* ends within a block of the Q8 cache */
    h->rotary_dim = 8;
    h->q_lora_rank = 36;
    h->has_turned_values = true;
    h->qk_norm = LMQ_QK_NORM_BARE_QUERIES;
    h->has_sinks = true;
    h->sliding_window = 9;
    h->rope_local_theta = 500;
    h->n_out_groups = 3;
    h->out_rank = 20;
    h->layers[0] = LMQ_LAYER_TOKENS;
    h->layers[1] = LMQ_LAYER_OVERLAP;
    h->layers[2] = LMQ_LAYER_POOL | LMQ_LAYER_DENSE;
    h->layers[3] = LMQ_LAYER_OVERLAP | LMQ_LAYER_FULL | LMQ_LAYER_NOPE;
    h->pool_size = 11;
    h->overlap_size = 3;
    h->index_topk = 6;
    h->n_index_heads = 8;
    h->index_dim = 1100; /* wider than all else, and than a block */
    h->n_experts = 6;
    h->n_experts_used = 2;
    h->expert_dim = 36;
    h->router = LMQ_ROUTER_ROOT_SOFTPLUS;
    h->router_renormalises = true;
    h->router_corrects = true;
}

/* A key for several heads of queries, several keys, no pools. */
void
variant_turned(struct lmq_hparams *h)
{
    h->has_turned_values = true;
    h->rotary_dim = 4;
    h->n_out_groups = 2;
    h->out_rank = 10;
    h->has_attn_gate = true;
    h->n_experts = 5;
    h->n_experts_used = 2;
    h->expert_dim = 24;
    h->layers[1] = LMQ_LAYER_TOKENS;
}

/* Positions that are chosen, by what is wider than all else; layers before that
 * see all, layers behind see the same. */
void
variant_index(struct lmq_hparams *h)
{
    h->n_layers = 5;
    h->rotary_dim = 8;
    h->head_dim = 20;
    h->value_dim = 12;
    h->q_lora_rank = 36;
    h->kv_lora_rank = 24;
    h->has_raw_latents = h->has_attn_gate = true;
    h->layers[1] = LMQ_LAYER_INDEX;
    h->layers[3] = LMQ_LAYER_INDEX | LMQ_LAYER_NOPE;
    h->index_topk = 11;
    h->n_index_heads = 6;
    h->index_dim = 1100;
    h->index_eps = 0.01;
}
