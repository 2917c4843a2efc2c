/*
 * convert.h - lmq_convert(), and what only who seals a set knows.
 */
#ifndef LMQ_CONVERT_CONVERT_H
#define LMQ_CONVERT_CONVERT_H

#include <jansson.h>

#include "lmquant.h"

/* With `seals`: what the parts were given, or NULL. */
enum lmq_status
lmq_convert_given(struct lmq_checkpoint *checkpoint, const char *output,
                  const struct lmq_convert_options *options, json_t *parts,
                  const struct lmq_progress *progress,
                  struct lmq_report **report, struct lmq_error *err);

#endif
