/*
 * copy_plan.h - a plan that changes nothing but the files that a model stands
 * in.
 */
#ifndef LMQ_CONVERT_SETS_COPY_PLAN_H
#define LMQ_CONVERT_SETS_COPY_PLAN_H

#include "convert/plan.h"

/* From a container, or the members of a set; as lmq_plan_make(). With a
 * shard_size of 0 it is for one file. What this program does not know, and so
 * could not carry over, is LMQ_ERR_UNSUPPORTED. */
enum lmq_status lmq_plan_copy(struct lmq_checkpoint *checkpoint,
                              uint64_t shard_size, struct lmq_plan *plan,
                              struct lmq_error *err);

/* When all is written: the digest of the content must be the source's. */
enum lmq_status lmq_copy_check_content(const struct lmq_plan *plan,
                                       struct lmq_error *err);

#endif
