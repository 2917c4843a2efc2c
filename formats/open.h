/*
 * open.h - whether something can be opened; lmq_checkpoint_open() itself
 * stands in lmquant.h.
 */
#ifndef LMQ_FORMATS_OPEN_H
#define LMQ_FORMATS_OPEN_H

#include <stdbool.h>

#include "lmquant.h"

/* Whether the file or folder looks like a checkpoint of a known format. */
enum lmq_status lmq_checkpoint_recognises(const char *path, bool *is_known,
                                          struct lmq_error *err);

#endif
