/*
 * safetensors.c - reads Hugging Face safetensors checkpoints: one file, or a
 * folder with one file or with an index and its shards.
 *
 * Trusts nothing in a header: its size is checked before it is read, ranges
 * must tile the data exactly, and each must be as long as its shape and type
 * say. Conversion to float32 is dtype.c's business.
 *
 * A file:
 *
 *     the header's length (u64, little-endian), the header, the data
 *
 * The header is a JSON object. Each member is a tensor, with dtype, shape and
 * data_offsets [begin, end) within the data; __metadata__ is an object of
 * texts. A scalar has the shape []. Nothing says in which order tensors stand.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/files/path.h"
#include "base/size.h"
#include "base/text/ends.h"
#include "base/text/json_cost.h"
#include "formats/checkpoint/other_kinds.h"
#include "formats/formats.h"
#include "formats/hf/hf_card.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/hf_folder.h"

/* The limit that the format's own library sets. */
#define HEADER_MAX 100000000u
#define LENGTH_BYTES 8

/* Some stand for packed weights only: U8, U32 and I32 hold the integers and
 * zero points of schemes in formats/packed. Types of less than a byte (F4, F6)
 * have no size in whole bytes and are not read. */
static const struct {
    const char *name;
    enum lmq_dtype type;
} dtypes[] = {
    {"F32", LMQ_DTYPE_F32},         {"F16", LMQ_DTYPE_F16},
    {"BF16", LMQ_DTYPE_BF16},       {"F64", LMQ_DTYPE_F64},
    {"F8_E4M3", LMQ_DTYPE_F8_E4M3}, {"F8_E5M2", LMQ_DTYPE_F8_E5M2},
    {"I8", LMQ_DTYPE_I8},           {"U8", LMQ_DTYPE_U8},
    {"I16", LMQ_DTYPE_I16},         {"U16", LMQ_DTYPE_U16},
    {"I32", LMQ_DTYPE_I32},         {"U32", LMQ_DTYPE_U32},
    {"I64", LMQ_DTYPE_I64},         {"U64", LMQ_DTYPE_U64},
    {"BOOL", LMQ_DTYPE_BOOL},       {"F8_E8M0", LMQ_DTYPE_F8_E8M0},
};

/* ---- One tensor of a header ---- */

static enum lmq_status
parse_dtype(const json_t *entry, struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));

    if (name == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "tensor '%s' has no dtype", tensor->stored_name);
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            tensor->dtype = dtypes[i].type;
            return LMQ_OK;
        }
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, LENGTH_BYTES,
                    "tensor '%s' has the type '%.40s', which is not supported",
                    tensor->stored_name, name);
}

/* Numbers beyond 2^63 - 1 are no integers to jansson; no file is that long. */
static bool
get_u64(const json_t *value, uint64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static enum lmq_status
parse_shape(const json_t *entry, struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    uint64_t dims[LMQ_MAX_DIMS];
    size_t n = json_array_size(shape);

    if (!json_is_array(shape) || n > LMQ_MAX_DIMS)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "tensor '%s' has no shape of at most %d dimensions",
                        tensor->stored_name, LMQ_MAX_DIMS);
    for (size_t i = 0; i < n; i++)
        if (!get_u64(json_array_get(shape, i), &dims[i]))
            return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                            "tensor '%s': dimension %zu is no size",
                            tensor->stored_name, i);
    if (!lmq_tensor_set_dims(tensor, dims, n))
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "tensor '%s': the product of its dimensions is too "
                        "large",
                        tensor->stored_name);
    return LMQ_OK;
}

/* The range must be as long as shape and type say: of two numbers that tell
 * the same, another reader might believe the other one. */
static enum lmq_status
parse_range(const json_t *entry, uint64_t data_size, struct lmq_tensor *tensor,
            struct lmq_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin, end;

    if (json_array_size(offsets) != 2 ||
        !get_u64(json_array_get(offsets, 0), &begin) ||
        !get_u64(json_array_get(offsets, 1), &end) || begin > end)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "tensor '%s' has no data_offsets [begin, end]",
                        tensor->stored_name);
    if (end > data_size) {
        lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                 "tensor '%s' ends at byte %" PRIu64 " of the data, which has "
                 "only %" PRIu64,
                 tensor->stored_name, end, data_size);
        lmq_hint(err, "the file is truncated; fetch it again");
        return LMQ_ERR_FORMAT;
    }
    uint64_t wanted = tensor->n_elements * lmq_dtype_size(tensor->dtype);
    if (end - begin != wanted)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "tensor '%s' has %" PRIu64 " bytes, its shape and "
                        "type need %" PRIu64,
                        tensor->stored_name, end - begin, wanted);
    tensor->offset = begin;
    tensor->size_bytes = end - begin;
    return LMQ_OK;
}

/* ---- One file ---- */

/* The ranges must tile the data without overlap or gap, so that no byte means
 * two things and none is hidden. */
static enum lmq_status
check_tiling(struct lmq_tensor *tensors, size_t n, uint64_t data_size,
             struct lmq_error *err)
{
    uint64_t at = 0;

    lmq_tensors_sort(tensors, n);
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].offset != at)
            return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                            "tensor '%s' begins at byte %" PRIu64 " of the "
                            "data, expected %" PRIu64 " (%s)",
                            tensors[i].stored_name, tensors[i].offset, at,
                            tensors[i].offset < at ? "an overlap" : "a gap");
        at += tensors[i].size_bytes;
    }
    if (at != data_size)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "has %" PRIu64 " bytes of data, but its tensors cover "
                        "only %" PRIu64,
                        data_size, at);
    return LMQ_OK;
}

/* What the members of one file's header are added to. */
struct header {
    struct lmq_checkpoint *checkpoint;
    uint32_t file;
    uint64_t data_size;
    bool has_metadata;
};

/* Its range is made absolute when all are known. */
static enum lmq_status
add_tensor(const struct header *header, const char *name, const json_t *entry,
           struct lmq_error *err)
{
    struct lmq_tensor *tensor;
    enum lmq_status status =
        lmq_checkpoint_add_tensor(header->checkpoint, name, &tensor, err);

    if (status != LMQ_OK)
        return status;
    tensor->file = header->file;
    status = parse_dtype(entry, tensor, err);
    if (status == LMQ_OK)
        status = parse_shape(entry, tensor, err);
    return status == LMQ_OK
               ? parse_range(entry, header->data_size, tensor, err)
               : status;
}

static enum lmq_status
add_metadata(struct header *header, const json_t *entry, struct lmq_error *err)
{
    if (header->has_metadata)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "is no valid JSON: '__metadata__' is a duplicate "
                        "object key");
    header->has_metadata = true;
    return lmq_hf_read_metadata(header->checkpoint, entry, err);
}

/* One member of the header, [from, end) of its text, which is changed: the
 * bytes around it become the braces of an object of its own. */
static enum lmq_status
add_member(struct header *header, char *text, size_t from, size_t end,
           struct lmq_error *err)
{
    const char *name;
    json_t *object, *entry;

    text[from - 1] = '{';
    text[end] = '}';
    enum lmq_status status =
        lmq_json_parse((unsigned char *)text + from - 1, end - from + 2,
                       &object, err);
    if (status != LMQ_OK) {
        err->offset = LENGTH_BYTES + from;
        return status;
    }
    if (json_object_size(object) != 1)
        status = lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES + from,
                          "the header is no valid JSON: a tensor is missing");
    else
        json_object_foreach(object, name, entry)
            if (strcmp(name, "__metadata__") == 0)
                status = add_metadata(header, entry, err);
            else
                status = add_tensor(header, name, entry, err);
    json_decref(object);
    return status;
}

/* Tensor by tensor: the tree of a large header would be many times its
 * text. */
static enum lmq_status
add_members(struct header *header, char *text, size_t n,
            struct lmq_error *err)
{
    size_t at = lmq_json_skip_space(text, n, 0), end = at;
    char next = at < n && text[at] == '{' ? ',' : 0;

    if (next == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                        "the header is no JSON object");
    if (lmq_json_member(text, n, at + 1, &end) == end && end < n &&
        text[end] == '}')
        next = '}';
    for (at++; next == ',';) {
        size_t from = lmq_json_member(text, n, at, &end);
        if (end >= n || text[end] == ']')
            return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES + from,
                            "the header is no valid JSON: it does not end");
        next = text[end];
        enum lmq_status status =
            add_member(header, text, from, end, err);
        if (status != LMQ_OK)
            return status;
        at = end + 1;
    }
    if (lmq_json_skip_space(text, n, end + 1) != n)
        return lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES + end + 1,
                        "the header is no valid JSON: something follows it");
    return LMQ_OK;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Duplicate keys are legal JSON of which readers keep the first, or the last.
 * Since members are parsed one by one jansson does not see them. */
static enum lmq_status
check_names(const struct lmq_tensor *tensors, size_t n, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    const char **names = calloc(n + 1, sizeof(*names));

    if (names == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        names[i] = tensors[i].stored_name;
    qsort((void *)names, n, sizeof(*names), compare_names);
    for (size_t i = 1; i < n && status == LMQ_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = lmq_fail(err, LMQ_ERR_FORMAT, LENGTH_BYTES,
                              "is no valid JSON: tensor '%s' is a duplicate "
                              "object key",
                              names[i]);
    free((void *)names);
    return status;
}

/* Offsets count from the end of the header, which need not be aligned: nothing
 * here makes a pointer of them. */
static enum lmq_status
add_tensors(struct lmq_checkpoint *checkpoint, uint32_t file, char *text,
            size_t size, struct lmq_error *err)
{
    uint64_t data_at = LENGTH_BYTES + (uint64_t)size;
    uint64_t data_size = lmq_input_size(checkpoint->files[file]) - data_at;
    struct header header = {checkpoint, file, data_size, false};
    size_t first = checkpoint->n_tensors;
    enum lmq_status status = add_members(&header, text, size, err);

    if (status != LMQ_OK)
        return status;
    size_t n = checkpoint->n_tensors - first;
    struct lmq_tensor *added = n == 0 ? NULL : checkpoint->tensors + first;
    status = check_names(added, n, err);
    if (status == LMQ_OK)
        status = check_tiling(added, n, data_size, err);
    for (size_t i = 0; i < n; i++)
        added[i].offset += data_at;
    return status;
}

/* *text is freed with free(). */
static enum lmq_status
read_header(struct lmq_input *input, char **text, size_t *n,
            struct lmq_error *err)
{
    unsigned char head[32];
    size_t n_head = (size_t)lmq_u64_min(lmq_input_size(input), sizeof(head));
    enum lmq_status status = lmq_input_read(
        input, 0, head, lmq_size_max(n_head, LENGTH_BYTES), err);

    *text = NULL;
    if (status != LMQ_OK)
        return status;
    uint64_t size = lmq_load_u64le(head);
    /* Before memory is asked for. The beginning of a text, as of what a
     * download left in place of the file, is a length of 2^61. */
    uint64_t most = lmq_u64_min(HEADER_MAX,
                                lmq_input_size(input) - LENGTH_BYTES);
    if (size > most && lmq_fail_other_kind(head, n_head, err))
        return LMQ_ERR_UNSUPPORTED;
    if (size > most) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the header is said to be %" PRIu64 " bytes, at most "
                 "%" PRIu64 " are possible",
                 size, most);
        lmq_hint(err, "if this was fetched, fetch it again");
        return LMQ_ERR_FORMAT;
    }
    *n = (size_t)size;
    *text = malloc(*n + 1);
    if (*text == NULL)
        return lmq_fail_nomem(err);
    return lmq_input_read(input, LENGTH_BYTES, *text, *n, err);
}

/* With an index each shard is opened once, in the order of the names; it may
 * have tensors that the index does not name. */
static enum lmq_status
add_shard(struct lmq_checkpoint *checkpoint, const char *path, uint32_t *index,
          struct lmq_error *err)
{
    char *header = NULL;
    size_t n = 0;
    enum lmq_status status =
        lmq_checkpoint_add_file(checkpoint, path, index, err);

    if (status != LMQ_OK)
        return status;
    status = read_header(checkpoint->files[*index], &header, &n, err);
    if (status == LMQ_OK)
        status = add_tensors(checkpoint, *index, header, n, err);
    free(header);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    return status;
}

/* ---- Folders ---- */

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

static const struct lmq_hf_shards shards = {INDEX_NAME, SINGLE_NAME, add_shard};

/* The name of the one *.safetensors of a folder; counts them. */
static enum lmq_status
find_single(const char *folder, char *name, size_t size, size_t *n,
            struct lmq_error *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    enum lmq_status status = LMQ_OK;

    *n = 0;
    while (dir != NULL && (errno = 0, entry = readdir(dir)) != NULL)
        if (lmq_ends_with(entry->d_name, ".safetensors")) {
            if (*n == 0 || strcmp(entry->d_name, SINGLE_NAME) == 0)
                snprintf(name, size, "%s", entry->d_name);
            ++*n;
        }
    if (dir == NULL || errno != 0)
        status = lmq_fail_errno(err, "cannot list the folder");
    if (dir != NULL)
        closedir(dir);
    return status;
}

/* Folders of published models often have a second copy beside the usual one
 * (fp16, consolidated): only the usual name is taken for the model then, and
 * said so. Several shards without their index could be a part of the model. */
static enum lmq_status
open_single(struct lmq_checkpoint *checkpoint, const char *folder,
            struct lmq_error *err)
{
    char name[256];
    uint32_t index;
    size_t n;
    enum lmq_status status = find_single(folder, name, sizeof(name), &n, err);

    if (status != LMQ_OK)
        return status;
    if (n == 0)
        return lmq_fail(err, LMQ_ERR_IO, 0,
                        "changed while it was read: the weights are gone");
    if (n > 1 && strcmp(name, SINGLE_NAME) != 0) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the folder has %zu .safetensors files, but no %s", n,
                 INDEX_NAME);
        lmq_hint(err, "fetch the index too, or name one of the files");
        return LMQ_ERR_FORMAT;
    }
    if (n > 1)
        lmq_checkpoint_note(checkpoint,
                            "of %zu .safetensors files only %s is read", n,
                            name);
    char *path = lmq_path_join(folder, name);
    if (path == NULL)
        return lmq_fail_nomem(err);
    status = add_shard(checkpoint, path, &index, err);
    free(path);
    return status;
}

/* ---- The format ---- */

/* By content: a JSON object behind a length that is no absurdity. Else by name,
 * and what it is in truth is said where the header is read. */
static bool
probe_safetensors(const struct lmq_probe *probe)
{
    char name[256];
    size_t n;

    if (probe->is_folder) {
        if (lmq_file_exists_in(probe->path, INDEX_NAME, probe->status,
                               probe->err))
            return true;
        if (*probe->status == LMQ_OK)
            *probe->status =
                find_single(probe->path, name, sizeof(name), &n, probe->err);
        return *probe->status == LMQ_OK && n > 0;
    }
    return (probe->n_head > LENGTH_BYTES && probe->head[LENGTH_BYTES] == '{' &&
            lmq_load_u64le(probe->head) <= (uint64_t)1 << 48) ||
           (lmq_ends_with(probe->path, ".safetensors") && probe->n_head > 0);
}

static enum lmq_status
open_safetensors(struct lmq_checkpoint *checkpoint,
                 const struct lmq_open_options *options, struct lmq_error *err)
{
    const char *path = checkpoint->path;
    char *folder = lmq_hf_folder_of(checkpoint);
    uint32_t index;
    enum lmq_status status = LMQ_OK;

    if (folder == NULL)
        return lmq_fail_nomem(err);
    if (!checkpoint->is_folder)
        status = add_shard(checkpoint, path, &index, err);
    else if (lmq_file_exists_in(folder, INDEX_NAME, &status, err))
        status = lmq_hf_open_index(checkpoint, folder, &shards, err);
    else if (status == LMQ_OK)
        status = open_single(checkpoint, folder, err);
    if (status == LMQ_OK)
        status = lmq_hf_check_adapter(checkpoint, folder, err);
    if (status == LMQ_OK)
        status = lmq_hf_read_companions(checkpoint, folder, options, err);
    free(folder);
    return status;
}

const struct lmq_format lmq_format_safetensors = {
    .name = "safetensors",
    .takes_config = true,
    .probe = probe_safetensors,
    .open = open_safetensors,
};
