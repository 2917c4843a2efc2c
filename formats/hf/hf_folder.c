/*
 * hf_folder.c - the layout of Hugging Face folders.
 *
 * A model is config.json, the weights (one file, or shards with an index), the
 * tokenizer's files, and a README.md that tells its licence. What is missing
 * of these is noted where it can be done without.
 */
#include "config.h"

#include "formats/hf/hf_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/report.h"
#include "base/text/ends.h"
#include "formats/hf/hf_card.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/hf_vocab_pair.h"
#include "formats/hf/more/hf_mistral_large.h"
#include "formats/packed/packed.h"

/* Real ones have kilobytes; an index of shards some megabytes. */
#define JSON_FILE_MAX ((size_t)128 << 20)

/* ---- Folders ---- */

/* A file that was named by itself still has its companions beside it. */
char *
lmq_hf_folder_of(const struct lmq_checkpoint *checkpoint)
{
    return checkpoint->is_folder ? strdup(checkpoint->path)
                                 : lmq_path_folder(checkpoint->path);
}

/* ---- What stands beside the weights ---- */

/* By GPTQ, or as FP8. */
static bool
looks_packed(const struct lmq_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const char *name = checkpoint->tensors[i].stored_name;
        if (lmq_ends_with(name, ".qweight") ||
            lmq_ends_with(name, ".weight_scale_inv"))
            return true;
    }
    return false;
}

/* What packs weights may say how in a file of its own beside them, and
 * config.json nothing, as AutoGPTQ had it and GPTQModel has: it is put where
 * config.json would have it, and *path is its own then. Such a file may be left
 * of weights that are no more. */
static enum lmq_status
add_side_config(struct lmq_checkpoint *checkpoint, json_t *config, char **path,
                struct lmq_error *err)
{
    unsigned char *text = NULL;
    size_t size;
    json_t *side = NULL;
    enum lmq_status status = LMQ_OK;

    *path = NULL;
    if (!json_is_object(config) || lmq_packed_said(config) != NULL ||
        !looks_packed(checkpoint))
        return LMQ_OK;
    char *folder = lmq_hf_folder_of(checkpoint);
    char *own = folder == NULL ? NULL
                               : lmq_path_join(folder, "quantize_config.json");
    free(folder);
    if (own == NULL)
        return lmq_fail_nomem(err);
    if (!lmq_file_exists(own, &status, err)) {
        free(own);
        return status;
    }
    *path = own;
    status = lmq_checkpoint_load(checkpoint, own, JSON_FILE_MAX, &text, &size,
                                 err);
    if (status == LMQ_OK)
        status = lmq_config_json(text, size, &side, err);
    if (status == LMQ_OK && !json_is_object(side))
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "is no object");
    if (status == LMQ_OK && json_object_get(side, "quant_method") == NULL)
        lmq_put(&side, "quant_method", json_string("gptq"));
    if (status == LMQ_OK &&
        json_object_set(config, "quantization_config", side) != 0)
        status = lmq_fail_nomem(err);
    json_decref(side);
    free(text);
    return status;
}

/* What compressed-tensors named otherwise before its version 0.6. */
static enum lmq_status
add_old_config(json_t *config, struct lmq_error *err)
{
    json_t *old = json_object_get(config, "compression_config");
    const char *method =
        json_string_value(json_object_get(old, "quant_method"));

    if (method != NULL && strcmp(method, "compressed-tensors") == 0 &&
        lmq_packed_said(config) == NULL &&
        json_object_set(config, "quantization_config", old) != 0)
        return lmq_fail_nomem(err);
    return LMQ_OK;
}

static enum lmq_status
understand_packing(struct lmq_checkpoint *checkpoint, json_t *config,
                   struct lmq_error *err)
{
    char *path = NULL;
    enum lmq_status status = add_old_config(config, err);

    if (status == LMQ_OK)
        status = add_side_config(checkpoint, config, &path, err);
    if (status == LMQ_OK)
        status = lmq_packed_understand(checkpoint, config, err);
    if (status != LMQ_OK && path != NULL)
        lmq_error_in(err, path);
    free(path);
    return status;
}

/* Parsed twice, for two purposes: what the model is, and how its weights are
 * packed. Configurations are small. */
enum lmq_status
lmq_hf_read_config(struct lmq_checkpoint *checkpoint, const char *path,
                   struct lmq_error *err)
{
    unsigned char *text;
    size_t size;
    json_t *config = NULL;
    enum lmq_status status =
        lmq_checkpoint_load(checkpoint, path, JSON_FILE_MAX, &text, &size, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_config_parse(text, size, &checkpoint->hparams,
                              &checkpoint->source,
                              &checkpoint->has_model, err);
    if (status == LMQ_OK)
        status = lmq_config_json(text, size, &config, err);
    if (status == LMQ_OK)
        status = understand_packing(checkpoint, config, err);
    if (status == LMQ_OK)
        status = lmq_hf_take_frequencies(checkpoint, err);
    json_decref(config);
    free(text);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    else if (checkpoint->source.n_ends_left > 0)
        lmq_checkpoint_note(checkpoint,
                            "'eos_token_id' has %u tokens: the first %d are "
                            "kept, the others end a text only if files of the "
                            "tokenizer name them",
                            LMQ_MAX_EOS + checkpoint->source.n_ends_left,
                            LMQ_MAX_EOS);
    return status;
}

/* tokenizer.json has everything in it, so it goes first; a GGUF without weights
 * is what exports of GGUF files write, and without any of them vocab.json and
 * merges.txt may tell. The companions say nothing without one of
 * them. */
enum lmq_status
lmq_hf_add_tokenizer(struct lmq_checkpoint *checkpoint, const char *folder,
                     struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    static const char *const names[] = {"tokenizer.json", "tokenizer.model",
                                        "tiktoken.model", "tekken.json",
                                        "qwen.tiktoken"};
    const char *name = "tokenizer.gguf";
    static const char *const companions[] = {
        "tokenizer_config.json", "generation_config.json",
        "chat_template.jinja", "chat_template.json", /* never evaluated */
    };

    for (size_t i = sizeof(names) / sizeof(names[0]); i-- > 0;)
        if (lmq_file_exists_in(folder, names[i], &status, err))
            name = names[i];
    if (status == LMQ_OK)
        status = lmq_checkpoint_add_blob_file(checkpoint, folder, name, err);
    if (status == LMQ_OK && checkpoint->n_blobs == 0)
        status = lmq_hf_add_vocab_pair(checkpoint, folder, err);
    if (status == LMQ_OK && strcmp(name, names[1]) == 0)
        status = lmq_checkpoint_add_blob_file(checkpoint, folder,
                                              "added_tokens.json", err);
    for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++)
        if (status == LMQ_OK && checkpoint->n_blobs > 0)
            status = lmq_checkpoint_add_blob_file(checkpoint, folder,
                                                  companions[i], err);
    return status;
}

/* Tensors without a configuration can be inspected, converted and compared,
 * but not run. */
enum lmq_status
lmq_hf_describe(struct lmq_checkpoint *checkpoint, const char *folder,
                const struct lmq_open_options *options, struct lmq_error *err)
{
    char *path = options->config == NULL ? lmq_path_join(folder, "config.json")
                                         : strdup(options->config);
    enum lmq_status status = LMQ_OK;

    if (path == NULL)
        return lmq_fail_nomem(err);
    /* One that was named must be there; the folder's own may be missing. */
    if (options->config != NULL || lmq_file_exists(path, &status, err)) {
        status = lmq_hf_read_config(checkpoint, path, err);
    } else if (status == LMQ_OK) {
        lmq_hparams_refuse(&checkpoint->hparams, "a model without config.json");
        lmq_checkpoint_note(checkpoint, "there is no config.json: tensors "
                                        "only, no model");
        json_t *nothing = json_object();
        status = nothing == NULL
                     ? lmq_fail_nomem(err)
                     : understand_packing(checkpoint, nothing, err);
        json_decref(nothing);
    }
    free(path);
    return status;
}

/* A tokenizer that was given takes the place of those in the folder: they are
 * not even looked for. */
enum lmq_status
lmq_hf_read_companions(struct lmq_checkpoint *checkpoint, const char *folder,
                       const struct lmq_open_options *options,
                       struct lmq_error *err)
{
    enum lmq_status status = lmq_hf_describe(checkpoint, folder, options, err);

    if (status == LMQ_OK)
        status = lmq_hf_read_card(checkpoint, folder, err);
    return status == LMQ_OK && options->tokenizer == NULL
               ? lmq_hf_add_tokenizer(checkpoint, folder, err)
               : status;
}

/* ---- Adapters ---- */

#define ADAPTER "adapter_config.json"

/* What PEFT calls the matrices of an adapter, and what it has wrapped. */
static bool
is_of_adapter(const char *name)
{
    static const char *const parts[] = {
        ".lora_A.", ".lora_B.", ".lora_embedding_A", ".lora_embedding_B",
        ".lora_magnitude_vector", ".base_layer.", ".modules_to_save."};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

static enum lmq_status
fail_adapter(struct lmq_error *err)
{
    lmq_hint(err, "merge it into the weights, with PEFT's merge_and_unload(), "
                  "and save that");
    return LMQ_ERR_UNSUPPORTED;
}

enum lmq_status
lmq_hf_check_adapter(const struct lmq_checkpoint *checkpoint,
                     const char *folder, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (is_of_adapter(checkpoint->tensors[i].stored_name)) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                     "tensor '%s' is of an adapter (LoRA) that is not merged",
                     checkpoint->tensors[i].stored_name);
            return fail_adapter(err);
        }
    if (!checkpoint->is_folder ||
        !lmq_file_exists_in(folder, ADAPTER, &status, err))
        return status;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "there is an adapter (LoRA) that is not merged into the weights: "
             "%s", ADAPTER);
    return fail_adapter(err);
}

/* ---- Shards ---- */

/* A shard stands in the same folder: its name has no way out of it. */
static bool
is_plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strchr(name, '\\') == NULL && strlen(name) <= 255;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Who saves a model in one file over one in several leaves the old index there,
 * or the other way round, and programs differ in which they read. */
static bool
has_single(const char *folder, const char *const *names, size_t n,
           const struct lmq_hf_shards *shards, enum lmq_status *status,
           struct lmq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], shards->single) == 0)
            return false;
    return lmq_file_exists_in(folder, shards->single, status, err);
}

static enum lmq_status
fail_missing(const char *path, const char *single, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "is missing, but the index names it");
    if (single == NULL)
        lmq_hint(err, "the download may be incomplete");
    else
        lmq_hint(err, "if the index is left over and %s is the model, remove "
                      "the index", single);
    lmq_error_in(err, path);
    return LMQ_ERR_FORMAT;
}

/* Each name once, in their order: tensors then stand as in one file, whatever
 * the order of the index. */
static enum lmq_status
open_named_shards(struct lmq_checkpoint *checkpoint, const char *folder,
                  const char **names, size_t n,
                  const struct lmq_hf_shards *shards, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    const char *single =
        has_single(folder, names, n, shards, &status, err) ? shards->single
                                                           : NULL;

    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        uint32_t index;
        if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
            continue;
        char *path = lmq_path_join(folder, names[i]);
        if (path == NULL)
            return lmq_fail_nomem(err);
        if (lmq_file_exists(path, &status, err)) {
            status = shards->add(checkpoint, path, &index, err);
        } else if (status == LMQ_OK) {
            status = fail_missing(path, single, err);
        }
        free(path);
    }
    if (status == LMQ_OK && single != NULL)
        lmq_checkpoint_note(checkpoint,
                            "the files that %s names are read, not %s, which "
                            "other programs may take",
                            shards->index, single);
    return status;
}

static int
compare_stored_names(const void *a, const void *b)
{
    const struct lmq_tensor *x = a, *y = b;

    return strcmp(x->stored_name, y->stored_name);
}

/* The index and the shards must agree on every tensor. */
static enum lmq_status
check_index(struct lmq_checkpoint *checkpoint, json_t *map,
            struct lmq_error *err)
{
    const char *name;
    json_t *shard;

    qsort(checkpoint->tensors, checkpoint->n_tensors,
          sizeof(*checkpoint->tensors), compare_stored_names);
    for (size_t i = 1; i < checkpoint->n_tensors; i++)
        if (compare_stored_names(&checkpoint->tensors[i - 1],
                                 &checkpoint->tensors[i]) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' stands in two shards",
                            checkpoint->tensors[i].stored_name);
    if (checkpoint->n_tensors > json_object_size(map))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the shards hold %zu tensors, but the index names "
                        "only %zu",
                        checkpoint->n_tensors, json_object_size(map));
    json_object_foreach(map, name, shard)
    {
        struct lmq_tensor key = {.stored_name = (char *)(uintptr_t)name};
        const struct lmq_tensor *found =
            bsearch(&key, checkpoint->tensors, checkpoint->n_tensors,
                    sizeof(key), compare_stored_names);
        const char *path =
            found == NULL ? NULL
                          : lmq_input_path(checkpoint->files[found->file]);
        const char *base = path == NULL ? NULL : strrchr(path, '/') + 1;
        if (base == NULL || strcmp(base, json_string_value(shard)) != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the index says that tensor '%.200s' stands in "
                            "'%.200s', it does not",
                            name, json_string_value(shard));
    }
    return LMQ_OK;
}

/* Names are checked before any of them is opened. Shards of an index that are
 * missing are named; those that are there but not in it are not looked at. */
static enum lmq_status
open_index(struct lmq_checkpoint *checkpoint, const char *folder,
           const char *index_path, const struct lmq_hf_shards *shards,
           struct lmq_error *err)
{
    unsigned char *text;
    size_t size, n = 0;
    json_t *index = NULL, *shard;
    const char *name, **names = NULL;
    enum lmq_status status = lmq_checkpoint_load(
        checkpoint, index_path, JSON_FILE_MAX, &text, &size, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_json_parse(text, size, &index, err);
    free(text);
    json_t *map = json_object_get(index, "weight_map");
    if (status == LMQ_OK && json_object_size(map) == 0)
        status = lmq_fail(err, LMQ_ERR_FORMAT, 0, "has no weight_map");
    if (status == LMQ_OK) {
        names = calloc(json_object_size(map), sizeof(*names));
        if (names == NULL)
            status = lmq_fail_nomem(err);
    }
    if (status == LMQ_OK)
        json_object_foreach(map, name, shard)
        {
            const char *file = json_string_value(shard);
            if (file == NULL || !is_plain_name(file)) {
                status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                                  "the shard of tensor '%.200s' is no plain "
                                  "file name",
                                  name);
                break;
            }
            names[n++] = file;
        }
    if (status == LMQ_OK)
        status =
            open_named_shards(checkpoint, folder, names, n, shards, err);
    if (status == LMQ_OK)
        status = check_index(checkpoint, map, err);
    if (status != LMQ_OK)
        lmq_error_in(err, index_path);
    free(names);
    json_decref(index);
    return status;
}

enum lmq_status
lmq_hf_open_index(struct lmq_checkpoint *checkpoint, const char *folder,
                  const struct lmq_hf_shards *shards, struct lmq_error *err)
{
    char *path = lmq_path_join(folder, shards->index);

    if (path == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        open_index(checkpoint, folder, path, shards, err);
    free(path);
    return status;
}
