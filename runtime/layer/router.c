/*
 * router.c - chooses a token's experts and their weights.
 *
 *   scores = softmax(logits), sigmoid(logits),              (n_experts)
 *            sqrt(softplus(logits)) or logits
 *   selection = scores + correction                         (n_experts)
 *   selection is limited to the experts of the best groups
 *   experts = the n_experts_used best of selection, or given, ascending
 *   weights = scores of these, perhaps through sigmoid, or  (n_experts_used)
 *             softmax over them or over what is near each
 *   weights = scale * weights, or scale * weights / sum of weights
 *
 * The correction evens out the load and only selects: weights are without it
 * (DeepSeek V3, "auxiliary-loss-free"). All of it is one token's own and tiny
 * beside the experts, so it is plain loops; ties go to the lower expert, as
 * the result may not depend on a library's sort.
 */
#include "config.h"

#include "runtime/layer/router.h"

#include <math.h>
#include <string.h>

#include "runtime/kernels/kernels.h"

enum state { OUT, ELIGIBLE, CHOSEN, WEIGHED };

/* Marks the n best of the eligible ones. Also with NaNs, than which nothing is
 * better, it marks n, or all that are eligible. */
static void
choose_best(const float *selection, unsigned char *states, size_t n_all,
            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t best = n_all;
        for (size_t j = 0; j < n_all; j++)
            if (states[j] == ELIGIBLE &&
                (best == n_all || selection[j] > selection[best]))
                best = j;
        if (best < n_all)
            states[best] = CHOSEN;
    }
}

/* The score of a group of n experts: that of its best expert, or the sum of
 * its two best. */
static float
group_score(enum lmq_group_score kind, const float *selection, size_t n)
{
    size_t best = 0, second = n;

    for (size_t i = 1; i < n; i++) {
        if (selection[i] > selection[best]) {
            second = best;
            best = i;
        } else if (second == n || selection[i] > selection[second]) {
            second = i;
        }
    }
    if (kind == LMQ_GROUP_SCORE_BEST || second == n)
        return selection[best];
    return selection[best] + selection[second];
}

/* Only experts of the best groups stay eligible. */
static void
choose_groups(const struct lmq_hparams *h, const float *selection,
              unsigned char *states, float *group_scores,
              unsigned char *group_states)
{
    size_t n_groups = h->n_expert_groups, size = h->n_experts / n_groups;

    for (size_t g = 0; g < n_groups; g++)
        group_scores[g] = group_score(h->expert_group_score,
                                      selection + g * size, size);
    memset(group_states, ELIGIBLE, n_groups);
    choose_best(group_scores, group_states, n_groups, h->n_expert_groups_used);
    for (size_t g = 0; g < n_groups; g++)
        if (group_states[g] != CHOSEN)
            memset(states + g * size, OUT, size);
}

/* The logits near the one of an expert, its own first, into `near`. Those that
 * have a weight count no more. */
static size_t
find_near(const struct lmq_hparams *h, const struct lmq_choice *choice,
          uint32_t expert, float *near)
{
    const float *logits = choice->scores;
    float own = logits[expert], reach = (float)h->router_reach;
    size_t n = 0;

    near[n++] = own;
    for (uint32_t e = 0; e < h->n_experts; e++)
        if (e != expert && choice->states[e] != WEIGHED &&
            own - logits[e] <= reach * fmaxf(fabsf(logits[e]), own))
            near[n++] = logits[e];
    return n;
}

/* From the best of the chosen on, each weighs what the softmax over what is
 * near gives it. */
static void
weigh_by_near(const struct lmq_hparams *h, const struct lmq_choice *choice,
              const uint32_t *experts, float *weights, size_t n)
{
    const float *logits = choice->scores;

    for (size_t i = 0; i < n; i++) {
        size_t best = n;
        for (size_t j = 0; j < n; j++)
            if (choice->states[experts[j]] == CHOSEN &&
                (best == n || logits[experts[j]] > logits[experts[best]]))
                best = j;
        size_t n_near = find_near(h, choice, experts[best], choice->selection);
        lmq_kernels()->softmax(choice->selection, n_near);
        weights[best] = choice->selection[0];
        choice->states[experts[best]] = WEIGHED;
    }
}

/* The weights of the chosen experts, in place of their scores. */
static void
finish_weights(const struct lmq_hparams *h, float *weights, size_t n)
{
    float sum = 0;

    if (h->router == LMQ_ROUTER_SOFTMAX_CHOSEN)
        lmq_kernels()->softmax(weights, n);
    if (h->router == LMQ_ROUTER_SIGMOID_CHOSEN)
        lmq_kernels()->sigmoid(weights, n);
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    for (size_t i = 0; i < n; i++) {
        if (h->router_renormalises && sum > 0)
            weights[i] /= sum;
        weights[i] *= (float)h->router_scale;
    }
}

static void
root_softplus(float *x, size_t n)
{
    lmq_kernels()->softplus(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = sqrtf(x[i]);
}

static bool
has_nan(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return true;
    return false;
}

/* A NaN is no better than what it is compared with: an expert that has it may
 * not be chosen, and it has to be found all the same. */
void
lmq_router_choose(const struct lmq_hparams *hparams,
                  const struct lmq_choice *choice, uint32_t *experts,
                  float *weights)
{
    const struct lmq_kernels *kernels = lmq_kernels();
    size_t n_experts = hparams->n_experts, n = 0;
    unsigned char *states = choice->states;
    bool is_sick = has_nan(choice->scores, n_experts);

    if (hparams->router_softcap > 0)
        kernels->softcap(choice->scores, n_experts,
                         (float)hparams->router_softcap);
    if (hparams->router == LMQ_ROUTER_SOFTMAX)
        kernels->softmax(choice->scores, n_experts);
    if (hparams->router == LMQ_ROUTER_SIGMOID)
        kernels->sigmoid(choice->scores, n_experts);
    if (hparams->router == LMQ_ROUTER_ROOT_SOFTPLUS)
        root_softplus(choice->scores, n_experts);
    memcpy(choice->selection, choice->scores, n_experts * sizeof(float));
    if (choice->correction != NULL) /* selection = scores + correction */
        kernels->add(choice->selection, choice->correction, n_experts);
    memset(states, ELIGIBLE, n_experts);
    is_sick |= has_nan(choice->selection, n_experts);
    if (hparams->n_expert_groups > 0)
        choose_groups(hparams, choice->selection, states,
                      choice->selection + n_experts, states + n_experts);
    if (choice->given != NULL)
        for (size_t i = 0; i < hparams->n_experts_used; i++)
            states[(size_t)choice->given[i]] = CHOSEN;
    else
        choose_best(choice->selection, states, n_experts,
                    hparams->n_experts_used);
    for (uint32_t e = 0; e < n_experts && n < hparams->n_experts_used; e++)
        if (states[e] == CHOSEN) {
            experts[n] = e;
            weights[n++] = choice->scores[e];
        }
    if (hparams->router == LMQ_ROUTER_NEAR)
        weigh_by_near(hparams, choice, experts, weights, n);
    finish_weights(hparams, weights, n);
    if (is_sick)
        weights[0] = NAN;
}
