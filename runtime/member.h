/*
 * member.h - a thread of the team that goes through the forward pass.
 *
 * All of them go through the same lines; each takes its share of every step,
 * and a barrier stands where a step reads what others wrote, or overwrites
 * what others still read. Shares decide who computes a number, never how.
 */
#ifndef LMQ_RUNTIME_MEMBER_H
#define LMQ_RUNTIME_MEMBER_H

#include "base/threads/team.h"
#include "runtime/kv.h"
#include "runtime/work.h"

/* One thread, and what all of them work on: n tokens in one layer, as many of
 * each sequence, from `position` on. */
struct lmq_member {
    const struct lmq_kernels *kernels;
    const struct lmq_model *model;
    const struct lmq_hparams *h; /* the model's */
    const struct lmq_layer *layer;
    size_t index; /* of the layer */
    bool is_fine; /* activations have 16 bits here, where 8 are asked for */
    struct lmq_kv *kv; /* (sequences) */
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

/* Tokens of one sequence in the batch. */
static inline size_t
lmq_member_length(const struct lmq_member *member)
{
    return member->n / member->work->n_sequences;
}

/* Token t's number among those of its sequence, and what that remembers. */
static inline size_t
lmq_member_step(const struct lmq_member *member, size_t t)
{
    return t % lmq_member_length(member);
}

static inline struct lmq_kv *
lmq_member_kv(const struct lmq_member *member, size_t t)
{
    return &member->kv[t / lmq_member_length(member)];
}

/* The RoPE angles of the member's layer; NULL for a NoPE layer. */
const struct lmq_angles *lmq_member_angles(const struct lmq_member *member);

/* x = rope(x, position of token t), of its first rotary dimensions. */
void lmq_member_rope(const struct lmq_member *member,
                     const struct lmq_angles *angles, size_t t, float *x);

/* Puts a row into the cache, at the position of token t in one of its heads;
 * x may be turned for that. */
void lmq_member_store_key(const struct lmq_member *member, size_t head,
                          size_t t, float *x);
void lmq_member_store_value(const struct lmq_member *member, size_t head,
                            size_t t, const float *x);

/* Keys and values of a layer's cache, of token t's sequence, as matrices: a row
 * for each position of the first head. */
struct lmq_rows lmq_member_keys(const struct lmq_member *member, size_t t);
struct lmq_rows lmq_member_values(const struct lmq_member *member, size_t t);

/* The same of pools, a row for each, and one more of them. */
struct lmq_rows lmq_member_pools(const struct lmq_member *member, size_t t);
void lmq_member_store_pool(const struct lmq_member *member, size_t t,
                           size_t pool, const float *x);

/* A key, or a query that meets it, as the cache has it: turned if that is Q8,
 * but for what is a value, too. */
void lmq_member_turn(const struct lmq_member *member, float *x);

/* ---- Elementwise work ---- */

/* A piece of a row: enough numbers to be worth sharing out. */
struct lmq_row_piece {
    size_t row, column, size;
};

#define LMQ_ROW_PIECE ((size_t)512)

static inline size_t
lmq_row_pieces(size_t width)
{
    return (width + LMQ_ROW_PIECE - 1) / LMQ_ROW_PIECE;
}

/* Piece i of rows of that width. */
struct lmq_row_piece lmq_row_piece_at(size_t i, size_t width);

#endif
