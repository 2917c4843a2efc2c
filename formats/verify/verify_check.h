/*
 * verify_check.h - a verification on its way, and its problems.
 */
#ifndef LMQ_FORMATS_VERIFY_CHECK_H
#define LMQ_FORMATS_VERIFY_CHECK_H

#include <jansson.h>

#include "base/progress.h"
#include "base/threads/tasks.h"
#include "formats/lmq/lmq.h"
#include "formats/verify/verify_digests.h"

/* Bytes that a worker has room for. */
#define LMQ_CHECK_CHUNK ((size_t)1 << 20)

struct lmq_check {
    /* Of the file that is looked at: */
    const char *file; /* its name, without folder */
    struct lmq_input *input;
    struct lmq_container container;
    struct lmq_workers workers; /* with LMQ_CHECK_CHUNK bytes each */
    bool has_digesting; /* its digests are computed */
    struct lmq_digesting digesting;
    /* Of all of them: */
    int threads;
    struct lmq_counter counter; /* bytes */
    uint64_t n_bytes, n_sections, n_tensors;
    uint32_t n_files;
    json_t *problems;
    bool can_digest;             /* and digests are looked at */
    const unsigned char *wanted; /* the digest that is asked for, or NULL */
    const char *matches;         /* what it is, or NULL */
    json_t *digests;             /* of the file that was named */
    struct lmq_digests *own; /* computed, of each file in turn */
    size_t n_own, own_capacity;
    bool lacks_content; /* it cannot be computed */
    struct lmq_error frame; /* why one cannot be opened; or LMQ_OK */
};

/* Something is wrong in the file that is looked at. */
void lmq_check_add(struct lmq_check *check, const char *section,
                   const char *name, uint64_t offset, const char *message);

#endif
