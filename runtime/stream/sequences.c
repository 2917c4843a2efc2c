/*
 * sequences.c - what streams are given of the last tokens.
 *
 * With e, the rows of a table that the tokens up to here name (grams.h of
 * formats/model), and S streams s_j:
 *   k_j = norm((W_key e)_j), q_j = norm(s_j)                 (n, S, dim)
 *   z_j = k_j q_j / sqrt(dim)                                (n, S)
 *   y_j = sigmoid(sign(z_j) sqrt(|z_j|)) * W_value e         (n, S, dim)
 *   c = norm of each y_j                                     (n, S, dim)
 *   s_j += y_j + silu(the sum over i of w_i * c of so many positions before)
 *
 * Of the last positions the layer remembers c, and the tokens.
 */
#include "config.h"

#include "runtime/stream/sequences.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "formats/grams/grams.h"
#include "runtime/layer/norm.h"
#include "runtime/layer/streams.h"
#include "runtime/product.h"

/* What is nearer to 0 counts as so far from it. */
#define LEAST_SCORE 1e-6f

/* ---- Which rows ---- */

/* The tokens up to number t, backwards; behind the beginning of the sequence or
 * the token that ends it, that one. */
static void
look_back(const struct lmq_member *member, size_t t,
          uint64_t tokens[LMQ_MAX_GRAM])
{
    const struct lmq_hparams *h = member->h;
    const struct lmq_kv *kv = lmq_member_kv(member, t);
    size_t step = lmq_member_step(member, t);
    bool has_ended = false;

    tokens[0] = (uint64_t)member->work->tokens[t];
    for (size_t i = 1; i < h->gram_size; i++) {
        size_t p = member->position + step; /* of token t */
        if (i > p)
            has_ended = true;
        else
            tokens[i] = (uint64_t)(i <= step
                                       ? member->work->tokens[t - i]
                                       : kv->gram_tokens[(p - i) %
                                                         h->gram_size]);
        has_ended = has_ended || tokens[i] == h->gram_stop;
        if (has_ended)
            tokens[i] = h->gram_stop;
    }
}

/* e (places, gram_dim) of token t. */
static void
gather_rows(const struct lmq_member *member, size_t t)
{
    const struct lmq_hparams *h = member->h;
    const uint64_t *factors = lmq_layer_gram_factors(h, member->index);
    const uint64_t *rows = lmq_layer_gram_rows(h, member->index);
    const struct lmq_matrix *table = &member->layer->attention.grams.table;
    float *e = member->work->gram_rows + t * lmq_gram_width(h);
    uint64_t tokens[LMQ_MAX_GRAM], mixed, first = 0;
    size_t place = 0;

    look_back(member, t, tokens);
    mixed = tokens[0] * factors[0];
    for (size_t length = 2; length <= h->gram_size; length++) {
        mixed ^= tokens[length - 1] * factors[length - 1];
        for (size_t i = 0; i < h->gram_heads; i++, place++) {
            uint64_t n = rows[place];
            lmq_matrix_row(table, (size_t)(first + mixed % n),
                           e + place * h->gram_dim);
            first += n;
        }
    }
}

/* ---- What they give ---- */

/* Of token t, y in place of k, and c. */
static void
weigh_streams(const struct lmq_member *member, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_grams *grams = &member->layer->attention.grams;
    size_t dim = member->h->dim, n = member->h->n_streams;
    float *k = member->work->gram_keys + t * n * dim;
    float *c = member->work->gram_conv + t * n * dim;
    const float *value = member->work->gram_values + t * dim;
    float *streams[LMQ_MAX_STREAMS];

    lmq_streams_find(member, t, streams);
    for (size_t j = 0; j < n; j++, k += dim, c += dim) {
        struct lmq_gain key = lmq_gain_from(&grams->key_norm, j * dim);
        struct lmq_gain query = lmq_gain_from(&grams->query_norm, j * dim);
        struct lmq_gain conv = lmq_gain_from(&grams->conv_norm, j * dim);
        lmq_norm(member->h, &key, k, dim, k);
        lmq_norm(member->h, &query, streams[j], dim, c);
        float z = kernels->dot(k, c, dim) / sqrtf((float)dim);
        float size = sqrtf(fmaxf(fabsf(z), LEAST_SCORE));
        float gate = z > 0 ? size : z < 0 ? -size : z;
        kernels->sigmoid(&gate, 1);
        memcpy(k, value, dim * sizeof(*k));
        kernels->scale(k, dim, gate); /* y_j */
        lmq_norm(member->h, &conv, k, dim, c);
    }
}

/* c of the position so many before token t; NULL: there is none. */
static const float *
conv_before(const struct lmq_member *member, size_t t, size_t before)
{
    size_t width = (size_t)member->h->n_streams * member->h->dim;
    size_t step = lmq_member_step(member, t);
    size_t p = member->position + step;

    if (before <= step)
        return member->work->gram_conv + (t - before) * width;
    return before > p ? NULL
                      : lmq_member_kv(member, t)->gram_conv +
                            (p - before) % lmq_gram_reach(member->h) * width;
}

/* All streams of token t += y and the convolution of c. */
static void
add_token(const struct lmq_member *member, size_t t)
{
    const struct lmq_kernels *kernels = member->kernels;
    const struct lmq_hparams *h = member->h;
    size_t dim = h->dim, n = h->n_streams, taps = h->gram_conv_width;
    const float *weights = member->layer->attention.grams.conv;
    const float *y = member->work->gram_keys + t * n * dim;
    float *sum = member->work->out + t * dim; /* (dim) */
    float *streams[LMQ_MAX_STREAMS];

    lmq_streams_find(member, t, streams);
    for (size_t j = 0; j < n; j++) {
        memset(sum, 0, dim * sizeof(*sum));
        for (size_t i = 0; i < taps; i++) {
            const float *c =
                conv_before(member, t, (taps - 1 - i) * h->gram_size);
            const float *w = weights + j * dim * taps + i;
            for (size_t d = 0; c != NULL && d < dim; d++)
                sum[d] += w[d * taps] * c[j * dim + d];
        }
        kernels->silu(sum, dim);
        kernels->add(streams[j], y + j * dim, dim);
        kernels->add(streams[j], sum, dim);
    }
}

/* The last positions of sequence number s, for those to come. */
static void
remember(const struct lmq_member *member, size_t s)
{
    const struct lmq_hparams *h = member->h;
    size_t length = lmq_member_length(member), first = s * length;
    size_t width = (size_t)h->n_streams * h->dim, reach = lmq_gram_reach(h);
    struct lmq_kv *kv = lmq_member_kv(member, first);

    for (size_t i = length - lmq_size_min(length, reach); i < length; i++)
        memcpy(kv->gram_conv + (member->position + i) % reach * width,
               member->work->gram_conv + (first + i) * width,
               width * sizeof(*kv->gram_conv));
    for (size_t i = length - lmq_size_min(length, h->gram_size); i < length;
         i++)
        kv->gram_tokens[(member->position + i) % h->gram_size] =
            member->work->tokens[first + i];
}

void
lmq_grams_add(const struct lmq_member *member)
{
    const struct lmq_grams *grams = &member->layer->attention.grams;
    struct lmq_work *work = member->work;
    struct lmq_operand e = /* (n, gram width) */
        lmq_operand_of(member, work->gram_rows, lmq_gram_width(member->h));
    size_t from, to;

    lmq_member_share(member, member->n, &from, &to);
    for (size_t t = from; t < to; t++)
        gather_rows(member, t);
    lmq_barrier(member); /* a row of W reads all of e */
    lmq_multiply(member, &grams->key, &e, work->gram_keys);
    lmq_multiply(member, &grams->value, &e, work->gram_values);
    lmq_barrier(member); /* a token's are rows of many */
    for (size_t t = from; t < to; t++)
        weigh_streams(member, t);
    lmq_barrier(member); /* a token reads those of others */
    for (size_t t = from; t < to; t++)
        add_token(member, t);
    lmq_barrier(member); /* all have read what is remembered */
    lmq_member_share(member, work->n_sequences, &from, &to);
    for (size_t s = from; s < to; s++)
        remember(member, s);
}
