/*
 * packed.h - weights that other tools have packed, of which some can be read.
 */
#ifndef LMQ_FORMATS_PACKED_PACKED_H
#define LMQ_FORMATS_PACKED_PACKED_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"

/*
 * For readers of Hugging Face checkpoints, when all tensors are there: finds
 * out how the weights are stored, from config.json (NULL: there is none) and
 * from the tensors. Puts one matrix in the place of the tensors that it is
 * packed in; of a checkpoint that cannot be read sets `packed`, and no model.
 */
enum lmq_status lmq_packed_understand(struct lmq_checkpoint *checkpoint,
                                      const json_t *config,
                                      struct lmq_error *err);

/* The part of config.json that says how weights are packed: all of it, or of a
 * model with images, say, what is of its text. NULL if none does. */
const json_t *lmq_packed_said(const json_t *config);

/* LMQ_ERR_UNSUPPORTED, with advice, if the weights cannot be read: whoever
 * needs elements asks first. */
enum lmq_status
lmq_checkpoint_need_weights(const struct lmq_checkpoint *checkpoint,
                            struct lmq_error *err);

#endif
