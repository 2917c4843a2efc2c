/*
 * remedies.h - what would be done about each unit of a model that is judged.
 */
#ifndef LMQ_VALIDATE_REMEDIES_H
#define LMQ_VALIDATE_REMEDIES_H

#include "validate/job.h"
#include "validate/plan/units.h"
#include "validate/plan/variant.h"

struct lmq_remedy {
    const char *type;     /* "q4": what takes least of it, in that model */
    double bits;          /* of all its weights there */
    const char *encoding; /* as a rule has it: "q8", or "keep", what the source
                             has; NULL: there is no remedy */
    struct lmq_encoding_choice choice; /* of "q8" */
    double bits_then;     /* more than there are */
};

/* Of the units of a model in a file, *remedies (units->n), all zero. */
enum lmq_status lmq_remedies_find(const struct lmq_job *job,
                                  const struct lmq_checkpoint *judged,
                                  const struct lmq_units *units,
                                  struct lmq_remedy *remedies,
                                  struct lmq_error *err);

#endif
