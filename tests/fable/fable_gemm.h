/*
 * fable_gemm.h - matrix products for fable_net.c.
 *
 * One routine for all the shapes: any strides for A and B, so transposes cost
 * nothing to say. B is copied into panels of columns, zero where it ends.
 */
#ifndef FABLE_GEMM_H
#define FABLE_GEMM_H

struct mat {
    const float *data;
    int row, col; /* strides */
};

#ifdef __AVX512F__
enum { GEMM_ROWS = 8 };
#else
enum { GEMM_ROWS = 4 };
#endif
enum { GEMM_K_MAX = 768, GEMM_N_MAX = 768 };

/*
 * C (m, n) = A (m, k) * B (k, n), or C += with is_sum. m is a multiple of
 * GEMM_ROWS; k and n have the bounds above.
 */
void gemm(int m, int n, int k, struct mat a, struct mat b, float *c, int c_row,
          int is_sum);

#endif
