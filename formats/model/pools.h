/*
 * pools.h - the sizes of pools, and of what stands around keys that are values.
 *
 * In some layers a query sees, besides the positions of its window, all of what
 * is behind it in pools: keys that stand for so many positions each, and are
 * values, too. Number w of them is made of the positions of window w, which are
 * those from w times its size on; where they overlap, of those of the window
 * before, too. A query sees it from its last position on.
 */
#ifndef LMQ_FORMATS_MODEL_POOLS_H
#define LMQ_FORMATS_MODEL_POOLS_H

#include "formats/model/hparams.h"

static inline bool
lmq_layer_overlaps(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_OVERLAP);
}

/* Positions of a pool of the layer; 0: it has none. */
static inline uint32_t
lmq_layer_pool(const struct lmq_hparams *hparams, size_t layer)
{
    if (lmq_layer_overlaps(hparams, layer))
        return hparams->overlap_size;
    return lmq_layer_is(hparams, layer, LMQ_LAYER_POOL) ? hparams->pool_size
                                                        : 0;
}

/* Whether some of its pools are chosen. */
static inline bool
lmq_layer_has_index(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_overlaps(hparams, layer) && hparams->index_topk > 0;
}

/* What a position gives to pools: to its own, and perhaps to the next. */
static inline size_t
lmq_pool_width(const struct lmq_hparams *hparams, size_t layer)
{
    return (lmq_layer_overlaps(hparams, layer) ? 2 : 1) *
           (size_t)hparams->head_dim;
}

/* Likewise to the pools of what chooses, which overlap. */
static inline size_t
lmq_index_width(const struct lmq_hparams *hparams)
{
    return 2 * (size_t)hparams->index_dim;
}

/* Whether any layer has pools. */
bool lmq_has_pools(const struct lmq_hparams *hparams);

/* Whether queries are made by two matrices. */
static inline bool
lmq_has_query_latents(const struct lmq_hparams *hparams)
{
    return hparams->q_lora_rank > 0 &&
           (hparams->kv_lora_rank > 0 || hparams->has_turned_values);
}

/* Whether a table says which experts a token of the layer goes to. */
static inline bool
lmq_layer_has_table(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_TOKENS) &&
           lmq_layer_has_experts(hparams, layer);
}

/* What the last matrix of attention looks at. */
static inline size_t
lmq_layer_out_width(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->n_out_groups > 0
               ? (size_t)hparams->n_out_groups * hparams->out_rank
               : (size_t)lmq_layer_heads(hparams, layer) *
                     lmq_layer_value_dim(hparams, layer);
}

/* What the description takes for granted of all that: refused if it does not
 * hold. */
enum lmq_status lmq_pools_check(const struct lmq_hparams *hparams,
                                struct lmq_error *err);

#endif
