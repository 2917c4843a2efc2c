/*
 * convolve.c - sums over the last few tokens, each channel for itself.
 *
 *   y = sum of weight[j] * (x of width - 1 - j tokens ago)    (n, channels)
 *
 * A layer keeps what the last width - 1 tokens were: the tail. Channels are cut
 * into pieces, and a piece is one member's for all tokens.
 */
#include "config.h"

#include "runtime/layer/convolve.h"

#include <string.h>

#include "base/size.h"
#include "runtime/model.h"

/* Channels of one of the buffers that it goes over. */
struct channels {
    float *x;     /* (n, width): a sequence's first token's first channel */
    size_t width; /* of a row there */
    size_t first; /* number among all channels */
    size_t n;
};

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
 * this order, and the bias at last; each product is rounded. */
static void
convolve_token(const struct lmq_member *member, const struct channels *c,
               const float *tail, size_t t, float *out)
{
    const struct lmq_gain *conv = &member->layer->attention.delta_conv;
    size_t width = member->h->conv_width;
    const float *weight = conv->weight + c->first * width;

    memset(out, 0, c->n * sizeof(*out));
    for (size_t j = 0; j < width; j++) {
        const float *x = earlier(member, c, tail, t, width - 1 - j);
        for (size_t i = 0; i < c->n; i++)
            out[i] += weight[i * width + j] * x[i];
    }
    if (conv->bias != NULL)
        member->kernels->add(out, conv->bias + c->first, c->n);
}

/* x = conv(x) + bias, in place: from the last token to the first, as each looks
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
        memcpy(c->x + t * c->width, out, c->n * sizeof(*out));
    }
    for (size_t i = 0; i < n_kept; i++)
        memcpy(tail + i * stride + c->first, kept[i], c->n * sizeof(float));
}

/* ---- Queries, keys and values ---- */

/* Piece i of the channels; false behind the last. */
static bool
find_channels(const struct lmq_member *member, size_t i, struct channels *c)
{
    const struct lmq_work *work = member->work;
    size_t keys = lmq_delta_key_width(member->h);
    size_t values = lmq_delta_value_width(member->h);
    const struct part {
        float *x;
        size_t width;
    } q = {work->q, keys}, k = {work->k, keys}, v = {work->v, values};
    bool is_turned = lmq_is_state_space(member->h) || lmq_is_lru(member->h);
    const struct part parts[] = {is_turned ? v : q, k, is_turned ? q : v};
    bool is_alone = lmq_is_selective(member->h) || lmq_is_lru(member->h);
    size_t n_parts = is_alone ? 1 : 3, before = 0;

    for (size_t p = 0; p < n_parts; p++) {
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

void
lmq_convolve_heads(const struct lmq_member *member)
{
    size_t length = lmq_member_length(member);
    struct channels c;

    for (size_t i = member->number; find_channels(member, i, &c);
         i += member->n_members)
        for (size_t j = 0; j < member->work->n_sequences; j++) {
            convolve(member, &c, member->kv[j].tail);
            for (size_t t = 0; t < length && !lmq_is_lru(member->h); t++)
                member->kernels->silu(c.x + t * c.width, c.n);
            c.x += length * c.width;
        }
}

/* ---- Products ---- */

void
lmq_convolve_products(const struct lmq_member *member)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_work *work = member->work;
    size_t width = lmq_delta_value_width(member->h);
    size_t length = lmq_member_length(member);

    for (size_t i = member->number; i < lmq_row_pieces(width);
         i += member->n_members) {
        struct lmq_row_piece piece = lmq_row_piece_at(i, width);
        struct channels c = {work->v + piece.column, width, piece.column,
                             piece.size};
        for (size_t j = 0; j < work->n_sequences; j++) {
            size_t at = j * length * width + piece.column;
            for (size_t t = 0; t < length; t++) /* v *= k */
                kernels->mul(c.x + t * width, work->k + at + t * width, c.n);
            convolve(member, &c, member->kv[j].tail); /* v = conv(v) */
            for (size_t t = 0; t < length; t++) {     /* heads = q * v */
                float *out = work->attention + at + t * width;
                memcpy(out, work->q + at + t * width, c.n * sizeof(*out));
                kernels->mul(out, c.x + t * width, c.n);
            }
            c.x += length * width;
        }
    }
}
