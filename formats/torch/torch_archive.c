/*
 * torch_archive.c - finds the tensors of one file of torch.save.
 *
 * NAME/data.pkl describes a tree of dictionaries, in which the state dict is
 * looked for. What a tensor in it is, torch_view.c knows.
 *
 * An archive holds, below one folder of any name,
 *
 *     data.pkl      the pickle: what was saved, with tensors as persistent ids
 *     data/0, ...   the bytes of storages, stored, never deflated
 *     byteorder     "little" or "big", in newer files
 *     version       of the archive
 *
 * A training checkpoint is a dictionary of dictionaries: one of them is the
 * model's state dict, the others are the optimizer's and the like.
 */
#include "config.h"

#include "formats/torch/torch_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/report.h"
#include "base/size.h"
#include "base/text/ends.h"
#include "base/text/utf8.h"
#include "formats/checkpoint/other_kinds.h"
#include "formats/torch/torch_view.h"

#define PICKLE_NAME "data.pkl"
/* Some hundred bytes for each tensor. */
#define PICKLE_MAX ((size_t)64 << 20)
#define NOTE_MAX 16 /* bytes of `version` and `byteorder` */
#define VERSION_MAX 10

/* A state dict stands at most so deep, in dictionaries of training tools. */
#define DEPTH_MAX 3
/* Tensors may share storages; but not so that a small file makes much work. */
#define SHARING_MAX 64
#define MODEL_ARGS_MAX 256

/* ---- The archive ---- */

/* Says what it is instead, where that can be seen. */
static enum lmq_status
fail_stranger(const struct lmq_zip *zip, struct lmq_error *err)
{
    bool is_numpy = false;

    for (size_t i = 0; i < zip->n_members; i++)
        is_numpy |= lmq_ends_with(zip->members[i].name, ".npy");
    if (is_numpy)
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "is an archive of NumPy (.npz), which is not supported");
    else
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "is a zip archive, but not from torch.save: it has no "
                 "data.pkl");
    lmq_hint(err, "save the model as safetensors");
    return LMQ_ERR_UNSUPPORTED;
}

/* The one NAME/data.pkl. */
static enum lmq_status
find_pickle(struct lmq_torch_archive *archive,
            const struct lmq_zip_member **pickle, struct lmq_error *err)
{
    const struct lmq_zip *zip = archive->zip;

    *pickle = NULL;
    for (size_t i = 0; i < zip->n_members; i++) {
        const char *name = zip->members[i].name;
        const char *slash = strchr(name, '/');
        if (slash == NULL || strcmp(slash + 1, PICKLE_NAME) != 0)
            continue;
        if (*pickle != NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, zip->members[i].offset,
                            "the zip archive has both '%s' and '%s'",
                            (*pickle)->name, name);
        *pickle = &zip->members[i];
        archive->prefix = name;
        archive->n_prefix = (size_t)(slash - name) + 1;
    }
    if (*pickle == NULL)
        return fail_stranger(zip, err);
    if (lmq_torch_find_member(archive, "", "constants.pkl", 13) == NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "is a TorchScript archive, a program with its weights");
    lmq_hint(err, "load it with torch.jit.load and torch.save its "
                  "state_dict()");
    return LMQ_ERR_UNSUPPORTED;
}

/* The text of a small member; "" if there is none. */
static enum lmq_status
read_remark(const struct lmq_torch_archive *archive, const char *name,
            char text[NOTE_MAX + 1], struct lmq_error *err)
{
    const struct lmq_zip_member *member =
        lmq_torch_find_member(archive, "", name, strlen(name));
    unsigned char *bytes;

    text[0] = '\0';
    if (member == NULL)
        return LMQ_OK;
    enum lmq_status status =
        lmq_zip_load(archive->zip, member, NOTE_MAX, &bytes, err);
    if (status == LMQ_OK)
        snprintf(text, NOTE_MAX + 1, "%s", (const char *)bytes);
    free(bytes);
    return status;
}

/* Older files have neither, and are little-endian in practice. */
static enum lmq_status
check_remarks(const struct lmq_torch_archive *archive, struct lmq_error *err)
{
    char text[NOTE_MAX + 1];
    enum lmq_status status = read_remark(archive, "byteorder", text, err);

    if (status != LMQ_OK)
        return status;
    if (text[0] != '\0' && strcmp(text, "little") != 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "has the byte order '%s', expected 'little'", text);
        lmq_hint(err, "save it again on a little-endian machine, or as "
                      "safetensors");
        return LMQ_ERR_UNSUPPORTED;
    }
    status = read_remark(archive, "version", text, err);
    if (status == LMQ_OK && strtoul(text, NULL, 10) > VERSION_MAX)
        status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                          "is a torch.save file of version %s, expected at "
                          "most %d",
                          text, VERSION_MAX);
    return status;
}

/* In a folder the name alone made it one. */
static enum lmq_status
check_head(struct lmq_input *input, struct lmq_error *err)
{
    unsigned char head[32];
    size_t n = (size_t)lmq_u64_min(lmq_input_size(input), sizeof(head));
    enum lmq_status status = lmq_input_read(input, 0, head, n, err);

    if (status != LMQ_OK)
        return status;
    if (n == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "is empty");
    if (lmq_fail_other_kind(head, n, err))
        return LMQ_ERR_UNSUPPORTED;
    if (n >= 2 && memcmp(head, "PK", 2) == 0)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "is no zip archive, as PyTorch writes them since 1.6");
    lmq_hint(err, "fetch the file again, or save the model as safetensors");
    return LMQ_ERR_UNSUPPORTED;
}

/* The pickle points into its bytes: both live until the tensors are found. */
static enum lmq_status
open_archive(struct lmq_torch_archive *archive, struct lmq_input *input,
             struct lmq_error *err)
{
    const struct lmq_zip_member *pickle;
    enum lmq_status status = check_head(input, err);

    if (status == LMQ_OK)
        status = lmq_zip_open(input, &archive->zip, err);

    if (status == LMQ_OK)
        status = find_pickle(archive, &pickle, err);
    if (status == LMQ_OK)
        status = check_remarks(archive, err);
    if (status == LMQ_OK)
        status = lmq_zip_load(archive->zip, pickle, PICKLE_MAX,
                              &archive->bytes, err);
    if (status == LMQ_OK)
        status = lmq_pickle_parse(archive->bytes, (size_t)pickle->size,
                                  &archive->pickle, err);
    return status;
}

static void
close_archive(struct lmq_torch_archive *archive)
{
    lmq_pickle_free(archive->pickle);
    free(archive->bytes);
    lmq_zip_close(archive->zip);
}

/* ---- The state dict ---- */

/* Under what names training tools keep it. */
static const char *const wrappers[] = {
    "model", "state_dict", "model_state_dict", "module", "model_state",
};

/* What stands beside the chosen entry is of no use here: optimizer, settings
 * and the like. */
static void
note_left_out(struct lmq_checkpoint *checkpoint,
              const struct lmq_pickle *pickle,
              const struct lmq_pickle_value *dict, const char *chosen)
{
    uint32_t cell = lmq_pickle_first(dict);
    char first[64] = "";
    size_t n = 0;

    while (cell != LMQ_PICKLE_NOTHING) {
        const struct lmq_pickle_value *key = lmq_pickle_next(pickle, &cell);
        lmq_pickle_next(pickle, &cell);
        if (lmq_pickle_says(key, chosen))
            continue;
        if (n++ == 0 && lmq_pickle_is(key, LMQ_PICKLE_TEXT))
            snprintf(first, sizeof(first), "%.*s", (int)key->is.text.n,
                     (const char *)key->is.text.at);
    }
    if (n > 1)
        lmq_checkpoint_note(checkpoint,
                            "of the training checkpoint '%s' is read; '%s' "
                            "and %zu more are left out",
                            chosen, first, n - 1);
    else if (n == 1)
        lmq_checkpoint_note(checkpoint,
                            "of the training checkpoint '%s' is read; '%s' is "
                            "left out",
                            chosen, first);
}

/* From the outside in, as long as a usual name leads to a dictionary. */
static const struct lmq_pickle_value *
find_state_dict(struct lmq_checkpoint *checkpoint,
                const struct lmq_pickle *pickle)
{
    const struct lmq_pickle_value *dict = lmq_pickle_root(pickle);

    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const struct lmq_pickle_value *inner = NULL;
        for (size_t i = 0;
             i < sizeof(wrappers) / sizeof(wrappers[0]) && inner == NULL;
             i++) {
            inner = lmq_pickle_get(pickle, dict, wrappers[i]);
            if (!lmq_pickle_is(inner, LMQ_PICKLE_DICT))
                inner = NULL;
            else
                note_left_out(checkpoint, pickle, dict, wrappers[i]);
        }
        if (inner == NULL)
            break;
        dict = inner;
    }
    return dict;
}

/* A name goes into messages and reports: no zero bytes, no endless length. */
static enum lmq_status
copy_name(const struct lmq_pickle_value *key,
          char name[LMQ_MAX_TENSOR_NAME + 1], struct lmq_error *err)
{
    if (!lmq_pickle_is(key, LMQ_PICKLE_TEXT))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the state dict has a key that is no text");
    if (key->is.text.n > LMQ_MAX_TENSOR_NAME ||
        memchr(key->is.text.at, 0, key->is.text.n) != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the state dict has a key of %zu bytes that is no "
                        "proper name",
                        key->is.text.n);
    memcpy(name, key->is.text.at, key->is.text.n);
    name[key->is.text.n] = '\0';
    return LMQ_OK;
}

/* Tensors may be views of one storage (tied weights, slices), so their bytes
 * together may be more than the file has; but what a small file can make us
 * read has a bound. Entries that are no tensors (numbers of steps, settings)
 * are left out and noted. */
static enum lmq_status
add_tensors(struct lmq_checkpoint *checkpoint,
            const struct lmq_torch_archive *archive,
            const struct lmq_pickle_value *dict, struct lmq_error *err)
{
    uint64_t file_size = lmq_input_size(checkpoint->files[archive->file]);
    uint64_t total = 0;
    size_t n_skipped = 0;
    char name[LMQ_MAX_TENSOR_NAME + 1], skipped[64] = "";

    for (uint32_t cell = lmq_pickle_first(dict);
         cell != LMQ_PICKLE_NOTHING;) {
        const struct lmq_pickle_value *key =
            lmq_pickle_next(archive->pickle, &cell);
        const struct lmq_pickle_value *value =
            lmq_pickle_next(archive->pickle, &cell);
        struct lmq_tensor *tensor;
        enum lmq_status status = copy_name(key, name, err);
        if (status == LMQ_OK && !lmq_torch_is_tensor(value)) {
            if (n_skipped++ == 0)
                snprintf(skipped, sizeof(skipped), "%.60s", name);
            continue;
        }
        if (status == LMQ_OK)
            status = lmq_checkpoint_add_tensor(checkpoint, name, &tensor, err);
        if (status == LMQ_OK)
            status = lmq_torch_parse_tensor(archive, value, tensor, err);
        if (status != LMQ_OK)
            return status;
        if (!lmq_u64_add(total, tensor->size_bytes, &total) ||
            total / SHARING_MAX > file_size)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "the tensors share their storages more than "
                            "%d-fold",
                            SHARING_MAX);
    }
    if (n_skipped == 1)
        lmq_checkpoint_note(checkpoint, "'%s' is no tensor and left out",
                            skipped);
    else if (n_skipped > 1)
        lmq_checkpoint_note(checkpoint,
                            "'%s' and %zu more are no tensors and left out",
                            skipped, n_skipped - 1);
    return LMQ_OK;
}

static enum lmq_status
add_state_dict(struct lmq_checkpoint *checkpoint,
               const struct lmq_torch_archive *archive, struct lmq_error *err)
{
    const struct lmq_pickle_value *dict =
        find_state_dict(checkpoint, archive->pickle);
    size_t before = checkpoint->n_tensors;
    enum lmq_status status = LMQ_OK;

    if (lmq_pickle_is(dict, LMQ_PICKLE_DICT))
        status = add_tensors(checkpoint, archive, dict, err);
    if (status != LMQ_OK || checkpoint->n_tensors > before)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "holds no dictionary of tensors by name");
    lmq_hint(err, "torch.save(model.state_dict(), ...) makes one");
    return LMQ_ERR_FORMAT;
}

/* ---- What a training checkpoint says about its model ---- */

/* What is no text to JSON is null. */
static json_t *
plain_value(const struct lmq_pickle_value *value)
{
    if (lmq_pickle_is(value, LMQ_PICKLE_INT))
        return json_integer(value->is.integer);
    if (lmq_pickle_is(value, LMQ_PICKLE_BOOL))
        return json_boolean(value->is.integer);
    if (lmq_pickle_is(value, LMQ_PICKLE_REAL))
        return lmq_json_number(value->is.real);
    if (lmq_pickle_is(value, LMQ_PICKLE_TEXT) &&
        lmq_is_utf8(value->is.text.at, value->is.text.n))
        return json_stringn((const char *)value->is.text.at, value->is.text.n);
    return json_null();
}

/* llama2.c's "model_args"; *found stays NULL if there are none. */
static enum lmq_status
find_model_args(const struct lmq_pickle *pickle, json_t **found,
                struct lmq_error *err)
{
    const struct lmq_pickle_value *dict =
        lmq_pickle_get(pickle, lmq_pickle_root(pickle), "model_args");
    char name[LMQ_MAX_TENSOR_NAME + 1];

    if (!lmq_pickle_is(dict, LMQ_PICKLE_DICT) ||
        dict->n_items > 2 * MODEL_ARGS_MAX)
        return LMQ_OK;
    *found = json_object();
    for (uint32_t cell = lmq_pickle_first(dict);
         cell != LMQ_PICKLE_NOTHING;) {
        const struct lmq_pickle_value *key = lmq_pickle_next(pickle, &cell);
        const struct lmq_pickle_value *value =
            lmq_pickle_next(pickle, &cell);
        if (copy_name(key, name, NULL) == LMQ_OK &&
            lmq_is_utf8((const unsigned char *)name, strlen(name)))
            lmq_put(found, name, plain_value(value));
    }
    return *found == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_torch_add_archive(struct lmq_checkpoint *checkpoint, const char *path,
                      uint32_t *index, json_t **model_args,
                      struct lmq_error *err)
{
    struct lmq_torch_archive archive = {0};
    enum lmq_status status =
        lmq_checkpoint_add_file(checkpoint, path, index, err);

    if (status != LMQ_OK)
        return status;
    archive.file = *index;
    status = open_archive(&archive, checkpoint->files[*index], err);
    if (status == LMQ_OK)
        status = add_state_dict(checkpoint, &archive, err);
    if (status == LMQ_OK && model_args != NULL)
        status = find_model_args(archive.pickle, model_args, err);
    close_archive(&archive);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}
