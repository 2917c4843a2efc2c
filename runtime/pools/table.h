/*
 * table.h - which experts each token goes to, where a table says it.
 */
#ifndef LMQ_RUNTIME_POOLS_TABLE_H
#define LMQ_RUNTIME_POOLS_TABLE_H

#include "formats/checkpoint/checkpoint.h"

/* Refused unless each token goes to experts that there are, and to none of
 * them twice. `table` is n elements of `tensor`, whole rows from element
 * `first` on. */
enum lmq_status lmq_table_check(const struct lmq_hparams *hparams,
                                const struct lmq_tensor *tensor,
                                uint64_t first, const float *table, size_t n,
                                struct lmq_error *err);

#endif
