/*
 * member.c - positions, rows of the cache and pieces of rows, as a member of
 * the team needs them.
 */
#include "config.h"

#include "runtime/member.h"

#include <math.h>

#include "base/size.h"

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

    member->kernels->rope(x, angles->cosines + t * half,
                          angles->sines + t * half, half);
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

void
lmq_member_store(const struct lmq_member *member, unsigned char *to,
                 size_t head, size_t t, const float *x, size_t width)
{
    enum lmq_row_type type = member->kv->type;
    size_t row = head * member->work->context + member->position + t;
    unsigned char *at = to + row * lmq_row_bytes(type, width);

    member->kernels->row_narrow(x, width, type, at);
    if (type == LMQ_ROW_F16)
        show_overflow(x, width, at);
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
