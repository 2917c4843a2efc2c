/*
 * test_exponentials.c - the same bits from each instruction set, and near what
 * the C library gives.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/cpu.h"
#include "tests/build/suite.h"
#include "validate/lockstep/exponentials.h"

#define MOST 1000

/* From the top down to what is nothing, some of it far below that. */
static void
some_logits(float *x, size_t n)
{
    srand(1);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(10 - 60 * ((double)rand() / RAND_MAX));
    if (n > 3)
        x[3] = -1e30f;
    if (n > 12)
        x[12] = -690.5f;
    x[n / 2] = 10;
}

START_TEST(they_are_exponentials)
{
    float x[MOST];
    double e[MOST], sum = 0;

    some_logits(x, MOST);
    double found = lmq_exponentials_c(x, MOST, 10, e);
    for (size_t i = 0; i < MOST; i++) {
        double expected = exp((double)x[i] - 10);
        if (x[i] > -690)
            REQUIRE(fabs(e[i] / expected - 1) < 4e-15, "%g: %g, not %g",
                    (double)x[i], e[i], expected);
        REQUIRE(e[i] >= 0 && e[i] <= 1, "%g: %g", (double)x[i], e[i]);
        sum += e[i];
    }
    ck_assert(fabs(found / sum - 1) < 1e-13);
}
END_TEST

START_TEST(every_build_gives_the_same_bits)
{
    typedef double exponentials(const float *, size_t, float, double *);
    exponentials *builds[] = {
        lmq_exponentials,
#ifdef LMQ_HAVE_AVX2
        lmq_cpu() == LMQ_CPU_C ? NULL : lmq_exponentials_avx2,
#endif
#ifdef LMQ_HAVE_AVX512VNNI
        lmq_cpu_has(LMQ_CPU_AVX512VNNI) ? lmq_exponentials_avx512 : NULL,
#endif
    };
    float x[MOST];
    double good[MOST], e[MOST];

    for (size_t n = 1; n <= MOST; n += n < 40 ? 1 : 97) {
        some_logits(x, n);
        double sum = lmq_exponentials_c(x, n, 10, good);
        for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
            if (builds[i] == NULL)
                continue;
            double found = builds[i](x, n, 10, e);
            REQUIRE(memcmp(&found, &sum, sizeof(sum)) == 0,
                    "build %zu, %zu: the sum is %a, not %a", i, n, found, sum);
            REQUIRE(memcmp(e, good, n * sizeof(*e)) == 0, "build %zu, %zu", i,
                    n);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {they_are_exponentials,
                                  every_build_gives_the_same_bits};

    return RUN_SUITE("exponentials", tests);
}
