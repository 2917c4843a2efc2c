/*
 * foresee.c - what a conversion can tell of the trouble that waits behind it.
 */
#include "config.h"

#include "convert/foresee.h"

#include "base/error.h"
#include "base/size.h"
#include "runtime/tokenizer/tokenizer.h"

/* Embeddings have some rows more than there are tokens, so that their number
 * is a round one; this many are still usual (Phi 1.5: 905 of 51200). */
static size_t
usual_padding(size_t n_rows)
{
    size_t share = n_rows / 32;

    return share < 256 ? 256 : share;
}

static void
note_what_cannot_run(const struct lmq_checkpoint *checkpoint,
                     struct lmq_notes *notes)
{
    const struct lmq_hparams *h = &checkpoint->hparams;

    if (checkpoint->has_model && h->unsupported[0] == '\0')
        return;
    lmq_notes_add(notes,
                  "cannot be run: %s is not understood; it can be "
                  "inspected and compared",
                  h->unsupported[0] == '\0' ? "the model"
                                            : h->unsupported);
}

static enum lmq_status
check_kind(const struct lmq_checkpoint *checkpoint, bool is_forced,
           struct lmq_tokenizer **tokenizer, struct lmq_notes *notes,
           struct lmq_error *err)
{
    struct lmq_error why = {0};
    char text[LMQ_ERROR_TEXT];
    enum lmq_status status = lmq_tokenizer_open_for(
        checkpoint->blobs, checkpoint->n_blobs,
        checkpoint->has_model ? checkpoint->hparams.vocab_size : 0, tokenizer,
        &why);

    if (status == LMQ_OK)
        return LMQ_OK;
    *tokenizer = NULL;
    if (lmq_status_is_of_system(status))
        return lmq_fail_as(err, &why);
    if (checkpoint->tokenizer_path != NULL && !is_forced) {
        lmq_fail(err, status, 0, "%s", why.message);
        lmq_hint(err, ".tokenizer names a tokenizer.json, a tekken.json, a "
                      "SentencePiece or tiktoken model, a GGUF, or a "
                      "tokenizer.bin");
        lmq_error_in(err, checkpoint->tokenizer_path);
        return status;
    }
    lmq_error_text(&why, text);
    lmq_notes_add(notes,
                  "the tokenizer cannot be read (%.300s): text will "
                  "need another one, by .tokenizer",
                  text);
    return LMQ_OK;
}

static enum lmq_status
check_size(const struct lmq_checkpoint *checkpoint, size_t n_tokens,
           bool is_forced, struct lmq_notes *notes, struct lmq_error *err)
{
    size_t n_rows = checkpoint->hparams.vocab_size;

    if (n_tokens > n_rows && !is_forced) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the tokenizer has %zu tokens, the model only %zu", n_tokens,
                 n_rows);
        lmq_hint(err, ".tokenizer FILE names the right one; "
                      ".forces_tokenizer keeps this one");
        lmq_error_in(err, lmq_checkpoint_tokenizer_path(checkpoint));
        return LMQ_ERR_FORMAT;
    }
    if (n_tokens > n_rows)
        lmq_notes_add(notes,
                      "the tokenizer has %zu tokens, the model only "
                      "%zu: text cannot be computed with it",
                      n_tokens, n_rows);
    else if (n_rows - n_tokens > usual_padding(n_rows))
        lmq_notes_add(notes,
                      "the tokenizer has only %zu tokens, the model "
                      "%zu: it may belong to another model",
                      n_tokens, n_rows);
    return LMQ_OK;
}

enum lmq_status
lmq_convert_foresee(const struct lmq_checkpoint *checkpoint,
                    bool forces_tokenizer, struct lmq_notes *notes,
                    struct lmq_error *err)
{
    struct lmq_tokenizer *tokenizer = NULL;

    note_what_cannot_run(checkpoint, notes);
    if (checkpoint->n_blobs == 0) {
        if (checkpoint->has_model)
            lmq_notes_add(notes,
                          "there is no tokenizer: text will need one, "
                          "by .tokenizer");
        return LMQ_OK;
    }
    enum lmq_status status =
        check_kind(checkpoint, forces_tokenizer, &tokenizer, notes, err);
    if (status == LMQ_OK && tokenizer != NULL && checkpoint->has_model)
        status = check_size(checkpoint, lmq_tokenizer_size(tokenizer),
                            forces_tokenizer, notes, err);
    lmq_tokenizer_close(tokenizer);
    return status;
}
