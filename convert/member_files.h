/*
 * member_files.h - the files of a plan: how they are called, what stands in
 * their way, and that all of them appear or none.
 */
#ifndef LMQ_CONVERT_MEMBER_FILES_H
#define LMQ_CONVERT_MEMBER_FILES_H

#include "base/files/output.h"
#include "base/files/part.h"
#include "convert/plan.h"

struct lmq_member_files {
    char **paths; /* of the plan's members */
    size_t n_paths;
    struct lmq_output **outputs; /* theirs, then what takes older ones away */
    size_t n_outputs, capacity;
};

/* Whether the output could be written; to be asked before long work. */
enum lmq_status lmq_member_files_check(const char *output, bool is_set,
                                       bool replaces,
                                       const struct lmq_originals *originals,
                                       struct lmq_error *err);

/* The paths. *files is all zero, and freed even if this fails. */
enum lmq_status lmq_member_files_name(struct lmq_member_files *files,
                                      const struct lmq_plan *plan,
                                      const char *output,
                                      struct lmq_error *err);

/* Starts the outputs. */
enum lmq_status lmq_member_files_create(struct lmq_member_files *files,
                                        const struct lmq_plan *plan,
                                        const char *output, bool replaces,
                                        struct lmq_error *err);

/* Starts them, or goes on with what was begun (base/files/part.h): all, or
 * only `member`, from 1 on; the others stay NULL. states[i]: how far it came;
 * is_there[i]: it was. After a failure what was begun now does not stay. */
enum lmq_status lmq_member_files_resume(struct lmq_member_files *files,
                                        const struct lmq_plan *plan,
                                        const char *output, uint32_t member,
                                        bool replaces,
                                        const struct lmq_part_state *states,
                                        bool *is_there,
                                        struct lmq_error *err);

/* All get their names, and members of other sets go (without `replaces` they
 * are LMQ_ERR_IO); or nothing changes. */
enum lmq_status lmq_member_files_commit(struct lmq_member_files *files,
                                        const struct lmq_plan *plan,
                                        const char *output, bool replaces,
                                        const struct lmq_progress *progress,
                                        struct lmq_error *err);
void lmq_member_files_free(struct lmq_member_files *files);

#endif
