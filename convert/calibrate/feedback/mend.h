/*
 * mend.h - what earlier layers have missed, and later ones make up for.
 *
 * Once the layers in front of it are rounded a matrix W sees x where the
 * checkpoint computes x + d, and it is added to a stream that has drifted too.
 * What W should give differs from W x by some r: W d, or the stream's own
 * drift. A little of that can be told from x, so the rows are rounded towards
 * W + V instead of W, where
 *
 *   V (H + damping) = a share of the sum of r x^T over all tokens
 *
 * With H = U D U^T (hessian.h) rounding with feedback needs not V but V U
 * (feedback.c), which is the sum times U^-T D^-1: found once for what drifts,
 * and W d is W times it.
 */
#ifndef LMQ_CONVERT_CALIBRATE_MEND_H
#define LMQ_CONVERT_CALIBRATE_MEND_H

#include "convert/calibrate/feedback/feedback.h"

struct lmq_mend {
    size_t n_cols;    /* of the matrix */
    size_t n_rows;    /* numbers that drift; 0: nothing does */
    bool is_output;   /* they are what the rows are added to, one for each, and
                         not what the columns are multiplied with */
    size_t stride;    /* of a row: as that of the Hessian */
    double *sums;     /* (n_rows and what fills them up, stride) */
    size_t rotated;   /* as that of the Hessian */
};

/* All zero; false without memory. Nothing that drifts takes none. */
bool lmq_mend_init(struct lmq_mend *mend, size_t n_cols, size_t n_rows,
                    bool is_output, size_t rotated);
void lmq_mend_free(struct lmq_mend *mend);

/* About what it takes; and what each thread needs beside it, which is twice
 * that of a Hessian as wide as rows or columns. */
double lmq_mend_bytes(size_t n_cols, size_t n_rows);

/* One of n_members' share of n_tokens rows d (n_rows) and x (n_cols), as
 * lmq_hessian_add() has it. */
void lmq_mend_add(struct lmq_mend *mend, const float *x, const float *d,
                   size_t n_tokens, double *buffer, size_t member,
                   size_t n_members);

/* A member's share of all strips: the sums, times `share`, become offsets. The
 * Hessian is factored. */
void lmq_mend_solve(struct lmq_mend *mend,
                     const struct lmq_hessian *hessian, double share,
                     double *buffer, size_t member, size_t n_members);

size_t lmq_mend_strips(const struct lmq_mend *mend);
void *lmq_mend_strip(const struct lmq_mend *mend, size_t i,
                      size_t *n_bytes);

/* Numbers of what lmq_mend_offsets() fills in and works in. */
size_t lmq_mend_room(size_t n_cols);

/* offsets (n_cols, LMQ_FEEDBACK_ROWS) of rows [first, first + n_rows) of the
 * matrix, which are x, at most as many; 0 for rows that are none, or if what
 * they are to make up for is more than they hold. */
void lmq_mend_offsets(const struct lmq_mend *mend, const float *x,
                       size_t n_cols, size_t first, size_t n_rows,
                       double *offsets);

#endif
