/*
 * inputs.c - embeddings for each layer.
 *
 * Once for all layers (L), each of D numbers:
 *   rows = sqrt(D) * row of the token                        (n, L, D)
 *   inputs = (norm(W x / sqrt(dim)) + rows) / sqrt(2)        (n, L, D)
 *
 * At the end of a layer:
 *   x += norm(W_proj (act(W_gate x) * its input))            (n, dim)
 *
 * With several streams it is a scaled x that W_gate is multiplied with, and all
 * but x that the result is added to.
 */
#include "config.h"

#include "runtime/layer/inputs.h"

#include <math.h>

#include "runtime/layer/feed.h"
#include "runtime/layer/norm.h"
#include "runtime/layer/streams.h"
#include "runtime/product.h"

/* ---- For all layers ---- */

/* inputs = (norm(projected / sqrt(dim)) + rows) / sqrt(2), of one token. */
static void
mix(const struct lmq_member *member, const float *rows, float *projected,
    float *inputs)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_gain *gain = &member->model->inputs_norm;
    size_t each = member->h->layer_input_dim;
    size_t width = each * member->h->n_layers;

    kernels->scale(projected, width, 1 / sqrtf((float)member->h->dim));
    for (size_t at = 0; at < width; at += each)
        lmq_norm(member->h, gain, projected + at, each, inputs + at);
    kernels->axpy(inputs, rows, width, sqrtf((float)each));
    kernels->scale(inputs, width, sqrtf(0.5f));
}

void
lmq_inputs_make(const struct lmq_member *member, const int32_t *tokens,
                const float *x, float *inputs)
{
    const struct lmq_model *model = member->model;
    size_t width = model->inputs.n_cols, from, to;
    float *projected = member->work->input_products; /* (n, L, D) */
    struct lmq_operand operand = lmq_operand_of(member, x, member->h->dim);

    lmq_multiply(member, &model->inputs_proj, &operand, projected);
    lmq_barrier(member); /* tokens are cut otherwise than products */
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *rows = member->work->input_rows + t * width; /* (L, D) */
        size_t row = (size_t)tokens[t] < model->inputs.n_rows
                         ? (size_t)tokens[t]
                         : 0;
        lmq_matrix_row(&model->inputs, row, rows);
        mix(member, rows, projected + t * width, inputs + t * width);
    }
}

/* ---- In a layer ---- */

void
lmq_inputs_add(const struct lmq_member *member)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    struct lmq_work *work = member->work;
    size_t dim = member->h->dim, each = member->h->layer_input_dim, from, to;
    size_t width = each * member->h->n_layers;
    struct lmq_operand x = /* (n, dim) */
        lmq_operand_of(member, lmq_streams_face(member), dim);
    struct lmq_operand hidden = /* (n, each) */
        lmq_operand_of(member, work->gate, each);

    lmq_multiply(member, &feed->input_gate, &x, work->gate); /* (n, each) */
    lmq_barrier(member); /* pieces are cut otherwise than products */
    lmq_member_share(member, member->n * lmq_row_pieces(each), &from, &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, each);
        float *gate = work->gate + piece.row * each + piece.column;
        lmq_activate(member, gate, piece.size); /* gate = act(gate) */
        member->kernels->mul(gate,
                             work->inputs + piece.row * width +
                                 member->index * each + piece.column,
                             piece.size); /* gate *= input */
    }
    lmq_barrier(member); /* a row of W_proj reads all of gate */
    lmq_multiply(member, &feed->input_proj, &hidden, work->out); /* (n, dim) */
    lmq_barrier(member); /* its norm reads whole rows of out */
    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *out = work->out + t * dim;
        lmq_norm(member->h, &feed->input_norm, out, dim, out);
        if (member->h->n_streams > 0)
            lmq_streams_add(member, t, out); /* streams += norm(out) */
        else
            member->kernels->add(work->x + t * dim, out, dim); /* x += ... */
    }
}
