/*
 * elementary.c - exp, log, softplus, sin and cos of doubles.
 */
#include "config.h"

#include "base/elementary.h"

#include <math.h>
#include <stdint.h>

#define LN2 0.69314718055994530942
#define PI 3.14159265358979323846

/* ln x for x > 0: x = m 2^e with m near 1, ln m = 2 atanh((m-1)/(m+1)). */
double
lmq_log(double x)
{
    int exponent = 0;
    double m = frexp(x, &exponent);

    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 25; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * s * sum + exponent * LN2;
}

/* x = n ln 2 + r, Taylor's series of e^r. */
double
lmq_exp(double x)
{
    if (x < -745)
        return 0;
    if (x > 709)
        return (double)INFINITY;
    double n = rint(x / LN2), r = x - n * LN2, sum = 1;

    for (int k = 18; k >= 1; k--)
        sum = 1 + sum * r / k;
    return ldexp(sum, (int)n);
}

double
lmq_softplus(double x)
{
    return x > 20 ? x : lmq_log(1 + lmq_exp(x));
}

/* The angle is reduced to |r| <= pi/4 in three steps: the first two parts of
 * pi/2 have 33 bits, so their products with n < 2^20 are exact. */
void
lmq_sincos(double angle, double *sine, double *cosine)
{
    const double part_1 = 1.57079632673412561417e+00;
    const double part_2 = 6.07710050630396597660e-11;
    const double part_3 = 2.02226624879595063154e-21;
    double n = rint(angle / (PI / 2));
    double r = ((angle - n * part_1) - n * part_2) - n * part_3;
    double square = r * r, s = 1, c = 1;

    for (int k = 20; k >= 2; k -= 2) {
        s = 1 - s * square / (k * (k + 1));
        c = 1 - c * square / (k * (k - 1));
    }
    s *= r;
    switch ((int)((int64_t)n & 3)) {
    case 0:
        *sine = s, *cosine = c;
        break;
    case 1:
        *sine = c, *cosine = -s;
        break;
    case 2:
        *sine = -s, *cosine = -c;
        break;
    default:
        *sine = -c, *cosine = s;
    }
}
