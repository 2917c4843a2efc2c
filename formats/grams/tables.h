/*
 * tables.h - tables that sequences of tokens name rows of.
 */
#ifndef LMQ_FORMATS_GRAMS_TABLES_H
#define LMQ_FORMATS_GRAMS_TABLES_H

#include "formats/checkpoint/checkpoint.h"

/* Whether a tensor holds what a description says itself of such sequences. */
bool lmq_tensor_is_of_grams(const struct lmq_tensor *tensor);

/* Refuses a checkpoint that has other numbers there than its description. */
enum lmq_status lmq_grams_compare(struct lmq_checkpoint *checkpoint,
                                  struct lmq_error *err);

/* Puts together what a checkpoint has in many parts, without the rows that
 * nothing names. What is put together leaves empty tensors. */
enum lmq_status lmq_tables_join(struct lmq_checkpoint *checkpoint,
                                struct lmq_error *err);

#endif
