/*
 * set_name.h - what tells the members of one set from those of others.
 */
#ifndef LMQ_CONVERT_SET_NAME_H
#define LMQ_CONVERT_SET_NAME_H

#include "convert/plan.h"

/* Gives all members the name of their set, which follows from what they hold:
 * the checksums of all tensors must be known, and the metadata be there, with
 * a name of zeros. */
enum lmq_status lmq_plan_name_set(struct lmq_plan *plan,
                                  struct lmq_error *err);

/* Of a plan that is laid out: of all that it decides. */
enum lmq_status lmq_plan_identify(const struct lmq_plan *plan,
                                  unsigned char name[LMQ_SET_ID],
                                  struct lmq_error *err);
/* Of a source: its size, and samples of its bytes. */
enum lmq_status lmq_plan_sample(struct lmq_input *input,
                                unsigned char name[LMQ_SET_ID],
                                struct lmq_error *err);

#endif
