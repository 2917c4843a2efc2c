/*
 * tekken.c - reads tekken.json, Mistral's own file: ranks as tiktoken has them,
 * behind so many special tokens as it says.
 */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/json_cost.h"
#include "runtime/tokenizer/model/tok_pipeline.h"
#include "runtime/tokenizer/read/tok_hf_tables.h"
#include "runtime/tokenizer/read/tok_json.h"
#include "runtime/tokenizer/tokenizer.h"

#define N_SPECIAL_KEY "default_num_special_tokens"
#define MOST_SPECIAL 65536

/* The configuration is at the beginning, in front of the vocabulary. */
#define HEAD ((size_t)64 << 10)

/* What files up to version 7 do not say. */
static const char *const older_special[] = {
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
    "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
    "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
};

#define N_OLDER (sizeof(older_special) / sizeof(older_special[0]))

static bool
has(struct lmq_chars head, const char *key)
{
    return lmq_chars_find(head, lmq_chars(key, strlen(key))) != NULL;
}

bool
lmq_tekken_recognises(const struct lmq_blob *blob)
{
    struct lmq_chars head =
        lmq_chars(blob->bytes, blob->size < HEAD ? blob->size : HEAD);
    size_t at = lmq_json_skip_space((const char *)head.p, head.n, 0);

    return at < head.n && head.p[at] == '{' && has(head, "\"config\"") &&
           has(head, "\"" N_SPECIAL_KEY "\"");
}

static enum lmq_status
fail(struct lmq_error *err, const char *what)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0, "tekken: %s", what);
}

/* ---- Special tokens ---- */

/* Into names[], by rank; those that nothing names stay empty. */
static enum lmq_status
name_special(const json_t *list, struct lmq_chars *names, size_t n,
             struct lmq_error *err)
{
    const json_t *item;
    size_t i;

    if (list == NULL || json_is_null(list)) {
        for (i = 0; i < N_OLDER && i < n; i++)
            names[i] = lmq_chars(older_special[i], strlen(older_special[i]));
        return LMQ_OK;
    }
    if (!json_is_array(list))
        return fail(err, "'special_tokens' is no list");
    json_array_foreach((json_t *)(uintptr_t)list, i, item) {
        const json_t *rank = json_object_get(item, "rank");
        struct lmq_chars name =
            lmq_json_chars(json_object_get(item, "token_str"));
        if (name.n == 0 || !json_is_integer(rank) ||
            json_integer_value(rank) < 0 ||
            (uint64_t)json_integer_value(rank) >= n ||
            names[json_integer_value(rank)].n > 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tekken: special token number %zu has no text, "
                            "or a rank that is none below %zu or another's",
                            i, n);
        names[json_integer_value(rank)] = name;
    }
    return LMQ_OK;
}

static enum lmq_status
add_special(struct lmq_tokenizer *t, const json_t *list, size_t n,
            struct lmq_error *err)
{
    struct lmq_chars *names = calloc(n, sizeof(*names));
    enum lmq_status status = names == NULL
                                 ? lmq_fail_nomem(err)
                                 : name_special(list, names, n, err);

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        char own[32];
        snprintf(own, sizeof(own), "<SPECIAL_%zu>", i);
        struct lmq_chars text =
            names[i].n > 0 ? names[i] : lmq_chars(own, strlen(own));
        struct lmq_added_token token = { .id = (int32_t)i,
                                         .is_special = true };
        status = lmq_vocab_set(&t->vocab, i, text, LMQ_PIECE_CONTROL, 0, false,
                               err);
        if (status == LMQ_OK)
            status = lmq_added_add(&t->added, token, text, err);
    }
    free(names);
    return status;
}

/* ---- Ranks ---- */

/* The file: a tree, or one of all but the vocabulary, which is a table. */
struct tekken {
    json_t *root;
    struct lmq_hf_tables tables;
    bool has_table;
};

/* What number i says of itself, if it says anything. */
static bool
find_rank(const struct tekken *file, size_t i, struct lmq_chars *base64)
{
    if (file->has_table) {
        *base64 = file->tables.pieces.entries[i].text;
        return file->tables.pieces.entries[i].id == i;
    }
    const json_t *item =
        json_array_get(json_object_get(file->root, "vocab"), i);
    const json_t *rank = json_object_get(item, "rank");
    *base64 = lmq_json_chars(json_object_get(item, "token_bytes"));
    return json_is_integer(rank) && json_integer_value(rank) == (json_int_t)i;
}

/* The first n; what the file has beyond is not used. */
static enum lmq_status
add_ranks(struct lmq_tokenizer *t, const struct tekken *file, size_t n,
          size_t first, struct lmq_error *err)
{
    struct lmq_buffer bytes = { 0 };
    struct lmq_chars base64;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        bytes.n = 0;
        if (!find_rank(file, i, &base64) ||
            lmq_base64_decode(base64, &bytes) != 0 || bytes.n == 0)
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "tekken: token number %zu has another rank, or "
                              "its 'token_bytes' are not base64", i);
        else
            status = lmq_vocab_set(&t->vocab, first + i,
                                   lmq_chars(bytes.bytes, bytes.n),
                                   LMQ_PIECE_NORMAL, -(double)i, true, err);
    }
    lmq_buffer_free(&bytes);
    return status;
}

/* Every text is one of bytes. */
static enum lmq_status
check_bytes(const struct lmq_tokenizer *t, struct lmq_error *err)
{
    for (int i = 0; i < 256; i++) {
        unsigned char byte = (unsigned char)i;
        if (lmq_vocab_find(&t->vocab, &byte, 1) < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tekken: no token is the byte %d", i);
    }
    return LMQ_OK;
}

/* ---- The file ---- */

static enum lmq_status
read_sizes(const json_t *config, size_t n_listed, size_t *n_special,
           size_t *n_ranks, struct lmq_error *err)
{
    json_int_t special =
        json_integer_value(json_object_get(config, N_SPECIAL_KEY));
    json_int_t all =
        json_integer_value(json_object_get(config, "default_vocab_size"));

    if (special < 3 || special > MOST_SPECIAL || all <= special ||
        (uint64_t)(all - special) > n_listed)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tekken: %" JSON_INTEGER_FORMAT " tokens, %"
                        JSON_INTEGER_FORMAT " of them special, cannot be of "
                        "a list of %zu", all, special, n_listed);
    *n_special = (size_t)special;
    *n_ranks = (size_t)(all - special);
    return LMQ_OK;
}

static enum lmq_status
read_all(struct lmq_tokenizer *t, const struct tekken *file,
         struct lmq_error *err)
{
    const json_t *config = json_object_get(file->root, "config");
    size_t n_listed =
        file->has_table
            ? file->tables.pieces.n
            : json_array_size(json_object_get(file->root, "vocab"));
    struct lmq_chars pattern =
        lmq_json_chars(json_object_get(config, "pattern"));
    size_t n_special = 0, n_ranks = 0;
    enum lmq_status status = LMQ_OK;

    if (n_listed == 0 || pattern.n == 0)
        status = fail(err, "lacks 'vocab', or 'pattern' in 'config'");
    if (status == LMQ_OK)
        status = read_sizes(config, n_listed, &n_special, &n_ranks, err);
    if (status == LMQ_OK)
        status = add_special(t, json_object_get(file->root, "special_tokens"),
                             n_special, err);
    if (status == LMQ_OK)
        status = add_ranks(t, file, n_ranks, n_special, err);
    if (status == LMQ_OK)
        status = lmq_vocab_index(&t->vocab, err);
    if (status == LMQ_OK)
        status = check_bytes(t, err);
    return status == LMQ_OK ? lmq_pipeline_split_at(
                                  t, pattern, false, LMQ_SPLIT_ISOLATED,
                                  false, err)
                            : status;
}

enum lmq_status
lmq_tekken_read(struct lmq_tokenizer *t, const struct lmq_blob *blob,
                struct lmq_error *err)
{
    static const char begin[] = "<s>", end[] = "</s>";
    struct tekken file = { 0 };

    file.has_table = lmq_tekken_table_read(blob, &file.tables);
    enum lmq_status status = lmq_json_load(
        file.has_table ? &file.tables.rest : blob, &file.root, err);
    if (status == LMQ_OK)
        status = read_all(t, &file, err);
    json_decref(file.root);
    lmq_hf_tables_free(&file.tables);
    if (status != LMQ_OK)
        return status;
    t->is_byte_level = true;
    t->model.starts_from_bytes = true;
    t->model.prefers_whole = true;
    t->bos = lmq_pipeline_find(t, lmq_chars(begin, strlen(begin)));
    int32_t eos = lmq_pipeline_find(t, lmq_chars(end, strlen(end)));
    if (eos >= 0)
        lmq_marks_add(&t->eos, eos);
    t->default_flags = t->bos >= 0 ? LMQ_ENCODE_BOS : 0;
    return LMQ_OK;
}
