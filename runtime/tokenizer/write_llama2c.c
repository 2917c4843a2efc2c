/*
 * write_llama2c.c - a vocabulary as llama2.c's tokenizer.bin (tok_llama2c.c
 * says what stands in it), where that can hold it.
 */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

#define FIRST_BYTE 3
#define FIRST_PIECE (FIRST_BYTE + 256)

static const struct lmq_chars space_mark = {
    (const unsigned char *)"\xe2\x96\x81", 3
};

/* Begin and end stand between line ends, as llama2.c's own export has them. */
static void
append_text(struct lmq_buffer *text, const struct lmq_tokenizer *tokenizer,
            int32_t id)
{
    struct lmq_chars piece = lmq_vocab_text(&tokenizer->vocab, id);
    bool is_mark = id == 1 || id == 2;

    lmq_buffer_append(text, "\n", is_mark);
    while (piece.n > 0) {
        bool is_space = piece.n >= space_mark.n &&
                        memcmp(piece.p, space_mark.p, space_mark.n) == 0;
        size_t n = is_space ? space_mark.n : 1;
        lmq_buffer_append(text, is_space ? (const void *)" " : piece.p, 1);
        piece = lmq_chars(piece.p + n, piece.n - n);
    }
    lmq_buffer_append(text, "\n", is_mark);
}

static void
append_pieces(struct lmq_buffer *bytes, const struct lmq_tokenizer *tokenizer)
{
    const struct lmq_vocab *vocab = &tokenizer->vocab;
    struct lmq_buffer text = {0};
    size_t longest = 0;

    lmq_buffer_append_u32le(bytes, 0);
    for (size_t id = 0; id < vocab->n; id++) {
        text.n = 0;
        append_text(&text, tokenizer, (int32_t)id);
        lmq_buffer_append_f32le(bytes, (float)vocab->pieces[id].score);
        lmq_buffer_append_u32le(bytes, (uint32_t)text.n);
        lmq_buffer_append(bytes, text.bytes, text.n);
        longest = lmq_size_max(longest, text.n);
    }
    bytes->has_failed |= text.has_failed;
    if (!bytes->has_failed)
        lmq_store_u32le(bytes->bytes, (uint32_t)longest);
    lmq_buffer_free(&text);
}

/* Whether the format can hold it. */
static bool
fits(const struct lmq_tokenizer *t)
{
    if (t->model.kind != LMQ_TOK_BPE || t->model.has_table ||
        t->is_byte_level || t->vocab.n <= FIRST_PIECE)
        return false;
    for (int32_t byte = 0; byte < 256; byte++)
        if (t->vocab.byte_ids[byte] != FIRST_BYTE + byte)
            return false;
    for (size_t id = 0; id < t->vocab.n; id++)
        if (lmq_vocab_type(&t->vocab, (int32_t)id) == LMQ_PIECE_NONE)
            return false;
    return t->vocab.unknown == 0 && t->bos == 1;
}

/* What is made must be the same vocabulary when it is read. */
static enum lmq_status
compare(const struct lmq_tokenizer *tokenizer, const struct lmq_buffer *bytes,
        bool *is_same, struct lmq_error *err)
{
    const struct lmq_blob blob = { "tokenizer.bin", bytes->bytes, bytes->n };
    struct lmq_tokenizer *made;

    *is_same = false;
    enum lmq_status status = lmq_tokenizer_open(&blob, 1, &made, err);
    if (status != LMQ_OK)
        return lmq_status_is_of_system(status) ? status : LMQ_OK;
    *is_same = lmq_tokenizer_digest(made) == lmq_tokenizer_digest(tokenizer);
    lmq_tokenizer_close(made);
    return LMQ_OK;
}

enum lmq_status
lmq_tokenizer_to_llama2c(const struct lmq_tokenizer *tokenizer,
                         struct lmq_buffer *bytes, bool *is_made,
                         struct lmq_error *err)
{
    *is_made = false;
    if (!fits(tokenizer))
        return LMQ_OK;
    append_pieces(bytes, tokenizer);
    if (bytes->has_failed)
        return lmq_fail_nomem(err);
    return compare(tokenizer, bytes, is_made, err);
}
