/*
 * product.c - shares of products: who multiplies which rows.
 */
#include "config.h"

#include "runtime/product.h"

#include <string.h>

#include "base/size.h"
#include "base/threads/cpu.h"

struct lmq_operand
lmq_operand_of(const struct lmq_member *member, const float *x, size_t n_cols)
{
    return (struct lmq_operand){.x = x,
                                .n = member->n,
                                .n_cols = n_cols,
                                .stride = n_cols,
                                .packed = member->work->packed};
}

/* ---- Parts of a product ---- */

bool
lmq_product_packs(const struct lmq_member *member,
                  const struct lmq_matrix *matrix)
{
    return (matrix->is_int8 || matrix->rounding.block > 0) &&
           member->work->activations != LMQ_ACTIVATIONS_F32;
}

/* This thread's tokens as floats that are rounded already. */
static void
round_operand(const struct lmq_member *member,
              const struct lmq_rounding *rounding,
              const struct lmq_operand *operand, size_t index)
{
    float *rounded = (float *)(void *)operand->packed;

    for (size_t t = (member->number + index) % member->n_members;
         t < operand->n; t += member->n_members) {
        float *row = rounded + t * operand->n_cols;
        memcpy(row, operand->x + t * operand->stride,
               operand->n_cols * sizeof(*row));
        lmq_round_rows(rounding->operand, rounding->block, row, 1,
                       operand->n_cols);
    }
}

/* Activations of 8 bits are for the speed of long texts. They have 16 where
 * that costs none: where only the last token of a text comes. And in the
 * attention of the first layer, a hundredth of the work as a rule: all layers
 * hear of what is missed there. */
static enum lmq_bits
bits_of(const struct lmq_member *member)
{
    return member->work->activations == LMQ_ACTIVATIONS_Q16 || member->is_fine
               ? LMQ_BITS_16
               : LMQ_BITS_8;
}

static struct lmq_batch
batch_of(const struct lmq_member *member, const struct lmq_matrix *matrix,
         const struct lmq_operand *operand)
{
    return (struct lmq_batch){
        .n_tokens = operand->n,
        .n_cols = operand->n_cols,
        .group = matrix->tiles.group,
        .rotation = matrix->tiles.rotation,
        .bits = bits_of(member),
        .streams = member->work->reading.streams,
        .few = lmq_cpu_halves(),
        .data = operand->packed,
    };
}

/* Weights widened, 16 rows at a time: the product without rounding the
 * activations. Slow; for measuring where errors come from. */
static void
multiply_widened(const struct lmq_member *member,
                 const struct lmq_matrix *matrix,
                 const struct lmq_operand *operand, size_t from, size_t to,
                 float *out, size_t out_stride)
{
    for (size_t tile = from; tile < to; tile++) {
        size_t first = tile * LMQ_TILE_ROWS;
        size_t n_rows = lmq_size_min(LMQ_TILE_ROWS, matrix->n_rows - first);
        struct lmq_rows rows = {.data = member->own->widened,
                                .type = LMQ_ROW_F32,
                                .n_cols = matrix->n_cols,
                                .stride = matrix->n_cols * sizeof(float)};
        for (size_t i = 0; i < n_rows; i++)
            lmq_matrix_row(matrix, first + i,
                           member->own->widened + i * matrix->n_cols);
        member->kernels->rows_product(&rows, 0, n_rows, operand->x,
                                      operand->stride, operand->n,
                                      out + first, out_stride,
                                      member->own->scratch);
    }
}

static void
multiply_rows(const struct lmq_member *member, const struct lmq_matrix *matrix,
              const struct lmq_operand *operand, size_t from, size_t to,
              float *out, size_t out_stride)
{
    bool packs = lmq_product_packs(member, matrix);
    struct lmq_rows rows = matrix->rows;

    rows.parts = !member->work->reading.streams;
    member->kernels->rows_product(
        &rows, from, to,
        packs ? (const float *)(const void *)operand->packed : operand->x,
        packs ? operand->n_cols : operand->stride, operand->n, out, out_stride,
        member->own->scratch);
}

/* Tiles [from, to) of a matrix of int8. */
static void
multiply_tiles(const struct lmq_member *member,
               const struct lmq_matrix *matrix,
               const struct lmq_operand *operand, size_t from, size_t to,
               float *out, size_t out_stride)
{
    struct lmq_batch batch = batch_of(member, matrix, operand);

    if (!lmq_product_packs(member, matrix)) {
        multiply_widened(member, matrix, operand, from, to, out, out_stride);
        return;
    }
    while (from < to) { /* once, but for a matrix in several files */
        size_t first = from;
        const struct lmq_tiles *tiles = lmq_matrix_tiles(matrix, &first);
        size_t end = lmq_size_min(to, first + lmq_tiles_count(tiles->n_rows));
        member->kernels->product(tiles, from - first, end - first, &batch,
                                 out + first * LMQ_TILE_ROWS, out_stride,
                                 member->own->scratch);
        from = end;
    }
}

/* Tiles [from, to) of either kind of matrix. */
static void
multiply_part(const struct lmq_member *member, const struct lmq_matrix *matrix,
              const struct lmq_operand *operand, size_t from, size_t to,
              float *out, size_t out_stride)
{
    if (matrix->is_int8)
        multiply_tiles(member, matrix, operand, from, to, out, out_stride);
    else
        multiply_rows(member, matrix, operand, from * LMQ_TILE_ROWS,
                      lmq_size_min(to * LMQ_TILE_ROWS, matrix->n_rows), out,
                      out_stride);
}

static void
show(const struct lmq_member *member, const struct lmq_matrix *matrix,
     const struct lmq_operand *operand)
{
    const struct lmq_witness *witness = member->work->witness;

    if (witness != NULL)
        witness->see(witness->context, member, matrix, operand);
}

/* ---- One product ---- */

void
lmq_multiply(const struct lmq_member *member, const struct lmq_matrix *matrix,
             struct lmq_operand *operand, float *out)
{
    size_t from, to;

    show(member, matrix, operand);
    if (!matrix->is_int8 && !lmq_product_packs(member, matrix)) {
        lmq_member_share(member, matrix->n_rows, &from, &to);
        multiply_rows(member, matrix, operand, from, to, out, matrix->n_rows);
        return;
    }
    if (lmq_product_packs(member, matrix) &&
        (operand->packed_group != matrix->tiles.group ||
         operand->packed_rotation != matrix->tiles.rotation)) {
        lmq_barrier(member); /* nobody reads the old form any more */
        lmq_operand_pack(member, matrix, operand, 0);
        operand->packed_group = matrix->tiles.group;
        operand->packed_rotation = matrix->tiles.rotation;
        lmq_barrier(member); /* all read all of the new one */
    }
    lmq_member_share(member, lmq_tiles_count(matrix->n_rows), &from, &to);
    multiply_part(member, matrix, operand, from, to, out, matrix->n_rows);
}

/* ---- Many products ---- */

void
lmq_operand_pack(const struct lmq_member *member,
                 const struct lmq_matrix *matrix,
                 const struct lmq_operand *operand, size_t index)
{
    struct lmq_batch batch = batch_of(member, matrix, operand);

    if (!matrix->is_int8) {
        round_operand(member, &matrix->rounding, operand, index);
        return;
    }
    member->kernels->batch_pack(&batch, operand->x, operand->stride,
                                (member->number + index) % member->n_members,
                                member->n_members);
}

size_t
lmq_product_cost(const struct lmq_matrix *matrix, size_t n)
{
    return lmq_tiles_count(matrix->n_rows) * lmq_weight_cost(n);
}

struct lmq_share
lmq_share_begin(const struct lmq_member *member, size_t total)
{
    struct lmq_share share = {0};

    lmq_member_share(member, total, &share.from, &share.to);
    return share;
}

/* The first of n tiles, the first of which begins at the cost `begin`, that
 * begins at `cost` or later. */
static size_t
tile_at(size_t cost, size_t begin, size_t tile_cost, size_t n)
{
    if (cost <= begin)
        return 0;
    return lmq_size_min(n, (cost - begin + tile_cost - 1) / tile_cost);
}

void
lmq_share_product(const struct lmq_member *member, struct lmq_share *share,
                  const struct lmq_matrix *matrix,
                  const struct lmq_operand *operand, float *out,
                  size_t out_stride)
{
    size_t n = lmq_tiles_count(matrix->n_rows);
    size_t tile_cost = lmq_weight_cost(operand->n);
    size_t from = tile_at(share->from, share->at, tile_cost, n);
    size_t to = tile_at(share->to, share->at, tile_cost, n);

    show(member, matrix, operand);
    share->at += n * tile_cost;
    if (from >= to)
        return;
    if (member->work->waits_for_disk) /* an expert, for one */
        lmq_matrix_await(member->model, matrix);
    multiply_part(member, matrix, operand, from, to, out, out_stride);
}
