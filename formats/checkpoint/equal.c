/*
 * equal.c - whether two tensors have the same elements, however they are
 * stored.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/checkpoint/checkpoint.h"

#define CHUNK ((size_t)1 << 18)

/* Two matrices mostly differ in the first chunk. */
enum lmq_status
lmq_checkpoint_are_equal(struct lmq_checkpoint *checkpoint,
                         const struct lmq_tensor *a,
                         const struct lmq_tensor *b, bool *is_equal,
                         struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    enum lmq_status status = LMQ_OK;

    *is_equal = a->n_dims == b->n_dims &&
                memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
    float *x = malloc(2 * CHUNK * sizeof(*x));
    if (x == NULL)
        return lmq_fail_nomem(err);
    for (uint64_t at = 0; at < a->n_elements && *is_equal; at += CHUNK) {
        size_t n = (size_t)lmq_u64_min(CHUNK, a->n_elements - at);
        status =
            lmq_checkpoint_read(checkpoint, a, at, n, x, &scratch, err);
        if (status == LMQ_OK)
            status = lmq_checkpoint_read(checkpoint, b, at, n, x + CHUNK,
                                         &scratch, err);
        if (status != LMQ_OK)
            break;
        *is_equal = memcmp(x, x + CHUNK, n * sizeof(*x)) == 0;
    }
    lmq_scratch_free(&scratch);
    free(x);
    return status;
}
