/*
 * gguf_delta.c - layers with the gated delta rule: which ones have it, and
 * what llama.cpp's code takes for granted of them.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "formats/gguf/gguf_reader.h"

/* Every so many-th layer has attention, if the file does not say. */
#define INTERVAL 4

/* ---- Which layers ---- */

static enum lmq_status
read_list(struct lmq_gguf_reader *r, const struct lmq_gguf_value *list)
{
    struct lmq_hparams *h = r->h;

    if (list->type != LMQ_GGUF_ARRAY || list->item_type != LMQ_GGUF_BOOL ||
        list->count < h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no boolean for each of %u layers",
                        r->key, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_gguf_item_int(list, i) != 0)
            h->layers[i] |= LMQ_LAYER_DELTA;
    return LMQ_OK;
}

static enum lmq_status
read_layers(struct lmq_gguf_reader *r)
{
    const struct lmq_gguf_value *list = lmq_gguf_find(
        r->meta, lmq_gguf_key_of(r, "attention.recurrent_layers"));
    uint32_t interval = INTERVAL;

    if (list != NULL)
        return read_list(r, list);
    enum lmq_status status =
        lmq_gguf_read_count(r, "full_attention_interval", &interval);
    if (status == LMQ_OK && interval == 0)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0, "GGUF: '%s' is 0", r->key);
    for (uint32_t i = 0; i < r->h->n_layers && status == LMQ_OK; i++)
        if ((i + 1) % interval != 0)
            r->h->layers[i] |= LMQ_LAYER_DELTA;
    return status;
}

/* Readers before there was a list know the interval. */
void
lmq_gguf_write_delta(struct lmq_gguf_builder *builder, const char *prefix,
                     const struct lmq_hparams *h)
{
    uint32_t interval = 1;
    bool is_regular = true;
    char key[LMQ_GGUF_MAX_NAME];

    while (interval <= h->n_layers &&
           lmq_layer_is(h, interval - 1, LMQ_LAYER_DELTA))
        interval++;
    for (uint32_t i = 0; i < h->n_layers; i++)
        is_regular &= lmq_layer_is(h, i, LMQ_LAYER_DELTA) ==
                      ((i + 1) % interval != 0);
    if (is_regular) {
        snprintf(key, sizeof(key), "%s.full_attention_interval", prefix);
        lmq_gguf_put_u32(builder, key, interval);
    }
    snprintf(key, sizeof(key), "%s.attention.recurrent_layers", prefix);
    lmq_gguf_put_array(builder, key, LMQ_GGUF_BOOL, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_bool(builder, lmq_layer_is(h, i, LMQ_LAYER_DELTA));
}

/* ---- Sizes ---- */

/* The keys say the width of all values (gguf_keys.c); a head's are as many as
 * its keys are in all that llama.cpp loads. */
enum lmq_status
lmq_gguf_read_delta(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint32_t heads = h->n_delta_value_heads, width = h->delta_value_dim;

    if ((r->family->gguf.keys & LMQ_GGUF_DELTA) == 0)
        return LMQ_OK;
    if (heads == 0 ? width != 0 : width % heads != 0)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u values cannot be shared by %u heads", width,
                        heads);
    h->delta_value_dim = heads == 0 ? 0 : width / heads;
    if (h->delta_value_dim != h->delta_key_dim)
        lmq_hparams_refuse(h, "a delta rule of %u values a head and %u keys",
                           h->delta_value_dim, h->delta_key_dim);
    return read_layers(r);
}

/* Those of text, images' rows and columns take turns, and each has every third
 * angle: together all of them. */
void
lmq_gguf_write_sections(struct lmq_gguf_builder *builder, const char *prefix,
                        const struct lmq_hparams *h)
{
    uint32_t n = lmq_hparams_rotary_dim(h) / 2;
    char key[LMQ_GGUF_MAX_NAME];

    snprintf(key, sizeof(key), "%s.rope.dimension_sections", prefix);
    lmq_gguf_put_array(builder, key, LMQ_GGUF_I32, 4);
    for (uint32_t i = 0; i < 3; i++)
        lmq_gguf_add_u32(builder, (n + 2 - i) / 3);
    lmq_gguf_add_u32(builder, 0);
}

/* ---- What has no key ---- */

void
lmq_gguf_begin_delta(struct lmq_hparams *h)
{
    h->has_attn_gate = true;
    h->router_renormalises = true;
}

void
lmq_gguf_finish_delta(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->hidden_dim == 0) /* all layers have experts */
        h->hidden_dim = h->expert_dim;
}

void
lmq_gguf_finish_qwen3next(struct lmq_hparams *h,
                          const struct lmq_gguf_evidence *evidence)
{
    lmq_gguf_finish_delta(h, evidence);
    if (h->n_experts == 0)
        lmq_hparams_refuse(h, "a Qwen 3 Next without experts");
}
