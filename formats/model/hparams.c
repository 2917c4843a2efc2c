/*
 * hparams.c - descriptions without their fields: defaults, and what follows
 * from several of them.
 */
#include "config.h"

#include "formats/model/hparams.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/text/c_locale.h"

void
lmq_hparams_init(struct lmq_hparams *hparams)
{
    *hparams = (struct lmq_hparams){
        .norm_eps = 1e-5,
        .embedding_scale = 1,
        .residual_scale = 1,
        .attn_keep = 1,
        .delta_keep = 1,
        .feed_keep = 1,
        .attn_add = 1,
        .delta_add = 1,
        .feed_add = 1,
        .decay_first = 1,
        .logit_scale = 1,
        .value_scale = 1,
        .beta_scale = 1,
        .stream_gain = 1,
        .rope_theta = 10000,
        .rope_factor = 1,
        .rope_beta_fast = 32,
        .rope_beta_slow = 1,
        .rope_attention_factor = 1,
        .activation_slope = 1,
        .is_gated = true,
        .router_scale = 1,
        .shared_scale = 1,
        .bos = -1,
    };
}

uint32_t
lmq_hparams_rotary_dim(const struct lmq_hparams *hparams)
{
    if (hparams->positions != LMQ_POSITIONS_ROTARY)
        return 0;
    return hparams->rotary_dim == 0 ? hparams->head_dim : hparams->rotary_dim;
}

uint32_t
lmq_hparams_far_rotary_dim(const struct lmq_hparams *hparams)
{
    if (hparams->positions != LMQ_POSITIONS_ROTARY)
        return 0;
    if (hparams->full_rotary_dim > 0)
        return hparams->full_rotary_dim;
    return hparams->full_head_dim > 0 && hparams->kv_lora_rank == 0
               ? hparams->full_head_dim
               : lmq_hparams_rotary_dim(hparams);
}

uint32_t
lmq_guessed_streams(const struct lmq_hparams *hparams)
{
    return hparams->n_streams > 0 &&
                   hparams->stream_kind == LMQ_STREAMS_GUESSED
               ? hparams->n_streams - 1
               : 0;
}

bool
lmq_has_hyper_streams(const struct lmq_hparams *hparams)
{
    return hparams->n_streams > 0 &&
           hparams->stream_kind != LMQ_STREAMS_GUESSED;
}

bool
lmq_has_gated_streams(const struct lmq_hparams *hparams)
{
    return hparams->n_streams > 0 &&
           hparams->stream_kind == LMQ_STREAMS_GATED;
}

uint32_t
lmq_hyper_mixes(const struct lmq_hparams *hparams)
{
    uint32_t n = hparams->n_streams;

    return hparams->stream_rounds > 0 ? n * (2 + n) : 2 * n;
}

static uint32_t
most_of(const struct lmq_hparams *hparams,
        uint32_t (*of)(const struct lmq_hparams *h, size_t layer))
{
    uint32_t most = 0;

    for (size_t i = 0; i < hparams->n_layers; i++)
        if (of(hparams, i) > most)
            most = of(hparams, i);
    return most;
}

uint32_t
lmq_most_heads(const struct lmq_hparams *hparams)
{
    return most_of(hparams, lmq_layer_heads);
}

uint32_t
lmq_most_hidden_dims(const struct lmq_hparams *hparams)
{
    return most_of(hparams, lmq_layer_hidden_dim);
}

uint32_t
lmq_hparams_value_dim(const struct lmq_hparams *hparams)
{
    return hparams->value_dim == 0 ? hparams->head_dim : hparams->value_dim;
}

float
lmq_hparams_attn_scale(const struct lmq_hparams *hparams)
{
    return hparams->attn_scale > 0 ? (float)hparams->attn_scale
                                   : 1 / sqrtf((float)hparams->head_dim);
}

float
lmq_layer_attn_scale(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->full_attn_scale > 0 &&
                   lmq_layer_is(hparams, layer, LMQ_LAYER_FULL)
               ? (float)hparams->full_attn_scale
               : lmq_hparams_attn_scale(hparams);
}

bool
lmq_adds_plainly(const struct lmq_hparams *hparams)
{
    const double numbers[] = {
        hparams->attn_keep, hparams->delta_keep, hparams->feed_keep,
        hparams->attn_add,  hparams->delta_add,  hparams->feed_add};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i] < 1 || numbers[i] > 1)
            return false;
    return !hparams->has_normed_residual;
}

size_t
lmq_layer_kv_source(const struct lmq_hparams *hparams, size_t layer)
{
    bool is_full = lmq_layer_is(hparams, layer, LMQ_LAYER_FULL);
    size_t source = hparams->n_layers - hparams->n_borrowing;

    if (!lmq_layer_borrows(hparams, layer))
        return layer;
    while (source > 0 &&
           lmq_layer_is(hparams, source - 1, LMQ_LAYER_FULL) != is_full)
        source--;
    return source == 0 ? layer : source - 1;
}

bool
lmq_layer_is_late(const struct lmq_hparams *hparams, size_t layer)
{
    size_t end = hparams->n_layers;

    /* What borrows, or only feeds, makes nothing, unless it looks at what
     * tokens were before. */
    while (end > layer + 1 &&
           !lmq_layer_is(hparams, end - 1, LMQ_LAYER_GRAMS) &&
           (lmq_layer_borrows(hparams, end - 1) ||
            !lmq_layer_mixes(hparams, end - 1)))
        end--;
    return end <= layer + 1 &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_DELTA) &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_GRAMS) &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_POOL) &&
           !lmq_layer_is(hparams, layer, LMQ_LAYER_OVERLAP);
}

void
lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
{
    va_list args;

    if (hparams->unsupported[0] != '\0')
        return;
    va_start(args, format);
    lmq_c_vsnprintf(hparams->unsupported, sizeof(hparams->unsupported),
                    format, args);
    va_end(args);
}

uint32_t
lmq_hparams_end(const struct lmq_hparams *h)
{
    if (h->positions == LMQ_POSITIONS_LEARNED)
        return h->context;
    return h->context_end > 0 ? h->context_end : UINT32_MAX;
}

const char *
lmq_hparams_why_end(const struct lmq_hparams *h)
{
    return h->positions == LMQ_POSITIONS_LEARNED
               ? "the model has learned"
               : "what is computed here is right for";
}
