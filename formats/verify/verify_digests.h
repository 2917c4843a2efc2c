/*
 * verify_digests.h - computes the digests of a container from its bytes.
 */
#ifndef LMQ_FORMATS_VERIFY_DIGESTS_H
#define LMQ_FORMATS_VERIFY_DIGESTS_H

#include "base/threads/tasks.h"
#include "formats/lmq/lmq_digests.h"

/* Threads and what they work with, for one tensor after the other. */
struct lmq_digesting {
    struct lmq_workers workers;
    struct lmq_gather gather;
};

/* For files of so many bytes; LMQ_ERR_IO without a library. To be closed also
 * if this fails. */
enum lmq_status lmq_digesting_open(struct lmq_digesting *digesting,
                                   uint64_t n_bytes, int threads,
                                   struct lmq_error *err);
void lmq_digesting_close(struct lmq_digesting *digesting);

/* Rows of a tensor in a file, and where the digests of their chunks go: NULL
 * if nobody wants them. */
struct lmq_digest_part {
    struct lmq_input *input;
    const struct lmq_record *record;
    unsigned char *chunks;
};

/* Of one tensor of a known kind that is no alias, from its parts, row after
 * row. No digest tells what tiles are filled up with. */
enum lmq_status lmq_digesting_tensor(struct lmq_digesting *digesting,
                                     const struct lmq_digest_part *parts,
                                     size_t n_parts, unsigned chunk_log2,
                                     unsigned char digest[LMQ_SHA256_SIZE],
                                     struct lmq_error *err);

/* The content of a container or a set, of each member of which the tensors'
 * digests are given; rows of tensors that are cut are read again. */
enum lmq_status
lmq_verify_content(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_digests *const *members, int threads,
                   unsigned char content[LMQ_SHA256_SIZE],
                   struct lmq_error *err);

/* The root, of a file that has one. */
enum lmq_status lmq_verify_root(struct lmq_input *input,
                                const struct lmq_container *container,
                                unsigned char root[LMQ_SHA256_SIZE],
                                struct lmq_error *err);

#endif
