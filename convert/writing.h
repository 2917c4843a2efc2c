/*
 * writing.h - from a plan to files: what all that write containers share.
 */
#ifndef LMQ_CONVERT_WRITING_H
#define LMQ_CONVERT_WRITING_H

#include "convert/member_files.h"
#include "convert/plan.h"
#include "convert/sets/others.h"

struct lmq_writing {
    struct lmq_plan *plan;
    struct lmq_member_files *files; /* named */
    const char *output;
    bool replaces;
    bool resumes; /* goes on with what was begun, and can be gone on with */
    uint32_t part; /* the member that is written alone, from 1; 0: all */
    bool seals; /* all members have been written so */
    json_t *given; /* to the conversion, for the journal */
    int threads;
    const struct lmq_progress *progress;
    struct lmq_report **report; /* or NULL: none is wanted */
    /* Makes it, when all is known. */
    json_t *(*describe)(const struct lmq_writing *writing);
    uint64_t n_zeroed; /* found on the way */
    struct lmq_others others; /* of a part that is calibrated */
};

/* All files of the plan appear, or none; of a part none, until the set is
 * sealed. */
enum lmq_status lmq_writing_run(struct lmq_writing *writing,
                                struct lmq_error *err);

/* Whether something was begun of the output, and waits to be gone on with. */
bool lmq_writing_has_begun(const char *output, enum lmq_status *status,
                           struct lmq_error *err);

/* For reports: {"name", "bytes", "tensors"} of each file, and all bytes. */
json_t *lmq_writing_files(const struct lmq_plan *plan,
                          const struct lmq_member_files *files);
uint64_t lmq_writing_size(const struct lmq_plan *plan);

#endif
