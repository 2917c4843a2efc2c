/*
 * hf_lately.c - what families that came last do in config.json beside their
 * rows: SmallThinker.
 */
#include "config.h"

#include "formats/hf/hf_reader.h"
#include "formats/hf/hf_special.h"
#include "formats/hf/more/hf_further.h"

/* ---- SmallThinker ---- */

/* Its experts are as wide as a feed-forward would be. */
void
lmq_hf_begin_smallthinker(struct lmq_hf_config *config)
{
    struct lmq_hparams *h = config->hparams;

    h->hidden_dim = h->expert_dim;
    h->router_is_early = h->router_renormalises = true;
    h->router = lmq_hf_switch(config, config->json,
                              "moe_primary_router_apply_softmax", false)
                    ? LMQ_ROUTER_SOFTMAX
                    : LMQ_ROUTER_SIGMOID;
}

/* Lists of 0 and 1: which layers have a window, and which of them turn. */
void
lmq_hf_windows_smallthinker(struct lmq_hf_config *config)
{
    if (!lmq_hf_mark_by_list(config, "sliding_window_layout", LMQ_LAYER_FULL))
        config->hparams->sliding_window = 0;
    lmq_hf_mark_by_list(config, "rope_layout", LMQ_LAYER_NOPE);
}
