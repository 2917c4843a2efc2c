/*
 * router.c - chooses experts and weighs them.
 */
#include "config.h"

#include "runtime/router.h"

#include <string.h>

#include "runtime/kernels/kernels.h"

enum state { OUT, ELIGIBLE, CHOSEN };

/* Marks the best n of the eligible ones. Works, somehow, with NaNs too. */
static void
choose(const float *worths, unsigned char *states, size_t n_all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t best = n_all;
        for (size_t j = 0; j < n_all; j++)
            if (states[j] == ELIGIBLE &&
                (best == n_all || worths[j] > worths[best]))
                best = j;
        if (best < n_all)
            states[best] = CHOSEN;
    }
}

/* What a group of n experts is worth. */
static float
group_worth(enum lmq_group_worth kind, const float *worths, size_t n)
{
    size_t best = 0, second = n;

    for (size_t i = 1; i < n; i++) {
        if (worths[i] > worths[best]) {
            second = best;
            best = i;
        } else if (second == n || worths[i] > worths[second]) {
            second = i;
        }
    }
    if (kind == LMQ_GROUP_WORTH_BEST || second == n)
        return worths[best];
    return worths[best] + worths[second];
}

/* Only experts of the best groups stay eligible. */
static void
choose_groups(const struct lmq_hparams *h, const float *worths,
              unsigned char *states, float *group_worths,
              unsigned char *group_states)
{
    size_t n_groups = h->n_expert_groups, size = h->n_experts / n_groups;

    for (size_t g = 0; g < n_groups; g++)
        group_worths[g] = group_worth(h->expert_group_worth,
                                      worths + g * size, size);
    memset(group_states, ELIGIBLE, n_groups);
    choose(group_worths, group_states, n_groups, h->n_expert_groups_used);
    for (size_t g = 0; g < n_groups; g++)
        if (group_states[g] != CHOSEN)
            memset(states + g * size, OUT, size);
}

/* The weights of the chosen from their scores. */
static void
weigh(const struct lmq_hparams *h, float *weights, size_t n)
{
    float sum = 0;

    if (h->router == LMQ_ROUTER_SOFTMAX_CHOSEN)
        lmq_kernels()->softmax(weights, n);
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    for (size_t i = 0; i < n; i++) {
        if (h->router_renormalises && sum > 0)
            weights[i] /= sum;
        weights[i] *= (float)h->router_scale;
    }
}

void
lmq_router_choose(const struct lmq_hparams *hparams,
                  const struct lmq_choice *choice, uint32_t *experts,
                  float *weights)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    size_t n_experts = hparams->n_experts, n = 0;
    unsigned char *states = choice->states;

    if (hparams->router == LMQ_ROUTER_SOFTMAX)
        kernels->softmax(choice->scores, n_experts);
    if (hparams->router == LMQ_ROUTER_SIGMOID)
        kernels->sigmoid(choice->scores, n_experts);
    memcpy(choice->worths, choice->scores, n_experts * sizeof(float));
    if (choice->correction != NULL)
        kernels->add(choice->worths, choice->correction, n_experts);
    memset(states, ELIGIBLE, n_experts);
    if (hparams->n_expert_groups > 0)
        choose_groups(hparams, choice->worths, states,
                      choice->worths + n_experts, states + n_experts);
    choose(choice->worths, states, n_experts, hparams->n_experts_used);
    for (uint32_t e = 0; e < n_experts && n < hparams->n_experts_used; e++)
        if (states[e] == CHOSEN) {
            experts[n] = e;
            weights[n++] = choice->scores[e];
        }
    weigh(hparams, weights, n);
}
