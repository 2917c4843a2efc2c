/*
 * variants_uneven.h - the variant whose layers differ in numbers and widths.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_VARIANTS_UNEVEN_H
#define LMQ_TESTS_FAMILIES_MORE_VARIANTS_UNEVEN_H

#include "formats/model/hparams.h"

/* Heads and widths by layer, and layers of two kinds. */
void variant_uneven(struct lmq_hparams *h);

#endif
