/*
 * matrix.c - puts a tensor into one of the two forms that kernels take: tiles
 * of int8, or rows of floats. In place, if that is how it lies in the file.
 */
#include "config.h"

#include "runtime/model.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/lmq/lmq.h"

void
lmq_matrix_row(const struct lmq_matrix *matrix, size_t row, float *out)
{
    const struct lmq_rows *rows = &matrix->rows;

    if (matrix->is_int8)
        lmq_tiles_row(&matrix->tiles, row, out);
    else
        lmq_kernels()->row_widen((const char *)rows->data + row * rows->stride,
                                 rows->type, rows->n_cols, out);
}

static void
set_rows(struct lmq_matrix *matrix, const void *data, enum lmq_row_type type)
{
    matrix->rows = (struct lmq_rows){
        .data = data,
        .type = type,
        .n_cols = matrix->n_cols,
        .stride = lmq_row_bytes(type, matrix->n_cols),
    };
}

/* A copy as float32, for types and arrangements without a kernel. */
static enum lmq_status
copy_rows(struct lmq_model *model, struct lmq_matrix *matrix,
          struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    size_t n = (size_t)matrix->tensor->n_elements;

    float *copy = lmq_mem_aligned(n, sizeof(*copy));
    if (copy == NULL)
        return lmq_fail_nomem(err);
    matrix->owned = copy;
    enum lmq_status status = lmq_checkpoint_read(
        model->checkpoint, matrix->tensor, 0, n, copy, &scratch, err);
    lmq_scratch_free(&scratch);
    set_rows(matrix, copy, LMQ_ROW_F32);
    return status;
}

/* What the record of a tensor in a container says, aliases followed. */
static const struct lmq_record *
record_of(const struct lmq_model *model, const struct lmq_tensor *tensor)
{
    const struct lmq_container *container =
        lmq_checkpoint_container(model->checkpoint);
    const struct lmq_record *record = &container->records[tensor->number];

    return record->alias == LMQ_NO_ALIAS ? record
                                         : &container->records[record->alias];
}

/* Row-major int8 is rearranged into tiles, 16 rows at a time. */
static enum lmq_status
copy_tiles(struct lmq_model *model, struct lmq_matrix *matrix,
           struct lmq_error *err)
{
    const struct lmq_record *record = record_of(model, matrix->tensor);
    const struct lmq_quant *quant = &record->quant;
    const unsigned char *file;
    size_t n_cols = matrix->n_cols;
    size_t values = lmq_tile_values_size(n_cols, quant->group_size);
    size_t scales =
        lmq_tile_scales_size(n_cols, quant->group_size, quant->scales);
    size_t row_scales = lmq_groups_per_row(n_cols, quant->group_size) *
                        lmq_scale_size(quant->scales);
    size_t n_tiles = (matrix->n_rows + LMQ_TILE_ROWS - 1) / LMQ_TILE_ROWS;
    enum lmq_status status =
        lmq_input_map(model->checkpoint->files[0], &file, err);

    if (status != LMQ_OK)
        return status;
    unsigned char *q = matrix->owned = lmq_mem_aligned(n_tiles, values);
    unsigned char *s = matrix->owned_scales = lmq_mem_aligned(n_tiles, scales);
    if (q == NULL || s == NULL)
        return lmq_fail_nomem(err);
    for (size_t tile = 0; tile < n_tiles; tile++) {
        size_t row = tile * LMQ_TILE_ROWS;
        lmq_tile_pack(
            (const int8_t *)file + record->values.offset + row * n_cols,
            n_cols, file + record->scales.offset + row * row_scales,
            lmq_size_min(LMQ_TILE_ROWS, matrix->n_rows - row), n_cols,
            quant->group_size, quant->scales, q + tile * values,
            s + tile * scales);
    }
    matrix->tiles.q = q;
    matrix->tiles.scale = s;
    return LMQ_OK;
}

enum lmq_status
lmq_matrix_verify(struct lmq_model *model, struct lmq_matrix *matrix,
                  struct lmq_error *err)
{
    if (matrix->is_verified || matrix->tensor == NULL)
        return LMQ_OK;
    enum lmq_status status =
        lmq_tensor_verify(model->checkpoint, matrix->tensor, err);
    matrix->is_verified = status == LMQ_OK;
    return status;
}

enum lmq_status
lmq_matrix_load(struct lmq_model *model, struct lmq_matrix *matrix,
                struct lmq_error *err)
{
    if (!matrix->is_copied || matrix->owned != NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_matrix_verify(model, matrix, err);
    if (status == LMQ_OK)
        status = matrix->is_int8 ? copy_tiles(model, matrix, err)
                                 : copy_rows(model, matrix, err);
    if (status == LMQ_OK)
        model->n_copied_bytes += (size_t)lmq_matrix_bytes(matrix);
    return status;
}

static bool
row_type_of(const struct lmq_tensor *tensor, enum lmq_row_type *type)
{
    *type = LMQ_ROW_F32;
    if (!lmq_tensor_is_plain(tensor) ||
        __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return false;
    if (tensor->dtype == LMQ_DTYPE_F16)
        *type = LMQ_ROW_F16;
    if (tensor->dtype == LMQ_DTYPE_BF16)
        *type = LMQ_ROW_BF16;
    return tensor->dtype == LMQ_DTYPE_F32 || tensor->dtype == LMQ_DTYPE_F16 ||
           tensor->dtype == LMQ_DTYPE_BF16;
}

/* Rows of floats where they lie in the file, if the kernels can take them. */
static enum lmq_status
use_rows(struct lmq_model *model, struct lmq_matrix *matrix,
         struct lmq_error *err)
{
    const struct lmq_tensor *tensor = matrix->tensor;
    enum lmq_row_type type;
    const unsigned char *bytes;

    matrix->is_copied = !row_type_of(tensor, &type);
    set_rows(matrix, NULL, type);
    if (matrix->is_copied)
        return LMQ_OK;
    enum lmq_status status = lmq_input_map(
        model->checkpoint->files[tensor->file], &bytes, err);
    if (status == LMQ_OK)
        set_rows(matrix, bytes + tensor->offset, type);
    return status;
}

static enum lmq_status
use_container(struct lmq_model *model, struct lmq_matrix *matrix,
              struct lmq_error *err)
{
    const struct lmq_record *record = record_of(model, matrix->tensor);
    const unsigned char *file;

    if (record->encoding != LMQ_ENCODING_Q8) {
        matrix->is_copied = true;
        set_rows(matrix, NULL, LMQ_ROW_F32);
        return LMQ_OK;
    }
    enum lmq_status status =
        lmq_input_map(model->checkpoint->files[0], &file, err);
    if (status != LMQ_OK)
        return status;
    matrix->is_int8 = true;
    model->is_int8 = true;
    matrix->is_copied = record->layout != LMQ_LAYOUT_TILES;
    matrix->tiles = (struct lmq_tiles){
        .q = file + record->values.offset,
        .scale = file + record->scales.offset,
        .scale_type = record->quant.scales,
        .multiplier = record->quant.multiplier,
        .n_rows = matrix->n_rows,
        .n_cols = matrix->n_cols,
        .group = record->quant.group_size,
    };
    return LMQ_OK;
}

uint64_t
lmq_matrix_bytes(const struct lmq_matrix *matrix)
{
    const struct lmq_tiles *tiles = &matrix->tiles;

    if (!matrix->is_int8)
        return (uint64_t)matrix->n_rows * matrix->rows.stride;
    return (uint64_t)lmq_tiles_count(tiles->n_rows) *
           (lmq_tile_values_size(tiles->n_cols, tiles->group) +
            lmq_tile_scales_size(tiles->n_cols, tiles->group,
                                 tiles->scale_type));
}

double
lmq_matrix_share(const struct lmq_model *model,
                 const struct lmq_matrix *matrix)
{
    const struct lmq_hparams *h = &model->hparams;
    const struct lmq_place *place = &matrix->tensor->place;

    return place->item >= 0 && lmq_role_is_of_experts(place->role)
               ? (double)h->n_experts_used / h->n_experts
               : 1;
}

enum lmq_status
lmq_matrix_open(struct lmq_model *model, const struct lmq_tensor *tensor,
                struct lmq_matrix *matrix, struct lmq_error *err)
{
    matrix->tensor = tensor;
    matrix->n_rows = (size_t)tensor->n_rows;
    matrix->n_cols = (size_t)tensor->n_cols;
    return lmq_checkpoint_container(model->checkpoint) != NULL
               ? use_container(model, matrix, err)
               : use_rows(model, matrix, err);
}

void
lmq_matrix_drop(struct lmq_matrix *matrix)
{
    lmq_mem_free(matrix->owned);
    lmq_mem_free(matrix->owned_scales);
    matrix->owned = matrix->owned_scales = NULL;
}
