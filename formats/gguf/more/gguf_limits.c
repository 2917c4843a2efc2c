/*
 * gguf_limits.c - limits of what feed-forwards activate, in GGUF: after the
 * activation in some layers (Step 3.5), or before it in all of them.
 */
#include "config.h"

#include "formats/gguf/gguf_reader.h"

#include <inttypes.h>

#include "base/error.h"

static const char limits[] = ".swiglu_clamp_shexp";
static const char expert_limits[] = ".swiglu_clamp_exp";

/* ---- Reading ---- */

/* A number for all layers, or one for each; 0 is none. */
static enum lmq_status
read_limit(struct lmq_gguf_reader *r, const char *name, double *limit,
           enum lmq_layer_kind kind)
{
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));
    bool is_list = value != NULL && value->type == LMQ_GGUF_ARRAY;
    struct lmq_hparams *h = r->h;
    double number = 0;

    if (is_list && (value->item_type != LMQ_GGUF_F32 ||
                    value->count < h->n_layers))
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no f32 for each of %" PRIu32 " layers",
                        r->key, h->n_layers);
    if (!is_list) {
        enum lmq_status status = lmq_gguf_read_number(r, name, &number);
        if (status != LMQ_OK)
            return status;
    }
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (is_list)
            number = lmq_gguf_item_number(value, i);
        if (number == 0)
            continue;
        if (!(number > 0 && number <= 1e30))
            lmq_hparams_refuse(h, "%g in '%s'", number, name);
        else if (*limit > 0 && (number < *limit || number > *limit))
            lmq_hparams_refuse(h, "layers that differ in '%s'", name);
        else
            *limit = number;
        h->layers[i] |= (uint32_t)kind;
    }
    return LMQ_OK;
}

/* One limit of all layers. */
static enum lmq_status
read_gate_limit(struct lmq_gguf_reader *r, const char *name, double *limit)
{
    struct lmq_hparams *h = r->h;
    uint32_t n = 0;
    enum lmq_status status =
        read_limit(r, name, limit, LMQ_LAYER_LIMITED_EXPERTS);

    for (uint32_t i = 0; i < h->n_layers; i++) {
        n += lmq_layer_is(h, i, LMQ_LAYER_LIMITED_EXPERTS);
        h->layers[i] &= (uint32_t)~LMQ_LAYER_LIMITED_EXPERTS;
    }
    if (n > 0 && n < h->n_layers)
        lmq_hparams_refuse(h, "layers that differ in '%s'", name);
    return status;
}

/* What is no expert has the same, or nothing is said of it. */
static enum lmq_status
read_gate_limits(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    double other = 0;
    enum lmq_status status =
        read_gate_limit(r, expert_limits + 1, &h->glu_limit);

    if (status != LMQ_OK || !r->family->gguf.limits_all_gates ||
        !lmq_gguf_has_key(r, limits + 1))
        return status;
    status = read_gate_limit(r, limits + 1, &other);
    if (other < h->glu_limit || other > h->glu_limit)
        lmq_hparams_refuse(h, "'%s' %g beside '%s' %g", limits + 1, other,
                           expert_limits + 1, h->glu_limit);
    return status;
}

enum lmq_status
lmq_gguf_read_limits(struct lmq_gguf_reader *r)
{
    if ((r->family->gguf.keys & LMQ_GGUF_LIMITS) == 0)
        return LMQ_OK;
    if (r->family->gguf.limits_gates)
        return read_gate_limits(r);
    enum lmq_status status =
        read_limit(r, limits + 1, &r->h->act_limit, LMQ_LAYER_LIMITED);
    return status == LMQ_OK ? read_limit(r, expert_limits + 1,
                                         &r->h->expert_act_limit,
                                         LMQ_LAYER_LIMITED_EXPERTS)
                            : status;
}

/* ---- Writing ---- */

static void
put_limits(struct lmq_gguf_builder *builder, const char *key,
           const struct lmq_hparams *h,
           double (*of)(const struct lmq_hparams *h, size_t layer),
           bool is_needed)
{
    bool has_any = is_needed;

    for (uint32_t i = 0; i < h->n_layers; i++)
        has_any |= of(h, i) > 0;
    if (!has_any)
        return;
    lmq_gguf_put_array(builder, key, LMQ_GGUF_F32, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_f32(builder, of(h, i));
}

static double
gate_limit(const struct lmq_hparams *h, size_t layer)
{
    (void)layer;
    return h->glu_limit;
}

void
lmq_gguf_write_limits(struct lmq_gguf_builder *builder,
                      const struct lmq_family *family,
                      const struct lmq_hparams *h)
{
    if (family->gguf.limits_gates) {
        put_limits(builder, expert_limits, h, gate_limit, true);
        if (family->gguf.limits_all_gates)
            put_limits(builder, limits, h, gate_limit, true);
        return;
    }
    put_limits(builder, limits, h, lmq_layer_act_limit, false);
    put_limits(builder, expert_limits, h, lmq_layer_expert_act_limit, false);
}
