/*
 * torch_shards.c - joins consolidated.00.pth, consolidated.01.pth, ...
 *
 * Matrices whose outputs are divided among devices are joined row after row,
 * those whose inputs are divided side by side; norms are the same in every
 * file. Nothing is copied: a joined tensor knows where its parts are.
 *
 * Meta's files come from training on several devices, each of which saved its
 * own part. No file says how a tensor was divided; that is known from what
 * each matrix is for. Embeddings were divided by columns in Llama 1 and 2, by
 * rows in Llama 3: their shape tells which.
 */
#include "config.h"

#include "formats/torch/torch_shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* Bytes that are read at a time. */
#define CHUNK 8192

enum direction {
    UNKNOWN,
    SAME,    /* every file has the whole tensor */
    ROWS,
    COLUMNS,
    BY_SHAPE /* of its rows if these are of full width, else of its columns */
};

/* Of a tensor's role; the names are Meta's. */
static const enum direction directions[LMQ_ROLE_STORED_COUNT] = {
    [LMQ_ROLE_EMBEDDING] = BY_SHAPE,
    [LMQ_ROLE_HEAD] = ROWS,
    [LMQ_ROLE_OUTPUT_NORM] = SAME,
    [LMQ_ROLE_ATTN_NORM] = SAME,
    [LMQ_ROLE_ATTN_Q] = ROWS,
    [LMQ_ROLE_ATTN_K] = ROWS,
    [LMQ_ROLE_ATTN_V] = ROWS,
    [LMQ_ROLE_ATTN_OUT] = COLUMNS,
    [LMQ_ROLE_FFN_NORM] = SAME,
    [LMQ_ROLE_FFN_GATE] = ROWS,
    [LMQ_ROLE_FFN_UP] = ROWS,
    [LMQ_ROLE_FFN_DOWN] = COLUMNS,
};

struct part {
    uint32_t file;
    uint64_t offset;
};

/* A tensor of parts; lmq_tensor.number is its index. */
struct join {
    bool is_by_columns;
    uint64_t rows, cols; /* of each part */
    size_t first_part;
};

struct joined {
    size_t n_files;
    struct join *joins;
    size_t n_joins;
    struct part *parts; /* n_files for each join */
};

/* ---- Joining ---- */

static int
compare_tensors(const void *a, const void *b)
{
    const struct lmq_tensor *x = a, *y = b;
    int order = strcmp(x->stored_name, y->stored_name);

    return order != 0 ? order : (x->file > y->file) - (x->file < y->file);
}

/* The width of the model: norms have it in every file. */
static uint64_t
find_width(const struct lmq_checkpoint *checkpoint)
{
    struct lmq_place place;

    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (lmq_name_parse(checkpoint->tensors[i].stored_name, &place) &&
            place.role == LMQ_ROLE_OUTPUT_NORM)
            return checkpoint->tensors[i].n_elements;
    return 0;
}

/* A tensor that is unknown is not guessed: joined the wrong way it would have
 * the right shape all the same. */
static enum direction
direction_of(const struct lmq_tensor *tensor, uint64_t width)
{
    struct lmq_place place;
    enum direction found = UNKNOWN;

    if (lmq_name_parse(tensor->stored_name, &place))
        found = directions[place.role];
    else if (lmq_name_why_ignored(tensor->stored_name) != NULL)
        found = SAME;
    if (found == BY_SHAPE)
        found = tensor->n_cols == width ? ROWS : COLUMNS;
    return found;
}

/* All parts have the same size. */
static bool
is_alike(const struct lmq_tensor *a, const struct lmq_tensor *b)
{
    return strcmp(a->stored_name, b->stored_name) == 0 &&
           a->dtype == b->dtype && a->n_dims == b->n_dims &&
           memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

/* The same tensor of each file, one after the other. */
static enum lmq_status
check_parts(const struct lmq_tensor *parts, size_t n_left, size_t n_files,
            struct lmq_error *err)
{
    for (size_t i = 0; i < n_files; i++)
        if (i >= n_left || !is_alike(&parts[0], &parts[i]) ||
            parts[i].file != i) {
            lmq_fail(err, LMQ_ERR_FORMAT, 0,
                     "tensor '%s' is not in all of the %zu files in the same "
                     "shape and type",
                     parts[0].stored_name, n_files);
            lmq_hint(err, "all files consolidated.*.pth must belong to the "
                          "same model");
            return LMQ_ERR_FORMAT;
        }
    return LMQ_OK;
}

/* `number` leads from the tensor to its join, since tensors move while the
 * list is sorted. */
static enum lmq_status
join_parts(struct joined *joined, const struct lmq_tensor *parts,
           enum direction direction, struct lmq_tensor *whole,
           struct lmq_error *err)
{
    struct join *join = &joined->joins[joined->n_joins];
    uint64_t dims[2];

    if (parts->n_dims != 2)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "tensor '%s' has %u dimensions, but only matrices can "
                        "be joined",
                        parts->stored_name, parts->n_dims);
    if (!lmq_dtype_is_float(parts->dtype))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "tensor '%s' is of type %s, but only floats can be "
                        "joined",
                        parts->stored_name, lmq_dtype_name(parts->dtype));
    *join = (struct join){direction == COLUMNS, parts->dims[0],
                          parts->dims[1], joined->n_joins * joined->n_files};
    for (size_t i = 0; i < joined->n_files; i++) {
        if (parts[i].view.pitch != 0) {
            lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                     "tensor '%s' is a part of a matrix and transposed",
                     parts->stored_name);
            lmq_hint(err, "save it again with .contiguous()");
            return LMQ_ERR_UNSUPPORTED;
        }
        joined->parts[join->first_part + i] =
            (struct part){parts[i].file, parts[i].offset};
    }
    dims[0] = join->rows;
    dims[1] = join->cols;
    if (!lmq_u64_mul(dims[join->is_by_columns], joined->n_files,
                     &dims[join->is_by_columns]) ||
        !lmq_tensor_set_dims(whole, dims, 2))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "tensor '%s' is too large",
                        parts->stored_name);
    whole->encoding = lmq_dtype_name(whole->dtype);
    whole->bits_per_element = 8.0 * (double)lmq_dtype_size(whole->dtype);
    whole->size_bytes = whole->n_elements * lmq_dtype_size(whole->dtype);
    whole->number = (uint32_t)joined->n_joins++;
    return LMQ_OK;
}

/* Sorted by names and files, so that the parts of a tensor stand one after the
 * other. */
static enum lmq_status
join_all(struct lmq_checkpoint *checkpoint, struct joined *joined,
         struct lmq_error *err)
{
    uint64_t width = find_width(checkpoint);
    size_t n = joined->n_files;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < checkpoint->n_tensors; i += n) {
        struct lmq_tensor *parts = &checkpoint->tensors[i];
        enum direction direction = direction_of(parts, width);
        struct lmq_tensor whole = *parts;
        status = check_parts(parts, checkpoint->n_tensors - i, n, err);
        if (status == LMQ_OK && direction == UNKNOWN)
            status = lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                              "it is not known how tensor '%s' is divided "
                              "among the %zu files",
                              parts->stored_name, n);
        if (status == LMQ_OK && direction != SAME)
            status = join_parts(joined, parts, direction, &whole, err);
        if (status != LMQ_OK)
            return status;
        *parts = whole;
    }
    return LMQ_OK;
}

/* Leaves the first of each n tensors. */
static void
drop_others(struct lmq_checkpoint *checkpoint, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        if (i % n == 0)
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
        else
            lmq_tensor_free(&checkpoint->tensors[i]);
    }
    checkpoint->n_tensors = kept;
}

enum lmq_status
lmq_torch_join(struct lmq_checkpoint *checkpoint, struct lmq_error *err)
{
    struct joined *joined = calloc(1, sizeof(*joined));

    if (joined == NULL)
        return lmq_fail_nomem(err);
    checkpoint->state = joined;
    joined->n_files = checkpoint->n_files;
    joined->joins = calloc(checkpoint->n_tensors / joined->n_files + 1,
                           sizeof(*joined->joins));
    joined->parts = calloc(checkpoint->n_tensors + joined->n_files,
                           sizeof(*joined->parts));
    if (joined->joins == NULL || joined->parts == NULL)
        return lmq_fail_nomem(err);
    qsort(checkpoint->tensors, checkpoint->n_tensors,
          sizeof(*checkpoint->tensors), compare_tensors);
    enum lmq_status status = join_all(checkpoint, joined, err);
    if (status == LMQ_OK)
        drop_others(checkpoint, joined->n_files);
    return status;
}

void
lmq_torch_free_joined(struct lmq_checkpoint *checkpoint)
{
    struct joined *joined = checkpoint->state;

    if (joined == NULL)
        return;
    free(joined->joins);
    free(joined->parts);
    free(joined);
    checkpoint->state = NULL;
}

/* ---- Reading ---- */

/* Elements of one part that follow each other. */
static enum lmq_status
read_run(struct lmq_checkpoint *checkpoint, const struct part *part,
         enum lmq_dtype dtype, uint64_t first, size_t n, float *values,
         struct lmq_error *err)
{
    unsigned char bytes[CHUNK];
    size_t size = lmq_dtype_size(dtype);
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        size_t step = lmq_size_min(n, CHUNK / size);
        status = lmq_input_read(checkpoint->files[part->file],
                                part->offset + first * size, bytes,
                                step * size, err);
        if (status == LMQ_OK)
            lmq_dtype_to_f32(dtype, bytes, values, step);
        values += step;
        first += step;
        n -= step;
    }
    return status;
}

/* By rows a part is one run of the whole; by columns each row goes through all
 * parts. */
enum lmq_status
lmq_torch_read_joined(struct lmq_checkpoint *checkpoint,
                      const struct lmq_tensor *tensor, uint64_t first,
                      size_t n, float *values, struct lmq_error *err)
{
    const struct joined *joined = checkpoint->state;
    const struct join *join = &joined->joins[tensor->number];
    const struct part *parts = &joined->parts[join->first_part];
    uint64_t in_part = join->rows * join->cols;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t index = first / in_part, at = first % in_part;
        uint64_t run = in_part - at;
        if (join->is_by_columns) {
            uint64_t row = first / (join->cols * joined->n_files);
            uint64_t column = first % (join->cols * joined->n_files);
            index = column / join->cols;
            at = row * join->cols + column % join->cols;
            run = join->cols - column % join->cols;
        }
        size_t step = (size_t)lmq_u64_min(n, run);
        status = read_run(checkpoint, &parts[index], tensor->dtype, at, step,
                          values, err);
        values += step;
        first += step;
        n -= step;
    }
    return status;
}
