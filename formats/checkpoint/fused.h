/*
 * fused.h - which of our matrices a source has in one, and where their rows
 * stand in it; and which rows of ours it has in another order. For taking
 * apart (split.c), and for putting together again (joined.c).
 */
#ifndef LMQ_FORMATS_CHECKPOINT_FUSED_H
#define LMQ_FORMATS_CHECKPOINT_FUSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/model/hparams.h"
#include "formats/model/names.h"

/* ---- What is fused ---- */

/* Some rows of a fused matrix: n from `first` on, or with a stride n in units
 * of so many rows. */
struct lmq_fused_rows {
    enum lmq_role role;
    uint64_t n, first, unit, stride;
};

#define LMQ_MOST_FUSED 5

/* How the rows of queries, keys and values follow each other. */
enum lmq_qkv_order {
    LMQ_QKV_ONE_BY_ONE, /* all queries, all keys, all values */
    LMQ_QKV_BY_HEAD,    /* a key head's queries, it, its values, and then the
                           next */
    LMQ_QKV_BY_QUARTER  /* a quarter of the queries, of the values, of the
                           keys, and then the next */
};

/* The parts of a fused matrix of attention, or of what is in its place, in a
 * layer: ATTN_QKV, DELTA_QKVZ, DELTA_BA, and ATTN_Q with its gate; and those of
 * DELTA_CONV, which files have apart. How many there are; 0: this layer has no
 * such matrix. */
size_t lmq_fused_rows(const struct lmq_hparams *hparams, size_t layer,
                      enum lmq_role fused, enum lmq_qkv_order order,
                      struct lmq_fused_rows parts[LMQ_MOST_FUSED]);

struct lmq_tensor;

/* The parts of a tensor that is several of a checkpoint (joined.h). */
struct lmq_joined {
    size_t n;
    struct lmq_fused_rows rows[LMQ_MOST_FUSED];
    const struct lmq_tensor *parts[LMQ_MOST_FUSED];
};

/* Which part has row `row`, and as which of its own; how many rows from there
 * on follow each other in both. */
const struct lmq_tensor *lmq_joined_find(const struct lmq_joined *joined,
                                         uint64_t row, uint64_t *own,
                                         uint64_t *n);

/* ---- What stands in another order ---- */

/* Rows from `first` on come in units of `size`, outer * inner of them: number
 * a * inner + b stands where b * outer + a would. inner 0: all stand where they
 * are. */
struct lmq_shuffle {
    uint64_t first, size, outer, inner;
};

/* Whether there is something to move, and it is all of n rows. */
bool lmq_shuffle_fits(const struct lmq_shuffle *shuffle, uint64_t n);

/* Where a row stands; the rows from it on that keep their neighbours; the way
 * back. */
uint64_t lmq_shuffle_row(const struct lmq_shuffle *shuffle, uint64_t row);
uint64_t lmq_shuffle_in_line(const struct lmq_shuffle *shuffle, uint64_t row);
struct lmq_shuffle lmq_shuffle_inverse(const struct lmq_shuffle *shuffle);

/* Where value heads of the delta rule are tiled: the first ones of all key
 * heads come first, and so on. The rows and the columns of a matrix that this
 * moves. */
void lmq_tiled_values(const struct lmq_hparams *hparams,
                      const struct lmq_place *place,
                      struct lmq_shuffle *rows, struct lmq_shuffle *columns);

#endif
