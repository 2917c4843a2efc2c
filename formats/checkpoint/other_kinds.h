/*
 * other_kinds.h - what a file is that is no checkpoint.
 */
#ifndef LMQ_FORMATS_CHECKPOINT_OTHER_KINDS_H
#define LMQ_FORMATS_CHECKPOINT_OTHER_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

/* Whether it begins like a file of a known other kind: a pointer of Git LFS, a
 * web page. Then the error, LMQ_ERR_UNSUPPORTED, says which. */
bool lmq_fail_other_kind(const unsigned char *head, size_t n,
                         struct lmq_error *err);

#endif
