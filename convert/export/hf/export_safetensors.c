/*
 * export_safetensors.c - a folder that Hugging Face's tools read.
 *
 * All files are written before the first gets its name, and config.json gets
 * it last: a folder that is half written is no model.
 */
#include "config.h"

#include "convert/export/hf/export_safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "convert/export/export.h"
#include "convert/export/export_files.h"
#include "convert/export/export_floats.h"

/* ---- Types ---- */

static const struct lmq_name type_names[] = {
    {"f32", LMQ_DTYPE_F32},
    {"f16", LMQ_DTYPE_F16},
    {"bf16", LMQ_DTYPE_BF16},
    {NULL, 0},
};

static const struct lmq_hf_type types[] = {
    {LMQ_DTYPE_F32, "float32"},
    {LMQ_DTYPE_F16, "float16"},
    {LMQ_DTYPE_BF16, "bfloat16"},
};

static enum lmq_status
choose_type(struct lmq_hf_export *export, struct lmq_error *err)
{
    int dtype = LMQ_DTYPE_F32;
    enum lmq_status status = lmq_names_parse(
        type_names, "type", export->options->type, &dtype, err);

    export->type = types;
    while ((int)export->type->dtype != dtype)
        export->type++;
    return status;
}

/* ---- Packing ---- */

/* "model.layers.0.mlp.gate", without ".weight". */
static void
append_module(char *name, json_t **modules)
{
    char *dot = strrchr(name, '.');

    if (dot != NULL)
        *dot = '\0';
    lmq_append(modules, json_string(name));
}

/* Whether it is the matrix of a module that could be packed. What weighs a
 * shared expert has one row there, and so is a vector here. */
static bool
is_linear(const struct lmq_tensor *tensor)
{
    const struct lmq_place *place = &tensor->place;

    return place->part == LMQ_PART_WEIGHT &&
           (tensor->n_dims == 2 || place->role == LMQ_ROLE_SHARED_SWITCH) &&
           place->role != LMQ_ROLE_EMBEDDING;
}

/* Modules whose matrices stay floats are named. */
static enum lmq_status
configure_packing(struct lmq_hf_export *export, struct lmq_error *err)
{
    static const struct lmq_place head = {LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1,
                                          -1};
    json_t *ignored = json_array();
    char name[LMQ_MAX_TENSOR_NAME + 1];

    for (size_t i = 0; i < export->checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &export->checkpoint->tensors[i];
        if (export->items[i].n_entries == 0 || !is_linear(tensor) ||
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
prepare_packing(struct lmq_hf_export *export, struct lmq_error *err)
{
    if (export->words.family == NULL) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "'%s' is not written in Hugging Face's words, which '%s' "
                 "needs",
                 export->checkpoint->has_model
                     ? export->checkpoint->hparams.architecture
                     : "a checkpoint without a model",
                 export->options->to);
        lmq_hint(err, ".to=safetensors has any tensor");
        return LMQ_ERR_UNSUPPORTED;
    }
    enum lmq_status status =
        lmq_packed_model_init(&export->packed, export->packing,
                              export->checkpoint, export->type->dtype, err);
    return status;
}

/* ---- Words ---- */

/* Where a family has several of our matrices in one, so they are written, if
 * the words are the family's. */
static enum lmq_status
find_words(struct lmq_hf_export *export, struct lmq_error *err)
{
    static const struct lmq_source as = {0};
    struct lmq_checkpoint *given = export->checkpoint;
    const struct lmq_family *family =
        lmq_family_find(given->hparams.architecture);
    unsigned joins =
        family == NULL || !given->has_model ? 0 : family->hf.joins;
    enum lmq_status status = LMQ_OK;

    if (joins != 0) {
        status = lmq_arrange(given, joins, &as, &export->arranged, err);
        export->checkpoint = &export->arranged.checkpoint;
    }
    if (status == LMQ_OK)
        status = lmq_hf_words_find(export->checkpoint, export->type->torch,
                                   &export->words, export->notes, err);
    if (export->words.family == NULL)
        export->checkpoint = given;
    return status;
}

/* ---- The folder ---- */

/* Files of an old model that are no part of the new one. */
#define N_REMOVED 3

static enum lmq_status
make_folder(struct lmq_hf_export *export, struct lmq_error *err)
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
is_part(const struct lmq_hf_export *export, const char *name)
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
remove_old(const struct lmq_hf_export *export, struct lmq_output **outputs,
           size_t *n, struct lmq_error *err)
{
    static const char *const names[] = {LMQ_HF_CONFIG, LMQ_HF_INDEX,
                                        LMQ_HF_SINGLE};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < N_REMOVED && status == LMQ_OK; i++) {
        if (!lmq_file_exists_in(export->folder, names[i], &status, err) ||
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
note_leftovers(const struct lmq_hf_export *export, struct lmq_error *err)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model", "tiktoken.model", "tekken.json",
        "qwen.tiktoken",
        "tokenizer_config.json", "added_tokens.json", "generation_config.json",
        "chat_template.jinja", "chat_template.json", "adapter_config.json"};
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (lmq_file_exists_in(export->folder, names[i], &status, err) &&
            !is_part(export, names[i]))
            lmq_notes_add(export->notes,
                          "%s was in the folder before and stays: it "
                          "may belong to another model",
                          names[i]);
    return status;
}

/* ---- Writing ---- */

static enum lmq_status
write_text(struct lmq_hf_part *part, bool is_shard, struct lmq_error *err)
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

/* Where in its file number i of an item begins. */
static uint64_t
offset_of(const struct lmq_hf_export *export, const struct lmq_hf_item *item,
          unsigned i)
{
    const struct lmq_hf_entry *entry = &export->entries[item->entries[i]];

    return export->parts[entry->shard].data_at + entry->offset +
           item->part * (entry->size / item->n_parts);
}

static enum lmq_status
write_floats(struct lmq_hf_export *export, const struct lmq_hf_item *item,
             const struct lmq_workers *workers, struct lmq_error *err)
{
    const struct lmq_hf_entry *entry = &export->entries[item->entries[0]];
    const struct lmq_hf_part *part = &export->parts[entry->shard];
    const struct lmq_float_target target = {
        .checkpoint = export->checkpoint,
        .tensor = item->tensor,
        .dtype = entry->dtype,
        .is_less_one = item->is_less_one,
        .output = part->output,
        .offset = offset_of(export, item, 0),
    };

    return lmq_export_write_tensor(&target, workers, &export->is_exact, err);
}

static enum lmq_status
write_packed(struct lmq_hf_export *export, const struct lmq_hf_item *item,
             const struct lmq_workers *workers, struct lmq_error *err)
{
    struct lmq_packed_target target = {
        .model = &export->packed,
        .checkpoint = export->checkpoint,
        .tensor = item->tensor,
    };

    for (unsigned i = 0; i < item->n_entries; i++) {
        const struct lmq_hf_entry *entry = &export->entries[item->entries[i]];
        const struct lmq_hf_part *part = &export->parts[entry->shard];
        target.pieces[i].output = part->output;
        target.pieces[i].offset = offset_of(export, item, i);
    }
    return lmq_packed_write(&target, workers, &export->is_exact, err);
}

static enum lmq_status
write_items(struct lmq_hf_export *export, const struct lmq_workers *floats,
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
        const struct lmq_hf_item *item = &export->items[i];
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
write_data(struct lmq_hf_export *export, const struct lmq_progress *progress,
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
write_parts(struct lmq_hf_export *export, const struct lmq_progress *progress,
            struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < export->n_parts && status == LMQ_OK; i++) {
        struct lmq_hf_part *part = &export->parts[i];
        status = lmq_output_create(part->path, part->size,
                                   export->options->replaces != 0,
                                   &export->checkpoint->originals,
                                   &part->output, err);
        if (status == LMQ_OK)
            status = write_text(part, i < export->n_shards, err);
    }
    return status == LMQ_OK ? write_data(export, progress, err) : status;
}

/* ---- All of it ---- */

static void
make_report(const struct lmq_hf_export *export, json_t **report)
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
commit_parts(struct lmq_hf_export *export, const struct lmq_progress *progress,
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

static void
free_export(struct lmq_hf_export *export)
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
    lmq_arranged_free(&export->arranged);
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
    struct lmq_hf_export export = {.checkpoint = checkpoint, .notes = notes,
                            .options = options, .folder = output,
                            .packing = lmq_pack_scheme_find(options->to),
                            .is_exact = true};
    enum lmq_status status = choose_type(&export, err);

    if (status == LMQ_OK)
        status = find_words(&export, err);
    if (status == LMQ_OK && export.packing != NULL)
        status = prepare_packing(&export, err);
    if (status == LMQ_OK)
        status = lmq_hf_add_entries(&export, err);
    if (status == LMQ_OK && export.packing != NULL)
        status = configure_packing(&export, err);
    if (status == LMQ_OK)
        status = lmq_hf_place_entries(&export, err);
    if (status == LMQ_OK)
        status = lmq_hf_add_parts(&export, err);
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
