/*
 * feed.c - one feed-forward network.
 */
#include "config.h"

#include "runtime/feed.h"

static void
activate(const struct lmq_walker *walker, float *x, size_t n)
{
    const struct lmq_kernels *kernels = walker->kernels;
    void (*const activations[LMQ_ACTIVATION_COUNT])(float *x, size_t n) = {
        [LMQ_ACTIVATION_SILU] = kernels->silu,
        [LMQ_ACTIVATION_GELU] = kernels->gelu_erf,
        [LMQ_ACTIVATION_GELU_TANH] = kernels->gelu_tanh,
        [LMQ_ACTIVATION_RELU] = kernels->relu,
        [LMQ_ACTIVATION_SIGMOID] = kernels->sigmoid,
    };

    activations[walker->h->activation](x, n);
}

void
lmq_ffn_activate(const struct lmq_walker *walker, const struct lmq_ffn *ffn,
                 float *gate, float *up, size_t column, size_t size)
{
    const struct lmq_kernels *kernels = walker->kernels;

    if (ffn->up.bias != NULL)
        kernels->add(up, ffn->up.bias + column, size);
    if (!walker->h->is_gated) {
        activate(walker, up, size);
        return;
    }
    if (ffn->gate.bias != NULL)
        kernels->add(gate, ffn->gate.bias + column, size);
    activate(walker, gate, size);
    kernels->mul(gate, up, size);
}

float *
lmq_ffn_inside(const struct lmq_walker *walker)
{
    return walker->h->is_gated ? walker->work->gate : walker->work->up;
}

void
lmq_ffn(const struct lmq_walker *walker, const struct lmq_ffn *ffn,
        struct lmq_operand *x, float *out)
{
    struct lmq_work *work = walker->work;
    size_t width = ffn->up.n_rows, from, to;
    struct lmq_operand inside =
        lmq_operand_of(walker, lmq_ffn_inside(walker), width);

    if (walker->h->is_gated)
        lmq_multiply(walker, &ffn->gate, x, work->gate);
    lmq_multiply(walker, &ffn->up, x, work->up);
    lmq_barrier(walker);
    lmq_walker_share(walker, walker->n * lmq_pieces_per_row(width), &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        struct lmq_piece piece = lmq_piece_at(i, width);
        size_t at = piece.row * width + piece.column;
        lmq_ffn_activate(walker, ffn, work->gate + at, work->up + at,
                         piece.column, piece.size);
    }
    lmq_barrier(walker);
    lmq_multiply(walker, &ffn->down, &inside, out);
}
