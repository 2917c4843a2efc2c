/*
 * output.h - files that appear whole or not at all, and never in the place of
 * what they are made from.
 */
#ifndef LMQ_BASE_OUTPUT_H
#define LMQ_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/originals.h"
#include "lmquant.h"

struct lmq_output;

/*
 * Starts a file that will stand at `path` once it is committed. Until then it
 * has no name (or, where the file system cannot do that, a temporary one in
 * the same folder, which a later output in that folder removes if this program
 * is killed). Without `replace` an existing file is an error, now and at
 * commit; a symbolic link stays, what it names is replaced, and mode and, as
 * far as possible, owner and group stay too. One of `originals` (NULL: there
 * are none) is never replaced. `size` bytes are reserved at once, so a full
 * disk is found before the work.
 */
enum lmq_status lmq_output_create(const char *path, uint64_t size,
                                  bool replace,
                                  const struct lmq_originals *originals,
                                  struct lmq_output **out,
                                  struct lmq_error *err);

/* Whether the file could be created; to be asked before long work. */
enum lmq_status lmq_output_check(const char *path, bool replace,
                                 const struct lmq_originals *originals,
                                 struct lmq_error *err);

/* Whether two names lead to one file, or would. */
bool lmq_output_is_same(const char *a, const char *b);

/* Whether files of so many bytes together have room beside `path`. */
enum lmq_status lmq_output_check_space(const char *path, uint64_t size,
                                       struct lmq_error *err);

/* For a set: after its commit nothing stands at `path`, which may be so
 * already. Of a symbolic link what it leads to stays. */
enum lmq_status lmq_output_remove(const char *path,
                                  const struct lmq_originals *originals,
                                  struct lmq_output **out,
                                  struct lmq_error *err);

/* Safe from several threads for disjoint ranges. */
enum lmq_status lmq_output_write(struct lmq_output *output, uint64_t offset,
                                 const void *bytes, size_t n,
                                 struct lmq_error *err);

/* Flushes to the disk and gives the file its name. The output is closed in
 * any case. */
enum lmq_status lmq_output_commit(struct lmq_output *output,
                                  struct lmq_error *err);

/* All of a file at once. */
enum lmq_status lmq_output_put(const char *path, const void *bytes, size_t n,
                               bool replace,
                               const struct lmq_originals *originals,
                               struct lmq_error *err);

/* A commit of n outputs, in this order, all of them or none: after a failure
 * everything is as it was before. All are closed in any case. Until the first
 * has its name `progress`, which may be NULL, is asked whether to go on; behind
 * that nobody is. */
enum lmq_status lmq_output_commit_all(struct lmq_output *const *outputs,
                                      size_t n,
                                      const struct lmq_progress *progress,
                                      struct lmq_error *err);

/* The two halves of it, for who has to look at the folder between them: what
 * the first leaves open is the second's, or given up. From the end of the first
 * on nobody else names a set there, as long as outputs[0] is open, where there
 * are locks; it waits for who does. */
enum lmq_status lmq_output_seal_all(struct lmq_output *const *outputs,
                                    size_t n,
                                    const struct lmq_progress *progress,
                                    struct lmq_error *err);
enum lmq_status lmq_output_place_all(struct lmq_output *const *outputs,
                                     size_t n, struct lmq_error *err);

/* Leaves nothing behind. NULL is fine. */
void lmq_output_abort(struct lmq_output *output);

#endif
