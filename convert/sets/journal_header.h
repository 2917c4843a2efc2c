/*
 * journal_header.h - the first line of a journal.
 */
#ifndef LMQ_CONVERT_SETS_JOURNAL_HEADER_H
#define LMQ_CONVERT_SETS_JOURNAL_HEADER_H

#include "convert/plan.h"

/* Version, options, sources and calibration, and a name of the plan, which
 * covers all; the rest is there to say what is different. As the plan is before
 * anything is restored; NULL after an error. */
json_t *lmq_journal_describe(const struct lmq_plan *plan,
                             struct lmq_error *err);

/* LMQ_ERR_ARG says in what two of them differ. */
enum lmq_status lmq_journal_compare(const json_t *own, const json_t *found,
                                    struct lmq_error *err);

/* Whether the sources were written when they had been written then. */
bool lmq_journal_has_times(const json_t *own, const json_t *found);

#endif
