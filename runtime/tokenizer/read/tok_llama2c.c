/*
 * tok_llama2c.c - reads llama2.c's tokenizer.bin.
 *
 * The length of the longest piece, then for each id a score, a length and that
 * many bytes, to the end of the file. It is an export of a SentencePiece BPE
 * model with spaces for U+2581; llama2.c's encoder takes 0, 1 and 2 for the
 * unknown, begin and end tokens and 3 + b for the byte b.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

#define ENTRY_SIZE 8
#define FIRST_BYTE 3
#define FIRST_PIECE (FIRST_BYTE + 256)

bool
lmq_llama2c_vocab_recognises(const struct lmq_blob *blob)
{
    if (blob->size < 4 + ENTRY_SIZE)
        return false;
    uint32_t longest = lmq_load_u32le(blob->bytes);
    uint32_t first = lmq_load_u32le(blob->bytes + 8);
    return longest > 0 && longest <= LMQ_VOCAB_MAX_PIECE_SIZE &&
           first <= longest && first <= blob->size - 4 - ENTRY_SIZE;
}

static enum lmq_status
add_piece(struct lmq_tokenizer *t, uint64_t id, struct lmq_chars text,
          float score, struct lmq_error *err)
{
    enum lmq_piece_type type = LMQ_PIECE_NORMAL;

    if (id < FIRST_BYTE) {
        type = id == 0 ? LMQ_PIECE_UNKNOWN : LMQ_PIECE_CONTROL;
        /* The export writes the names as lines. */
        if (text.n > 2 && text.p[0] == '\n' && text.p[text.n - 1] == '\n')
            text = lmq_chars(text.p + 1, text.n - 2);
    } else if (id < FIRST_PIECE)
        type = LMQ_PIECE_BYTE;
    if (type == LMQ_PIECE_BYTE &&
        lmq_byte_piece(text) != (int)(id - FIRST_BYTE))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "llama2.c tokenizer: token %" PRIu64
                        " is not <0x%02X>, so there is no byte fallback",
                        id, (unsigned)(id - FIRST_BYTE));
    return lmq_vocab_set(&t->vocab, id, text, type, score,
                         type == LMQ_PIECE_NORMAL, err);
}

enum lmq_status
lmq_llama2c_vocab_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
                       struct lmq_error *err)
{
    size_t longest = lmq_load_u32le(blob->bytes), at = 4;
    uint64_t id = 0;

    while (at < blob->size) {
        const unsigned char *p = blob->bytes + at;
        size_t left = blob->size - at;
        if (left < ENTRY_SIZE ||
            lmq_load_u32le(p + 4) > left - ENTRY_SIZE)
            return lmq_fail(err, LMQ_ERR_FORMAT, at,
                            "llama2.c tokenizer: token %" PRIu64
                            " at offset %zu goes beyond the end",
                            id, at);
        size_t n = lmq_load_u32le(p + 4);
        if (n > longest)
            return lmq_fail(err, LMQ_ERR_FORMAT, at,
                            "llama2.c tokenizer: token %" PRIu64
                            " is %zu bytes, the header says at most %zu",
                            id, n, longest);
        enum lmq_status status =
            add_piece(t, id, lmq_chars(p + ENTRY_SIZE, n), lmq_load_f32le(p),
                      err);
        if (status != LMQ_OK)
            return status;
        at += ENTRY_SIZE + n;
        id++;
    }
    if (id < FIRST_PIECE)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "llama2.c tokenizer: %" PRIu64
                        " tokens, at least %d are needed",
                        id, FIRST_PIECE);
    t->model.falls_back_to_bytes = true;
    t->bos = 1;
    lmq_marks_add(&t->eos, 2);
    t->default_flags = LMQ_ENCODE_BOS;
    struct lmq_spm_spaces spaces = { " ", true, false, { NULL, 0 } };
    enum lmq_status status = lmq_spm_describe(t, false, spaces, err);
    /* llama2.c looks for none of them in the text. */
    lmq_added_free(&t->added);
    return status;
}
