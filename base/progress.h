/*
 * progress.h - tells the caller how far the work is, and asks whether to go
 * on.
 */
#ifndef LMQ_BASE_PROGRESS_H
#define LMQ_BASE_PROGRESS_H

#include "base/error.h"

static inline enum lmq_status
lmq_progress_report(const struct lmq_progress *progress, const char *stage,
                    uint64_t done, uint64_t total, struct lmq_error *err)
{
    if (progress != NULL && progress->report != NULL &&
        progress->report(progress->context, stage, done, total) != 0)
        return lmq_fail(err, LMQ_ERR_CANCELLED, 0, "interrupted");
    return LMQ_OK;
}

/* Whether the output may have its name. */
static inline enum lmq_status
lmq_progress_approve(const struct lmq_progress *progress,
                     const struct lmq_report *report, struct lmq_error *err)
{
    if (progress != NULL && progress->approve != NULL &&
        progress->approve(progress->context, report) != 0)
        return lmq_fail(err, LMQ_ERR_CANCELLED, 0, "not approved");
    return LMQ_OK;
}

#endif
