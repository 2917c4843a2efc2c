/*
 * export_gguf_made.c - tensors of a GGUF that no tensor of a checkpoint makes.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

struct lmq_gguf_target *
lmq_gguf_add_target(struct lmq_gguf_plan *plan, const char *name)
{
    if (lmq_mem_grow(&plan->targets, &plan->capacity, plan->n_targets + 1,
                     sizeof(*plan->targets)) != 0)
        return NULL;
    struct lmq_gguf_target *target = &plan->targets[plan->n_targets++];
    *target = (struct lmq_gguf_target){0};
    snprintf(target->name, sizeof(target->name), "%s", name);
    return target;
}

/* One row; false if there is no memory. */
static bool
add_row(struct lmq_gguf_plan *plan, const char *name, const double *values,
        uint64_t n)
{
    struct lmq_gguf_target *target = lmq_gguf_add_target(plan, name);

    if (target == NULL)
        return false;
    target->values = values;
    target->n_dims = 1;
    target->dims[0] = target->n_cols = n;
    target->n_rows = 1;
    return true;
}

/* ---- Factors of frequencies ---- */

static enum lmq_status
add_factors(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    const struct lmq_hparams *h = &plan->written;
    const struct {
        enum lmq_rope_scaling scaling;
        const char *name;
        const double *values;
    } kinds[] = {
        {LMQ_ROPE_FACTORS, "rope_freqs.weight", plan->near},
        {LMQ_ROPE_LONGROPE, "rope_factors_short.weight", plan->near},
        {LMQ_ROPE_LONGROPE, "rope_factors_long.weight", plan->far},
    };
    uint32_t n = h->n_rope_factors, widest = lmq_hparams_rotary_dim(h) / 2;

    if (plan->family->gguf.halves_part && n < widest &&
        widest <= LMQ_MAX_ROPE_FACTORS)
        n = widest;

    for (uint32_t i = h->n_rope_factors; i < n; i++)
        plan->near[i] = 1;
    for (uint32_t i = 0; i < h->n_rope_factors; i++) {
        plan->near[i] = (double)(float)h->rope_short[i];
        plan->far[i] = (double)(float)h->rope_long[i];
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (h->rope_scaling != kinds[i].scaling)
            continue;
        if (!add_row(plan, kinds[i].name, kinds[i].values, n))
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

/* ---- Weights of norms ---- */

/* Where norms of queries and keys have weights in GGUF and none here, those of
 * keys are 1, and those of queries are how scores are scaled. */
static enum lmq_status
add_weights(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    static const enum lmq_role roles[] = {LMQ_ROLE_ATTN_Q_NORM,
                                          LMQ_ROLE_ATTN_K_NORM};
    struct lmq_hparams *h = &plan->written;
    const uint32_t n = h->head_dim;
    double scale = h->attn_scale > 0 ? h->attn_scale * sqrt(n) : 1;
    char name[64];

    if (!plan->family->gguf.weighs_bare_norms ||
        h->qk_norm != LMQ_QK_NORM_BARE_ALL)
        return LMQ_OK;
    plan->weights = malloc(2 * (size_t)n * sizeof(*plan->weights));
    if (plan->weights == NULL)
        return lmq_fail_nomem(err);
    for (uint32_t i = 0; i < 2 * n; i++)
        plan->weights[i] = i < n ? scale : 1;
    for (uint32_t i = 0; i < 2 * h->n_layers; i++) {
        struct lmq_place place = {roles[i % 2], LMQ_PART_WEIGHT,
                                  (int32_t)(i / 2), -1};
        lmq_gguf_target_name(plan, &place, name, sizeof(name));
        if (!add_row(plan, name, plan->weights + i % 2 * n, n))
            return lmq_fail_nomem(err);
    }
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->attn_scale = 0;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_add_made(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    enum lmq_status status = add_factors(plan, err);

    return status == LMQ_OK ? add_weights(plan, err) : status;
}
