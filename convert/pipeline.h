/*
 * pipeline.h - streams tensors: read a piece, quantize it, write it.
 */
#ifndef LMQ_CONVERT_PIPELINE_H
#define LMQ_CONVERT_PIPELINE_H

#include "convert/piece.h"
#include "convert/sets/journal.h"

/*
 * Writes the bytes of all tensors of the plan that are not done yet, of members
 * that have an output, and fills in the CRCs and the statistics of the records.
 * Memory is bounded whatever the model; the result does not depend on
 * `threads`. What is written is noted in the journal, if that is not NULL; to
 * *n_zeroed the elements that were replaced by 0 are added.
 */
enum lmq_status lmq_pipeline_run(const struct lmq_conversion *work,
                                 struct lmq_journal *journal, int threads,
                                 const struct lmq_progress *progress,
                                 uint64_t *n_zeroed, struct lmq_error *err);

#endif
