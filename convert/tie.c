/*
 * tie.c - finds tied embeddings.
 */
#include "config.h"

#include "convert/tie.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

#define CHUNK ((size_t)1 << 18)

/* Untied matrices differ in the first chunk, so this is cheap but for those
 * that are equal. */
static enum lmq_status
are_equal(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *a,
          const struct lmq_tensor *b, bool *is_equal, struct lmq_error *err)
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

static enum lmq_status
fail_contradiction(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_tensor *head, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "the configuration says that embedding and head are tied, but "
             "'%s' is there and differs",
             head->stored_name);
    lmq_hint(err, "correct tie_word_embeddings in config.json, or the weights");
    lmq_error_in(err, checkpoint->path);
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_tie_find(struct lmq_checkpoint *checkpoint, struct lmq_tie_finding *finding,
             struct lmq_notes *notes, struct lmq_error *err)
{
    const struct lmq_tensor *embedding = lmq_checkpoint_find(
        checkpoint, LMQ_ROLE_EMBEDDING, LMQ_PART_WEIGHT, -1);
    const struct lmq_tensor *head =
        lmq_checkpoint_find(checkpoint, LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1);
    enum lmq_tie declared = checkpoint->hparams.tie;
    bool is_equal;

    *finding = (struct lmq_tie_finding){false, ""};
    if (embedding == NULL || (head == NULL && !checkpoint->has_model))
        return LMQ_OK;
    if (head == NULL) {
        *finding = (struct lmq_tie_finding){
            true, declared == LMQ_TIE_YES ? "configuration" : "absence"};
        if (declared == LMQ_TIE_NO)
            lmq_notes_add(notes,
                          "the configuration says that the head is not "
                          "tied, but there is none: the embedding "
                          "serves as head");
        return LMQ_OK;
    }
    if (lmq_checkpoint_is_tied(checkpoint)) {
        *finding = (struct lmq_tie_finding){true, "configuration"};
        return LMQ_OK;
    }
    enum lmq_status status =
        are_equal(checkpoint, embedding, head, &is_equal, err);
    if (status != LMQ_OK)
        return status;
    if (is_equal) {
        *finding = (struct lmq_tie_finding){true, "contents"};
        if (declared == LMQ_TIE_NO)
            lmq_notes_add(notes,
                          "the configuration says that the head is not "
                          "tied, but it equals the embedding: stored "
                          "once");
    } else if (declared == LMQ_TIE_YES) {
        return fail_contradiction(checkpoint, head, err);
    }
    return LMQ_OK;
}
