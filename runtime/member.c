/*
 * member.c - positions, rows of the cache and pieces of rows, as a member of
 * the team needs them.
 */
#include "config.h"

#include "runtime/member.h"

#include <math.h>

#include "base/size.h"
#include "quantize/rotate.h"

struct lmq_member
lmq_member_make(const struct lmq_model *model, struct lmq_work *work, size_t n,
                size_t position, size_t number, size_t n_members)
{
    return (struct lmq_member){
        .kernels = lmq_kernels(),
        .model = model,
        .h = &model->hparams,
        .work = work,
        .own = &work->threads[number],
        .n = n,
        .position = position,
        .number = number,
        .n_members = n_members,
    };
}

/* ---- Positions ---- */

const struct lmq_angles *
lmq_member_angles(const struct lmq_member *member)
{
    if (lmq_hparams_rotary_dim(member->h) == 0 ||
        lmq_layer_is(member->h, member->index, LMQ_LAYER_NOPE))
        return NULL;
    return &member->work->angles[lmq_layer_rope(member->h, member->index)];
}

void
lmq_member_rope(const struct lmq_member *member,
                const struct lmq_angles *angles, size_t t, float *x)
{
    size_t half = lmq_layer_rotary_dim(member->h, member->index) / 2;
    size_t at = lmq_member_step(member, t) * half;

    member->kernels->rope(x, angles->cosines + at, angles->sines + at, half);
}

/* From here on float16 has only infinity. A score of -infinity would look like
 * a position that is not attended to; NaN cannot be overlooked. */
#define F16_OVERFLOW 65520.0f

static void
show_overflow(const float *x, size_t n, unsigned char *row)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) < F16_OVERFLOW)) {
            row[2 * i] = 0x00;
            row[2 * i + 1] = 0x7e;
        }
}

static void
store_row(const struct lmq_member *member, const struct lmq_rows *rows,
          unsigned char *at, const float *x)
{
    member->kernels->row_narrow(x, rows->n_cols, rows->type, at);
    if (rows->type == LMQ_ROW_F16)
        show_overflow(x, rows->n_cols, at);
}

/* Puts x at the position of token t in a head. */
static void
store(const struct lmq_member *member, const struct lmq_rows *rows,
      unsigned char *to, size_t head, size_t t, const float *x)
{
    size_t row = head * member->work->context + member->position +
                 lmq_member_step(member, t);

    store_row(member, rows, to + row * rows->stride, x);
}

static struct lmq_rows
rows_of(const unsigned char *data, enum lmq_row_type type, size_t width)
{
    return (struct lmq_rows){.data = data,
                             .type = type,
                             .n_cols = width,
                             .stride = lmq_row_bytes(type, width)};
}

struct lmq_rows
lmq_member_keys(const struct lmq_member *member, size_t t)
{
    const struct lmq_kv *kv = lmq_member_kv(member, t);

    return rows_of(kv->keys, lmq_kv_keys(kv->type),
                   lmq_key_width(member->h, member->index));
}

struct lmq_rows
lmq_member_values(const struct lmq_member *member, size_t t)
{
    const struct lmq_kv *kv = lmq_member_kv(member, t);
    size_t width = lmq_value_width(member->h, member->index);

    if (!lmq_values_are_keys(member->h))
        return rows_of(kv->values, lmq_kv_values(kv->type), width);
    struct lmq_rows rows = lmq_member_keys(member, t);
    rows.n_cols = width; /* the first columns of keys */
    return rows;
}

void
lmq_member_turn(const struct lmq_member *member, float *x)
{
    size_t latents = lmq_layer_latents(member->h, member->index);

    if (member->h->has_turned_values)
        return;
    if (lmq_kv_keys(member->kv->type) == LMQ_ROW_Q8)
        lmq_rotate_all(x + latents,
                       lmq_key_width(member->h, member->index) - latents);
}

void
lmq_member_store_key(const struct lmq_member *member, size_t head, size_t t,
                     float *x)
{
    struct lmq_rows rows = lmq_member_keys(member, t);

    lmq_member_turn(member, x);
    store(member, &rows, lmq_member_kv(member, t)->keys, head, t, x);
}

void
lmq_member_store_value(const struct lmq_member *member, size_t head, size_t t,
                       const float *x)
{
    struct lmq_rows rows = lmq_member_values(member, t);

    store(member, &rows, lmq_member_kv(member, t)->values, head, t, x);
}

struct lmq_rows
lmq_member_pools(const struct lmq_member *member, size_t t)
{
    const struct lmq_kv *kv = lmq_member_kv(member, t);

    return rows_of(kv->pools, lmq_kv_keys(kv->type), member->h->head_dim);
}

void
lmq_member_store_pool(const struct lmq_member *member, size_t t, size_t pool,
                      const float *x)
{
    struct lmq_rows rows = lmq_member_pools(member, t);

    store_row(member, &rows,
              lmq_member_kv(member, t)->pools + pool * rows.stride, x);
}

/* ---- Elementwise work ---- */

struct lmq_row_piece
lmq_row_piece_at(size_t i, size_t width)
{
    size_t per_row = lmq_row_pieces(width);
    size_t column = i % per_row * LMQ_ROW_PIECE;

    return (struct lmq_row_piece){.row = i / per_row,
                              .column = column,
                              .size = lmq_size_min(LMQ_ROW_PIECE,
                                                   width - column)};
}
