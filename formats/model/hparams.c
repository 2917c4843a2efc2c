/*
 * hparams.c - what a description may be: defaults, one way of saying each
 * thing, checks, comparing.
 */
#include "config.h"

#include "formats/model/hparams.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/model/hparams_fields.h"

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

float
lmq_hparams_attn_scale(const struct lmq_hparams *hparams)
{
    return hparams->attn_scale > 0 ? (float)hparams->attn_scale
                                   : 1 / sqrtf((float)hparams->head_dim);
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

/* ---- One way of saying each thing ---- */

static void
clear_layers(struct lmq_hparams *h, enum lmq_layer_kind kind)
{
    for (size_t i = 0; i < LMQ_MAX_LAYERS; i++)
        h->layers[i] &= (unsigned char)~(unsigned)kind;
}

/* What a kind of scaling does not compute with is as it usually is. */
static void
settle_rope(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    static const struct {
        bool has_factor, has_bands, has_betas, has_context;
    } kinds[LMQ_ROPE_SCALING_COUNT] = {
        [LMQ_ROPE_LINEAR] = {true, false, false, false},
        [LMQ_ROPE_LLAMA3] = {true, true, false, true},
        [LMQ_ROPE_NTK] = {true, false, false, false},
        [LMQ_ROPE_DYNAMIC] = {true, false, false, true},
        [LMQ_ROPE_YARN] = {true, false, true, true},
        [LMQ_ROPE_LONGROPE] = {true, false, false, true},
    };

    if (!kinds[h->rope_scaling].has_factor)
        h->rope_factor = usual->rope_factor;
    if (!kinds[h->rope_scaling].has_bands) {
        h->rope_low_factor = usual->rope_low_factor;
        h->rope_high_factor = usual->rope_high_factor;
    }
    if (!kinds[h->rope_scaling].has_betas) {
        h->rope_beta_fast = usual->rope_beta_fast;
        h->rope_beta_slow = usual->rope_beta_slow;
    }
    if (!kinds[h->rope_scaling].has_context)
        h->rope_context = usual->rope_context;
    if (h->positions != LMQ_POSITIONS_ROTARY) {
        h->rope_theta = usual->rope_theta;
        h->rotary_dim = 0;
        clear_layers(h, LMQ_LAYER_NOPE);
    }
    if (h->rotary_dim == h->head_dim)
        h->rotary_dim = 0;
}

/* A window that no layer has is none; full layers are worth saying only among
 * others. */
static void
settle_windows(struct lmq_hparams *h)
{
    bool has_window = false;

    for (size_t i = 0; i < h->n_layers && i < LMQ_MAX_LAYERS; i++)
        has_window = has_window || lmq_layer_window(h, i) != 0;
    if (has_window)
        return;
    h->sliding_window = 0;
    h->rope_local_theta = 0;
    clear_layers(h, LMQ_LAYER_FULL);
}

static void
settle_experts(struct lmq_hparams *h, const struct lmq_hparams *usual)
{
    if (h->n_experts == 0) {
        h->n_experts_used = h->expert_dim = h->shared_dim = 0;
        h->n_expert_groups = 0;
        h->router = usual->router;
        h->router_scale = usual->router_scale;
        h->router_renormalises = h->router_corrects = false;
        clear_layers(h, LMQ_LAYER_DENSE);
    }
    /* The same choice without groups. */
    if (h->n_expert_groups <= 1 ||
        h->n_expert_groups == h->n_expert_groups_used) {
        h->n_expert_groups = h->n_expert_groups_used = 0;
        h->expert_group_score = usual->expert_group_score;
    }
}

void
lmq_hparams_settle(struct lmq_hparams *h)
{
    struct lmq_hparams usual;

    lmq_hparams_init(&usual);
    if (h->value_dim == h->head_dim)
        h->value_dim = 0;
    settle_rope(h, &usual);
    settle_windows(h);
    settle_experts(h, &usual);
}

/* ---- Checking ---- */

static enum lmq_status
check_numbers(const struct lmq_hparams *h, struct lmq_error *err)
{
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++) {
        double value = f->type == LMQ_FIELD_COUNT || f->type == LMQ_FIELD_REAL
                           ? lmq_field_get(f, h)
                           : 0;
        if (f->type == LMQ_FIELD_COUNT && (value < f->least || value > f->most))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "%s is %.0f, expected %u to %u", f->key, value,
                            f->least, f->most);
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
    if (h->rope_scaling == LMQ_ROPE_LLAMA3 &&
        !(h->rope_low_factor < h->rope_high_factor))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_low_factor is %g and rope_high_factor %g, "
                        "expected the first to be less",
                        h->rope_low_factor, h->rope_high_factor);
    if (h->rope_scaling == LMQ_ROPE_YARN &&
        !(h->rope_beta_slow > 0 && h->rope_beta_fast >= h->rope_beta_slow))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "rope_beta_fast is %g and rope_beta_slow %g, expected "
                        "the second above 0 and not above the first",
                        h->rope_beta_fast, h->rope_beta_slow);
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
is_free(const struct lmq_field *field)
{
    return field->type == LMQ_FIELD_REAL ||
           field->type == LMQ_FIELD_FACTORS ||
           (field->type == LMQ_FIELD_LAYERS &&
            field->bit != LMQ_LAYER_DENSE) ||
           field->offset == LMQ_FIELD(context) ||
           field->offset == LMQ_FIELD(sliding_window) ||
           field->offset == LMQ_FIELD(rope_context) ||
           field->offset == LMQ_FIELD(rope_scaling);
}

const char *
lmq_hparams_difference(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (!is_free(f) && !lmq_field_is_same(f, a, b, 0))
            return f->key;
    return NULL;
}

bool
lmq_hparams_are_same(const struct lmq_hparams *a, const struct lmq_hparams *b)
{
    for (const struct lmq_field *f = lmq_fields; f->key != NULL; f++)
        if (!lmq_field_is_same(f, a, b, 0))
            return false;
    return strcmp(a->architecture, b->architecture) == 0 &&
           strcmp(a->unsupported, b->unsupported) == 0 && a->bos == b->bos &&
           a->n_eos == b->n_eos &&
           memcmp(a->eos, b->eos, a->n_eos * sizeof(a->eos[0])) == 0;
}
