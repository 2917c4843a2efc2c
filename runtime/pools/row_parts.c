/*
 * row_parts.c - products with a matrix for each part of a row: of each head, or
 * of some heads together.
 */
#include "config.h"

#include "runtime/pools/row_parts.h"

/* Part i's operand. Each part has room of its own for the quantized form, as
 * all are packed before one barrier. */
static struct lmq_operand
part_operand(const struct lmq_member *member, size_t i, size_t n_parts,
             const float *x, size_t x_width, size_t n_cols)
{
    struct lmq_operand operand = lmq_operand_of(member, x, n_cols);

    operand.x += i * x_width;
    operand.stride = n_parts * x_width;
    operand.packed += i * member->n * lmq_packed_bytes(n_cols);
    return operand;
}

void
lmq_multiply_parts(const struct lmq_member *member,
                   const struct lmq_matrix *matrices, size_t n_parts,
                   const float *x, size_t x_width, float *out,
                   size_t out_width)
{
    size_t total = 0;

    lmq_barrier(member); /* nobody reads what was quantized before */
    for (size_t i = 0; i < n_parts; i++) {
        const struct lmq_matrix *matrix = &matrices[i];
        struct lmq_operand operand =
            part_operand(member, i, n_parts, x, x_width, matrix->n_cols);
        if (lmq_product_packs(member, matrix))
            lmq_operand_pack(member, matrix, &operand, i);
        total += lmq_product_cost(matrix, member->n);
    }
    lmq_barrier(member); /* all read what is quantized */
    struct lmq_share share = lmq_share_begin(member, total);
    for (size_t i = 0; i < n_parts; i++) {
        struct lmq_operand operand = part_operand(
            member, i, n_parts, x, x_width, matrices[i].n_cols);
        lmq_share_product(member, &share, &matrices[i], &operand,
                          out + i * out_width, n_parts * out_width);
    }
}
