/*
 * lay_out.h - from the records of a plan to files: how many, what stands where
 * in each, and what each says of itself.
 */
#ifndef LMQ_CONVERT_LAY_OUT_H
#define LMQ_CONVERT_LAY_OUT_H

#include "convert/plan.h"

/* Makes the members of a plan that is made: all sizes and places. */
enum lmq_status lmq_plan_lay_out(struct lmq_plan *plan, struct lmq_error *err);

/* Replaces the metadata by those with the digests of the sources and the name
 * of the set; their size stays. Call when all tensors are written. */
enum lmq_status lmq_plan_finish_metadata(struct lmq_plan *plan,
                                         struct lmq_error *err);

#endif
