/*
 * export_gguf_made.c - tensors of a GGUF that no tensor of a checkpoint makes.
 */
#include "config.h"

#include "convert/export/export_gguf.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "formats/gguf/more/gguf_pools.h"

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

/* A vector, if n_rows is 0; NULL if there is no memory. */
static struct lmq_gguf_target *
add_shape(struct lmq_gguf_plan *plan, const char *name, uint64_t n_rows,
          uint64_t n_cols)
{
    struct lmq_gguf_target *target = lmq_gguf_add_target(plan, name);

    if (target == NULL)
        return NULL;
    target->n_dims = n_rows == 0 ? 1 : 2;
    target->dims[0] = n_rows == 0 ? n_cols : n_rows;
    target->dims[1] = n_cols;
    target->n_rows = n_rows == 0 ? 1 : n_rows;
    target->n_cols = n_cols;
    return target;
}

/* One row; false if there is no memory. */
static bool
add_row(struct lmq_gguf_plan *plan, const char *name, const double *values,
        uint64_t n)
{
    struct lmq_gguf_target *target = add_shape(plan, name, 0, n);

    if (target != NULL)
        target->values = values;
    return target != NULL;
}

/* All elements alike. */
static bool
add_even(struct lmq_gguf_plan *plan, const char *name, uint64_t n_rows,
         uint64_t n_cols, float each)
{
    struct lmq_gguf_target *target = add_shape(plan, name, n_rows, n_cols);

    if (target != NULL) {
        target->is_even = true;
        target->each = each;
    }
    return target != NULL;
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
    for (uint32_t i = 0; i < 2 * h->n_layers; i++) {
        struct lmq_place place = {roles[i % 2], LMQ_PART_WEIGHT,
                                  (int32_t)(i / 2), -1};
        lmq_gguf_target_name(plan, &place, name, sizeof(name));
        if (!add_even(plan, name, 0, n, i % 2 == 0 ? (float)scale : 1))
            return lmq_fail_nomem(err);
    }
    h->qk_norm = LMQ_QK_NORM_HEAD;
    h->attn_scale = 0;
    return LMQ_OK;
}

/* ---- What chooses ---- */

void
lmq_gguf_fit_end(struct lmq_gguf_plan *plan)
{
    struct lmq_hparams *h = &plan->written;
    uint32_t own = h->context_end, end = 0;

    if ((plan->family->gguf.keys & LMQ_GGUF_GROUPS) != 0)
        end = lmq_gguf_groups_end(own > 0 ? own : h->context);
    if (own > 0 && own != end)
        lmq_notes_add(plan->notes,
                      "GGUF's '%s' does not say that behind %u tokens another "
                      "computation begins",
                      plan->family->gguf.name, own);
    h->context_end = end;
}

/* Where attention sees all positions that the context has, all are chosen,
 * whatever chooses them: it is made of zeros, once for all layers. */
static enum lmq_status
add_choice(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    const struct lmq_hparams *h = &plan->written;
    const struct {
        const char *name;
        uint32_t n_rows, n_cols;
        float each;
    } parts[] = {
        {"indexer.k_norm.weight", 0, LMQ_GGUF_INDEX_DIM, 1},
        {"indexer.k_norm.bias", 0, LMQ_GGUF_INDEX_DIM, 0},
        {"indexer.proj.weight", 1, h->dim, 0},
        {"indexer.attn_k.weight", LMQ_GGUF_INDEX_DIM, h->dim, 0},
        {"indexer.attn_q_b.weight", LMQ_GGUF_INDEX_DIM, h->q_lora_rank, 0},
        {"indexer_compressor_gate.weight", LMQ_GGUF_INDEX_DIM, h->dim, 0},
        {"indexer_compressor_ape.weight", LMQ_GGUF_GROUP, LMQ_GGUF_INDEX_DIM,
         0},
    };
    uint32_t layer = lmq_gguf_choosing_layer(h);
    char name[64];

    if ((plan->family->gguf.keys & LMQ_GGUF_GROUPS) == 0 ||
        layer == h->n_layers)
        return LMQ_OK;
    lmq_notes_add(plan->notes,
                  "GGUF's '%s' has what sparse attention chooses by: it is "
                  "made of zeros, as all of %u tokens are chosen",
                  plan->family->gguf.name, h->context);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(name, sizeof(name), "blk.%u.%s", layer, parts[i].name);
        if (!add_even(plan, name, parts[i].n_rows, parts[i].n_cols,
                      parts[i].each))
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_add_made(struct lmq_gguf_plan *plan, struct lmq_error *err)
{
    enum lmq_status status = add_factors(plan, err);

    if (status == LMQ_OK)
        status = add_weights(plan, err);
    return status == LMQ_OK ? add_choice(plan, err) : status;
}
