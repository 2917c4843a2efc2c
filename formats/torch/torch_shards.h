/*
 * torch_shards.h - Meta's checkpoints for several devices: each file holds a
 * part of every matrix.
 */
#ifndef LMQ_FORMATS_TORCH_TORCH_SHARDS_H
#define LMQ_FORMATS_TORCH_TORCH_SHARDS_H

#include "formats/checkpoint/checkpoint.h"

/*
 * Joins the tensors of the checkpoint's files, of which there are at least
 * two: where each file had a part there is one tensor now, which
 * lmq_torch_read_joined() reads. Sets checkpoint->state, which is released
 * with lmq_torch_free_joined().
 */
enum lmq_status lmq_torch_join(struct lmq_checkpoint *checkpoint,
                               struct lmq_error *err);

/* struct lmq_format.read, and what its close does (NULL is fine). */
enum lmq_status lmq_torch_read_joined(struct lmq_checkpoint *checkpoint,
                                      const struct lmq_tensor *tensor,
                                      uint64_t first, size_t n, float *values,
                                      struct lmq_error *err);
void lmq_torch_free_joined(struct lmq_checkpoint *checkpoint);

#endif
