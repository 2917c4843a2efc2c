/*
 * tok_gguf.c - reads the tokenizer that a GGUF carries in its metadata.
 *
 * "llama" is SentencePiece BPE, "t5" SentencePiece unigram, "gpt2" byte-level
 * BPE whose pre-tokenizer has a name (pretypes.c), "gemma4" SentencePiece's
 * pieces with merges.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/text/bytelevel.h"

#define KEY(name) "tokenizer.ggml." name

bool
lmq_gguf_vocab_recognises(const struct lmq_blob *blob)
{
    return lmq_gguf_is(blob->bytes, blob->size);
}

/* ---- Pieces ---- */

struct columns {
    const struct lmq_gguf_value *tokens, *scores, *types, *merges;
};

static enum lmq_status
same_length(const struct lmq_gguf_value *tokens,
            const struct lmq_gguf_value *column, const char *name,
            struct lmq_error *err)
{
    if (column == NULL || column->count == tokens->count)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                    "GGUF: %s has %" PRIu64 " items for %" PRIu64 " tokens",
                    name, column->count, tokens->count);
}

static enum lmq_status
get_columns(const struct lmq_gguf_meta *meta, struct columns *c,
            struct lmq_error *err)
{
    enum lmq_status status = lmq_gguf_get_array(
        meta, KEY("tokens"), LMQ_GGUF_STRING, &c->tokens, err);

    if (status == LMQ_OK)
        status = lmq_gguf_get_array(meta, KEY("scores"), LMQ_GGUF_F32,
                                    &c->scores, err);
    if (status == LMQ_OK)
        status = lmq_gguf_get_array(meta, KEY("token_type"), LMQ_GGUF_I32,
                                    &c->types, err);
    if (status == LMQ_OK)
        status = lmq_gguf_get_array(meta, KEY("merges"), LMQ_GGUF_STRING,
                                    &c->merges, err);
    if (status != LMQ_OK)
        return status;
    if (c->tokens == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: there is no " KEY("tokens"));
    status = same_length(c->tokens, c->scores, KEY("scores"), err);
    return status != LMQ_OK
               ? status
               : same_length(c->tokens, c->types, KEY("token_type"), err);
}

static enum lmq_status
piece_type(const struct columns *c, uint64_t id, enum lmq_piece_type *type,
           struct lmq_error *err)
{
    int64_t number = c->types == NULL ? LMQ_PIECE_NORMAL
                                      : lmq_gguf_item_int(c->types, id);

    /* llama.cpp's "undefined" is a piece like others. */
    if (number == LMQ_PIECE_NONE)
        number = LMQ_PIECE_NORMAL;
    if (number < LMQ_PIECE_NORMAL || number > LMQ_PIECE_BYTE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: token %" PRIu64 " has the type %" PRId64, id,
                        number);
    *type = (enum lmq_piece_type)number;
    return LMQ_OK;
}

static enum lmq_status
add_pieces(struct lmq_tokenizer *t, const struct columns *c,
           struct lmq_error *err)
{
    struct lmq_gguf_strings strings = lmq_gguf_strings(c->tokens);
    struct lmq_chars text;
    struct lmq_buffer bytes = { 0 };
    const uint64_t n = c->tokens->count;
    /* A string has its length, of 8 bytes, before it. */
    enum lmq_status status = lmq_vocab_reserve(
        &t->vocab, (size_t)n, (size_t)(c->tokens->size - 8 * n), err);

    for (uint64_t id = 0; status == LMQ_OK &&
                          lmq_gguf_next_string(&strings, &text.p, &text.n);
         id++) {
        enum lmq_piece_type type = LMQ_PIECE_NORMAL;
        bool is_matched;
        status = piece_type(c, id, &type, err);
        if (status != LMQ_OK)
            break;
        is_matched = type == LMQ_PIECE_NORMAL || type == LMQ_PIECE_USER ||
                     type == LMQ_PIECE_UNUSED;
        if (t->is_byte_level) {
            /* All may be the result of a merge, whatever their type. */
            bytes.n = 0;
            is_matched = lmq_bytelevel_unmap(text, &bytes);
            if (is_matched)
                text = lmq_chars(bytes.bytes, bytes.n);
        }
        if (bytes.has_failed)
            status = lmq_fail_nomem(err);
        else
            status = lmq_vocab_set(
                &t->vocab, id, text, type,
                c->scores == NULL ? 0 : lmq_gguf_item_number(c->scores, id),
                is_matched, err);
    }
    lmq_buffer_free(&bytes);
    return status;
}

/* ---- Merges ---- */

/* A side of a merge as text: where pieces are of bytes, these are mapped. */
static bool
take_side(const struct lmq_tokenizer *t, const unsigned char *p, size_t n,
          struct lmq_buffer *side)
{
    if (t->is_byte_level)
        return lmq_bytelevel_unmap(lmq_chars(p, n), side);
    lmq_buffer_append(side, p, n);
    return n > 0;
}

static enum lmq_status
add_merges(struct lmq_tokenizer *t, const struct lmq_gguf_value *merges,
           struct lmq_error *err)
{
    struct lmq_gguf_strings strings = lmq_gguf_strings(merges);
    struct lmq_buffer sides[2] = { { 0 }, { 0 } };
    struct lmq_chars text;
    enum lmq_status status = lmq_merges_begin(
        &t->model, (size_t)lmq_u64_min(merges->count, SIZE_MAX), err);

    while (status == LMQ_OK &&
           lmq_gguf_next_string(&strings, &text.p, &text.n)) {
        const unsigned char *space =
            text.n < 2 ? NULL : memchr(text.p + 1, ' ', text.n - 1);
        sides[0].n = 0;
        sides[1].n = 0;
        bool is_pair =
            space != NULL &&
            take_side(t, text.p, (size_t)(space - text.p), &sides[0]) &&
            take_side(t, space + 1, text.n - 1 - (size_t)(space - text.p),
                      &sides[1]);
        if (sides[0].has_failed || sides[1].has_failed)
            status = lmq_fail_nomem(err);
        else if (!is_pair)
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "GGUF: the merge '%.*s' is not two pieces",
                              (int)lmq_size_min(text.n, 100),
                              (const char *)text.p);
        else
            status = lmq_merges_add(
                &t->model, &t->vocab,
                lmq_chars(sides[0].bytes, sides[0].n),
                lmq_chars(sides[1].bytes, sides[1].n), err);
    }
    lmq_buffer_free(&sides[0]);
    lmq_buffer_free(&sides[1]);
    return status;
}

/* ---- "gpt2" ---- */

static bool
is_special(enum lmq_piece_type type)
{
    return type == LMQ_PIECE_CONTROL || type == LMQ_PIECE_UNKNOWN;
}

/* What is looked for in the text itself has a name, as llama.cpp shows it,
 * though all its letters are those of bytes; what merges make of bytes, and the
 * byte itself, stand for these. */
static enum lmq_status
keep_names(struct lmq_tokenizer *t, const struct lmq_gguf_value *tokens,
           struct lmq_error *err)
{
    struct lmq_gguf_strings strings = lmq_gguf_strings(tokens);
    struct lmq_chars name;
    unsigned char *is_made = calloc(t->vocab.n + 1, 1);
    bool is_renamed = false;
    enum lmq_status status = is_made == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; status == LMQ_OK && i < t->model.n_table; i++)
        if (t->model.table[i].left >= 0)
            is_made[t->model.table[i].merged] = 1;
    for (int32_t id = 0; status == LMQ_OK &&
                         lmq_gguf_next_string(&strings, &name.p, &name.n);
         id++) {
        enum lmq_piece_type type = lmq_vocab_type(&t->vocab, id);
        struct lmq_chars bytes = lmq_vocab_text(&t->vocab, id);
        if ((type == LMQ_PIECE_USER || is_special(type)) && bytes.n > 1 &&
            !is_made[id] && !lmq_chars_equal(bytes, name)) {
            status = lmq_vocab_rename(&t->vocab, id, name, err);
            is_renamed = true;
        }
    }
    free(is_made);
    return status == LMQ_OK && is_renamed ? lmq_vocab_index(&t->vocab, err)
                                          : status;
}

static enum lmq_status
add_special(struct lmq_tokenizer *t, struct lmq_error *err)
{
    struct lmq_buffer name = { 0 };
    enum lmq_status status = LMQ_OK;

    for (size_t id = 0; id < t->vocab.n && status == LMQ_OK; id++) {
        enum lmq_piece_type type = lmq_vocab_type(&t->vocab, (int32_t)id);
        struct lmq_added_token token = { .id = (int32_t)id };
        token.is_special = is_special(type);
        if (!token.is_special && type != LMQ_PIECE_USER)
            continue;
        name.n = 0;
        lmq_pipeline_name(t, (int32_t)id, &name);
        status = name.has_failed
                     ? lmq_fail_nomem(err)
                     : lmq_added_add(&t->added, token,
                                     lmq_chars(name.bytes, name.n), err);
    }
    lmq_buffer_free(&name);
    return status;
}

static enum lmq_status
read_byte_level(struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
                const struct columns *c, struct lmq_error *err)
{
    struct lmq_chars pre = lmq_chars("", 0);
    enum lmq_status status =
        lmq_gguf_get_text(meta, KEY("pre"), &pre.p, &pre.n, err);

    if (status != LMQ_OK)
        return status;
    if (pre.n == 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF: without " KEY("pre")
                        " nobody knows how text is split");
    const struct lmq_pretype *pretype = lmq_pretype_find(pre);
    if (pretype == NULL)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF: the pre-tokenizer '%.*s' is not known",
                        (int)lmq_size_min(pre.n, 100), (const char *)pre.p);
    if (c->merges == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: there is no " KEY("merges"));
    t->is_byte_level = true;
    t->model.starts_from_bytes = true;
    t->model.prefers_whole = pretype->prefers_whole;
    t->default_flags = pretype->adds_bos ? LMQ_ENCODE_BOS : 0;
    status = add_pieces(t, c, err);
    if (status == LMQ_OK)
        status = lmq_vocab_index(&t->vocab, err);
    if (status == LMQ_OK)
        status = add_merges(t, c->merges, err);
    if (status == LMQ_OK)
        status = keep_names(t, c->tokens, err);
    if (status == LMQ_OK)
        status = lmq_pretype_split(t, pretype, err);
    return status == LMQ_OK ? add_special(t, err) : status;
}

/* ---- "llama", "t5" ---- */

static enum lmq_status
get_spaces(const struct lmq_gguf_meta *meta, bool is_unigram, bool has_prefix,
           struct lmq_spm_spaces *spaces, struct lmq_error *err)
{
    const struct lmq_gguf_value *charsmap =
        is_unigram ? lmq_gguf_find(meta, KEY("precompiled_charsmap")) : NULL;

    *spaces = (struct lmq_spm_spaces){ LMQ_SPACE_MARK, has_prefix, false,
                                       { NULL, 0 } };
    enum lmq_status status = lmq_gguf_get_bool(
        meta, KEY("add_space_prefix"), &spaces->adds_prefix, err);
    if (status == LMQ_OK)
        status = lmq_gguf_get_bool(meta, KEY("remove_extra_whitespaces"),
                                   &spaces->removes_extra, err);
    if (status != LMQ_OK || charsmap == NULL)
        return status;
    if (charsmap->type != LMQ_GGUF_ARRAY ||
        (charsmap->item_type != LMQ_GGUF_U8 &&
         charsmap->item_type != LMQ_GGUF_I8))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: " KEY("precompiled_charsmap")
                        " is not an array of bytes");
    spaces->charsmap = lmq_chars(charsmap->data, charsmap->size);
    return LMQ_OK;
}

/* Its special tokens take the white space behind them, but for three; GGUF has
 * no word for that. llama.cpp goes by the name of the model, which a tokenizer
 * does not have; no other has all of these. */
static bool
is_of_phi3(const struct lmq_tokenizer *t)
{
    static const char *const marks[] = { "<|placeholder1|>", "<|assistant|>",
                                         "<|end|>" };
    size_t n = 0;

    for (size_t i = 0; i < t->added.n; i++) {
        struct lmq_chars text =
            lmq_vocab_text(&t->vocab, t->added.tokens[i].id);
        for (size_t k = 0; k < sizeof(marks) / sizeof(marks[0]); k++)
            n += lmq_chars_equal(text, lmq_chars(marks[k], strlen(marks[k])));
    }
    return n == sizeof(marks) / sizeof(marks[0]);
}

static void
strip_as_phi3(struct lmq_tokenizer *t)
{
    static const char *const others[] = { "<unk>", "<s>", "<|endoftext|>" };

    for (size_t i = 0; i < t->added.n; i++) {
        struct lmq_chars text =
            lmq_vocab_text(&t->vocab, t->added.tokens[i].id);
        bool strips = true;
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            strips &= !lmq_chars_equal(
                text, lmq_chars(others[k], strlen(others[k])));
        t->added.tokens[i].strips_right = strips;
    }
}

static enum lmq_status
read_sentencepiece(struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
                   const struct columns *c, bool is_unigram,
                   struct lmq_error *err)
{
    struct lmq_spm_spaces spaces;
    enum lmq_status status =
        get_spaces(meta, is_unigram, true, &spaces, err);

    if (status != LMQ_OK)
        return status;
    if (c->scores == NULL || c->types == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: there are no " KEY("scores") " or no "
                        KEY("token_type"));
    t->default_flags = is_unigram ? LMQ_ENCODE_EOS : LMQ_ENCODE_BOS;
    t->model.falls_back_to_bytes = true;
    status = add_pieces(t, c, err);
    if (status == LMQ_OK)
        status = lmq_spm_describe(t, is_unigram, spaces, err);
    /* llama.cpp looks for users' tokens in the text itself too, and what stands
     * between two of them is a text of its own. */
    for (size_t i = 0; i < t->added.n; i++)
        t->added.tokens[i].is_normalized = false;
    if (status == LMQ_OK && is_of_phi3(t))
        strip_as_phi3(t);
    return status;
}

/* ---- "gemma4" ---- */

/* SentencePiece's spaces and bytes, but what is merged stands in a list. */
static enum lmq_status
read_merged(struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
            const struct columns *c, struct lmq_error *err)
{
    struct lmq_spm_spaces spaces;
    enum lmq_status status = get_spaces(meta, false, false, &spaces, err);

    if (status != LMQ_OK)
        return status;
    if (c->merges == NULL || c->types == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: there are no " KEY("merges") " or no "
                        KEY("token_type"));
    t->default_flags = LMQ_ENCODE_BOS;
    t->model.falls_back_to_bytes = true;
    status = add_pieces(t, c, err);
    if (status == LMQ_OK)
        status = lmq_spm_describe(t, false, spaces, err);
    return status == LMQ_OK ? add_merges(t, c->merges, err) : status;
}

/* ---- Begin and end ---- */

static enum lmq_status
get_id(const struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
       const char *key, int32_t *id, struct lmq_error *err)
{
    uint64_t number = UINT64_MAX;
    const struct lmq_gguf_value *value = lmq_gguf_find(meta, key);

    /* -1 and its unsigned likes say "none". */
    if (value != NULL && value->type != LMQ_GGUF_STRING &&
        value->size <= 8 && value->count == 1 &&
        lmq_gguf_item_int(value, 0) == -1)
        return LMQ_OK;
    enum lmq_status status =
        lmq_gguf_get_uint(meta, key, UINT64_MAX - 1, &number, err);
    if (status != LMQ_OK || number == UINT64_MAX || number == UINT32_MAX)
        return status;
    if (number >= t->vocab.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is %" PRIu64 ", there are %zu tokens", key,
                        number, t->vocab.n);
    *id = (int32_t)number;
    return LMQ_OK;
}

static enum lmq_status
get_flag(struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
         const char *key, unsigned flag, struct lmq_error *err)
{
    bool is_set = (t->default_flags & flag) != 0;
    enum lmq_status status = lmq_gguf_get_bool(meta, key, &is_set, err);

    t->default_flags = is_set ? t->default_flags | flag
                              : t->default_flags & ~flag;
    return status;
}

static enum lmq_status
read_marks(struct lmq_tokenizer *t, const struct lmq_gguf_meta *meta,
           bool is_llama, struct lmq_error *err)
{
    static const char *const ends[] = { KEY("eos_token_id"),
                                        KEY("eot_token_id"),
                                        KEY("eom_token_id") };
    enum lmq_status status = LMQ_OK;

    /* llama.cpp's defaults for "llama". */
    t->bos = is_llama && t->vocab.n > 2 ? 1 : -1;
    status = get_id(t, meta, KEY("bos_token_id"), &t->bos, err);
    for (size_t i = 0; i < 3 && status == LMQ_OK; i++) {
        int32_t id = is_llama && i == 0 && t->vocab.n > 2 ? 2 : -1;
        status = get_id(t, meta, ends[i], &id, err);
        if (status == LMQ_OK && id >= 0)
            lmq_marks_add(&t->eos, id);
    }
    /* Byte-level, nothing is unknown. */
    if (status == LMQ_OK && t->vocab.unknown < 0 && !t->is_byte_level)
        status = get_id(t, meta, KEY("unknown_token_id"), &t->vocab.unknown,
                        err);
    if (status == LMQ_OK)
        status = get_flag(t, meta, KEY("add_bos_token"), LMQ_ENCODE_BOS, err);
    if (status == LMQ_OK)
        status = get_flag(t, meta, KEY("add_eos_token"), LMQ_ENCODE_EOS, err);
    return status;
}

enum lmq_status
lmq_gguf_vocab_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
                    struct lmq_error *err)
{
    struct lmq_gguf_meta *meta;
    struct columns c = { 0 };
    struct lmq_chars model = lmq_chars("", 0);
    enum lmq_status status =
        lmq_gguf_meta_open(blob->bytes, blob->size, &meta, NULL, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_gguf_get_text(meta, KEY("model"), &model.p, &model.n, err);
    bool is_llama = lmq_chars_equal(model, lmq_chars("llama", 5));
    bool is_t5 = lmq_chars_equal(model, lmq_chars("t5", 2));
    bool is_gpt2 = lmq_chars_equal(model, lmq_chars("gpt2", 4));
    bool is_gemma4 = lmq_chars_equal(model, lmq_chars("gemma4", 6));
    if (status == LMQ_OK && !is_llama && !is_t5 && !is_gpt2 && !is_gemma4)
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "GGUF: the tokenizer model '%.*s' is not supported",
                          (int)lmq_size_min(model.n, 100),
                          (const char *)model.p);
    if (status == LMQ_OK)
        status = get_columns(meta, &c, err);
    if (status == LMQ_OK)
        status = is_gpt2     ? read_byte_level(t, meta, &c, err)
                 : is_gemma4 ? read_merged(t, meta, &c, err)
                             : read_sentencepiece(t, meta, &c, is_t5, err);
    if (status == LMQ_OK)
        status = read_marks(t, meta, is_llama, err);
    lmq_gguf_meta_close(meta);
    return status;
}
