/*
 * threads.c - asks OpenMP.
 */
#include "config.h"

#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

int
lmq_threads(int wanted, int most)
{
    int n = wanted;

#ifdef _OPENMP
    if (n <= 0)
        n = omp_get_max_threads();
#endif
    if (n < 1)
        n = 1;
    return n < most ? n : most;
}

int
lmq_thread_number(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

int
lmq_thread_count(void)
{
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}
