/*
 * gguf_lately.c - what families that came last imply in GGUF: SmallThinker.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"
#include "formats/model/hparams.h"

void
lmq_gguf_begin_smallthinker(struct lmq_hparams *h)
{
    h->router_is_early = h->router_renormalises = true;
}

/* Where there are windows every fourth layer, from the first on, does not
 * turn, whatever has one. */
void
lmq_gguf_finish_smallthinker(struct lmq_hparams *h,
                             const struct lmq_gguf_evidence *evidence)
{
    static const uint32_t window = 4096;

    (void)evidence;
    if (h->sliding_window == 0)
        return;
    if (h->sliding_window != window)
        lmq_hparams_refuse(h, "a window of %u, in whose place llama.cpp has "
                              "%u",
                           h->sliding_window, window);
    for (uint32_t i = 0; i < h->n_layers; i += 4)
        h->layers[i] |= LMQ_LAYER_NOPE;
}
