/*
 * variants_uneven.c - the variant whose layers differ in numbers and widths.
 */
#include "config.h"

#include "tests/families/more/variants_uneven.h"

void
variant_uneven(struct lmq_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layer_kv_heads[i] = i == 1 ? 1 : 3;
        h->layer_heads[i] = h->layer_kv_heads[i] * (i + 2);
        h->layer_hidden_dims[i] = 150 - 40 * i;
    }
    h->layers[1] = LMQ_LAYER_FULL;
    h->norm_place = LMQ_NORMS_AROUND;
    h->qk_norm = LMQ_QK_NORM_WHOLE;
    h->has_sinks = h->has_sub_norms = true;
    h->sliding_window = 9;
    h->rope_local_theta = 500;
    h->full_rotary_dim = 8;
    h->has_attn_gate = h->has_head_gate = h->has_softplus_gate = true;
}
