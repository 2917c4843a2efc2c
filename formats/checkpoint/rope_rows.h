/*
 * rope_rows.h - the order of the rows that RoPE turns.
 *
 * Ours is halves: of a head with n such rows, row i goes with row i + n / 2.
 * Some files have pairs instead: row 2 i goes with row 2 i + 1. Some turn the
 * other way, which is ours with the two halves changing places.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_ROPE_ROWS_H
#define LMQ_FORMATS_CHECKPOINT_ROPE_ROWS_H

#include "formats/model/hparams.h"
#include "formats/model/names.h"

/* Of the head_dim rows of a head RoPE takes n from `first` on; n 0: none. */
struct lmq_rope_rows {
    uint32_t head_dim, first, n;
    bool stands_last; /* ours are the first of a head, stored are the last */
    bool has_halves; /* and these as halves */
    bool turns_back; /* stored as halves that have changed places */
    bool to_pairs;   /* the other way: of what is stored in halves the pairs */
};

/* Those of a tensor; what recurrent layers call queries and keys does not
 * turn. */
struct lmq_rope_rows lmq_rope_rows(const struct lmq_hparams *hparams,
                                   const struct lmq_place *place);

/* Of what chooses positions, which may turn in another way than the rest. */
struct lmq_rope_rows lmq_rope_index_rows(const struct lmq_hparams *hparams,
                                         const struct lmq_place *place,
                                         bool has_halves, bool stands_last);

/* The same of columns, of what looks at heads whose values turn. */
struct lmq_rope_rows lmq_rope_columns(const struct lmq_hparams *hparams,
                                      const struct lmq_place *place);

/* Where a row in halves is stored; where a row in pairs stands in halves. */
uint64_t lmq_rope_row_stored(const struct lmq_rope_rows *rows, uint64_t row);
uint64_t lmq_rope_row_to_halves(const struct lmq_rope_rows *rows,
                                uint64_t row);

/* Rows from this one on that keep their neighbours in either order. */
uint64_t lmq_rope_rows_in_line(const struct lmq_rope_rows *rows, uint64_t row);

#endif
