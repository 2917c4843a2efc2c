/*
 * hparams_check.h - whether a description can be that of a model.
 */
#ifndef LMQ_FORMATS_MODEL_HPARAMS_CHECK_H
#define LMQ_FORMATS_MODEL_HPARAMS_CHECK_H

#include "formats/model/hparams.h"

/* Every number within its cap, heads that divide, ...: what a forward pass
 * divides by or allocates with. */
enum lmq_status lmq_hparams_check(const struct lmq_hparams *hparams,
                                  struct lmq_error *err);

#endif
