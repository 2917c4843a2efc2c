/*
 * planner_kv.c - keys and values of as few bits as do not matter beside the
 * weights.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/kv.h"
#include "validate/plan/planner.h"

/* They may add so much of what all weights in 8 bits cost. */
#define SHARE_OF_WEIGHTS 0.1

static double
bytes_of(const struct lmq_model *model, enum lmq_kv_type type)
{
    const size_t many = 1024; /* some memory is none of positions' */
    double sum = 0;

    for (size_t i = 0; i < model->hparams.n_layers; i++)
        sum += (lmq_kv_bytes(model, i, type, 2 * many) -
                lmq_kv_bytes(model, i, type, many)) /
               (double)many;
    return sum * (double)lmq_loops(&model->hparams);
}

/* What all weights in groups of 64 with 8 bits cost; if they cannot be that,
 * what the choice does. */
static double
cost_of_weights(const struct lmq_planner *planner)
{
    for (size_t i = 0; i < planner->offers.n; i++)
        if (strcmp(planner->offers.list[i]->name, "q8/64") == 0)
            return lmq_planner_over_the_whole(planner, planner->uniform[i]);
    return planner->choice.measured;
}

static void
choose(struct lmq_planner *planner)
{
    planner->kv_room = SHARE_OF_WEIGHTS * cost_of_weights(planner);
    for (size_t i = 1; i < planner->n_kv; i++) {
        const struct lmq_kv_offer *offer = &planner->kv[i];
        if (offer->bytes < planner->kv[planner->chosen_kv].bytes &&
            offer->measured - planner->choice.measured <= planner->kv_room)
            planner->chosen_kv = i;
    }
}

/* What cannot hold the keys of this model is left out. */
static enum lmq_status
measure(struct lmq_planner *planner,
        const struct lmq_encoding_choice **choices, enum lmq_kv_type type,
        struct lmq_error *err)
{
    const struct lmq_mix mix = {choices, &type};
    struct lmq_drift drift = {0};
    struct lmq_error why = {0};
    enum lmq_status status =
        lmq_planner_mix(planner, &mix, 1, planner->job.corpus.n_windows,
                        "measuring keys and values", &drift, &why);

    if (status == LMQ_OK)
        planner->kv[planner->n_kv++] = (struct lmq_kv_offer){
            type, bytes_of(planner->job.models[0], type),
            lmq_drift_mean_kld(&drift)};
    else if (status != LMQ_ERR_NONFINITE)
        lmq_fail_as(err, &why);
    lmq_drift_free(&drift);
    return status == LMQ_ERR_NONFINITE ? LMQ_OK : status;
}

enum lmq_status
lmq_planner_weigh_kv(struct lmq_planner *planner, struct lmq_error *err)
{
    static const enum lmq_kv_type types[LMQ_KV_OFFERS] = {
        LMQ_KV_F16, LMQ_KV_F16_Q8, LMQ_KV_Q8};
    enum lmq_kv_type own = planner->job.kv_type;
    enum lmq_status status = LMQ_OK;
    const struct lmq_encoding_choice **choices =
        calloc(planner->units.n + 1, sizeof(*choices));

    if (choices == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < planner->units.n; i++)
        choices[i] = lmq_planner_offer(planner, i, planner->choice.chosen[i]);
    planner->kv[planner->n_kv++] =
        (struct lmq_kv_offer){own, bytes_of(planner->job.models[0], own),
                              planner->choice.measured};
    for (size_t i = 0; i < LMQ_KV_OFFERS && status == LMQ_OK; i++)
        status = measure(planner, choices, types[i], err);
    free((void *)choices);
    if (status == LMQ_OK)
        choose(planner);
    return status;
}
