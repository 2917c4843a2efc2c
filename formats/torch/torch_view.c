/*
 * torch_view.c - a tensor of torch.save: a view of the storage NAME/data/KEY,
 * whose bytes stand in the file as they are.
 *
 * Views must be rows after rows, or a matrix that is transposed; storages
 * must be exactly as large as they are said to be.
 *
 * In the pickle a tensor is a call of _rebuild_tensor_v2(storage, offset,
 * sizes, strides, ...), the storage a persistent id ('storage', type, key,
 * location, number of elements). Newer ones (v3) have untyped storages and say
 * the type beside them. Parameters and subclasses of Tensor wrap that once
 * more.
 */
#include "config.h"

#include "formats/torch/torch_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

#define KEY_MAX 64
/* A parameter of a parameter of ... */
#define WRAPPINGS_MAX 4

/* NULL too if the name is longer than any real one. */
const struct lmq_zip_member *
lmq_torch_find_member(const struct lmq_torch_archive *archive,
                      const char *folder, const char *name, size_t n_name)
{
    char path[1024];

    int n = snprintf(path, sizeof(path), "%.*s%s%.*s", (int)archive->n_prefix,
                     archive->prefix, folder, (int)n_name, name);
    return n < 0 || (size_t)n >= sizeof(path)
               ? NULL
               : lmq_zip_find(archive->zip, path);
}

/* Offsets of a pickle say little to anybody: the name is what one looks for.
 */
static enum lmq_status
fail_tensor(const struct lmq_tensor *tensor, const char *what,
            struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0, "tensor '%s' %s",
                    tensor->stored_name, what);
}

bool
lmq_torch_is_tensor(const struct lmq_pickle_value *value)
{
    const struct lmq_pickle_global *global = lmq_pickle_global(value);

    return lmq_pickle_is(value, LMQ_PICKLE_OBJECT) &&
           (global->role == LMQ_PICKLE_IS_TENSOR ||
            global->role == LMQ_PICKLE_IS_TENSOR_V3 ||
            global->role == LMQ_PICKLE_IS_PARAMETER ||
            global->role == LMQ_PICKLE_IS_FROM_TYPE);
}

/* What makes the tensor itself: looks through parameters and the like. NULL
 * if there is no end to them. */
static const struct lmq_pickle_value *
unwrap(const struct lmq_pickle *pickle, const struct lmq_pickle_value *value,
       enum lmq_pickle_role *role)
{
    for (int i = 0; i < WRAPPINGS_MAX && lmq_torch_is_tensor(value); i++) {
        const struct lmq_pickle_value *arguments =
            lmq_pickle_arguments(pickle, value);
        *role = lmq_pickle_global(value)->role;
        if (*role == LMQ_PICKLE_IS_FROM_TYPE) {
            const struct lmq_pickle_global *global =
                lmq_pickle_global(lmq_pickle_item(pickle, arguments, 0));
            *role = global == NULL ? LMQ_PICKLE_IS_OTHER : global->role;
            arguments = lmq_pickle_item(pickle, arguments, 2);
        }
        if (*role == LMQ_PICKLE_IS_TENSOR || *role == LMQ_PICKLE_IS_TENSOR_V3)
            return arguments;
        if (*role != LMQ_PICKLE_IS_PARAMETER)
            return NULL;
        value = lmq_pickle_item(pickle, arguments, 0);
    }
    return NULL;
}

/* Python has no limit for integers; sizes do. */
static bool
get_u64(const struct lmq_pickle_value *value, uint64_t *number)
{
    if (!lmq_pickle_is(value, LMQ_PICKLE_INT) || value->is.integer < 0)
        return false;
    *number = (uint64_t)value->is.integer;
    return true;
}

/* A tuple of numbers, or torch.Size of one. */
static bool
get_numbers(const struct lmq_pickle *pickle,
            const struct lmq_pickle_value *value,
            uint64_t numbers[LMQ_MAX_DIMS], size_t *n)
{
    const struct lmq_pickle_global *global = lmq_pickle_global(value);

    if (global != NULL && global->role == LMQ_PICKLE_IS_SIZE)
        value =
            lmq_pickle_item(pickle, lmq_pickle_arguments(pickle, value), 0);
    if (!lmq_pickle_is(value, LMQ_PICKLE_TUPLE) ||
        value->n_items > LMQ_MAX_DIMS)
        return false;
    *n = value->n_items;
    uint32_t cell = lmq_pickle_first(value);
    for (size_t i = 0; i < *n; i++)
        if (!get_u64(lmq_pickle_next(pickle, &cell), &numbers[i]))
            return false;
    return true;
}

/* Strides of dimensions of 1 mean nothing. */
static bool
is_row_major(const uint64_t *dims, const uint64_t *strides, size_t n)
{
    uint64_t wanted = 1; /* at most the number of elements */

    for (size_t i = n; i-- > 0; wanted *= dims[i])
        if (dims[i] != 1 && strides[i] != wanted)
            return false;
    return true;
}

/* Sets the shape, the view, and how many elements of the storage it spans. */
static enum lmq_status
parse_shape(const struct lmq_pickle *pickle,
            const struct lmq_pickle_value *arguments,
            struct lmq_tensor *tensor, uint64_t *extent,
            struct lmq_error *err)
{
    uint64_t dims[LMQ_MAX_DIMS], strides[LMQ_MAX_DIMS];
    size_t n, n_strides;

    if (!get_numbers(pickle, lmq_pickle_item(pickle, arguments, 2), dims,
                     &n) ||
        !get_numbers(pickle, lmq_pickle_item(pickle, arguments, 3), strides,
                     &n_strides) ||
        n != n_strides)
        return fail_tensor(tensor, "has no proper sizes and strides", err);
    if (!lmq_tensor_set_dims(tensor, dims, n))
        return fail_tensor(tensor, "has dimensions whose product is too large",
                           err);
    *extent = tensor->n_elements;
    if (tensor->n_elements == 0 || is_row_major(dims, strides, n))
        return LMQ_OK;
    /* Whole numbers are copied as they stand. */
    if (n == 2 && lmq_dtype_is_float(tensor->dtype) && strides[0] == 1 &&
        strides[1] >= dims[0] &&
        lmq_u64_mul(dims[1] - 1, strides[1], extent) &&
        lmq_u64_add(*extent, dims[0], extent)) {
        tensor->view.pitch = strides[1];
        return LMQ_OK;
    }
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "tensor '%s' is a view whose rows do not follow each other",
             tensor->stored_name);
    lmq_hint(err, "save it again with .contiguous()");
    return LMQ_ERR_UNSUPPORTED;
}

/* The type of the elements: the storage's, or the one that stands beside it. */
static enum lmq_status
parse_type(const struct lmq_pickle *pickle,
           const struct lmq_pickle_value *arguments, bool is_v3,
           const struct lmq_pickle_value *storage, struct lmq_tensor *tensor,
           uint64_t *storage_unit, struct lmq_error *err)
{
    const struct lmq_pickle_global *of =
        lmq_pickle_global(lmq_pickle_item(pickle, storage, 1));
    const struct lmq_pickle_global *type =
        lmq_pickle_global(lmq_pickle_item(pickle, arguments, 6));

    if (is_v3 && of != NULL && of->role == LMQ_PICKLE_IS_BYTE_STORAGE &&
        type != NULL && type->role == LMQ_PICKLE_IS_DTYPE) {
        tensor->dtype = type->dtype;
        *storage_unit = 1;
        return LMQ_OK;
    }
    if (!is_v3 && of != NULL && of->role == LMQ_PICKLE_IS_STORAGE) {
        tensor->dtype = of->dtype;
        *storage_unit = lmq_dtype_size(of->dtype);
        return LMQ_OK;
    }
    return fail_tensor(tensor, "has no proper type", err);
}

/* ('storage', type, key, location, number of elements): where its bytes are,
 * and how many. */
static enum lmq_status
find_storage(const struct lmq_torch_archive *archive,
             const struct lmq_pickle_value *storage, uint64_t unit,
             const struct lmq_tensor *tensor,
             const struct lmq_zip_member **member, struct lmq_error *err)
{
    const struct lmq_pickle *pickle = archive->pickle;
    const struct lmq_pickle_value *key = lmq_pickle_item(pickle, storage, 2);
    uint64_t n, size;

    if (!lmq_pickle_says(lmq_pickle_item(pickle, storage, 0), "storage") ||
        !lmq_pickle_is(key, LMQ_PICKLE_TEXT) || key->is.text.n > KEY_MAX ||
        !get_u64(lmq_pickle_item(pickle, storage, 4), &n) ||
        !lmq_u64_mul(n, unit, &size))
        return fail_tensor(tensor, "has no proper storage", err);
    const char *text = (const char *)key->is.text.at;
    int n_text = (int)key->is.text.n;
    *member = lmq_torch_find_member(archive, "data/", text, key->is.text.n);
    if (*member == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s' has the storage '%.*s', which is not in "
                        "the archive",
                        tensor->stored_name, n_text, text);
    if ((*member)->is_deflated) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, (*member)->offset,
                 "member '%s' of the zip archive is compressed, which "
                 "torch.save never does",
                 (*member)->name);
        lmq_hint(err, "unpack the archive and pack it with 'zip -0'");
        return LMQ_ERR_UNSUPPORTED;
    }
    if ((*member)->size != size)
        return lmq_fail(err, LMQ_ERR_FORMAT, (*member)->offset,
                        "tensor '%s': its storage '%s' is %" PRIu64 " bytes, "
                        "but is said to be %" PRIu64,
                        tensor->stored_name, (*member)->name, (*member)->size,
                        size);
    return LMQ_OK;
}

/* Tells of conjugated and negated views, which are not what is stored. */
static bool
has_metadata(const struct lmq_pickle *pickle,
             const struct lmq_pickle_value *arguments, bool is_v3)
{
    const struct lmq_pickle_value *metadata =
        lmq_pickle_item(pickle, arguments, is_v3 ? 7 : 6);

    return metadata != NULL && metadata->kind != LMQ_PICKLE_NONE &&
           (metadata->kind != LMQ_PICKLE_DICT || metadata->n_items != 0);
}

enum lmq_status
lmq_torch_parse_tensor(const struct lmq_torch_archive *archive,
             const struct lmq_pickle_value *value, struct lmq_tensor *tensor,
             struct lmq_error *err)
{
    const struct lmq_pickle *pickle = archive->pickle;
    const struct lmq_zip_member *member = NULL;
    enum lmq_pickle_role role = LMQ_PICKLE_IS_OTHER;
    const struct lmq_pickle_value *arguments = unwrap(pickle, value, &role);
    const struct lmq_pickle_value *storage = lmq_pickle_item(
        pickle, arguments, 0);
    uint64_t first, extent = 0, unit = 1, end;
    bool is_v3 = role == LMQ_PICKLE_IS_TENSOR_V3;

    if (!lmq_pickle_is(storage, LMQ_PICKLE_PERSISTENT) ||
        !get_u64(lmq_pickle_item(pickle, arguments, 1), &first))
        return fail_tensor(tensor, "has no proper storage", err);
    if (has_metadata(pickle, arguments, is_v3))
        return fail_tensor(tensor, "is a view with metadata, which is not "
                                   "supported",
                           err);
    storage = lmq_pickle_arguments(pickle, storage);
    enum lmq_status status =
        parse_type(pickle, arguments, is_v3, storage, tensor, &unit, err);
    if (status == LMQ_OK)
        status = parse_shape(pickle, arguments, tensor, &extent, err);
    if (status == LMQ_OK)
        status = find_storage(archive, storage, unit, tensor, &member, err);
    if (status != LMQ_OK)
        return status;
    uint64_t size = lmq_dtype_size(tensor->dtype);
    if (!lmq_u64_add(first, extent, &end) || end > member->size / size)
        return lmq_fail(err, LMQ_ERR_FORMAT, member->offset,
                        "tensor '%s' needs %" PRIu64 " elements from number "
                        "%" PRIu64 " on, its storage has %" PRIu64,
                        tensor->stored_name, extent, first,
                        member->size / size);
    tensor->file = archive->file;
    tensor->offset = member->offset + first * size;
    tensor->size_bytes = tensor->n_elements * size;
    return LMQ_OK;
}
