/*
 * checkpoint.c - the parts of a checkpoint: files, tensors, the tokenizer,
 * notes; how readers add them and how everybody finds them.
 */
#include "config.h"

#include "formats/checkpoint/checkpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/size.h"

/* A tokenizer file larger than this is something else. */
#define BLOB_MAX ((size_t)256 << 20)

/* ---- For readers ---- */

/* A small file beside the weights. What was read is known as such: no output
 * may replace it, and at the end it must still be what it was. */
enum lmq_status
lmq_checkpoint_load(struct lmq_checkpoint *checkpoint, const char *path,
                    size_t most, unsigned char **bytes, size_t *n,
                    struct lmq_error *err)
{
    enum lmq_status status = lmq_originals_add(&checkpoint->originals, path,
                                               true, err);

    return status == LMQ_OK ? lmq_file_load(path, most, bytes, n, err)
                            : status;
}

/* Its stamp is taken before it is opened, so that a change in between is seen.
 */
enum lmq_status
lmq_checkpoint_add_file(struct lmq_checkpoint *checkpoint, const char *path,
                        uint32_t *index, struct lmq_error *err)
{
    if (lmq_mem_grow(&checkpoint->files, &checkpoint->files_capacity,
                     checkpoint->n_files + 1,
                     sizeof(*checkpoint->files)) != 0)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_originals_add(&checkpoint->originals, path,
                                               true, err);
    if (status == LMQ_OK)
        status = lmq_input_open(
            path, &checkpoint->files[checkpoint->n_files], err);
    if (status == LMQ_OK)
        *index = (uint32_t)checkpoint->n_files++;
    return status;
}

/* One by one, so that memory grows with what is in the file and not with what
 * it claims. *tensor is good until the next one is added. */
enum lmq_status
lmq_checkpoint_add_tensor(struct lmq_checkpoint *checkpoint,
                          const char *stored_name, struct lmq_tensor **tensor,
                          struct lmq_error *err)
{
    if (checkpoint->n_tensors >= LMQ_MAX_TENSORS)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "has more than %u tensors",
                        LMQ_MAX_TENSORS);
    if (stored_name[0] == '\0' || strlen(stored_name) > LMQ_MAX_TENSOR_NAME)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a tensor's name is %zu bytes, expected 1 to %d",
                        strlen(stored_name), LMQ_MAX_TENSOR_NAME);
    if (lmq_mem_grow(&checkpoint->tensors, &checkpoint->tensors_capacity,
                     checkpoint->n_tensors + 1,
                     sizeof(*checkpoint->tensors)) != 0)
        return lmq_fail_nomem(err);
    struct lmq_tensor *new = &checkpoint->tensors[checkpoint->n_tensors];
    *new = (struct lmq_tensor){0};
    new->stored_name = strdup(stored_name);
    if (new->stored_name == NULL)
        return lmq_fail_nomem(err);
    checkpoint->n_tensors++;
    *tensor = new;
    return LMQ_OK;
}

/* Any number of dimensions is rows and columns here: the last one is the
 * columns, all others together are the rows. A vector is one row, a scalar one
 * of one. */
bool
lmq_tensor_set_dims(struct lmq_tensor *tensor, const uint64_t *dims,
                    size_t n_dims)
{
    if (n_dims > LMQ_MAX_DIMS)
        return false;
    tensor->n_dims = (uint32_t)n_dims;
    tensor->n_rows = tensor->n_cols = 1;
    for (size_t i = 0; i < n_dims; i++) {
        tensor->dims[i] = dims[i];
        if (i + 1 == n_dims)
            tensor->n_cols = dims[i];
        else if (!lmq_u64_mul(tensor->n_rows, dims[i], &tensor->n_rows))
            return false;
    }
    for (size_t i = n_dims; i < LMQ_MAX_DIMS; i++)
        tensor->dims[i] = 0;
    /* Sizes in bytes must stay within off_t, whatever the type. */
    return lmq_u64_mul(tensor->n_rows, tensor->n_cols, &tensor->n_elements) &&
           tensor->n_elements <= INT64_MAX / 8;
}

/* Takes over `bytes`, in any case. */
enum lmq_status
lmq_checkpoint_add_blob(struct lmq_checkpoint *checkpoint, const char *name,
                        unsigned char *bytes, size_t size,
                        struct lmq_error *err)
{
    char *copy = strdup(name);

    if (copy == NULL ||
        lmq_mem_grow(&checkpoint->blobs, &checkpoint->blobs_capacity,
                     checkpoint->n_blobs + 1,
                     sizeof(*checkpoint->blobs)) != 0) {
        free(copy);
        free(bytes);
        return lmq_fail_nomem(err);
    }
    checkpoint->blobs[checkpoint->n_blobs++] =
        (struct lmq_blob){copy, bytes, size};
    return LMQ_OK;
}

enum lmq_status
lmq_checkpoint_add_blob_path(struct lmq_checkpoint *checkpoint,
                             const char *path, const char *name,
                             struct lmq_error *err)
{
    unsigned char *bytes;
    size_t size;
    enum lmq_status status = lmq_checkpoint_load(checkpoint, path, BLOB_MAX,
                                                 &bytes, &size, err);

    if (status == LMQ_OK)
        status = lmq_checkpoint_add_blob(checkpoint, name, bytes, size, err);
    return status;
}

/* A file that may be there or not. */
enum lmq_status
lmq_checkpoint_add_blob_file(struct lmq_checkpoint *checkpoint,
                             const char *folder, const char *name,
                             struct lmq_error *err)
{
    char *path = lmq_path_join(folder, name);
    enum lmq_status status = LMQ_OK;

    if (path == NULL)
        return lmq_fail_nomem(err);
    if (lmq_file_exists(path, &status, err))
        status = lmq_checkpoint_add_blob_path(checkpoint, path, name, err);
    free(path);
    return status;
}

void
lmq_checkpoint_note(struct lmq_checkpoint *checkpoint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    lmq_notes_add_list(&checkpoint->notes, format, args);
    va_end(args);
}

/* Empty tensors come before what begins at the same place. */
static int
compare_offsets(const void *a, const void *b)
{
    const struct lmq_tensor *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

void
lmq_tensors_sort(struct lmq_tensor *tensors, size_t n)
{
    if (n > 0)
        qsort(tensors, n, sizeof(*tensors), compare_offsets);
}

void
lmq_tensor_free(struct lmq_tensor *tensor)
{
    free(tensor->name);
    free(tensor->stored_name);
    free(tensor->alias_of);
}

/* ---- The tokenizer that is given ---- */

static void
drop_blobs(struct lmq_checkpoint *checkpoint)
{
    while (checkpoint->n_blobs > 0) {
        struct lmq_blob *blob = &checkpoint->blobs[--checkpoint->n_blobs];
        free((void *)(uintptr_t)blob->name);
        free((void *)(uintptr_t)blob->bytes);
    }
    free(checkpoint->blobs);
    checkpoint->blobs = NULL;
    checkpoint->blobs_capacity = 0;
}

enum lmq_status
lmq_checkpoint_drop_tokenizer(struct lmq_checkpoint *checkpoint,
                              const char *path, struct lmq_error *err)
{
    drop_blobs(checkpoint);
    checkpoint->tokenizer_path = strdup(path);
    return checkpoint->tokenizer_path != NULL ? LMQ_OK : lmq_fail_nomem(err);
}

void
lmq_checkpoint_move_tokenizer(struct lmq_checkpoint *checkpoint,
                              struct lmq_checkpoint *from)
{
    drop_blobs(checkpoint);
    checkpoint->blobs = from->blobs;
    checkpoint->n_blobs = from->n_blobs;
    checkpoint->blobs_capacity = from->blobs_capacity;
    from->blobs = NULL;
    from->n_blobs = from->blobs_capacity = 0;
}

const char *
lmq_checkpoint_tokenizer_path(const struct lmq_checkpoint *checkpoint)
{
    return checkpoint->tokenizer_path != NULL ? checkpoint->tokenizer_path
                                              : checkpoint->path;
}

/* ---- Closing ---- */

/* Also of one that is half open: readers add what they have before they check
 * it. */
void
lmq_checkpoint_close(struct lmq_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    if (checkpoint->format != NULL && checkpoint->format->close != NULL)
        checkpoint->format->close(checkpoint);
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        lmq_tensor_free(&checkpoint->tensors[i]);
    for (size_t i = 0; i < checkpoint->n_files; i++)
        lmq_input_close(checkpoint->files[i]);
    drop_blobs(checkpoint);
    for (size_t i = 0; i < checkpoint->n_aparts; i++) {
        for (size_t j = 1; j < checkpoint->aparts[i]->joined.n; j++)
            lmq_tensor_free(&checkpoint->aparts[i]->parts[j]);
        free(checkpoint->aparts[i]);
    }
    free(checkpoint->aparts);
    for (size_t i = 0; i < checkpoint->n_packings; i++)
        free(checkpoint->packings[i]);
    free(checkpoint->packings);
    free(checkpoint->tensors);
    free(checkpoint->files);
    json_decref(checkpoint->about);
    lmq_notes_free(&checkpoint->notes);
    lmq_originals_free(&checkpoint->originals);
    free(checkpoint->tokenizer_path);
    free(checkpoint->path);
    free(checkpoint);
}

/* ---- What not every format has ---- */

enum lmq_status
lmq_tensor_require(const struct lmq_checkpoint *checkpoint,
                   const struct lmq_tensor *tensor, struct lmq_error *err)
{
    if (tensor->unknown == NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, tensor->offset,
             "tensor '%s' has %s, which this version does not know",
             tensor->name, tensor->unknown);
    lmq_hint(err, "a newer lmquant reads it");
    lmq_error_in(err, checkpoint->path);
    return LMQ_ERR_UNSUPPORTED;
}

enum lmq_status
lmq_tensor_verify(const struct lmq_checkpoint *checkpoint,
                  const struct lmq_tensor *tensor, struct lmq_error *err)
{
    return checkpoint->format->verify_tensor == NULL
               ? LMQ_OK
               : checkpoint->format->verify_tensor(checkpoint, tensor, err);
}

json_t *
lmq_checkpoint_statements(const struct lmq_checkpoint *checkpoint)
{
    json_t *json = json_object();

    if (checkpoint->format->describe != NULL)
        checkpoint->format->describe(checkpoint, &json);
    return json;
}

json_t *
lmq_tensor_statements(const struct lmq_checkpoint *checkpoint,
                      const struct lmq_tensor *tensor)
{
    json_t *json = json_object();

    if (checkpoint->format->describe_tensor != NULL)
        checkpoint->format->describe_tensor(checkpoint, tensor, &json);
    return json;
}

/* ---- Asking ---- */

/* Tensors stand in the order of their places, those without a role in that of
 * their names. `name` may be NULL: any. */
static const struct lmq_tensor *
search(const struct lmq_checkpoint *checkpoint, const struct lmq_place *place,
       const char *name)
{
    size_t low = 0, high = checkpoint->n_tensors;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct lmq_tensor *tensor = &checkpoint->tensors[middle];
        int order = lmq_place_compare(place, &tensor->place);
        if (order == 0 && name != NULL)
            order = strcmp(name, tensor->name);
        if (order == 0)
            return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct lmq_tensor *
lmq_checkpoint_find_place(const struct lmq_checkpoint *checkpoint,
                          const struct lmq_place *place)
{
    return search(checkpoint, place, NULL);
}

const struct lmq_tensor *
lmq_checkpoint_find(const struct lmq_checkpoint *checkpoint, enum lmq_role role,
                    enum lmq_part part, int32_t layer)
{
    struct lmq_place wanted = {role, part, layer, -1};

    return lmq_checkpoint_find_place(checkpoint, &wanted);
}

const struct lmq_tensor *
lmq_checkpoint_find_name(const struct lmq_checkpoint *checkpoint,
                         const char *name)
{
    struct lmq_place place;

    lmq_name_parse(name, &place);
    if (place.role >= LMQ_ROLE_COUNT)
        place = (struct lmq_place){LMQ_ROLE_OTHER, LMQ_PART_WEIGHT, -1, -1};
    const struct lmq_tensor *found = search(checkpoint, &place, name);
    /* Names in the file, and of roles that are not known, one by one. */
    for (size_t i = 0; i < checkpoint->n_tensors && found == NULL; i++)
        if (strcmp(checkpoint->tensors[i].stored_name, name) == 0 ||
            strcmp(checkpoint->tensors[i].name, name) == 0)
            found = &checkpoint->tensors[i];
    return found;
}

/* The tensor whose elements it has. */
static const char *
root_of(const struct lmq_tensor *tensor)
{
    return tensor->alias_of != NULL ? tensor->alias_of : tensor->name;
}

bool
lmq_checkpoint_is_tied(const struct lmq_checkpoint *checkpoint)
{
    const struct lmq_tensor *head = NULL, *embedding = NULL;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct lmq_tensor *tensor = &checkpoint->tensors[i];
        if (lmq_tensor_is_head(tensor))
            head = tensor;
        else if (tensor->place.role == LMQ_ROLE_EMBEDDING &&
                 tensor->place.part == LMQ_PART_WEIGHT)
            embedding = tensor;
    }
    if (head == NULL)
        return true;
    return embedding != NULL &&
           (head->alias_of != NULL || embedding->alias_of != NULL) &&
           strcmp(root_of(head), root_of(embedding)) == 0;
}
