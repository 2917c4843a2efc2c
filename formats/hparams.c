/*
 * hparams.c - what a description may be: defaults, one way of saying each
 * thing, checks, comparing.
 */
#include "config.h"

#include "formats/hparams.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "formats/hparams_fields.h"

#define AT(field) offsetof(struct lmq_hparams, field)

void
lmq_hparams_init(struct lmq_hparams *hparams)
{
    *hparams = (struct lmq_hparams){
        .norm_eps = 1e-5,
        .embedding_scale = 1,
        .residual_scale = 1,
        .logit_scale = 1,
        .rope_theta = 10000,
        .rope_factor = 1,
        .rope_beta_fast = 32,
        .rope_beta_slow = 1,
        .rope_attention_factor = 1,
        .is_gated = true,
        .router_scale = 1,
        .bos = -1,
    };
}

uint32_t
lmq_hparams_rotary_dim(const struct lmq_hparams *hparams)
{
    if (hparams->positions != LMQ_POSITIONS_ROTARY)
        return 0;
    return hparams->rotary_dim == 0 ? hparams->head_dim : hparams->rotary_dim;
}

uint32_t
lmq_hparams_value_dim(const struct lmq_hparams *hparams)
{
    return hparams->value_dim == 0 ? hparams->head_dim : hparams->value_dim;
}

void
lmq_hparams_refuse(struct lmq_hparams *hparams, const char *format, ...)
{
    va_list args;

    if (hparams->unsupported[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(hparams->unsupported, sizeof(hparams->unsupported), format, args);
    va_end(args);
}

void
lmq_hparams_settle(struct lmq_hparams *h)
{
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    if (h->value_dim == h->head_dim)
        h->value_dim = 0;
    if (h->rotary_dim == h->head_dim || h->positions != LMQ_POSITIONS_ROTARY)
        h->rotary_dim = 0;
    if (h->rope_scaling == LMQ_ROPE_PLAIN) {
        h->rope_factor = usual.rope_factor;
        h->rope_low_factor = usual.rope_low_factor;
        h->rope_high_factor = usual.rope_high_factor;
        h->rope_context = usual.rope_context;
    }
    if (h->rope_scaling != LMQ_ROPE_YARN) {
        h->rope_beta_fast = usual.rope_beta_fast;
        h->rope_beta_slow = usual.rope_beta_slow;
    }
    if (h->n_experts == 0) {
        h->n_experts_used = h->expert_dim = h->shared_dim = 0;
        h->n_expert_groups = h->n_expert_groups_used = 0;
        h->router = usual.router;
        h->router_scale = usual.router_scale;
        h->router_renormalises = h->router_corrects = false;
    }
}

/* ---- Checking ---- */

static enum lmq_status
check_numbers(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (const struct lmq_count_field *f = lmq_hparams_counts; f->key != NULL;
         f++) {
        uint32_t value = lmq_count_at(h, f->offset);
        if (value > f->most || (value == 0 && !f->may_be_zero))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %u, expected %d to %u", f->key, value,
                            f->may_be_zero ? 0 : 1, f->most);
    }
    for (const struct lmq_real_field *f = lmq_hparams_reals; f->key != NULL;
         f++) {
        double value = lmq_real_at(h, f->offset);
        if (!isfinite(value) || value < 0 || value > 1e30)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %g, expected a number from 0", f->key,
                            value);
    }
    return LMQ_OK;
}

static enum lmq_status
check_heads(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t rotary = lmq_hparams_rotary_dim(h);

    if (h->n_heads % h->n_kv_heads != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u heads cannot share %u key/value heads evenly",
                        h->n_heads, h->n_kv_heads);
    if (rotary % 2 != 0 || rotary > h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rotary positions need an even number of dimensions, "
                        "at most the head size %u, found %u",
                        h->head_dim, rotary);
    if ((uint64_t)h->n_heads * h->head_dim > LMQ_MAX_WIDTH ||
        (uint64_t)h->n_heads * lmq_hparams_value_dim(h) > LMQ_MAX_WIDTH ||
        (uint64_t)h->kv_lora_rank + h->head_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "%u heads of %u are too wide",
                        h->n_heads, h->head_dim);
    if (h->kv_lora_rank > 0 && rotary >= h->head_dim)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "latent attention with heads of %u, of which %u turn, "
                        "leaves nothing still",
                        h->head_dim, rotary);
    return LMQ_OK;
}

static enum lmq_status
check_rope(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (h->rope_theta < 1 || h->rope_theta > 1e15 || h->rope_factor < 1e-6 ||
        h->rope_factor > 1e6)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_theta is %g and rope_factor %g, expected 1 to "
                        "1e15 and 1e-6 to 1e6",
                        h->rope_theta, h->rope_factor);
    if (h->rope_local_theta != 0 &&
        (h->rope_local_theta < 1 || h->rope_local_theta > 1e15))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_local_theta is %g, expected 1 to 1e15",
                        h->rope_local_theta);
    bool has_factors = h->rope_scaling == LMQ_ROPE_LONGROPE ||
                       h->rope_scaling == LMQ_ROPE_FACTORS;
    if (!has_factors)
        return LMQ_OK;
    if (h->n_rope_factors != lmq_hparams_rotary_dim(h) / 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "there are %u rotary factors, expected %u",
                        h->n_rope_factors, lmq_hparams_rotary_dim(h) / 2);
    for (uint32_t i = 0; i < h->n_rope_factors; i++)
        if (!(h->rope_short[i] >= 1e-6 && h->rope_short[i] <= 1e9) ||
            (h->rope_scaling == LMQ_ROPE_LONGROPE &&
             !(h->rope_long[i] >= 1e-6 && h->rope_long[i] <= 1e9)))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "rotary factor %u is %g or %g, expected 1e-6 to "
                            "1e9",
                            i, h->rope_short[i], h->rope_long[i]);
    return LMQ_OK;
}

static enum lmq_status
check_experts(const struct lmq_hparams *h, struct lmq_error *err)
{
    uint32_t groups = h->n_expert_groups;

    if (h->n_experts == 0)
        return LMQ_OK;
    if (h->n_experts_used == 0 || h->n_experts_used > h->n_experts ||
        h->expert_dim == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u experts of %u dimensions make no model",
                        h->n_experts_used, h->n_experts, h->expert_dim);
    if (groups > 0 &&
        (h->n_experts % groups != 0 || h->n_expert_groups_used == 0 ||
         h->n_expert_groups_used > groups ||
         (uint64_t)h->n_expert_groups_used * (h->n_experts / groups) <
             h->n_experts_used))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "%u of %u groups do not give %u of %u experts",
                        h->n_expert_groups_used, groups, h->n_experts_used,
                        h->n_experts);
    return LMQ_OK;
}

enum lmq_status
lmq_hparams_check(const struct lmq_hparams *hparams, struct lmq_error *err)
{
    enum lmq_status status = check_numbers(hparams, err);

    if (status == LMQ_OK)
        status = check_heads(hparams, err);
    if (status == LMQ_OK)
        status = check_rope(hparams, err);
    if (status == LMQ_OK)
        status = check_experts(hparams, err);
    return status;
}

/* What a model can differ in and still be put side by side with another. */
static bool
is_free(size_t offset)
{
    return offset == AT(context) || offset == AT(sliding_window) ||
           offset == AT(rope_context) || offset == AT(rope_scaling);
}

const char *
lmq_hparams_difference(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    for (const struct lmq_count_field *f = lmq_hparams_counts; f->key != NULL;
         f++)
        if (lmq_count_at(a, f->offset) != lmq_count_at(b, f->offset) &&
            !is_free(f->offset))
            return f->key;
    for (const struct lmq_kind_field *f = lmq_hparams_kinds; f->key != NULL;
         f++)
        if (lmq_kind_at(a, f->offset) != lmq_kind_at(b, f->offset) &&
            !is_free(f->offset))
            return f->key;
    for (const struct lmq_switch_field *f = lmq_hparams_switches;
         f->key != NULL; f++)
        if (lmq_switch_at(a, f->offset) != lmq_switch_at(b, f->offset))
            return f->key;
    for (uint32_t i = 0; i < a->n_layers; i++)
        if (lmq_layer_is(a, i, LMQ_LAYER_DENSE) !=
            lmq_layer_is(b, i, LMQ_LAYER_DENSE))
            return "dense_layers";
    return NULL;
}
