/*
 * variants_norms.h - the variants that are about norms.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_VARIANTS_NORMS_H
#define LMQ_TESTS_FAMILIES_MORE_VARIANTS_NORMS_H

#include "formats/model/hparams.h"

/* Without weights. */
void variant_bare(struct lmq_hparams *h);
/* Within blocks, and behind experts alone. */
void variant_inside(struct lmq_hparams *h);
/* Before which several streams become one. */
void variant_hyper(struct lmq_hparams *h);
void variant_gated(struct lmq_hparams *h);
/* Before blocks that add to what they are given, normed. */
void variant_kept(struct lmq_hparams *h);
/* Behind turning. */
void variant_squares(struct lmq_hparams *h);
/* Of each head its own. */
void variant_learned(struct lmq_hparams *h);

#endif
