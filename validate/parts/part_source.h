/*
 * part_source.h - what tells a model of one part from that of another.
 */
#ifndef LMQ_VALIDATE_PART_SOURCE_H
#define LMQ_VALIDATE_PART_SOURCE_H

#include <jansson.h>

#include "formats/checkpoint/checkpoint.h"

/* An object; NULL without memory, or if *err says what could not be read. */
json_t *lmq_part_source(const struct lmq_checkpoint *file,
                        struct lmq_error *err);

#endif
