/*
 * export_parts.c - the files of a folder: headers, index, configuration, and
 * what belongs to the tokenizer.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/report.h"
#include "base/text/buffer.h"
#include "convert/export/hf/export_safetensors.h"
#include "formats/checkpoint/about.h"

/* In a header. */
static const char *const stored_names[LMQ_DTYPE_COUNT] = {
    [LMQ_DTYPE_F32] = "F32", [LMQ_DTYPE_F16] = "F16",
    [LMQ_DTYPE_BF16] = "BF16",
    [LMQ_DTYPE_I8] = "I8",   [LMQ_DTYPE_U8] = "U8",
    [LMQ_DTYPE_I16] = "I16", [LMQ_DTYPE_U16] = "U16",
    [LMQ_DTYPE_I32] = "I32", [LMQ_DTYPE_U32] = "U32",
    [LMQ_DTYPE_I64] = "I64", [LMQ_DTYPE_U64] = "U64",
    [LMQ_DTYPE_BOOL] = "BOOL",
};

/* ---- Headers ---- */

static json_t *
describe_entry(const struct lmq_hf_entry *entry)
{
    json_t *shape = json_array(), *offsets = json_array();
    json_t *json = json_object();

    for (uint32_t i = 0; i < entry->n_dims; i++)
        lmq_append(&shape, json_integer((json_int_t)entry->dims[i]));
    lmq_append(&offsets, json_integer((json_int_t)entry->offset));
    lmq_append(&offsets,
               json_integer((json_int_t)(entry->offset + entry->size)));
    lmq_put(&json, "dtype", json_string(stored_names[entry->dtype]));
    lmq_put(&json, "shape", shape);
    lmq_put(&json, "data_offsets", offsets);
    return json;
}

/* Values can only be texts there. */
static json_t *
describe_about(const json_t *about)
{
    json_t *json = json_pack("{s:s}", "format", "pt");

    for (const struct lmq_about_key *key = lmq_about_keys; key->name != NULL;
         key++) {
        const json_t *value = json_object_get(about, key->name);
        struct lmq_buffer text = {0};
        if (json_is_string(value))
            lmq_put(&json, key->name, json_string(json_string_value(value)));
        if (!json_is_array(value))
            continue;
        for (size_t i = 0; i < json_array_size(value); i++) {
            const char *item = json_string_value(json_array_get(value, i));
            lmq_buffer_append(&text, ", ", i == 0 ? 0 : 2);
            lmq_buffer_append(&text, item, strlen(item));
        }
        lmq_buffer_append(&text, "", 1);
        lmq_put(&json, key->name,
                text.has_failed ? NULL : json_string((char *)text.bytes));
        lmq_buffer_free(&text);
    }
    return json;
}

/* The header with spaces behind it, so that the data are aligned. */
static char *
shard_header(const struct lmq_hf_export *export, size_t shard)
{
    json_t *json = json_object();
    lmq_put(&json, LMQ_HF_METADATA, describe_about(export->checkpoint->about));

    for (size_t i = 0; i < export->n_entries; i++)
        if (export->entries[i].shard == shard)
            lmq_put(&json, export->entries[i].name,
                    describe_entry(&export->entries[i]));
    char *text = lmq_json_dump(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return NULL;
    size_t n = strlen(text), padded = (n + 7) / 8 * 8;
    char *header = malloc(padded + 1);
    if (header != NULL) {
        memcpy(header, text, n);
        memset(header + n, ' ', padded - n);
        header[padded] = '\0';
    }
    free(text);
    return header;
}

static char *
index_text(const struct lmq_hf_export *export)
{
    json_t *json = json_object(), *map = json_object();
    uint64_t total = 0;

    for (size_t i = 0; i < export->n_entries; i++) {
        const struct lmq_hf_entry *entry = &export->entries[i];
        total += entry->size;
        lmq_put(&map, entry->name,
                json_string(export->parts[entry->shard].name));
    }
    lmq_put(&json, "metadata",
            json_pack("{s:I}", "total_size", (json_int_t)total));
    lmq_put(&json, "weight_map", map);
    char *text = lmq_json_dump(json, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_decref(json);
    return text;
}

/* ---- Files ---- */

/* Takes over `text`. */
static enum lmq_status
add_part(struct lmq_hf_export *export, const char *name, char *text,
         uint64_t size, struct lmq_error *err)
{
    struct lmq_hf_part *part = &export->parts[export->n_parts];

    if (text == NULL)
        return lmq_fail_nomem(err);
    export->n_parts++;
    part->text = text;
    part->size = size;
    part->name = strdup(name);
    part->path = lmq_path_join(export->folder, name);
    return part->name == NULL || part->path == NULL ? lmq_fail_nomem(err)
                                                    : LMQ_OK;
}

static enum lmq_status
add_shards(struct lmq_hf_export *export, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    char name[64];

    for (size_t i = 0; i < export->n_shards && status == LMQ_OK; i++) {
        char *header = shard_header(export, i);
        size_t n = header == NULL ? 0 : strlen(header);
        if (export->n_shards == 1)
            snprintf(name, sizeof(name), LMQ_HF_SINGLE);
        else
            snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors",
                     i + 1, export->n_shards);
        status = add_part(export, name, header,
                          8 + n + export->shard_sizes[i], err);
        if (status == LMQ_OK)
            export->parts[i].data_at = 8 + n;
    }
    return status;
}

/* A file of the tokenizer that cannot be taken for one of ours. */
static bool
is_free_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strstr(name, ".safetensors") == NULL &&
           strcmp(name, LMQ_HF_CONFIG) != 0 && strlen(name) <= 255;
}

/* What is looked for in a folder. */
static const char *const usual[] = {"tokenizer.json", "tokenizer.model",
                                    "tiktoken.model", "tekken.json",
                                    "qwen.tiktoken",
                                    "tokenizer.gguf"};
#define N_USUAL (sizeof(usual) / sizeof(usual[0]))

static bool
is_usual(const char *name)
{
    for (size_t i = 0; i < N_USUAL; i++)
        if (strcmp(name, usual[i]) == 0)
            return true;
    return false;
}

/* What was given by itself, under any name, gets the name by which it is
 * found. */
static const char *
usual_name(const struct lmq_checkpoint *checkpoint, const char *name)
{
    if (is_usual(name))
        return name;
    for (size_t i = 0; i < N_USUAL && checkpoint->n_blobs == 1; i++) {
        const char *ending = strchr(usual[i], '.');
        size_t n = strlen(name), m = strlen(ending);
        if (n > m && strcmp(name + n - m, ending) == 0)
            return usual[i];
    }
    return name;
}

static enum lmq_status
add_tokenizer(struct lmq_hf_export *export, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = export->checkpoint;
    enum lmq_status status = LMQ_OK;
    bool is_found = checkpoint->n_blobs == 0;

    for (size_t i = 0; i < checkpoint->n_blobs && status == LMQ_OK; i++) {
        const struct lmq_blob *blob = &checkpoint->blobs[i];
        const char *name = usual_name(checkpoint, blob->name);
        is_found = is_found || is_usual(name);
        if (!is_free_name(name)) {
            lmq_notes_add(export->notes,
                          "the tokenizer's file '%s' is left out: a "
                          "file of this name would mean something else",
                          blob->name);
            continue;
        }
        char *copy = malloc(blob->size + 1);
        if (copy != NULL)
            memcpy(copy, blob->bytes, blob->size);
        status = add_part(export, name, copy, blob->size, err);
    }
    if (!is_found)
        lmq_notes_add(export->notes,
                      "the tokenizer comes along in a form that is not "
                      "looked for in a folder: name it by .tokenizer");
    return status;
}

static enum lmq_status
add_text(struct lmq_hf_export *export, const char *name, char *text,
         struct lmq_error *err)
{
    return add_part(export, name, text, text == NULL ? 0 : strlen(text), err);
}

enum lmq_status
lmq_hf_add_parts(struct lmq_hf_export *export, struct lmq_error *err)
{
    export->parts = calloc(export->n_shards + export->checkpoint->n_blobs + 2,
                           sizeof(*export->parts));
    if (export->parts == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = add_shards(export, err);
    if (status == LMQ_OK && export->n_shards > 1)
        status = add_text(export, LMQ_HF_INDEX, index_text(export), err);
    if (status == LMQ_OK)
        status = add_tokenizer(export, err);
    if (status == LMQ_OK && export->words.config != NULL)
        status = add_text(export, LMQ_HF_CONFIG,
                          lmq_json_dump(export->words.config,
                                     JSON_INDENT(2) | JSON_SORT_KEYS |
                                         JSON_REAL_PRECISION(17)),
                          err);
    return status;
}
