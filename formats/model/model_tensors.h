/*
 * model_tensors.h - which tensors a model of a description has, in which
 * shapes: lmq-model(5), section 4.
 */
#ifndef LMQ_FORMATS_MODEL_MODEL_TENSORS_H
#define LMQ_FORMATS_MODEL_MODEL_TENSORS_H

#include "formats/model/hparams.h"
#include "formats/model/names.h"

/* How many tensors of a role a layer has: 0, 1, or `*n_items` with numbers of
 * their own (else that is 0). */
bool lmq_model_has(const struct lmq_hparams *hparams,
                   const struct lmq_place *place, uint32_t *n_items);

/* Whether the forward pass has a use for this part of a role. */
bool lmq_model_has_part(const struct lmq_hparams *hparams,
                        const struct lmq_place *place);

/* Biases are all there or none; so are these weights. */
bool lmq_model_may_lack(enum lmq_role role, enum lmq_part part);

/* What each role's shape must be. */
void lmq_model_shape(const struct lmq_hparams *hparams,
                     const struct lmq_place *place, uint64_t dims[2],
                     uint32_t *n_dims);

#endif
