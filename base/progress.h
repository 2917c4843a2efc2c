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

/* How far a long work is. */
struct lmq_counter {
    const struct lmq_progress *progress;
    const char *stage;
    uint64_t done, total; /* what is done twice may go beyond the total */
};

static inline enum lmq_status
lmq_counter_report(const struct lmq_counter *counter, struct lmq_error *err)
{
    uint64_t done =
        counter->done < counter->total ? counter->done : counter->total;

    return lmq_progress_report(counter->progress, counter->stage, done,
                               counter->total, err);
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
