/*
 * gguf_pools.c - sparse attention in GGUF, and what goes with it.
 */
#include "config.h"

#include "formats/gguf/more/gguf_pools.h"

#include "base/error.h"
#include "formats/gguf/gguf_special.h"
#include "formats/model/pools.h"

/* ---- What chooses among positions ---- */

static const char chosen[] = ".attention.indexer.top_k";
static const char group[] = ".attention.indexer.kpool";
static const char tail[] = ".attention.indexer.kpool_select_tail";

/* Groups of so many positions are chosen, and what is left behind the last
 * whole one is always seen. */
static enum lmq_status
read_groups(struct lmq_gguf_reader *r, uint32_t n, uint32_t *n_behind)
{
    bool sees_tail = true;
    uint32_t size = 0;
    enum lmq_status status = lmq_gguf_read_count(r, group + 1, &size);

    if (status == LMQ_OK)
        status = lmq_gguf_get_bool(r->meta, lmq_gguf_key_of(r, tail + 1),
                                   &sees_tail, r->err);
    if (status != LMQ_OK)
        return status;
    if (size < 2 || n % size != 0 || size > LMQ_MAX_CONTEXT - n)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s%s' is %u, expected more than 1 and a part "
                        "of '%s', %u",
                        r->family->gguf.name, group, size, chosen + 1, n);
    if (!sees_tail)
        lmq_hparams_refuse(r->h, "'%s' false", tail + 1);
    *n_behind = size - 1;
    return LMQ_OK;
}

static const char types[] = ".attention.indexer.types";

/* From so many positions on a model is taken for one whose layers share what
 * some choose, if it does not say: of GLM 5.2. */
#define LONG_CONTEXT 1048576
#define PERIOD 4
#define FIRST 3

/* Which layers choose; the others follow. */
static enum lmq_status
mark_choosers(struct lmq_gguf_reader *r)
{
    struct lmq_hparams *h = r->h;
    const bool may_share = (r->family->gguf.keys & LMQ_GGUF_CHOOSERS) != 0;
    const bool is_usual = may_share && h->context >= LONG_CONTEXT;
    enum lmq_status status = LMQ_OK;

    h->index_eps = 1e-6; /* whatever the file says */
    if (may_share && lmq_gguf_has_key(r, types + 1))
        status = lmq_gguf_read_marks(r, types + 1, LMQ_LAYER_INDEX, true);
    else
        for (uint32_t i = 0; i < h->n_layers; i++)
            if (!is_usual || i < FIRST || (i + 1 - FIRST) % PERIOD == 0)
                h->layers[i] |= LMQ_LAYER_INDEX;
    if (status == LMQ_OK && h->n_layers > 0 &&
        !lmq_layer_is(h, 0, LMQ_LAYER_INDEX))
        lmq_hparams_refuse(h, "a layer 0 that shares what an earlier one "
                              "chooses");
    return status;
}

void
lmq_gguf_write_choosers(struct lmq_gguf_builder *builder,
                        const struct lmq_hparams *h)
{
    lmq_gguf_write_marks(builder, types, h, LMQ_LAYER_INDEX, true);
}

/* The context ends where it would no longer see everything. */
enum lmq_status
lmq_gguf_read_indexer(struct lmq_gguf_reader *r)
{
    uint64_t keys = r->family->gguf.keys;
    uint32_t n = 0, size = 1, n_behind = 0;

    if ((keys & LMQ_GGUF_INDEXER) == 0)
        return LMQ_OK;
    enum lmq_status status =
        lmq_gguf_read_count(r, "attention.indexer.block_size", &size);
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, chosen + 1, &n);
    if (status == LMQ_OK && n == 0)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is missing or 0", r->key);
    if (status != LMQ_OK)
        return status;
    if (size == 0 || n > LMQ_MAX_CONTEXT / size)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is %u, of %u each", r->key, n, size);
    n *= size;
    if ((keys & LMQ_GGUF_GROUPS) != 0)
        status = read_groups(r, n, &n_behind);
    n += n_behind;
    r->source->n_chosen = n;
    if (status == LMQ_OK && (keys & LMQ_GGUF_CHOICES) != 0)
        return mark_choosers(r);
    r->h->context_end = n;
    if (r->h->context > n)
        r->h->context = n;
    return status;
}

uint32_t
lmq_gguf_groups_end(uint32_t end)
{
    uint32_t n = end / LMQ_GGUF_GROUP;

    return (n == 0 ? 1 : n) * LMQ_GGUF_GROUP + LMQ_GGUF_GROUP - 1;
}

uint32_t
lmq_gguf_choosing_layer(const struct lmq_hparams *h)
{
    uint32_t i = 0;

    while (i < h->n_layers && !lmq_layer_has_keys(h, i))
        i++;
    return i;
}

void
lmq_gguf_write_groups(struct lmq_gguf_builder *builder,
                      const struct lmq_hparams *h)
{
    uint32_t first = lmq_gguf_choosing_layer(h);

    lmq_gguf_put_u32(builder, ".attention.indexer.head_count", 1);
    lmq_gguf_put_u32(builder, ".attention.indexer.key_length",
                     LMQ_GGUF_INDEX_DIM);
    lmq_gguf_put_u32(builder, chosen,
                     h->context_end - (LMQ_GGUF_GROUP - 1));
    lmq_gguf_put_u32(builder, group, LMQ_GGUF_GROUP);
    lmq_gguf_put_bool(builder, tail, true);
    lmq_gguf_put_array(builder, ".attention.indexer.types", LMQ_GGUF_BOOL,
                       h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_bool(builder, i <= first);
}

/* ---- GLM 5 next ---- */

void
lmq_gguf_begin_glm5next(struct lmq_hparams *h)
{
    lmq_gguf_begin_sigmoid(h);
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_gain = 2;
    h->has_stream_mean = true;
}

/* Columns are made to sum to 1 once, whatever is said. */
void
lmq_gguf_finish_glm5next(struct lmq_hparams *h,
                         const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    if (h->stream_rounds == 0)
        h->stream_rounds = 1;
    if (h->n_streams < 2) {
        lmq_hparams_refuse(h, "'hyper_connection.count' %u", h->n_streams);
        h->n_streams = 0;
    }
    if (h->rotary_dim > 0)
        lmq_hparams_refuse(h, "'rope.dimension_count' %u", h->rotary_dim);
}

/* ---- DeepSeek V4 ---- */

/* How many positions a pool stands for says how pools are made. */
#define OVERLAP 4
#define POOL 128

static const char ratios[] = ".attention.compress_ratios";
static const char tables[] = ".hash_layer_count";

void
lmq_gguf_begin_deepseek4(struct lmq_hparams *h)
{
    h->qk_norm = LMQ_QK_NORM_BARE_QUERIES;
    h->has_turned_values = h->has_sinks = true;
    h->overlap_size = OVERLAP;
    h->pool_size = POOL;
    h->rope_local_theta = 10000;
    h->router = LMQ_ROUTER_ROOT_SOFTPLUS;
    h->stream_kind = LMQ_STREAMS_HYPER;
    h->stream_gain = 2;
}

static enum lmq_status
read_ratios(struct lmq_gguf_reader *r)
{
    const struct lmq_gguf_value *list =
        lmq_gguf_find(r->meta, lmq_gguf_key_of(r, ratios + 1));
    struct lmq_hparams *h = r->h;

    if (list == NULL || list->type != LMQ_GGUF_ARRAY ||
        (list->item_type != LMQ_GGUF_I32 && list->item_type != LMQ_GGUF_U32) ||
        list->count < h->n_layers)
        return lmq_fail(r->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is no number for each of %u layers",
                        r->key, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        int64_t n = lmq_gguf_item_int(list, i);
        if (n == OVERLAP)
            h->layers[i] |= LMQ_LAYER_OVERLAP;
        else if (n == POOL)
            h->layers[i] |= LMQ_LAYER_POOL;
        else if (n != 0)
            lmq_hparams_refuse(h, "a %lld in '%s'", (long long)n, ratios + 1);
    }
    return LMQ_OK;
}

/* Tables choose the experts of the first layers. */
enum lmq_status
lmq_gguf_read_pools(struct lmq_gguf_reader *r)
{
    uint32_t n_tables = 0;

    if ((r->family->gguf.keys & LMQ_GGUF_POOLS) == 0)
        return LMQ_OK;
    enum lmq_status status = read_ratios(r);
    if (status == LMQ_OK)
        status = lmq_gguf_read_count(r, tables + 1, &n_tables);
    for (uint32_t i = 0; i < n_tables && i < r->h->n_layers; i++)
        r->h->layers[i] |= LMQ_LAYER_TOKENS;
    return status;
}

void
lmq_gguf_write_pools(struct lmq_gguf_builder *builder,
                     const struct lmq_hparams *h)
{
    uint32_t n_tables = 0;

    lmq_gguf_put_array(builder, ratios, LMQ_GGUF_I32, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        lmq_gguf_add_u32(builder, lmq_layer_is(h, i, LMQ_LAYER_OVERLAP)
                                      ? h->overlap_size
                                  : lmq_layer_is(h, i, LMQ_LAYER_POOL)
                                      ? h->pool_size
                                      : 0);
    while (n_tables < h->n_layers &&
           lmq_layer_is(h, n_tables, LMQ_LAYER_TOKENS))
        n_tables++;
    lmq_gguf_put_u32(builder, tables, n_tables);
}

/* What a folder must not say of it either. */
void
lmq_gguf_finish_deepseek4(struct lmq_hparams *h,
                          const struct lmq_gguf_evidence *evidence)
{
    (void)evidence;
    h->hidden_dim = h->expert_dim;
    h->router_corrects = true;
    if (h->n_streams < 2 || h->stream_rounds == 0)
        lmq_hparams_refuse(h, "'hyper_connection.count' %u with "
                              "'sinkhorn_iterations' %u",
                           h->n_streams, h->stream_rounds);
    if (h->n_kv_heads != 1)
        lmq_hparams_refuse(h, "'attention.head_count_kv' %u", h->n_kv_heads);
    if (!(h->glu_limit > 0))
        lmq_hparams_refuse(h, "'swiglu_clamp_exp' %g", h->glu_limit);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (lmq_layer_is(h, i, LMQ_LAYER_OVERLAP) && h->index_topk == 0)
            lmq_hparams_refuse(h, "'%s' 0", chosen + 1);
    if (h->n_out_groups == 0 || h->n_heads % h->n_out_groups != 0)
        lmq_hparams_refuse(h, "'attention.output_group_count' %u for %u heads",
                           h->n_out_groups, h->n_heads);
}
