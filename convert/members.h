/*
 * members.h - shares out what a plan writes over the members of a set.
 */
#ifndef LMQ_CONVERT_MEMBERS_H
#define LMQ_CONVERT_MEMBERS_H

#include "convert/plan.h"

/*
 * Makes the plan's parts and members, and the records of these: each file as
 * full as its size allows, tensors in their order, cut by rows only where one
 * is larger than a file. `frames` is what the first file, and what each other
 * one, needs at most besides its tensors.
 */
enum lmq_status lmq_plan_share_out(struct lmq_plan *plan,
                                   const uint64_t frames[2],
                                   struct lmq_error *err);

/* What is known of a record, in all its parts: how it is quantized, and what
 * that did to it. */
void lmq_plan_spread(struct lmq_plan *plan, size_t index);

/* The first part of a record that is no alias. */
struct lmq_plan_part *lmq_plan_first_part(const struct lmq_plan *plan,
                                          size_t index);

#endif
