/*
 * verify_digests.h - computes the digests of a container from its bytes.
 */
#ifndef LMQ_FORMATS_VERIFY_DIGESTS_H
#define LMQ_FORMATS_VERIFY_DIGESTS_H

#include "base/tasks.h"
#include "formats/lmq/lmq_digests.h"

/* What is computed, of an open container. */
struct lmq_digesting {
    struct lmq_input *input;
    const struct lmq_container *container;
    struct lmq_workers workers;
    struct lmq_gather gather;
    struct lmq_digests digests;
};

/* LMQ_ERR_IO without a library. To be closed also if this fails. */
enum lmq_status lmq_digesting_open(struct lmq_digesting *digesting,
                                   struct lmq_input *input,
                                   const struct lmq_container *container,
                                   int threads, struct lmq_error *err);
void lmq_digesting_close(struct lmq_digesting *digesting);

/* One tensor of a known kind that is no alias. *is_padded is false if its
 * tiles are filled up with something else than they must be, which no digest
 * would tell. */
enum lmq_status lmq_digesting_tensor(struct lmq_digesting *digesting,
                                     size_t index, bool *is_padded,
                                     struct lmq_error *err);

/* Behind all tensors: the content, and the root if the file has one. */
enum lmq_status lmq_digesting_content(struct lmq_digesting *digesting,
                                      struct lmq_error *err);
enum lmq_status lmq_digesting_root(struct lmq_digesting *digesting,
                                   struct lmq_error *err);

#endif
