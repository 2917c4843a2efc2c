/*
 * export_gguf_vocab.c - a tokenizer as the keys of a GGUF.
 *
 * One that came from a GGUF is copied. Any other is said in GGUF's words as
 * well as they can, and then judged by what it does: opened again, it must
 * have the same pieces and take a text full of traps apart in the same way. A
 * tokenizer that GGUF has no words for is refused, not approximated.
 */
#include "config.h"

#include "convert/export/export_gguf_vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "base/text/buffer.h"
#include "base/text/utf8.h"
#include "convert/export/export_gguf_pre.h"
#include "formats/gguf/gguf_meta.h"
#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/text/bytelevel.h"

#define KEY(name) "tokenizer.ggml." name
/* SentencePiece's pieces, spaces and bytes, merged by a list. */
#define MERGED "gemma4"

/* ---- One that is there already ---- */

static enum lmq_status
copy_vocab(struct lmq_gguf_builder *builder, const struct lmq_blob *blob,
           uint32_t n_vocab, struct lmq_error *err)
{
    struct lmq_gguf_meta *meta;
    enum lmq_status status =
        lmq_gguf_meta_open(blob->bytes, blob->size, &meta, NULL, err);

    if (status != LMQ_OK)
        return status;
    const struct lmq_gguf_value *tokens = lmq_gguf_find(meta, KEY("tokens"));
    if (tokens == NULL || tokens->count != n_vocab)
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "GGUF: the tokenizer has %" PRIu64
                          " tokens, the model %u; llama.cpp wants as many",
                          tokens == NULL ? 0 : tokens->count, n_vocab);
    for (size_t i = 0; i < meta->n_values && status == LMQ_OK; i++)
        if (lmq_gguf_is_of_vocab(&meta->values[i]))
            lmq_gguf_put_value(builder, &meta->values[i]);
    lmq_gguf_meta_close(meta);
    return status;
}

/* ---- Pieces ---- */

/* Marks of spaces from there on become spaces. */
static void
unmark(struct lmq_buffer *text, size_t from)
{
    const size_t n_mark = strlen(LMQ_SPACE_MARK);
    size_t n = from;

    while (from < text->n) {
        bool is_mark = text->n - from >= n_mark &&
                       memcmp(text->bytes + from, LMQ_SPACE_MARK, n_mark) == 0;
        text->bytes[n++] = is_mark ? ' ' : text->bytes[from];
        from += is_mark ? n_mark : 1;
    }
    text->n = n;
}

/* Whether the marks in its name stand for spaces of a text: if it is looked for
 * behind what makes them of these. */
static bool
has_spaces(const struct lmq_gguf_words *v, int32_t id)
{
    for (size_t i = 0; v->marks_spaces && i < v->t->added.n; i++)
        if (v->t->added.tokens[i].id == id)
            return v->t->added.tokens[i].is_normalized;
    return false;
}

/* A piece as the file writes it. */
static void
append_piece(const struct lmq_gguf_words *v, int32_t id, struct lmq_buffer *out)
{
    struct lmq_chars text = lmq_vocab_text(&v->t->vocab, id);
    enum lmq_piece_type type = lmq_vocab_type(&v->t->vocab, id);
    bool marks = strcmp(lmq_tokenizer_kind(v->t), "llama2.c") == 0;

    if (!marks || type != LMQ_PIECE_NORMAL) {
        size_t from = out->n;
        lmq_pipeline_name(v->t, id, out);
        /* Of this kind, users' tokens are looked for in the text itself. */
        if (type == LMQ_PIECE_USER && strcmp(v->model, "llama") == 0 &&
            has_spaces(v, id))
            unmark(out, from);
        return;
    }
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == ' ')
            lmq_buffer_append(out, LMQ_SPACE_MARK, strlen(LMQ_SPACE_MARK));
        else
            lmq_buffer_append(out, text.p + i, 1);
}

static enum lmq_piece_type
type_of(const struct lmq_gguf_words *v, uint32_t id)
{
    enum lmq_piece_type type =
        id < v->t->vocab.n ? lmq_vocab_type(&v->t->vocab, (int32_t)id)
                           : LMQ_PIECE_NONE;

    return type == LMQ_PIECE_NONE ? LMQ_PIECE_UNUSED : type;
}

static void
put_tokens(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    struct lmq_buffer text = {0};

    lmq_gguf_put_array(builder, KEY("tokens"), LMQ_GGUF_STRING, v->n);
    for (uint32_t id = 0; id < v->n; id++) {
        text.n = 0;
        if (id >= v->t->vocab.n || lmq_vocab_type(&v->t->vocab, (int32_t)id) ==
                                       LMQ_PIECE_NONE)
            lmq_buffer_print(&text, "[PAD%u]", id);
        else
            append_piece(v, (int32_t)id, &text);
        lmq_gguf_add_text(builder, text.bytes, text.n);
    }
    lmq_gguf_put_array(builder, KEY("token_type"), LMQ_GGUF_I32, v->n);
    for (uint32_t id = 0; id < v->n; id++)
        lmq_gguf_add_u32(builder, type_of(v, id));
    builder->out.has_failed |= text.has_failed;
    lmq_buffer_free(&text);
}

/* ---- Merges and scores ---- */

static int
compare_merges(const void *a, const void *b)
{
    const struct lmq_merge *const *x = a, *const *y = b;

    return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

/* The merges in their order; the caller frees the array. */
static const struct lmq_merge **
sort_merges(const struct lmq_tok_model *model, size_t *n)
{
    const struct lmq_merge **merges =
        calloc(model->n_merges + 1, sizeof(*merges));

    *n = 0;
    for (size_t i = 0; merges != NULL && i < model->n_table; i++)
        if (model->table[i].left >= 0 && *n < model->n_merges)
            merges[(*n)++] = &model->table[i];
    if (merges != NULL)
        qsort(merges, *n, sizeof(*merges), compare_merges);
    return merges;
}

static void
append_side(const struct lmq_gguf_words *v, int32_t id, struct lmq_buffer *out)
{
    struct lmq_chars text = lmq_vocab_text(&v->t->vocab, id);

    if (v->t->is_byte_level)
        lmq_bytelevel_map(text, out); /* a failure stays in `out` */
    else
        lmq_buffer_append(out, text.p, text.n);
}

static void
put_merges(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    struct lmq_buffer text = {0};
    size_t n;
    const struct lmq_merge **merges = sort_merges(&v->t->model, &n);

    lmq_gguf_put_array(builder, KEY("merges"), LMQ_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        text.n = 0;
        append_side(v, merges[i]->left, &text);
        lmq_buffer_append(&text, " ", 1);
        append_side(v, merges[i]->right, &text);
        lmq_gguf_add_text(builder, text.bytes, text.n);
    }
    builder->out.has_failed |= merges == NULL || text.has_failed;
    lmq_buffer_free(&text);
    free(merges);
}

/* With a table of merges the first that makes a piece is its score. */
static void
put_scores(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    const struct lmq_tok_model *model = &v->t->model;
    double *scores = calloc((size_t)v->n + 1, sizeof(*scores));

    if (scores == NULL) {
        builder->out.has_failed = true;
        return;
    }
    for (uint32_t id = 0; id < v->n && id < v->t->vocab.n; id++)
        scores[id] = model->has_table ? -(double)model->n_merges - 1
                                      : v->t->vocab.pieces[id].score;
    for (size_t i = 0; model->has_table && i < model->n_table; i++) {
        const struct lmq_merge *merge = &model->table[i];
        if (merge->left >= 0 && (uint32_t)merge->merged < v->n &&
            -(double)merge->order > scores[merge->merged])
            scores[merge->merged] = -(double)merge->order;
    }
    lmq_gguf_put_array(builder, KEY("scores"), LMQ_GGUF_F32, v->n);
    for (uint32_t id = 0; id < v->n; id++)
        lmq_gguf_add_f32(builder, scores[id]);
    free(scores);
}

/* ---- Everything about one ---- */

static const char *const end_keys[LMQ_GGUF_N_ENDS] = {
    KEY("eos_token_id"), KEY("eot_token_id"), KEY("eom_token_id")};

static void
put_marks(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    unsigned flags = lmq_tokenizer_default_flags(v->t);
    int32_t bos = lmq_tokenizer_bos(v->t);

    bos = bos < 0 ? v->given->bos : bos;
    if (bos >= 0)
        lmq_gguf_put_u32(builder, KEY("bos_token_id"), (uint32_t)bos);
    for (size_t i = 0; i < v->ends.n && i < LMQ_GGUF_N_ENDS; i++)
        lmq_gguf_put_u32(builder, end_keys[i], (uint32_t)v->ends.ids[i]);
    if (v->t->vocab.unknown >= 0)
        lmq_gguf_put_u32(builder, KEY("unknown_token_id"),
                         (uint32_t)v->t->vocab.unknown);
    lmq_gguf_put_bool(builder, KEY("add_bos_token"),
                      bos >= 0 && (flags & LMQ_ENCODE_BOS) != 0);
    lmq_gguf_put_bool(builder, KEY("add_eos_token"),
                      v->ends.n > 0 && (flags & LMQ_ENCODE_EOS) != 0);
}

/* Bytes that a text is normalized to; 0 without memory. */
static size_t
normalized_size(const struct lmq_gguf_words *v, const char *text)
{
    struct lmq_buffer result = {0}, spare = {0};
    struct lmq_regex_scratch *patterns = lmq_regex_scratch_new(5);
    size_t n = 0;

    if (patterns != NULL &&
        lmq_pipeline_normalize(v->t, patterns,
                               lmq_chars(text, strlen(text)), &result,
                               &spare, NULL) == LMQ_OK)
        n = result.n;
    lmq_regex_scratch_free(patterns);
    lmq_buffer_free(&result);
    lmq_buffer_free(&spare);
    return n;
}

/* What becomes of a text tells. */
static void
find_spaces(struct lmq_gguf_words *v)
{
    size_t one = normalized_size(v, "a b");

    v->adds_space = normalized_size(v, "a") != 1;
    v->drops_spaces = one > 0 && normalized_size(v, "a  b") == one;
    v->marks_spaces =
        one == normalized_size(v, "ab") + strlen(LMQ_SPACE_MARK);
}

/* llama.cpp heeds the second key in models "t5" only; here it counts in
 * "llama" too. */
static void
put_spaces(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    lmq_gguf_put_bool(builder, KEY("add_space_prefix"), v->adds_space);
    if (v->drops_spaces)
        lmq_gguf_put_bool(builder, KEY("remove_extra_whitespaces"), true);
}

/* One that is no text is left out: the model can be used without. */
static void
put_template(struct lmq_gguf_builder *builder,
             const struct lmq_gguf_vocab *vocab)
{
    struct lmq_buffer text = {0};
    enum lmq_status status =
        lmq_chat_template_find(vocab->blobs, vocab->n_blobs, &text, NULL);

    if (status == LMQ_ERR_NOMEM)
        builder->out.has_failed = true;
    if (status == LMQ_OK && text.n > 0 && lmq_is_utf8(text.bytes, text.n))
        lmq_gguf_put_text(builder, "tokenizer.chat_template",
                          (const char *)text.bytes, text.n);
    lmq_buffer_free(&text);
}

static void
put_all(struct lmq_gguf_builder *builder, const struct lmq_gguf_words *v)
{
    bool is_gpt2 = strcmp(v->model, "gpt2") == 0;

    lmq_gguf_put_text(builder, KEY("model"), v->model, strlen(v->model));
    if (v->pre != NULL)
        lmq_gguf_put_text(builder, KEY("pre"), v->pre, strlen(v->pre));
    put_tokens(builder, v);
    if (is_gpt2 || strcmp(v->model, MERGED) == 0)
        put_merges(builder, v);
    else
        put_scores(builder, v);
    put_marks(builder, v);
    if (!is_gpt2)
        put_spaces(builder, v);
    put_template(builder, v->given);
}

/* ---- Judging ---- */

/* Letters and their marks apart: GGUF has no word for putting them together,
 * as Unicode's NFC does. */
static const char apart[] = "e\u0301 a\u0301b";

static enum lmq_status
find_composing(struct lmq_gguf_words *v, struct lmq_error *err)
{
    struct lmq_parts x = {0};
    enum lmq_status status = lmq_tokenizer_cut(v->t, apart, 3, &x, err);

    v->composes = status == LMQ_OK && x.text.n < 3;
    lmq_parts_free(&x);
    return status == LMQ_ERR_NOMEM ? status : LMQ_OK;
}

/* What one of them refuses is no reason to fail, lack of memory is. */
static bool
encodes_alike(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
              const char *text, size_t n, unsigned flags,
              enum lmq_status *status)
{
    struct lmq_ids x = {0}, y = {0};

    *status = lmq_tokenizer_encode(a, text, n, flags, &x, NULL);
    if (*status == LMQ_OK)
        *status = lmq_tokenizer_encode(b, text, n, flags, &y, NULL);
    bool is_same = *status == LMQ_OK && x.n == y.n &&
                   memcmp(x.ids, y.ids, x.n * sizeof(*x.ids)) == 0;
    lmq_ids_clear(&x);
    lmq_ids_clear(&y);
    return is_same;
}

/* The model may name a begin token where the tokenizer does not. */
static bool
is_alike(struct lmq_gguf_words *v, const struct lmq_tokenizer *b,
         enum lmq_status *status)
{
    const struct lmq_tokenizer *a = v->t;
    int32_t bos = lmq_tokenizer_bos(a);

    if (!lmq_tokenizer_same_ids(a, b, &v->odd))
        return false;
    v->odd = -1;
    return a->model.prefers_whole == b->model.prefers_whole &&
           (bos < 0 || bos == lmq_tokenizer_bos(b)) &&
           lmq_tokenizer_default_flags(a) == lmq_tokenizer_default_flags(b) &&
           encodes_alike(a, b, lmq_gguf_traps, strlen(lmq_gguf_traps), 0,
                         status) &&
           (v->composes ||
            encodes_alike(a, b, apart, strlen(apart), 0, status)) &&
           encodes_alike(a, b, "a", 1, lmq_tokenizer_default_flags(a), status);
}

/* What a token takes beside it, or wants to stand there. */
static unsigned char
habits_of(const struct lmq_added_token *token)
{
    return (unsigned char)(token->strips_left | token->strips_right << 1 |
                           token->is_single_word << 2);
}

/* Bytes of what stands for a space there, 0 for anything else. */
static size_t
space_at(struct lmq_chars text, size_t at)
{
    const size_t n = strlen(LMQ_SPACE_MARK);

    if (text.p[at] == ' ')
        return 1;
    return text.n - at >= n && memcmp(text.p + at, LMQ_SPACE_MARK, n) == 0 ? n
                                                                           : 0;
}

static bool
are_equal_but_for_marks(struct lmq_chars x, struct lmq_chars y)
{
    size_t i = 0, k = 0;

    while (i < x.n && k < y.n) {
        size_t n = space_at(x, i), m = space_at(y, k);
        if ((n == 0) != (m == 0) || (n == 0 && x.p[i] != y.p[k]))
            return false;
        i += n == 0 ? 1 : n;
        k += m == 0 ? 1 : m;
    }
    return i == x.n && k == y.n;
}

/* Read again, a token is looked for by its name, and each text between two has
 * its own space; here a normalizer may have made another text of the name, or
 * put one space before all of them. */
static bool
is_found_by_name(const struct lmq_gguf_words *v,
                 const struct lmq_added_token *token, struct lmq_buffer *name)
{
    if (v->adds_space && token->is_normalized)
        return false;
    name->n = 0;
    lmq_pipeline_name(v->t, token->id, name);
    return are_equal_but_for_marks(
        lmq_chars(v->t->added.texts.bytes + token->start, token->n),
        lmq_chars(name->bytes, name->n));
}

/* How many added tokens are found otherwise when they are read again, and how
 * many have habits then. */
static enum lmq_status
compare_habits(struct lmq_gguf_words *v, const struct lmq_tokenizer *again)
{
    size_t n = lmq_tokenizer_size(again);
    unsigned char *habits = calloc(n + 1, 1);
    struct lmq_buffer name = {0};

    v->n_lost = v->n_particular = 0;
    if (habits == NULL)
        return LMQ_ERR_NOMEM;
    for (size_t i = 0; i < again->added.n; i++) {
        const struct lmq_added_token *token = &again->added.tokens[i];
        habits[token->id] = habits_of(token);
        v->n_particular += habits[token->id] != 0;
    }
    for (size_t i = 0; i < v->t->added.n; i++) {
        const struct lmq_added_token *token = &v->t->added.tokens[i];
        v->n_lost += (size_t)token->id < n &&
                     (habits[token->id] != habits_of(token) ||
                      !is_found_by_name(v, token, &name));
    }
    bool has_failed = name.has_failed;
    free(habits);
    lmq_buffer_free(&name);
    return has_failed ? LMQ_ERR_NOMEM : LMQ_OK;
}

/* Whether what we would write does what the original does. */
static enum lmq_status
test_round_trip(struct lmq_gguf_words *v, bool *is_good, struct lmq_error *err)
{
    struct lmq_gguf_builder builder = {0};
    struct lmq_tokenizer *t = NULL;

    v->odd = -1;
    *is_good = false;
    lmq_gguf_build_begin(&builder);
    put_all(&builder, v);
    lmq_gguf_build_end(&builder, 0);
    if (builder.out.has_failed) {
        lmq_gguf_build_free(&builder);
        return lmq_fail_nomem(err);
    }
    const struct lmq_blob blob = {"vocab.gguf", builder.out.bytes,
                                  builder.out.n};
    enum lmq_status status = lmq_tokenizer_open(&blob, 1, &t, NULL);
    if (status == LMQ_OK)
        *is_good = is_alike(v, t, &status);
    if (*is_good)
        status = compare_habits(v, t);
    lmq_tokenizer_close(t);
    lmq_gguf_build_free(&builder);
    return status == LMQ_ERR_NOMEM ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
find_words(struct lmq_gguf_words *v, struct lmq_error *err)
{
    bool is_good = false;
    enum lmq_status status = LMQ_OK;

    if (!v->t->is_byte_level && v->t->model.has_table &&
        v->given->keeps_merges) {
        v->model = MERGED;
        status = test_round_trip(v, &is_good, err);
    }
    if (status == LMQ_OK && !is_good && !v->t->is_byte_level) {
        v->model = v->t->model.kind == LMQ_TOK_UNIGRAM ? "t5" : "llama";
        v->pre = strcmp(v->model, "llama") == 0 ? "default" : NULL;
        status = test_round_trip(v, &is_good, err);
    } else if (!is_good && v->t->model.has_table) {
        v->model = "gpt2";
        status = lmq_gguf_find_pre(v->t, &v->pre, &v->is_near, err);
        if (status == LMQ_OK && v->pre != NULL)
            status = test_round_trip(v, &is_good, err);
    }
    if (status != LMQ_OK || is_good)
        return status;
    struct lmq_chars text = lmq_tokenizer_piece(v->t, v->odd);
    if (v->odd < 0)
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "GGUF has no words for this tokenizer (%s)",
                 lmq_tokenizer_kind(v->t));
    else
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "GGUF has no words for this tokenizer (%s): token %" PRId32
                 ", '%.*s', would be another text there",
                 lmq_tokenizer_kind(v->t), v->odd,
                 (int)lmq_size_min(text.n, 100), (const char *)text.p);
    lmq_hint(err, ".tokenizer gives another file of the same tokenizer, for "
                  "example a GGUF with its vocabulary");
    return LMQ_ERR_UNSUPPORTED;
}

/* ---- All of it ---- */

/* The tokenizer's, and then what the model names besides. */
static struct lmq_marks
gather_ends(const struct lmq_tokenizer *t, const struct lmq_gguf_vocab *given)
{
    struct lmq_marks ends = t->eos;

    for (size_t i = 0; i < given->n_eos; i++)
        if ((uint32_t)given->eos[i] < given->n_tokens)
            lmq_marks_add(&ends, given->eos[i]);
    return ends;
}

enum lmq_status
lmq_gguf_put_vocab(struct lmq_gguf_builder *builder,
                   const struct lmq_gguf_vocab *vocab,
                   struct lmq_notes *notes, struct lmq_error *err)
{
    struct lmq_tokenizer *t = NULL;
    uint32_t n = vocab->n_tokens;

    if (vocab->n_blobs == 0) {
        lmq_gguf_put_text(builder, KEY("model"), "no_vocab", 8);
        lmq_notes_add(notes, "there is no tokenizer: the GGUF has none "
                             "either");
        return LMQ_OK;
    }
    for (size_t i = 0; i < vocab->n_blobs; i++)
        if (lmq_gguf_is(vocab->blobs[i].bytes, vocab->blobs[i].size))
            return copy_vocab(builder, &vocab->blobs[i], n, err);
    enum lmq_status status =
        lmq_tokenizer_open_for(vocab->blobs, vocab->n_blobs, n, &t, err);
    if (status != LMQ_OK)
        return status;
    struct lmq_gguf_words v = {.t = t,
                               .n = n,
                               .given = vocab,
                               .ends = gather_ends(t, vocab),
                               .odd = -1};
    size_t n_pieces = lmq_tokenizer_size(t);
    if (n_pieces > n)
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "GGUF: the tokenizer has %zu tokens, the model only "
                          "%u",
                          n_pieces, n);
    find_spaces(&v);
    if (status == LMQ_OK)
        status = find_composing(&v, err);
    if (status == LMQ_OK)
        status = find_words(&v, err);
    if (status == LMQ_OK) {
        put_all(builder, &v);
        lmq_gguf_remark(&v, notes);
    }
    lmq_tokenizer_close(t);
    return status;
}
