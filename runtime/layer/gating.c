/*
 * gating.c - sigmoids and the like that numbers of a layer are multiplied by.
 *
 *   heads *= open(W_gate xn)                  (n, n_heads * value_dim)
 *   xn *= sigmoid(W_b silu(W_a xn))           (n, dim)
 */
#include "config.h"

#include "runtime/layer/gating.h"

#include "runtime/product.h"

/* ---- Of heads ---- */

/* gate = sigmoid(gate) or softplus(gate), what heads are multiplied by. */
static void
open_gate(const struct lmq_member *member, float *gate, size_t n)
{
    if (member->h->has_softplus_gate)
        member->kernels->softplus(gate, n);
    else
        member->kernels->sigmoid(gate, n);
}

/* heads *= open(gate + bias), (n, n_heads * value_dim). */
static void
gate_numbers(const struct lmq_member *member, const struct lmq_matrix *w_gate)
{
    size_t width = w_gate->n_rows, from, to;

    lmq_member_share(member, member->n * lmq_row_pieces(width), &from, &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, width);
        size_t at = piece.row * width + piece.column;
        float *gate = member->work->attn_gate + at;
        if (w_gate->bias != NULL)
            member->kernels->add(gate, w_gate->bias + piece.column,
                                 piece.size);
        open_gate(member, gate, piece.size);
        member->kernels->mul(member->work->attention + at, gate, piece.size);
    }
}

/* heads *= open(gate + bias), (n, n_heads): one number for all of a head. */
static void
gate_whole_heads(const struct lmq_member *member,
                 const struct lmq_matrix *w_gate)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t n_heads = w_gate->n_rows, from, to;
    size_t dim = lmq_layer_value_dim(member->h, member->index);

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *gate = member->work->attn_gate + t * n_heads;
        if (w_gate->bias != NULL)
            kernels->add(gate, w_gate->bias, n_heads);
        open_gate(member, gate, n_heads);
        for (size_t i = 0; i < n_heads; i++)
            kernels->scale(member->work->attention + (t * n_heads + i) * dim,
                           dim, gate[i]);
    }
}

void
lmq_gate_heads(const struct lmq_member *member, const struct lmq_matrix *w_gate)
{
    if (member->h->has_head_gate)
        gate_whole_heads(member, w_gate);
    else
        gate_numbers(member, w_gate);
}

/* ---- Of a block's input ---- */

static void
activate_latents(const struct lmq_member *member, size_t rank)
{
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    member->kernels->silu(member->work->norm_latents + from * rank,
                          (to - from) * rank);
}

void
lmq_gate_input(const struct lmq_member *member,
               const struct lmq_norm_gate *gate, float *u)
{
    const struct lmq_kernels *kernels = member->kernels;
    struct lmq_work *work = member->work;
    size_t dim = member->h->dim, rank = gate->a.n_rows, from, to;
    struct lmq_operand input = lmq_operand_of(member, u, dim);
    struct lmq_operand latents = /* (n, norm_gate_rank) */
        lmq_operand_of(member, work->norm_latents, rank);

    lmq_multiply(member, &gate->a, &input, work->norm_latents);
    lmq_barrier(member); /* a token's latents are rows of many */
    activate_latents(member, rank);
    lmq_barrier(member); /* a row of W_b reads all latents */
    lmq_multiply(member, &gate->b, &latents, work->norm_gate);
    lmq_barrier(member); /* pieces are cut otherwise than products */
    lmq_member_share(member, member->n * lmq_row_pieces(dim), &from, &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, dim);
        size_t at = piece.row * dim + piece.column;
        kernels->sigmoid(work->norm_gate + at, piece.size);
        kernels->mul(u + at, work->norm_gate + at, piece.size);
    }
}
