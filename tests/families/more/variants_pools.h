/*
 * variants_pools.h - the variants whose values are keys, or that choose.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_VARIANTS_POOLS_H
#define LMQ_TESTS_FAMILIES_MORE_VARIANTS_POOLS_H

#include "formats/model/hparams.h"

/* Which stand for what is far, too. */
void variant_pools(struct lmq_hparams *h);
/* Several of them, for several heads each. */
void variant_turned(struct lmq_hparams *h);
/* Positions that are chosen. */
void variant_index(struct lmq_hparams *h);

#endif
