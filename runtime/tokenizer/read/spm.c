/*
 * spm.c - reads SentencePiece's tokenizer.model.
 *
 * The file is a protocol buffer (sentencepiece_model.proto), which is walked
 * field by field; fields that change nothing here are skipped.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"

/* SentencePiece's default for trainer_spec.unk_surface. */
#define UNKNOWN_SURFACE " \xe2\x81\x87 "

/* ---- Protocol buffers ---- */

struct field {
    uint32_t number, wire;
    uint64_t value;         /* of a varint or fixed number */
    struct lmq_chars bytes; /* of a length-delimited one */
};

struct message {
    const unsigned char *start, *at, *end;
};

static bool
read_varint(struct message *m, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (m->at == m->end)
            return false;
        unsigned char c = *m->at++;
        *value |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return shift < 63 || c < 2;
    }
    return false;
}

static bool
read_body(struct message *m, struct field *field)
{
    size_t left = (size_t)(m->end - m->at);

    if (field->wire == 0)
        return read_varint(m, &field->value);
    if (field->wire == 1 && left >= 8) {
        field->value = lmq_load_u64le(m->at);
        m->at += 8;
        return true;
    }
    if (field->wire == 5 && left >= 4) {
        field->value = lmq_load_u32le(m->at);
        m->at += 4;
        return true;
    }
    if (field->wire != 2 || !read_varint(m, &field->value) ||
        field->value > (size_t)(m->end - m->at))
        return false;
    field->bytes = lmq_chars(m->at, (size_t)field->value);
    m->at += field->bytes.n;
    return true;
}

/* False at the end, and with *damaged where the message makes no sense. */
static bool
next_field(struct message *m, struct field *field, bool *damaged)
{
    uint64_t key;

    if (m->at == m->end)
        return false;
    memset(field, 0, sizeof(*field));
    *damaged = !read_varint(m, &key) || key >> 3 == 0 || key > UINT32_MAX;
    if (*damaged)
        return false;
    field->number = (uint32_t)(key >> 3);
    field->wire = (uint32_t)(key & 7);
    *damaged = !read_body(m, field);
    return !*damaged;
}

static struct message
message_in(struct lmq_chars bytes)
{
    return (struct message){ bytes.p, bytes.p, bytes.p + bytes.n };
}

static enum lmq_status
damaged_at(const struct message *m, const char *what, struct lmq_error *err)
{
    size_t at = (size_t)(m->at - m->start);

    return lmq_fail(err, LMQ_ERR_FORMAT, at,
                    "SentencePiece model: %s is damaged at its byte %zu", what,
                    at);
}

/* ---- The parts of the model ---- */

struct model_file {
    struct lmq_tokenizer *t;
    uint64_t n_pieces, model_type;
    bool has_byte_fallback, has_space_suffix;
    struct lmq_chars bos, eos, unknown_surface;
    struct lmq_spm_spaces spaces;
    bool escapes_spaces, has_denormalizer;
};

static enum lmq_status
read_piece(struct model_file *f, struct lmq_chars bytes, struct lmq_error *err)
{
    struct message m = message_in(bytes);
    struct field field;
    bool damaged = false;
    struct lmq_chars text = { (const unsigned char *)"", 0 };
    uint64_t type = LMQ_PIECE_NORMAL;
    float score = 0;

    while (next_field(&m, &field, &damaged)) {
        if (field.number == 1 && field.wire == 2)
            text = field.bytes;
        else if (field.number == 2 && field.wire == 5) {
            uint32_t bits = (uint32_t)field.value;
            memcpy(&score, &bits, sizeof(score));
        } else if (field.number == 3 && field.wire == 0)
            type = field.value;
    }
    if (damaged || type < LMQ_PIECE_NORMAL || type > LMQ_PIECE_BYTE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "SentencePiece model: piece %" PRIu64 " is damaged",
                        f->n_pieces);
    if (text.n == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "SentencePiece model: piece %" PRIu64 " is empty",
                        f->n_pieces);
    bool is_matched = type == LMQ_PIECE_NORMAL || type == LMQ_PIECE_USER ||
                      type == LMQ_PIECE_UNUSED;
    return lmq_vocab_set(&f->t->vocab, f->n_pieces++, text,
                         (enum lmq_piece_type)type, score, is_matched, err);
}

static enum lmq_status
read_trainer(struct model_file *f, struct lmq_chars bytes,
             struct lmq_error *err)
{
    struct message m = message_in(bytes);
    struct field field;
    bool damaged = false;

    while (next_field(&m, &field, &damaged)) {
        if (field.number == 3 && field.wire == 0)
            f->model_type = field.value;
        else if (field.number == 24 && field.wire == 0)
            f->has_space_suffix = field.value != 0;
        else if (field.number == 35 && field.wire == 0)
            f->has_byte_fallback = field.value != 0;
        else if (field.number == 44 && field.wire == 2)
            f->unknown_surface = field.bytes;
        else if (field.number == 46 && field.wire == 2)
            f->bos = field.bytes;
        else if (field.number == 47 && field.wire == 2)
            f->eos = field.bytes;
    }
    return damaged ? damaged_at(&m, "trainer_spec", err) : LMQ_OK;
}

static enum lmq_status
read_normalizer(struct model_file *f, struct lmq_chars bytes,
                struct lmq_error *err)
{
    struct message m = message_in(bytes);
    struct field field;
    bool damaged = false;

    while (next_field(&m, &field, &damaged)) {
        if (field.number == 2 && field.wire == 2)
            f->spaces.charsmap = field.bytes;
        else if (field.number == 3 && field.wire == 0)
            f->spaces.adds_prefix = field.value != 0;
        else if (field.number == 4 && field.wire == 0)
            f->spaces.removes_extra = field.value != 0;
        else if (field.number == 5 && field.wire == 0)
            f->escapes_spaces = field.value != 0;
    }
    return damaged ? damaged_at(&m, "normalizer_spec", err) : LMQ_OK;
}

static enum lmq_status
read_denormalizer(struct model_file *f, struct lmq_chars bytes,
                  struct lmq_error *err)
{
    struct message m = message_in(bytes);
    struct field field;
    bool damaged = false;

    while (next_field(&m, &field, &damaged))
        if (field.number == 2 && field.wire == 2 && field.bytes.n > 0)
            f->has_denormalizer = true;
    return damaged ? damaged_at(&m, "denormalizer_spec", err) : LMQ_OK;
}

static enum lmq_status
read_model(struct model_file *f, const struct lmq_blob *blob,
           struct lmq_error *err)
{
    struct message m = message_in(lmq_chars(blob->bytes, blob->size));
    struct field field;
    bool damaged = false;
    enum lmq_status status = LMQ_OK;

    while (status == LMQ_OK && next_field(&m, &field, &damaged)) {
        if (field.wire != 2)
            continue;
        if (field.number == 1)
            status = read_piece(f, field.bytes, err);
        else if (field.number == 2)
            status = read_trainer(f, field.bytes, err);
        else if (field.number == 3)
            status = read_normalizer(f, field.bytes, err);
        else if (field.number == 5)
            status = read_denormalizer(f, field.bytes, err);
    }
    return damaged ? damaged_at(&m, "the file", err) : status;
}

static enum lmq_status
refuse(const char *what, struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "SentencePiece model: %s is not supported", what);
}

static enum lmq_status
check_model(const struct model_file *f, struct lmq_error *err)
{
    if (f->model_type == 3)
        return refuse("the model type WORD", err);
    if (f->model_type == 4)
        return refuse("the model type CHAR", err);
    if (f->model_type != 1 && f->model_type != 2)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "SentencePiece model: model type %" PRIu64 " is none",
                        f->model_type);
    if (f->has_space_suffix)
        return refuse("treat_whitespace_as_suffix", err);
    if (f->has_denormalizer)
        return refuse("a denormalizer", err);
    return LMQ_OK;
}

/* ---- Everything besides the pieces ---- */

static enum lmq_status
add_normalizer(struct lmq_tokenizer *t, struct lmq_spm_spaces spaces,
               struct lmq_error *err)
{
    struct lmq_normal_step *step = lmq_pipeline_add_normal(t);

    if (step == NULL)
        return lmq_pipeline_fail(t->n_normals, err);
    if (lmq_buffer_append(&step->text, spaces.mark, strlen(spaces.mark)) != 0)
        return lmq_fail_nomem(err);
    step->kind = LMQ_NORMAL_SENTENCEPIECE;
    step->adds_prefix = spaces.adds_prefix;
    step->removes_extra_spaces = spaces.removes_extra;
    return lmq_charsmap_open(&step->charsmap, spaces.charsmap, err);
}

/* Control pieces are found in the raw text when asked for, user pieces always
 * and in the normalized text; the unigram model finds those itself. */
static enum lmq_status
add_special(struct lmq_tokenizer *t, bool is_unigram, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t id = 0; id < t->vocab.n && status == LMQ_OK; id++) {
        enum lmq_piece_type type = lmq_vocab_type(&t->vocab, (int32_t)id);
        struct lmq_added_token token = { .id = (int32_t)id };
        token.is_special =
            type == LMQ_PIECE_CONTROL || type == LMQ_PIECE_UNKNOWN;
        token.is_normalized = type == LMQ_PIECE_USER && !is_unigram;
        t->model.has_unused |= type == LMQ_PIECE_UNUSED;
        if (token.is_special || token.is_normalized)
            status = lmq_added_add(&t->added, token,
                                   lmq_vocab_text(&t->vocab, (int32_t)id),
                                   err);
    }
    return status;
}

enum lmq_status
lmq_spm_describe(struct lmq_tokenizer *t, bool is_unigram,
                 struct lmq_spm_spaces spaces, struct lmq_error *err)
{
    struct lmq_chars mark = lmq_chars(spaces.mark, strlen(spaces.mark));
    struct lmq_chars plain = lmq_chars(" ", 1);
    enum lmq_status status = lmq_vocab_index(&t->vocab, err);

    if (status == LMQ_OK)
        status = add_normalizer(t, spaces, err);
    if (status == LMQ_OK)
        status = add_special(t, is_unigram, err);
    t->model.is_sentencepiece = true;
    t->model.kind = is_unigram ? LMQ_TOK_UNIGRAM : LMQ_TOK_BPE;
    if (status == LMQ_OK && !lmq_chars_equal(mark, plain))
        status = lmq_pipeline_replace(t, mark, plain, err);
    if (status != LMQ_OK)
        return status;
    t->model.fuses_unknown = true;
    t->model.requires_known = true;
    t->strip = spaces.removes_extra ? LMQ_STRIP_EACH
               : spaces.adds_prefix ? LMQ_STRIP_FIRST
                                    : LMQ_STRIP_NONE;
    if (t->unknown_text.n == 0 &&
        lmq_buffer_append(&t->unknown_text, UNKNOWN_SURFACE,
                          strlen(UNKNOWN_SURFACE)) != 0)
        return lmq_fail_nomem(err);
    return LMQ_OK;
}

/* ---- The reader ---- */

bool
lmq_spm_recognises(const struct lmq_blob *blob)
{
    struct message m = message_in(lmq_chars(blob->bytes, blob->size));
    struct field field;
    bool damaged = false;

    /* The first field is a piece, whose first field is its text. */
    return blob->size > 4 && blob->bytes[0] == 0x0a &&
           next_field(&m, &field, &damaged) && field.bytes.n > 2 &&
           field.bytes.p[0] == 0x0a && field.bytes.p[1] <= field.bytes.n - 2;
}

/* The id of a control piece by its name. */
static int32_t
find_control(const struct lmq_tokenizer *t, struct lmq_chars name)
{
    for (size_t id = 0; id < t->vocab.n; id++)
        if (t->vocab.pieces[id].type == LMQ_PIECE_CONTROL &&
            lmq_chars_equal(lmq_vocab_text(&t->vocab, (int32_t)id), name))
            return (int32_t)id;
    return -1;
}

enum lmq_status
lmq_spm_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
             struct lmq_error *err)
{
    /* The defaults of sentencepiece_model.proto. */
    struct model_file f = {
        .t = t,
        .model_type = 1,
        .escapes_spaces = true,
        .bos = lmq_chars("<s>", 3),
        .eos = lmq_chars("</s>", 4),
        .unknown_surface =
            lmq_chars(UNKNOWN_SURFACE, strlen(UNKNOWN_SURFACE)),
        .spaces = { LMQ_SPACE_MARK, true, true, { NULL, 0 } },
    };
    enum lmq_status status = read_model(&f, blob, err);

    if (status == LMQ_OK)
        status = check_model(&f, err);
    if (status != LMQ_OK)
        return status;
    if (t->vocab.unknown < 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "SentencePiece model: no piece is the unknown one");
    if (!f.escapes_spaces)
        f.spaces.mark = " ";
    t->model.falls_back_to_bytes = f.has_byte_fallback;
    t->takes_added = true;
    if (lmq_buffer_append(&t->unknown_text, f.unknown_surface.p,
                          f.unknown_surface.n) != 0)
        return lmq_fail_nomem(err);
    t->bos = find_control(t, f.bos);
    int32_t eos = find_control(t, f.eos);
    if (eos >= 0)
        lmq_marks_add(&t->eos, eos);
    t->default_flags = t->bos >= 0 ? LMQ_ENCODE_BOS : 0;
    return lmq_spm_describe(t, f.model_type == 1, f.spaces, err);
}
