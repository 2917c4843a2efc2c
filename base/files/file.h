/*
 * file.h - files that are read exactly.
 */
#ifndef LMQ_BASE_FILE_H
#define LMQ_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/read_ranges.h"
#include "lmquant.h"

struct lmq_input;

/* Only regular files: a size is needed before anything is believed. */
enum lmq_status lmq_input_open(const char *path, struct lmq_input **out,
                               struct lmq_error *err);
void lmq_input_close(struct lmq_input *input);
uint64_t lmq_input_size(const struct lmq_input *input);
const char *lmq_input_path(const struct lmq_input *input);

/* Exactly n bytes at offset, or an error that says what the file lacks. Safe
 * from several threads. */
enum lmq_status lmq_input_read(struct lmq_input *input, uint64_t offset,
                               void *buffer, size_t n, struct lmq_error *err);

/* The whole file as memory, for as long as the input is open. A file that
 * shrinks meanwhile raises SIGBUS, and lmq_mapping_at() knows whose it is;
 * after lmq_input_copy() it is a copy, which nobody can shrink. */
void lmq_input_copy(struct lmq_input *input);
enum lmq_status lmq_input_map(struct lmq_input *input,
                              const unsigned char **bytes,
                              struct lmq_error *err);

/* The mapped range will be read, by several threads. What of it is not in
 * memory is read first, from its beginning to its end and, if it is much, in
 * large pages, where the system has these for files: what threads ask for here
 * and there stands in small pages from then on, which takes longer each
 * time. */
void lmq_input_expect(struct lmq_input *input, uint64_t at, uint64_t n);

/* The mapped range need not stay in memory; it can still be read. */
void lmq_input_forget(struct lmq_input *input, uint64_t offset, uint64_t n);

/*
 * Whether something stands there. False also if *status is a failure, or
 * becomes one because the system does not tell; so calls can be joined with
 * || and *status checked after the last.
 */
bool lmq_file_exists(const char *path, enum lmq_status *status,
                     struct lmq_error *err);
bool lmq_file_exists_in(const char *folder, const char *name,
                        enum lmq_status *status, struct lmq_error *err);

/* A whole small file; *out has a 0 behind the last byte and is freed with
 * free(). Larger than `most` bytes is refused. */
enum lmq_status lmq_file_load(const char *path, size_t most,
                              unsigned char **out, size_t *n,
                              struct lmq_error *err);

/* Which file stands at a path, and in which state: what a writer cannot leave
 * as it was. */
struct lmq_file_stamp {
    uint64_t device, inode, size;
    int64_t seconds, nanoseconds; /* of the last change */
};

enum lmq_status lmq_file_stamp(const char *path, struct lmq_file_stamp *stamp,
                               struct lmq_error *err);
/* LMQ_ERR_IO if the file at the path is another one, or was written to. */
enum lmq_status lmq_file_unchanged(const char *path,
                                   const struct lmq_file_stamp *stamp,
                                   struct lmq_error *err);

/*
 * CRC-32 of the whole file. After lmq_input_keep_digests() each read also
 * remembers the CRC of its range; lmq_input_digest() combines them and reads
 * only what nobody has read. So a conversion knows what it has converted
 * without reading it twice.
 */
void lmq_input_keep_digests(struct lmq_input *input);

/* What was read, for file_digest.c. */
struct lmq_read_ranges *lmq_input_read_ranges(struct lmq_input *input);

/* Those that were remembered since the last call, side by side joined: up to
 * the next call, *n of them. All that was read since is in them; what was read
 * in small pieces is read again for that. Nobody may read meanwhile. */
enum lmq_status lmq_input_ranges(struct lmq_input *input,
                                 const struct lmq_digest_range **ranges,
                                 size_t *n, struct lmq_error *err);
/* Extends *crc over so many bytes, which must be there, without remembering. */
enum lmq_status lmq_input_crc(struct lmq_input *input, uint64_t from,
                              uint64_t size, uint32_t *crc,
                              struct lmq_error *err);
/* One that another process has read. */
enum lmq_status lmq_input_know(struct lmq_input *input,
                               const struct lmq_digest_range *range,
                               struct lmq_error *err);
enum lmq_status lmq_input_digest(struct lmq_input *input, uint32_t *crc,
                                 struct lmq_error *err);

#endif
