/*
 * tok_config.c - what the files beside a tokenizer say about begin and end.
 *
 * tokenizer_config.json and special_tokens_map.json name tokens (of Kimi all
 * that are special), generation_config.json and config.json number them. Names
 * are the tokenizer's own and come first; numbers add what ends a generation.
 * Of a SentencePiece model tokenizer_config.json or added_tokens.json has what
 * was added. Chat templates are never looked at.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/tokenizer/read/tok_json.h"
#include "runtime/tokenizer/tokenizer.h"

static const char *const file_names[] = {
    "tokenizer_config.json", "special_tokens_map.json",
    "generation_config.json", "config.json"
};

/* "<s>", or an object whose content it is. */
static enum lmq_status
find_named(const struct lmq_tokenizer *t, const json_t *object,
           const char *key, int32_t *id, struct lmq_error *err)
{
    const json_t *value = json_object_get(object, key);

    *id = -1;
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (value == NULL || json_is_null(value))
        return LMQ_OK;
    struct lmq_chars name = lmq_json_chars(value);
    if (json_is_string(value) && name.n == 0)
        return LMQ_OK;
    *id = lmq_pipeline_find(t, name);
    if (*id < 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' is '%.*s', which is no token", key,
                        (int)(name.n < 100 ? name.n : 100),
                        (const char *)name.p);
    return LMQ_OK;
}

static enum lmq_status
check_id(const struct lmq_tokenizer *t, const json_t *value, const char *key,
         int32_t *id, struct lmq_error *err)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 ||
        (uint64_t)number >= t->vocab.n)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' is not the id of a token (there are %zu)", key,
                        t->vocab.n);
    *id = (int32_t)number;
    return LMQ_OK;
}

static enum lmq_status
apply_names(struct lmq_tokenizer *t, const json_t *object,
            struct lmq_marks *eos, bool *has_bos, struct lmq_error *err)
{
    int32_t id;
    enum lmq_status status = find_named(t, object, "bos_token", &id, err);

    if (status == LMQ_OK && id >= 0 && !*has_bos) {
        t->bos = id;
        *has_bos = true;
    }
    if (status == LMQ_OK)
        status = find_named(t, object, "eos_token", &id, err);
    if (status == LMQ_OK && id >= 0)
        lmq_marks_add(eos, id);
    return status;
}

static enum lmq_status
add_end(struct lmq_marks *eos, int32_t id, struct lmq_error *err)
{
    lmq_marks_add(eos, id);
    return lmq_marks_have(eos, id)
               ? LMQ_OK
               : lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "'eos_token_id' has more than %d tokens",
                          LMQ_TOKENIZER_MAX_MARKS);
}

static enum lmq_status
apply_numbers(struct lmq_tokenizer *t, const json_t *object,
              struct lmq_marks *eos, bool *has_bos, struct lmq_error *err)
{
    const json_t *bos = json_object_get(object, "bos_token_id");
    const json_t *ends = json_object_get(object, "eos_token_id");
    int32_t id = -1;
    enum lmq_status status = LMQ_OK;

    if (bos != NULL && !json_is_null(bos) && !*has_bos && t->bos < 0) {
        status = check_id(t, bos, "bos_token_id", &id, err);
        if (status != LMQ_OK)
            return status;
        t->bos = id;
        *has_bos = true;
    }
    if (ends == NULL || json_is_null(ends))
        return LMQ_OK;
    size_t n = json_is_array(ends) ? json_array_size(ends) : 1;
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        status = check_id(t,
                          json_is_array(ends) ? json_array_get(ends, i)
                                              : ends,
                          "eos_token_id", &id, err);
        if (status == LMQ_OK)
            status = add_end(eos, id, err);
    }
    return status;
}

static bool
is_class(const char *name, const char *class)
{
    size_t n = strlen(class);

    return strncmp(name, class, n) == 0 &&
           (name[n] == '\0' || strcmp(name + n, "Fast") == 0);
}

/* Without a template in tokenizer.json Hugging Face heeds the flags in these
 * classes, with "Fast" behind the name or not, and in those of the model's own
 * code. Of GPT-2's class it does where there is no tokenizer.json: one that is
 * made of vocab.json has no post-processor, which all others of it have. */
static bool
heeds_flags(const struct lmq_tokenizer *t, const json_t *object)
{
    static const char *const classes[] = {
        "LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer",
        "CohereTokenizer", "GPTNeoXTokenizer",
    };
    const char *name =
        json_string_value(json_object_get(object, "tokenizer_class"));

    if (strcmp(t->kind, "Hugging Face") != 0 || name == NULL ||
        json_object_get(object, "auto_map") != NULL)
        return true;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (is_class(name, classes[i]))
            return true;
    return is_class(name, "GPT2Tokenizer") && !t->has_post_processor;
}

/* A template in tokenizer.json has the last word about what is added. */
static enum lmq_status
apply_flags(struct lmq_tokenizer *t, const json_t *object,
            struct lmq_error *err)
{
    bool adds_bos = (t->default_flags & LMQ_ENCODE_BOS) != 0;
    bool adds_eos = (t->default_flags & LMQ_ENCODE_EOS) != 0;
    enum lmq_status status =
        lmq_json_bool(object, "add_bos_token", adds_bos, &adds_bos, err);

    if (status == LMQ_OK)
        status = lmq_json_bool(object, "add_eos_token", adds_eos, &adds_eos,
                               err);
    if (status == LMQ_OK && !t->has_template && heeds_flags(t, object))
        t->default_flags = (adds_bos ? LMQ_ENCODE_BOS : 0u) |
                           (adds_eos ? LMQ_ENCODE_EOS : 0u);
    return status;
}

/* ---- Reserved ids ---- */

/* "added_tokens_decoder" has a token for some of them. */
static enum lmq_status
add_reserved(struct lmq_tokenizer *t, const json_t *tokens, int32_t id,
             struct lmq_error *err)
{
    struct lmq_added_token token = { .id = id, .is_special = true };
    char key[16], name[64];

    snprintf(key, sizeof(key), "%" PRId32, id);
    snprintf(name, sizeof(name), "<|reserved_token_%s|>", key);
    struct lmq_chars text = lmq_json_chars(
        json_object_get(json_object_get(tokens, key), "content"));
    if (text.n == 0)
        text = lmq_chars(name, strlen(name));
    enum lmq_status status = lmq_vocab_set(
        &t->vocab, (uint64_t)id, text, LMQ_PIECE_CONTROL, 0, false, err);
    return status == LMQ_OK ? lmq_added_add(&t->added, token, text, err)
                            : status;
}

static enum lmq_status
name_reserved(struct lmq_tokenizer *t, const json_t *config,
              struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (int32_t i = 0; i < t->n_reserved && status == LMQ_OK; i++)
        status = add_reserved(t,
                              json_object_get(config, "added_tokens_decoder"),
                              t->first_reserved + i, err);
    return status;
}

/* ---- Tokens behind the last one ---- */

static enum lmq_status
add_behind(struct lmq_tokenizer *t, json_int_t id, struct lmq_chars text,
           struct lmq_added_token token, struct lmq_error *err)
{
    if (t->n_rows > 0 && (uint64_t)id >= t->n_rows)
        return LMQ_OK;
    enum lmq_status status = lmq_vocab_set(
        &t->vocab, (uint64_t)id, text,
        token.is_special ? LMQ_PIECE_CONTROL : LMQ_PIECE_USER, 0, false, err);

    token.id = (int32_t)id;
    token.is_normalized = false; /* such tokenizers look at the text itself */
    return status == LMQ_OK ? lmq_added_add(&t->added, token, text, err)
                            : status;
}

/* {"32000": {"content": "<pad>", "special": true}}. */
static enum lmq_status
add_decoded(struct lmq_tokenizer *t, json_t *tokens, size_t n_own,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const char *key;
    json_t *object;

    json_object_foreach(tokens, key, object) {
        struct lmq_added_token token = {0};
        char *end;
        long id = strtol(key, &end, 10);
        struct lmq_chars text =
            lmq_json_chars(json_object_get(object, "content"));
        if (end == key || *end != '\0' || id < 0 || text.n == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the added token '%.40s' has no id or no content",
                            key);
        if ((size_t)id >= n_own)
            status = lmq_json_added(object, &token, err);
        if ((size_t)id >= n_own && status == LMQ_OK)
            status = add_behind(t, id, text, token, err);
        if (status != LMQ_OK)
            return status;
    }
    return LMQ_OK;
}

/* {"<pad>": 32000}, which is all that older folders have. */
static enum lmq_status
add_listed(struct lmq_tokenizer *t, json_t *tokens, size_t n_own,
           struct lmq_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(tokens, key, value) {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the id of '%.100s' is not a number from 0", key);
        if ((uint64_t)id < n_own ||
            ((uint64_t)id < t->vocab.n &&
             lmq_vocab_type(&t->vocab, (int32_t)id) != LMQ_PIECE_NONE))
            continue;
        enum lmq_status status = add_behind(
            t, id, lmq_chars(key, strlen(key)), (struct lmq_added_token){0},
            err);
        if (status != LMQ_OK)
            return status;
    }
    return LMQ_OK;
}

/* What the file of that name has; *root stays NULL without one. */
static enum lmq_status
load_named(const struct lmq_blob *blobs, size_t n_blobs, const char *name,
           json_t **root, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_blobs && status == LMQ_OK && *root == NULL; i++)
        if (lmq_blob_is(&blobs[i], name)) {
            status = lmq_json_load(&blobs[i], root, err);
            if (status != LMQ_OK)
                lmq_error_in(err, blobs[i].name);
        }
    return status;
}

static enum lmq_status
add_tokens(struct lmq_tokenizer *t, const struct lmq_blob *blobs,
           size_t n_blobs, struct lmq_error *err)
{
    static const char listed[] = "added_tokens.json";
    json_t *config = NULL, *list = NULL;
    const size_t n_own = t->vocab.n;
    enum lmq_status status =
        load_named(blobs, n_blobs, file_names[0], &config, err);

    if (status == LMQ_OK)
        status = name_reserved(t, config, err);
    if (status == LMQ_OK && t->takes_added) {
        status = add_decoded(
            t, json_object_get(config, "added_tokens_decoder"), n_own, err);
        if (status != LMQ_OK)
            lmq_error_in(err, file_names[0]);
    }
    if (status == LMQ_OK && t->takes_added)
        status = load_named(blobs, n_blobs, listed, &list, err);
    if (status == LMQ_OK) {
        status = add_listed(t, list, n_own, err);
        if (status != LMQ_OK)
            lmq_error_in(err, listed);
    }
    json_decref(config);
    json_decref(list);
    return status == LMQ_OK && t->vocab.n > n_own
               ? lmq_vocab_index(&t->vocab, err)
               : status;
}

enum lmq_status
lmq_config_apply(struct lmq_tokenizer *t, const struct lmq_blob *blobs,
                 size_t n_blobs, struct lmq_error *err)
{
    struct lmq_marks eos = { .n = 0 };
    bool has_bos = false;
    enum lmq_status status =
        t->n_reserved > 0 || t->takes_added
            ? add_tokens(t, blobs, n_blobs, err)
            : LMQ_OK;

    for (size_t f = 0; f < sizeof(file_names) / sizeof(file_names[0]); f++)
        for (size_t i = 0; i < n_blobs && status == LMQ_OK; i++) {
            json_t *root;
            if (!lmq_blob_is(&blobs[i], file_names[f]))
                continue;
            status = lmq_json_load(&blobs[i], &root, err);
            if (status == LMQ_OK && !json_is_object(root))
                status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                                  "is not a JSON object");
            if (status == LMQ_OK)
                status = f < 2 ? apply_names(t, root, &eos, &has_bos, err)
                               : apply_numbers(t, root, &eos, &has_bos, err);
            if (status == LMQ_OK && f == 0)
                status = apply_flags(t, root, err);
            json_decref(root);
            if (status != LMQ_OK)
                lmq_error_in(err, blobs[i].name);
        }
    /* What the files beside it name comes before what the tokenizer itself
     * knew, and both end a text. */
    for (size_t i = 0; i < t->eos.n && status == LMQ_OK; i++)
        status = add_end(&eos, t->eos.ids[i], err);
    t->eos = eos;
    return status;
}
