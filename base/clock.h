/*
 * clock.h - how long things take.
 */
#ifndef LMQ_BASE_CLOCK_H
#define LMQ_BASE_CLOCK_H

#include <time.h>

/* Seconds since some moment; they only go forward. */
static inline double
lmq_clock_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
