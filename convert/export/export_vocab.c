/*
 * export_vocab.c - the tokenizer.bin beside an export.
 */
#include "config.h"

#include "convert/export/export_vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "convert/export/export.h"
#include "runtime/tokenizer/tokenizer.h"

#define NAME "tokenizer.bin"
#define FILE_MAX ((size_t)256 << 20)

/* What tokenizers of one vocabulary do differently, and texts to show it. */
static const struct trial {
    const char *what, *texts[7];
} trials[] = {
    {"beginnings of texts", {"a"}},
    {"texts with white space in a row, or at an end,", {"a  b", " a", "a "}},
    {"texts with characters that it normalizes",
     {"a\tb", "a\nb", "A", "\u00bd", "\ufb01", "\uff21"}},
};
#define N_TRIALS (sizeof(trials) / sizeof(trials[0]))

static enum lmq_status
compare_texts(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
              const struct trial *trial, bool *are_alike,
              struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    *are_alike = true;
    for (size_t i = 0; trial->texts[i] != NULL && status == LMQ_OK; i++) {
        struct lmq_ids x = {0}, y = {0};
        size_t n = strlen(trial->texts[i]);
        status = lmq_tokenizer_encode(a, trial->texts[i], n, 0, &x, err);
        if (status == LMQ_OK)
            status = lmq_tokenizer_encode(b, trial->texts[i], n, 0, &y, err);
        *are_alike &=
            x.n == y.n &&
            (x.n == 0 || memcmp(x.ids, y.ids, x.n * sizeof(*x.ids)) == 0);
        lmq_ids_clear(&x);
        lmq_ids_clear(&y);
    }
    return status;
}

static enum lmq_status
note_trials(const struct lmq_tokenizer *tokenizer,
            const struct lmq_tokenizer *made, struct lmq_notes *notes,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    bool are_alike = true;

    for (size_t i = 0; i < N_TRIALS && status == LMQ_OK; i++) {
        status = compare_texts(tokenizer, made, &trials[i], &are_alike, err);
        if (status != LMQ_OK || are_alike)
            continue;
        lmq_notes_add(notes,
                      NAME " cannot say all of this tokenizer: %s become "
                           "other tokens",
                      trials[i].what);
        if (i == 0) /* then all else differs for that */
            break;
    }
    return status;
}

/* What llama2.c cannot say of a tokenizer: that it drops spaces, for one. */
static enum lmq_status
note_difference(const struct lmq_tokenizer *tokenizer,
                const struct lmq_buffer *bytes, struct lmq_notes *notes,
                struct lmq_error *err)
{
    const struct lmq_blob blob = {NAME, bytes->bytes, bytes->n};
    struct lmq_tokenizer *made;
    enum lmq_status status = lmq_tokenizer_open(&blob, 1, &made, err);

    if (status == LMQ_OK) {
        status = note_trials(tokenizer, made, notes, err);
        lmq_tokenizer_close(made);
    }
    return lmq_status_is_of_system(status) ? status : LMQ_OK;
}

/* *is_made is false if the tokenizer is of another kind. */
static enum lmq_status
make_bytes(const struct lmq_checkpoint *checkpoint, struct lmq_buffer *bytes,
           bool *is_made, struct lmq_notes *notes, struct lmq_error *err)
{
    struct lmq_tokenizer *tokenizer;

    *is_made = false;
    if (checkpoint->n_blobs == 0)
        return LMQ_OK;
    enum lmq_status status = lmq_tokenizer_open_for(
        checkpoint->blobs, checkpoint->n_blobs, checkpoint->hparams.vocab_size,
        &tokenizer, err);
    if (status != LMQ_OK) /* what is not understood is left out */
        return lmq_status_is_of_system(status) ? status : LMQ_OK;
    if (lmq_tokenizer_size(tokenizer) == checkpoint->hparams.vocab_size)
        status = lmq_tokenizer_to_llama2c(tokenizer, bytes, is_made, err);
    if (status == LMQ_OK && *is_made)
        status = note_difference(tokenizer, bytes, notes, err);
    lmq_tokenizer_close(tokenizer);
    return status;
}

static char *
path_beside(const char *output)
{
    const char *slash = strrchr(output, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - output) + 1;
    char *path = malloc(n + sizeof(NAME));

    if (path != NULL) {
        memcpy(path, output, n);
        memcpy(path + n, NAME, sizeof(NAME));
    }
    return path;
}

/* Whether the file at path has these bytes. */
static enum lmq_status
compare_with(const char *path, const struct lmq_buffer *wanted, bool *is,
             struct lmq_error *err)
{
    unsigned char *bytes;
    size_t n;
    enum lmq_status status = lmq_file_load(path, FILE_MAX, &bytes, &n, err);

    *is = false;
    if (status != LMQ_OK)
        return lmq_status_is_of_system(status) ? status : LMQ_OK;
    *is = n == wanted->n && memcmp(bytes, wanted->bytes, n) == 0;
    free(bytes);
    return LMQ_OK;
}

enum lmq_status
lmq_vocab_file_prepare(const struct lmq_checkpoint *checkpoint,
                       const char *output, struct lmq_vocab_file *file,
                       struct lmq_notes *notes, struct lmq_error *err)
{
    bool is_made;
    enum lmq_status status =
        make_bytes(checkpoint, &file->bytes, &is_made, notes, err);

    if (status != LMQ_OK)
        return status;
    if (!is_made)
        lmq_notes_add(notes,
                      "no " NAME " is written: the tokenizer is %s",
                      checkpoint->n_blobs == 0
                          ? "not there"
                          : "none that llama2.c can have");
    char *path = path_beside(output);
    if (path == NULL)
        return lmq_fail_nomem(err);
    bool is_output = strcmp(path, output) == 0, is_same = false;
    bool is_there = lmq_file_exists(path, &status, err);
    if (status == LMQ_OK && is_made && !is_there && !is_output) {
        file->path = path;
        return LMQ_OK;
    }
    if (status == LMQ_OK && is_made && is_output)
        lmq_notes_add(notes, "no " NAME " is written: the output has its "
                             "name");
    if (status == LMQ_OK && is_made && is_there && !is_output)
        status = compare_with(path, &file->bytes, &is_same, err);
    if (status == LMQ_OK && !is_same && !is_output && is_there)
        lmq_notes_add(notes, "the " NAME " beside the output stays: %s",
                      is_made ? "it is another one, which does not belong to "
                                "this model"
                              : "whether it belongs to this model is not "
                                "known");
    free(path);
    return status;
}

enum lmq_status
lmq_vocab_file_write(const struct lmq_vocab_file *file,
                     struct lmq_output **output, struct lmq_error *err)
{
    *output = NULL;
    if (file->path == NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_output_create(file->path, file->bytes.n, false,
                                               NULL, output, err);
    if (status != LMQ_OK)
        return status;
    status =
        lmq_output_write(*output, 0, file->bytes.bytes, file->bytes.n, err);
    if (status != LMQ_OK) {
        lmq_output_abort(*output);
        *output = NULL;
    }
    return status;
}

void
lmq_vocab_file_free(struct lmq_vocab_file *file)
{
    free(file->path);
    lmq_buffer_free(&file->bytes);
    *file = (struct lmq_vocab_file){0};
}
