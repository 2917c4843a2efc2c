/*
 * outer.c - the choice among the builds of outer_body.h.
 */
#include "config.h"

#include "convert/calibrate/feedback/outer.h"

#include "base/threads/cpu.h"

void
lmq_outer_add(double *c, size_t c_stride, struct lmq_strip a,
              struct lmq_strip b, size_t n_a, size_t n_b, size_t n)
{
#ifdef LMQ_HAVE_AVX2
    switch (lmq_cpu()) {
    case LMQ_CPU_AMX:
    case LMQ_CPU_AVX512VNNI:
    case LMQ_CPU_AVXVNNI:
    case LMQ_CPU_AVX2:
        lmq_outer_add_avx2(c, c_stride, a, b, n_a, n_b, n);
        return;
    default:
        break;
    }
#endif
    lmq_outer_add_c(c, c_stride, a, b, n_a, n_b, n);
}
