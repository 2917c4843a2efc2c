/*
 * hparams_settle.c - descriptions: one way of saying each thing.
 */
#include "config.h"

#include "formats/model/hparams.h"

#include <string.h>

#include "formats/grams/grams.h"

static void
clear_layers(struct lmq_hparams *h, enum lmq_layer_kind kind)
{
    for (size_t i = 0; i < LMQ_MAX_LAYERS; i++)
        h->layers[i] &= (uint32_t)~(unsigned)kind;
}

/* What a kind of scaling does not compute with is as it usually is. */
static void
settle_rope(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    static const struct {
        bool has_factor, has_bands, has_betas, has_context;
    } kinds[LMQ_ROPE_SCALING_COUNT] = {
        [LMQ_ROPE_LINEAR] = {true, false, false, false},
        [LMQ_ROPE_LLAMA3] = {true, true, false, true},
        [LMQ_ROPE_NTK] = {true, false, false, false},
        [LMQ_ROPE_DYNAMIC] = {true, false, false, true},
        [LMQ_ROPE_YARN] = {true, false, true, true},
        [LMQ_ROPE_LONGROPE] = {true, false, false, true},
    };

    if (!kinds[h->rope_scaling].has_factor)
        h->rope_factor = usual->rope_factor;
    if (!kinds[h->rope_scaling].has_bands) {
        h->rope_low_factor = usual->rope_low_factor;
        h->rope_high_factor = usual->rope_high_factor;
    }
    if (!kinds[h->rope_scaling].has_betas) {
        h->rope_ramp_exact = false;
        h->rope_beta_fast = usual->rope_beta_fast;
        h->rope_beta_slow = usual->rope_beta_slow;
    }
    if (!kinds[h->rope_scaling].has_context)
        h->rope_context = usual->rope_context;
    if (h->positions != LMQ_POSITIONS_ROTARY) {
        h->rope_theta = usual->rope_theta;
        h->rotary_dim = h->full_rotary_dim = 0;
        clear_layers(h, LMQ_LAYER_NOPE);
    }
    if (h->rotary_dim == h->head_dim)
        h->rotary_dim = 0;
    if (h->full_rotary_dim == lmq_hparams_rotary_dim(h))
        h->full_rotary_dim = 0;
}

/* A window that no layer has is none; full layers are worth saying only among
 * others. */
static void
settle_windows(struct lmq_hparams *h)
{
    bool has_window = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        has_window = has_window || (lmq_layer_has_attention(h, i) &&
                                    (lmq_layer_window(h, i) != 0 ||
                                     lmq_layer_chunk(h, i) != 0));
    if (!has_window)
        h->sliding_window = h->attention_chunk = 0;
    if (!has_window)
        clear_layers(h, LMQ_LAYER_FULL);
    if (h->sliding_window > 0)
        return;
    h->rope_local_theta = 0;
    h->full_head_dim = h->full_kv_heads = h->full_rotary_dim = 0;
    h->full_value_dim = h->full_kv_lora_rank = 0;
    h->full_attn_scale = 0;
    h->full_keys_are_values = false;
}

/* What no layer has needs no sizes; what a recurrent layer does not compute
 * with is as it usually is. */
static void
settle_delta(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    bool has_delta = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_DELTA)) {
            has_delta = true;
            if (lmq_layer_only_recurs(h, i))
                h->layers[i] &= (uint32_t)~(LMQ_LAYER_FULL | LMQ_LAYER_NOPE);
        } else {
            h->layers[i] &= (uint32_t)~LMQ_LAYER_BESIDE;
        }
    bool has_keys = !lmq_is_convolution(h) && !lmq_is_lru(h);
    if (has_delta && !has_keys)
        h->n_delta_key_heads = h->delta_key_dim = 0;
    if (has_delta && lmq_is_lightning(h))
        h->conv_width = 0;
    if (!has_delta || !lmq_is_lightning(h)) {
        h->decay_first = usual->decay_first;
        h->decay_step = usual->decay_step;
    }
    if (!has_delta || !has_keys)
        h->has_bare_states = false;
    if (!has_delta || !has_keys || h->has_bare_states ||
        !(h->state_eps < h->norm_eps || h->state_eps > h->norm_eps))
        h->state_eps = 0;
    if (!has_delta || h->recurrence != LMQ_RECURRENCE_DELTA)
        h->beta_scale = usual->beta_scale;
    if (!has_delta || !lmq_is_selective(h))
        h->has_step_norms = false;
    if (!has_delta || h->recurrence != LMQ_RECURRENCE_DELTA) {
        h->gate_rank = 0;
        h->has_key_decays = false;
        h->decay_floor = 0;
    }
    if (!has_delta ||
        (h->recurrence != LMQ_RECURRENCE_DELTA && !lmq_is_lightning(h)))
        h->has_sigmoid_gates = false;
    if (!h->has_step_norms)
        h->has_step_norm_weights = false;
    if (!has_delta ||
        (h->recurrence != LMQ_RECURRENCE_DELTA && !lmq_is_selective(h)))
        h->step_rank = 0;
    if (has_delta)
        return;
    h->recurrence = LMQ_RECURRENCE_DELTA;
    h->n_delta_key_heads = h->n_delta_value_heads = 0;
    h->delta_key_dim = h->delta_value_dim = h->conv_width = 0;
}

/* What no layer has needs no sizes, and is as it usually is. A layer's input
 * goes through the activation, too, and so does the gate of a recurrence
 * without keys. */
static void
settle_absent(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    bool has_attention = false, has_feed = false, has_one_feed = false;
    bool mixes = false, has_lru = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        has_lru |= lmq_is_lru(h) && lmq_layer_is(h, i, LMQ_LAYER_DELTA);
        has_attention |= lmq_layer_has_attention(h, i);
        has_feed |= lmq_layer_has_feed(h, i);
        mixes |= lmq_layer_mixes(h, i);
        has_one_feed |=
            lmq_layer_has_feed(h, i) && !lmq_layer_has_experts(h, i);
    }
    if (!has_attention && !has_one_feed)
        h->has_sub_norms = false;
    if (!mixes && (!has_feed || h->n_experts == 0))
        h->norm_gate_rank = 0;
    if (!has_attention) {
        h->n_heads = h->n_kv_heads = h->head_dim = 1;
        h->value_dim = h->full_head_dim = h->full_kv_heads = 0;
        h->full_rotary_dim = 0;
        h->q_lora_rank = h->kv_lora_rank = 0;
        h->attn_scale = h->attn_softcap = h->qkv_clip = 0;
        h->full_attn_scale = 0;
        h->value_scale = usual->value_scale;
        h->score_growth = 0;
        h->has_head_growth = false;
        h->qk_norm = usual->qk_norm;
        h->has_sinks = h->has_attn_gate = h->has_value_norm = false;
        h->has_head_gate = h->has_softplus_gate = false;
        if (h->positions != LMQ_POSITIONS_LEARNED)
            h->positions = LMQ_POSITIONS_NONE;
        h->rope_scaling = usual->rope_scaling;
        h->rope_attention_factor = usual->rope_attention_factor;
        h->n_rope_factors = 0;
    }
    if (!has_feed) {
        h->hidden_dim = 1;
        h->n_experts = 0;
        h->is_gated = true;
    }
    if (!has_feed && !has_lru && h->layer_input_dim == 0 &&
        h->activation != LMQ_ACTIVATION_XIELU) /* has tensors */
        h->activation = usual->activation;
}

/* Only attention has sinks; and a model of which no layer has any has none. */
static void
settle_sinks(struct lmq_hparams *h)
{
    bool has_any = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        if (!lmq_layer_has_attention(h, i))
            h->layers[i] &= (uint32_t)~LMQ_LAYER_SINKLESS;
        else
            has_any |= lmq_layer_has_sinks(h, i);
    h->has_sinks = has_any;
    if (!has_any)
        clear_layers(h, LMQ_LAYER_SINKLESS);
}

/* A layer that is a feed-forward alone has nothing else that could be so or so,
 * and the other way round. */
static void
settle_halves(struct lmq_hparams *h)
{
    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        unsigned never = 0;
        if (lmq_layer_is(h, i, LMQ_LAYER_FEED))
            never |= LMQ_LAYER_FULL | LMQ_LAYER_NOPE;
        if (lmq_layer_is(h, i, LMQ_LAYER_BARE))
            never |= LMQ_LAYER_DENSE;
        h->layers[i] &= (uint32_t)~never;
    }
}

static void
settle_experts(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    if (h->n_experts == 0) {
        h->n_experts_used = h->expert_dim = h->shared_dim = 0;
        h->n_expert_groups = 0;
        h->router = usual->router;
        h->router_scale = usual->router_scale;
        h->router_softcap = 0;
        h->router_renormalises = h->router_corrects = false;
        h->router_scales_input = h->has_expert_norms = false;
        h->router_is_early = false;
        clear_layers(h, LMQ_LAYER_DENSE);
    }
    if (h->router != LMQ_ROUTER_NEAR)
        h->router_reach = usual->router_reach;
    if (h->shared_dim == 0)
        h->shared_scale = usual->shared_scale;
    /* The same choice without groups. */
    if (h->n_expert_groups <= 1 ||
        h->n_expert_groups == h->n_expert_groups_used) {
        h->n_expert_groups = h->n_expert_groups_used = 0;
        h->expert_group_score = usual->expert_group_score;
    }
}

static void
settle_streams(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    bool has_gates = lmq_has_gated_streams(h);

    if (!has_gates)
        h->stream_rank = usual->stream_rank;
    if (!lmq_has_hyper_streams(h) || has_gates) {
        h->stream_rounds = usual->stream_rounds;
        h->stream_eps = usual->stream_eps;
        h->has_stream_mean = usual->has_stream_mean;
    }
    if (lmq_has_hyper_streams(h))
        return;
    h->stream_kind = usual->stream_kind;
    h->stream_gain = usual->stream_gain;
    h->stream_floor = usual->stream_floor;
}

/* Where norms stand behind the blocks it is one of them. */
static void
settle_mixture_norm(struct lmq_hparams *h)
{
    bool has_any = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        has_any |= lmq_layer_has_experts(h, i) &&
                   lmq_layer_norm_place(h, i) == LMQ_NORMS_BEFORE;
    if (!has_any)
        h->has_mixture_norm = false;
}

/* Norms behind blocks may have an epsilon of their own, where there are any;
 * that of embeddings may lack weights, where others have some. */
static void
settle_norms(struct lmq_hparams *h)
{
    bool has_post = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        has_post |= lmq_layer_has_feed_post_norm(h, i) ||
                    (lmq_layer_mixes(h, i) &&
                     lmq_layer_norm_place(h, i) != LMQ_NORMS_BEFORE);
    if (!has_post ||
        !(h->post_norm_eps < h->norm_eps || h->post_norm_eps > h->norm_eps))
        h->post_norm_eps = 0;
    if (!h->has_embedding_norm || !lmq_norms_weigh(h))
        h->has_bare_embedding_norm = false;
}

/* Only a gated feed-forward that is no expert is sparse. */
static void
settle_sparse(struct lmq_hparams *h)
{
    bool has_any = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        if (!lmq_layer_is_sparse(h, i))
            h->layers[i] &= (uint32_t)~LMQ_LAYER_SPARSE;
        has_any |= lmq_layer_is_sparse(h, i);
    }
    if (!has_any)
        h->sparse_cut = 0;
}

static void
settle_limits(struct lmq_hparams *h)
{
    bool has_any = false, has_experts = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        if (lmq_layer_act_limit(h, i) > 0)
            has_any = true;
        else
            h->layers[i] &= (uint32_t)~LMQ_LAYER_LIMITED;
        if (lmq_layer_expert_act_limit(h, i) > 0)
            has_experts = true;
        else
            h->layers[i] &= (uint32_t)~LMQ_LAYER_LIMITED_EXPERTS;
    }
    if (!has_any)
        h->act_limit = 0;
    if (!has_experts)
        h->expert_act_limit = 0;
}

/* A model that lacks a kind of blocks says nothing of what they add to. */
static void
settle_kept(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    bool has_attention = false, has_delta = false, has_feed = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        has_attention |= lmq_layer_has_attention(h, i);
        has_delta |= lmq_layer_only_recurs(h, i);
        has_feed |= lmq_layer_has_feed(h, i);
    }
    if (!has_attention) {
        h->attn_keep = usual->attn_keep;
        h->attn_add = usual->attn_add;
    }
    if (!has_delta) {
        h->delta_keep = usual->delta_keep;
        h->delta_add = usual->delta_add;
    }
    if (!has_feed) {
        h->feed_keep = usual->feed_keep;
        h->feed_add = usual->feed_add;
    }
}

/* Only latents of layers that stand still may be whole. */
static void
settle_still(struct lmq_hparams *h)
{
    bool has_any = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        has_any |= lmq_layer_has_attention(h, i) &&
                   lmq_layer_is(h, i, LMQ_LAYER_NOPE);
    if (!has_any || h->kv_lora_rank == 0)
        h->has_whole_still = false;
}

/* Latents of layers that see everything. */
static void
settle_full(struct lmq_hparams *h)
{
    if (h->full_kv_lora_rank == h->kv_lora_rank || h->kv_lora_rank == 0)
        h->full_kv_lora_rank = 0;
    if (h->full_value_dim == lmq_hparams_value_dim(h) || h->kv_lora_rank == 0)
        h->full_value_dim = 0;
    if (!(h->full_attn_scale < h->attn_scale ||
          h->full_attn_scale > h->attn_scale))
        h->full_attn_scale = 0;
}

/* What only some attentions, some feed-forwards compute with. */
static void
settle_parts(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    if (!(h->score_growth > 0) || h->score_growth_period == 0) {
        h->score_growth = 0;
        h->score_growth_period = h->score_growth_shift = 0;
        h->score_growth_still = false;
    }
    if (h->qk_norm == LMQ_QK_NORM_NONE || h->positions != LMQ_POSITIONS_ROTARY)
        h->qk_norm_late = false;
    if (h->activation != LMQ_ACTIVATION_SILU)
        h->activation_slope = usual->activation_slope;
    if (h->n_borrowing == 0 || h->borrowing_hidden_dim == h->hidden_dim)
        h->borrowing_hidden_dim = 0;
    if ((h->kv_lora_rank == 0 && !h->has_step_norms) ||
        !(h->latent_eps < h->norm_eps || h->latent_eps > h->norm_eps))
        h->latent_eps = 0;
    if (!h->is_gated)
        h->glu_limit = h->glu_offset = 0;
    if (h->glu_limits_experts && h->n_experts == 0)
        h->glu_limit = 0;
    if (!(h->glu_limit > 0))
        h->glu_limits_experts = false;
    if (h->kv_lora_rank == 0 || h->q_lora_rank == 0)
        h->has_raw_latents = false;
    if (!h->has_attn_gate)
        h->has_head_gate = h->has_softplus_gate = false;
    if (h->norm_place == LMQ_NORMS_AFTER)
        clear_layers(h, LMQ_LAYER_AFTER);
    settle_mixture_norm(h);
    settle_streams(h, usual);
    settle_norms(h);
    if (h->n_loops < 2) {
        h->n_loops = 0;
        h->has_loop_norm = false;
    }
    if (h->layer_input_dim == 0 || h->layer_input_vocab == h->vocab_size)
        h->layer_input_vocab = 0;
    settle_sparse(h);
    settle_limits(h);
    settle_kept(h, usual);
    settle_still(h);
    settle_full(h);
}

/* ---- Numbers of layers ---- */

/* A number that layers may have of their own: for all, for those of another
 * kind (0: the same), for each. */
struct layer_count {
    uint32_t *all, *other, *each;
    bool (*counts)(const struct lmq_hparams *h, size_t layer);
    bool (*is_other)(const struct lmq_hparams *h, size_t layer);
    uint32_t (*of)(const struct lmq_hparams *h, size_t layer);
};

/* One number for each kind of layers, in place of each layer's, if that says
 * the same. */
static void
settle_by_kind(const struct lmq_hparams *h, const struct layer_count *count)
{
    uint32_t all = 0, other = 0;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        uint32_t *kind = count->is_other(h, i) ? &other : &all;
        if (!count->counts(h, i))
            continue;
        if (*kind != 0 && *kind != count->of(h, i))
            return;
        *kind = count->of(h, i);
    }
    if (all == 0 || other == 0)
        return;
    *count->all = all;
    *count->other = other;
    memset(count->each, 0, LMQ_MAX_LAYERS * sizeof(*count->each));
}

/* The most of any layer for all; for each what is another number. */
static void
settle_count(const struct lmq_hparams *h, const struct layer_count *count)
{
    uint32_t most = 0;
    bool is_used = false;

    for (size_t i = 0; i < LMQ_MAX_LAYERS; i++)
        if (i >= h->n_layers || !count->counts(h, i)) {
            count->each[i] = 0;
        } else {
            is_used |= count->each[i] > 0;
            most = count->of(h, i) > most ? count->of(h, i) : most;
        }
    if (!is_used)
        return;
    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        if (count->counts(h, i))
            count->each[i] = count->of(h, i);
    *count->all = most;
    if (count->other != NULL)
        *count->other = 0;
    for (size_t i = 0; i < LMQ_MAX_LAYERS; i++)
        if (count->each[i] == most)
            count->each[i] = 0;
    if (count->other != NULL)
        settle_by_kind(h, count);
}

static bool
is_full(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_is(h, layer, LMQ_LAYER_FULL);
}

static bool
is_one_feed(const struct lmq_hparams *h, size_t layer)
{
    return lmq_layer_has_feed(h, layer) && !lmq_layer_has_experts(h, layer);
}

static void
settle_layers(struct lmq_hparams *h)
{
    const struct layer_count counts[] = {
        {&h->n_heads, NULL, h->layer_heads, lmq_layer_has_attention, NULL,
         lmq_layer_heads},
        {&h->n_kv_heads, h->sliding_window > 0 ? &h->full_kv_heads : NULL,
         h->layer_kv_heads, lmq_layer_has_attention, is_full,
         lmq_layer_kv_heads},
        {&h->hidden_dim, &h->borrowing_hidden_dim, h->layer_hidden_dims,
         is_one_feed, lmq_layer_borrows, lmq_layer_hidden_dim},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        settle_count(h, &counts[i]);
}

/* pools.h. */
static void
settle_pools(struct lmq_hparams *h)
{
    bool has_attention = false;
    unsigned kinds = 0;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++) {
        if (!lmq_layer_has_attention(h, i))
            h->layers[i] &= (uint32_t)~(LMQ_LAYER_POOL | LMQ_LAYER_OVERLAP |
                                        LMQ_LAYER_INDEX);
        if (!lmq_layer_has_experts(h, i))
            h->layers[i] &= (uint32_t)~LMQ_LAYER_TOKENS;
        has_attention |= lmq_layer_has_attention(h, i);
        kinds |= h->layers[i];
    }
    if (!has_attention) {
        h->has_turned_values = false;
        h->n_out_groups = 0;
    }
    if (h->n_out_groups == 0)
        h->out_rank = 0;
    if ((kinds & LMQ_LAYER_POOL) == 0)
        h->pool_size = 0;
    if ((kinds & LMQ_LAYER_OVERLAP) == 0)
        h->overlap_size = 0;
    if ((kinds & (LMQ_LAYER_OVERLAP | LMQ_LAYER_INDEX)) == 0)
        h->index_topk = 0;
    if (h->index_topk == 0)
        h->n_index_heads = h->index_dim = 0;
    if ((kinds & LMQ_LAYER_INDEX) == 0 ||
        !(h->index_eps < h->norm_eps || h->index_eps > h->norm_eps))
        h->index_eps = 0;
}

void
lmq_hparams_settle(struct lmq_hparams *h)
{
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    if (h->value_dim == h->head_dim)
        h->value_dim = 0;
    if (h->full_head_dim == h->head_dim)
        h->full_head_dim = 0;
    if (h->full_kv_heads == h->n_kv_heads)
        h->full_kv_heads = 0;
    settle_absent(h, &usual);
    settle_sinks(h);
    settle_rope(h, &usual);
    settle_delta(h, &usual);
    settle_halves(h);
    settle_windows(h);
    settle_experts(h, &usual);
    settle_layers(h);
    settle_parts(h, &usual);
    settle_pools(h);
    lmq_grams_settle(h);
}
