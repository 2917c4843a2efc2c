/*
 * outer.h - sums of outer products of doubles: what a Hessian is made of, and
 * most of what is done with it.
 */
#ifndef LMQ_CONVERT_CALIBRATE_OUTER_H
#define LMQ_CONVERT_CALIBRATE_OUTER_H

#include <stddef.h>

/* Numbers that a block is padded to, in both directions. */
#define LMQ_OUTER_ROWS ((size_t)4)
#define LMQ_OUTER_COLS ((size_t)8)

/* Rows of doubles, `stride` apart. */
struct lmq_strip {
    const double *at;
    size_t stride;
};

/*
 * c[a][b] += a's[t][a] * b's[t][b] for t = 0, 1, ... n - 1, in this order, each
 * product and each sum rounded: so neither the blocks that a matrix is cut into
 * nor the instruction set change a bit. n_a is a multiple of LMQ_OUTER_ROWS,
 * n_b of LMQ_OUTER_COLS.
 */
void lmq_outer_add(double *c, size_t c_stride, struct lmq_strip a,
                   struct lmq_strip b, size_t n_a, size_t n_b, size_t n);

/* Its builds (outer_body.h). */
void lmq_outer_add_c(double *c, size_t c_stride, struct lmq_strip a,
                     struct lmq_strip b, size_t n_a, size_t n_b, size_t n);
void lmq_outer_add_avx2(double *c, size_t c_stride, struct lmq_strip a,
                        struct lmq_strip b, size_t n_a, size_t n_b, size_t n);

#endif
