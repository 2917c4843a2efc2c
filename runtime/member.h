/*
 * member.h - a thread of the team that goes through the forward pass, and the
 * products that they share.
 *
 * All of them go through the same lines; each takes its share of every step,
 * and a barrier stands where a step needs what others have done. Shares
 * decide who computes a number, never how.
 */
#ifndef LMQ_RUNTIME_MEMBER_H
#define LMQ_RUNTIME_MEMBER_H

#include "base/team.h"
#include "runtime/kv.h"
#include "runtime/work.h"

/* One thread, and what all of them work on: n tokens from `position` on, in
 * one layer. */
struct lmq_member {
    const struct lmq_kernels *kernels;
    const struct lmq_model *model;
    const struct lmq_hparams *h; /* the model's */
    const struct lmq_layer *layer;
    size_t index; /* of the layer */
    struct lmq_kv *kv;
    struct lmq_work *work;       /* shared by all members */
    struct lmq_thread_work *own; /* this member's */
    size_t n, position;          /* tokens of the batch */
    size_t number, n_members;    /* this member's number, from 0 */
};

/* One of n_members, its layer still to be filled in. */
struct lmq_member lmq_member_make(const struct lmq_model *model,
                                  struct lmq_work *work, size_t n,
                                  size_t position, size_t number,
                                  size_t n_members);

/* Goes on when all members have come here. */
static inline void
lmq_barrier(const struct lmq_member *member)
{
    lmq_team_barrier(member->work->team, member->number);
}

/* This thread's part of n things. */
static inline void
lmq_member_share(const struct lmq_member *member, size_t n, size_t *from,
                 size_t *to)
{
    *from = n * member->number / member->n_members;
    *to = n * (member->number + 1) / member->n_members;
}

/* The RoPE angles of the member's layer; NULL for a NoPE layer. */
const struct lmq_angles *lmq_member_angles(const struct lmq_member *member);

/* x = rope(x, position of token t), of its first rotary dimensions. */
void lmq_member_rope(const struct lmq_member *member,
                     const struct lmq_angles *angles, size_t t, float *x);

/* Puts a row into the cache, at the position of token t in one of its heads;
 * `to` are its keys or values. */
void lmq_member_store(const struct lmq_member *member, unsigned char *to,
                      size_t head, size_t t, const float *x, size_t width);

/* ---- Elementwise work ---- */

/* A piece of a row: enough numbers to be worth sharing out. */
struct lmq_piece {
    size_t row, column, size;
};

#define LMQ_PIECE ((size_t)512)

static inline size_t
lmq_pieces_per_row(size_t width)
{
    return (width + LMQ_PIECE - 1) / LMQ_PIECE;
}

/* Piece i of rows of that width. */
struct lmq_piece lmq_piece_at(size_t i, size_t width);

/* ---- Products ---- */

/* What is multiplied: n rows of n_cols numbers, `stride` apart. */
struct lmq_operand {
    const float *x;
    size_t n, n_cols, stride;
    unsigned char *packed; /* room for its quantized form */
    size_t packed_group;   /* of the form that is there; 0: none yet */
};

/* An operand of the member's tokens, its quantized form in work->packed. */
struct lmq_operand lmq_operand_of(const struct lmq_member *member,
                                  const float *x, size_t n_cols);

/* out (n, n_rows) = x times the matrix, without the bias. The operand is
 * quantized when the first int8 matrix asks for it, and shared by the others.
 * All members take part, and those who read `out` need a barrier. */
void lmq_multiply(const struct lmq_member *member,
                  const struct lmq_matrix *matrix,
                  struct lmq_operand *operand, float *out);

/* ---- Many products of different operands at a time ---- */

/* Whether the matrix wants its operand quantized. */
bool lmq_product_packs(const struct lmq_member *member,
                       const struct lmq_matrix *matrix);

/* Quantizes this thread's share of the operand for the matrix. `index` counts
 * the operands, so that short ones go to different threads. The product needs
 * a barrier in between. */
void lmq_operand_pack(const struct lmq_member *member,
                      const struct lmq_matrix *matrix,
                      const struct lmq_operand *operand, size_t index);

/* Products are shared out in tiles of 16 rows; this is what a whole product
 * of n rows of an operand costs. */
size_t lmq_product_cost(const struct lmq_matrix *matrix, size_t n);

/* A member's share [from, to) of the total cost of several products. `at` is
 * the cost of those that it has gone past. */
struct lmq_share {
    size_t at, from, to;
};

struct lmq_share lmq_share_begin(const struct lmq_member *member, size_t total);

/* This thread's tiles of the next product. The rows of `out` are out_stride
 * apart; the operand is packed if the matrix wants it. */
void lmq_share_product(const struct lmq_member *member, struct lmq_share *share,
                       const struct lmq_matrix *matrix,
                       const struct lmq_operand *operand, float *out,
                       size_t out_stride);

#endif
