/*
 * metrics.h - which keys of a validation report a gate can name.
 */
#ifndef LMQ_VALIDATE_METRICS_H
#define LMQ_VALIDATE_METRICS_H

#include "lmquant.h"

/* Well formed, and of a metric that there is: a slip of the pen shows before
 * the work. */
enum lmq_status lmq_metrics_check_gate(const char *gate,
                                       struct lmq_error *err);

#endif
