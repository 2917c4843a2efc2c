/*
 * make_random.c - containers of random descriptions, and what a reader must
 * find in them:
 *
 *     make_random FOLDER N [SEED]
 *
 * writes FOLDER/0.lmq, 0.txt, ... For readers in another language:
 *
 *     for i in FOLDER/[0-9]*.lmq; do
 *         tests/formats/lmq/read_lmq.py $i --verify --expect ${i%.lmq}.txt
 *     done
 *     tests/reader/reader.py compare FOLDER
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/model/hparams.h"
#include "lmquant.h"
#include "tests/build/expect_lmq.h"
#include "tests/build/suite.h" /* random numbers; nothing of Check */
#include "tests/families/variants.h"

static struct random chance;

static uint32_t
from_to(uint32_t least, uint32_t most)
{
    return least + (uint32_t)random_below(&chance, most - least + 1);
}

static bool
once_in(uint32_t n)
{
    return random_below(&chance, n) == 0;
}

/* 0, as it mostly is, or a number. */
static double
perhaps(double least, double most)
{
    return once_in(2) ? 0 : least + (most - least) * from_to(0, 64) / 64;
}

static double
number(double least, double most)
{
    return least + (most - least) * from_to(0, 64) / 64;
}

static void
describe_sizes(struct lmq_hparams *h)
{
    lmq_hparams_init(h);
    h->n_layers = from_to(1, 3);
    h->dim = from_to(3, 12);
    h->hidden_dim = from_to(1, 14);
    h->n_kv_heads = from_to(1, 3);
    h->n_heads = h->n_kv_heads * from_to(1, 3);
    h->head_dim = 2 * from_to(1, 5);
    h->value_dim = once_in(3) ? from_to(1, 7) : h->head_dim;
    h->vocab_size = from_to(5, 15);
    h->context = from_to(10, 16);
    h->tie = LMQ_TIE_NO;
}

static void
describe_blocks(struct lmq_hparams *h)
{
    h->norm = (enum lmq_norm)from_to(0, LMQ_NORM_COUNT - 1);
    h->norm_place = (enum lmq_norm_place)from_to(0, LMQ_NORM_PLACE_COUNT - 1);
    h->residual = (enum lmq_residual)from_to(0, LMQ_RESIDUAL_COUNT - 1);
    h->activation = (enum lmq_activation)from_to(0, LMQ_ACTIVATION_COUNT - 1);
    h->is_gated = !once_in(3);
    h->embedding_scale = number(0.5, 3);
    h->residual_scale = number(0.25, 1.5);
    h->logit_scale = number(0.25, 2);
    h->logit_softcap = perhaps(1, 4);
    h->attn_scale = perhaps(0.1, 1);
    h->attn_softcap = perhaps(1, 4);
    h->value_scale = once_in(3) ? number(0.25, 2) : 1;
    h->has_sinks = once_in(3);
    h->has_embedding_norm = once_in(3);
    h->has_bare_embedding_norm = once_in(2);
    h->post_norm_eps = once_in(3) ? number(1e-7, 1e-2) : 0;
    h->sliding_window = once_in(2) ? from_to(1, 6) : 0;
    h->attention_chunk = once_in(3) ? from_to(1, 6) : 0;
    h->score_growth = perhaps(0.1, 1);
    h->score_growth_period = from_to(1, 4);
    h->score_growth_shift = from_to(0, 2);
    h->score_growth_still = once_in(2);
    h->has_head_growth = once_in(3);
    h->activation_slope = once_in(2) ? 1 : number(0.5, 2);
    h->glu_limit = perhaps(0.5, 2);
    h->glu_limits_experts = once_in(3);
    h->glu_offset = perhaps(0.5, 1);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i] = (uint32_t)(
            from_to(0, 7) | (once_in(4) ? LMQ_LAYER_SINKLESS : 0) |
            (once_in(4) ? LMQ_LAYER_AFTER : 0));
    h->has_attn_gate = once_in(4);
    h->has_head_gate = h->has_attn_gate && once_in(2);
    h->has_softplus_gate = h->has_attn_gate && once_in(2);
}

/* Layers without keys and values, and layers of one half. */
static void
describe_recurrence(struct lmq_hparams *h)
{
    bool has_halves = h->residual == LMQ_RESIDUAL_SEQUENTIAL && once_in(2);
    bool may_attend = h->residual == LMQ_RESIDUAL_SEQUENTIAL &&
                      h->norm_place == LMQ_NORMS_BEFORE;

    if (once_in(2))
        return;
    h->recurrence =
        (enum lmq_recurrence)from_to(0, LMQ_RECURRENCE_COUNT - 1);
    h->n_delta_key_heads = from_to(1, 3);
    h->n_delta_value_heads = h->n_delta_key_heads * from_to(1, 3);
    h->delta_key_dim = from_to(1, 9);
    h->delta_value_dim =
        h->recurrence == LMQ_RECURRENCE_SELECTIVE ? 1 : from_to(1, 9);
    h->conv_width = from_to(1, 5);
    may_attend &= h->recurrence != LMQ_RECURRENCE_CONVOLUTION &&
                  h->recurrence != LMQ_RECURRENCE_LRU &&
                  h->recurrence != LMQ_RECURRENCE_SELECTIVE;
    h->has_bare_states = once_in(3);
    h->state_eps = perhaps(1e-4, 1e-1);
    h->beta_scale = once_in(2) ? 1 : number(0.5, 2);
    h->step_rank = from_to(1, 9);
    if (h->recurrence == LMQ_RECURRENCE_DELTA && once_in(2))
        h->step_rank = 0;
    h->gate_rank = once_in(2) ? from_to(1, 9) : 0;
    h->has_step_norms = once_in(2);
    h->has_step_norm_weights = once_in(2);
    h->has_key_decays = once_in(2);
    h->has_sigmoid_gates = once_in(2);
    h->decay_floor = once_in(2) ? number(0.1, 6) : 0;
    h->decay_first = number(0.5, 2);
    h->decay_step = number(0, 0.5) / h->n_layers;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (once_in(2))
            h->layers[i] |= LMQ_LAYER_DELTA |
                            (may_attend &&
                                     !lmq_layer_is(h, i, LMQ_LAYER_AFTER) &&
                                     once_in(2)
                                 ? LMQ_LAYER_BESIDE
                                 : 0);
        else if (has_halves && once_in(3))
            h->layers[i] |= LMQ_LAYER_FEED;
        if (has_halves && once_in(lmq_layer_mixes(h, i) ? 3 : 6))
            h->layers[i] |= LMQ_LAYER_BARE;
    }
}

static void
describe_attention(struct lmq_hparams *h)
{
    h->positions = once_in(2) ? LMQ_POSITIONS_ROTARY
                              : (enum lmq_positions)from_to(
                                    0, LMQ_POSITIONS_COUNT - 1);
    if (h->positions == LMQ_POSITIONS_ROTARY)
        h->rotary_dim = 2 * from_to(1, h->head_dim / 2);
    if (once_in(4)) {
        h->n_kv_heads = h->n_heads;
        h->kv_lora_rank = from_to(1, 9);
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->layers[i] &= (uint32_t)~LMQ_LAYER_BESIDE;
        h->q_lora_rank = once_in(2) ? from_to(1, 9) : 0;
        h->latent_eps = once_in(2) ? number(1e-7, 1e-2) : 0;
        h->head_dim += 2;
        h->norm = LMQ_NORM_RMS; /* as variants.c writes latents */
        return;
    }
    h->qk_norm = (enum lmq_qk_norm)from_to(0, LMQ_QK_NORM_BARE);
    h->qk_norm_late = once_in(2);
    h->qkv_clip = perhaps(0.5, 2);
}

static void
describe_factors(struct lmq_hparams *h, uint32_t n)
{
    h->n_rope_factors = n;
    for (uint32_t i = 0; i < n; i++) {
        h->rope_short[i] = number(0.5, 4);
        h->rope_long[i] = number(0.5, 16);
    }
}

static void
describe_rope(struct lmq_hparams *h)
{
    h->rope_theta = number(1.5, 200);
    h->rope_local_theta = perhaps(1.5, 50);
    h->rope_scaling = (enum lmq_rope_scaling)from_to(
        0, LMQ_ROPE_SCALING_COUNT - 1);
    h->rope_factor = number(1, 8);
    h->rope_low_factor = number(0.5, 2);
    h->rope_high_factor = number(2.5, 8);
    h->rope_beta_slow = number(0.25, 1);
    h->rope_beta_fast = number(1, 8);
    h->rope_ramp_exact = once_in(2);
    h->rope_attention_factor = number(0.75, 1.5);
    h->rope_context = once_in(3) ? 0 : from_to(3, 12);
    describe_factors(h, lmq_hparams_rotary_dim(h) / 2);
}

/* Layers that see everything and have heads of their own. */
static void
describe_full_layers(struct lmq_hparams *h)
{
    h->full_head_dim = once_in(3) ? 0 : 2 * from_to(1, 6);
    if (h->full_head_dim == 0 && h->positions == LMQ_POSITIONS_ROTARY)
        h->full_rotary_dim = 2 * from_to(1, h->head_dim / 2);
    h->full_kv_heads = once_in(2) ? 0 : 1;
    h->full_keys_are_values = once_in(2);
    h->rope_local_theta = number(1.5, 50);
}

/* What of it is left when words that do not fit together have gone: a window
 * that no layer has is none. */
static struct lmq_hparams *
settled_copy(const struct lmq_hparams *h)
{
    struct lmq_hparams *settled = malloc(sizeof(*settled));

    if (settled == NULL)
        abort();
    *settled = *h;
    lmq_hparams_settle(settled);
    return settled;
}

static bool
has_windows(const struct lmq_hparams *h)
{
    struct lmq_hparams *settled = settled_copy(h);
    bool has = settled->sliding_window > 0;

    free(settled);
    return has;
}

/* Layers that see everything among others may have gone since they were
 * described, and their heads with them. */
static void
settle_full_layers(struct lmq_hparams *h)
{
    struct lmq_hparams *settled = settled_copy(h);
    uint32_t n_factors = lmq_hparams_far_rotary_dim(settled) / 2;

    h->full_head_dim = settled->full_head_dim;
    h->full_kv_heads = settled->full_kv_heads;
    h->full_value_dim = settled->full_value_dim;
    h->full_kv_lora_rank = settled->full_kv_lora_rank;
    if (n_factors != h->n_rope_factors)
        describe_factors(h, n_factors);
    free(settled);
}

/* And latents of their own. */
static void
describe_full_latents(struct lmq_hparams *h)
{
    bool has_heads = h->positions != LMQ_POSITIONS_ALIBI &&
                     h->positions != LMQ_POSITIONS_ALIBI_SCALED && once_in(2);

    if (once_in(2))
        h->qk_norm = LMQ_QK_NORM_TURNING;
    for (uint32_t i = 0; i < h->n_layers && has_heads; i++)
        h->layer_heads[i] = from_to(1, 4);
    if (has_heads)
        h->n_kv_heads = 1;
    if (!has_windows(h) || once_in(2))
        return;
    h->full_kv_lora_rank = from_to(1, 9);
    h->full_value_dim = from_to(1, 7);
    if (once_in(2))
        h->full_head_dim = lmq_hparams_rotary_dim(h) + from_to(1, 5);
}

/* The last layers may look at keys and values of others, if there are any that
 * see as far. */
static void
describe_borrowing(struct lmq_hparams *h)
{
    bool is_lent = true;

    h->n_borrowing = from_to(1, h->n_layers - 1);
    h->borrowing_hidden_dim = once_in(2) ? from_to(1, 9) : 0;
    for (uint32_t i = 0; i < h->n_layers; i++)
        is_lent &= !lmq_layer_is(h, i, LMQ_LAYER_DELTA) &&
                   lmq_layer_mixes(h, i) &&
                   !(lmq_layer_borrows(h, i) &&
                     lmq_layer_borrows(h, lmq_layer_kv_source(h, i)));
    if (!is_lent)
        h->n_borrowing = 0;
}

/* Where each layer mixes, with a norm before. */
static void
describe_bypass(struct lmq_hparams *h)
{
    bool may_have = h->residual == LMQ_RESIDUAL_SEQUENTIAL;

    for (uint32_t i = 0; i < h->n_layers; i++)
        may_have &= lmq_layer_mixes(h, i) &&
                    !lmq_layer_is(h, i, LMQ_LAYER_BESIDE) &&
                    lmq_layer_norm_place(h, i) != LMQ_NORMS_AFTER;
    h->residual_rank = may_have && once_in(2) ? from_to(1, 6) : 0;
}

/* Where nothing goes from layer to layer but x. */
static void
describe_loops(struct lmq_hparams *h)
{
    bool may_have = h->n_borrowing == 0 && h->layer_input_dim == 0 &&
                    h->n_streams == 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        may_have &= !lmq_layer_is(h, i, LMQ_LAYER_DELTA);
    h->n_loops = may_have && once_in(2) ? from_to(1, 3) : 0;
    h->has_loop_norm = once_in(2);
}

/* Numbers that differ from layer to layer. */
static void
describe_layers(struct lmq_hparams *h)
{
    bool has_heads = h->qk_norm != LMQ_QK_NORM_HEADS &&
                     h->kv_lora_rank == 0 && h->n_borrowing == 0 &&
                     h->positions != LMQ_POSITIONS_ALIBI &&
                     h->positions != LMQ_POSITIONS_ALIBI_SCALED && once_in(2);
    bool has_widths = once_in(3);

    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (has_heads) {
            h->layer_kv_heads[i] = from_to(1, 3);
            h->layer_heads[i] = h->layer_kv_heads[i] * from_to(1, 3);
        }
        if (has_widths)
            h->layer_hidden_dims[i] = from_to(1, 14);
    }
}

/* Where each layer's norms stand before, and no blocks side by side. */
static void
describe_norm_gates(struct lmq_hparams *h)
{
    bool may_have = h->residual == LMQ_RESIDUAL_SEQUENTIAL;

    for (uint32_t i = 0; i < h->n_layers; i++)
        may_have &= lmq_layer_norm_place(h, i) != LMQ_NORMS_AFTER;
    h->norm_gate_rank = may_have && once_in(2) ? from_to(1, 6) : 0;
    h->has_raw_latents =
        h->kv_lora_rank > 0 && h->q_lora_rank > 0 && once_in(2);
    h->has_whole_still = h->kv_lora_rank > 0 && once_in(2);
}

/* In some layers, of few tokens. */
static void
describe_grams(struct lmq_hparams *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n_layers; i++)
        if (once_in(2)) {
            h->layers[i] |= LMQ_LAYER_GRAMS;
            n++;
        }
    h->gram_size = from_to(2, 4);
    h->gram_heads = from_to(1, 3);
    h->gram_dim = from_to(1, 5);
    h->gram_conv_width = from_to(1, 4);
    h->gram_stop = from_to(0, h->vocab_size - 1);
    for (uint32_t i = 0; i < n * h->gram_size; i++)
        h->gram_factors[h->n_gram_factors++] =
            ((uint64_t)from_to(0, 1 << 22) << 32) + from_to(1, 1 << 30);
    for (uint32_t i = 0; i < n * (h->gram_size - 1) * h->gram_heads; i++)
        h->gram_rows[h->n_gram_rows++] = from_to(1, 9);
}

/* Where each layer's norms stand before, with nothing beside the blocks. */
static void
describe_hyper(struct lmq_hparams *h)
{
    bool may_have = h->residual == LMQ_RESIDUAL_SEQUENTIAL;

    for (uint32_t i = 0; i < h->n_layers; i++)
        may_have &= !lmq_layer_is(h, i, LMQ_LAYER_BESIDE) &&
                    lmq_layer_norm_place(h, i) != LMQ_NORMS_AFTER;
    if (!may_have || once_in(4))
        return;
    h->n_streams = from_to(2, 5);
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->has_layer_scale = false;
    h->layer_input_dim = h->layer_input_vocab = h->residual_rank = 0;
    h->stream_rounds = once_in(2) ? from_to(1, 5) : 0;
    h->stream_eps = perhaps(0.001, 0.2);
    h->stream_gain = number(0.5, 2);
    h->stream_floor = perhaps(0.001, 0.2);
    h->has_stream_mean = once_in(3);
    if (!once_in(3)) {
        h->stream_kind = LMQ_STREAMS_GATED;
        h->stream_rank = from_to(1, 7);
    }
}

static void
describe_kinds(struct lmq_hparams *h)
{
    h->has_layer_scale = once_in(3);
    h->has_sub_norms = once_in(4);
    h->has_mixture_norm = once_in(4);
    h->has_value_norm = h->kv_lora_rank == 0 && once_in(3);
    h->layer_input_dim = once_in(3) ? from_to(1, 5) : 0;
    if (h->layer_input_dim > 0 && once_in(2))
        h->layer_input_vocab = from_to(1, h->vocab_size + 3);
    h->n_streams = once_in(3) ? from_to(2, 4) : 0;
    describe_bypass(h);
    describe_norm_gates(h);
    describe_hyper(h);
    h->sparse_cut = once_in(2) ? number(0, 2) : 0;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (once_in(3))
            h->layers[i] |= LMQ_LAYER_SPARSE;
    h->act_limit = perhaps(0.1, 1);
    h->expert_act_limit = perhaps(0.1, 1);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (once_in(2))
            h->layers[i] |= LMQ_LAYER_LIMITED;
        if (once_in(2))
            h->layers[i] |= LMQ_LAYER_LIMITED_EXPERTS;
    }
    h->full_attn_scale = perhaps(0.1, 1);
    if (h->kv_lora_rank > 0)
        describe_full_latents(h);
    if (h->kv_lora_rank > 0 || once_in(2))
        return;
    if (h->qk_norm == LMQ_QK_NORM_HEADS)
        h->qk_norm = LMQ_QK_NORM_HEAD;
    if (once_in(4)) { /* whatever values are */
        h->full_kv_heads = has_windows(h) ? 1 : 0;
        return;
    }
    h->value_dim = h->rotary_dim = 0;
    if (has_windows(h))
        describe_full_layers(h);
    describe_factors(h, lmq_hparams_far_rotary_dim(h) / 2);
    if (h->n_layers > 1 && once_in(2))
        describe_borrowing(h);
}

static void
describe_experts(struct lmq_hparams *h)
{
    uint32_t groups = from_to(1, 3);

    if (once_in(2))
        return;
    h->n_experts = groups * from_to(1, 3);
    h->n_expert_groups = groups;
    h->n_expert_groups_used = from_to(1, groups);
    h->n_experts_used =
        from_to(1, h->n_expert_groups_used * (h->n_experts / groups));
    h->expert_dim = from_to(1, 9);
    h->shared_dim = once_in(2) ? from_to(1, 9) : 0;
    h->router = (enum lmq_router)from_to(0, LMQ_ROUTER_COUNT - 1);
    h->router_renormalises = once_in(2);
    h->router_scales_input = once_in(2);
    h->router_corrects = once_in(2);
    h->router_scale = number(0.5, 3);
    h->router_softcap = perhaps(0.5, 4);
    h->router_reach = h->router == LMQ_ROUTER_NEAR ? number(0, 1) : 0;
    h->shared_scale = once_in(3) ? number(0.25, 2) : 1;
    h->has_expert_norms =
        h->residual == LMQ_RESIDUAL_SEQUENTIAL && once_in(2) &&
        !lmq_has_hyper_streams(h);
    h->router_is_early =
        !h->has_expert_norms && h->n_streams == 0 && once_in(2);
    h->expert_group_score = once_in(2) ? LMQ_GROUP_SCORE_BEST
                                       : LMQ_GROUP_SCORE_BEST_TWO;
}

/* What blocks add to is theirs alone then. */
static void
describe_kept(struct lmq_hparams *h)
{
    double *const numbers[] = {&h->attn_keep, &h->delta_keep, &h->feed_keep,
                               &h->attn_add,  &h->delta_add,  &h->feed_add};

    if (h->residual != LMQ_RESIDUAL_SEQUENTIAL || !once_in(3))
        return;
    h->n_streams = h->residual_rank = h->norm_gate_rank = 0;
    h->has_normed_residual = once_in(2);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i] &= (uint32_t)~(LMQ_LAYER_BESIDE | LMQ_LAYER_GRAMS);
        if (lmq_layer_norm_place(h, i) == LMQ_NORMS_AFTER)
            h->has_normed_residual = false;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i] = once_in(3) ? 1 : number(0.5, 1.5);
}

/* Values that are keys, for which much else must not be; pools of them in some
 * layers. */
static void
describe_shared(struct lmq_hparams *h)
{
    static const enum lmq_qk_norm norms[] = {
        LMQ_QK_NORM_NONE, LMQ_QK_NORM_HEAD, LMQ_QK_NORM_BARE_QUERIES};
    bool may_pool = h->positions != LMQ_POSITIONS_ALIBI &&
                    h->positions != LMQ_POSITIONS_ALIBI_SCALED &&
                    h->n_loops < 2;

    if (h->n_borrowing > 0 || h->n_delta_value_heads > 0 || once_in(2))
        return;
    h->has_turned_values = true;
    h->kv_lora_rank = h->value_dim = h->full_head_dim = 0;
    h->full_rotary_dim = 0;
    h->full_keys_are_values = h->has_value_norm = h->qk_norm_late = false;
    h->has_raw_latents = h->has_whole_still = false;
    h->qkv_clip = 0;
    h->qk_norm = norms[from_to(0, 2)];
    h->q_lora_rank = once_in(3) ? 0 : from_to(1, 8);
    h->n_heads = h->n_kv_heads = h->full_kv_heads = 1;
    h->n_heads = from_to(1, 3);
    h->n_out_groups = once_in(2) ? h->n_heads * (once_in(2) ? 2 : 1) : 0;
    h->out_rank = h->n_out_groups > 0 ? from_to(1, 7) : 0;
    memset(h->layer_heads, 0, sizeof(h->layer_heads));
    memset(h->layer_kv_heads, 0, sizeof(h->layer_kv_heads));
    describe_factors(h, lmq_hparams_rotary_dim(h) / 2);
    if (!may_pool)
        return;
    h->attention_chunk = 0;
    h->pool_size = from_to(1, 5);
    h->overlap_size = from_to(1, 4);
    h->index_topk = h->q_lora_rank > 0 && !once_in(3) ? from_to(1, 3) : 0;
    h->n_index_heads = from_to(1, 4);
    /* A norm of one number is its sign: what is chosen were rounding. */
    h->index_dim = lmq_hparams_rotary_dim(h) + from_to(2, 5);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_attention(h, i) && !once_in(3))
            h->layers[i] |= once_in(2) ? LMQ_LAYER_POOL : LMQ_LAYER_OVERLAP;
}

/* Layers of latent attention that choose what they and later ones see. */
static void
describe_index(struct lmq_hparams *h)
{
    bool has_any = false;

    if (h->kv_lora_rank == 0 || h->has_turned_values || once_in(4))
        return;
    h->sliding_window = h->attention_chunk = 0;
    h->q_lora_rank = from_to(1, 9);
    h->index_topk = from_to(1, 4);
    h->n_index_heads = from_to(1, 4);
    /* A norm of two numbers is their order: what is chosen were rounding. */
    h->index_dim = lmq_hparams_rotary_dim(h) + from_to(3, 6);
    h->index_eps = once_in(2) ? 0 : 0.01;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_attention(h, i) && once_in(2)) {
            h->layers[i] |= LMQ_LAYER_INDEX;
            has_any = true;
        }
    if (!has_any)
        h->index_topk = h->n_index_heads = h->index_dim = 0;
}

/* Layers whose experts a table names. */
static void
describe_tables(struct lmq_hparams *h)
{
    if (h->n_experts == 0 || h->router == LMQ_ROUTER_NEAR ||
        h->has_expert_norms || once_in(2))
        return;
    h->n_expert_groups = h->n_expert_groups_used = 0;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (once_in(2))
            h->layers[i] |= LMQ_LAYER_TOKENS;
}

/* Number i: described, written, converted, read. */
static void
make_one(const char *folder, unsigned long i)
{
    static const char *const layouts[] = {"rows", "tiles"};
    static const char *const scales[] = {"f16", "f32"};
    const struct lmq_convert_options options = {
        .group_size = 32u << from_to(0, 3), .layout = layouts[from_to(0, 1)],
        .scales = scales[from_to(0, 1)], .replaces = 1, .threads = 1};
    struct lmq_hparams *h = malloc(sizeof(*h));
    struct lmq_checkpoint *checkpoint;
    struct lmq_error err;
    char source[4096], path[4096], text[4096];

    if (h == NULL)
        abort();
    describe_sizes(h);
    describe_blocks(h);
    describe_recurrence(h);
    describe_attention(h);
    describe_rope(h);
    describe_kinds(h);
    describe_loops(h);
    if (lmq_has_hyper_streams(h) && h->n_borrowing == 0 && !once_in(3))
        describe_grams(h);
    describe_layers(h);
    describe_experts(h);
    describe_kept(h);
    describe_shared(h);
    describe_index(h);
    describe_tables(h);
    settle_full_layers(h);
    snprintf(source, sizeof(source), "%s/source", folder);
    snprintf(path, sizeof(path), "%s/%lu.lmq", folder, i);
    snprintf(text, sizeof(text), "%s/%lu.txt", folder, i);
    variant_write(h, once_in(2), random_u64(&chance), source);
    free(h);
    if (lmq_checkpoint_open(source, NULL, &checkpoint, &err) != LMQ_OK ||
        lmq_convert(checkpoint, path, &options, NULL, NULL, &err) != LMQ_OK) {
        fprintf(stderr, "make_random: %lu: %s\n", i, err.message);
        exit(1);
    }
    if (checkpoint->hparams.unsupported[0] != '\0') {
        fprintf(stderr, "make_random: %lu: %s\n", i,
                checkpoint->hparams.unsupported);
        exit(1);
    }
    lmq_checkpoint_close(checkpoint);
    expect_lmq(path, text);
}

int
main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fputs("usage: make_random FOLDER N [SEED]\n", stderr);
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "make_random: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    chance.state = argc == 4 ? strtoull(argv[3], NULL, 10) : 1;
    for (unsigned long i = 0; i < strtoul(argv[2], NULL, 10); i++)
        make_one(argv[1], i);
    return 0;
}
