/*
 * hparams_check.c - what a forward pass takes for granted about a description:
 * fields within their limits, and what several fields say together.
 */
#include "config.h"

#include "formats/model/hparams_check.h"

#include <math.h>

#include "base/error.h"
#include "formats/model/hparams_fields.h"
#include "formats/grams/grams.h"
#include "formats/model/pools.h"

/* What does not turn at all has 1e30, which float32 cannot say exactly. */
#define FACTOR_MOST 1.1e30

static enum lmq_status
check_numbers(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++) {
        double value = f->type == LMQ_FIELD_COUNT || f->type == LMQ_FIELD_REAL
                           ? lmq_field_get(f, h)
                           : 0;
        if (f->type == LMQ_FIELD_COUNT && (value < f->least || value > f->most))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %.0f, expected %u to %u", f->key, value,
                            f->least, f->most);
        if (!isfinite(value) || value < 0 || value > 1e30)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %g, expected 0 to 1e30", f->key, value);
    }
    if (h->context_end > 0 && h->context > h->context_end)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a context of %u is beyond its end, %u", h->context,
                        h->context_end);
    return LMQ_OK;
}

static enum lmq_status
check_heads(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t rotary = lmq_hparams_rotary_dim(h);

    for (uint32_t i = 0; i < h->n_layers; i++) {
        uint32_t heads = lmq_layer_heads(h, i), kv = lmq_layer_kv_heads(h, i);
        if (lmq_layer_has_attention(h, i) && heads % kv != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%u heads of layer %u cannot share %u key/value "
                            "heads evenly",
                            heads, i, kv);
    }
    if (rotary % 2 != 0 || rotary > h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rotary positions need an even number of dimensions, "
                        "at most the head size %u, found %u",
                        h->head_dim, rotary);
    if ((uint64_t)h->n_heads * h->head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->n_heads * lmq_hparams_value_dim(h) > LMQ_MAX_WIDTH ||
        (uint64_t)h->kv_lora_rank + h->head_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%u heads of %u are too wide",
                        h->n_heads, h->head_dim);
    if (h->kv_lora_rank > 0 && rotary >= h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "latent attention with heads of %u, of which %u turn, "
                        "leaves nothing still",
                        h->head_dim, rotary);
    if ((uint64_t)h->full_kv_lora_rank + h->full_head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->full_kv_lora_rank + h->head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->kv_lora_rank + h->full_head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->n_heads * h->full_value_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u latents, or heads of %u, of layers that see "
                        "everything are too wide",
                        h->full_kv_lora_rank, h->full_value_dim);
    if (h->kv_lora_rank > 0 && h->full_head_dim > 0 &&
        rotary >= h->full_head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "latent attention with heads of %u, of which %u turn, "
                        "leaves nothing still",
                        h->full_head_dim, rotary);
    if (h->qk_norm == LMQ_QK_NORM_TURNING && h->kv_lora_rank == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a norm of what turns of keys needs latents");
    if (h->has_raw_latents && h->q_lora_rank > LMQ_MAX_WIDTH / 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u latents of queries are too wide to be there twice",
                        h->q_lora_rank);
    return LMQ_OK;
}

static bool
has_heads_by_layer(const struct lmq_hparams *h)
{
    bool has_any = false;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_any |= h->layer_heads[i] > 0;
    return has_any;
}

static bool
has_key_heads_by_layer(const struct lmq_hparams *h)
{
    bool has_any = false;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_any |= h->layer_kv_heads[i] > 0;
    return has_any;
}

/* Heads of their own in layers that see everything. Then these are the ones
 * that rotary scaling is for. */
static enum lmq_status
check_full_heads(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool is_rotary = h->positions == LMQ_POSITIONS_ROTARY;

    if ((uint64_t)h->n_heads * h->full_head_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%u heads of %u are too wide",
                        h->n_heads, h->full_head_dim);
    if (h->full_head_dim > 0 && h->kv_lora_rank == 0 &&
        (h->value_dim > 0 || h->rotary_dim > 0 || h->full_head_dim % 2 != 0 ||
         (is_rotary && h->rope_local_theta <= 0)))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "layers that see everything have heads of %u, which "
                        "goes only with an even number, windows, a rotary "
                        "base for these, and heads that turn as a whole",
                        h->full_head_dim);
    if (h->full_rotary_dim > 0 &&
        (h->full_head_dim > 0 || h->full_rotary_dim % 2 != 0 ||
         h->full_rotary_dim > h->head_dim || h->rope_local_theta <= 0))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "of heads of %u in layers that see everything %u "
                        "dimensions turn, which needs an even number, at most "
                        "the head size, windows, and a rotary base for these",
                        h->head_dim, h->full_rotary_dim);
    bool differ = h->full_kv_heads > 0 || h->full_rotary_dim > 0 ||
                  has_key_heads_by_layer(h) || h->full_keys_are_values ||
                  h->n_borrowing > 0;
    if ((differ && h->kv_lora_rank > 0) ||
        ((differ || h->full_head_dim > 0 || has_heads_by_layer(h)) &&
         h->qk_norm == LMQ_QK_NORM_HEADS))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "heads that differ between layers, or that several "
                        "share, do not go with latent attention or with norms "
                        "for each head");
    if (has_heads_by_layer(h) && (h->positions == LMQ_POSITIONS_ALIBI ||
                        h->positions == LMQ_POSITIONS_ALIBI_SCALED))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "numbers of heads that differ between layers do not "
                        "go with ALiBi");
    if ((h->full_keys_are_values || h->n_borrowing > 0) && h->value_dim > 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "values of another size than keys are no keys, and "
                        "several layers do not share them");
    return LMQ_OK;
}

/* Who has no keys and values of its own needs a layer of its kind that has. */
static enum lmq_status
check_borrowing(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->n_borrowing >= h->n_layers)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u layers borrow keys and values",
                        h->n_borrowing, h->n_layers);
    for (uint32_t i = 0; h->n_borrowing > 0 && i < h->n_layers; i++) {
        size_t source = lmq_layer_kv_source(h, i);
        if (!lmq_layer_has_attention(h, i))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "n_borrowing is %u, but layer %u has no keys and "
                            "values",
                            h->n_borrowing, i);
        if (lmq_layer_kv_heads(h, i) != lmq_layer_kv_heads(h, source))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u borrows keys of %u heads, but layer %zu "
                            "has %u",
                            i, lmq_layer_kv_heads(h, i), source,
                            lmq_layer_kv_heads(h, source));
        if (lmq_layer_borrows(h, i) && lmq_layer_borrows(h, source))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u of %u borrows keys and values, but no "
                            "layer before the last %u sees as far",
                            i, h->n_layers, h->n_borrowing);
    }
    return LMQ_OK;
}

static enum lmq_status
check_layer_inputs(const struct lmq_hparams *h, struct lmq_error *err)
{
    if ((uint64_t)h->layer_input_dim * h->n_layers > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "inputs of %u for each of %u layers are too wide",
                        h->layer_input_dim, h->n_layers);
    if (h->has_expert_norms && h->residual != LMQ_RESIDUAL_SEQUENTIAL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "norms of experts do not go with a feed-forward "
                        "beside attention");
    return LMQ_OK;
}

/* What stands beside the residual stream. */
static enum lmq_status
check_streams(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->n_streams == 1)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "n_streams is 1, expected 0 or 2 to %d",
                        LMQ_MAX_STREAMS);
    if ((uint64_t)h->n_streams * h->dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u streams of %u are too wide", h->n_streams, h->dim);
    for (uint32_t i = 0; lmq_has_hyper_streams(h) && i < h->n_layers; i++)
        if (h->residual != LMQ_RESIDUAL_SEQUENTIAL ||
            h->layer_input_dim > 0 || h->residual_rank > 0 ||
            h->has_layer_scale || h->has_expert_norms ||
            lmq_layer_is(h, i, LMQ_LAYER_BESIDE) ||
            lmq_layer_norm_place(h, i) == LMQ_NORMS_AFTER)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has streams of which blocks read a sum, "
                            "which needs norms before blocks of which one "
                            "follows the other, and nothing beside them",
                            i);
    if (lmq_has_gated_streams(h) && h->stream_rank == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "stream_rank is 0, but gates of streams are made by "
                        "two matrices");
    for (uint32_t i = 0; h->norm_gate_rank > 0 && i < h->n_layers; i++)
        if (h->residual != LMQ_RESIDUAL_SEQUENTIAL ||
            lmq_layer_norm_place(h, i) == LMQ_NORMS_AFTER)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has gates of norms, which needs norms "
                            "before blocks of which one follows the other",
                            i);
    for (uint32_t i = 0; h->residual_rank > 0 && i < h->n_layers; i++)
        if (h->residual != LMQ_RESIDUAL_SEQUENTIAL ||
            !lmq_layer_mixes(h, i) ||
            lmq_layer_is(h, i, LMQ_LAYER_BESIDE) ||
            lmq_layer_norm_place(h, i) == LMQ_NORMS_AFTER)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has something that goes past attention, "
                            "which needs a norm before attention alone, and "
                            "a feed-forward that is not beside it",
                            i);
    return LMQ_OK;
}

/* What blocks add to is scaled, or normed. */
static enum lmq_status
check_kept(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (uint32_t i = 0; i < h->n_layers && !lmq_adds_plainly(h); i++)
        if (h->residual != LMQ_RESIDUAL_SEQUENTIAL ||
            lmq_layer_is(h, i, LMQ_LAYER_BESIDE) || h->n_streams > 0 ||
            h->residual_rank > 0 || h->norm_gate_rank > 0 ||
            (h->has_normed_residual &&
             lmq_layer_norm_place(h, i) == LMQ_NORMS_AFTER))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has something else beside the stream "
                            "that its blocks add to, which is scaled or "
                            "normed before",
                            i);
    return LMQ_OK;
}

/* What is remembered from layer to layer is of one time through them. */
static enum lmq_status
check_loops(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool is_other = h->n_borrowing > 0 || h->layer_input_dim > 0 ||
                    h->n_streams > 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        is_other |= lmq_layer_is(h, i, LMQ_LAYER_DELTA);
    if (h->n_loops > 1 && is_other)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u times through layers do not go with states, "
                        "streams, inputs of layers or borrowed keys",
                        h->n_loops);
    return LMQ_OK;
}

static enum lmq_status
check_rope(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->rope_theta < 1 || h->rope_theta > 1e15 || h->rope_factor < 1e-6 ||
        h->rope_factor > 1e6)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_theta is %g and rope_factor %g, expected 1 to "
                        "1e15 and 1e-6 to 1e6",
                        h->rope_theta, h->rope_factor);
    if (h->rope_local_theta != 0 &&
        (h->rope_local_theta < 1 || h->rope_local_theta > 1e15))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_local_theta is %g, expected 1 to 1e15",
                        h->rope_local_theta);
    if (h->rope_scaling == LMQ_ROPE_LLAMA3 &&
        !(h->rope_low_factor <= h->rope_high_factor))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_low_factor is %g and rope_high_factor %g, "
                        "expected the first not to be larger",
                        h->rope_low_factor, h->rope_high_factor);
    if (h->rope_scaling == LMQ_ROPE_YARN &&
        !(h->rope_beta_slow > 0 && h->rope_beta_fast >= h->rope_beta_slow))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_beta_fast is %g and rope_beta_slow %g, expected "
                        "the second above 0 and not above the first",
                        h->rope_beta_fast, h->rope_beta_slow);
    bool has_factors = h->rope_scaling == LMQ_ROPE_LONGROPE ||
                       h->rope_scaling == LMQ_ROPE_FACTORS;
    if (!has_factors)
        return LMQ_OK;
    if (h->n_rope_factors != lmq_hparams_far_rotary_dim(h) / 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "there are %u rotary factors, expected %u",
                        h->n_rope_factors, lmq_hparams_far_rotary_dim(h) / 2);
    for (uint32_t i = 0; i < h->n_rope_factors; i++)
        if (!(h->rope_short[i] >= 1e-6 && h->rope_short[i] <= FACTOR_MOST) ||
            (h->rope_scaling == LMQ_ROPE_LONGROPE &&
             !(h->rope_long[i] >= 1e-6 && h->rope_long[i] <= FACTOR_MOST)))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "rotary factor %u is %g or %g, expected 1e-6 to "
                            "1.1e30",
                            i, h->rope_short[i], h->rope_long[i]);
    return LMQ_OK;
}

/* What has not both parts has none beside another. */
static enum lmq_status
check_halves(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        bool mixes = lmq_layer_mixes(h, i);
        bool has_feed = lmq_layer_has_feed(h, i);
        if (mixes && has_feed)
            continue;
        if (!mixes && lmq_layer_is(h, i, LMQ_LAYER_DELTA))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u is recurrent, and yet is nothing but a "
                            "feed-forward",
                            i);
        if (h->residual != LMQ_RESIDUAL_SEQUENTIAL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has one part, which does not go with a "
                            "feed-forward beside attention",
                            i);
    }
    return LMQ_OK;
}

/* What is added to the stream twice has no norm behind it. */
static enum lmq_status
check_beside(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_BESIDE) &&
            (lmq_is_convolution(h) || lmq_is_selective(h) || lmq_is_lru(h) ||
             h->n_borrowing > 0 ||
             h->kv_lora_rank > 0 ||
             lmq_layer_norm_place(h, i) != LMQ_NORMS_BEFORE ||
             h->residual != LMQ_RESIDUAL_SEQUENTIAL))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "layer %u has attention beside a recurrence, which "
                            "does not go with convolutions, one that is "
                            "selective, borrowed keys, latents, norms "
                            "elsewhere than before, or a feed-forward beside "
                            "attention",
                            i);
    return LMQ_OK;
}

static enum lmq_status
check_delta(const struct lmq_hparams *h, struct lmq_error *err)
{
    bool has_delta = false;
    bool has_keys = !lmq_is_convolution(h) && !lmq_is_lru(h);
    uint32_t keys = has_keys ? h->n_delta_key_heads : 0;
    uint32_t key = has_keys ? h->delta_key_dim : 0;
    uint32_t values = h->n_delta_value_heads;
    uint64_t inner = (uint64_t)values * h->delta_value_dim;
    uint64_t width = 2 * (uint64_t)keys * key + inner;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_delta |= lmq_layer_is(h, i, LMQ_LAYER_DELTA);
    if (!has_delta)
        return LMQ_OK;
    if (inner == 0 || (h->conv_width == 0 && !lmq_is_lightning(h)))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "recurrent layers have %u heads of %u dimensions and "
                        "see %u tokens, expected none of these to be 0",
                        values, h->delta_value_dim, h->conv_width);
    if (lmq_is_lightning(h) &&
        !(h->decay_first >= h->decay_step * (h->n_layers - 1)))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "states that decay by %g in the first layer and by %g "
                        "less in each further one grow in the last of %u",
                        h->decay_first, h->decay_step, h->n_layers);
    if (has_keys && (keys == 0 || key == 0))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "recurrent layers have %u key heads of %u "
                        "dimensions, expected none of these to be 0",
                        keys, key);
    if (lmq_is_selective(h) && (h->step_rank == 0 || h->delta_value_dim != 1))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a selective recurrence has step_rank %u and "
                        "delta_value_dim %u, expected at least 1 and just 1",
                        h->step_rank, h->delta_value_dim);
    if (has_keys && values % keys != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u value heads cannot share %u key heads evenly",
                        values, keys);
    if (width > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u and %u heads of %u and %u are too wide", keys,
                        values, key, h->delta_value_dim);
    if (key > 0 && inner > LMQ_MAX_WIDTH / key)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a layer's state of %u times %u times %u numbers is "
                        "too large",
                        values, key, h->delta_value_dim);
    return LMQ_OK;
}

static enum lmq_status
check_experts(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t groups = h->n_expert_groups;

    if (h->n_experts == 0)
        return LMQ_OK;
    if (h->n_experts_used == 0 || h->n_experts_used > h->n_experts ||
        h->expert_dim == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u experts of %u dimensions make no model",
                        h->n_experts_used, h->n_experts, h->expert_dim);
    if (h->router_is_early && (h->has_expert_norms || h->n_streams > 0))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a router that looks at what enters its layer does "
                        "not go with norms of experts or several streams");
    if (groups > 0 &&
        (h->n_experts % groups != 0 || h->n_expert_groups_used == 0 ||
         h->n_expert_groups_used > groups ||
         (uint64_t)h->n_expert_groups_used * (h->n_experts / groups) <
             h->n_experts_used))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u groups do not give %u of %u experts",
                        h->n_expert_groups_used, groups, h->n_experts_used,
                        h->n_experts);
    return LMQ_OK;
}

enum lmq_status
lmq_hparams_check(const struct lmq_hparams *hparams, struct lmq_error *err)
{
    static enum lmq_status (*const checks[])(const struct lmq_hparams *h,
                                             struct lmq_error *err) = {
        check_numbers, check_heads, check_full_heads, check_borrowing,
        check_layer_inputs, check_streams, check_kept, check_loops, check_rope,
        check_halves, check_beside, check_delta, check_experts,
        lmq_pools_check, lmq_grams_check};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0;
         i < sizeof(checks) / sizeof(checks[0]) && status == LMQ_OK; i++)
        status = checks[i](hparams, err);
    return status;
}
