/*
 * originals.h - the files that something is made from, which no output may
 * replace.
 */
#ifndef LMQ_BASE_ORIGINALS_H
#define LMQ_BASE_ORIGINALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/file.h"
#include "lmquant.h"

/*
 * The files that something is made from, as they were when they were added.
 * They are known by device and number: links and other spellings of a name
 * lead to the same file.
 */
struct lmq_originals {
    struct lmq_original {
        char *path;
        struct lmq_file_stamp stamp;
        bool is_read; /* else it only belongs to what is read */
    } *files;
    size_t n, capacity;
};

/* Before a file that is read is opened: so what changes after that is seen.
 * Of the others, one that is not there is none. */
enum lmq_status lmq_originals_add(struct lmq_originals *originals,
                                  const char *path, bool is_read,
                                  struct lmq_error *err);
/* The same of a text, which may be "-": what standard input comes from may be
 * replaced no more than another, and is not looked at again. */
enum lmq_status lmq_originals_add_text(struct lmq_originals *originals,
                                       const char *path, bool is_read,
                                       struct lmq_error *err);
enum lmq_status lmq_originals_add_all(struct lmq_originals *originals,
                                      const struct lmq_originals *more,
                                      struct lmq_error *err);
/* Whether those that are read are still what they were: asked before anything
 * that was made of them gets its name. LMQ_ERR_IO if not. */
enum lmq_status lmq_originals_unchanged(const struct lmq_originals *originals,
                                        struct lmq_error *err);
/* The one with these numbers, or NULL; of NULL there is none. */
struct lmq_original *
lmq_originals_find(const struct lmq_originals *originals, uint64_t device,
                   uint64_t inode);
void lmq_originals_free(struct lmq_originals *originals);

#endif
