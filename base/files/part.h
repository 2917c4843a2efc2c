/*
 * part.h - outputs that are made in several goes: what there is of them keeps
 * its name between one and the next.
 */
#ifndef LMQ_BASE_FILES_PART_H
#define LMQ_BASE_FILES_PART_H

#include "base/files/output.h"

#define LMQ_PART_ENDING ".part"

/* How far an earlier go came. */
enum lmq_part_stage {
    LMQ_PART_NONE,      /* there was none: what has the name is not ours */
    LMQ_PART_WRITING,
    LMQ_PART_COMMITTING /* the file may have its own name already */
};

/* What a file is known by, whatever it is called: when it was last written,
 * too, since numbers of files that are gone are given to new ones. All 0:
 * nothing. */
struct lmq_part_mark {
    uint64_t inode, size, seconds, nanoseconds;
};

/* What is known of an earlier go. */
struct lmq_part_state {
    enum lmq_part_stage stage;
    struct lmq_part_mark mark; /* of the file that may have its own name */
    bool was_whole; /* it had its size: one that has another is not ours */
};

enum lmq_status lmq_part_find_mark(const struct lmq_output *output,
                                   struct lmq_part_mark *mark,
                                   struct lmq_error *err);

/*
 * As lmq_output_create(), but until the commit the file is `path` with the
 * ending, and stays there when it is given up. *is_there: it has been begun,
 * with this size; else it is empty. One that was being committed gets its
 * former name again, if it is still what it was: another file of its name
 * stays.
 */
enum lmq_status lmq_part_open(const char *path, uint64_t size, bool replace,
                              const struct lmq_part_state *state,
                              const struct lmq_originals *originals,
                              struct lmq_output **out, bool *is_there,
                              struct lmq_error *err);

/* What another process makes of that path, only to be read: NULL if it is not
 * there with this size. */
enum lmq_status lmq_part_look(const char *path, uint64_t size,
                              struct lmq_output **out, struct lmq_error *err);

/* Whether there is no file of that name, which would be somebody's. */
enum lmq_status lmq_part_check_none(const char *path, struct lmq_error *err);

/* What was begun now will not stay when it is given up. */
void lmq_part_forget(struct lmq_output *output);

/* Bytes of the disk that opening it will want: 0 if it has been begun. */
uint64_t lmq_part_room(const char *path, uint64_t size);

/* Exactly n bytes of what was written. */
enum lmq_status lmq_part_read(struct lmq_output *output, uint64_t offset,
                              void *bytes, size_t n, struct lmq_error *err);

/* Its name while it is made, for messages. */
const char *lmq_part_name(const struct lmq_output *output);

/* All that was written is on the disk. */
enum lmq_status lmq_part_sync(struct lmq_output *output,
                              struct lmq_error *err);

#endif
