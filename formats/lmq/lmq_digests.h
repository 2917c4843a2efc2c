/*
 * lmq_digests.h - the digests (SHA-256) of a container: of its tensors, of the
 * file, and of what it holds whatever the file looks like (lmq(5), "Digests").
 *
 * A tensor is hashed in leaves, rectangles of its rows that do not depend on
 * how it is stored: 16 rows, or where they are longer than 8192 elements, 8192
 * elements of one. Chunks of leaves make the digests that the file holds, all
 * of them that of the tensor.
 */
#ifndef LMQ_FORMATS_LMQ_LMQ_DIGESTS_H
#define LMQ_FORMATS_LMQ_LMQ_DIGESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "formats/lmq/lmq.h"

#define LMQ_DIGESTS_HEADER 80
#define LMQ_DIGESTS_ROOT 16 /* where it stands in the section */
#define LMQ_CHUNK_LOG2 22
#define LMQ_CHUNK_LOG2_MIN 20
#define LMQ_CHUNK_LOG2_MAX 26

/* Of a container. */
struct lmq_digests {
    unsigned chunk_log2; /* elements of a chunk, at most */
    uint64_t n;          /* chunks of all records */
    unsigned char root[LMQ_SHA256_SIZE], content[LMQ_SHA256_SIZE];
    unsigned char *chunks;  /* (n, LMQ_SHA256_SIZE), in the order of records */
    uint64_t *first;        /* of each record */
    size_t n_records;
    unsigned char *tensors; /* (n_records, LMQ_SHA256_SIZE), if computed */
};

/* Room for those of the records; released also if this fails. */
enum lmq_status lmq_digests_make(const struct lmq_record *records,
                                 size_t n_records, unsigned chunk_log2,
                                 struct lmq_digests *digests,
                                 struct lmq_error *err);
void lmq_digests_free(struct lmq_digests *digests);

/* Chunks of the rows that stand in the file. */
uint64_t lmq_count_chunks(const struct lmq_record *record,
                          unsigned chunk_log2);

/* The section, and back; *bytes is freed with free(). */
uint64_t lmq_digests_size(const struct lmq_digests *digests);
enum lmq_status lmq_digests_store(const struct lmq_digests *digests,
                                  unsigned char **bytes,
                                  struct lmq_error *err);
enum lmq_status lmq_digests_load(const unsigned char *bytes, size_t size,
                                 const struct lmq_record *records,
                                 size_t n_records,
                                 struct lmq_digests *digests,
                                 struct lmq_error *err);

/* ---- Pieces and leaves ---- */

/* A part of a tensor that is worked on at once, so many elements at most:
 * whole leaves, as the layout has them side by side. */
#define LMQ_PIECE ((size_t)1 << 17)
#define LMQ_PIECE_LEAVES 64

struct lmq_rectangle {
    uint64_t row, column; /* the first */
    size_t n_rows, n_cols;
};

/* The piece that begins at (row, column), and where the next one begins;
 * *row is n_rows behind the last. */
struct lmq_rectangle lmq_rectangle_at(enum lmq_layout layout, uint64_t n_rows,
                                  uint64_t n_cols, uint64_t row,
                                  uint64_t column);
void lmq_rectangle_next(const struct lmq_rectangle *piece, uint64_t n_cols,
                    uint64_t *row, uint64_t *column);

/* What a leaf is made from: row after row, as the layout `rows` has them. */
struct lmq_digest_rows {
    const void *values;
    size_t value_size;
    const void *scales; /* of q8 */
    size_t scale_size, group_size;
};

/* The leaves of a piece of a tensor with so many columns, row after row: of
 * those above LMQ_PIECE_LEAVES at most. */
size_t lmq_count_leaves(const struct lmq_rectangle *piece, uint64_t n_cols);
enum lmq_status
lmq_piece_digest(struct lmq_sha256 *sha, const struct lmq_rectangle *piece,
                 uint64_t n_cols, const struct lmq_digest_rows *rows,
                 unsigned char *leaves,
                 struct lmq_error *err);

/* ---- From leaves to tensors ---- */

/* One tensor after the other, of each its parts, if it stands in several
 * files, and of these the pieces in their order. Zero to begin with. */
struct lmq_gather {
    struct lmq_sha256 *chunk, *tensor;
    uint64_t n_cols, n_leaves, chunk_leaves;
    bool is_across; /* pieces of tiles come across the order of leaves */
    unsigned char *strip; /* where they wait for their turn */
    unsigned char *next;  /* where the next digest of a chunk goes */
    unsigned char *whole; /* and that of the tensor */
};

void lmq_gather_free(struct lmq_gather *gather);
/* The digest of the tensor will stand at `whole`. */
enum lmq_status lmq_gather_begin(struct lmq_gather *gather,
                                 const struct lmq_record *record,
                                 unsigned chunk_log2, unsigned char *whole,
                                 struct lmq_error *err);
/* Those of the chunks of a part will stand from `chunks` on, if that is not
 * NULL. */
void lmq_gather_begin_part(struct lmq_gather *gather, unsigned char *chunks);
enum lmq_status lmq_gather_add(struct lmq_gather *gather,
                               const struct lmq_rectangle *piece,
                               const unsigned char *leaves,
                               struct lmq_error *err);
enum lmq_status lmq_gather_end_part(struct lmq_gather *gather,
                                    struct lmq_error *err);
enum lmq_status lmq_gather_end(struct lmq_gather *gather,
                               struct lmq_error *err);

/* ---- lmq_content.c: of the file, and of what it holds ---- */

/* An embedded file, inflated. */
struct lmq_file_digest {
    const char *name;
    uint64_t size;
    unsigned char digest[LMQ_SHA256_SIZE];
};

/* Of bytes in memory. */
enum lmq_status lmq_digest_bytes(const void *bytes, size_t n,
                                 unsigned char digest[LMQ_SHA256_SIZE],
                                 struct lmq_error *err);

/* A tensor of the whole: an alias has the record and the digest of what it
 * stands for, since it could be stored as well. */
struct lmq_tensor_digest {
    const char *name;
    const struct lmq_record *record;
    const unsigned char *digest;
};

/* From tensors and files, which it sorts, and the description (NULL: there is
 * none). */
enum lmq_status lmq_content_digest(struct lmq_tensor_digest *tensors,
                                   size_t n_tensors, const json_t *model,
                                   struct lmq_file_digest *files,
                                   size_t n_files,
                                   unsigned char content[LMQ_SHA256_SIZE],
                                   struct lmq_error *err);

/* From the superblock and the table as they are stored, of each section its
 * digest (that of DIGESTS is not looked at), and the section of digests. */
enum lmq_status
lmq_root_digest(const unsigned char superblock[LMQ_SUPERBLOCK_SIZE],
                const unsigned char *table, size_t n_sections,
                const unsigned char *sections, const unsigned char *bytes,
                size_t size, unsigned char root[LMQ_SHA256_SIZE],
                struct lmq_error *err);

/* "sha256:" and 64 digits. */
#define LMQ_DIGEST_TEXT 72
void lmq_digest_print(const unsigned char digest[LMQ_SHA256_SIZE],
                      char text[LMQ_DIGEST_TEXT]);

#endif
