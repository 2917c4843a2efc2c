/*
 * copy_piece.h - pieces of a container's tensors, taken to another container
 * byte for byte.
 */
#ifndef LMQ_CONVERT_SETS_COPY_PIECE_H
#define LMQ_CONVERT_SETS_COPY_PIECE_H

#include "convert/piece.h"

/* Pieces end where what stands in one file of the source does: the row behind
 * it. */
uint64_t lmq_copy_end(const struct lmq_plan *plan, size_t record,
                      uint64_t row);

/* As lmq_piece_convert(). */
enum lmq_status lmq_copy_piece(const struct lmq_conversion *work,
                               struct lmq_piece *piece,
                               struct lmq_piece_worker *worker,
                               struct lmq_error *err);

/* The checksums of the source, as far as they are known. Zero to begin with,
 * and whenever a run of the source ends. */
struct lmq_copy_check {
    uint32_t crcs[LMQ_N_EXTENTS];
};

/* Adds a piece, one after the other; LMQ_ERR_FORMAT if it is the last of its
 * run and this is not what it was when it was written. */
enum lmq_status lmq_copy_check_piece(struct lmq_copy_check *check,
                                     const struct lmq_plan *plan,
                                     const struct lmq_piece *piece,
                                     struct lmq_error *err);

#endif
