/*
 * gates.h - gates that may look at an earlier report too.
 */
#ifndef LMQ_VALIDATE_GATES_H
#define LMQ_VALIDATE_GATES_H

#include <stdbool.h>

#include "lmquant.h"

/* As lmq_gates_apply(); VALUE may be "baseline", or that *, + or - a number:
 * what stands at METRIC in the baseline (NULL: there is none). Where a list of
 * the report is shorter than it may be, what it lacks is null. */
enum lmq_status lmq_gates_compare(struct lmq_report *report,
                                  const struct lmq_report *baseline,
                                  const char *const *gates, size_t n_gates,
                                  size_t *n_broken, struct lmq_error *err);

/* Whether a gate, which is well formed, looks at the baseline; and whether that
 * has what it needs. */
bool lmq_gate_has_baseline(const char *gate);
enum lmq_status lmq_gate_resolve(const char *gate,
                                 const struct lmq_report *baseline,
                                 struct lmq_error *err);

#endif
