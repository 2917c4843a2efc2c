/*
 * parts.h - a validation that is shared out: what one part writes down of its
 * windows, and what is made of all.
 */
#ifndef LMQ_VALIDATE_PARTS_H
#define LMQ_VALIDATE_PARTS_H

#include "validate/job.h"
#include "validate/parts/part_fields.h"
#include "validate/parts/part_set.h"

extern const struct lmq_part_kind lmq_validation_parts;

/* Refuses what a part cannot do. */
enum lmq_status lmq_part_check_options(const struct lmq_validate_options *o,
                                       struct lmq_error *err);

/* What was gathered, as JSON; `nll` as lmq_ask_task() has it, or NULL. */
enum lmq_status lmq_part_describe(const struct lmq_job *job,
                                  const double *nll, double seconds,
                                  json_t **json, struct lmq_error *err);

/* ---- Reading them (part_read.c) ---- */

/* What the first part says of all: how many models, layers and so on; makes
 * room in the job. */
enum lmq_status lmq_part_begin(struct lmq_job *job, const json_t *part,
                               struct lmq_error *err);
/* Adds a part to the job, which has those before it. `nll` has room for all
 * windows of the task, per side. */
enum lmq_status lmq_part_add(struct lmq_job *job, const json_t *part,
                             double *nll, struct lmq_error *err);
/* Whether all is there that the first part has promised. */
enum lmq_status lmq_part_end(const struct lmq_job *job, struct lmq_error *err);

#endif
