/*
 * pools.h - the sizes of pools, and of what stands around keys that are values.
 *
 * In some layers a query sees, besides the positions of its window, all of what
 * is behind it in pools: keys that stand for so many positions each, and are
 * values, too. Number w of them is made of the positions of window w, which are
 * those from w times its size on; where they overlap, of those of the window
 * before, too. A query sees it from its last position on.
 *
 * Layers of latent attention may choose in another way: each token sees some of
 * the positions themselves, and sees the same in the layers that follow, up to
 * the next one that chooses.
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

/* Whether it chooses positions, for itself and those that follow. */
static inline bool
lmq_layer_chooses(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_INDEX) &&
           hparams->index_topk > 0;
}

/* Bytes that say which of so many positions, or of pools of these, are chosen:
 * a bit of each. */
static inline size_t
lmq_choice_bytes(const struct lmq_hparams *hparams, size_t n_positions)
{
    size_t each = hparams->overlap_size > 0 ? hparams->overlap_size : 1;

    return n_positions / each / 8 + 1;
}

/* The layer whose choice it sees, itself or an earlier one; SIZE_MAX: it sees
 * all positions. */
size_t lmq_layer_chooser(const struct lmq_hparams *hparams, size_t layer);

/* Whether any layer chooses positions; whether any sees the choice of another
 * one. */
bool lmq_chooses(const struct lmq_hparams *hparams);
bool lmq_shares_choices(const struct lmq_hparams *hparams);

/* Bytes of a token's choice that who takes windows through one layer after the
 * other keeps for the next ones; 0: nothing. `longest`: tokens of a window. */
size_t lmq_kept_choice(const struct lmq_hparams *hparams, size_t longest);

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
