/*
 * router.h - which experts a token goes to.
 */
#ifndef LMQ_RUNTIME_LAYER_ROUTER_H
#define LMQ_RUNTIME_LAYER_ROUTER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/model/hparams.h"

/* What choosing one token's experts works with. */
struct lmq_choice {
    float *scores;         /* (n_experts): the router's logits at first */
    const float *correction; /* (n_experts), or NULL */
    const float *given;    /* (n_experts_used): those that it is; or NULL */
    float *selection;      /* (2, n_experts): of experts and of groups */
    unsigned char *states; /* (2, n_experts): of experts and of groups */
};

/* The n_experts_used experts of one token, ascending, and their weights.
 * Of two with the same score the lower one is chosen. */
void lmq_router_choose(const struct lmq_hparams *hparams,
                       const struct lmq_choice *choice, uint32_t *experts,
                       float *weights);

#endif
