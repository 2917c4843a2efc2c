/*
 * tokenizer.c - opens tokenizers and runs their steps.
 *
 * The kinds differ only in who fills in the steps (the readers); from there on
 * there is one way from text to ids.
 */
#include "config.h"

#include "runtime/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "runtime/tokenizer/model/tok_pipeline.h"

/* ---- Opening ---- */

struct kind {
    const char *name;
    bool (*recognises)(const struct lmq_blob *blob);
    enum lmq_status (*read)(struct lmq_tokenizer *t,
                            const struct lmq_blob *blob,
                            struct lmq_error *err);
};

/* The most certain first: llama2.c's file has no mark of its own, and what
 * Hugging Face's has may be words of a vocabulary. */
static const struct kind kinds[] = {
    { "Mistral", lmq_tekken_recognises, lmq_tekken_read },
    { "Hugging Face", lmq_hf_recognises, lmq_hf_read },
    { "GGUF", lmq_gguf_vocab_recognises, lmq_gguf_vocab_read },
    { "SentencePiece", lmq_spm_recognises, lmq_spm_read },
    { "tiktoken", lmq_tiktoken_recognises, lmq_tiktoken_read },
    { "llama2.c", lmq_llama2c_vocab_recognises, lmq_llama2c_vocab_read },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

bool
lmq_tokenizer_recognises(const struct lmq_blob *blob)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].recognises(blob))
            return true;
    return false;
}

static const struct kind *
find_kind(const struct lmq_blob *blobs, size_t n_blobs,
          const struct lmq_blob **found)
{
    for (size_t i = 0; i < N_KINDS; i++)
        for (size_t k = 0; k < n_blobs; k++)
            if (kinds[i].recognises(&blobs[k])) {
                *found = &blobs[k];
                return &kinds[i];
            }
    return NULL;
}

static uint64_t
hash_into(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static uint64_t
hash_number(uint64_t hash, uint64_t value)
{
    unsigned char p[8];

    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(value >> 8 * i);
    return hash_into(hash, p, sizeof(p));
}

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

uint64_t
lmq_tokenizer_digest(const struct lmq_tokenizer *t)
{
    uint64_t hash = hash_number(HASH_BEGIN, t->vocab.n);
    uint64_t merges = 0;

    for (size_t i = 0; i < t->vocab.n; i++) {
        int32_t id = (int32_t)i;
        enum lmq_piece_type type = lmq_vocab_type(&t->vocab, id);
        struct lmq_chars text = type == LMQ_PIECE_UNKNOWN
                                    ? lmq_vocab_text(&t->vocab, id)
                                    : lmq_tokenizer_piece(t, id);
        hash = hash_number(hash, type);
        hash = hash_number(hash, text.n);
        hash = hash_into(hash, text.p, text.n);
        if (!t->model.has_table && type == LMQ_PIECE_NORMAL)
            hash = hash_number(hash, t->vocab.orders[i]);
    }
    /* A sum, so that the order of the table does not matter. */
    for (size_t i = 0; i < t->model.n_table; i++) {
        const struct lmq_merge *m = &t->model.table[i];
        if (m->left < 0)
            continue;
        uint64_t one = hash_number(HASH_BEGIN, (uint64_t)m->left);
        one = hash_number(one, (uint64_t)m->right);
        one = hash_number(one, (uint64_t)m->merged);
        merges += hash_number(one, m->order);
    }
    return hash_number(hash, merges);
}

/* Where no pre-tokenizer cuts, words do if nothing can span them: the result
 * is the same, and short words are found again. But for Unigram models of
 * SentencePiece, which rounds the sum from the beginning of the text on: behind
 * much text the nearest paths tie there, which here are told apart. Without the
 * cuts ids would be the same, at two fifths of the speed. */
static enum lmq_status
break_into_words(struct lmq_tokenizer *t, struct lmq_error *err)
{
    static const char *const spaces[] = { LMQ_SPACE_MARK, " " };

    /* What is dropped brings its neighbours together. */
    if (t->n_splits > 0 || t->is_byte_level || t->model.prefers_whole ||
        t->model.drops_unknown)
        return LMQ_OK;
    for (size_t i = 0; i < 2; i++) {
        struct lmq_chars space = lmq_chars(spaces[i], strlen(spaces[i]));
        bool is_joint[256], is_alone[128];
        if (!lmq_vocab_find_breaks(&t->vocab, space,
                                   t->model.kind == LMQ_TOK_BPE &&
                                       t->model.falls_back_to_bytes,
                                   is_joint, is_alone))
            continue;
        struct lmq_split_step *step = lmq_pipeline_add_split(t);
        if (step == NULL ||
            lmq_buffer_append(&step->text, space.p, space.n) != 0)
            return lmq_fail_nomem(err);
        step->kind = LMQ_SPLIT_SPACES;
        memcpy(step->is_joint, is_joint, sizeof(is_joint));
        memcpy(step->is_alone, is_alone, sizeof(is_alone));
        break;
    }
    return LMQ_OK;
}

/* Through SentencePiece's rules its own user pieces come as they are. */
static enum lmq_status
keep_user_pieces(const struct lmq_vocab *vocab, struct lmq_normal_step *step,
                 struct lmq_error *err)
{
    for (size_t id = 0; id < vocab->n; id++)
        if (vocab->pieces[id].type == LMQ_PIECE_USER &&
            vocab->pieces[id].is_matched &&
            lmq_trie_add(&step->kept, lmq_vocab_text(vocab, (int32_t)id),
                         (int32_t)id) != 0)
            return lmq_fail_nomem(err);
    lmq_trie_build(&step->kept);
    lmq_normal_find_plain(step);
    return LMQ_OK;
}

/* Tries point into the texts, which move until the last one is there. */
static enum lmq_status
build_tries(struct lmq_tokenizer *t, struct lmq_error *err)
{
    enum lmq_status status = lmq_added_build(&t->added, err);

    if (status == LMQ_OK && t->model.kind == LMQ_TOK_UNIGRAM)
        status = lmq_unigram_build(&t->model, &t->vocab, err);
    for (size_t i = 0; i < t->n_normals && status == LMQ_OK; i++)
        if (t->normals[i].kind == LMQ_NORMAL_SENTENCEPIECE)
            status = keep_user_pieces(&t->vocab, &t->normals[i], err);
    return status;
}

static enum lmq_status
complete(struct lmq_tokenizer *t, struct lmq_error *err)
{
    if (t->vocab.n == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the vocabulary is empty");
    enum lmq_status status = build_tries(t, err);
    if (status == LMQ_OK)
        status = break_into_words(t, err);
    return status == LMQ_OK ? lmq_decode_build(t, err) : status;
}

static enum lmq_status
fail_unknown(const struct lmq_blob *blobs, size_t n, struct lmq_error *err)
{
    static const char lfs[] = "version https://git-lfs";

    for (size_t i = 0; i < n; i++)
        if (blobs[i].size >= strlen(lfs) &&
            memcmp(blobs[i].bytes, lfs, strlen(lfs)) == 0) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                     "%s is a Git LFS pointer, not the file itself",
                     blobs[i].name);
            lmq_hint(err, "'git lfs pull' fetches the real file");
            return LMQ_ERR_UNSUPPORTED;
        }
    /* What readers put first has a tokenizer's name. */
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "%s is no tokenizer that is known here", blobs[0].name);
}

enum lmq_status
lmq_tokenizer_open(const struct lmq_blob *blobs, size_t n_blobs,
                   struct lmq_tokenizer **out, struct lmq_error *err)
{
    return lmq_tokenizer_open_for(blobs, n_blobs, 0, out, err);
}

enum lmq_status
lmq_tokenizer_open_for(const struct lmq_blob *blobs, size_t n_blobs,
                       size_t n_rows, struct lmq_tokenizer **out,
                       struct lmq_error *err)
{
    const struct lmq_blob *blob = NULL;
    const struct kind *kind = find_kind(blobs, n_blobs, &blob);

    *out = NULL;
    if (kind == NULL)
        return fail_unknown(blobs, n_blobs, err);
    struct lmq_tokenizer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return lmq_fail_nomem(err);
    t->kind = kind->name;
    t->bos = -1;
    t->n_rows = n_rows;
    lmq_vocab_init(&t->vocab);
    enum lmq_status status = kind->read(t, blob, err);
    if (status != LMQ_OK)
        lmq_error_in(err, blob->name);
    if (status == LMQ_OK)
        status = lmq_config_apply(t, blobs, n_blobs, err);
    if (status == LMQ_OK) {
        status = complete(t, err);
        if (status != LMQ_OK)
            lmq_error_in(err, blob->name);
    }
    if (status != LMQ_OK) {
        lmq_tokenizer_close(t);
        return status;
    }
    *out = t;
    return LMQ_OK;
}

void
lmq_tokenizer_close(struct lmq_tokenizer *t)
{
    if (t == NULL)
        return;
    lmq_vocab_free(&t->vocab);
    lmq_added_free(&t->added);
    for (size_t i = 0; i < t->n_normals; i++)
        lmq_normal_free(&t->normals[i]);
    free(t->normals);
    for (size_t i = 0; i < t->n_splits; i++)
        lmq_split_free(&t->splits[i]);
    free(t->splits);
    lmq_tok_model_free(&t->model);
    for (size_t i = 0; i < t->n_replacements; i++) {
        lmq_buffer_free(&t->replacements[i].from);
        lmq_buffer_free(&t->replacements[i].to);
    }
    lmq_buffer_free(&t->unknown_text);
    lmq_buffer_free(&t->texts);
    free(t->text_starts);
    free(t);
}

/* ---- Asking ---- */

const char *
lmq_tokenizer_kind(const struct lmq_tokenizer *t)
{
    return t->kind;
}

size_t
lmq_tokenizer_used(const struct lmq_tokenizer *t)
{
    size_t n = lmq_tokenizer_size(t);

    while (n > 0 &&
           lmq_vocab_type(&t->vocab, (int32_t)n - 1) == LMQ_PIECE_UNUSED)
        n--;
    return n;
}

static bool
is_same_token(const struct lmq_tokenizer *a, const struct lmq_tokenizer *b,
              int32_t id)
{
    struct lmq_chars x = lmq_tokenizer_piece(a, id);
    struct lmq_chars y = lmq_tokenizer_piece(b, id);
    bool is_control = lmq_tokenizer_is_control(a, id);

    if (is_control != lmq_tokenizer_is_control(b, id))
        return false;
    return is_control ||
           (x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0));
}

bool
lmq_tokenizer_same_ids(const struct lmq_tokenizer *a,
                       const struct lmq_tokenizer *b, int32_t *id)
{
    const size_t n =
        lmq_size_min(lmq_tokenizer_used(a), lmq_tokenizer_used(b));

    *id = 0;
    while ((size_t)*id < n && is_same_token(a, b, *id))
        ++*id;
    return (size_t)*id == n;
}

size_t
lmq_tokenizer_size(const struct lmq_tokenizer *t)
{
    return t->vocab.n;
}

int32_t
lmq_tokenizer_bos(const struct lmq_tokenizer *t)
{
    return t->bos;
}

const int32_t *
lmq_tokenizer_eos(const struct lmq_tokenizer *t, size_t *n)
{
    *n = t->eos.n;
    return t->eos.ids;
}

bool
lmq_tokenizer_is_eos(const struct lmq_tokenizer *t, int32_t id)
{
    return lmq_marks_have(&t->eos, id);
}

unsigned
lmq_tokenizer_default_flags(const struct lmq_tokenizer *t)
{
    return t->default_flags;
}

/* ---- Encoding ---- */

/* Words that came before in the same call, a line of the cache each. Of two
 * that share a place the later one stays. */
#define WORDS_MAX 32768
#define MAX_WORD 48

struct word {
    size_t ids_start;
    uint32_t n_ids, n; /* bytes; 0: it is free */
    unsigned char text[MAX_WORD];
};

struct encoder {
    const struct lmq_tokenizer *t;
    struct lmq_added_rule rule;
    bool is_inner; /* tokens stand before the text */
    struct lmq_buffer text, spare;
    struct lmq_parts parts, spare_parts;
    struct lmq_tok_scratch model;
    struct lmq_regex_scratch *patterns;
    struct word *words; /* (n_words) */
    size_t n_words; /* a power of two */
    struct lmq_ids *ids;
    struct lmq_error *err;
};

static enum lmq_status
encode_with_model(struct encoder *e, struct lmq_chars text)
{
    const struct lmq_tokenizer *t = e->t;

    return t->model.kind == LMQ_TOK_UNIGRAM
               ? lmq_unigram_encode(&t->model, &t->vocab, text, &e->model,
                                    e->ids, e->err)
               : lmq_bpe_encode(&t->model, &t->vocab, text, &e->model, e->ids,
                                e->err);
}

static enum lmq_status
repeat_word(struct encoder *e, const struct word *word)
{
    struct lmq_ids *ids = e->ids;

    if (lmq_mem_grow(&ids->ids, &ids->capacity, ids->n + word->n_ids,
                     sizeof(ids->ids[0])) != 0)
        return lmq_fail_nomem(e->err);
    if (word->n_ids > 0)
        memcpy(ids->ids + ids->n, ids->ids + word->ids_start,
               word->n_ids * sizeof(ids->ids[0]));
    ids->n += word->n_ids;
    return LMQ_OK;
}

static enum lmq_status
encode_part(struct encoder *e, struct lmq_text_part part)
{
    struct lmq_chars text =
        lmq_chars(e->parts.text.bytes + part.start, part.n);

    if (part.n == 0 || part.n > MAX_WORD || e->words == NULL)
        return encode_with_model(e, text);
    uint64_t hash = hash_into(HASH_BEGIN, text.p, text.n);
    struct word *word = &e->words[(hash ^ hash >> 32) & (e->n_words - 1)];
    if (word->n == part.n && memcmp(word->text, text.p, text.n) == 0)
        return repeat_word(e, word);
    word->ids_start = e->ids->n;
    enum lmq_status status = encode_with_model(e, text);
    word->n_ids = (uint32_t)(e->ids->n - word->ids_start);
    word->n = part.n;
    memcpy(word->text, text.p, text.n);
    return status;
}

/* Into parts that no piece spans. */
static enum lmq_status
cut(struct encoder *e, struct lmq_chars text, bool is_first)
{
    const struct lmq_tokenizer *t = e->t;
    enum lmq_status status = LMQ_OK;

    e->parts.text.most = e->spare_parts.text.most = lmq_pipeline_most(text.n);
    if (lmq_parts_begin(&e->parts, text, is_first) != 0)
        return lmq_fail_nomem(e->err);
    for (size_t i = 0; i < t->n_splits && status == LMQ_OK; i++)
        status = lmq_split_apply(&t->splits[i], e->patterns, &e->parts,
                                 &e->spare_parts, e->err);
    return status;
}

static enum lmq_status
encode_plain(struct encoder *e, struct lmq_chars text, bool is_first)
{
    enum lmq_status status = text.n == 0 ? LMQ_OK : cut(e, text, is_first);

    if (text.n == 0 || status != LMQ_OK)
        return status;
    if (e->parts.n > 1 && e->words == NULL) {
        e->words = calloc(e->n_words, sizeof(e->words[0]));
        if (e->words == NULL)
            return lmq_fail_nomem(e->err);
    }
    for (size_t i = 0; i < e->parts.n && status == LMQ_OK; i++)
        status = encode_part(e, e->parts.parts[i]);
    return status;
}

/* Text between two raw added tokens. */
static enum lmq_status
encode_section(struct encoder *e, struct lmq_chars raw, bool is_first)
{
    const struct lmq_tokenizer *t = e->t;
    enum lmq_status status =
        lmq_pipeline_normalize(t, e->patterns, raw, &e->text, &e->spare,
                               e->err);
    struct lmq_chars text = lmq_chars(e->text.bytes, e->text.n);
    struct lmq_added_rule rule = e->rule;

    rule.n_spans = 0; /* of the text as it was */
    for (size_t at = 0, from = 0; status == LMQ_OK && at < text.n;) {
        struct lmq_added_match match = lmq_added_next(
            &t->added, &t->added.normalized, text, at, from, &rule);
        if (match.start > from)
            status = encode_plain(
                e, lmq_chars(text.p + from, match.start - from),
                is_first && from == 0);
        if (status == LMQ_OK && match.id >= 0 &&
            lmq_ids_append(e->ids, match.id) != 0)
            status = lmq_fail_nomem(e->err);
        from = match.stop;
        at = match.next;
    }
    return status;
}

static enum lmq_status
encode_text(struct encoder *e, struct lmq_chars text)
{
    const struct lmq_tokenizer *t = e->t;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0, from = 0; status == LMQ_OK && at < text.n;) {
        struct lmq_added_match match = lmq_added_next(
            &t->added, &t->added.raw, text, at, from, &e->rule);
        if (match.start > from)
            status = encode_section(
                e, lmq_chars(text.p + from, match.start - from),
                from == 0 && !e->is_inner);
        if (status == LMQ_OK && match.id >= 0 &&
            lmq_ids_append(e->ids, match.id) != 0)
            status = lmq_fail_nomem(e->err);
        from = match.stop;
        at = match.next;
    }
    return status;
}

/* The marks of the template, else the one id. */
static enum lmq_status
append_marks(struct encoder *e, const struct lmq_marks *marks, int32_t id)
{
    for (size_t i = 0; i < marks->n; i++)
        if (lmq_ids_append(e->ids, marks->ids[i]) != 0)
            return lmq_fail_nomem(e->err);
    if (marks->n == 0 && id >= 0 && lmq_ids_append(e->ids, id) != 0)
        return lmq_fail_nomem(e->err);
    return LMQ_OK;
}

static void
free_encoder(struct encoder *e)
{
    lmq_buffer_free(&e->text);
    lmq_buffer_free(&e->spare);
    lmq_parts_free(&e->parts);
    lmq_parts_free(&e->spare_parts);
    lmq_tok_scratch_free(&e->model);
    lmq_regex_scratch_free(e->patterns);
    free(e->words);
}

/* Everything between the marks. */
static enum lmq_status
encode_whole(struct encoder *e, const char *text, size_t n)
{
    if (n > LMQ_TOKENIZER_MAX_TEXT)
        return lmq_fail(e->err, LMQ_ERR_ARG, 0,
                        "a text of %zu bytes is too long, the limit is %zu", n,
                        LMQ_TOKENIZER_MAX_TEXT);
    e->patterns = lmq_regex_scratch_new(n);
    if (e->patterns == NULL)
        return lmq_fail_nomem(e->err);
    e->n_words = 1;
    while (e->n_words < WORDS_MAX && e->n_words < n)
        e->n_words *= 2;
    enum lmq_status status = encode_text(e, lmq_chars(text, n));
    free_encoder(e);
    return status;
}

enum lmq_status
lmq_tokenizer_cut(const struct lmq_tokenizer *t, const char *text, size_t n,
                  struct lmq_parts *parts, struct lmq_error *err)
{
    struct encoder e = {
        .t = t, .patterns = lmq_regex_scratch_new(n), .err = err};
    enum lmq_status status =
        e.patterns == NULL
            ? lmq_fail_nomem(err)
            : lmq_pipeline_normalize(t, e.patterns, lmq_chars(text, n),
                                     &e.text, &e.spare, err);

    if (status == LMQ_OK)
        status = cut(&e, lmq_chars(e.text.bytes, e.text.n), true);
    *parts = e.parts;
    e.parts = (struct lmq_parts){ 0 };
    free_encoder(&e);
    return status;
}

enum lmq_status
lmq_tokenizer_encode(const struct lmq_tokenizer *t, const char *text, size_t n,
                     unsigned flags, struct lmq_ids *ids,
                     struct lmq_error *err)
{
    struct encoder e = {
        .t = t,
        .rule.is_anywhere = (flags & LMQ_ENCODE_SPECIAL) != 0,
        .ids = ids,
        .err = err,
    };
    size_t before = ids->n;
    enum lmq_status status = LMQ_OK;

    if ((flags & LMQ_ENCODE_BOS) != 0)
        status = append_marks(&e, &t->prefix, t->bos);
    if (status == LMQ_OK)
        status = encode_whole(&e, text, n);
    if (status == LMQ_OK && (flags & LMQ_ENCODE_EOS) != 0)
        status = append_marks(&e, &t->suffix,
                              t->eos.n > 0 ? t->eos.ids[0] : -1);
    if (status != LMQ_OK)
        ids->n = before;
    return status;
}

enum lmq_status
lmq_tokenizer_encode_marked(const struct lmq_tokenizer *t, const char *text,
                            size_t n, const struct lmq_marking *marking,
                            struct lmq_ids *ids, struct lmq_error *err)
{
    struct encoder e = {
        .t = t,
        .rule = { false, marking->spans, marking->n_spans, marking->guarded,
                  marking->n_guarded },
        .is_inner = marking->is_inner,
        .ids = ids,
        .err = err,
    };
    size_t before = ids->n;
    enum lmq_status status = encode_whole(&e, text, n);

    if (status != LMQ_OK)
        ids->n = before;
    return status;
}

enum lmq_status
lmq_tokenizer_find_added(const struct lmq_tokenizer *t, const char *text,
                         size_t n, struct lmq_ids *ids, struct lmq_error *err)
{
    const struct lmq_text_span all = { 0, n };
    const struct lmq_added_rule rule = { .spans = &all, .n_spans = 1 };
    struct lmq_chars chars = lmq_chars(text, n);

    for (size_t at = 0, from = 0; at < n;) {
        struct lmq_added_match match =
            lmq_added_next(&t->added, &t->added.raw, chars, at, from, &rule);
        if (match.id >= 0 && lmq_ids_append(ids, match.id) != 0)
            return lmq_fail_nomem(err);
        from = match.stop;
        at = match.next;
    }
    return LMQ_OK;
}
