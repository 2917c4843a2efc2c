/*
 * hf_lightning.c - what config.json says of MiniMax 01 and M1: lightning
 * attention in most layers, attention in the others, experts in all.
 *
 * The makers' files and the library's differ in how much of a head turns and,
 * by less than anybody could see, in how fast states decay.
 */
#include "config.h"

#include <string.h>

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"

/* Whether the library's own class made the file. */
static bool
is_of_library(struct lmq_hf_config *config)
{
    return strcmp(lmq_hf_text(config, config->json, "model_type", "minimax"),
                  "minimax") == 0;
}

/* The norm of what states give has an epsilon of its own, whatever the file
 * says. */
void
lmq_hf_begin_lightning(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;
    uint32_t heads = h->n_heads == 0 ? 1 : h->n_heads;
    uint32_t head = h->head_dim > 0 ? h->head_dim : h->dim / heads;
    uint32_t turning =
        lmq_hf_count(config, config->json, "rotary_dim", head);

    h->recurrence = LMQ_RECURRENCE_LIGHTNING;
    h->n_delta_key_heads = h->n_delta_value_heads = h->n_heads;
    h->delta_key_dim = h->delta_value_dim = head;
    h->has_normed_residual = h->has_sigmoid_gates = true;
    h->state_eps = 1e-6;
    if (!is_of_library(config))
        h->rotary_dim = turning;
    else if (turning != head)
        lmq_hparams_refuse(h, "a 'rotary_dim' of %u of heads of %u: the "
                              "library's class turns all of a head",
                           turning, head);
}

/* Where "layer_types" does not say it, the makers' list has a 0 for each layer
 * without keys; or every second one has none. */
void
lmq_hf_windows_lightning(struct lmq_hf_config *config)
{
    if (lmq_hf_has(config->json, "layer_types") ||
        lmq_hf_mark_by_list(config, "attn_type_list", LMQ_LAYER_DELTA))
        return;
    for (uint32_t i = 1; i < lmq_hf_layers(config); i += 2)
        lmq_hf_mark(config, i, LMQ_LAYER_DELTA);
}

static bool
is_power_of_two(uint32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

void
lmq_hf_finish_lightning(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->router_renormalises = true;
    lmq_decays_by_layer(h);
    if (is_of_library(config))
        h->decay_step = 1 / ((double)h->n_layers - 1 + 1e-5);
    else if (!is_power_of_two(h->n_heads))
        lmq_hparams_refuse(h, "%u heads of lightning attention, which is no "
                              "power of two",
                           h->n_heads);
    lmq_hf_finish_silu(config);
}
