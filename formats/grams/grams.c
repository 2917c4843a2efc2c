/*
 * grams.c - what descriptions may say of what streams are given of the last
 * tokens.
 */
#include "config.h"

#include "formats/grams/grams.h"

#include <inttypes.h>

#include "base/error.h"

/* A product of a factor and a token has no more than 63 bits, and the number of
 * a row 31. */
#define ROWS_MOST ((uint64_t)INT32_MAX)

static size_t
count_layers(const struct lmq_hparams *h, size_t end)
{
    size_t n = 0;

    for (size_t i = 0; i < end && i < LMQ_MAX_LAYERS; i++)
        n += lmq_layer_has_grams(h, i);
    return n;
}

bool
lmq_has_grams(const struct lmq_hparams *h)
{
    return count_layers(h, h->n_layers) > 0;
}

const uint64_t *
lmq_layer_gram_factors(const struct lmq_hparams *h, size_t layer)
{
    return h->gram_factors + count_layers(h, layer) * h->gram_size;
}

const uint64_t *
lmq_layer_gram_rows(const struct lmq_hparams *h, size_t layer)
{
    return h->gram_rows + count_layers(h, layer) * lmq_gram_places(h);
}

uint64_t
lmq_layer_gram_table(const struct lmq_hparams *h, size_t layer)
{
    size_t n = lmq_gram_places(h), first = count_layers(h, layer) * n;
    uint64_t sum = 0;

    for (size_t i = first; i < first + n && i < h->n_gram_rows; i++)
        sum += h->gram_rows[i];
    return sum;
}

/* ---- Checks ---- */

static bool
are_within(const uint64_t *numbers, size_t n, uint64_t most)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] < 1 || numbers[i] > most)
            return false;
    return true;
}

static enum lmq_status
check_numbers(const struct lmq_hparams *h, struct lmq_error *err)
{
    size_t n = count_layers(h, h->n_layers);
    uint64_t most = (uint64_t)INT64_MAX / h->vocab_size;

    if (h->n_gram_factors != n * h->gram_size ||
        h->n_gram_rows != n * lmq_gram_places(h))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "gram_factors and gram_rows have %u and %u numbers, "
                        "expected %zu and %zu",
                        h->n_gram_factors, h->n_gram_rows, n * h->gram_size,
                        n * lmq_gram_places(h));
    if (!are_within(h->gram_factors, h->n_gram_factors, most))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "gram_factors holds something else than numbers from "
                        "1 to %" PRIu64,
                        most);
    if (!are_within(h->gram_rows, h->n_gram_rows, ROWS_MOST))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "gram_rows holds something else than numbers from 1 "
                        "to %" PRIu64,
                        ROWS_MOST);
    return LMQ_OK;
}

enum lmq_status
lmq_grams_check(const struct lmq_hparams *h, struct lmq_error *err)
{
    if (!lmq_has_grams(h))
        return LMQ_OK;
    if (!lmq_has_hyper_streams(h) || h->n_borrowing > 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "layers in gram_layers need streams that blocks read "
                        "together, and keys of each layer's own");
    if (h->gram_size < 2 || h->gram_size > LMQ_MAX_GRAM ||
        h->gram_heads == 0 || h->gram_dim == 0 || h->gram_conv_width == 0 ||
        h->gram_stop >= h->vocab_size ||
        lmq_gram_places(h) > LMQ_MAX_GRAM_NUMBERS ||
        (uint64_t)lmq_gram_places(h) * h->gram_dim > LMQ_MAX_WIDTH)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "sequences of up to %u tokens, %u rows of %u for each "
                        "length, a convolution of %u and an end of %u of %u "
                        "tokens make nothing to give to streams",
                        h->gram_size, h->gram_heads, h->gram_dim,
                        h->gram_conv_width, h->gram_stop, h->vocab_size);
    return check_numbers(h, err);
}

void
lmq_grams_settle(struct lmq_hparams *h)
{
    if (lmq_has_grams(h))
        return;
    h->gram_size = h->gram_heads = h->gram_dim = 0;
    h->gram_conv_width = h->gram_stop = 0;
    h->n_gram_factors = h->n_gram_rows = 0;
}
