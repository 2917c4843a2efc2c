/*
 * gated.c - streams of which blocks read a sum that has a gate for each number.
 *
 * With S streams s_j (n, dim), one behind the other (n, S, dim):
 *   m_j = norm(s_j)
 *   gate = sigmoid(W_up silu(W_down m / S))                  (n, S, dim)
 *   x = mean of gate_j * m_j                                 (n, dim)
 *   write = gain * sigmoid(W_write m / S) + floor            (n, S)
 *
 * What a block gives is added to each stream as write says: streams.c.
 */
#include "config.h"

#include "runtime/stream/gated.h"

#include <string.h>

#include "runtime/layer/norm.h"
#include "runtime/layer/streams.h"
#include "runtime/product.h"

/* m_j = norm(s_j) of token t. */
static void
norm_streams(const struct lmq_member *member, const struct lmq_gain *gain,
             size_t t)
{
    size_t dim = member->h->dim, n_streams = member->h->n_streams;
    float *m = member->work->gated_xn + t * n_streams * dim;
    float *streams[LMQ_MAX_STREAMS];

    lmq_streams_find(member, t, streams);
    for (size_t j = 0; j < n_streams; j++) {
        struct lmq_gain own = lmq_gain_from(gain, j * dim);
        lmq_norm(member->h, &own, streams[j], dim, m + j * dim);
    }
}

/* write (S) of token t, behind what is read (lmq_hyper_write()). */
static void
ask_writes(const struct lmq_member *member, const float *rows, size_t t)
{
    const struct lmq_hparams *h = member->h;
    size_t n = h->n_streams, width = n * h->dim;
    const float *m = member->work->gated_xn + t * width;
    float *write = member->work->hyper + t * lmq_hyper_mixes(h) + n;

    for (size_t j = 0; j < n; j++)
        write[j] = member->kernels->dot(rows + j * width, m, width) / (float)n;
    member->kernels->sigmoid(write, n);
    for (size_t j = 0; j < n; j++)
        write[j] =
            (float)h->stream_gain * write[j] + (float)h->stream_floor;
}

/* x (dim) = the mean of sigmoid(gate_j) m_j of token t. */
static void
mean_of(const struct lmq_member *member, size_t t, float *x)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim, n = member->h->n_streams;
    float *m = member->work->gated_xn + t * n * dim;
    float *gates = member->work->gated_gates + t * n * dim;

    kernels->sigmoid(gates, n * dim);
    kernels->mul(m, gates, n * dim);
    memcpy(x, m, dim * sizeof(*x));
    for (size_t j = 1; j < n; j++)
        kernels->add(x, m + j * dim, dim);
    kernels->scale(x, dim, 1 / (float)n);
}

void
lmq_gated_read(const struct lmq_member *member,
               const struct lmq_gated *gated, const struct lmq_gain *gain,
               float *x)
{
    const struct lmq_kernels *kernels = member->kernels;
    struct lmq_work *work = member->work;
    size_t dim = member->h->dim, n = member->h->n_streams, from, to;
    size_t rank = gated->down.n_rows;
    struct lmq_operand m = lmq_operand_of(member, work->gated_xn, n * dim);
    struct lmq_operand latents = /* (n, stream_rank) */
        lmq_operand_of(member, work->gated_latents, rank);

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        norm_streams(member, gain, t);
        if (gated->write != NULL)
            ask_writes(member, gated->write, t);
    }
    lmq_barrier(member); /* a row of W_down reads all of m */
    lmq_multiply(member, &gated->down, &m, work->gated_latents);
    lmq_barrier(member); /* a token's latents are rows of many */
    kernels->scale(work->gated_latents + from * rank, (to - from) * rank,
                   1 / (float)n);
    kernels->silu(work->gated_latents + from * rank, (to - from) * rank);
    lmq_barrier(member); /* a row of W_up reads all latents */
    lmq_multiply(member, &gated->up, &latents, work->gated_gates);
    lmq_barrier(member); /* a token's gates are rows of many */
    for (size_t t = from; t < to; t++)
        mean_of(member, t, x + t * dim);
}
