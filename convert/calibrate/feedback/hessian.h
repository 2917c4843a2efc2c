/*
 * hessian.h - what errors of a weight matrix cost: X^T X of what it is
 * multiplied with.
 *
 * If a row of the matrix misses its numbers by e, its products miss theirs by
 * X e, the squares of which sum up to e^T H e. Factored, H = U D U^T with ones
 * on the diagonal of U and zeros below it, that is the sum over columns k of
 * D[k] (e[k] + the sum of e[j] U[j][k] over j < k)^2: so who rounds column
 * after column knows what is to be made up for in the next one, and what it
 * costs not to (feedback.h).
 */
#ifndef LMQ_CONVERT_CALIBRATE_HESSIAN_H
#define LMQ_CONVERT_CALIBRATE_HESSIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/progress.h"
#include "base/threads/team.h"
#include "convert/calibrate/peers.h"

/* Tokens that are added up at a time. */
#define LMQ_HESSIAN_TOKENS ((size_t)64)

/* Rows and columns of a block: two strips of it and the block itself stay in
 * the first-level cache. A multiple of what lmq_outer_add() wants. */
#define LMQ_HESSIAN_BLOCK ((size_t)32)

struct lmq_hessian {
    size_t n;         /* columns */
    size_t stride;    /* of a row: n and what fills it up */
    double *sums;     /* (stride, stride): H above and on the diagonal; when it
                         is factored, U above it */
    double *weights;  /* (stride): the diagonal; when it is factored, D */
    double unit;      /* what sums and weights have been divided by */
    size_t n_tokens;
    size_t rotated; /* groups that what is added has to be turned in before
                       (quantize/rotate.h); 0: it is not */
};

/* All zero; false without memory. Factoring takes no more. */
bool lmq_hessian_init(struct lmq_hessian *hessian, size_t n);
void lmq_hessian_free(struct lmq_hessian *hessian);

/* Doubles from one row to the next. */
size_t lmq_hessian_stride(size_t n);

/* About what it takes; and what each thread needs beside it. */
double lmq_hessian_bytes(size_t n);
size_t lmq_hessian_buffer(size_t n); /* doubles */

/* A row of x, its whole groups turned if they are to be, as the runtime does
 * it; zeros fill it up. */
void lmq_hessian_widen(const float *x, size_t n, size_t rotated, double *to);

/* One of n_members' share of n_tokens rows of x, `stride` apart: of strips, the
 * strip i is of member i modulo n_members. Sums are of doubles, in the order of
 * the tokens: the same bits however tokens are cut into calls, and for any
 * number of members. Who calls it counts the tokens. */
void lmq_hessian_add(struct lmq_hessian *hessian, const float *x,
                     size_t stride, size_t n_tokens, double *buffer,
                     size_t member, size_t n_members);

size_t lmq_hessian_strips(const struct lmq_hessian *hessian);
void *lmq_hessian_strip(const struct lmq_hessian *hessian, size_t i,
                        size_t *n_bytes);

/* Who factors it; of many processes all do so at once. */
struct lmq_workforce {
    struct lmq_team *team;
    const struct lmq_peers *peers;     /* or NULL */
    const struct lmq_counter *counter; /* is asked now and then */
};

/* Factors H, in units of the mean of its diagonal and with `damping` added to
 * all of that: the same bits whoever does it. *is_factored is false if that
 * cannot be done: nothing was added that is not 0, or something that is no
 * number. */
enum lmq_status lmq_hessian_factor(struct lmq_hessian *hessian, double damping,
                                   const struct lmq_workforce *who,
                                   bool *is_factored, struct lmq_error *err);

/* Only the diagonal in such units, to weights[]; false likewise. */
bool lmq_hessian_weigh(struct lmq_hessian *hessian, double damping);

#endif
