/*
 * name_conventions.h - how others call tensors. For names.c.
 */
#ifndef LMQ_FORMATS_MODEL_NAME_CONVENTIONS_H
#define LMQ_FORMATS_MODEL_NAME_CONVENTIONS_H

#include <stddef.h>

#include "formats/model/roles.h"

/* In which names a convention is written; all are read. */
enum {
    LMQ_WRITTEN_LLAMA = 1,
    LMQ_WRITTEN_MIXTRAL = 2,
    LMQ_WRITTEN_DELTA = 4,
    LMQ_WRITTEN_APERTUS = 8
};

/* A pattern has no prefixes and neither ".weight" nor ".bias"; with '!' or '='
 * at the end it is the whole name of a bias or of a weight. '#' stands for the
 * number of a layer, '@' for that of an expert or a head. */
struct lmq_convention {
    const char *pattern;
    enum lmq_role role;
    unsigned written; /* bits of the above */
};

/* The first that fits counts. */
extern const struct lmq_convention lmq_conventions[];
extern const size_t lmq_n_conventions;

#endif
