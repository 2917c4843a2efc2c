/*
 * pipeline.h - streams tensors: read a piece, quantize it, write it.
 */
#ifndef LMQ_CONVERT_PIPELINE_H
#define LMQ_CONVERT_PIPELINE_H

#include "base/files/output.h"
#include "convert/sets/journal.h"

/*
 * Writes the bytes of all tensors of the plan that are not done yet, into an
 * output for each of its members, or those of which the output is not NULL, and
 * fills in the CRCs and the statistics of the records. Memory is bounded
 * whatever the model; the result does not depend on `threads`. What is written
 * is noted in the journal, if that is not NULL; to *n_zeroed the elements that
 * were replaced by 0 are added.
 */
enum lmq_status lmq_pipeline_run(struct lmq_plan *plan,
                                 struct lmq_output *const *outputs,
                                 struct lmq_journal *journal, int threads,
                                 const struct lmq_progress *progress,
                                 uint64_t *n_zeroed, struct lmq_error *err);

#endif
