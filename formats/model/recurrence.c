/*
 * recurrence.c - sizes and decays of what recurrent layers remember.
 */
#include "config.h"

#include "formats/model/hparams.h"

#include "base/elementary.h"

#define LN2 0.693147180559945309417

size_t
lmq_delta_channels(const struct lmq_hparams *hparams)
{
    size_t values = lmq_delta_value_width(hparams);

    return lmq_is_convolution(hparams) || lmq_is_selective(hparams) ||
                   lmq_is_lru(hparams)
               ? values
               : 2 * lmq_delta_key_width(hparams) + values;
}

size_t
lmq_delta_steps(const struct lmq_hparams *hparams)
{
    return hparams->n_delta_value_heads *
           (size_t)(lmq_is_lru(hparams)       ? hparams->delta_value_dim
                    : hparams->has_key_decays ? hparams->delta_key_dim
                                              : 1);
}

size_t
lmq_delta_decays(const struct lmq_hparams *hparams)
{
    return hparams->n_delta_value_heads *
           (size_t)(lmq_is_lru(hparams)         ? hparams->delta_value_dim
                    : lmq_is_selective(hparams) ? hparams->delta_key_dim
                                                : 1);
}

size_t
lmq_delta_norm_span(const struct lmq_hparams *hparams)
{
    if (lmq_is_lightning(hparams))
        return lmq_delta_value_width(hparams);
    return lmq_is_state_space(hparams)
               ? lmq_delta_value_width(hparams) / hparams->n_delta_key_heads
               : hparams->delta_value_dim;
}

/* 2^(-8 (head + 1) / heads), as far as the layer goes. */
double
lmq_decay_rate(const struct lmq_hparams *hparams, size_t layer, size_t head)
{
    double exponent = 8 * (double)(head + 1) / hparams->n_delta_value_heads;
    double of_layer =
        hparams->decay_first - hparams->decay_step * (double)layer;

    return of_layer * lmq_exp(-exponent * LN2);
}

void
lmq_decays_by_layer(struct lmq_hparams *hparams)
{
    uint32_t n = hparams->n_layers;

    hparams->decay_first = 1 + 1e-5;
    hparams->decay_step = n < 2 ? 0 : 1 / (double)(n - 1);
}
