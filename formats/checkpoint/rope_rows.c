/*
 * rope_rows.c - the order of the rows that RoPE turns.
 */
#include "config.h"

#include "formats/checkpoint/rope_rows.h"

/* Heads of which the last dimensions turn. */
static struct lmq_rope_rows
last_of(uint32_t head_dim, uint32_t rotary)
{
    if (head_dim < rotary)
        return (struct lmq_rope_rows){0};
    return (struct lmq_rope_rows){.head_dim = head_dim,
                                  .first = head_dim - rotary,
                                  .n = rotary};
}

/* And those of which the first do. */
static struct lmq_rope_rows
first_of(uint32_t head_dim, uint32_t rotary)
{
    if (head_dim < rotary)
        return (struct lmq_rope_rows){0};
    return (struct lmq_rope_rows){.head_dim = head_dim, .n = rotary};
}

struct lmq_rope_rows
lmq_rope_columns(const struct lmq_hparams *h, const struct lmq_place *place)
{
    uint32_t rotary = lmq_hparams_rotary_dim(h);

    if (!h->has_turned_values || rotary == 0)
        return (struct lmq_rope_rows){0};
    switch ((int)place->role) {
    case LMQ_ROLE_ATTN_OUT_A:
    case LMQ_ROLE_POOL_BIAS:
        return last_of(h->head_dim, rotary);
    case LMQ_ROLE_ATTN_OUT:
        return h->n_out_groups == 0 && place->part == LMQ_PART_WEIGHT
                   ? last_of(h->head_dim, rotary)
                   : (struct lmq_rope_rows){0};
    case LMQ_ROLE_INDEX_BIAS:
        return last_of(h->index_dim, rotary);
    default:
        return (struct lmq_rope_rows){0};
    }
}

struct lmq_rope_rows
lmq_rope_rows(const struct lmq_hparams *h, const struct lmq_place *place)
{
    bool is_of_layer = place->layer >= 0 && place->layer < (int32_t)h->n_layers;
    size_t layer = is_of_layer ? (size_t)place->layer : 0;
    uint32_t rotary = lmq_layer_rotary_dim(h, layer);
    uint32_t head_dim = lmq_layer_head_dim(h, layer);
    bool is_last = h->kv_lora_rank > 0 || h->has_turned_values;

    if (is_of_layer && lmq_layer_only_recurs(h, layer))
        return (struct lmq_rope_rows){0};
    switch ((int)place->role) {
    case LMQ_ROLE_ATTN_Q:
    case LMQ_ROLE_ATTN_K:
    case LMQ_ROLE_ATTN_Q_B:
    case LMQ_ROLE_ATTN_Q_NORM:
    case LMQ_ROLE_ATTN_K_NORM:
        if (h->qk_norm == LMQ_QK_NORM_TURNING &&
            place->role == LMQ_ROLE_ATTN_K_NORM)
            return last_of(rotary, rotary);
        return (struct lmq_rope_rows){
            .head_dim = head_dim,
            .first = is_last ? head_dim - rotary : 0,
            .n = rotary};
    case LMQ_ROLE_POOL_KV:
    case LMQ_ROLE_POOL_GATE:
    case LMQ_ROLE_POOL_NORM:
        return last_of(head_dim, rotary);
    case LMQ_ROLE_INDEX_Q:
    case LMQ_ROLE_INDEX_K:
    case LMQ_ROLE_INDEX_K_NORM:
        return h->has_turned_values ? last_of(h->index_dim, rotary)
                                    : first_of(h->index_dim, rotary);
    case LMQ_ROLE_INDEX_KV:
    case LMQ_ROLE_INDEX_GATE:
    case LMQ_ROLE_INDEX_NORM:
        return last_of(h->index_dim, rotary);
    case LMQ_ROLE_ATTN_KV_A:
        return last_of(lmq_layer_latents(h, layer) + rotary, rotary);
    default:
        return (struct lmq_rope_rows){0};
    }
}

struct lmq_rope_rows
lmq_rope_index_rows(const struct lmq_hparams *h, const struct lmq_place *place,
                    bool has_halves, bool stands_last)
{
    struct lmq_rope_rows rows = lmq_rope_rows(h, place);

    if (has_halves && !stands_last)
        return (struct lmq_rope_rows){0};
    rows.has_halves = has_halves;
    rows.stands_last = stands_last;
    return rows;
}

/* The row's number among those that turn; false if it is none of them. */
static bool
find_row(const struct lmq_rope_rows *rows, uint64_t row, uint64_t *i)
{
    if (rows->n == 0)
        return false;
    uint64_t in_head = row % rows->head_dim;
    *i = in_head - rows->first;
    return in_head >= rows->first && *i < rows->n;
}

uint64_t
lmq_rope_row_to_halves(const struct lmq_rope_rows *rows, uint64_t row)
{
    uint64_t i;

    if (!find_row(rows, row, &i))
        return row;
    return row - i + i / 2 + i % 2 * (rows->n / 2);
}

uint64_t
lmq_rope_row_stored(const struct lmq_rope_rows *rows, uint64_t row)
{
    uint64_t i, half = rows->n / 2;
    uint64_t behind = rows->stands_last ? rows->head_dim - rows->n : 0;

    if (!find_row(rows, row, &i))
        return rows->stands_last ? row - rows->n : row;
    if (rows->has_halves)
        return row + behind;
    if (rows->turns_back)
        return i < half ? row + half : row - half;
    if (rows->to_pairs)
        return lmq_rope_row_to_halves(rows, row);
    return row + behind - i + (i < half ? 2 * i : 2 * (i - half) + 1);
}

uint64_t
lmq_rope_rows_in_line(const struct lmq_rope_rows *rows, uint64_t row)
{
    uint64_t i;

    if (rows->n == 0)
        return UINT64_MAX;
    if (find_row(rows, row, &i))
        return rows->has_halves ? rows->n - i : 1;
    uint64_t in_head = row % rows->head_dim;
    return (in_head < rows->first ? rows->first : rows->head_dim) - in_head;
}
