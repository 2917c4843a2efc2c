/*
 * hparams_compare.h - whether two descriptions say the same, field by field.
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_COMPARE_H
#define LMQ_FORMATS_MODEL_HPARAMS_COMPARE_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/model/hparams.h"

/* The first key by which two models cannot have the same tensors or do other
 * things with them; NULL if there is none. How positions are scaled, windows,
 * epsilons and other real numbers may differ: such models can be compared. */
const char *lmq_hparams_difference(const struct lmq_hparams *a,
                                   const struct lmq_hparams *b);

/* What two models compute otherwise: an array of objects {"key", "a", "b"},
 * null where one has the usual value. What has no consequence, or can be said
 * in two ways, is no difference; nor are names and special tokens, and real
 * numbers that are one as float32. */
json_t *lmq_hparams_compare(const struct lmq_hparams *a,
                            const struct lmq_hparams *b);

/* Whether two say the same, but for what they say of tying: all that a
 * container keeps. */
bool lmq_hparams_are_same(const struct lmq_hparams *a,
                          const struct lmq_hparams *b);

#endif
