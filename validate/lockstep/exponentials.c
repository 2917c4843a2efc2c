/*
 * exponentials.c - the choice among the builds of exponentials_body.h.
 */
#include "config.h"

#include "validate/lockstep/exponentials.h"

#include "base/threads/cpu.h"

double
lmq_exponentials(const float *x, size_t n, float top, double *e)
{
    switch (lmq_cpu()) {
#ifdef LMQ_HAVE_AVX512VNNI
    case LMQ_CPU_AMX:
    case LMQ_CPU_AVX512VNNI:
        return lmq_exponentials_avx512(x, n, top, e);
#endif
#ifdef LMQ_HAVE_AVX2
    case LMQ_CPU_AVXVNNI:
    case LMQ_CPU_AVX2:
        return lmq_exponentials_avx2(x, n, top, e);
#endif
    default:
        return lmq_exponentials_c(x, n, top, e);
    }
}
