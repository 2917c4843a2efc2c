/*
 * row_parts.h - rows in parts, each with a matrix of its own.
 */
#ifndef LMQ_RUNTIME_POOLS_ROW_PARTS_H
#define LMQ_RUNTIME_POOLS_ROW_PARTS_H

#include "runtime/product.h"

/* out (n, n_parts, out_width) = each matrix times its part of x (n, n_parts,
 * x_width). All members take part; those who read `out` need a barrier. */
void lmq_multiply_parts(const struct lmq_member *member,
                        const struct lmq_matrix *matrices, size_t n_parts,
                        const float *x, size_t x_width, float *out,
                        size_t out_width);

#endif
