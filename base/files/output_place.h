/*
 * output_place.h - what an output knows until it is committed.
 */
#ifndef LMQ_BASE_FILES_OUTPUT_PLACE_H
#define LMQ_BASE_FILES_OUTPUT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/files/originals.h"
#include "lmquant.h"

struct lmq_output {
    int fd; /* -1: there is no file, what stands there is removed */
    bool replace;
    bool is_placed;
    const struct lmq_originals *originals;
    char *path;   /* where it will stand, symbolic links followed */
    char *folder;
    char *temporary; /* its present name, or NULL while it has none */
    bool keeps; /* that, when it is given up (part.h) */
    _Atomic uint64_t n_written; /* in all, whatever was written again */
    char *old;  /* what stood there, until the whole set is in place */
    int old_fd; /* locks it */
    char *lock; /* of the folder, while a set gets its names */
    int lock_fd;
};

/* An output with its place, but no file yet; what stands there is not looked
 * at. */
enum lmq_status lmq_output_place(const char *path, bool replace,
                                 const struct lmq_originals *originals,
                                 struct lmq_output **out,
                                 struct lmq_error *err);

/* Whether it may still stand at its path: asked before the work, and again at
 * commit. */
enum lmq_status lmq_output_check_target(const struct lmq_output *output,
                                        struct lmq_error *err);

#endif
