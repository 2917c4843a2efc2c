/*
 * sha256.c - nettle, libcrypto, or neither.
 *
 * A library may fail in any call, for want of memory; that is kept until
 * lmq_sha256_end(), so that callers check in one place.
 */
#include "config.h"

#include "base/sha256.h"

#include <stdlib.h>

#include "base/error.h"

#if defined(LMQ_HAVE_NETTLE)
#include <nettle/sha2.h>
#elif defined(LMQ_HAVE_LIBCRYPTO)
#include <openssl/evp.h>
#endif

bool
lmq_sha256_is_there(void)
{
#if defined(LMQ_HAVE_NETTLE) || defined(LMQ_HAVE_LIBCRYPTO)
    return true;
#else
    return false;
#endif
}

enum lmq_status
lmq_sha256_need(struct lmq_error *err)
{
    if (lmq_sha256_is_there())
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0,
             "this lmquant was built without a library for SHA-256");
    lmq_hint(err, "install nettle or libcrypto (Debian: nettle-dev, "
                  "libssl-dev), configure and build again");
    return LMQ_ERR_IO;
}

#if defined(LMQ_HAVE_NETTLE)

struct lmq_sha256 {
    struct sha256_ctx context;
};

struct lmq_sha256 *
lmq_sha256_new(void)
{
    struct lmq_sha256 *sha = malloc(sizeof(*sha));

    if (sha != NULL)
        sha256_init(&sha->context);
    return sha;
}

void
lmq_sha256_free(struct lmq_sha256 *sha)
{
    free(sha);
}

void
lmq_sha256_update(struct lmq_sha256 *sha, const void *bytes, size_t n)
{
    sha256_update(&sha->context, n, bytes);
}

enum lmq_status
lmq_sha256_end(struct lmq_sha256 *sha, unsigned char digest[LMQ_SHA256_SIZE],
               struct lmq_error *err)
{
    (void)err;
    sha256_digest(&sha->context, LMQ_SHA256_SIZE, digest);
    return LMQ_OK;
}

#elif defined(LMQ_HAVE_LIBCRYPTO)

struct lmq_sha256 {
    EVP_MD_CTX *context;
    bool has_failed;
};

/* With an explicit NULL for the kind, the one that is set is taken again. */
static void
begin(struct lmq_sha256 *sha, const EVP_MD *kind)
{
    sha->has_failed = EVP_DigestInit_ex(sha->context, kind, NULL) != 1;
}

struct lmq_sha256 *
lmq_sha256_new(void)
{
    struct lmq_sha256 *sha = calloc(1, sizeof(*sha));

    if (sha == NULL)
        return NULL;
    sha->context = EVP_MD_CTX_new();
    if (sha->context != NULL)
        begin(sha, EVP_sha256());
    if (sha->context == NULL || sha->has_failed) {
        lmq_sha256_free(sha);
        return NULL;
    }
    return sha;
}

void
lmq_sha256_free(struct lmq_sha256 *sha)
{
    if (sha != NULL)
        EVP_MD_CTX_free(sha->context);
    free(sha);
}

void
lmq_sha256_update(struct lmq_sha256 *sha, const void *bytes, size_t n)
{
    if (!sha->has_failed && EVP_DigestUpdate(sha->context, bytes, n) != 1)
        sha->has_failed = true;
}

enum lmq_status
lmq_sha256_end(struct lmq_sha256 *sha, unsigned char digest[LMQ_SHA256_SIZE],
               struct lmq_error *err)
{
    bool has_failed = sha->has_failed ||
                      EVP_DigestFinal_ex(sha->context, digest, NULL) != 1;

    begin(sha, NULL);
    return has_failed ? lmq_fail_nomem(err) : LMQ_OK;
}

#else

/* Nobody comes here: lmq_sha256_need() is asked first. */

struct lmq_sha256 *
lmq_sha256_new(void)
{
    return NULL;
}

void
lmq_sha256_free(struct lmq_sha256 *sha)
{
    (void)sha;
}

void
lmq_sha256_update(struct lmq_sha256 *sha, const void *bytes, size_t n)
{
    (void)sha;
    (void)bytes;
    (void)n;
}

enum lmq_status
lmq_sha256_end(struct lmq_sha256 *sha, unsigned char digest[LMQ_SHA256_SIZE],
               struct lmq_error *err)
{
    (void)sha;
    (void)digest;
    return lmq_sha256_need(err);
}

#endif
