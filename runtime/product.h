/*
 * product.h - products of activations and matrices, shared out among the
 * members of the team.
 */
#ifndef LMQ_RUNTIME_PRODUCT_H
#define LMQ_RUNTIME_PRODUCT_H

#include "runtime/member.h"

/* What is multiplied: n rows of n_cols numbers, `stride` apart. */
struct lmq_operand {
    const float *x;
    size_t n, n_cols, stride;
    unsigned char *packed; /* room for its quantized form */
    size_t packed_group;   /* of the form that is there; 0: none yet */
    enum lmq_rotation packed_rotation;
};

/* Who is shown what matrices are multiplied with, before they are. */
struct lmq_witness {
    void *context;
    /* Called by all members, one and the same product after the other: each
     * may take its share of the rows of x, which stay as they are until all
     * members have come back. */
    void (*see)(void *context, const struct lmq_member *member,
                const struct lmq_matrix *matrix,
                const struct lmq_operand *operand);
};

/* An operand of the member's tokens, its quantized form in work->packed. */
struct lmq_operand lmq_operand_of(const struct lmq_member *member,
                                  const float *x, size_t n_cols);

/* out (n, n_rows) = x times the matrix, without the bias. The operand is
 * quantized when the first int8 matrix asks for it, and shared by the others.
 * All members take part, and those who read `out` need a barrier. */
void lmq_multiply(const struct lmq_member *member,
                  const struct lmq_matrix *matrix,
                  struct lmq_operand *operand, float *out);

/* ---- Many products of different operands at a time ---- */

/* Whether the matrix wants its operand quantized. */
bool lmq_product_packs(const struct lmq_member *member,
                       const struct lmq_matrix *matrix);

/* Quantizes this thread's share of the operand for the matrix. `index` counts
 * the operands, so that short ones go to different threads. The product needs
 * a barrier in between. */
void lmq_operand_pack(const struct lmq_member *member,
                      const struct lmq_matrix *matrix,
                      const struct lmq_operand *operand, size_t index);

/* Products are shared out in tiles of 16 rows; this is what a whole product
 * of n rows of an operand costs. */
size_t lmq_product_cost(const struct lmq_matrix *matrix, size_t n);

/* A member's share [from, to) of the total cost of several products. `at` is
 * the cost of those that it has gone past. */
struct lmq_share {
    size_t at, from, to;
};

struct lmq_share lmq_share_begin(const struct lmq_member *member, size_t total);

/* This thread's tiles of the next product. The rows of `out` are out_stride
 * apart; the operand is packed if the matrix wants it. */
void lmq_share_product(const struct lmq_member *member, struct lmq_share *share,
                       const struct lmq_matrix *matrix,
                       const struct lmq_operand *operand, float *out,
                       size_t out_stride);

#endif
