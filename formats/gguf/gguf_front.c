/*
 * gguf_front.c - reads the front of a GGUF file and checks its tensors.
 *
 * Trusts nothing: the front is read in growing pieces, so that a count that
 * lies costs no more memory than the file has bytes; a tensor has exactly the
 * bytes that its shape and type need, and they stand one after the other.
 *
 * A tensor info is its name (length u64, bytes), the number of its dimensions
 * (u32), these (u64 each, the innermost first), its type (u32), and where it
 * begins in the data (u64). The data begin at the next multiple of
 * general.alignment, and so does each tensor in them.
 */
#include "config.h"

#include "formats/gguf/gguf_front.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "base/text/utf8.h"
#include "quantize/blocks.h"

/* Most fronts are some megabytes, nearly all of it the vocabulary: they are
 * read in one go. */
#define FIRST_PIECE ((uint64_t)1 << 20)
#define FRONT_MAX ((uint64_t)1 << 29)
#define MAX_GGUF_DIMS 4

/* ---- Tensor infos ---- */

struct info {
    const unsigned char *name;
    size_t name_size;
    uint32_t n_dims;
    uint64_t dims[MAX_GGUF_DIMS]; /* innermost first */
    uint32_t type;
    uint64_t offset;
};

/* The next one, at *at, which moves behind it. Sets *is_short if the bytes end
 * before it does. */
static enum lmq_status
read_info(const struct lmq_gguf_front *front, size_t *at, struct info *info,
          bool *is_short, struct lmq_error *err)
{
    const unsigned char *p = front->bytes + *at;
    size_t left = front->size - *at;

    *is_short = true;
    uint64_t name_size = left < 8 ? 0 : lmq_load_u64le(p);
    if (left >= 8 && (name_size == 0 || name_size > LMQ_MAX_TENSOR_NAME))
        return lmq_fail(err, LMQ_ERR_FORMAT, *at,
                        "GGUF: a tensor's name is %" PRIu64
                        " bytes, expected 1 to %d",
                        name_size, LMQ_MAX_TENSOR_NAME);
    if (left < 8 || left - 8 < name_size + 4)
        return LMQ_OK;
    info->name = p + 8;
    info->name_size = (size_t)name_size;
    p += 8 + name_size;
    left -= 8 + (size_t)name_size;
    info->n_dims = lmq_load_u32le(p);
    if (memchr(info->name, '\0', info->name_size) != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, *at,
                        "GGUF: a tensor's name at offset %zu has a zero byte",
                        *at);
    if (!lmq_is_utf8(info->name, info->name_size))
        return lmq_fail(err, LMQ_ERR_FORMAT, *at,
                        "GGUF: a tensor's name at offset %zu is not UTF-8",
                        *at);
    if (info->n_dims == 0 || info->n_dims > MAX_GGUF_DIMS)
        return lmq_fail(err, LMQ_ERR_FORMAT, *at,
                        "GGUF: tensor '%.*s' has %" PRIu32
                        " dimensions, expected 1 to %d",
                        (int)lmq_size_min(info->name_size, 100),
                        (const char *)info->name, info->n_dims,
                        MAX_GGUF_DIMS);
    if (left < 4 + 8 * (size_t)info->n_dims + 12)
        return LMQ_OK;
    for (uint32_t i = 0; i < info->n_dims; i++)
        info->dims[i] = lmq_load_u64le(p + 4 + 8 * i);
    p += 4 + 8 * info->n_dims;
    info->type = lmq_load_u32le(p);
    info->offset = lmq_load_u64le(p + 4);
    *at = (size_t)(p + 12 - front->bytes);
    *is_short = false;
    return LMQ_OK;
}

/* Finds the end of the infos. */
static enum lmq_status
walk_infos(struct lmq_gguf_front *front, bool *is_short, struct lmq_error *err)
{
    uint64_t n = front->meta->n_tensors, end;
    size_t at = front->meta->tensors_at;
    struct info info;

    *is_short = false;
    if (n > LMQ_MAX_TENSORS)
        return lmq_fail(err, LMQ_ERR_FORMAT, 8,
                        "GGUF: %" PRIu64 " tensors, at most %u are accepted",
                        n, LMQ_MAX_TENSORS);
    for (uint64_t i = 0; i < n && !*is_short; i++) {
        enum lmq_status status = read_info(front, &at, &info, is_short, err);
        if (status != LMQ_OK) {
            *is_short = false;
            return status;
        }
    }
    if (*is_short)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "GGUF: the file ends within its %" PRIu64
                        " tensor infos",
                        n);
    if (!lmq_u64_align(at, front->meta->alignment, &end))
        return lmq_fail(err, LMQ_ERR_FORMAT, at, "GGUF: is too large");
    front->data_at = end;
    return LMQ_OK;
}

/* ---- Reading ---- */

/* From the beginning each time: a cursor that could go on would have to say at
 * any point where it was, and doubling costs no more than one more walk in
 * all. */
static enum lmq_status
read_piece(struct lmq_input *input, size_t size, struct lmq_gguf_front *front,
           bool *is_short, struct lmq_error *err)
{
    lmq_gguf_front_free(front);
    *is_short = false;
    front->bytes = malloc(size + 1);
    if (front->bytes == NULL)
        return lmq_fail_nomem(err);
    front->size = size;
    enum lmq_status status = lmq_input_read(input, 0, front->bytes, size, err);
    if (status == LMQ_OK)
        status = lmq_gguf_meta_open(front->bytes, size, &front->meta,
                                    is_short, err);
    return status == LMQ_OK ? walk_infos(front, is_short, err) : status;
}

enum lmq_status
lmq_gguf_front_read(struct lmq_input *input, struct lmq_gguf_front *front,
                    struct lmq_error *err)
{
    uint64_t most = lmq_u64_min(lmq_input_size(input), FRONT_MAX);
    uint64_t size = lmq_u64_min(most, FIRST_PIECE);
    bool is_short;
    enum lmq_status status =
        read_piece(input, (size_t)size, front, &is_short, err);

    while (status != LMQ_OK && is_short && size < most) {
        size = lmq_u64_min(most, 2 * size);
        status = read_piece(input, (size_t)size, front, &is_short, err);
    }
    if (status != LMQ_OK && is_short && most == FRONT_MAX)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "GGUF: keys and values are more than %" PRIu64
                        " bytes",
                        FRONT_MAX);
    if (status != LMQ_OK && is_short)
        lmq_hint(err, "the file is truncated; fetch it again");
    return status;
}

void
lmq_gguf_front_free(struct lmq_gguf_front *front)
{
    lmq_gguf_meta_close(front->meta);
    free(front->bytes);
    *front = (struct lmq_gguf_front){0};
}

/* ---- Types ---- */

static const struct {
    uint32_t number;
    enum lmq_dtype dtype;
} numbers[] = {
    {0, LMQ_DTYPE_F32},  {1, LMQ_DTYPE_F16},  {24, LMQ_DTYPE_I8},
    {25, LMQ_DTYPE_I16}, {26, LMQ_DTYPE_I32}, {27, LMQ_DTYPE_I64},
    {28, LMQ_DTYPE_F64}, {30, LMQ_DTYPE_BF16},
};

/* Types of blocks that are not read: their names, for the message. */
static const struct {
    uint32_t number;
    const char *name;
} unread_types[] = {
    {4, "Q4_2"},        {5, "Q4_3"},        {9, "Q8_1"},
    {15, "Q8_K"},       {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},   {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"},
};

static enum lmq_status
set_type(uint32_t number, struct lmq_tensor *tensor, struct lmq_error *err)
{
    char name[16];

    tensor->blocks = lmq_block_type(number);
    if (tensor->blocks != NULL) {
        tensor->dtype = LMQ_DTYPE_F32;
        tensor->encoding = tensor->blocks->name;
        if (tensor->blocks->integers != NULL)
            tensor->quant = (struct lmq_quant){
                .bits = tensor->blocks->bits,
                .group_size = tensor->blocks->n,
                .scales = LMQ_SCALES_F16,
                .multiplier = 1,
            };
        return LMQ_OK;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].number == number) {
            tensor->dtype = numbers[i].dtype;
            return LMQ_OK;
        }
    snprintf(name, sizeof(name), "%" PRIu32, number);
    for (size_t i = 0; i < sizeof(unread_types) / sizeof(unread_types[0]); i++)
        if (unread_types[i].number == number)
            snprintf(name, sizeof(name), "%s", unread_types[i].name);
    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "tensor '%s' has the type %s, which is not supported",
             tensor->stored_name, name);
    lmq_hint(err, "take a file of floats, or of any block type that "
                  "llama.cpp writes today");
    return LMQ_ERR_UNSUPPORTED;
}

static enum lmq_status
set_shape(const struct info *info, struct lmq_tensor *tensor,
          struct lmq_error *err)
{
    uint64_t dims[MAX_GGUF_DIMS];

    for (uint32_t i = 0; i < info->n_dims; i++) {
        dims[i] = info->dims[info->n_dims - 1 - i];
        if (dims[i] == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' has a dimension of 0",
                            tensor->stored_name);
    }
    if (!lmq_tensor_set_dims(tensor, dims, info->n_dims))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s': the product of its dimensions is too "
                        "large",
                        tensor->stored_name);
    if (tensor->blocks == NULL) {
        tensor->size_bytes =
            tensor->n_elements * lmq_dtype_size(tensor->dtype);
        return LMQ_OK;
    }
    if (tensor->n_cols % tensor->blocks->n != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "tensor '%s': rows of %" PRIu64
                        " are no multiple of the %u elements of a block of %s",
                        tensor->stored_name, tensor->n_cols,
                        tensor->blocks->n, tensor->blocks->name);
    tensor->size_bytes =
        tensor->n_elements / tensor->blocks->n * tensor->blocks->size;
    return LMQ_OK;
}

/* ---- Where they stand ---- */

/* Offsets count from data_at; the padding to the next tensor belongs to the
 * one before, and may lack behind the last. */
static enum lmq_status
check_tiling(const struct lmq_gguf_front *front, struct lmq_tensor *tensors,
             size_t n, uint64_t file_size, struct lmq_error *err)
{
    uint64_t alignment = front->meta->alignment;
    uint64_t data_size =
        file_size < front->data_at ? 0 : file_size - front->data_at;
    uint64_t at = 0, end = 0;

    lmq_tensors_sort(tensors, n);
    for (size_t i = 0; i < n; i++) {
        const struct lmq_tensor *tensor = &tensors[i];
        if (tensor->offset != at)
            return lmq_fail(err, LMQ_ERR_FORMAT, front->data_at,
                            "tensor '%s' begins at byte %" PRIu64
                            " of the data, expected %" PRIu64 " (%s)",
                            tensor->stored_name, tensor->offset, at,
                            tensor->offset % alignment != 0 ? "not aligned"
                            : tensor->offset < at           ? "an overlap"
                                                            : "a gap");
        if (tensor->size_bytes > data_size ||
            at > data_size - tensor->size_bytes) {
            lmq_fail(err, LMQ_ERR_FORMAT, front->data_at,
                     "tensor '%s' ends behind byte %" PRIu64
                     " of the data, its last one",
                     tensor->stored_name, data_size);
            lmq_hint(err, "the file is truncated; fetch it again");
            return LMQ_ERR_FORMAT;
        }
        end = at + tensor->size_bytes;
        if (!lmq_u64_align(end, alignment, &at))
            return lmq_fail(err, LMQ_ERR_FORMAT, front->data_at,
                            "tensor '%s' is too large", tensor->stored_name);
    }
    if (n > 0 && data_size > at)
        return lmq_fail(err, LMQ_ERR_FORMAT, front->data_at + at,
                        "has %" PRIu64 " bytes behind its last tensor",
                        data_size - at);
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_front_add_tensors(const struct lmq_gguf_front *front,
                           struct lmq_checkpoint *checkpoint, uint32_t file,
                           struct lmq_error *err)
{
    uint64_t n = front->meta->n_tensors;
    size_t at = front->meta->tensors_at;
    size_t first = checkpoint->n_tensors;
    char name[LMQ_MAX_TENSOR_NAME + 1];

    for (uint64_t i = 0; i < n; i++) {
        struct lmq_tensor *tensor;
        struct info info = {0};
        bool is_short;
        enum lmq_status status = read_info(front, &at, &info, &is_short, err);
        if (status != LMQ_OK)
            return status;
        memcpy(name, info.name, info.name_size);
        name[info.name_size] = '\0';
        status = lmq_checkpoint_add_tensor(checkpoint, name, &tensor, err);
        if (status != LMQ_OK)
            return status;
        tensor->file = file;
        tensor->offset = info.offset;
        status = set_type(info.type, tensor, err);
        if (status == LMQ_OK)
            status = set_shape(&info, tensor, err);
        if (status != LMQ_OK)
            return status;
    }
    size_t n_added = checkpoint->n_tensors - first;
    enum lmq_status status = check_tiling(
        front, n_added == 0 ? NULL : checkpoint->tensors + first, n_added,
        lmq_input_size(checkpoint->files[file]), err);
    for (size_t i = first; i < checkpoint->n_tensors; i++)
        checkpoint->tensors[i].offset += front->data_at;
    return status;
}
