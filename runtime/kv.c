/*
 * kv.c - room for what layers remember.
 */
#include "config.h"

#include "runtime/kv.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/grams/grams.h"

const struct lmq_name lmq_kv_names[] = {
    {"f32", LMQ_KV_F32},
    {"f16", LMQ_KV_F16},
    {"f16-q8", LMQ_KV_F16_Q8},
    {"q8", LMQ_KV_Q8},
    {NULL, 0},
};

static const struct {
    enum lmq_row_type keys, values;
} types[LMQ_KV_TYPES] = {
    [LMQ_KV_F32] = {LMQ_ROW_F32, LMQ_ROW_F32},
    [LMQ_KV_F16] = {LMQ_ROW_F16, LMQ_ROW_F16},
    [LMQ_KV_F16_Q8] = {LMQ_ROW_F16, LMQ_ROW_Q8},
    [LMQ_KV_Q8] = {LMQ_ROW_Q8, LMQ_ROW_Q8},
};

enum lmq_row_type
lmq_kv_keys(enum lmq_kv_type type)
{
    return types[type].keys;
}

enum lmq_row_type
lmq_kv_values(enum lmq_kv_type type)
{
    return types[type].values;
}

enum lmq_status
lmq_kv_parse(const char *text, enum lmq_kv_type *type, struct lmq_error *err)
{
    int value = LMQ_KV_F32;
    enum lmq_status status =
        lmq_names_parse(lmq_kv_names, "kv", text, &value, err);

    *type = (enum lmq_kv_type)value;
    return status;
}

/* Which of the two a layer has. */
static bool
has_rows(const struct lmq_hparams *h, size_t layer)
{
    return layer == LMQ_ANY_LAYER ||
           lmq_layer_has_keys(h, layer);
}

static bool
has_state(const struct lmq_hparams *h, size_t layer)
{
    return layer == LMQ_ANY_LAYER ? h->n_delta_value_heads > 0
                                  : lmq_layer_is(h, layer, LMQ_LAYER_DELTA);
}

static size_t
state_floats(const struct lmq_hparams *h)
{
    size_t rows = lmq_is_convolution(h) ? 0 : lmq_is_lru(h) ? 1
                                                            : h->delta_key_dim;

    return rows * lmq_delta_value_width(h);
}

static size_t
tail_floats(const struct lmq_hparams *h)
{
    return lmq_is_lightning(h)
               ? 0
               : (h->conv_width - 1) * lmq_delta_channels(h);
}

/* Bytes of a position's keys, of its values; SIZE_MAX if they cannot be
 * counted. */
struct position {
    size_t keys, values;
};

static struct position
position_of(const struct lmq_hparams *h, size_t layer, enum lmq_kv_type type)
{
    size_t heads = lmq_cached_heads(h, layer);
    size_t key = lmq_row_bytes(types[type].keys, lmq_key_width(h, layer));
    size_t value =
        lmq_row_bytes(types[type].values, lmq_value_width(h, layer));
    struct position p = {0};

    if (!lmq_size_mul(key, heads, &p.keys))
        p.keys = SIZE_MAX;
    if (!lmq_values_are_keys(h) && !lmq_size_mul(value, heads, &p.values))
        p.values = SIZE_MAX;
    return p;
}

/* Of any layer: of the one that needs the most. */
static struct position
largest_position(const struct lmq_hparams *h, size_t layer,
                 enum lmq_kv_type type)
{
    struct position most = {0};

    if (layer != LMQ_ANY_LAYER)
        return position_of(h, layer, type);
    for (size_t i = 0; i < h->n_layers; i++) {
        struct position p = position_of(h, i, type);
        most.keys = lmq_size_max(most.keys, p.keys);
        most.values = lmq_size_max(most.values, p.values);
    }
    return most;
}

static bool
make_rows(struct lmq_kv *kv, const struct position *position, size_t context)
{
    kv->keys = lmq_mem_aligned(context, position->keys);
    if (position->values > 0)
        kv->values = lmq_mem_aligned(context, position->values);
    return kv->keys != NULL && (position->values == 0 || kv->values != NULL);
}

static bool
make_state(struct lmq_kv *kv, const struct lmq_hparams *h)
{
    kv->state = lmq_mem_aligned(state_floats(h) + 1, sizeof(*kv->state));
    kv->tail = lmq_mem_aligned(tail_floats(h) + 1, sizeof(*kv->tail));
    return kv->state != NULL && kv->tail != NULL;
}

/* Numbers of pools, of what chooses among them, of what they are made of. */
struct pool_sizes {
    size_t pools; /* bytes */
    size_t index, recent;
};

static void
widen_sizes(const struct lmq_hparams *h, size_t layer, enum lmq_kv_type type,
            size_t context, struct pool_sizes *most)
{
    size_t size = lmq_layer_pool(h, layer);
    size_t n = size == 0 ? 0 : context / size;
    size_t bytes, index = 0, recent;

    if (lmq_layer_chooses(h, layer)) {
        if (!lmq_size_mul(context, h->index_dim, &index))
            index = SIZE_MAX / 2; /* fails when allocated */
        most->index = lmq_size_max(most->index, index);
    }
    if (size == 0)
        return;
    index = 0;
    if (!lmq_size_mul(n, lmq_row_bytes(types[type].keys, h->head_dim),
                      &bytes) ||
        !lmq_size_mul(lmq_recent(h, layer), lmq_recent_width(h, layer),
                      &recent) ||
        (lmq_layer_has_index(h, layer) &&
         !lmq_size_mul(n, h->index_dim, &index)))
        bytes = index = recent = SIZE_MAX / 2; /* fails when allocated */
    most->pools = lmq_size_max(most->pools, bytes);
    most->index = lmq_size_max(most->index, index);
    most->recent = lmq_size_max(most->recent, recent);
}

/* Of any layer: of the one that needs the most. */
static struct pool_sizes
sizes_of(const struct lmq_hparams *h, size_t layer, enum lmq_kv_type type,
         size_t context)
{
    struct pool_sizes sizes = {0};

    if (layer != LMQ_ANY_LAYER)
        widen_sizes(h, layer, type, context, &sizes);
    for (size_t i = 0; i < h->n_layers && layer == LMQ_ANY_LAYER; i++)
        widen_sizes(h, i, type, context, &sizes);
    return sizes;
}

static bool
make_pools(struct lmq_kv *kv, const struct pool_sizes *sizes)
{
    if (sizes->index > 0) {
        kv->index = lmq_mem_aligned(sizes->index, sizeof(*kv->index));
        if (kv->index == NULL)
            return false;
    }
    if (sizes->recent == 0)
        return true;
    kv->pools = lmq_mem_aligned(sizes->pools + 1, 1);
    kv->recent = lmq_mem_aligned(sizes->recent, sizeof(*kv->recent));
    return kv->pools != NULL && kv->recent != NULL;
}

/* What a layer remembers of that which is made of the last tokens. */
static bool
has_grams(const struct lmq_hparams *h, size_t layer)
{
    return layer == LMQ_ANY_LAYER ? lmq_has_grams(h)
                                  : lmq_layer_has_grams(h, layer);
}

static bool
make_grams(struct lmq_kv *kv, const struct lmq_hparams *h)
{
    size_t width = (size_t)h->n_streams * h->dim;

    kv->gram_conv = lmq_mem_aligned(lmq_gram_reach(h) + 1,
                                    width * sizeof(*kv->gram_conv));
    kv->gram_tokens = lmq_mem_aligned(h->gram_size, sizeof(*kv->gram_tokens));
    return kv->gram_conv != NULL && kv->gram_tokens != NULL;
}

bool
lmq_kv_init(struct lmq_kv *kv, const struct lmq_model *model, size_t layer,
            enum lmq_kv_type type, size_t context)
{
    const struct lmq_hparams *h = &model->hparams;
    struct position position = largest_position(h, layer, type);
    bool is_complete = true;

    *kv = (struct lmq_kv){.type = type};
    if (has_rows(h, layer))
        is_complete = make_rows(kv, &position, context);
    struct pool_sizes sizes = sizes_of(h, layer, type, context);
    if (is_complete)
        is_complete = make_pools(kv, &sizes);
    if (is_complete && has_state(h, layer))
        is_complete = make_state(kv, h);
    if (is_complete && has_grams(h, layer))
        is_complete = make_grams(kv, h);
    if (!is_complete)
        lmq_kv_free(kv);
    return is_complete;
}

void
lmq_kv_free(struct lmq_kv *kv)
{
    lmq_mem_free(kv->keys);
    lmq_mem_free(kv->values);
    lmq_mem_free(kv->state);
    lmq_mem_free(kv->tail);
    lmq_mem_free(kv->pools);
    lmq_mem_free(kv->index);
    lmq_mem_free(kv->recent);
    lmq_mem_free(kv->gram_conv);
    lmq_mem_free(kv->gram_tokens);
    *kv = (struct lmq_kv){0};
}

double
lmq_kv_bytes(const struct lmq_model *model, size_t layer,
             enum lmq_kv_type type, size_t context)
{
    const struct lmq_hparams *h = &model->hparams;
    struct position position = largest_position(h, layer, type);
    double sum = 0;

    if (has_rows(h, layer))
        sum += ((double)position.keys + (double)position.values) *
               (double)context;
    struct pool_sizes sizes = sizes_of(h, layer, type, context);
    sum += (double)sizes.pools +
           sizeof(float) * ((double)sizes.index + (double)sizes.recent);
    if (has_state(h, layer))
        sum += sizeof(float) *
               ((double)state_floats(h) + (double)tail_floats(h));
    if (has_grams(h, layer))
        sum += sizeof(float) *
               ((double)lmq_gram_reach(h) * h->n_streams * h->dim +
                (double)h->gram_size);
    return sum;
}

/* ---- Lent to later layers ---- */

/* The layer that lends to those of a kind; SIZE_MAX: none. */
static size_t
lender_of(const struct lmq_hparams *h, bool is_full)
{
    for (uint32_t i = h->n_layers - h->n_borrowing; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_FULL) == is_full)
            return lmq_layer_kv_source(h, i);
    return SIZE_MAX;
}

bool
lmq_kv_init_lent(struct lmq_kv lent[LMQ_KV_LENDERS],
                 const struct lmq_model *model, enum lmq_kv_type type,
                 size_t context)
{
    bool is_complete = true;

    for (int i = 0; i < LMQ_KV_LENDERS && is_complete; i++) {
        size_t lender = lender_of(&model->hparams, i == 0);
        if (lender != SIZE_MAX)
            is_complete = lmq_kv_init(&lent[i], model, lender, type, context);
    }
    return is_complete;
}

double
lmq_kv_lent_bytes(const struct lmq_model *model, enum lmq_kv_type type,
                  size_t context)
{
    double sum = 0;

    for (int i = 0; i < LMQ_KV_LENDERS; i++) {
        size_t lender = lender_of(&model->hparams, i == 0);
        if (lender != SIZE_MAX)
            sum += lmq_kv_bytes(model, lender, type, context);
    }
    return sum;
}

struct lmq_kv *
lmq_kv_lent(const struct lmq_hparams *h, struct lmq_kv lent[LMQ_KV_LENDERS],
            size_t layer)
{
    bool is_full = lmq_layer_is(h, layer, LMQ_LAYER_FULL);

    return lmq_layer_kv_source(h, layer) == lender_of(h, is_full)
               ? &lent[is_full ? 0 : 1]
               : NULL;
}
