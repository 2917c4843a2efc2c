/*
 * hf_vocab_pair.c - makes a tokenizer.json of vocab.json and merges.txt.
 *
 * What byte-level BPE kept before there was tokenizer.json, and what trainers
 * of vocabularies still save: the pieces, and the merges a line each. How text
 * is cut is in the code of a class, which others name. It is put together here
 * once, so that everything behind, exports too, knows one form only.
 */
#include "config.h"

#include "formats/hf/hf_vocab_pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/report.h"
#include "base/text/utf8.h"
#include "formats/hf/hf_config.h"

#define VOCAB "vocab.json"
#define MERGES "merges.txt"
#define CONFIG "tokenizer_config.json"
#define SPECIAL "special_tokens_map.json"
#define ADDED "added_tokens.json"

#define FILE_MAX ((size_t)256 << 20)

/* ---- Classes ---- */

struct pipeline {
    const char *classes[6]; /* with or without "Fast" */
    const char *models[8];  /* architectures that have them, if none is named */
    const char *pattern;    /* NULL: that of GPT-2, which ByteLevel has */
};

/* Patterns as transformers writes them into a tokenizer.json. */
static const struct pipeline pipelines[] = {
    {.classes = {"GPT2Tokenizer", "CodeGenTokenizer"},
     .models = {"gpt2", "gptneo", "gptj", "opt"}},
    {.classes = {"Qwen2Tokenizer"},
     .models = {"qwen2", "qwen2moe", "qwen3", "qwen3moe"},
     .pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
                "\\s+(?!\\S)|\\s+"},
};

static bool
is_class(const char *name, const char *class)
{
    size_t n = strlen(class);

    return strncmp(name, class, n) == 0 &&
           (name[n] == '\0' || strcmp(name + n, "Fast") == 0);
}

static const struct pipeline *
find_pipeline(const char *class, const char *architecture)
{
    for (size_t i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]); i++) {
        const struct pipeline *p = &pipelines[i];
        for (size_t k = 0; class != NULL && p->classes[k] != NULL; k++)
            if (is_class(class, p->classes[k]))
                return p;
        for (size_t k = 0; class == NULL && p->models[k] != NULL; k++)
            if (strcmp(architecture, p->models[k]) == 0)
                return p;
    }
    return NULL;
}

/* ---- The files ---- */

struct pair {
    struct lmq_checkpoint *checkpoint;
    const char *folder;
    json_t *vocab, *merges; /* of the model to be */
    json_t *tokens;         /* that are added, each id once */
    json_t *seen;           /* their ids, as keys */
    json_t *config, *special, *added; /* files */
};

/* *json stays NULL if there is no such file. */
static enum lmq_status
load(struct pair *pair, const char *name, json_t **json, struct lmq_error *err)
{
    char *path = lmq_path_join(pair->folder, name);
    enum lmq_status status = LMQ_OK;
    unsigned char *text;
    size_t n;

    if (path == NULL)
        return lmq_fail_nomem(err);
    if (lmq_file_exists(path, &status, err)) {
        status = lmq_checkpoint_load(pair->checkpoint, path, FILE_MAX, &text,
                                     &n, err);
        if (status == LMQ_OK) {
            status = lmq_config_json(text, n, json, err);
            free(text);
            if (status == LMQ_OK && !json_is_object(*json))
                status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                                  "is not a JSON object");
            if (status != LMQ_OK)
                lmq_error_in(err, path);
        }
    }
    free(path);
    return status;
}

static enum lmq_status
check_ids(const struct pair *pair, struct lmq_error *err)
{
    const char *key;
    json_t *id;

    json_object_foreach(pair->vocab, key, id)
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            VOCAB ": the id of '%.100s' is not a number "
                                  "from 0",
                            key);
    return LMQ_OK;
}

/* "left right" each, behind a line that tells the version. */
static enum lmq_status
read_merges(struct pair *pair, const char *text, size_t n,
            struct lmq_error *err)
{
    static const char version[] = "#version";
    uint64_t number = 0;

    pair->merges = json_array();
    for (size_t at = 0; at < n;) {
        const char *line = text + at, *end = memchr(line, '\n', n - at);
        size_t length = end == NULL ? n - at : (size_t)(end - line);
        at += length + 1;
        number++;
        if (length > 0 && line[length - 1] == '\r')
            length--;
        if (length == 0 || (length >= strlen(version) &&
                            memcmp(line, version, strlen(version)) == 0))
            continue;
        const char *space = memchr(line, ' ', length);
        const char *stop = line + length;
        if (space == NULL || space == line || space + 1 == stop ||
            memchr(space + 1, ' ', (size_t)(stop - space) - 1) != NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, (uint64_t)(line - text),
                            "line %" PRIu64 " is not two pieces", number);
        if (!lmq_is_utf8((const unsigned char *)line, length))
            return lmq_fail(err, LMQ_ERR_FORMAT, (uint64_t)(line - text),
                            "line %" PRIu64 " is not UTF-8", number);
        lmq_append(&pair->merges, json_stringn(line, length));
    }
    return pair->merges == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
load_merges(struct pair *pair, struct lmq_error *err)
{
    char *path = lmq_path_join(pair->folder, MERGES);
    unsigned char *text;
    size_t n;

    if (path == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_checkpoint_load(pair->checkpoint, path,
                                                 FILE_MAX, &text, &n, err);
    if (status == LMQ_OK) {
        status = read_merges(pair, (const char *)text, n, err);
        free(text);
        if (status != LMQ_OK)
            lmq_error_in(err, path);
    }
    free(path);
    return status;
}

/* ---- Added tokens ---- */

/* The id of a token: of the vocabulary, or of those behind it; -1 if it has
 * none. */
static json_int_t
id_of(const struct pair *pair, const char *text)
{
    const json_t *id = json_object_get(pair->vocab, text);

    if (id == NULL)
        id = json_object_get(pair->added, text);
    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* One that is there already stays as it is. `said` is what a file has of it:
 * its text, or an object with its flags. */
static void
add_token(struct pair *pair, json_int_t id, const char *text,
          const json_t *said, bool is_special)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip",
                                        "normalized"};
    json_t *token = json_object();
    char key[24];

    snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, id);
    if (json_object_get(pair->seen, key) != NULL) {
        json_decref(token);
        return;
    }
    lmq_put(&pair->seen, key, json_true());
    lmq_put(&token, "id", json_integer(id));
    lmq_put(&token, "content", json_string(text));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        lmq_put(&token, flags[i],
                json_boolean(json_is_true(json_object_get(said, flags[i]))));
    lmq_put(&token, "special", json_boolean(is_special));
    lmq_append(&pair->tokens, token);
}

static const char *
text_of(const json_t *said)
{
    return json_string_value(json_is_object(said)
                                 ? json_object_get(said, "content")
                                 : said);
}

/* {"50257": {"content": ..., "special": true}}. */
static enum lmq_status
add_decoded(struct pair *pair, struct lmq_error *err)
{
    json_t *decoder = json_object_get(pair->config, "added_tokens_decoder");
    const char *key;
    json_t *said;

    json_object_foreach(decoder, key, said) {
        char *end;
        long long id = strtoll(key, &end, 10);
        if (end == key || *end != '\0' || id < 0 || text_of(said) == NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            CONFIG ": the added token '%.40s' has no id or no "
                                   "content",
                            key);
        add_token(pair, id, text_of(said), said,
                  json_is_true(json_object_get(said, "special")));
    }
    return LMQ_OK;
}

/* One without an id is none. */
static void
add_special(struct pair *pair, const char *text, const json_t *said)
{
    json_int_t id = text == NULL ? -1 : id_of(pair, text);

    if (id >= 0)
        add_token(pair, id, text, said, true);
}

static void
add_said(struct pair *pair, const json_t *said)
{
    add_special(pair, text_of(said), said);
}

/* Under the names that libraries give to them, or a list without names. */
static void
add_named(struct pair *pair, const json_t *names)
{
    static const char *const keys[] = {"bos_token", "eos_token", "unk_token",
                                       "sep_token", "pad_token", "cls_token",
                                       "mask_token"};
    static const char *const lists[] = {"additional_special_tokens",
                                        "extra_special_tokens"};
    size_t k;
    json_t *said;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        add_said(pair, json_object_get(names, keys[i]));
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        json_array_foreach(json_object_get(names, lists[i]), k, said)
            add_said(pair, said);
}

/* {"<pad>": 50257}, which is all that older folders have. */
static enum lmq_status
add_listed(struct pair *pair, struct lmq_error *err)
{
    const char *key;
    json_t *id;

    json_object_foreach(pair->added, key, id) {
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            ADDED ": the id of '%.100s' is not a number "
                                  "from 0",
                            key);
        add_token(pair, json_integer_value(id), key, NULL, false);
    }
    return LMQ_OK;
}

/* Those that say most first. */
static enum lmq_status
find_added(struct pair *pair, struct lmq_error *err)
{
    pair->tokens = json_array();
    pair->seen = json_object();
    enum lmq_status status = add_decoded(pair, err);
    add_named(pair, pair->special);
    add_named(pair, pair->config);
    add_special(pair, "<|endoftext|>", NULL); /* all these classes have it */
    if (status == LMQ_OK)
        status = add_listed(pair, err);
    return status == LMQ_OK && pair->seen == NULL ? lmq_fail_nomem(err)
                                                  : status;
}

/* ---- tokenizer.json ---- */

static json_t *
byte_level(bool adds_space, bool cuts)
{
    json_t *step = json_object();

    lmq_put(&step, "type", json_string("ByteLevel"));
    lmq_put(&step, "add_prefix_space", json_boolean(adds_space));
    lmq_put(&step, "trim_offsets", json_true());
    lmq_put(&step, "use_regex", json_boolean(cuts));
    return step;
}

static json_t *
make_steps(const struct pipeline *pipeline, bool adds_space)
{
    if (pipeline->pattern == NULL)
        return byte_level(adds_space, true);
    json_t *pattern = json_object(), *split = json_object();
    json_t *list = json_array(), *steps = json_object();
    lmq_put(&pattern, "Regex", json_string(pipeline->pattern));
    lmq_put(&split, "type", json_string("Split"));
    lmq_put(&split, "pattern", pattern);
    lmq_put(&split, "behavior", json_string("Isolated"));
    lmq_put(&split, "invert", json_false());
    lmq_append(&list, split);
    lmq_append(&list, byte_level(adds_space, false));
    lmq_put(&steps, "type", json_string("Sequence"));
    lmq_put(&steps, "pretokenizers", list);
    return steps;
}

static json_t *
make_normalizer(const struct pipeline *pipeline)
{
    if (pipeline->pattern == NULL)
        return json_null();
    json_t *normalizer = json_object();
    lmq_put(&normalizer, "type", json_string("NFC"));
    return normalizer;
}

static json_t *
make_tokenizer(const struct pair *pair, const struct pipeline *pipeline)
{
    bool adds_space =
        json_is_true(json_object_get(pair->config, "add_prefix_space"));
    json_t *model = json_object(), *root = json_object();

    lmq_put(&model, "type", json_string("BPE"));
    lmq_put(&model, "vocab", json_incref(pair->vocab));
    lmq_put(&model, "merges", json_incref(pair->merges));
    lmq_put(&root, "version", json_string("1.0"));
    lmq_put(&root, "added_tokens", json_incref(pair->tokens));
    lmq_put(&root, "normalizer", make_normalizer(pipeline));
    lmq_put(&root, "pre_tokenizer", make_steps(pipeline, adds_space));
    lmq_put(&root, "post_processor", json_null());
    lmq_put(&root, "decoder", byte_level(false, true));
    lmq_put(&root, "model", model);
    return root;
}

static enum lmq_status
add_tokenizer(struct pair *pair, const struct pipeline *pipeline,
              struct lmq_error *err)
{
    enum lmq_status status = load(pair, VOCAB, &pair->vocab, err);

    if (status == LMQ_OK)
        status = check_ids(pair, err);
    if (status == LMQ_OK)
        status = load_merges(pair, err);
    if (status == LMQ_OK)
        status = load(pair, SPECIAL, &pair->special, err);
    if (status == LMQ_OK)
        status = load(pair, ADDED, &pair->added, err);
    if (status == LMQ_OK)
        status = find_added(pair, err);
    if (status != LMQ_OK)
        return status;
    json_t *root = make_tokenizer(pair, pipeline);
    char *text = lmq_json_dump(root, JSON_COMPACT);
    json_decref(root);
    if (text == NULL)
        return lmq_fail_nomem(err);
    lmq_checkpoint_note(pair->checkpoint,
                        "tokenizer.json is made of " VOCAB " and " MERGES);
    return lmq_checkpoint_add_blob(pair->checkpoint, "tokenizer.json",
                                   (unsigned char *)text, strlen(text), err);
}

enum lmq_status
lmq_hf_add_vocab_pair(struct lmq_checkpoint *checkpoint, const char *folder,
                      struct lmq_error *err)
{
    struct pair pair = {.checkpoint = checkpoint, .folder = folder};
    enum lmq_status status = LMQ_OK;

    if (!lmq_file_exists_in(folder, VOCAB, &status, err) ||
        !lmq_file_exists_in(folder, MERGES, &status, err))
        return status;
    status = load(&pair, CONFIG, &pair.config, err);
    if (status == LMQ_OK) {
        const char *class = json_string_value(
            json_object_get(pair.config, "tokenizer_class"));
        const char *architecture = checkpoint->hparams.architecture;
        const struct pipeline *pipeline = find_pipeline(class, architecture);
        if (pipeline != NULL)
            status = add_tokenizer(&pair, pipeline, err);
        else
            lmq_checkpoint_note(
                checkpoint, VOCAB " and " MERGES " are not read for the "
                                  "%s '%.60s': save a tokenizer.json",
                class != NULL ? "class" : "architecture",
                class != NULL ? class : architecture);
    }
    json_decref(pair.vocab);
    json_decref(pair.merges);
    json_decref(pair.tokens);
    json_decref(pair.seen);
    json_decref(pair.config);
    json_decref(pair.special);
    json_decref(pair.added);
    return status;
}
