/*
 * exponentials_body.h - the arithmetic of exponentials.h.
 *
 * A file that defines LMQ_EXP_NAME and LMQ_EXP_WIDTH (doubles per register)
 * before including this gets that function, compiled for the instruction set of
 * that file. Each sum has its lane, so that the order of all is one.
 */
#include "validate/lockstep/exponentials.h"

#include <stdint.h>
#include <string.h>

#define LANES 8
#define PARTS (LANES / LMQ_EXP_WIDTH)

typedef float floats __attribute__((vector_size(4 * LMQ_EXP_WIDTH)));
typedef double vec __attribute__((vector_size(8 * LMQ_EXP_WIDTH)));
typedef int64_t mask __attribute__((vector_size(8 * LMQ_EXP_WIDTH)));

/* e^x for x <= 0, to some 1e-15: x = n ln 2 + r, Taylor's series of e^r, n
 * added to the exponent. Adding 1.5 * 2^52 leaves n in the low bits. */
static inline vec
exp_negative(vec x)
{
    const vec least = (vec){0} - 700, magic = (vec){0} + 6755399441055744.0;
    const double ln2_high = 6.93147180369123816490e-01;
    const double ln2_low = 1.90821492927058770002e-10;
    mask is_below = x < least;
    vec clamped = (vec)((is_below & (mask)least) | (~is_below & (mask)x));
    vec shifted = clamped * 1.44269504088896340736 + magic;
    vec n = shifted - magic;
    vec r = (clamped - n * ln2_high) - n * ln2_low;
    vec p = (vec){0} + 1.0 / 6227020800.0;

    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return (vec)((mask)p + ((mask)shifted << 52));
}

/* Of so many numbers from x on. */
static inline vec
exps_at(const float *x, double peak)
{
    floats some;

    memcpy(&some, x, sizeof(some));
    return exp_negative(__builtin_convertvector(some, vec) - peak);
}

double
LMQ_EXP_NAME(const float *x, size_t n, float top, double *e)
{
    vec sums[PARTS] = {0};
    double lanes[LANES], peak = (double)top;
    float rest[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 4
        for (size_t p = 0; p < PARTS; p++) {
            vec some = exps_at(x + i + p * LMQ_EXP_WIDTH, peak);
            memcpy(e + i + p * LMQ_EXP_WIDTH, &some, sizeof(some));
            sums[p] += some;
        }
    memcpy(lanes, sums, sizeof(lanes));
    double sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                 ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    memcpy(rest, x + i, (n - i) * sizeof(*x));
    for (size_t p = 0; p < PARTS; p++) {
        vec some = exps_at(rest + p * LMQ_EXP_WIDTH, peak);
        memcpy(lanes + p * LMQ_EXP_WIDTH, &some, sizeof(some));
    }
    for (size_t j = 0; i < n; i++, j++)
        sum += e[i] = lanes[j];
    return sum;
}
