/*
 * delta.c - the gated delta rule, as in Qwen 3 Next and Qwen 3.5.
 *
 *   q = W_q xn, k = W_k xn, v = W_v xn      (n, key or value heads, dim)
 *   z = W_gate xn, a = W_alpha xn, b = W_beta xn
 *   q, k, v = silu(conv(q, k, v))           each channel over some tokens
 *   q = q / |q| / sqrt(key dim), k = k / |k|
 *   and for each value head, token after token, of the state S (key dim,
 *   value dim), with decay = exp(-exp(A) softplus(a)), beta = sigmoid(b):
 *       S = decay S
 *       d = beta (v - k S)
 *       S = S + k d
 *       o = q S
 *   attention = rmsnorm(o) * silu(z)        (n, value heads, value dim)
 *
 * A token needs what the one before it left, so tokens go one after the other,
 * and heads are what is shared out: the sums of a token have one order, however
 * a sequence is cut. Their order is the rows' of S.
 */
#include "config.h"

#include "runtime/layer/delta.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/size.h"

/* What is added to the square of a length, so that none is 0. */
#define LENGTH_EPS 1e-6f

/* ---- The convolution ---- */

/* Channels of one of the three buffers that it goes over. */
struct channels {
    float *x;     /* (n, width): a sequence's first token's first channel */
    size_t width; /* of a row there */
    size_t first; /* number among all channels */
    size_t n;
};

/* Piece i of the channels; false behind the last. */
static bool
find_channels(const struct lmq_member *member, size_t i, struct channels *c)
{
    const struct lmq_work *work = member->work;
    size_t keys = lmq_delta_key_width(member->h);
    size_t values = lmq_delta_value_width(member->h);
    const struct {
        float *x;
        size_t width;
    } parts[] = {{work->q, keys}, {work->k, keys}, {work->v, values}};
    size_t before = 0;

    for (size_t p = 0; p < 3; p++) {
        size_t n_pieces = lmq_row_pieces(parts[p].width);
        if (i < n_pieces) {
            struct lmq_row_piece piece = lmq_row_piece_at(i, parts[p].width);
            *c = (struct channels){parts[p].x + piece.column, parts[p].width,
                                   before + piece.column, piece.size};
            return true;
        }
        i -= n_pieces;
        before += parts[p].width;
    }
    return false;
}

/* What the channels were `back` tokens before token t of the batch, or what is
 * kept of them. */
static const float *
earlier(const struct lmq_member *member, const struct channels *c,
        const float *tail, size_t t, size_t back)
{
    size_t n_kept = member->h->conv_width - 1;

    if (back <= t)
        return c->x + (t - back) * c->width;
    return tail +
           (n_kept + t - back) * lmq_delta_channels(member->h) + c->first;
}

/* out = the sum of weight[j] times what was there width - 1 - j tokens ago, in
 * this order; each product is rounded. */
static void
convolve_token(const struct lmq_member *member, const struct channels *c,
               const float *tail, size_t t, float *out)
{
    size_t width = member->h->conv_width;
    const float *weight =
        member->layer->attention.delta_conv + c->first * width;

    memset(out, 0, c->n * sizeof(*out));
    for (size_t j = 0; j < width; j++) {
        const float *x = earlier(member, c, tail, t, width - 1 - j);
        for (size_t i = 0; i < c->n; i++)
            out[i] += weight[i * width + j] * x[i];
    }
}

/* x = silu(conv(x)), in place: from the last token to the first, as each looks
 * at earlier ones. The last tokens are kept for the next batch. */
static void
convolve(const struct lmq_member *member, const struct channels *c,
         float *tail)
{
    size_t n = lmq_member_length(member), n_kept = member->h->conv_width - 1;
    size_t stride = lmq_delta_channels(member->h);
    float kept[LMQ_MAX_CONV][LMQ_ROW_PIECE], out[LMQ_ROW_PIECE];

    if (member->position == 0)
        for (size_t i = 0; i < n_kept; i++)
            memset(tail + i * stride + c->first, 0, c->n * sizeof(float));
    for (size_t i = 0; i < n_kept; i++)
        memcpy(kept[i], earlier(member, c, tail, n - 1, n_kept - 1 - i),
               c->n * sizeof(float));
    for (size_t t = n; t-- > 0;) {
        convolve_token(member, c, tail, t, out);
        member->kernels->silu(out, c->n);
        memcpy(c->x + t * c->width, out, c->n * sizeof(*out));
    }
    for (size_t i = 0; i < n_kept; i++)
        memcpy(tail + i * stride + c->first, kept[i], c->n * sizeof(float));
}

/* Piece after piece: a channel is one member's for all tokens. */
static void
convolve_all(const struct lmq_member *member)
{
    struct channels channels;

    for (size_t i = member->number; find_channels(member, i, &channels);
         i += member->n_members)
        for (size_t j = 0; j < member->work->n_sequences; j++) {
            convolve(member, &channels, member->kv[j].tail);
            channels.x += lmq_member_length(member) * channels.width;
        }
}

/* ---- Queries, keys, time steps ---- */

/* x *= scale / |x|. */
static void
set_length(const struct lmq_member *member, float *x, size_t n, float scale)
{
    float square = member->kernels->dot(x, x, n);

    member->kernels->scale(x, n, scale / sqrtf(square + LENGTH_EPS));
}

/* q = q / |q| / sqrt(key dim), k = k / |k|. */
static void
set_lengths(const struct lmq_member *member)
{
    size_t dim = member->h->delta_key_dim, from, to;
    float scale = 1 / sqrtf((float)dim);

    lmq_member_share(member, member->n * member->h->n_delta_key_heads, &from,
                     &to);
    for (size_t i = from; i < to; i++) {
        set_length(member, member->work->q + i * dim, dim, scale);
        set_length(member, member->work->k + i * dim, dim, 1);
    }
}

/* What a time step leaves of the state. */
static float
decay_of(double decay, double step)
{
    double rate = lmq_exp(decay), x = lmq_softplus(step);

    return x > 0 ? (float)lmq_exp(-rate * x) : 1;
}

/* a = exp(-exp(A) softplus(a + bias)), b = sigmoid(b): what a token leaves of
 * the state, and how much it writes. */
static void
set_steps(const struct lmq_member *member)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    size_t n_heads = member->h->n_delta_value_heads, from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++) {
        float *a = member->work->delta_alpha + t * n_heads;
        member->kernels->sigmoid(member->work->delta_beta + t * n_heads,
                                 n_heads);
        for (size_t i = 0; i < n_heads; i++) {
            float x = a[i] + part->delta_alpha.bias[i];
            float decay = part->delta_decay[i];
            if (isfinite(x) && isfinite(decay))
                a[i] = decay_of((double)decay, (double)x);
            else
                a[i] = NAN; /* which is noticed */
        }
    }
}

/* ---- The state ---- */

/* One token of one value head: o = q S, after S took it in. */
static void
step(const struct lmq_member *member, size_t head, size_t t,
     const struct lmq_rows *state, float *o)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_hparams *h = member->h;
    size_t keys = h->delta_key_dim, values = h->delta_value_dim;
    size_t i = t * h->n_delta_value_heads + head;
    size_t shared = h->n_delta_value_heads / h->n_delta_key_heads;
    size_t key_head = t * h->n_delta_key_heads + head / shared;
    const float *q = member->work->q + key_head * keys; /* (key dim) */
    const float *k = member->work->k + key_head * keys; /* (key dim) */
    float *v = member->work->v + i * values;            /* (value dim) */
    float *s = lmq_member_kv(member, t)->state + head * keys * values;

    kernels->scale(s, keys * values, member->work->delta_alpha[i]);
    memset(o, 0, values * sizeof(*o));
    kernels->rows_mix(state, 0, keys, k, keys, 1, o, values); /* o = k S */
    kernels->axpy(v, o, values, -1);                          /* d = v - o */
    kernels->scale(v, values, member->work->delta_beta[i]);
    for (size_t row = 0; row < keys; row++)
        kernels->axpy(s + row * values, v, values, k[row]); /* S += k d */
    memset(o, 0, values * sizeof(*o));
    kernels->rows_mix(state, 0, keys, q, keys, 1, o, values); /* o = q S */
}

/* All tokens of one value head in one of the sequences. */
static void
walk_head(const struct lmq_member *member, size_t head, size_t sequence)
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_kernels *kernels = member->kernels;
    size_t n_heads = h->n_delta_value_heads, dim = h->delta_value_dim;
    size_t size = (size_t)h->delta_key_dim * dim;
    size_t length = lmq_member_length(member), first = sequence * length;
    float *s = member->kv[sequence].state + head * size;
    struct lmq_rows state = {.data = s,
                             .type = LMQ_ROW_F32,
                             .n_cols = dim,
                             .stride = dim * sizeof(float)};

    if (member->position == 0)
        memset(s, 0, size * sizeof(float));
    for (size_t t = first; t < first + length; t++) {
        float *o = member->work->attention + (t * n_heads + head) * dim;
        float *z = member->work->attn_gate + (t * n_heads + head) * dim;
        step(member, head, t, &state, o);
        kernels->rmsnorm(o, member->layer->attention.delta_norm.weight, dim,
                         (float)h->norm_eps, o);
        kernels->silu(z, dim);
        kernels->mul(o, z, dim);
    }
}

/* ---- All of it ---- */

void
lmq_delta_attention(const struct lmq_member *member, struct lmq_operand *xn)
{
    const struct lmq_attention_part *part = &member->layer->attention;
    const struct lmq_work *work = member->work;

    lmq_multiply(member, &part->q, xn, work->q);
    lmq_multiply(member, &part->k, xn, work->k);
    lmq_multiply(member, &part->v, xn, work->v);
    lmq_multiply(member, &part->delta_alpha, xn, work->delta_alpha);
    lmq_multiply(member, &part->delta_beta, xn, work->delta_beta);
    lmq_barrier(member); /* channels and tokens are cut otherwise */
    convolve_all(member); /* q, k, v = silu(conv(q, k, v)) */
    set_steps(member); /* a = decay, b = beta */
    lmq_barrier(member); /* a head's length reads all its channels */
    set_lengths(member); /* q /= |q|, k /= |k| */
    lmq_barrier(member); /* a value head reads that of its keys */
    for (size_t head = member->number; head < member->h->n_delta_value_heads;
         head += member->n_members)
        for (size_t i = 0; i < work->n_sequences; i++)
            walk_head(member, head, i);
}
