/*
 * mend.c - sums of what drifts with what is seen, and their solution.
 */
#include "config.h"

#include "convert/calibrate/feedback/mend.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "convert/calibrate/feedback/outer.h"

#define BLOCK LMQ_HESSIAN_BLOCK
#define ROWS LMQ_FEEDBACK_ROWS

/* ---- Memory ---- */

size_t
lmq_mend_strips(const struct lmq_mend *mend)
{
    return (mend->n_rows + BLOCK - 1) / BLOCK;
}

void *
lmq_mend_strip(const struct lmq_mend *mend, size_t i, size_t *n_bytes)
{
    *n_bytes = BLOCK * mend->stride * sizeof(double);
    return mend->sums + i * BLOCK * mend->stride;
}

bool
lmq_mend_init(struct lmq_mend *mend, size_t n_cols, size_t n_rows,
               bool is_output, size_t rotated)
{
    size_t bytes;

    *mend = (struct lmq_mend){.n_cols = n_cols,
                                .n_rows = n_rows,
                                .is_output = is_output,
                                .stride = lmq_hessian_stride(n_cols),
                                .rotated = rotated};
    if (n_rows == 0)
        return true;
    if (!lmq_size_mul(lmq_mend_strips(mend) * BLOCK, mend->stride, &bytes))
        return false;
    mend->sums = lmq_mem_aligned(bytes, sizeof(double));
    return mend->sums != NULL;
}

void
lmq_mend_free(struct lmq_mend *mend)
{
    lmq_mem_free(mend->sums);
    *mend = (struct lmq_mend){0};
}

double
lmq_mend_bytes(size_t n_cols, size_t n_rows)
{
    return n_rows == 0 ? 0
                       : 8 * (double)lmq_hessian_stride(n_cols) *
                             ((double)n_rows + (double)BLOCK);
}

/* ---- Adding up ---- */

void
lmq_mend_add(struct lmq_mend *mend, const float *x, const float *d,
              size_t n_tokens, double *buffer, size_t member, size_t n_members)
{
    size_t room = mend->stride, d_room = lmq_hessian_stride(mend->n_rows);
    double *seen = buffer, *drifted = buffer + LMQ_HESSIAN_TOKENS * room;
    size_t d_rotated = mend->is_output ? 0 : mend->rotated;

    for (size_t at = 0; at < n_tokens; at += LMQ_HESSIAN_TOKENS) {
        size_t n = lmq_size_min(LMQ_HESSIAN_TOKENS, n_tokens - at);
        for (size_t t = 0; t < n; t++) {
            lmq_hessian_widen(x + (at + t) * mend->n_cols, mend->n_cols,
                              mend->rotated, seen + t * room);
            lmq_hessian_widen(d + (at + t) * mend->n_rows, mend->n_rows,
                              d_rotated, drifted + t * d_room);
        }
        for (size_t i = member; i < lmq_mend_strips(mend); i += n_members)
            for (size_t j = 0; j + BLOCK <= room; j += BLOCK)
                lmq_outer_add(
                    mend->sums + i * BLOCK * room + j, room,
                    (struct lmq_strip){drifted + i * BLOCK, d_room},
                    (struct lmq_strip){seen + j, room}, BLOCK, BLOCK, n);
    }
}

/* ---- Solving ---- */

/* z (BLOCK columns, BLOCK rows) of columns at `k` -= what columns at `j` behind
 * them have: U[k][j] z[j]. */
static void
subtract(const struct lmq_hessian *hessian, double *z, size_t k, size_t j,
         size_t n)
{
    double turned[BLOCK * BLOCK];
    const double *u = hessian->sums + k * hessian->stride + j;

    for (size_t b = 0; b < n; b++)
        for (size_t a = 0; a < BLOCK; a++)
            turned[b * BLOCK + a] = -u[a * hessian->stride + b];
    lmq_outer_add(z + k * BLOCK, BLOCK, (struct lmq_strip){turned, BLOCK},
                  (struct lmq_strip){z + j * BLOCK, BLOCK}, BLOCK, BLOCK, n);
}

/* Of columns [k, k + n), which need only each other any more. */
static void
solve_block(const struct lmq_hessian *hessian, double *z, size_t k, size_t n)
{
    const double *u = hessian->sums + k * (hessian->stride + 1);

    for (size_t j = n; j-- > 0;)
        for (size_t i = 0; i < j; i++)
            for (size_t r = 0; r < BLOCK; r++)
                z[(k + i) * BLOCK + r] -=
                    u[i * hessian->stride + j] * z[(k + j) * BLOCK + r];
}

/* The rows of a strip lie side by side in z, (n_cols, BLOCK). */
static void
solve_strip(const struct lmq_mend *mend, const struct lmq_hessian *hessian,
            double scale, double *rows, double *z)
{
    size_t n_cols = mend->n_cols;

    for (size_t k = 0; k < n_cols; k++)
        for (size_t r = 0; r < BLOCK; r++)
            z[k * BLOCK + r] = scale * rows[r * mend->stride + k];
    for (size_t k = (n_cols - 1) / BLOCK * BLOCK + BLOCK; k > 0;) {
        k -= BLOCK;
        for (size_t j = k + BLOCK; j < n_cols; j += BLOCK)
            subtract(hessian, z, k, j, lmq_size_min(BLOCK, n_cols - j));
        solve_block(hessian, z, k, lmq_size_min(BLOCK, n_cols - k));
    }
    for (size_t k = 0; k < n_cols; k++)
        for (size_t r = 0; r < BLOCK; r++)
            rows[r * mend->stride + k] =
                z[k * BLOCK + r] / hessian->weights[k];
}

void
lmq_mend_solve(struct lmq_mend *mend, const struct lmq_hessian *hessian,
                double share, double *buffer, size_t member, size_t n_members)
{
    for (size_t i = member; i < lmq_mend_strips(mend); i += n_members)
        solve_strip(mend, hessian, share / hessian->unit,
                    mend->sums + i * BLOCK * mend->stride, buffer);
}

/* ---- Offsets ---- */

size_t
lmq_mend_room(size_t n_cols)
{
    return 2 * lmq_hessian_stride(n_cols) * ROWS;
}

/* offsets = x times what its columns have to make up for. */
static void
multiply(const struct lmq_mend *mend, const float *x, size_t n_rows,
         double *offsets)
{
    size_t n = mend->n_cols, width = mend->stride / BLOCK * BLOCK;
    double *turned = offsets + mend->stride * ROWS;

    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < ROWS; r++)
            turned[k * ROWS + r] = r < n_rows ? (double)x[r * n + k] : 0;
    for (size_t k = 0; k < width; k += BLOCK)
        for (size_t j = 0; j < n; j += BLOCK)
            lmq_outer_add(
                offsets + k * ROWS, ROWS,
                (struct lmq_strip){mend->sums + j * mend->stride + k,
                                   mend->stride},
                (struct lmq_strip){turned + j * ROWS, ROWS}, BLOCK, ROWS,
                lmq_size_min(BLOCK, n - j));
}

/* No row becomes another one. */
static void
limit(const float *x, size_t n, size_t r, double *offsets)
{
    double most = 0;
    bool is_fine = true;

    for (size_t k = 0; k < n; k++) {
        double size = fabs((double)x[k]);
        most = size > most ? size : most; /* fmax(): gcc 12 for ARM fails */
    }
    for (size_t k = 0; k < n; k++)
        is_fine = is_fine && fabs(offsets[k * ROWS + r]) <= most;
    for (size_t k = 0; k < n && !is_fine; k++)
        offsets[k * ROWS + r] = 0;
}

void
lmq_mend_offsets(const struct lmq_mend *mend, const float *x, size_t n_cols,
                  size_t first, size_t n_rows, double *offsets)
{
    memset(offsets, 0, lmq_hessian_stride(n_cols) * ROWS * sizeof(*offsets));
    if (mend->n_rows == 0)
        return;
    if (!mend->is_output)
        multiply(mend, x, n_rows, offsets);
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t k = 0; k < n_cols && mend->is_output; k++)
            offsets[k * ROWS + r] =
                mend->sums[(first + r) * mend->stride + k];
        limit(x + r * n_cols, n_cols, r, offsets);
    }
}
