/*
 * rotate.h - turns groups so that no number stands out.
 *
 * G numbers times the Hadamard matrix of that order, by the root of G: a large
 * one is spread over all, and products of two that were both turned stay what
 * they were. Doing it twice undoes it. G is 256, 64, 16 or 4, whose roots are
 * powers of two, by which division is exact. The order of the sums is that of
 * lmq(5), "Rotation", so every build gives the same bits.
 */
#ifndef LMQ_QUANTIZE_ROTATE_H
#define LMQ_QUANTIZE_ROTATE_H

#include <stddef.h>
#include <string.h>

#define LMQ_ROTATED_MOST 256

/* Whether the groups of a row are turned: all that they have, a shorter last
 * one too, or only whole ones of 64 and 256, as files from before have it. */
enum lmq_rotation {
    LMQ_ROTATION_NONE,
    LMQ_ROTATION_ALL,
    LMQ_ROTATION_WHOLE, /* nothing is quantized so any more */
};

typedef float lmq_four __attribute__((vector_size(16)));

/* Numbers a distance apart become their sum and their difference: of half of
 * them, of a quarter, down to neighbours. */
static inline void
lmq_rotate_power(float *x, size_t group)
{
    const lmq_four pairs = {1, 1, -1, -1}, neighbours = {1, -1, 1, -1};
    lmq_four v[LMQ_ROTATED_MOST / 4];
    const size_t n = group / 4;
    float factor = 1;

    for (size_t rest = group; rest > 1; rest /= 4)
        factor /= 2; /* the root of all */

    memcpy(v, x, group * sizeof(*x));
    for (size_t h = n / 2; h > 0; h /= 2)
        for (size_t i = 0; i < n; i += 2 * h)
            for (size_t j = i; j < i + h; j++) {
                lmq_four a = v[j], b = v[j + h];
                v[j] = a + b;
                v[j + h] = a - b;
            }
    for (size_t i = 0; i < n; i++) {
        lmq_four a = v[i], b = {a[2], a[3], a[0], a[1]};
        a = b + a * pairs;
        b = (lmq_four){a[1], a[0], a[3], a[2]};
        v[i] = (b + a * neighbours) * factor;
    }
    memcpy(x, v, group * sizeof(*x));
}

/* By 256, 64, 16 and 4, as they fit; up to three numbers at the end stay. */
static inline void
lmq_rotate_all(float *x, size_t n)
{
    for (size_t power = LMQ_ROTATED_MOST; power > 1; power /= 4)
        for (; n >= power; n -= power, x += power)
            lmq_rotate_power(x, power);
}

/* The n numbers of a group, which may be the last of a row. */
static inline void
lmq_rotate_group(float *x, size_t n, size_t group_size,
                 enum lmq_rotation rotation)
{
    if (rotation == LMQ_ROTATION_ALL ||
        (rotation == LMQ_ROTATION_WHOLE && n == group_size))
        lmq_rotate_all(x, n);
}

/* Each group of a row. */
static inline void
lmq_rotate_row(float *x, size_t n, size_t group_size)
{
    for (size_t at = 0; at < n; at += group_size)
        lmq_rotate_all(x + at, n - at < group_size ? n - at : group_size);
}

#endif
