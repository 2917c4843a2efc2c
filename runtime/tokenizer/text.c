/*
 * text.c - the public face of the tokenizers.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/report.h"
#include "base/text/utf8.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/open.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

#define FILE_MAX ((size_t)256 << 20)

/* A model may name tokens that end a text besides those of its tokenizer. */
static void
add_ends(const struct lmq_checkpoint *checkpoint,
         struct lmq_tokenizer *tokenizer)
{
    const struct lmq_hparams *h = &checkpoint->hparams;

    for (uint32_t i = 0; checkpoint->has_model && i < h->n_eos; i++)
        if ((size_t)h->eos[i] < lmq_tokenizer_size(tokenizer))
            lmq_marks_add(&tokenizer->eos, h->eos[i]);
}

enum lmq_status
lmq_tokenizer_from_checkpoint(const struct lmq_checkpoint *checkpoint,
                              struct lmq_tokenizer **tokenizer,
                              struct lmq_error *err)
{
    enum lmq_status status;

    *tokenizer = NULL;
    if (checkpoint->n_blobs == 0) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "has no tokenizer");
        lmq_hint(err, ".tokenizer FILE names one");
    } else {
        status = lmq_tokenizer_open_for(
            checkpoint->blobs, checkpoint->n_blobs,
            checkpoint->has_model ? checkpoint->hparams.vocab_size : 0,
            tokenizer, err);
    }
    if (status == LMQ_OK && checkpoint->has_model &&
        lmq_tokenizer_size(*tokenizer) > checkpoint->hparams.vocab_size) {
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "the tokenizer has %zu tokens, the model only %u",
                          lmq_tokenizer_size(*tokenizer),
                          checkpoint->hparams.vocab_size);
        lmq_hint(err, "this is the tokenizer of another model; .tokenizer "
                      "FILE names the right one");
        lmq_tokenizer_close(*tokenizer);
        *tokenizer = NULL;
    }
    if (status == LMQ_OK)
        add_ends(checkpoint, *tokenizer);
    else
        lmq_error_around(err, lmq_checkpoint_tokenizer_path(checkpoint));
    return status;
}

/* A file that is a tokenizer itself. *is_one tells; if not, no error. */
static enum lmq_status
open_tokenizer_file(const char *path, bool *is_one,
                    struct lmq_tokenizer **tokenizer, struct lmq_error *err)
{
    struct lmq_blob blob = {.name = lmq_path_base(path)};
    unsigned char *bytes;
    enum lmq_status status;
    struct stat info;

    *is_one = false;
    if (stat(path, &info) != 0) {
        if (errno == ENOENT)
            return LMQ_OK; /* opening it as a checkpoint says so */
        status = lmq_fail_errno(err, "cannot be read");
        lmq_error_in(err, path);
        return status;
    }
    if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > FILE_MAX)
        return LMQ_OK; /* so does that */
    status = lmq_file_load(path, FILE_MAX, &bytes, &blob.size, err);
    if (status != LMQ_OK)
        return status;
    blob.bytes = bytes;
    *is_one = lmq_tokenizer_recognises(&blob);
    if (*is_one)
        status = lmq_tokenizer_open(&blob, 1, tokenizer, err);
    if (status != LMQ_OK)
        lmq_error_around(err, path);
    free(bytes);
    return status;
}

enum lmq_status
lmq_tokenizer_from_path(const char *path, const struct lmq_open_options *open,
                        struct lmq_tokenizer **tokenizer,
                        struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint;
    bool is_known, is_one = false;
    enum lmq_status status;

    /* A checkpoint first: its numbers may happen to look like a tokenizer. */
    *tokenizer = NULL;
    status = lmq_checkpoint_recognises(path, &is_known, err);
    if (status == LMQ_OK && !is_known)
        status = open_tokenizer_file(path, &is_one, tokenizer, err);
    if (status != LMQ_OK || is_one)
        return status;
    status = lmq_checkpoint_open(path, open, &checkpoint, err);
    if (status != LMQ_OK)
        return status;
    status = lmq_tokenizer_from_checkpoint(checkpoint, tokenizer, err);
    lmq_checkpoint_close(checkpoint);
    return status;
}

enum lmq_status
lmq_tokenizer_token(const struct lmq_tokenizer *tokenizer, int32_t id,
                    const char **piece, size_t *n, int *is_text,
                    struct lmq_error *err)
{
    *piece = "";
    *n = 0;
    *is_text = 1;
    if (id < 0 || (size_t)id >= lmq_tokenizer_size(tokenizer))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "token %d is not in the vocabulary of %zu", (int)id,
                        lmq_tokenizer_size(tokenizer));
    struct lmq_chars chars = lmq_tokenizer_piece(tokenizer, id);
    *piece = (const char *)chars.p;
    *n = chars.n;
    *is_text = lmq_utf8_valid(chars.p, chars.n) == chars.n;
    return LMQ_OK;
}

int
lmq_tokenizer_ends(const struct lmq_tokenizer *tokenizer, int32_t id)
{
    /* Models that were trained on one text after the other begin the next. */
    return lmq_tokenizer_is_eos(tokenizer, id) ||
           (id >= 0 && id == lmq_tokenizer_bos(tokenizer));
}

/* ---- Whole texts ---- */

enum lmq_status
lmq_tokenize(const struct lmq_tokenizer *tokenizer, const char *text, size_t n,
             unsigned flags, int32_t **ids, size_t *n_ids,
             struct lmq_error *err)
{
    struct lmq_ids list = {0};
    unsigned encode = flags & LMQ_TEXT_PLAIN
                          ? 0
                          : lmq_tokenizer_default_flags(tokenizer) &
                                (unsigned)LMQ_ENCODE_BOS;

    *ids = NULL;
    *n_ids = 0;
    if (flags & LMQ_TEXT_SPECIAL)
        encode |= LMQ_ENCODE_SPECIAL;
    enum lmq_status status =
        lmq_tokenizer_encode(tokenizer, text, n, encode, &list, err);
    if (status == LMQ_OK) {
        *ids = list.ids;
        *n_ids = list.n;
    } else {
        lmq_ids_clear(&list);
    }
    return status;
}

void
lmq_tokens_free(int32_t *ids)
{
    free(ids);
}

enum lmq_status
lmq_detokenize(const struct lmq_tokenizer *tokenizer, const int32_t *ids,
               size_t n, unsigned flags, char **text, size_t *n_text,
               struct lmq_error *err)
{
    struct lmq_buffer buffer = {0};
    unsigned decode = flags & LMQ_TEXT_SPECIAL ? LMQ_DECODE_SPECIAL : 0;
    enum lmq_status status =
        lmq_tokenizer_decode(tokenizer, ids, n, decode, &buffer, err);

    *text = NULL;
    if (status == LMQ_OK) {
        *text = lmq_mem_text(buffer.bytes, buffer.n);
        if (*text == NULL)
            status = lmq_fail_nomem(err);
    }
    *n_text = *text == NULL ? 0 : buffer.n;
    lmq_buffer_free(&buffer);
    return status;
}

/* ---- Streams ---- */

struct lmq_detokenizer {
    struct lmq_decoder decoder;
    struct lmq_buffer text;
};

enum lmq_status
lmq_detokenizer_new(const struct lmq_tokenizer *tokenizer, unsigned flags,
                    struct lmq_detokenizer **out, struct lmq_error *err)
{
    struct lmq_detokenizer *detokenizer = calloc(1, sizeof(*detokenizer));
    unsigned decode = LMQ_DECODE_UTF8;

    *out = detokenizer;
    if (detokenizer == NULL)
        return lmq_fail_nomem(err);
    if (flags & LMQ_TEXT_SPECIAL)
        decode |= LMQ_DECODE_SPECIAL;
    lmq_decoder_begin(&detokenizer->decoder, tokenizer, decode);
    return LMQ_OK;
}

void
lmq_detokenizer_free(struct lmq_detokenizer *detokenizer)
{
    if (detokenizer == NULL)
        return;
    lmq_buffer_free(&detokenizer->text);
    free(detokenizer);
}

enum lmq_status
lmq_detokenizer_next(struct lmq_detokenizer *detokenizer, int32_t id,
                     const char **text, size_t *n, struct lmq_error *err)
{
    struct lmq_buffer *buffer = &detokenizer->text;

    buffer->n = 0;
    enum lmq_status status =
        id < 0 ? lmq_decoder_end(&detokenizer->decoder, buffer, err)
               : lmq_decoder_next(&detokenizer->decoder, id, buffer, err);
    *text = buffer->n == 0 ? "" : (const char *)buffer->bytes;
    *n = buffer->n;
    return status;
}

/* ---- What came of it ---- */

static json_t *
list_ids(const int32_t *ids, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        lmq_append(&list, json_integer(ids[i]));
    return list;
}

/* NULL: none; every text would end at once with an empty one. */
static const char *
stop_of(const struct lmq_generation *generation)
{
    return generation->stop == NULL || *generation->stop == '\0'
               ? NULL
               : generation->stop;
}

/* As it was given; bytes that are no characters cannot be. */
static json_t *
describe_stop(const char *stop)
{
    if (stop == NULL)
        return json_null();
    return lmq_is_utf8((const unsigned char *)stop, strlen(stop))
               ? json_string(stop)
               : lmq_json_text(stop);
}

/* The text of the prompt, and of what was made behind it up to what ended it.
 * Of whole characters, so that they are strings of any language. */
static enum lmq_status
add_texts(json_t **json, const struct lmq_tokenizer *tokenizer,
          const struct lmq_generation *generation, struct lmq_error *err)
{
    const char *stop = stop_of(generation);
    struct lmq_decoder decoder;
    struct lmq_buffer buffer = {0};
    enum lmq_status status = LMQ_OK;

    lmq_decoder_begin(&decoder, tokenizer, LMQ_DECODE_UTF8);
    for (size_t i = 0; i < generation->n_prompt && status == LMQ_OK; i++)
        status = lmq_decoder_next(&decoder, generation->prompt[i], &buffer,
                                  err);
    size_t n_prompt = buffer.n;
    for (size_t i = 0; i < generation->n_made && status == LMQ_OK; i++)
        status = lmq_decoder_next(&decoder, generation->made[i], &buffer, err);
    if (status == LMQ_OK)
        status = lmq_decoder_end(&decoder, &buffer, err);
    size_t length = stop == NULL ? buffer.n + 1 : strlen(stop);
    for (size_t i = n_prompt; i + length <= buffer.n; i++)
        if (memcmp(buffer.bytes + i, stop, length) == 0)
            buffer.n = i;
    if (status == LMQ_OK) {
        const char *text = buffer.n == 0 ? "" : (const char *)buffer.bytes;
        lmq_put(json, "prompt", json_stringn(text, n_prompt));
        const char *made = text + n_prompt;
        /* What ended it may begin within a character. */
        size_t n_made = lmq_utf8_valid((const unsigned char *)made,
                                       buffer.n - n_prompt);
        lmq_put(json, "text", json_stringn(made, n_made));
    }
    lmq_buffer_free(&buffer);
    return status;
}

static json_t *
describe_speed(size_t n, double seconds)
{
    json_t *json = json_object();

    lmq_put(&json, "tokens", lmq_json_size(n));
    lmq_put(&json, "seconds", lmq_json_number(seconds));
    lmq_put(&json, "tokens_per_s", lmq_json_number((double)n / seconds));
    return json;
}

enum lmq_status
lmq_generation_report(const struct lmq_tokenizer *tokenizer,
                      const struct lmq_generation *generation,
                      struct lmq_report **report, struct lmq_error *err)
{
    json_t *json = json_object();
    enum lmq_status status = add_texts(&json, tokenizer, generation, err);

    if (report != NULL)
        *report = NULL;
    if (status != LMQ_OK) {
        json_decref(json);
        return status;
    }
    lmq_put(&json, "prompt_tokens",
            list_ids(generation->prompt, generation->n_prompt));
    lmq_put(&json, "tokens", list_ids(generation->made, generation->n_made));
    lmq_put(&json, "ended", json_boolean(generation->is_ended));
    lmq_put(&json, "stopped", describe_stop(stop_of(generation)));
    lmq_put(&json, "prefill",
            describe_speed(generation->n_prompt, generation->prompt_seconds));
    lmq_put(&json, "decode",
            describe_speed(generation->n_made, generation->seconds));
    return lmq_report_finish(json, report, err);
}
