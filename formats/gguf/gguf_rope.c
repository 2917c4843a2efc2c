/*
 * gguf_rope.c - rotary scaling in GGUF: keys, and factors in tensors.
 *
 * rope.scaling.type says linear, yarn, longrope or none, and linear if it is
 * not there; but factors for each frequency are tensors, and these count
 * whatever the type says: rope_factors_short and _long are LongRoPE's,
 * rope_freqs (Llama 3) serve at any length. Evidence is what the tensors say.
 */
#include "config.h"

#include "formats/gguf/gguf_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/model/rope_scaling.h"

/* ---- Reading ---- */

/* `gain` is attn_factor, which multiplies what YaRN has anyway for its factor.
 * Latent attention moves the gain from the cosines to the scores. */
static enum lmq_status
read_yarn(struct lmq_gguf_reader *r, double gain)
{
    struct lmq_hparams *h = r->h;
    double multiplier = 0;
    enum lmq_status status = lmq_gguf_read_number(
        r, "rope.scaling.yarn_beta_fast", &h->rope_beta_fast);

    if (status == LMQ_OK)
        status = lmq_gguf_read_number(r, "rope.scaling.yarn_beta_slow",
                                      &h->rope_beta_slow);
    h->rope_scaling = LMQ_ROPE_YARN;
    /* With pools there is no usual gain. */
    h->rope_attention_factor =
        gain * ((r->family->gguf.keys & LMQ_GGUF_POOLS) != 0
                    ? 1
                    : lmq_rope_yarn_gain(h->rope_factor, 1));
    if (status == LMQ_OK && (r->family->gguf.keys & LMQ_GGUF_GROWTH) != 0) {
        /* What scales all dimensions goes against the usual gain. */
        status = lmq_gguf_read_number(r, "rope.scaling.yarn_log_multiplier",
                                      &multiplier);
        if (h->score_growth_period == 0)
            h->score_growth_period = h->rope_context;
        if (multiplier > 0)
            h->rope_attention_factor =
                gain * lmq_rope_yarn_gain(h->rope_factor, 1) /
                lmq_rope_yarn_gain(h->rope_factor, multiplier);
    }
    if (status != LMQ_OK || !(r->family->gguf.keys & LMQ_GGUF_LATENT))
        return status;
    status = lmq_gguf_read_number(r, "rope.scaling.yarn_log_multiplier",
                                  &multiplier);
    double scale = 1 + multiplier * log(h->rope_factor);
    if (multiplier <= 0 && h->rope_factor > 1)
        lmq_hparams_refuse(h, "YaRN without yarn_log_multiplier beside latent "
                              "attention");
    h->rope_attention_factor = 1;
    if (h->head_dim > 0)
        h->attn_scale = scale * scale / sqrt((double)h->head_dim);
    if (gain < 1 || gain > 1)
        lmq_hparams_refuse(h, "an attention factor beside latent attention");
    return status;
}

/* `far` are the factors beyond the original context; NULL: there is no such
 * difference. */
static void
take_factors(struct lmq_hparams *h, enum lmq_rope_scaling scaling,
             const double *near, const double *far, uint32_t n)
{
    h->rope_scaling = scaling;
    h->n_rope_factors = n;
    for (uint32_t i = 0; i < n && i < LMQ_MAX_ROPE_FACTORS; i++) {
        h->rope_short[i] = near[i];
        h->rope_long[i] = far == NULL ? 0 : far[i];
    }
}

static enum lmq_status
read_scaling(struct lmq_gguf_reader *r, const char *type, double gain)
{
    const struct lmq_gguf_evidence *e = r->evidence;
    struct lmq_hparams *h = r->h;
    bool is_scaled = h->rope_factor < 1 || h->rope_factor > 1;

    if (e->n_near > 0 && e->n_near == e->n_far) {
        take_factors(h, LMQ_ROPE_LONGROPE, e->near, e->far, e->n_near);
        h->rope_attention_factor = gain;
        h->rope_factor = 1;
    } else if (e->n_near > 0 || e->n_far > 0) {
        lmq_hparams_refuse(h, "rope_factors_long or _short without the other");
    } else if (strcmp(type, "yarn") == 0) {
        if (e->n_always > 0)
            lmq_hparams_refuse(h, "rope_freqs together with YaRN");
        return read_yarn(r, gain);
    } else if (e->n_always > 0) {
        if (is_scaled && strcmp(type, "none") != 0)
            lmq_hparams_refuse(h, "rope_freqs together with a factor");
        uint32_t pairs = lmq_hparams_far_rotary_dim(h) / 2, n = e->n_always;
        if (r->family->gguf.halves_part && n > pairs)
            n = pairs; /* the others are of layers that are not scaled */
        take_factors(h, LMQ_ROPE_FACTORS, e->always, NULL, n);
    } else if (strcmp(type, "linear") == 0) {
        h->rope_scaling = is_scaled ? LMQ_ROPE_LINEAR : LMQ_ROPE_PLAIN;
        /* llama.cpp's scores grow by that, as with YaRN; not MiniCPM's. */
        if (is_scaled && (r->family->gguf.keys & LMQ_GGUF_LATENT) != 0 &&
            strcmp(r->family->gguf.name, "minicpm3") != 0)
            lmq_hparams_refuse(h, "linear scaling beside latent attention");
    } else if (strcmp(type, "none") != 0 && strcmp(type, "longrope") != 0) {
        lmq_hparams_refuse(h, "rotary scaling '%.60s'", type);
    }
    return LMQ_OK;
}

/* Some Granites say by this key whether anything turns. */
static enum lmq_status
read_turning(struct lmq_gguf_reader *r)
{
    bool turns = true;
    enum lmq_status status = LMQ_OK;

    if (r->family->gguf.may_stand_still)
        status = lmq_gguf_get_bool(
            r->meta, lmq_gguf_key_of(r, "rope.scaling.finetuned"), &turns,
            r->err);
    for (uint32_t i = 0; i < r->h->n_layers && !turns; i++)
        r->h->layers[i] |= LMQ_LAYER_NOPE;
    return status;
}

enum lmq_status
lmq_gguf_read_rope(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    const unsigned char *text = (const unsigned char *)"linear";
    size_t size = strlen("linear");
    double gain = 1;
    char type[64];
    enum lmq_status status = LMQ_OK;

    if (!(r->family->gguf.keys & (LMQ_GGUF_ROPE | LMQ_GGUF_POOLS)))
        return LMQ_OK;
    h->rope_factor = 0;
    /* scale_linear is the older name. */
    if (!lmq_gguf_has_key(r, "rope.scaling.factor"))
        status = lmq_gguf_read_number(r, "rope.scale_linear", &h->rope_factor);
    if (status == LMQ_OK)
        status =
            lmq_gguf_read_number(r, "rope.scaling.factor", &h->rope_factor);
    if (status == LMQ_OK)
        status = lmq_gguf_read_number(r, "rope.scaling.attn_factor", &gain);
    if (status == LMQ_OK)
        status =
            lmq_gguf_get_text(r->meta, lmq_gguf_key_of(r, "rope.scaling.type"),
                              &text, &size, r->err);
    h->rope_context = h->context;
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, "rope.scaling.original_context_length",
                                     &h->rope_context);
    if (status == LMQ_OK)
        status = read_turning(r);
    if (status != LMQ_OK)
        return status;
    /* Absent; some write 0 for that. */
    if (h->rope_factor <= 0)
        h->rope_factor = 1;
    snprintf(type, sizeof(type), "%.*s", (int)lmq_size_min(size, 60),
             (const char *)text);
    status = read_scaling(r, type, gain);
    if (h->rope_scaling != LMQ_ROPE_YARN &&
        h->rope_scaling != LMQ_ROPE_LONGROPE && (gain < 1 || gain > 1))
        lmq_hparams_refuse(h, "an attention factor of %g", gain);
    return status;
}

/* ---- Writing ---- */

/* What read_yarn() makes of it must be the description again. */
static void
write_yarn(struct lmq_gguf_builder *builder,
           const struct lmq_family *family, const struct lmq_hparams *h)
{
    double stretch = log(h->rope_factor);
    double gain = h->rope_attention_factor /
                  ((family->gguf.keys & LMQ_GGUF_POOLS) != 0
                       ? 1
                       : lmq_rope_yarn_gain(h->rope_factor, 1));

    if (family->gguf.keys & LMQ_GGUF_LATENT) {
        double scale = h->attn_scale > 0
                           ? sqrt(h->attn_scale * sqrt((double)h->head_dim))
                           : 1;
        lmq_gguf_put_f32(builder, ".rope.scaling.yarn_log_multiplier",
                         stretch > 0 ? (scale - 1) / stretch : 0);
    } else if (fabs(gain - 1) > 1e-6) {
        lmq_gguf_put_f32(builder, ".rope.scaling.attn_factor", gain);
    }
    /* 32 and 1 are what readers take where there is no key. */
    if (h->rope_beta_fast < 32 || h->rope_beta_fast > 32)
        lmq_gguf_put_f32(builder, ".rope.scaling.yarn_beta_fast",
                         h->rope_beta_fast);
    if (h->rope_beta_slow < 1 || h->rope_beta_slow > 1)
        lmq_gguf_put_f32(builder, ".rope.scaling.yarn_beta_slow",
                         h->rope_beta_slow);
}

/* Whether there are keys, and none of them turns. */
static bool
is_still(const struct lmq_hparams *h)
{
    bool has_keys = false;

    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (!lmq_layer_has_keys(h, i))
            continue;
        has_keys = true;
        if (!lmq_layer_is(h, i, LMQ_LAYER_NOPE))
            return false;
    }
    return has_keys;
}

void
lmq_gguf_write_rope(struct lmq_gguf_builder *builder,
                    const struct lmq_family *family,
                    const struct lmq_hparams *h)
{
    /* Factors for each frequency have no name: rope_freqs says it all. */
    static const char *const types[LMQ_ROPE_SCALING_COUNT] = {
        [LMQ_ROPE_LINEAR] = "linear",
        [LMQ_ROPE_YARN] = "yarn",
        [LMQ_ROPE_LONGROPE] = "longrope",
    };
    const char *type = types[h->rope_scaling];

    if (type != NULL)
        lmq_gguf_put_text(builder, ".rope.scaling.type", type, strlen(type));
    if (h->rope_scaling == LMQ_ROPE_LINEAR || h->rope_scaling == LMQ_ROPE_YARN)
        lmq_gguf_put_f32(builder, ".rope.scaling.factor", h->rope_factor);
    if (h->rope_scaling == LMQ_ROPE_YARN ||
        h->rope_scaling == LMQ_ROPE_LONGROPE)
        lmq_gguf_put_u32(builder, ".rope.scaling.original_context_length",
                         h->rope_context);
    if (family->gguf.may_stand_still && !family->gguf.lacks_still &&
        is_still(h))
        lmq_gguf_put_bool(builder, ".rope.scaling.finetuned", false);
    if (h->rope_scaling == LMQ_ROPE_YARN)
        write_yarn(builder, family, h);
    else if (h->rope_scaling == LMQ_ROPE_LONGROPE)
        lmq_gguf_put_f32(builder, ".rope.scaling.attn_factor",
                         h->rope_attention_factor);
    else if ((family->gguf.keys & LMQ_GGUF_LATENT) != 0)
        lmq_gguf_put_f32(builder, ".rope.scaling.yarn_log_multiplier", 0);
}
