/*
 * threads.h - how many threads.
 *
 * Nothing that is computed may depend on the answer.
 */
#ifndef LMQ_BASE_THREADS_H
#define LMQ_BASE_THREADS_H

#include "lmquant.h"

/* `wanted` if it is positive; else OMP_NUM_THREADS; else the cores that this
 * process may use, but no more than OMP_THREAD_LIMIT. 1 to `most`. */
int lmq_threads(int wanted, int most);
/* Whether a caller may want so many. */
enum lmq_status lmq_threads_check(int wanted, struct lmq_error *err);

/* The cores that this process may use: those it is bound to, and no more than
 * its control groups have time for. */
int lmq_cores(void);

#endif
