/*
 * fused.c - the tables of what is fused, and rows in another order.
 */
#include "config.h"

#include "formats/checkpoint/fused.h"

#include <string.h>

/* ---- What is fused ---- */

static size_t
give(struct lmq_fused_rows *parts, const struct lmq_fused_rows *table,
     size_t n)
{
    memcpy(parts, table, n * sizeof(*parts));
    return n;
}

/* Three arrangements: all queries, all keys, all values, one after the other
 * (Phi 3, GPT-2, GGUF), or for each group of heads its queries, its key and
 * its value (GPT-NeoX, Falcon, InternLM 2), or so for each of the four
 * machines that CodeGen was trained on, but values before keys. Our rows of
 * one kind then come in runs with a stride between them. */
static size_t
fused_qkv(const struct lmq_hparams *h, size_t layer, bool is_delta,
          enum lmq_qkv_order order, struct lmq_fused_rows *parts)
{
    uint64_t head = lmq_layer_head_dim(h, layer);
    uint64_t n_kv = lmq_layer_kv_heads(h, layer);
    uint64_t n_heads = lmq_layer_heads(h, layer);
    uint64_t q = n_heads * head, k = n_kv * head;
    uint64_t v = n_kv * lmq_layer_value_dim(h, layer);

    if (is_delta) {
        q = k = lmq_delta_key_width(h);
        v = lmq_delta_value_width(h);
    } else if (order != LMQ_QKV_ONE_BY_ONE) {
        bool by_head = order == LMQ_QKV_BY_HEAD;
        uint64_t n = by_head ? n_kv : 4, stride = (q + k + v) / n;
        const struct lmq_fused_rows runs[] = {
            {LMQ_ROLE_ATTN_Q, q, 0, q / n, stride},
            {LMQ_ROLE_ATTN_K, k, (by_head ? q : q + v) / n, k / n, stride},
            {LMQ_ROLE_ATTN_V, v, (by_head ? q + k : q) / n, v / n, stride},
        };
        return give(parts, runs, 3);
    }
    const struct lmq_fused_rows straight[] = {
        {LMQ_ROLE_ATTN_Q, q, 0, 0, 0},
        {LMQ_ROLE_ATTN_K, k, q, 0, 0},
        {LMQ_ROLE_ATTN_V, v, q + k, 0, 0},
    };
    return give(parts, straight, 3);
}

/* Of each head its query and then its gate; perhaps made of latents. */
static size_t
fused_q_gate(const struct lmq_hparams *h, size_t layer, enum lmq_role query,
             struct lmq_fused_rows *parts)
{
    uint64_t q = lmq_layer_head_dim(h, layer);
    uint64_t gate = lmq_layer_value_dim(h, layer);
    uint64_t n_heads = lmq_layer_heads(h, layer);
    const struct lmq_fused_rows table[] = {
        {query, n_heads * q, 0, q, q + gate},
        {LMQ_ROLE_ATTN_GATE, n_heads * gate, q, gate, q + gate},
    };

    return give(parts, table, 2);
}

/* A state space: gates, values, keys, queries, time steps. */
static size_t
fused_state_space(const struct lmq_hparams *h, struct lmq_fused_rows *parts)
{
    uint64_t v = lmq_delta_value_width(h), k = lmq_delta_key_width(h);
    const struct lmq_fused_rows table[] = {
        {LMQ_ROLE_ATTN_GATE, v, 0, 0, 0},
        {LMQ_ROLE_ATTN_V, v, v, 0, 0},
        {LMQ_ROLE_ATTN_K, k, 2 * v, 0, 0},
        {LMQ_ROLE_ATTN_Q, k, 2 * v + k, 0, 0},
        {LMQ_ROLE_DELTA_ALPHA, h->n_delta_value_heads, 2 * (v + k), 0, 0},
    };

    return give(parts, table, 5);
}

/* A selective one: values, gates; and of values time steps, keys, queries. */
static size_t
fused_selective(const struct lmq_hparams *h, enum lmq_role fused,
                struct lmq_fused_rows *parts)
{
    uint64_t v = lmq_delta_value_width(h), k = lmq_delta_key_width(h);
    const struct lmq_fused_rows of_input[] = {
        {LMQ_ROLE_ATTN_V, v, 0, 0, 0},
        {LMQ_ROLE_ATTN_GATE, v, v, 0, 0},
    };
    const struct lmq_fused_rows of_values[] = {
        {LMQ_ROLE_DELTA_ALPHA_A, h->step_rank, 0, 0, 0},
        {LMQ_ROLE_ATTN_K, k, h->step_rank, 0, 0},
        {LMQ_ROLE_ATTN_Q, k, h->step_rank + k, 0, 0},
    };

    return fused == LMQ_ROLE_DELTA_QKVZ ? give(parts, of_input, 2)
                                        : give(parts, of_values, 3);
}

/* A short convolution: keys, queries, values. */
static size_t
fused_convolution(const struct lmq_hparams *h, struct lmq_fused_rows *parts)
{
    uint64_t v = lmq_delta_value_width(h);
    const struct lmq_fused_rows table[] = {
        {LMQ_ROLE_ATTN_K, v, 0, 0, 0},
        {LMQ_ROLE_ATTN_Q, v, v, 0, 0},
        {LMQ_ROLE_ATTN_V, v, 2 * v, 0, 0},
    };

    return give(parts, table, 3);
}

/* The delta rule: of each key head its query, it, the values and the gates of
 * its value heads; likewise what they write and their time steps. */
static size_t
fused_delta(const struct lmq_hparams *h, enum lmq_role fused,
            struct lmq_fused_rows *parts)
{
    uint64_t n = h->n_delta_key_heads;
    uint64_t key = h->delta_key_dim, heads = h->n_delta_value_heads / n;
    uint64_t value = heads * h->delta_value_dim, stride = 2 * (key + value);
    const struct lmq_fused_rows qkvz[] = {
        {LMQ_ROLE_ATTN_Q, n * key, 0, key, stride},
        {LMQ_ROLE_ATTN_K, n * key, key, key, stride},
        {LMQ_ROLE_ATTN_V, n * value, 2 * key, value, stride},
        {LMQ_ROLE_ATTN_GATE, n * value, 2 * key + value, value, stride},
    };
    const struct lmq_fused_rows ba[] = {
        {LMQ_ROLE_DELTA_BETA, n * heads, 0, heads, 2 * heads},
        {LMQ_ROLE_DELTA_ALPHA, n * heads, heads, heads, 2 * heads},
    };

    return fused == LMQ_ROLE_DELTA_QKVZ ? give(parts, qkvz, 4)
                                        : give(parts, ba, 2);
}

/* Lightning attention: of each key head its queries, it and its values. */
static size_t
fused_lightning(const struct lmq_hparams *h, struct lmq_fused_rows *parts)
{
    uint64_t n = h->n_delta_key_heads, key = h->delta_key_dim;
    uint64_t v = lmq_delta_value_width(h), value = n == 0 ? 0 : v / n;
    uint64_t stride = 2 * key + value;
    const struct lmq_fused_rows table[] = {
        {LMQ_ROLE_ATTN_Q, n * key, 0, key, stride},
        {LMQ_ROLE_ATTN_K, n * key, key, key, stride},
        {LMQ_ROLE_ATTN_V, v, 2 * key, value, stride},
    };

    return give(parts, table, 3);
}

/* The convolution of a delta rule, which only files have apart. */
static size_t
fused_conv(const struct lmq_hparams *h, struct lmq_fused_rows *parts)
{
    uint64_t keys = lmq_delta_key_width(h);
    const struct lmq_fused_rows table[] = {
        {LMQ_ROLE_DELTA_CONV_Q, keys, 0, 0, 0},
        {LMQ_ROLE_DELTA_CONV_K, keys, keys, 0, 0},
        {LMQ_ROLE_DELTA_CONV_V, lmq_delta_value_width(h), 2 * keys, 0, 0},
    };

    return give(parts, table, 3);
}

static size_t
fused_recurrent(const struct lmq_hparams *h, enum lmq_role fused,
                struct lmq_fused_rows *parts)
{
    if (h->recurrence == LMQ_RECURRENCE_DELTA)
        return fused_delta(h, fused, parts);
    if (lmq_is_selective(h))
        return fused_selective(h, fused, parts);
    if (fused != LMQ_ROLE_DELTA_QKVZ || lmq_is_lightning(h) || lmq_is_lru(h))
        return 0;
    return lmq_is_state_space(h) ? fused_state_space(h, parts)
                                 : fused_convolution(h, parts);
}

size_t
lmq_fused_rows(const struct lmq_hparams *hparams, size_t layer,
               enum lmq_role fused, enum lmq_qkv_order order,
               struct lmq_fused_rows parts[LMQ_MOST_FUSED])
{
    bool is_delta = layer < hparams->n_layers &&
                    lmq_layer_is(hparams, layer, LMQ_LAYER_DELTA);
    bool is_alone = is_delta && lmq_layer_only_recurs(hparams, layer);
    size_t n = 0;

    switch ((int)fused) {
    case LMQ_ROLE_ATTN_QKV:
        return is_alone && lmq_is_lightning(hparams)
                   ? fused_lightning(hparams, parts)
                   : fused_qkv(hparams, layer, is_alone, order, parts);
    case LMQ_ROLE_DELTA_CONV:
        return is_delta && hparams->recurrence == LMQ_RECURRENCE_DELTA
                   ? fused_conv(hparams, parts)
                   : 0;
    case LMQ_ROLE_DELTA_QKVZ:
    case LMQ_ROLE_DELTA_BA:
        if (is_delta)
            n = fused_recurrent(hparams, fused, parts);
        for (size_t i = 0; i < n && !is_alone; i++)
            parts[i].role = lmq_role_beside(parts[i].role);
        return n;
    case LMQ_ROLE_ATTN_Q_B:
        if (!hparams->has_raw_latents)
            return 0;
        /* fall through */
    case LMQ_ROLE_ATTN_Q:
        return hparams->has_attn_gate && !hparams->has_head_gate && !is_alone
                   ? fused_q_gate(hparams, layer, fused, parts)
                   : 0;
    default:
        return 0;
    }
}

/* Whether the rows have `row`, and as which of their own. */
static bool
find_own(const struct lmq_fused_rows *rows, uint64_t row, uint64_t *own,
         uint64_t *n)
{
    if (row < rows->first)
        return false;
    row -= rows->first;
    if (rows->stride == 0) {
        *own = row;
        *n = row < rows->n ? rows->n - row : 0;
        return row < rows->n;
    }
    *own = row / rows->stride * rows->unit + row % rows->stride;
    *n = rows->unit - row % rows->stride;
    return row % rows->stride < rows->unit && *own < rows->n;
}

const struct lmq_tensor *
lmq_joined_find(const struct lmq_joined *joined, uint64_t row, uint64_t *own,
                uint64_t *n)
{
    size_t i = 0;

    while (i + 1 < joined->n && !find_own(&joined->rows[i], row, own, n))
        i++;
    if (i + 1 == joined->n)
        find_own(&joined->rows[i], row, own, n);
    return joined->parts[i];
}

/* ---- What stands in another order ---- */

bool
lmq_shuffle_fits(const struct lmq_shuffle *shuffle, uint64_t n)
{
    return shuffle->inner > 0 &&
           n == shuffle->first +
                    shuffle->size * shuffle->outer * shuffle->inner;
}

uint64_t
lmq_shuffle_row(const struct lmq_shuffle *shuffle, uint64_t row)
{
    if (shuffle->inner == 0 || row < shuffle->first)
        return row;
    row -= shuffle->first;
    uint64_t unit = row / shuffle->size;
    uint64_t to = unit % shuffle->inner * shuffle->outer +
                  unit / shuffle->inner;
    return shuffle->first + to * shuffle->size + row % shuffle->size;
}

uint64_t
lmq_shuffle_in_line(const struct lmq_shuffle *shuffle, uint64_t row)
{
    if (shuffle->inner == 0)
        return UINT64_MAX;
    return row < shuffle->first
               ? shuffle->first - row
               : shuffle->size - (row - shuffle->first) % shuffle->size;
}

struct lmq_shuffle
lmq_shuffle_inverse(const struct lmq_shuffle *shuffle)
{
    return (struct lmq_shuffle){shuffle->first, shuffle->size, shuffle->inner,
                                shuffle->outer};
}

void
lmq_tiled_values(const struct lmq_hparams *hparams,
                 const struct lmq_place *place, struct lmq_shuffle *rows,
                 struct lmq_shuffle *columns)
{
    uint64_t n_keys = hparams->n_delta_key_heads;
    struct lmq_shuffle heads = {.size = hparams->delta_value_dim};

    *rows = *columns = (struct lmq_shuffle){0};
    if (hparams->recurrence != LMQ_RECURRENCE_DELTA || n_keys == 0 ||
        place->layer < 0 || place->layer >= (int32_t)hparams->n_layers ||
        !lmq_layer_only_recurs(hparams, (size_t)place->layer))
        return;
    heads.outer = n_keys;
    heads.inner = hparams->n_delta_value_heads / n_keys;
    if (heads.outer == 1 || heads.inner == 1)
        return;
    switch ((int)place->role) {
    case LMQ_ROLE_DELTA_ALPHA:
    case LMQ_ROLE_DELTA_BETA:
    case LMQ_ROLE_DELTA_DECAY:
        heads.size = 1;
        *rows = heads;
        break;
    case LMQ_ROLE_DELTA_CONV: /* queries and keys come first */
        heads.first = 2 * lmq_delta_key_width(hparams);
        *rows = heads;
        break;
    case LMQ_ROLE_ATTN_V:
    case LMQ_ROLE_ATTN_GATE:
        *rows = heads;
        break;
    case LMQ_ROLE_ATTN_OUT:
        *columns = heads;
        break;
    default:
        break;
    }
}
