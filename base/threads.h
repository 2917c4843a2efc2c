/*
 * threads.h - how many threads, and nothing else: loops use OpenMP directly.
 *
 * Nothing that is computed may depend on the answer.
 */
#ifndef LMQ_BASE_THREADS_H
#define LMQ_BASE_THREADS_H

/* `wanted` if it is positive, else what OpenMP would use (OMP_NUM_THREADS or
 * all cores). Never more than `most`. */
int lmq_threads(int wanted, int most);

/* The calling thread's number within the parallel region, from 0. */
int lmq_thread_number(void);

/* How many threads walk through this parallel region. */
int lmq_thread_count(void);

#endif
