/*
 * tok_hf.c - reads Hugging Face's tokenizer.json: model and added tokens.
 *
 * The steps before and after the model are tok_hf_steps.c's and
 * tok_hf_output.c's business.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "base/text/utf8.h"
#include "runtime/tokenizer/read/tok_hf_tables.h"
#include "runtime/tokenizer/read/tok_json.h"
#include "runtime/tokenizer/text/bytelevel.h"

/* ---- Recognising ---- */

static bool
contains(const struct lmq_blob *blob, const char *text)
{
    return lmq_chars_find(lmq_chars(blob->bytes, blob->size),
                          lmq_chars(text, strlen(text))) != NULL;
}

bool
lmq_hf_recognises(const struct lmq_blob *blob)
{
    size_t at = 0;

    while (at < blob->size && blob->bytes[at] != 0 &&
           strchr(" \t\r\n", blob->bytes[at]) != NULL)
        at++;
    return at < blob->size && blob->bytes[at] == '{' &&
           contains(blob, "\"model\"") && contains(blob, "\"vocab\"");
}

/* ---- Pieces ---- */

struct hf {
    struct lmq_tokenizer *t;
    const json_t *root, *model, *added;
    uint64_t first_added, last_added; /* ids: what is outside is not one */
    uint64_t next_added; /* the id that Hugging Face gives the next new one */
    const struct lmq_hf_tables *tables; /* NULL: they stand in the root */
    bool is_unigram;
    struct lmq_buffer bytes;
    struct lmq_regex_scratch *patterns;
};

/* Added tokens that the model's vocabulary has as well. */
static const json_t *
find_added(const struct hf *hf, const json_t *by_id, uint64_t id)
{
    char key[24];

    if (id < hf->first_added || id > hf->last_added)
        return NULL;
    snprintf(key, sizeof(key), "%" PRIu64, id);
    return json_object_get(by_id, key);
}

static enum lmq_piece_type
piece_type(const struct hf *hf, const json_t *added, struct lmq_chars text,
           bool is_unknown)
{
    if (is_unknown)
        return LMQ_PIECE_UNKNOWN;
    if (hf->t->model.falls_back_to_bytes && lmq_byte_piece(text) >= 0)
        return LMQ_PIECE_BYTE; /* one that was added, too */
    if (added != NULL)
        return json_is_true(json_object_get(added, "special"))
                   ? LMQ_PIECE_CONTROL
                   : LMQ_PIECE_USER;
    return LMQ_PIECE_NORMAL;
}

static bool
is_character(struct lmq_chars text)
{
    return text.n > 0 && lmq_utf8_length(text.p, text.n) == text.n;
}

/* One piece of the model's vocabulary. */
static enum lmq_status
add_piece(struct hf *hf, const json_t *by_id, uint64_t id,
          struct lmq_chars text, double score, bool is_unknown,
          struct lmq_error *err)
{
    const json_t *added = find_added(hf, by_id, id);
    enum lmq_piece_type type = piece_type(hf, added, text, is_unknown);
    bool is_matched = type != LMQ_PIECE_BYTE;

    if (added != NULL &&
        !lmq_chars_equal(lmq_json_chars(json_object_get(added, "content")),
                         text))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "token %" PRIu64 " is '%.*s' in the vocabulary, "
                        "something else among the added tokens",
                        id, (int)(text.n < 100 ? text.n : 100),
                        (const char *)text.p);
    /* In the best path a special token's name must stay text, but a character
     * is no name, and has no other piece. */
    if (hf->is_unigram)
        is_matched = type == LMQ_PIECE_NORMAL || type == LMQ_PIECE_USER ||
                     (type == LMQ_PIECE_CONTROL && is_character(text));
    if (hf->t->is_byte_level) {
        hf->bytes.n = 0;
        is_matched = lmq_bytelevel_unmap(text, &hf->bytes);
        if (is_matched) /* though it be added: it stands for its bytes */
            text = lmq_chars(hf->bytes.bytes, hf->bytes.n);
    }
    if (hf->bytes.has_failed)
        return lmq_fail_nomem(err);
    hf->next_added++;
    return lmq_vocab_set(&hf->t->vocab, id, text, type, score, is_matched,
                         err);
}

static enum lmq_status
add_bpe_piece(struct hf *hf, const json_t *by_id, struct lmq_chars text,
              uint64_t id, struct lmq_error *err)
{
    const json_t *unknown = json_object_get(hf->model, "unk_token");

    return add_piece(hf, by_id, id, text, 0,
                     json_is_string(unknown) &&
                         lmq_chars_equal(text, lmq_json_chars(unknown)),
                     err);
}

static enum lmq_status
add_bpe_pieces(struct hf *hf, const json_t *by_id, struct lmq_error *err)
{
    json_t *vocab = json_object_get(hf->model, "vocab");
    enum lmq_status status = LMQ_OK;
    const char *key;
    json_t *value;

    for (size_t i = 0;
         hf->tables != NULL && i < hf->tables->pieces.n && status == LMQ_OK;
         i++)
        status =
            add_bpe_piece(hf, by_id, hf->tables->pieces.entries[i].text,
                          hf->tables->pieces.entries[i].id, err);
    if (hf->tables != NULL)
        return status;
    if (!json_is_object(vocab))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the vocabulary is not an object");
    json_object_foreach(vocab, key, value) {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the id of '%.100s' is not a number from 0", key);
        status = add_bpe_piece(hf, by_id, lmq_chars(key, strlen(key)),
                               (uint64_t)id, err);
        if (status != LMQ_OK)
            return status;
    }
    return LMQ_OK;
}

static enum lmq_status
add_unigram_pieces(struct hf *hf, const json_t *by_id, struct lmq_error *err)
{
    const json_t *vocab = json_object_get(hf->model, "vocab");
    const json_t *unknown = json_object_get(hf->model, "unk_id");
    json_int_t unknown_id =
        json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    enum lmq_status status = LMQ_OK;

    if (!json_is_array(vocab))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the vocabulary is not an array");
    for (size_t id = 0; id < json_array_size(vocab) && status == LMQ_OK;
         id++) {
        const json_t *item = json_array_get(vocab, id);
        const json_t *text = json_array_get(item, 0);
        const json_t *score = json_array_get(item, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "token %zu is not [text, score]", id);
        status = add_piece(hf, by_id, id, lmq_json_chars(text),
                           json_number_value(score),
                           (json_int_t)id == unknown_id, err);
    }
    return status;
}

/* ---- Merges ---- */

/* "a b", or ["a", "b"] in newer files. */
static bool
merge_sides(struct lmq_hf_entry *merge)
{
    struct lmq_chars *left = &merge->text, *right = &merge->right;

    if (right->p != NULL)
        return left->n > 0 && right->n > 0;
    const unsigned char *space =
        left->n == 0 ? NULL : memchr(left->p, ' ', left->n);
    if (space == NULL)
        return false;
    size_t n = (size_t)(space - left->p);
    *right = lmq_chars(space + 1, left->n - n - 1);
    left->n = n;
    return n > 0 && right->n > 0 && memchr(right->p, ' ', right->n) == NULL;
}

static struct lmq_hf_entry
merge_at(const struct hf *hf, const json_t *merges, size_t i)
{
    const json_t *merge = json_array_get(merges, i);

    if (hf->tables != NULL)
        return hf->tables->merges.entries[i];
    if (!json_is_array(merge))
        return (struct lmq_hf_entry){.text = lmq_json_chars(merge)};
    if (json_array_size(merge) != 2)
        return (struct lmq_hf_entry){.text = lmq_chars("", 0)};
    return (struct lmq_hf_entry){
        .text = lmq_json_chars(json_array_get(merge, 0)),
        .right = lmq_json_chars(json_array_get(merge, 1)),
    };
}

static enum lmq_status
add_merge(struct hf *hf, struct lmq_chars left, struct lmq_chars right,
          struct lmq_error *err)
{
    if (hf->t->is_byte_level) {
        hf->bytes.n = 0;
        bool is_known = lmq_bytelevel_unmap(left, &hf->bytes);
        size_t n = hf->bytes.n;
        is_known = is_known && lmq_bytelevel_unmap(right, &hf->bytes);
        if (hf->bytes.has_failed)
            return lmq_fail_nomem(err);
        if (is_known) {
            left = lmq_chars(hf->bytes.bytes, n);
            right = lmq_chars(hf->bytes.bytes + n, hf->bytes.n - n);
        }
    }
    return lmq_merges_add(&hf->t->model, &hf->t->vocab, left, right, err);
}

static enum lmq_status
add_merges(struct hf *hf, struct lmq_error *err)
{
    const json_t *merges = json_object_get(hf->model, "merges");
    size_t n = hf->tables != NULL ? hf->tables->merges.n
                                  : json_array_size(merges);
    enum lmq_status status = lmq_merges_begin(&hf->t->model, n, err);

    if (status == LMQ_OK && hf->tables == NULL && !json_is_array(merges))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "the merges are no array");
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        struct lmq_hf_entry merge = merge_at(hf, merges, i);
        if (!merge_sides(&merge))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "merge %zu is not two pieces", i);
        status = add_merge(hf, merge.text, merge.right, err);
    }
    return status;
}

/* ---- The model ---- */

static enum lmq_status
check_absent(const struct hf *hf, const char *key, struct lmq_error *err)
{
    const json_t *value = json_object_get(hf->model, key);

    if (value == NULL || json_is_null(value) ||
        (json_is_string(value) && json_string_length(value) == 0) ||
        (json_is_number(value) && json_number_value(value) == 0.0))
        return LMQ_OK;
    return lmq_json_refuse("model's option", key, err);
}

static enum lmq_status
read_options(struct hf *hf, struct lmq_error *err)
{
    static const char *const absent[] = { "dropout",
                                          "continuing_subword_prefix",
                                          "end_of_word_suffix" };
    struct lmq_tok_model *model = &hf->t->model;
    const char *type = lmq_json_type(hf->model);
    enum lmq_status status = LMQ_OK;

    /* Files from before types had names tell by their merges. */
    if (type[0] == '\0')
        type = json_object_get(hf->model, "merges") != NULL ? "BPE"
                                                            : "Unigram";
    hf->is_unigram = strcmp(type, "Unigram") == 0;
    if (!hf->is_unigram && strcmp(type, "BPE") != 0)
        return lmq_json_refuse("model", type, err);
    if (hf->is_unigram && hf->t->is_byte_level)
        return lmq_json_refuse("model", "Unigram after ByteLevel", err);
    for (size_t i = 0; i < 3 && status == LMQ_OK; i++)
        status = check_absent(hf, absent[i], err);
    if (status == LMQ_OK)
        status = lmq_json_bool(hf->model, "byte_fallback", false,
                               &model->falls_back_to_bytes, err);
    if (status == LMQ_OK)
        status = lmq_json_bool(hf->model, "fuse_unk", hf->is_unigram,
                               &model->fuses_unknown, err);
    if (status == LMQ_OK)
        status = lmq_json_bool(hf->model, "ignore_merges", false,
                               &model->prefers_whole, err);
    model->starts_from_bytes = hf->t->is_byte_level;
    model->keeps_last_rank = true;
    model->requires_known = hf->is_unigram;
    model->drops_unknown =
        !hf->is_unigram &&
        !json_is_string(json_object_get(hf->model, "unk_token"));
    return status;
}

/* ---- Added tokens ---- */

/* To Hugging Face a text that comes again is the token that it was before. */
static enum lmq_status
check_texts(const struct hf *hf, struct lmq_error *err)
{
    json_t *texts = json_object();
    enum lmq_status status = texts == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    for (size_t i = 0; i < json_array_size(hf->added) && status == LMQ_OK;
         i++) {
        json_t *token = json_array_get(hf->added, i);
        const char *text = json_string_value(json_object_get(token, "content"));
        if (json_object_get(texts, text) != NULL)
            status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                              "two added tokens have the text '%.100s'", text);
        else if (json_object_set(texts, text, token) != 0)
            status = lmq_fail_nomem(err);
    }
    json_decref(texts);
    return status;
}

/* The added tokens under their ids as text. */
static enum lmq_status
index_added(struct hf *hf, json_t *by_id, struct lmq_error *err)
{
    hf->first_added = UINT64_MAX;
    for (size_t i = 0; i < json_array_size(hf->added); i++) {
        json_t *token = json_array_get(hf->added, i);
        const json_t *id = json_object_get(token, "id");
        char key[24];
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            !json_is_string(json_object_get(token, "content")))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "added token %zu has no id or no content", i);
        uint64_t number = (uint64_t)json_integer_value(id);
        hf->first_added = lmq_u64_min(hf->first_added, number);
        hf->last_added = number > hf->last_added ? number : hf->last_added;
        snprintf(key, sizeof(key), "%" PRIu64, number);
        if (json_object_get(by_id, key) != NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "two added tokens have the id %s", key);
        if (json_object_set(by_id, key, token) != 0)
            return lmq_fail_nomem(err);
    }
    return check_texts(hf, err);
}

static bool
is_set(const struct lmq_tokenizer *t, uint64_t id)
{
    return id < t->vocab.n &&
           lmq_vocab_type(&t->vocab, (int32_t)id) != LMQ_PIECE_NONE;
}

/* One that the model's vocabulary lacks. */
static enum lmq_status
add_new(struct hf *hf, uint64_t id, struct lmq_chars text, bool is_special,
        struct lmq_error *err)
{
    if (id != hf->next_added)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "added token %" PRIu64 " is number %" PRIu64
                        " to Hugging Face, which counts them",
                        id, hf->next_added);
    return lmq_vocab_set(&hf->t->vocab, id, text,
                         is_special ? LMQ_PIECE_CONTROL : LMQ_PIECE_USER, 0,
                         false, err);
}

static enum lmq_status
add_added(struct hf *hf, const json_t *object, struct lmq_error *err)
{
    struct lmq_chars text =
        lmq_json_chars(json_object_get(object, "content"));
    struct lmq_buffer normal = { 0 }, spare = { 0 };
    struct lmq_added_token token = { 0 };
    uint64_t id =
        (uint64_t)json_integer_value(json_object_get(object, "id"));
    enum lmq_status status = lmq_json_added(object, &token, err);

    if (status == LMQ_OK && !is_set(hf->t, id))
        status = add_new(hf, id, text, token.is_special, err);
    if (id >= hf->next_added && text.n > 0) /* it leaves out empty ones */
        hf->next_added = id + 1;
    token.id = (int32_t)id;
    if (status == LMQ_OK && token.is_normalized) {
        status = lmq_pipeline_normalize(hf->t, hf->patterns, text, &normal,
                                        &spare, err);
        if (status == LMQ_OK && text.n > 0 && normal.n == 0)
            status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                              "nothing is left of added token %" PRIu64
                              " when it is normalized",
                              id);
        text = lmq_chars(normal.bytes, normal.n);
    }
    if (status == LMQ_OK)
        status = lmq_added_add(&hf->t->added, token, text, err);
    lmq_buffer_free(&normal);
    lmq_buffer_free(&spare);
    return status;
}

/* Hugging Face gives an added token the id that its text has in the model's
 * vocabulary, whatever its own. */
static enum lmq_status
check_id(struct hf *hf, const json_t *object, struct lmq_error *err)
{
    struct lmq_chars text =
        lmq_json_chars(json_object_get(object, "content"));
    json_int_t id = json_integer_value(json_object_get(object, "id"));

    if (hf->t->is_byte_level) {
        hf->bytes.n = 0;
        if (!lmq_bytelevel_unmap(text, &hf->bytes))
            return LMQ_OK;
        text = lmq_chars(hf->bytes.bytes, hf->bytes.n);
    }
    if (hf->bytes.has_failed)
        return lmq_fail_nomem(err);
    int32_t found = lmq_vocab_find(&hf->t->vocab, text.p, text.n);
    if (found < 0 || found == id)
        return LMQ_OK;
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "added token %" JSON_INTEGER_FORMAT " is token %" PRId32
                    " of the vocabulary",
                    id, found);
}

static enum lmq_status
check_ids(struct hf *hf, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < json_array_size(hf->added) && status == LMQ_OK; i++)
        status = check_id(hf, json_array_get(hf->added, i), err);
    return status;
}

/* ---- The file ---- */

static bool
prepends_first(const struct lmq_tokenizer *t)
{
    bool does = false;

    for (size_t i = 0; i < t->n_splits; i++)
        does |= t->splits[i].first_only;
    return does;
}

/* Then text does not begin where its first part does. */
static bool
may_lose_beginning(const struct lmq_tokenizer *t)
{
    bool may = false;

    for (size_t i = 0; i < t->n_normals; i++) {
        const struct lmq_normal_step *step = &t->normals[i];
        may |= (step->kind == LMQ_NORMAL_STRIP && step->left) ||
               (step->kind == LMQ_NORMAL_REPLACE && step->text.n == 0) ||
               step->kind == LMQ_NORMAL_NMT ||
               step->kind == LMQ_NORMAL_STRIP_ACCENTS;
    }
    return may;
}

/* Whether bytes stand for whatever is no piece. */
static bool
is_all_known(const struct lmq_tokenizer *t)
{
    bool has_all = t->model.falls_back_to_bytes;

    for (size_t i = 0; i < 256 && has_all; i++)
        has_all = t->vocab.byte_ids[i] >= 0;
    return has_all;
}

static enum lmq_status
read_root(struct hf *hf, json_t *by_id, struct lmq_error *err)
{
    struct lmq_tokenizer *t = hf->t;

    hf->model = json_object_get(hf->root, "model");
    hf->added = json_object_get(hf->root, "added_tokens");
    if (!json_is_object(hf->model))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "there is no model");
    enum lmq_status status = lmq_hf_add_normalizer(
        t, json_object_get(hf->root, "normalizer"), err);
    if (status == LMQ_OK)
        status = lmq_hf_add_pre_tokenizer(
            t, json_object_get(hf->root, "pre_tokenizer"), err);
    if (status == LMQ_OK && prepends_first(t) && may_lose_beginning(t))
        status = lmq_json_refuse("prepend_scheme",
                                 "first behind a normalizer that may take "
                                 "the beginning away", err);
    if (status == LMQ_OK)
        status = read_options(hf, err);
    if (status == LMQ_OK)
        status = index_added(hf, by_id, err);
    if (status == LMQ_OK)
        status = hf->is_unigram ? add_unigram_pieces(hf, by_id, err)
                                : add_bpe_pieces(hf, by_id, err);
    for (size_t i = 0; i < json_array_size(hf->added) && status == LMQ_OK; i++)
        status = add_added(hf, json_array_get(hf->added, i), err);
    if (status == LMQ_OK)
        status = lmq_vocab_index(&t->vocab, err);
    t->model.drops_unknown &= !is_all_known(t);
    if (status == LMQ_OK)
        status = check_ids(hf, err);
    t->model.kind = hf->is_unigram ? LMQ_TOK_UNIGRAM : LMQ_TOK_BPE;
    if (status == LMQ_OK && !hf->is_unigram)
        status = add_merges(hf, err);
    if (status == LMQ_OK)
        status = lmq_hf_add_decoder(t, json_object_get(hf->root, "decoder"),
                                    err);
    return status == LMQ_OK
               ? lmq_hf_add_post_processor(
                     t, json_object_get(hf->root, "post_processor"), err)
               : status;
}

enum lmq_status
lmq_hf_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
            struct lmq_error *err)
{
    struct lmq_hf_tables tables;
    struct lmq_error unsaid;
    struct hf hf = { .t = t };
    json_t *root = NULL, *by_id;
    bool has_tables = lmq_hf_tables_read(blob, &tables);
    enum lmq_status status = LMQ_OK;

    /* Whatever is odd is read whole, which says what it is and where. */
    if (has_tables && lmq_json_load(&tables.rest, &root, &unsaid) == LMQ_OK)
        hf.tables = &tables;
    else
        status = lmq_json_load(blob, &root, err);
    hf.root = root;
    by_id = json_object();
    hf.patterns = lmq_regex_scratch_new(blob->size);
    if (status == LMQ_OK && (by_id == NULL || hf.patterns == NULL))
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = read_root(&hf, by_id, err);
    lmq_regex_scratch_free(hf.patterns);
    json_decref(by_id);
    json_decref(root);
    if (has_tables)
        lmq_hf_tables_free(&tables);
    lmq_buffer_free(&hf.bytes);
    return status;
}
