/*
 * options.h - structures of options that callers of other releases fill in.
 */
#ifndef LMQ_BASE_OPTIONS_H
#define LMQ_BASE_OPTIONS_H

#include <stddef.h>

#include "lmquant.h"

/*
 * Copies what the caller gave, of the size that it says, into `own`, all of
 * which is defined then. NULL: the defaults. Size 0 stands for `first`, what
 * the structure was in release 0.2.0. A larger structure comes from a newer
 * header: LMQ_ERR_ARG if it sets what is not known here.
 *
 * A structure grows at its end, and by whole members: not into padding, which
 * older callers leave undefined.
 */
enum lmq_status lmq_options_take(void *own, size_t own_size, size_t first,
                                 const void *given, const char *name,
                                 struct lmq_error *err);

/* For a type that has not grown since. Of one that has, `first` is offsetof()
 * the first new member. */
#define LMQ_OPTIONS_TAKE(type, own, given, err)                               \
    lmq_options_take(own, sizeof(type), sizeof(type), given, #type, err)

#endif
