/*
 * pools.c - what descriptions may say of keys that are values, of pools, and of
 * tables of experts.
 */
#include "config.h"

#include "formats/model/pools.h"

#include "base/error.h"

bool
lmq_has_pools(const struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        if (lmq_layer_pool(h, i) > 0)
            return true;
    return false;
}

size_t
lmq_layer_chooser(const struct lmq_hparams *h, size_t layer)
{
    if (h->index_topk == 0 || !lmq_layer_has_attention(h, layer))
        return SIZE_MAX;
    for (size_t i = layer + 1; i-- > 0;)
        if (lmq_layer_chooses(h, i))
            return i;
    return SIZE_MAX;
}

bool
lmq_chooses(const struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        if (lmq_layer_chooses(h, i))
            return true;
    return false;
}

bool
lmq_shares_choices(const struct lmq_hparams *h)
{
    bool has_chosen = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        if (has_chosen && lmq_layer_has_attention(h, i) &&
            !lmq_layer_chooses(h, i))
            return true;
        has_chosen |= lmq_layer_chooses(h, i);
    }
    return false;
}

size_t
lmq_kept_choice(const struct lmq_hparams *h, size_t longest)
{
    return longest > h->index_topk && lmq_shares_choices(h)
               ? lmq_choice_bytes(h, longest)
               : 0;
}

/* ---- Checks ---- */

static enum lmq_status
check_turned_values(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool has_norm = h->qk_norm == LMQ_QK_NORM_NONE ||
                    h->qk_norm == LMQ_QK_NORM_HEAD ||
                    h->qk_norm == LMQ_QK_NORM_BARE_QUERIES;

    if (h->qk_norm == LMQ_QK_NORM_BARE_QUERIES && !h->has_turned_values)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "norms of queries without weights beside those of "
                        "keys need keys that are values, once turned");
    if (!h->has_turned_values)
        return LMQ_OK;
    if (h->kv_lora_rank > 0 || h->value_dim > 0 || h->full_head_dim > 0 ||
        h->full_rotary_dim > 0 || h->full_keys_are_values ||
        h->n_borrowing > 0 || h->has_value_norm || h->qkv_clip > 0 ||
        h->qk_norm_late || !has_norm)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "values that are keys, once turned, do not go with "
                        "latents, heads that differ, borrowed keys, limits, "
                        "or other norms of queries and keys than of each "
                        "head before it turns");
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_DELTA))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u is recurrent, which does not go with "
                            "values that are keys, once turned",
                            i);
    return LMQ_OK;
}

static enum lmq_status
check_out_groups(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->n_out_groups == 0)
        return LMQ_OK;
    if (h->out_rank == 0 ||
        (uint64_t)h->n_out_groups * h->out_rank > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u matrices of rank %u make no attention",
                        h->n_out_groups, h->out_rank);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        uint64_t width = (uint64_t)lmq_layer_heads(h, i) *
                         lmq_layer_value_dim(h, i);
        if (lmq_layer_has_attention(h, i) && width % h->n_out_groups != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "what heads of layer %u give, %llu numbers, has "
                            "no %u parts of one size",
                            i, (unsigned long long)width, h->n_out_groups);
        if (lmq_layer_is(h, i, LMQ_LAYER_DELTA))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u is recurrent, which does not go with "
                            "matrices for parts of what heads give",
                            i);
    }
    return LMQ_OK;
}

static enum lmq_status
check_index(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->n_index_heads == 0 || h->q_lora_rank == 0 || h->index_dim == 0 ||
        h->index_dim < lmq_hparams_rotary_dim(h) ||
        h->index_dim > LMQ_MAX_WIDTH / 2 ||
        (uint64_t)h->n_index_heads * h->index_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u heads of %u that are made of %u latents, of which "
                        "%u turn, choose nothing",
                        h->n_index_heads, h->index_dim, h->q_lora_rank,
                        lmq_hparams_rotary_dim(h));
    return LMQ_OK;
}

static enum lmq_status
check_pools(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool has_index = false;

    for (uint32_t i = 0; i < h->n_layers; i++) {
        bool is_pool = lmq_layer_is(h, i, LMQ_LAYER_POOL);
        if ((!is_pool && !lmq_layer_overlaps(h, i)) ||
            !lmq_layer_has_attention(h, i))
            continue;
        has_index |= lmq_layer_has_index(h, i);
        if ((is_pool && lmq_layer_overlaps(h, i)) || lmq_layer_pool(h, i) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has pools of two kinds, or of no "
                            "positions",
                            i);
        if (!h->has_turned_values ||
            lmq_layer_kv_heads(h, i) != 1 || h->attention_chunk > 0 ||
            h->positions == LMQ_POSITIONS_ALIBI ||
            h->positions == LMQ_POSITIONS_ALIBI_SCALED || h->n_loops > 1)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has pools, which needs attention with "
                            "one key that is a value, once turned, and goes "
                            "neither with chunks, ALiBi nor several times "
                            "through layers",
                            i);
        if (h->head_dim > LMQ_MAX_WIDTH / 2)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "a head of %u is too wide for pools", h->head_dim);
    }
    return has_index ? check_index(h, err) : LMQ_OK;
}

/* Layers that choose positions, and those that follow. */
static enum lmq_status
check_choosers(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool has_any = false, has_chosen = false;

    for (uint32_t i = 0; i < h->n_layers; i++) {
        bool is_chooser = lmq_layer_is(h, i, LMQ_LAYER_INDEX);
        has_any |= is_chooser;
        has_chosen |= is_chooser;
        if (!has_chosen || !lmq_layer_has_attention(h, i))
            continue;
        if (h->kv_lora_rank == 0 || h->q_lora_rank == 0 ||
            lmq_layer_window(h, i) > 0 || lmq_layer_chunk(h, i) > 0 ||
            (is_chooser && lmq_layer_rotary_dim(h, i) > h->index_dim))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u sees chosen positions, which needs "
                            "latent attention whose queries are made of "
                            "latents, heads of the index that are as wide as "
                            "what turns, and neither windows nor chunks",
                            i);
    }
    if (has_any && h->index_topk == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "layers that choose no positions");
    return has_any ? check_index(h, err) : LMQ_OK;
}

static enum lmq_status
check_tables(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_table(h, i) &&
            (h->router == LMQ_ROUTER_NEAR || h->n_expert_groups > 0 ||
             h->has_expert_norms))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has a table of experts, which does not "
                            "go with groups or norms of experts, nor with "
                            "weights by what is near",
                            i);
    return LMQ_OK;
}

enum lmq_status
lmq_pools_check(const struct lmq_hparams *h, struct lmq_error *err)
{
    enum lmq_status status = check_turned_values(h, err);

    if (status == LMQ_OK)
        status = check_out_groups(h, err);
    if (status == LMQ_OK)
        status = check_pools(h, err);
    if (status == LMQ_OK)
        status = check_choosers(h, err);
    return status == LMQ_OK ? check_tables(h, err) : status;
}
