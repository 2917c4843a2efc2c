/*
 * apart.h - tensors that consist of several others.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_APART_H
#define LMQ_FORMATS_CHECKPOINT_APART_H

#include "formats/checkpoint/checkpoint.h"

/* Of a tensor like the first part it makes one of all of them, of that role. */
void lmq_tensor_join(struct lmq_tensor *whole, const struct lmq_joined *joined,
                     enum lmq_role role);

/* Which of the tensors that it was put together of has an element, and as which
 * of its own; or it itself. */
const struct lmq_tensor *lmq_tensor_part(const struct lmq_tensor *tensor,
                                         uint64_t *element);

/* Puts together what a checkpoint has apart. */
enum lmq_status lmq_checkpoint_join(struct lmq_checkpoint *checkpoint,
                                    struct lmq_error *err);

#endif
