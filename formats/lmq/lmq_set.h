/*
 * lmq_set.h - the containers that make one model: one file, or the members of
 * a set, over which tensors may be cut by rows (lmq(5), "Sets of files").
 */
#ifndef LMQ_FORMATS_LMQ_LMQ_SET_H
#define LMQ_FORMATS_LMQ_LMQ_SET_H

#include "formats/lmq/lmq.h"

/* Rows of a tensor, and the member that they stand in: an index of the
 * checkpoint's files too. */
struct lmq_slice {
    const struct lmq_record *record;
    uint32_t member;
};

/* A tensor of the whole; lmq_tensor.number is its index. */
struct lmq_whole {
    const struct lmq_slice *pieces; /* row after row */
    size_t n_pieces;
    const struct lmq_whole *target; /* whose elements it has: of an alias, not
                                       its own */
};

struct lmq_set {
    struct lmq_container *members;
    size_t n_members, members_capacity;
    struct lmq_slice *pieces;
    size_t n_pieces;
    struct lmq_whole *wholes;
    size_t n_wholes;
};

/* Opens the container at the checkpoint's path and, if it is a member of a
 * set, all others, which stand beside it. *set is all zero, and freed even
 * if this fails. */
enum lmq_status lmq_set_open(struct lmq_checkpoint *checkpoint,
                             struct lmq_set *set, struct lmq_error *err);
void lmq_set_free(struct lmq_set *set);

/* The set behind a checkpoint, which must be one: for this room. */
const struct lmq_set *
lmq_checkpoint_set(const struct lmq_checkpoint *checkpoint);

/* What the source called the tensor of a record; NULL if nobody says. */
const char *lmq_set_stored_name(const struct lmq_set *set,
                                const struct lmq_slice *piece);

/* Whose elements a tensor has. */
const struct lmq_whole *
lmq_set_whole_of(const struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor);

/* The piece with this row of a whole, which has it. */
const struct lmq_slice *lmq_whole_find(const struct lmq_whole *whole,
                                       uint64_t row);

/* Reads the tensor's bytes and compares their checksums; LMQ_ERR_FORMAT if
 * they are damaged. */
enum lmq_status lmq_set_verify_tensor(const struct lmq_checkpoint *checkpoint,
                                      const struct lmq_tensor *tensor,
                                      struct lmq_error *err);

#endif
