/*
 * tie.h - is the head the embedding again?
 */
#ifndef LMQ_CONVERT_TIE_H
#define LMQ_CONVERT_TIE_H

#include <stdbool.h>

#include "formats/checkpoint/checkpoint.h"

struct lmq_tie_finding {
    bool is_tied;
    const char *rule; /* which fired: "configuration", "absence", "contents" */
};

/*
 * By configuration, by absence, and by contents, in this order. A
 * configuration that says tied beside a head that differs is an error; one
 * that says untied beside a missing or equal head gets a note.
 */
enum lmq_status lmq_tie_find(struct lmq_checkpoint *checkpoint,
                             struct lmq_tie_finding *finding,
                             struct lmq_notes *notes,
                             struct lmq_error *err);

#endif
