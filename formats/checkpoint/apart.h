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

/* Of a checkpoint's n tensors, LMQ_MOST_FUSED at most, makes one of that role,
 * the rows of one below those of the other, where the first is. */
enum lmq_status lmq_checkpoint_put_together(struct lmq_checkpoint *checkpoint,
                                            struct lmq_tensor *const *tensors,
                                            size_t n, enum lmq_role role,
                                            struct lmq_error *err);

/* Puts together what a checkpoint has apart. */
enum lmq_status lmq_checkpoint_join(struct lmq_checkpoint *checkpoint,
                                    struct lmq_error *err);

#endif
