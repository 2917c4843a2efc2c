/*
 * torch.c - reads checkpoints of PyTorch: a file of torch.save, or a folder
 * in the layout of Hugging Face or of Meta.
 *
 * What is in a file is torch_archive.c's business; what stands beside it, and
 * what model it makes, is found out here.
 *
 * Three layouts: one file (a state dict, or a training checkpoint), Hugging
 * Face's pytorch_model.bin with or without an index, Meta's
 * consolidated.NN.pth with params.json. Names of tensors tell Meta's from the
 * others, since files are passed around without their folders.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "formats/formats.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/hf_folder.h"
#include "formats/torch/meta_params.h"
#include "formats/torch/torch_archive.h"
#include "formats/torch/torch_shards.h"

#define HF_NAME "pytorch_model.bin"
#define HF_INDEX "pytorch_model.bin.index.json"
#define META_FORMAT "consolidated.%02u.pth"
#define META_NAME "consolidated.00.pth"
#define META_MOST 100
#define PARAMS_NAME "params.json"
#define PARAMS_MAX ((size_t)1 << 20)

/* ---- Files ---- */

static enum lmq_status
add_shard(struct lmq_checkpoint *checkpoint, const char *path, uint32_t *index,
          struct lmq_error *err)
{
    return lmq_torch_add_archive(checkpoint, path, index, NULL, err);
}

static const struct lmq_hf_shards hf_shards = {HF_INDEX, HF_NAME, add_shard};

static enum lmq_status
add_in(struct lmq_checkpoint *checkpoint, const char *folder, const char *name,
       struct lmq_error *err)
{
    char *path = lmq_path_join(folder, name);
    uint32_t index;

    if (path == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = add_shard(checkpoint, path, &index, err);
    free(path);
    return status;
}

/* consolidated.00.pth and those that follow it, without a gap. */
static enum lmq_status
add_meta_files(struct lmq_checkpoint *checkpoint, const char *folder,
               struct lmq_error *err)
{
    char name[32], missing[32] = "";
    enum lmq_status status = LMQ_OK;

    for (unsigned i = 0; i < META_MOST && status == LMQ_OK; i++) {
        snprintf(name, sizeof(name), META_FORMAT, i);
        bool is_there = lmq_file_exists_in(folder, name, &status, err);
        if (status != LMQ_OK)
            return status;
        if (is_there && missing[0] != '\0')
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "the folder has %s, but no %s", name, missing);
        else if (is_there)
            status = add_in(checkpoint, folder, name, err);
        else if (missing[0] == '\0')
            snprintf(missing, sizeof(missing), "%s", name);
    }
    return status == LMQ_OK && checkpoint->n_files > 1
               ? lmq_torch_join(checkpoint, err)
               : status;
}

/* *model_args: what a single file says about its model, or NULL. */
static enum lmq_status
add_files(struct lmq_checkpoint *checkpoint, const char *folder,
          json_t **model_args, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    uint32_t index;

    if (!checkpoint->is_folder)
        return lmq_torch_add_archive(checkpoint, checkpoint->path, &index,
                                     model_args, err);
    if (lmq_file_exists_in(folder, HF_INDEX, &status, err))
        return lmq_hf_open_index(checkpoint, folder, &hf_shards, err);
    if (lmq_file_exists_in(folder, HF_NAME, &status, err))
        return add_in(checkpoint, folder, HF_NAME, err);
    return status != LMQ_OK ? status : add_meta_files(checkpoint, folder, err);
}

/* ---- The model ---- */

static enum lmq_status
load_json(struct lmq_checkpoint *checkpoint, const char *path, json_t **json,
          struct lmq_error *err)
{
    unsigned char *text;
    size_t size;
    enum lmq_status status = lmq_checkpoint_load(checkpoint, path, PARAMS_MAX,
                                                 &text, &size, err);

    *json = NULL;
    if (status != LMQ_OK)
        return status;
    status = lmq_json_parse(text, size, json, err);
    free(text);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}

/* A params.json or a config.json, whatever it is called. */
static enum lmq_status
describe_by_file(struct lmq_checkpoint *checkpoint, const char *path,
                 struct lmq_error *err)
{
    json_t *json;
    enum lmq_status status = load_json(checkpoint, path, &json, err);

    if (status != LMQ_OK)
        return status;
    if (lmq_meta_is_params(json))
        status = lmq_meta_describe(checkpoint, json, lmq_path_base(path), err);
    else
        status = lmq_hf_read_config(checkpoint, path, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    json_decref(json);
    return status;
}

/* By the names in the file, not by its folder's: params.json says what
 * config.json would. */
static enum lmq_status
describe_by_companion(struct lmq_checkpoint *checkpoint, const char *folder,
                      const struct lmq_open_options *options,
                      struct lmq_error *err)
{
    if (!lmq_meta_has_names(checkpoint))
        return lmq_hf_describe(checkpoint, folder, options, err);
    char *path = lmq_path_join(folder, PARAMS_NAME);
    enum lmq_status status = LMQ_OK;
    if (path == NULL)
        return lmq_fail_nomem(err);
    if (lmq_file_exists(path, &status, err)) {
        status = describe_by_file(checkpoint, path, err);
    } else if (status == LMQ_OK) {
        lmq_hparams_refuse(&checkpoint->hparams, "a model without "
                                                 "params.json");
        lmq_checkpoint_note(checkpoint,
                            "there is no params.json, which says the number "
                            "of heads: tensors only, no model; .config names "
                            "one");
    }
    free(path);
    return status;
}

/* What the user names goes first; then what the file says itself (llama2.c
 * keeps model_args in its checkpoints); then what stands beside it. */
static enum lmq_status
describe(struct lmq_checkpoint *checkpoint, const char *folder,
         const json_t *model_args, const struct lmq_open_options *options,
         struct lmq_error *err)
{
    enum lmq_status status;

    if (options->config != NULL)
        status = describe_by_file(checkpoint, options->config, err);
    else if (lmq_meta_is_params(model_args))
        status = lmq_meta_describe(checkpoint, model_args, "model_args", err);
    else
        status = describe_by_companion(checkpoint, folder, options, err);
    if (lmq_meta_has_names(checkpoint))
        checkpoint->source.has_rotary_pairs = true;
    return status;
}

/* Parts are taken from stored rows, and scales are found by them, which a
 * transposed view does not have. */
static enum lmq_status
check_views(const struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        struct lmq_place place;
        lmq_name_parse(tensor->stored_name, &place);
        bool is_fine = place.role < LMQ_ROLE_ATTN_K_B &&
                       !checkpoint->source.is_transposed &&
                       tensor->packing == NULL;
        if (tensor->view.pitch == 0 || is_fine)
            continue;
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "tensor '%s' is stored transposed and has to be taken apart "
                 "or turned",
                 tensor->stored_name);
        lmq_hint(err, "save it again with .contiguous()");
        return LMQ_ERR_UNSUPPORTED;
    }
    return LMQ_OK;
}

static enum lmq_status
add_tokenizer(struct lmq_checkpoint *checkpoint, const char *folder,
              struct lmq_error *err)
{
    enum lmq_status status = lmq_hf_add_tokenizer(checkpoint, folder, err);

    if (status == LMQ_OK && checkpoint->n_blobs == 0 &&
        lmq_meta_has_names(checkpoint)) /* perhaps of llama2.c */
        status = lmq_checkpoint_add_blob_file(checkpoint, folder,
                                              "tokenizer.bin", err);
    return status;
}

/* ---- The format ---- */

static bool
probe_file(const struct lmq_probe *probe, const char *name)
{
    return lmq_file_exists_in(probe->path, name, probe->status, probe->err);
}

static bool
probe_torch(const struct lmq_probe *probe)
{
    if (probe->is_folder)
        return probe_file(probe, HF_INDEX) || probe_file(probe, HF_NAME) ||
               probe_file(probe, META_NAME);
    return probe->n_head >= 4 && memcmp(probe->head, "PK\003\004", 4) == 0;
}

static enum lmq_status
open_torch(struct lmq_checkpoint *checkpoint,
           const struct lmq_open_options *options, struct lmq_error *err)
{
    char *folder = lmq_hf_folder_of(checkpoint);
    json_t *model_args = NULL;

    if (folder == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = add_files(checkpoint, folder, &model_args, err);
    if (status == LMQ_OK)
        status = lmq_hf_check_adapter(checkpoint, folder, err);
    if (status == LMQ_OK)
        status = describe(checkpoint, folder, model_args, options, err);
    if (status == LMQ_OK)
        status = check_views(checkpoint, err);
    if (status == LMQ_OK && options->tokenizer == NULL)
        status = add_tokenizer(checkpoint, folder, err);
    json_decref(model_args);
    free(folder);
    return status;
}

const struct lmq_format lmq_format_torch = {
    .name = "PyTorch",
    .takes_config = true,
    .probe = probe_torch,
    .open = open_torch,
    .read = lmq_torch_read_joined,
    .close = lmq_torch_free_joined,
};
