/*
 * sha256.h - SHA-256, by whichever library configure found, or by none.
 */
#ifndef LMQ_BASE_SHA256_H
#define LMQ_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

#define LMQ_SHA256_SIZE 32

/* Whether there is one. All below but lmq_sha256_need() and
 * lmq_sha256_free() may be called only if there is. */
bool lmq_sha256_is_there(void);

/* LMQ_ERR_IO without one, with a hint how to build it in. */
enum lmq_status lmq_sha256_need(struct lmq_error *err);

/* One digest after the other; for one thread. NULL without memory. */
struct lmq_sha256;
struct lmq_sha256 *lmq_sha256_new(void);
void lmq_sha256_free(struct lmq_sha256 *sha);

void lmq_sha256_update(struct lmq_sha256 *sha, const void *bytes, size_t n);

/* Of all that came since the last one; the next begins here. */
enum lmq_status lmq_sha256_end(struct lmq_sha256 *sha,
                               unsigned char digest[LMQ_SHA256_SIZE],
                               struct lmq_error *err);

#endif
