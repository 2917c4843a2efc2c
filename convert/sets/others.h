/*
 * others.h - what other processes have written of a set, each its file: who
 * calibrates a later part need not learn it again.
 */
#ifndef LMQ_CONVERT_SETS_OTHERS_H
#define LMQ_CONVERT_SETS_OTHERS_H

#include "convert/member_files.h"

struct lmq_others {
    struct lmq_output **outputs; /* of the plan's members; NULL: nothing */
    size_t n;
};

/* Fills in what they have done, in the plan; `own` is the member that is
 * written here, from 1, the header that of its journal. What cannot be read, or
 * is not as they say, is as if it were not there. To be freed even if it
 * fails. */
enum lmq_status lmq_others_find(struct lmq_others *others,
                                struct lmq_plan *plan, const json_t *header,
                                const struct lmq_member_files *files,
                                uint32_t own, struct lmq_error *err);
void lmq_others_free(struct lmq_others *others);

#endif
