/*
 * tie.c - finds tied embeddings.
 */
#include "config.h"

#include "convert/tie.h"

#include "base/error.h"

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
        lmq_checkpoint_are_equal(checkpoint, embedding, head, &is_equal, err);
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
