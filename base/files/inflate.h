/*
 * inflate.h - zlib's deflated bytes, of which both sizes are known.
 */
#ifndef LMQ_BASE_FILES_INFLATE_H
#define LMQ_BASE_FILES_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

/* Exactly all of both: LMQ_ERR_FORMAT if bytes are left over, or room for more;
 * LMQ_ERR_NOMEM. What to say of it is the caller's business. Without a header,
 * as in zip archives, the stream is raw. Sizes fit in zlib's 32 bits. */
enum lmq_status lmq_inflate(const unsigned char *packed, size_t n_packed,
                            unsigned char *bytes, size_t n, bool has_header);

#endif
