/*
 * variants_recurrent.h - the variants that are about recurrences.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_VARIANTS_RECURRENT_H
#define LMQ_TESTS_FAMILIES_MORE_VARIANTS_RECURRENT_H

#include "formats/model/hparams.h"

void variant_delta(struct lmq_hparams *h);
void variant_mixed(struct lmq_hparams *h);
void variant_key_decays(struct lmq_hparams *h);
void variant_convolved(struct lmq_hparams *h);
void variant_beside(struct lmq_hparams *h);
void variant_lru(struct lmq_hparams *h);
void variant_wide_values(struct lmq_hparams *h);

#endif
