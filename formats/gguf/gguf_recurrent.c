/*
 * gguf_recurrent.c - layers that remember a state: which ones do, and what
 * llama.cpp's code takes for granted of them.
 */
#include "config.h"

#include "formats/gguf/gguf_special.h"

#include <inttypes.h>

#include "base/error.h"
#include "formats/gguf/gguf_reader.h"

/* Every so many-th layer has attention, if the file does not say: of delta
 * rules, of lightning attention. */
#define INTERVAL 4
#define LIGHTNING_INTERVAL 8

/* ---- Which layers ---- */

static const char listed[] = ".attention.recurrent_layers";

static enum lmq_status
read_layers(struct lmq_gguf_reader *r)
{
    uint32_t interval = (r->family->gguf.keys & LMQ_GGUF_LIGHTNING) != 0
                            ? LIGHTNING_INTERVAL
                            : INTERVAL;

    if (lmq_gguf_find(r->meta, lmq_gguf_key_of(r, listed + 1)) != NULL)
        return lmq_gguf_read_marks(r, listed + 1, LMQ_LAYER_DELTA, true);
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
lmq_gguf_write_delta(struct lmq_gguf_builder *builder,
                     const struct lmq_hparams *h)
{
    uint32_t interval = 1;
    bool is_regular = true;

    while (interval <= h->n_layers &&
           lmq_layer_is(h, interval - 1, LMQ_LAYER_DELTA))
        interval++;
    for (uint32_t i = 0; i < h->n_layers; i++)
        is_regular &= lmq_layer_is(h, i, LMQ_LAYER_DELTA) ==
                      ((i + 1) % interval != 0);
    if (is_regular)
        lmq_gguf_put_u32(builder, ".full_attention_interval", interval);
    lmq_gguf_write_marks(builder, listed, h, LMQ_LAYER_DELTA, true);
}

/* ---- Sizes ---- */

/* The keys say the width of all values (gguf_keys.c); a head's are as many as
 * its keys are in all that llama.cpp loads. */
enum lmq_status
lmq_gguf_read_delta(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    uint32_t heads = h->n_delta_value_heads, width = h->delta_value_dim;

    if ((r->family->gguf.keys & LMQ_GGUF_LIGHTNING) != 0)
        return read_layers(r);
    if ((r->family->gguf.keys & LMQ_GGUF_OF_HEADS) == 0)
        return LMQ_OK;
    if (heads == 0 ? width != 0 : width % heads != 0)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: %u values cannot be shared by %u heads", width,
                        heads);
    h->delta_value_dim = heads == 0 ? 0 : width / heads;
    if (h->recurrence != LMQ_RECURRENCE_DELTA)
        return LMQ_OK;
    if (h->delta_value_dim != h->delta_key_dim)
        lmq_hparams_refuse(h, "a delta rule of %u values a head and %u keys",
                           h->delta_value_dim, h->delta_key_dim);
    return read_layers(r);
}

/* Those of text, images' rows and columns take turns, and each has every third
 * angle: together all of them. */
void
lmq_gguf_write_sections(struct lmq_gguf_builder *builder,
                        const struct lmq_hparams *h)
{
    uint32_t n = lmq_hparams_rotary_dim(h) / 2;

    lmq_gguf_put_array(builder, ".rope.dimension_sections", LMQ_GGUF_I32, 4);
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
lmq_gguf_finish_qwen3next(struct lmq_hparams *h,
                          const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->n_experts == 0)
        lmq_hparams_refuse(h, "a Qwen 3 Next without experts");
}

/* A layer has experts where it has a router. */
void
lmq_gguf_finish_jamba(struct lmq_hparams *h,
                      const struct lmq_gguf_evidence *evidence)
{
    bool has_experts = false;

    h->has_step_norms = h->has_step_norm_weights = true;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        has_experts |= evidence->has_router[i];
        if (!evidence->has_router[i])
            h->layers[i] |= LMQ_LAYER_DENSE;
    }
    if (!has_experts) /* one for each layer may be counted */
        h->n_experts = 0;
}

/* ---- Lightning attention ---- */

void
lmq_gguf_begin_lightning(struct lmq_hparams *h)
{
    h->recurrence = LMQ_RECURRENCE_LIGHTNING;
    h->has_normed_residual = h->has_sigmoid_gates = true;
    h->router_renormalises = true;
}

/* As many heads as attention has, and one scale for all blocks. */
void
lmq_gguf_finish_lightning(struct lmq_hparams *h,
                          const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->n_delta_key_heads = h->n_delta_value_heads = h->n_heads;
    h->delta_key_dim = h->delta_value_dim = h->head_dim;
    h->delta_keep = h->feed_keep = h->attn_keep;
    lmq_decays_by_layer(h);
}

/* ---- State spaces and short convolutions ---- */

/* Number i of a key that has one for each layer, or one for all. */
static enum lmq_status
read_of_layer(struct lmq_gguf_reader *r, const char *name, uint32_t i,
              uint32_t *number)
{
    const struct lmq_gguf_value *value =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, name));

    if (value == NULL || value->type != LMQ_GGUF_ARRAY)
        return lmq_gguf_read_count(r, name, number);
    /* gguf_keys.c has seen that there are so many integers. */
    int64_t item = lmq_gguf_item_int(value, i);
    if (item < 0 || item > LMQ_MAX_WIDTH)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' of layer %" PRIu32 " is %" PRId64, r->key,
                        i, item);
    *number = (uint32_t)item;
    return LMQ_OK;
}

/* The one number that all layers have, but for those that have none. */
static void
agree(struct lmq_hparams *h, uint32_t *all, uint32_t number, const char *name)
{
    if (number == 0)
        return;
    if (*all != 0 && *all != number)
        lmq_hparams_refuse(h, "layers of one kind that differ in '%s'", name);
    *all = number;
}

/* What a layer without keys is, and one without a feed-forward: where layers
 * have halves, what has keys has no feed-forward. */
static void
mark_layer(struct lmq_hparams *h, uint32_t i, bool has_keys, bool has_feed,
           bool has_halves)
{
    if (!has_halves && !has_keys)
        h->layers[i] |= LMQ_LAYER_DELTA;
    else if (!has_halves)
        return;
    else if (has_keys && has_feed)
        lmq_hparams_refuse(h, "layer %u with attention and a feed-forward", i);
    else if (has_feed)
        h->layers[i] |= LMQ_LAYER_FEED;
    else if (has_keys)
        h->layers[i] |= LMQ_LAYER_BARE;
    else
        h->layers[i] |= LMQ_LAYER_DELTA | LMQ_LAYER_BARE;
}

/* Each channel is a head. */
static enum lmq_status
read_selective(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;

    h->n_delta_key_heads = h->delta_value_dim = 1;
    h->has_bare_states = true;
    return lmq_gguf_get_bool(r->meta, lmq_gguf_key_of(r, "ssm.dt_b_c_rms"),
                             &h->has_step_norms, r->err);
}

/* As many heads as attention has, all of one width, and so are latents, if
 * there are any. */
static void
take_key_decays(struct lmq_hparams *h, bool has_latents)
{
    h->n_delta_key_heads = h->n_delta_value_heads = h->n_heads;
    h->delta_value_dim = h->delta_key_dim;
    h->step_rank = h->gate_rank = has_latents ? h->delta_key_dim : 0;
    h->has_key_decays = h->has_sigmoid_gates = true;
}

/* If there is no bound the number means nothing. */
static enum lmq_status
read_floor(struct lmq_gguf_reader *r)
{
    bool has_floor = true;
    enum lmq_status status = lmq_gguf_get_bool(
        r->meta, lmq_gguf_key_of(r, "kda.safe_gate"), &has_floor, r->err);

    if (!has_floor)
        r->h->decay_floor = 0;
    return status;
}

void
lmq_gguf_begin_ling3(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid(h);
    h->has_attn_gate = h->has_head_gate = true;
}

void
lmq_gguf_begin_kimi(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid(h);
    h->router_renormalises = true;
}

/* Nothing turns. */
void
lmq_gguf_finish_kimi(struct lmq_hparams *h,
                     const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->positions = LMQ_POSITIONS_ROTARY;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_has_attention(h, i))
            h->layers[i] |= LMQ_LAYER_NOPE;
}

enum lmq_status
lmq_gguf_read_recurrent(struct lmq_gguf_reader *r)
{
    static const char keys[] = "attention.head_count_kv";
    static const char feed[] = "feed_forward_length";
    uint64_t forms = r->family->gguf.keys;
    struct lmq_hparams *h = r->h;

    if ((forms & LMQ_GGUF_BY_LAYER) == 0)
        return LMQ_OK;
    h->recurrence = (forms & LMQ_GGUF_STATES) != 0 ? LMQ_RECURRENCE_STATE_SPACE
                    : (forms & LMQ_GGUF_KEY_DECAYS) != 0
                        ? LMQ_RECURRENCE_DELTA
                    : (forms & LMQ_GGUF_SELECTIVE) != 0
                        ? LMQ_RECURRENCE_SELECTIVE
                        : LMQ_RECURRENCE_CONVOLUTION;
    h->n_kv_heads = h->hidden_dim = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        uint32_t n_keys = 0, width = 0;
        enum lmq_status status = read_of_layer(r, keys, i, &n_keys);
        if (status == LMQ_OK)
            status = read_of_layer(r, feed, i, &width);
        if (status != LMQ_OK)
            return status;
        agree(h, &h->n_kv_heads, n_keys, keys);
        agree(h, &h->hidden_dim, width, feed);
        mark_layer(h, i, n_keys > 0, width > 0,
                   (forms & LMQ_GGUF_HALVES) != 0);
    }
    for (uint32_t i = 0; r->family->gguf.has_both && i < h->n_layers; i++)
        h->layers[i] |= LMQ_LAYER_DELTA | LMQ_LAYER_BESIDE;
    if (r->family->gguf.has_both)
        h->has_bare_states = !r->evidence->has_state_norm;
    if (h->n_kv_heads == 0) /* no layer has attention */
        h->n_heads = h->n_kv_heads = h->head_dim = 1;
    if ((forms & LMQ_GGUF_KEY_DECAYS) != 0)
        take_key_decays(h, (forms & LMQ_GGUF_DECAY_FLOOR) == 0);
    if ((forms & LMQ_GGUF_DECAY_FLOOR) != 0)
        return read_floor(r);
    if ((forms & LMQ_GGUF_SHORT) != 0) {
        h->n_delta_value_heads = 1;
        h->delta_value_dim = h->dim;
    }
    return (forms & LMQ_GGUF_SELECTIVE) != 0 ? read_selective(r) : LMQ_OK;
}

void
lmq_gguf_write_recurrent(struct lmq_gguf_builder *builder,
                         const struct lmq_family *family,
                         const struct lmq_hparams *h)
{
    bool is_latent = (family->gguf.keys & LMQ_GGUF_LATENT) != 0;
    uint32_t n_keys = is_latent ? 1 : h->n_kv_heads;

    lmq_gguf_put_array(builder, ".attention.head_count_kv", LMQ_GGUF_U32,
                       h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_u32(builder, lmq_layer_has_keys(h, i) ? n_keys : 0);
    if ((family->gguf.keys & LMQ_GGUF_DECAY_FLOOR) != 0)
        lmq_gguf_put_bool(builder, ".kda.safe_gate", true);
    if ((family->gguf.keys & LMQ_GGUF_HALVES) == 0)
        return;
    lmq_gguf_put_array(builder, ".feed_forward_length", LMQ_GGUF_U32,
                       h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_u32(builder, !lmq_layer_has_feed(h, i) ? 0
                                  : h->n_experts > 0        ? h->expert_dim
                                                            : h->hidden_dim);
}
