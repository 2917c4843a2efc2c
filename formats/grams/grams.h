/*
 * grams.h - the sizes of what streams are given of the last tokens.
 *
 * In some layers each sequence of two, of three tokens and so on up to
 * gram_size that ends with a token names rows of a table: gram_heads of each
 * length, each among gram_rows of its own. What the rows say together is added
 * to all streams before the layer's blocks, each as far as it suits the stream.
 */
#ifndef LMQ_FORMATS_GRAMS_GRAMS_H
#define LMQ_FORMATS_GRAMS_GRAMS_H

#include "formats/model/hparams.h"

static inline bool
lmq_layer_has_grams(const struct lmq_hparams *hparams, size_t layer)
{
    return lmq_layer_is(hparams, layer, LMQ_LAYER_GRAMS);
}

/* Whether any layer is given such. */
bool lmq_has_grams(const struct lmq_hparams *hparams);

/* Rows that a token names, and numbers of all of them. */
static inline size_t
lmq_gram_places(const struct lmq_hparams *hparams)
{
    return hparams->gram_size < 2
               ? 0
               : (size_t)(hparams->gram_size - 1) * hparams->gram_heads;
}

static inline size_t
lmq_gram_width(const struct lmq_hparams *hparams)
{
    return lmq_gram_places(hparams) * hparams->gram_dim;
}

/* Positions before a token that its convolution sees. */
static inline size_t
lmq_gram_reach(const struct lmq_hparams *hparams)
{
    return hparams->gram_conv_width == 0
               ? 0
               : (size_t)(hparams->gram_conv_width - 1) * hparams->gram_size;
}

/* What a layer that is given something has of these lists. */
const uint64_t *lmq_layer_gram_factors(const struct lmq_hparams *hparams,
                                       size_t layer);
const uint64_t *lmq_layer_gram_rows(const struct lmq_hparams *hparams,
                                    size_t layer);
/* All rows of its table. */
uint64_t lmq_layer_gram_table(const struct lmq_hparams *hparams, size_t layer);

/* What the description takes for granted of all that: refused if it does not
 * hold. */
enum lmq_status lmq_grams_check(const struct lmq_hparams *hparams,
                                struct lmq_error *err);

/* Without such layers nothing is said of them. */
void lmq_grams_settle(struct lmq_hparams *hparams);

#endif
