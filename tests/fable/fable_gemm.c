/*
 * fable_gemm.c - matrix products in registers: 8 rows by 32 columns at a time,
 * or 4 by 16 where the machine has no more than AVX2's.
 *
 * The vector type is GCC's and Clang's. Nothing here is exact to the bit
 * between machines: it is for training only.
 */
#include "fable_gemm.h"

#include <assert.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define PANEL (2 * LANES)

typedef float vec
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Panels of (k, PANEL), one behind the other. */
static float packed[GEMM_N_MAX / PANEL * GEMM_K_MAX * PANEL]
    __attribute__((aligned(64)));

static void
pack(struct mat b, int k, int n)
{
    for (int j0 = 0; j0 < n; j0 += PANEL) {
        float *to = packed + (long)j0 * k;
        int width = n - j0 < PANEL ? n - j0 : PANEL;
        if (width < PANEL)
            memset(to, 0, sizeof(*to) * (size_t)(k * PANEL));
        if (b.col == 1) {
            for (int i = 0; i < k; i++)
                memcpy(to + i * PANEL, b.data + (long)i * b.row + j0,
                       sizeof(*to) * (size_t)width);
            continue;
        }
        for (int j = 0; j < width; j++) {
            const float *from = b.data + (long)(j0 + j) * b.col;
            for (int i = 0; i < k; i++)
                to[i * PANEL + j] = from[(long)i * b.row];
        }
    }
}

/* n_vecs is a constant at each call, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void
tile(int n_vecs, int k, struct mat a, const float *b, float *c, int c_row,
     int width, int is_sum)
{
    vec sum[GEMM_ROWS][2];

    for (int i = 0; i < GEMM_ROWS; i++)
        for (int v = 0; v < n_vecs; v++)
            sum[i][v] = (vec){ 0 };
    for (int l = 0; l < k; l++) {
        const float *from = a.data + (long)l * a.col;
        const vec *row = (const vec *)(b + l * PANEL);
        for (int i = 0; i < GEMM_ROWS; i++)
            for (int v = 0; v < n_vecs; v++)
                sum[i][v] += from[(long)i * a.row] * row[v];
    }
    for (int i = 0; i < GEMM_ROWS; i++, c += c_row) {
        float out[PANEL];
        for (int v = 0; v < n_vecs; v++)
            memcpy(out + v * LANES, &sum[i][v], sizeof(vec));
        if (width == n_vecs * LANES) {
            for (int j = 0; j < n_vecs * LANES; j++)
                c[j] = is_sum ? c[j] + out[j] : out[j];
            continue;
        }
        for (int j = 0; j < width; j++)
            c[j] = is_sum ? c[j] + out[j] : out[j];
    }
}

void
gemm(int m, int n, int k, struct mat a, struct mat b, float *c, int c_row,
     int is_sum)
{
    assert(m % GEMM_ROWS == 0 && n <= GEMM_N_MAX && k <= GEMM_K_MAX);
    pack(b, k, n);
    for (int i = 0; i < m; i += GEMM_ROWS) {
        struct mat rows = { a.data + (long)i * a.row, a.row, a.col };
        float *to = c + (long)i * c_row;
        for (int j = 0; j < n; j += PANEL) {
            int width = n - j < PANEL ? n - j : PANEL;
            const float *panel = packed + (long)j * k;
            if (width > LANES)
                tile(2, k, rows, panel, to + j, c_row, width, is_sum);
            else
                tile(1, k, rows, panel, to + j, c_row, width, is_sum);
        }
    }
}
