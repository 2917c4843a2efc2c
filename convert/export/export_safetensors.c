/*
 * export_safetensors.c - a folder that Hugging Face's tools read.
 *
 * All files are written before the first gets its name, and config.json gets
 * it last: a folder that is half written is no model.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/export/export.h"
#include "convert/export/export_files.h"
#include "convert/export/export_floats.h"
#include "convert/export/export_hf.h"
#include "convert/export/export_packed.h"
#include "formats/checkpoint/about.h"
#include "formats/hf/hf_folder.h"
#include "formats/lmq/lmq.h"

/* All are open at once. */
#define MOST_SHARDS 500
#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"
#define CONFIG_NAME "config.json"
/* In a header, beside the names of tensors. */
#define METADATA "__metadata__"

static const struct lmq_name type_names[] = {
    {"f32", LMQ_DTYPE_F32},
    {"f16", LMQ_DTYPE_F16},
    {"bf16", LMQ_DTYPE_BF16},
    {NULL, 0},
};

static const struct type {
    enum lmq_dtype dtype;
    const char *torch;  /* in config.json */
} types[] = {
    {LMQ_DTYPE_F32, "float32"},
    {LMQ_DTYPE_F16, "float16"},
    {LMQ_DTYPE_BF16, "bfloat16"},
};

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

/* A tensor of the output. */
struct entry {
    char *name;
    enum lmq_dtype dtype;
    uint32_t n_dims;
    uint64_t dims[LMQ_MAX_DIMS];
    size_t shard;
    uint64_t offset, size; /* in the data of its shard */
};

/* A tensor of the checkpoint, and which entries it becomes: one, or what it is
 * packed as. */
struct item {
    const struct lmq_tensor *tensor;
    bool is_packed;
    bool is_less_one;
    unsigned n_entries; /* 0: it is left out */
    size_t entries[LMQ_MAX_PIECES];
};

/* Files of an old model that are no part of the new one. */
#define N_REMOVED 3

/* A file to be. */
struct part {
    char *name, *path;
    struct lmq_output *output;
    char *text; /* all of it, or the header of a shard; owned */
    uint64_t data_at, size;
};

struct export {
    struct lmq_checkpoint *checkpoint;
    struct lmq_notes *notes;
    const struct lmq_export_options *options;
    const struct type *type;
    const char *folder;
    bool is_new_folder; /* made by us */
    struct lmq_hf_words words;
    const struct lmq_pack_scheme *packing; /* NULL: all are floats */
    struct lmq_packed_model packed;
    struct item *items; /* one for each tensor */
    struct entry *entries;
    size_t n_entries;
    struct part *parts; /* shards first, config.json last */
    size_t n_parts, n_shards;
    uint64_t *shard_sizes; /* bytes of data */
    bool is_exact;
};

/* ---- What goes where ---- */

static enum lmq_status
choose_type(struct export *export, struct lmq_error *err)
{
    int dtype = LMQ_DTYPE_F32;
    enum lmq_status status = lmq_names_parse(
        type_names, "type", export->options->type, &dtype, err);

    export->type = types;
    while ((int)export->type->dtype != dtype)
        export->type++;
    return status;
}

static void
init_item(const struct export *export, const struct lmq_tensor *tensor,
          struct item *item)
{
    item->tensor = tensor;
    item->is_packed = export->packing != NULL &&
                      lmq_packed_takes(&export->packed, tensor);
    item->is_less_one = lmq_hf_words_subtract(&export->words, tensor);
    /* A head that is the embedding is left out: config.json ties it. */
    if (lmq_tensor_is_head(tensor) &&
        lmq_checkpoint_is_tied(export->checkpoint))
        item->n_entries = 0;
    else
        item->n_entries =
            item->is_packed ? lmq_packed_count(&export->packed) : 1;
}

/* What number i of an item is; its suffix is NULL for the tensor itself. */
static struct lmq_packed_piece
piece_of(const struct export *export, const struct item *item, unsigned i)
{
    enum lmq_dtype dtype = item->tensor->dtype;

    if (item->is_packed)
        return lmq_packed_piece(&export->packed, item->tensor, i);
    return (struct lmq_packed_piece){
        .dtype = lmq_dtype_is_float(dtype) ? export->type->dtype : dtype};
}

static enum lmq_status
add_entry(struct export *export, struct item *item, unsigned i,
          struct lmq_error *err)
{
    static const char weight[] = "weight";
    const struct lmq_tensor *tensor = item->tensor;
    const struct lmq_packed_piece piece = piece_of(export, item, i);
    struct entry *entry = &export->entries[export->n_entries];
    char name[LMQ_MAX_TENSOR_NAME + 1 + 16];
    uint64_t n = 1;

    lmq_hf_words_name(&export->words, export->checkpoint, tensor, name,
                      LMQ_MAX_TENSOR_NAME + 1);
    if (piece.suffix != NULL)
        strcpy(name + strlen(name) - strlen(weight), piece.suffix);
    if (strcmp(name, METADATA) == 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "safetensors cannot have a tensor '%s': it is the "
                        "name of something else there",
                        name);
    entry->name = strdup(name);
    if (entry->name == NULL)
        return lmq_fail_nomem(err);
    entry->dtype = piece.dtype;
    entry->n_dims = piece.suffix != NULL ? piece.n_dims : tensor->n_dims;
    memcpy(entry->dims, piece.suffix != NULL ? piece.dims : tensor->dims,
           entry->n_dims * sizeof(entry->dims[0]));
    for (uint32_t k = 0; k < entry->n_dims; k++)
        n *= entry->dims[k];
    entry->size = n * lmq_dtype_size(entry->dtype);
    item->entries[i] = export->n_entries++;
    return LMQ_OK;
}

/* The wider types first, so that all are aligned. */
static enum lmq_status
add_entries(struct export *export, struct lmq_error *err)
{
    const struct lmq_checkpoint *checkpoint = export->checkpoint;
    enum lmq_status status = LMQ_OK;
    size_t n = 0;

    export->items = calloc(checkpoint->n_tensors + 1, sizeof(struct item));
    if (export->items == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        init_item(export, &checkpoint->tensors[i], &export->items[i]);
        n += export->items[i].n_entries;
    }
    export->entries = calloc(n + 1, sizeof(struct entry));
    if (export->entries == NULL)
        return lmq_fail_nomem(err);
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < checkpoint->n_tensors; i++) {
            struct item *item = &export->items[i];
            for (unsigned k = 0; k < item->n_entries; k++)
                if (status == LMQ_OK &&
                    lmq_dtype_size(piece_of(export, item, k).dtype) == width)
                    status = add_entry(export, item, k, err);
        }
    return status;
}

/* One after the other; a new shard where one would become too large. */
static enum lmq_status
place_entries(struct export *export, struct lmq_error *err)
{
    uint64_t most = export->options->shard_size;

    export->n_shards = 1;
    export->shard_sizes =
        calloc(MOST_SHARDS + 1, sizeof(*export->shard_sizes));
    if (export->shard_sizes == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < export->n_entries; i++) {
        struct entry *entry = &export->entries[i];
        uint64_t *size = &export->shard_sizes[export->n_shards - 1];
        if (most > 0 && *size > 0 &&
            (entry->size > most || *size > most - entry->size)) {
            if (export->n_shards++ == MOST_SHARDS)
                return lmq_fail(err, LMQ_ERR_ARG, 0,
                                "files of %" PRIu64 " bytes would be more "
                                "than %d",
                                most, MOST_SHARDS);
            size++;
        }
        entry->shard = export->n_shards - 1;
        entry->offset = *size;
        *size += entry->size;
    }
    return LMQ_OK;
}

/* ---- The texts of the files ---- */

static json_t *
describe_entry(const struct entry *entry)
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

/* The header with spaces behind it, so that the data are aligned. */
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

static char *
shard_header(const struct export *export, size_t shard)
{
    json_t *json = json_object();
    lmq_put(&json, METADATA, describe_about(export->checkpoint->about));

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
index_text(const struct export *export)
{
    json_t *json = json_object(), *map = json_object();
    uint64_t total = 0;

    for (size_t i = 0; i < export->n_entries; i++) {
        const struct entry *entry = &export->entries[i];
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

/* Takes over `text`. */
static enum lmq_status
add_part(struct export *export, const char *name, char *text, uint64_t size,
         struct lmq_error *err)
{
    struct part *part = &export->parts[export->n_parts];

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
add_shards(struct export *export, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    char name[64];

    for (size_t i = 0; i < export->n_shards && status == LMQ_OK; i++) {
        char *header = shard_header(export, i);
        size_t n = header == NULL ? 0 : strlen(header);
        if (export->n_shards == 1)
            snprintf(name, sizeof(name), SINGLE_NAME);
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
           strcmp(name, CONFIG_NAME) != 0 && strlen(name) <= 255;
}

/* What was given by itself, under any name, gets the name by which it is
 * found. */
static const char *
usual_name(const struct lmq_checkpoint *checkpoint, const char *name)
{
    static const char *const usual[] = {"tokenizer.json", "tokenizer.model"};

    for (size_t i = 0; i < 2 && checkpoint->n_blobs == 1; i++) {
        const char *ending = strchr(usual[i], '.');
        size_t n = strlen(name), m = strlen(ending);
        if (n > m && strcmp(name + n - m, ending) == 0)
            return usual[i];
    }
    return name;
}

static enum lmq_status
add_tokenizer(struct export *export, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = export->checkpoint;
    enum lmq_status status = LMQ_OK;
    bool is_found = checkpoint->n_blobs == 0;

    for (size_t i = 0; i < checkpoint->n_blobs && status == LMQ_OK; i++) {
        const struct lmq_blob *blob = &checkpoint->blobs[i];
        const char *name = usual_name(checkpoint, blob->name);
        is_found = is_found || strcmp(name, "tokenizer.json") == 0 ||
                   strcmp(name, "tokenizer.model") == 0;
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
add_text(struct export *export, const char *name, char *text,
         struct lmq_error *err)
{
    return add_part(export, name, text, text == NULL ? 0 : strlen(text), err);
}

static enum lmq_status
add_parts(struct export *export, struct lmq_error *err)
{
    export->parts = calloc(export->n_shards + export->checkpoint->n_blobs + 2,
                           sizeof(*export->parts));
    if (export->parts == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = add_shards(export, err);
    if (status == LMQ_OK && export->n_shards > 1)
        status = add_text(export, INDEX_NAME, index_text(export), err);
    if (status == LMQ_OK)
        status = add_tokenizer(export, err);
    if (status == LMQ_OK && export->words.config != NULL)
        status = add_text(export, CONFIG_NAME,
                          lmq_json_dump(export->words.config,
                                     JSON_INDENT(2) | JSON_SORT_KEYS |
                                         JSON_REAL_PRECISION(17)),
                          err);
    return status;
}

/* ---- The folder ---- */

static enum lmq_status
make_folder(struct export *export, struct lmq_error *err)
{
    if (mkdir(export->folder, 0777) == 0) {
        export->is_new_folder = true;
        return LMQ_OK;
    }
    if (errno == EEXIST)
        return LMQ_OK;
    enum lmq_status status = lmq_fail_errno(err, "cannot make the folder");
    lmq_error_in(err, export->folder);
    return status;
}

static bool
is_part(const struct export *export, const char *name)
{
    for (size_t i = 0; i < export->n_parts; i++)
        if (strcmp(export->parts[i].name, name) == 0)
            return true;
    return false;
}

/* Without its configuration and index what stands there is no model while it
 * is being replaced; and its weights in one file would be taken for those of
 * our shards. */
static enum lmq_status
remove_old(const struct export *export, struct lmq_output **outputs, size_t *n,
           struct lmq_error *err)
{
    static const char *const names[] = {CONFIG_NAME, INDEX_NAME, SINGLE_NAME};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < N_REMOVED && status == LMQ_OK; i++) {
        if (!lmq_hf_has_file(export->folder, names[i], &status, err) ||
            (i == 2 && is_part(export, names[i])))
            continue;
        char *path = lmq_path_join(export->folder, names[i]);
        status = path == NULL
                     ? lmq_fail_nomem(err)
                     : lmq_output_remove(path, &export->checkpoint->originals,
                                         &outputs[*n], err);
        free(path);
        *n += status == LMQ_OK;
    }
    return status;
}

/* Notes what was in the folder before, stays, and would be taken for a part
 * of the model. */
static enum lmq_status
note_leftovers(const struct export *export, struct lmq_error *err)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model", "tokenizer_config.json",
        "generation_config.json", "chat_template.jinja"};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (lmq_hf_has_file(export->folder, names[i], &status, err) &&
            !is_part(export, names[i]))
            lmq_notes_add(export->notes,
                          "%s was in the folder before and stays: it "
                          "may belong to another model",
                          names[i]);
    return status;
}

/* ---- Writing ---- */

static enum lmq_status
write_text(struct part *part, bool is_shard, struct lmq_error *err)
{
    unsigned char length[8];
    uint64_t n = is_shard ? part->data_at - 8 : part->size;
    enum lmq_status status = LMQ_OK;

    lmq_store_u64le(length, n);
    if (is_shard)
        status = lmq_output_write(part->output, 0, length, 8, err);
    if (status == LMQ_OK)
        status = lmq_output_write(part->output, is_shard ? 8 : 0, part->text,
                                  (size_t)n, err);
    return status;
}

static enum lmq_status
write_floats(struct export *export, const struct item *item,
             const struct lmq_workers *workers, struct lmq_error *err)
{
    const struct entry *entry = &export->entries[item->entries[0]];
    const struct part *part = &export->parts[entry->shard];
    const struct lmq_float_target target = {
        .checkpoint = export->checkpoint,
        .tensor = item->tensor,
        .dtype = entry->dtype,
        .is_less_one = item->is_less_one,
        .output = part->output,
        .offset = part->data_at + entry->offset,
    };

    return lmq_export_write_tensor(&target, workers, &export->is_exact, err);
}

static enum lmq_status
write_packed(struct export *export, const struct item *item,
             const struct lmq_workers *workers, struct lmq_error *err)
{
    struct lmq_packed_target target = {
        .model = &export->packed,
        .checkpoint = export->checkpoint,
        .tensor = item->tensor,
    };

    for (unsigned i = 0; i < item->n_entries; i++) {
        const struct entry *entry = &export->entries[item->entries[i]];
        const struct part *part = &export->parts[entry->shard];
        target.pieces[i].output = part->output;
        target.pieces[i].offset = part->data_at + entry->offset;
    }
    return lmq_packed_write(&target, workers, &export->is_exact, err);
}

static enum lmq_status
write_items(struct export *export, const struct lmq_workers *floats,
            const struct lmq_workers *packers,
            const struct lmq_progress *progress, struct lmq_error *err)
{
    size_t n_tensors = export->checkpoint->n_tensors;
    uint64_t n_done = 0, n_total = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n_tensors; i++)
        if (export->items[i].n_entries > 0)
            n_total += export->items[i].tensor->n_elements;
    for (size_t i = 0; i < n_tensors && status == LMQ_OK; i++) {
        const struct item *item = &export->items[i];
        if (item->n_entries == 0)
            continue;
        status = item->is_packed ? write_packed(export, item, packers, err)
                                 : write_floats(export, item, floats, err);
        n_done += item->tensor->n_elements;
        if (status == LMQ_OK)
            status = lmq_progress_report(progress, "exporting", n_done,
                                         n_total, err);
    }
    return status;
}

static enum lmq_status
write_data(struct export *export, const struct lmq_progress *progress,
           struct lmq_error *err)
{
    struct lmq_workers floats, packers = {0};
    uint64_t n_most = 0;

    for (size_t i = 0; i < export->checkpoint->n_tensors; i++)
        n_most = lmq_u64_max(n_most, export->checkpoint->tensors[i].n_elements);
    enum lmq_status status = lmq_float_workers_open(
        &floats, export->options->threads, n_most, err);
    if (status == LMQ_OK && export->packing != NULL)
        status = lmq_packed_workers_open(&packers, export->options->threads,
                                         err);
    if (status == LMQ_OK)
        status = write_items(export, &floats, &packers, progress, err);
    lmq_workers_close(&packers);
    lmq_workers_close(&floats);
    return status;
}

static enum lmq_status
write_parts(struct export *export, const struct lmq_progress *progress,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < export->n_parts && status == LMQ_OK; i++) {
        struct part *part = &export->parts[i];
        status = lmq_output_create(part->path, part->size,
                                   export->options->replaces != 0,
                                   &export->checkpoint->originals,
                                   &part->output, err);
        if (status == LMQ_OK)
            status = write_text(part, i < export->n_shards, err);
    }
    return status == LMQ_OK ? write_data(export, progress, err) : status;
}

static void
make_report(const struct export *export, json_t **report)
{
    const char *type = lmq_names_of(type_names, export->type->dtype);

    for (size_t i = 0; i < export->n_parts; i++)
        lmq_export_add_file(report, export->parts[i].path,
                            export->parts[i].size);
    lmq_put(report, "type", json_string(export->packing != NULL ? "i8" : type));
    if (export->packing != NULL) {
        lmq_put(report, "group_size", json_integer(export->packed.group_size));
        lmq_put(report, "float_type", json_string(type));
    }
    lmq_put(report, "is_lossless", json_boolean(export->is_exact));
    lmq_put(report, "names",
            json_string(export->words.family != NULL ? "huggingface"
                                                     : "canonical"));
}

/* All of them or none. */
static enum lmq_status
commit_parts(struct export *export, const struct lmq_progress *progress,
             json_t **report, struct lmq_error *err)
{
    struct lmq_output **outputs =
        calloc(export->n_parts + N_REMOVED, sizeof(struct lmq_output *));
    enum lmq_status status = LMQ_OK;
    size_t n = 0;

    if (outputs == NULL)
        return lmq_fail_nomem(err);
    if (!export->is_new_folder)
        status = remove_old(export, outputs, &n, err);
    for (size_t i = 0; i < export->n_parts; i++) {
        outputs[n++] = export->parts[i].output;
        export->parts[i].output = NULL;
    }
    if (status == LMQ_OK)
        status = lmq_export_commit(export->checkpoint, progress, report,
                                   export->notes, outputs, n, err);
    else
        while (n > 0)
            lmq_output_abort(outputs[--n]);
    free(outputs);
    return status;
}

/* "model.layers.0.mlp.gate", without ".weight". */
static void
append_module(char *name, json_t **modules)
{
    char *dot = strrchr(name, '.');

    if (dot != NULL)
        *dot = '\0';
    lmq_append(modules, json_string(name));
}

/* Modules whose matrices stay floats are named. */
static enum lmq_status
configure_packing(struct export *export, struct lmq_error *err)
{
    static const struct lmq_place head = {LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1,
                                          -1};
    json_t *ignored = json_array();
    char name[LMQ_MAX_TENSOR_NAME + 1];

    for (size_t i = 0; i < export->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &export->checkpoint->tensors[i];
        if (export->items[i].n_entries == 0 || tensor->n_dims != 2 ||
            tensor->place.part != LMQ_PART_WEIGHT ||
            tensor->place.role == LMQ_ROLE_EMBEDDING ||
            lmq_packed_takes(&export->packed, tensor))
            continue;
        lmq_hf_words_name(&export->words, export->checkpoint, tensor, name,
                          sizeof(name));
        append_module(name, &ignored);
    }
    /* A tied head is a module too, without a tensor of its own. */
    if (lmq_checkpoint_is_tied(export->checkpoint) &&
        lmq_name_hf(export->words.family->hf.names, &head, false, name,
                    sizeof(name)))
        append_module(name, &ignored);
    lmq_packed_configure(&export->packed, ignored, &export->words.config);
    json_decref(ignored);
    return export->words.config == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

/* Other programs read what is packed, or nobody does. */
static enum lmq_status
prepare_packing(struct export *export, struct lmq_error *err)
{
    if (export->words.family == NULL) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "'%s' is not written in Hugging Face's words, which '%s' "
                 "needs",
                 export->checkpoint->has_model
                     ? export->checkpoint->hparams.architecture
                     : "a checkpoint without a model",
                 export->options->to);
        lmq_hint(err, "the formats safetensors and gguf have any tensor");
        return LMQ_ERR_UNSUPPORTED;
    }
    enum lmq_status status =
        lmq_packed_model_init(&export->packed, export->packing,
                              export->checkpoint, export->type->dtype, err);
    return status;
}

static void
free_export(struct export *export)
{
    for (size_t i = 0; i < export->n_parts; i++) {
        lmq_output_abort(export->parts[i].output);
        free(export->parts[i].name);
        free(export->parts[i].path);
        free(export->parts[i].text);
    }
    for (size_t i = 0; i < export->n_entries; i++)
        free(export->entries[i].name);
    lmq_hf_words_free(&export->words);
    free(export->parts);
    free(export->entries);
    free(export->items);
    free(export->shard_sizes);
}

enum lmq_status
lmq_export_safetensors(struct lmq_checkpoint *checkpoint, const char *output,
                       const struct lmq_export_options *options,
                       const struct lmq_progress *progress, json_t **report,
                       struct lmq_notes *notes, struct lmq_error *err)
{
    struct export export = {.checkpoint = checkpoint, .notes = notes,
                            .options = options, .folder = output,
                            .packing = lmq_pack_scheme_find(options->to),
                            .is_exact = true};
    enum lmq_status status = choose_type(&export, err);

    if (status == LMQ_OK)
        status = lmq_hf_words_find(checkpoint, export.type->torch,
                                   &export.words, notes, err);
    if (status == LMQ_OK && export.packing != NULL)
        status = prepare_packing(&export, err);
    if (status == LMQ_OK)
        status = add_entries(&export, err);
    if (status == LMQ_OK && export.packing != NULL)
        status = configure_packing(&export, err);
    if (status == LMQ_OK)
        status = place_entries(&export, err);
    if (status == LMQ_OK)
        status = add_parts(&export, err);
    if (status == LMQ_OK)
        status = make_folder(&export, err);
    if (status == LMQ_OK)
        status = note_leftovers(&export, err);
    if (status == LMQ_OK)
        status = write_parts(&export, progress, err);
    if (status == LMQ_OK) {
        make_report(&export, report);
        status = commit_parts(&export, progress, report, err);
    }
    free_export(&export);
    if (status != LMQ_OK && export.is_new_folder)
        rmdir(output); /* if nothing was put into it */
    return status;
}
