/*
 * decode.c - token ids to text.
 *
 * What a piece stands for is computed once, when the tokenizer is opened; a
 * stream only decides what is stripped at its beginning, what is shown, and
 * which bytes wait for the rest of their character.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

/* ---- What a piece stands for ---- */

static int
replace_in(const struct lmq_replacement *rule, bool is_first,
           struct lmq_chars text, struct lmq_buffer *out)
{
    const struct lmq_chars from = lmq_chars(rule->from.bytes, rule->from.n);
    size_t n_to = is_first && rule->drops_first ? 0 : rule->to.n;

    for (const unsigned char *p; (p = lmq_chars_find(text, from)) != NULL;) {
        size_t before = (size_t)(p - text.p);
        if (lmq_buffer_append(out, text.p, before) != 0 ||
            lmq_buffer_append(out, rule->to.bytes, n_to) != 0)
            return -1;
        text = lmq_chars(p + from.n, text.n - before - from.n);
    }
    return lmq_buffer_append(out, text.p, text.n);
}

/* The limits keep a small file from making much text. */
#define MAX_PIECE_TEXT (4 * LMQ_VOCAB_MAX_PIECE_SIZE)
#define MAX_TEXTS(n_bytes) (8 * (n_bytes) + 65536)

static int
append_text(const struct lmq_tokenizer *t, int32_t id, bool is_first,
            struct lmq_buffer work[2], struct lmq_buffer *result)
{
    struct lmq_chars text = lmq_vocab_text(&t->vocab, id);
    enum lmq_piece_type type = lmq_vocab_type(&t->vocab, id);

    if (t->has_no_decoder) {
        lmq_pipeline_name(t, id, result);
        return result->has_failed ? -1 : 0;
    }
    if (type == LMQ_PIECE_BYTE) {
        unsigned char byte = (unsigned char)lmq_byte_piece(text);
        return lmq_buffer_append(result, &byte, 1);
    }
    if (type == LMQ_PIECE_UNKNOWN && t->unknown_text.n > 0)
        return lmq_buffer_append(result, t->unknown_text.bytes,
                                 t->unknown_text.n);
    for (size_t i = 0; i + 1 < t->n_replacements; i++) {
        struct lmq_buffer *out = &work[i % 2];
        out->n = 0;
        if (replace_in(&t->replacements[i], is_first, text, out) != 0)
            return -1;
        text = lmq_chars(out->bytes, lmq_size_min(out->n, MAX_PIECE_TEXT + 1));
    }
    if (t->n_replacements > 0)
        return replace_in(&t->replacements[t->n_replacements - 1], is_first,
                          text, result);
    return lmq_buffer_append(result, text.p, text.n);
}

enum lmq_status
lmq_decode_build(struct lmq_tokenizer *t, struct lmq_error *err)
{
    struct lmq_buffer work[2] = { { 0 }, { 0 } };
    size_t n = t->vocab.n;
    enum lmq_status status = LMQ_OK;

    t->text_starts = calloc(n + 1, sizeof(t->text_starts[0]));
    if (t->text_starts == NULL ||
        lmq_mem_reserve(&t->texts.bytes, &t->texts.capacity, t->vocab.bytes.n,
                        1) != 0)
        return lmq_fail_nomem(err);
    for (size_t id = 0; id < n && status == LMQ_OK; id++) {
        if (append_text(t, (int32_t)id, false, work, &t->texts) != 0)
            status = lmq_fail_nomem(err);
        else if (t->texts.n > MAX_TEXTS(t->vocab.bytes.n) ||
                 t->texts.n > UINT32_MAX ||
                 t->texts.n - t->text_starts[id] > MAX_PIECE_TEXT)
            status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                              "the decoder makes too long a text of token %zu",
                              id);
        t->text_starts[id + 1] = (uint32_t)t->texts.n;
    }
    lmq_buffer_free(&work[0]);
    lmq_buffer_free(&work[1]);
    return status;
}

struct lmq_chars
lmq_tokenizer_piece(const struct lmq_tokenizer *t, int32_t id)
{
    if (id < 0 || (size_t)id >= t->vocab.n || t->texts.n == 0)
        return lmq_chars("", 0);
    return lmq_chars(t->texts.bytes + t->text_starts[id],
                     t->text_starts[id + 1] - t->text_starts[id]);
}

bool
lmq_tokenizer_is_control(const struct lmq_tokenizer *t, int32_t id)
{
    if (id < 0 || (size_t)id >= t->vocab.n)
        return false;
    enum lmq_piece_type type = lmq_vocab_type(&t->vocab, id);
    return type == LMQ_PIECE_CONTROL || type == LMQ_PIECE_UNKNOWN;
}

/* ---- A stream ---- */

void
lmq_decoder_begin(struct lmq_decoder *decoder,
                  const struct lmq_tokenizer *tokenizer, unsigned flags)
{
    memset(decoder, 0, sizeof(*decoder));
    decoder->tokenizer = tokenizer;
    decoder->flags = flags;
}

/* Bytes that begin a character and lack its end. */
static bool
is_beginning(const unsigned char *p, size_t n)
{
    unsigned char whole[4] = { 0x80, 0x80, 0x80, 0x80 };

    if (n == 0 || n > 3)
        return false;
    memcpy(whole, p, n);
    if (n == 1 && (p[0] == 0xe0 || p[0] == 0xf0))
        whole[1] = 0xbf;
    return lmq_utf8_length(whole, 4) > n;
}

static int
append_characters(struct lmq_decoder *d, struct lmq_chars text,
                  struct lmq_buffer *out)
{
    for (size_t i = 0; i < text.n; i++) {
        d->held[d->n_held++] = text.p[i];
        while (d->n_held > 0) {
            size_t n = lmq_utf8_length(d->held, d->n_held);
            if (n == 0 && is_beginning(d->held, d->n_held))
                break;
            if ((n > 0 ? lmq_buffer_append(out, d->held, n)
                       : lmq_buffer_append(out, "\xef\xbf\xbd", 3)) != 0)
                return -1;
            n = n > 0 ? n : 1;
            d->n_held -= n;
            memmove(d->held, d->held + n, d->n_held);
        }
    }
    return 0;
}

static int
append_piece(struct lmq_decoder *d, struct lmq_chars text,
             struct lmq_buffer *out)
{
    if (text.n > 0)
        d->has_text = true;
    if ((d->flags & LMQ_DECODE_UTF8) == 0)
        return lmq_buffer_append(out, text.p, text.n);
    return append_characters(d, text, out);
}

static int
append_without_marks(struct lmq_decoder *d, int32_t id, struct lmq_buffer *out)
{
    struct lmq_buffer work[2] = { { 0 }, { 0 } }, text = { 0 };
    int failed = append_text(d->tokenizer, id, true, work, &text);

    if (failed == 0)
        failed = append_piece(d, lmq_chars(text.bytes, text.n), out);
    lmq_buffer_free(&work[0]);
    lmq_buffer_free(&work[1]);
    lmq_buffer_free(&text);
    return failed;
}

/* What is no mark in SentencePiece keeps its space: the surface of the unknown
 * token, and a byte. */
static bool
keeps_space(const struct lmq_tokenizer *t, enum lmq_piece_type type)
{
    return type == LMQ_PIECE_UNKNOWN ||
           (type == LMQ_PIECE_BYTE && t->model.is_sentencepiece);
}

static int
append_stripped(struct lmq_decoder *d, int32_t id, struct lmq_buffer *out)
{
    const struct lmq_tokenizer *t = d->tokenizer;
    struct lmq_chars text = lmq_tokenizer_piece(t, id);
    enum lmq_strip strip = keeps_space(t, lmq_vocab_type(&t->vocab, id))
                               ? LMQ_STRIP_NONE
                               : t->strip;
    bool is_first = !d->is_started;

    d->is_started = true;
    if (strip == LMQ_STRIP_MARKS && is_first)
        return append_without_marks(d, id, out);
    bool strips = (strip == LMQ_STRIP_FIRST && is_first) ||
                  (strip == LMQ_STRIP_EACH && !d->has_text);
    if (strips && text.n > 0 && text.p[0] == ' ')
        text = lmq_chars(text.p + 1, text.n - 1);
    return append_piece(d, text, out);
}

enum lmq_status
lmq_decoder_next(struct lmq_decoder *d, int32_t id, struct lmq_buffer *text,
                 struct lmq_error *err)
{
    const struct lmq_tokenizer *t = d->tokenizer;

    if (id < 0 || (size_t)id >= t->vocab.n)
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "token id %" PRId32 " is out of range, the vocabulary "
                        "has %zu", id, t->vocab.n);
    enum lmq_piece_type type = lmq_vocab_type(&t->vocab, id);
    bool is_hidden = type == LMQ_PIECE_CONTROL ||
                     (type == LMQ_PIECE_UNKNOWN && t->unknown_text.n == 0);
    bool is_shown = !is_hidden || (d->flags & LMQ_DECODE_SPECIAL) != 0;
    int failed = 0;
    if (is_shown && t->has_no_decoder && d->is_started)
        failed = append_piece(d, lmq_chars(" ", 1), text);
    if (failed != 0)
        return lmq_fail_nomem(err);
    if (!is_hidden)
        failed = append_stripped(d, id, text);
    else if (is_shown) {
        d->is_started = true; /* it is the beginning of the text */
        failed = append_piece(d, lmq_tokenizer_piece(t, id), text);
    }
    return failed == 0 ? LMQ_OK : lmq_fail_nomem(err);
}

enum lmq_status
lmq_decoder_end(struct lmq_decoder *d, struct lmq_buffer *text,
                struct lmq_error *err)
{
    size_t n = d->n_held;

    d->n_held = 0;
    for (size_t i = 0; i < n; i++)
        if (lmq_buffer_append(text, "\xef\xbf\xbd", 3) != 0)
            return lmq_fail_nomem(err);
    return LMQ_OK;
}

enum lmq_status
lmq_tokenizer_decode(const struct lmq_tokenizer *tokenizer, const int32_t *ids,
                     size_t n, unsigned flags, struct lmq_buffer *text,
                     struct lmq_error *err)
{
    struct lmq_decoder decoder;
    enum lmq_status status = LMQ_OK;

    lmq_decoder_begin(&decoder, tokenizer, flags);
    for (size_t i = 0; i < n && status == LMQ_OK; i++)
        status = lmq_decoder_next(&decoder, ids[i], text, err);
    return status == LMQ_OK ? lmq_decoder_end(&decoder, text, err) : status;
}
