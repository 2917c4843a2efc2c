/*
 * streams.c - several residual streams, and what goes past attention.
 *
 * Of the embedding x, for each stream j but the first:
 *   s_j = W_j x, as large as x                               (n, dim)
 *
 * Around a layer, with s_0 = x, m = tanh(W_router (norm(x) / dim)) and S
 * streams:
 *   s_j += sum over i of (W_predict m)_(jS + i) * s_i        before
 *   s_j += (1 + (W_correct m)_j) * (x - s_0)                 behind, where x is
 *                                                            what s_0 became
 * Before the head:
 *   x = mean of x and all W_j s_j, as large as x             (n, dim)
 *
 * With hyper-connections each s_j is x at first. Around a block, with
 * m = W_fn s / rms(s), s being all streams, times scale and plus base:
 *   read_j = sigmoid(m_j) + eps
 *   write_j = gain * sigmoid(m_(S+j)) + floor
 *   mix = rows and columns summing to 1, of softmax(m_(2S+jS ..))
 *   block's input: sum over j of read_j * s_j                before
 *   s_k = sum over j of mix_jk * s_j, or s_k, + write_k * what the block gives
 * Before the head:
 *   x = sum over j of read_j * s_j, or mean of s_j           (n, dim)
 *
 * Past attention, whose input is u:
 *   x = (x + u + norm(W_b W_a u)) / sqrt(2)                  (n, dim)
 */
#include "config.h"

#include "runtime/layer/streams.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "runtime/layer/norm.h"
#include "runtime/product.h"

/* A stream's mean square counts as no less. */
#define LEAST_SQUARE 1e-5f

/* Numbers of all streams that are worked on at a time. */
#define BLOCK ((size_t)256)

/* ---- Sizes ---- */

static float
mean_square(const struct lmq_member *member, const float *x)
{
    size_t dim = member->h->dim;

    return member->kernels->dot(x, x, dim) / (float)dim;
}

/* What y is multiplied by to be as large as x. */
static float
to_size_of(const struct lmq_member *member, const float *x, const float *y)
{
    float square = mean_square(member, y);

    if (square < LEAST_SQUARE)
        square = LEAST_SQUARE;
    return sqrtf(mean_square(member, x)) / sqrtf(square);
}

static float *
stream_at(const struct lmq_member *member, size_t t, size_t j)
{
    return member->work->streams + t * lmq_streams_width(member->h) +
           (j - 1) * member->h->dim;
}

/* ---- Before the first layer, and behind the last ---- */

/* All streams are x. */
static void
repeat(const struct lmq_member *member, const float *x, float *streams)
{
    size_t dim = member->h->dim, width = lmq_streams_width(member->h);
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        for (size_t at = 0; at < width; at += dim)
            memcpy(streams + t * width + at, x + t * dim, dim * sizeof(*x));
}

void
lmq_streams_spread(const struct lmq_member *member, const float *x,
                   float *streams)
{
    size_t dim = member->h->dim, width = lmq_streams_width(member->h);
    struct lmq_operand operand = lmq_operand_of(member, x, dim);
    size_t from, to;

    if (lmq_has_hyper_streams(member->h)) {
        repeat(member, x, streams);
        return;
    }
    lmq_member_share(member, member->n, &from, &to);
    for (size_t at = 0; at < width; at += dim) {
        float *products = member->work->out; /* (n, dim) */
        lmq_multiply(member, &member->model->streams_in[at / dim], &operand,
                     products);
        lmq_barrier(member); /* tokens are cut otherwise than products */
        for (size_t t = from; t < to; t++) {
            const float *y = products + t * dim;
            float *stream = streams + t * width + at;
            float scale = to_size_of(member, x + t * dim, y);
            memcpy(stream, y, dim * sizeof(*stream));
            member->kernels->scale(stream, dim, scale);
        }
        lmq_barrier(member); /* others overwrite the products */
    }
}

void
lmq_streams_gather(const struct lmq_member *member, float *xn)
{
    const struct lmq_work *work = member->work;
    size_t dim = member->h->dim, n_streams = member->h->n_streams, from, to;

    lmq_member_share(member, member->n, &from, &to);
    memcpy(xn + from * dim, work->x + from * dim,
           (to - from) * dim * sizeof(*xn));
    for (size_t j = 1; j < n_streams; j++) {
        struct lmq_operand stream =
            lmq_operand_of(member, stream_at(member, 0, j), dim);
        stream.stride = lmq_streams_width(member->h);
        lmq_multiply(member, &member->model->streams_out[j - 1], &stream,
                     work->out); /* (n, dim) */
        lmq_barrier(member); /* tokens are cut otherwise than products */
        for (size_t t = from; t < to; t++) {
            const float *y = work->out + t * dim;
            float scale = to_size_of(member, work->x + t * dim, y);
            member->kernels->axpy(xn + t * dim, y, dim, scale);
        }
        lmq_barrier(member); /* others overwrite the products */
    }
    member->kernels->scale(xn + from * dim, (to - from) * dim,
                           1 / (float)n_streams);
}

/* ---- Around a layer ---- */

/* m (n_streams) of x, which is token t's; norms it in work->out. */
static void
route(const struct lmq_member *member, size_t t, float *m)
{
    const struct lmq_feed_part *feed = &member->layer->feed;
    size_t dim = member->h->dim, n_streams = member->h->n_streams;
    float *xn = member->work->out + t * dim; /* (dim) */

    lmq_norm(member->h, &feed->stream_norm, member->work->x + t * dim, dim,
             xn);
    for (size_t j = 0; j < n_streams; j++)
        m[j] = member->kernels->dot(feed->stream_router + j * dim, xn, dim) /
               (float)dim;
    member->kernels->softcap(m, n_streams, 1); /* m = tanh(m) */
}

/* weights (n_rows, n_streams) m, in the order of the streams. */
static void
weigh(const float *weights, size_t n_rows, const float *m, size_t n_streams,
      float *out)
{
    for (size_t i = 0; i < n_rows; i++) {
        out[i] = 0;
        for (size_t j = 0; j < n_streams; j++)
            out[i] += weights[i * n_streams + j] * m[j];
    }
}

void
lmq_streams_predict(const struct lmq_member *member, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim, n_streams = member->h->n_streams;
    float m[LMQ_MAX_STREAMS], weights[LMQ_MAX_STREAMS * LMQ_MAX_STREAMS];
    float old[LMQ_MAX_STREAMS][BLOCK];
    float *streams[LMQ_MAX_STREAMS] = {member->work->x + t * dim};

    for (size_t j = 1; j < n_streams; j++)
        streams[j] = stream_at(member, t, j);
    route(member, t, m);
    weigh(member->layer->feed.stream_predict, n_streams * n_streams, m,
          n_streams, weights);
    for (size_t at = 0; at < dim; at += BLOCK) {
        size_t size = lmq_size_min(BLOCK, dim - at);
        for (size_t i = 0; i < n_streams; i++)
            memcpy(old[i], streams[i] + at, size * sizeof(float));
        for (size_t j = 0; j < n_streams; j++)
            for (size_t i = 0; i < n_streams; i++)
                kernels->axpy(streams[j] + at, old[i], size,
                              weights[j * n_streams + i]);
    }
    memcpy(member->work->predicted + t * dim, streams[0],
           dim * sizeof(float));
}

void
lmq_streams_correct(const struct lmq_member *member, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_feed_part *feed = &member->layer->feed;
    size_t dim = member->h->dim, n_streams = member->h->n_streams;
    const float *predicted = member->work->predicted + t * dim; /* (dim) */
    float *x = member->work->x + t * dim, *news = member->work->out + t * dim;
    float m[LMQ_MAX_STREAMS], weights[LMQ_MAX_STREAMS];

    route(member, t, m);
    weigh(feed->stream_correct, n_streams, m, n_streams, weights);
    memcpy(news, x, dim * sizeof(*x));
    kernels->axpy(news, predicted, dim, -1); /* news = x - predicted */
    memcpy(x, predicted, dim * sizeof(*x));
    for (size_t j = 0; j < n_streams; j++)
        kernels->axpy(j == 0 ? x : stream_at(member, t, j), news, dim,
                      1 + weights[j]);
    if (feed->stream_scale == NULL)
        return;
    memcpy(lmq_streams_face(member) + t * dim, x, dim * sizeof(*x));
    kernels->mul(lmq_streams_face(member) + t * dim, feed->stream_scale, dim);
}

float *
lmq_streams_face(const struct lmq_member *member)
{
    return member->h->n_streams > 0 ? member->work->xn : member->work->x;
}

void
lmq_streams_add(const struct lmq_member *member, size_t t, const float *y)
{
    for (size_t j = 1; j < member->h->n_streams; j++)
        member->kernels->add(stream_at(member, t, j), y, member->h->dim);
}

/* ---- Hyper-connections ---- */

void
lmq_streams_find(const struct lmq_member *member, size_t t,
                 float *streams[LMQ_MAX_STREAMS])
{
    streams[0] = member->work->x + t * member->h->dim;
    for (size_t j = 1; j < member->h->n_streams; j++)
        streams[j] = stream_at(member, t, j);
}

/* The first n_rows of fn times all streams as one vector of which the mean
 * square is 1: m (n_rows). */
static void
ask_streams(const struct lmq_member *member, const struct lmq_hyper *hyper,
            float *const streams[LMQ_MAX_STREAMS], size_t n_rows, float *m)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim, n_streams = member->h->n_streams;
    float square = 0;

    for (size_t j = 0; j < n_streams; j++)
        square += kernels->dot(streams[j], streams[j], dim);
    square /= (float)(n_streams * dim);
    float scale = 1 / sqrtf(square + (float)member->h->norm_eps);
    for (size_t i = 0; i < n_rows; i++) {
        const float *row = hyper->fn + i * n_streams * dim;
        m[i] = 0;
        for (size_t j = 0; j < n_streams; j++)
            m[i] += kernels->dot(row + j * dim, streams[j], dim);
        m[i] *= scale;
    }
}

/* Each row of a matrix (n, n), or each column, sums to 1. */
static void
even_out(double *mix, size_t n, size_t step, size_t next, double eps)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += mix[i * next + j * step];
        for (size_t j = 0; j < n; j++)
            mix[i * next + j * step] /= sum + eps;
    }
}

/* Of m (n, n): how much of stream j (row) stays in stream k. */
static void
balance(const struct lmq_member *member, float *m)
{
    const struct lmq_hparams *h = member->h;
    size_t n = h->n_streams;
    double mix[LMQ_MAX_STREAMS * LMQ_MAX_STREAMS];

    for (size_t j = 0; j < n; j++)
        member->kernels->softmax(m + j * n, n);
    for (size_t i = 0; i < n * n; i++)
        mix[i] = (double)m[i] + h->stream_eps;
    even_out(mix, n, n, 1, h->stream_eps); /* columns */
    for (uint32_t round = 1; round < h->stream_rounds; round++) {
        even_out(mix, n, 1, n, h->stream_eps); /* rows */
        even_out(mix, n, n, 1, h->stream_eps);
    }
    for (size_t i = 0; i < n * n; i++)
        m[i] = (float)mix[i];
}

/* m = m * scale + base, n numbers from `from` on, with one scale for them. */
static void
settle_on(const struct lmq_hyper *hyper, size_t kind, size_t from, size_t n,
          float *m)
{
    for (size_t i = from; i < from + n; i++)
        m[i] = m[i] * hyper->scale[kind] + hyper->base[i];
}

/* x (dim) = the sum of read_j times stream j. */
static void
read_streams(const struct lmq_member *member,
             float *const streams[LMQ_MAX_STREAMS], const float *read,
             float *x)
{
    size_t dim = member->h->dim, n_streams = member->h->n_streams;

    memset(x, 0, dim * sizeof(*x));
    for (size_t j = 0; j < n_streams; j++)
        member->kernels->axpy(x, streams[j], dim, read[j]);
}

void
lmq_hyper_read(const struct lmq_member *member, const struct lmq_hyper *hyper,
               size_t t, float *x)
{
    const struct lmq_hparams *h = member->h;
    size_t n = h->n_streams, n_mixes = lmq_hyper_mixes(h);
    float *m = member->work->hyper + t * n_mixes;
    float *streams[LMQ_MAX_STREAMS];

    lmq_streams_find(member, t, streams);
    ask_streams(member, hyper, streams, n_mixes, m);
    settle_on(hyper, 0, 0, n, m);
    settle_on(hyper, 1, n, n, m);
    member->kernels->sigmoid(m, 2 * n);
    for (size_t j = 0; j < n; j++) {
        m[j] += (float)h->stream_eps;
        m[n + j] =
            (float)h->stream_gain * m[n + j] + (float)h->stream_floor;
    }
    if (h->stream_rounds > 0) {
        settle_on(hyper, 2, 2 * n, n * n, m);
        balance(member, m + 2 * n);
    }
    read_streams(member, streams, m, x);
}

void
lmq_hyper_write(const struct lmq_member *member, size_t t, const float *y)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim, n = member->h->n_streams;
    const float *m = member->work->hyper + t * lmq_hyper_mixes(member->h);
    const float *write = m + n, *mix = m + 2 * n;
    float old[LMQ_MAX_STREAMS][BLOCK], *streams[LMQ_MAX_STREAMS];
    float scale = (float)member->h->residual_scale;

    lmq_streams_find(member, t, streams);
    for (size_t at = 0; member->h->stream_rounds > 0 && at < dim;
         at += BLOCK) {
        size_t size = lmq_size_min(BLOCK, dim - at);
        for (size_t j = 0; j < n; j++)
            memcpy(old[j], streams[j] + at, size * sizeof(float));
        for (size_t k = 0; k < n; k++) {
            memset(streams[k] + at, 0, size * sizeof(float));
            for (size_t j = 0; j < n; j++)
                kernels->axpy(streams[k] + at, old[j], size, mix[j * n + k]);
        }
    }
    for (size_t k = 0; k < n; k++)
        kernels->axpy(streams[k], y, dim, write[k] * scale);
}

void
lmq_hyper_gather(const struct lmq_member *member, size_t t, float *x)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_hyper *hyper = &member->model->hyper;
    float *streams[LMQ_MAX_STREAMS], read[LMQ_MAX_STREAMS];
    size_t n = h->n_streams;

    lmq_streams_find(member, t, streams);
    for (size_t j = 0; j < n; j++)
        read[j] = 1 / (float)n;
    if (!h->has_stream_mean) {
        ask_streams(member, hyper, streams, n, read);
        settle_on(hyper, 0, 0, n, read);
        member->kernels->sigmoid(read, n);
        for (size_t j = 0; j < n; j++)
            read[j] += (float)h->stream_eps;
    }
    read_streams(member, streams, read, x);
}

/* ---- Past attention ---- */

void
lmq_bypass_make(const struct lmq_member *member, const float *u)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    struct lmq_work *work = member->work;
    struct lmq_operand input = lmq_operand_of(member, u, member->h->dim);
    struct lmq_operand latents = /* (n, residual_rank) */
        lmq_operand_of(member, work->bypass_latents, part->bypass_a.n_rows);

    lmq_multiply(member, &part->bypass_a, &input, work->bypass_latents);
    lmq_barrier(member); /* a row of W_b reads all latents */
    lmq_multiply(member, &part->bypass_b, &latents, work->bypass);
}

void
lmq_bypass_add(const struct lmq_member *member, const float *u, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    size_t dim = member->h->dim;
    float *bypass = member->work->bypass + t * dim; /* (dim) */
    float *x = member->work->x + t * dim;           /* (dim) */

    lmq_norm(member->h, &member->layer->attention.bypass_norm, bypass, dim,
             bypass);
    kernels->add(bypass, u, dim);
    kernels->add(x, bypass, dim);
    kernels->scale(x, dim, sqrtf(0.5f));
}
