/*
 * piece.h - a piece of a tensor: read, quantized, written.
 */
#ifndef LMQ_CONVERT_PIECE_H
#define LMQ_CONVERT_PIECE_H

#include "base/exact_sum.h"
#include "base/files/output.h"
#include "base/sha256.h"
#include "convert/plan.h"

/* What becomes what. */
struct lmq_conversion {
    struct lmq_plan *plan;
    struct lmq_output *const *outputs; /* of the members; NULL: not written */
    struct lmq_output *const *others;  /* likewise, as others have written them;
                                          NULL: nobody */
};

/* A rectangle of a tensor. */
struct lmq_piece {
    size_t part;   /* of the plan: where it goes */
    size_t record; /* of the plan */
    uint64_t row, column; /* the first */
    size_t n_rows, n_cols;
    bool is_last; /* of its part */
    bool is_illegal; /* integers that cannot be taken as they are */
    /* The result: */
    uint64_t sizes[LMQ_N_EXTENTS];
    uint32_t crcs[LMQ_N_EXTENTS];
    struct lmq_quant_stats stats; /* its sums are not looked at */
    struct lmq_exact_sum sum_sq, err_sq; /* of what rows have here */
    uint64_t n_zeroed;
    unsigned char *leaves; /* digests, if the container gets them */
};

/* One thread's buffers. */
struct lmq_piece_worker {
    struct lmq_sha256 *sha; /* with digests */
    struct lmq_scratch scratch;
    float *x;
    int8_t *q;
    float *scales;
    unsigned char *stored_scales;
    unsigned char *tile_values, *tile_scales;
};

static inline struct lmq_rectangle
lmq_piece_rectangle(const struct lmq_piece *piece)
{
    return (struct lmq_rectangle){piece->row, piece->column, piece->n_rows,
                                  piece->n_cols};
}

/* All that is done to a piece, with one thread's buffers. What it became is
 * written where the plan wants it, and filled in. Integers that cannot be taken
 * as they are end as is_illegal, and nothing of them is written. */
enum lmq_status lmq_piece_convert(const struct lmq_conversion *work,
                                  struct lmq_piece *piece,
                                  struct lmq_piece_worker *worker,
                                  struct lmq_error *err);

/* ---- For what else makes pieces ---- */

/* Bytes of so many rows and columns of a tensor, for all of which the plan has
 * room. */
struct lmq_run_sizes {
    uint64_t values, scales;
};
struct lmq_run_sizes lmq_piece_sizes(const struct lmq_record *record,
                                     uint64_t n_rows, uint64_t n_cols);

/* Bytes that a piece became, `at` bytes into an extent of its part. */
enum lmq_status lmq_piece_write(const struct lmq_conversion *work,
                                struct lmq_piece *piece, size_t extent,
                                const void *bytes, uint64_t at, uint64_t size,
                                struct lmq_error *err);

/* What cannot be rounded, and where its file has it. */
enum lmq_status lmq_piece_fail_nonfinite(const struct lmq_tensor *source,
                                         uint64_t element,
                                         struct lmq_error *err);

/* The leaves, if they are wanted, of the rows at worker->q and
 * worker->stored_scales. */
enum lmq_status lmq_piece_digest_rows(const struct lmq_conversion *work,
                                      struct lmq_piece *piece,
                                      struct lmq_piece_worker *worker,
                                      struct lmq_error *err);

#endif
