/*
 * kernels.c - the choice between the kernels of the instruction sets.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include "base/size.h"

static const struct lmq_kernels *const tables[LMQ_CPU_COUNT] = {
    [LMQ_CPU_C] = &lmq_kernels_c,
#ifdef LMQ_HAVE_AVX2
    [LMQ_CPU_AVX2] = &lmq_kernels_avx2,
#endif
#ifdef LMQ_HAVE_AVXVNNI
    [LMQ_CPU_AVXVNNI] = &lmq_kernels_avxvnni,
#endif
#ifdef LMQ_HAVE_AVX512VNNI
    [LMQ_CPU_AVX512VNNI] = &lmq_kernels_avx512,
#endif
#ifdef LMQ_HAVE_AMX
    [LMQ_CPU_AMX] = &lmq_kernels_amx,
#endif
#ifdef LMQ_HAVE_NEON
    [LMQ_CPU_NEON] = &lmq_kernels_neon,
#endif
};

const struct lmq_kernels *
lmq_kernels_get(enum lmq_cpu cpu)
{
    return tables[cpu];
}

/* The best that both the machine and this build have. */
const struct lmq_kernels *
lmq_kernels(void)
{
    const struct lmq_kernels *kernels = lmq_kernels_get(lmq_cpu());

    for (int i = LMQ_CPU_COUNT - 1; kernels == NULL; i--)
        if (lmq_cpu_has((enum lmq_cpu)i))
            kernels = lmq_kernels_get((enum lmq_cpu)i);
    return kernels;
}

size_t
lmq_scratch_bytes(size_t n_cols)
{
    /* Each block of columns is filled up to 16, tokens to a tile of 6. */
    const size_t n = lmq_size_min(n_cols, LMQ_TOGETHER_MOST) * 65 / 64 + 16;
    const size_t least =
        n_cols > LMQ_WIDE_COLS ? LMQ_TOKENS_WIDE : LMQ_TOKENS_LEAST;
    const size_t near = lmq_size_max(LMQ_TOGETHER_NEAR + 6 * n, least * n);
    const size_t floats = lmq_size_min(
        LMQ_TOGETHER_MOST, lmq_size_min(near, LMQ_TOKENS_MOST * n));

    return LMQ_WIDE_BYTES + (n_cols > LMQ_BLOCK_COLS ? LMQ_SUMS_BYTES : 0) +
           (floats * sizeof(float) + 63) / 64 * 64;
}
