/*
 * outer_body.h - the arithmetic of outer.h.
 *
 * A file that defines LMQ_OUTER_NAME and LMQ_OUTER_WIDTH (doubles per register)
 * before including this gets that function, compiled for the instruction set of
 * that file. Lanes are columns, so every sum has one order.
 */
#include "convert/calibrate/feedback/outer.h"

#include <string.h>

#define ROWS LMQ_OUTER_ROWS
#define PARTS (LMQ_OUTER_COLS / LMQ_OUTER_WIDTH)

typedef double vec __attribute__((vector_size(8 * LMQ_OUTER_WIDTH)));

static inline vec
load(const double *from)
{
    vec x;

    memcpy(&x, from, sizeof(x));
    return x;
}

/* Four rows of eight columns, which stay in registers: all loops over them are
 * unrolled, as they would not be without being told to. */
static inline void
add_tile(double *c, size_t c_stride, struct lmq_strip a, struct lmq_strip b,
         size_t n)
{
    vec sums[ROWS][PARTS];

#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (size_t p = 0; p < PARTS; p++)
            sums[r][p] = load(c + r * c_stride + p * LMQ_OUTER_WIDTH);
    for (size_t t = 0; t < n; t++) {
        vec cols[PARTS];
#pragma GCC unroll 8
        for (size_t p = 0; p < PARTS; p++)
            cols[p] = load(b.at + t * b.stride + p * LMQ_OUTER_WIDTH);
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 8
            for (size_t p = 0; p < PARTS; p++)
                sums[r][p] += a.at[t * a.stride + r] * cols[p];
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 8
        for (size_t p = 0; p < PARTS; p++)
            memcpy(c + r * c_stride + p * LMQ_OUTER_WIDTH, &sums[r][p],
                   sizeof(vec));
}

void
LMQ_OUTER_NAME(double *c, size_t c_stride, struct lmq_strip a,
               struct lmq_strip b, size_t n_a, size_t n_b, size_t n)
{
    for (size_t i = 0; i < n_a; i += ROWS)
        for (size_t j = 0; j < n_b; j += LMQ_OUTER_COLS)
            add_tile(c + i * c_stride + j, c_stride,
                     (struct lmq_strip){a.at + i, a.stride},
                     (struct lmq_strip){b.at + j, b.stride}, n);
}
