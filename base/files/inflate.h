/*
 * inflate.h - zlib's deflated bytes, of which both sizes are known.
 */
#ifndef LMQ_BASE_FILES_INFLATE_H
#define LMQ_BASE_FILES_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* What is deflated may grow by so much, and a little anyway: texts grow by 4 to
 * 20. Deflate itself could do 1032. So memory is asked for in proportion to the
 * file. */
#define LMQ_MAX_INFLATION 64
#define LMQ_FREE_INFLATION ((uint64_t)1 << 20)

bool lmq_inflation_is_fair(uint64_t stored_size, uint64_t size);

/* Exactly all of both: LMQ_ERR_FORMAT if bytes are left over, or room for more;
 * LMQ_ERR_NOMEM. What to say of it is the caller's business. Without a header,
 * as in zip archives, the stream is raw. Sizes fit in zlib's 32 bits. */
enum lmq_status lmq_inflate(const unsigned char *packed, size_t n_packed,
                            unsigned char *bytes, size_t n, bool has_header);

#endif
