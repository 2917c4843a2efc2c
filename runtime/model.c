/*
 * model.c - finds the tensors of a model and puts each into a form that the
 * kernels take.
 */
#include "config.h"

#include "runtime/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/lmq.h"
#include "runtime/rope.h"

/* ---- Matrices ---- */

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

/* Makes the copy that the matrix needs, if it needs one. */
static enum lmq_status
load_copy(struct lmq_model *model, struct lmq_matrix *matrix,
          struct lmq_error *err)
{
    if (!matrix->is_copied || matrix->owned != NULL)
        return LMQ_OK;
    enum lmq_status status = matrix->is_int8 ? copy_tiles(model, matrix, err)
                                             : copy_rows(model, matrix, err);
    if (status == LMQ_OK)
        model->n_copied_bytes += (size_t)lmq_matrix_bytes(matrix);
    return status;
}

static bool
row_type_of(const struct lmq_tensor *tensor, enum lmq_row_type *type)
{
    *type = LMQ_ROW_F32;
    if (tensor->rotary_dim != 0 ||
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

/* ---- Finding tensors ---- */

static enum lmq_status
load_vector(struct lmq_model *model, const struct lmq_tensor *tensor,
            const float **vector, struct lmq_error *err)
{
    struct lmq_scratch scratch = {0};
    size_t n = (size_t)tensor->n_elements;

    if (lmq_mem_grow(&model->vectors, &model->vectors_capacity,
                     model->n_vectors + 1, sizeof(*model->vectors)) != 0)
        return lmq_fail_nomem(err);
    float *copy = lmq_mem_aligned(n, sizeof(*copy));
    if (copy == NULL)
        return lmq_fail_nomem(err);
    model->vectors[model->n_vectors++] = copy;
    enum lmq_status status = lmq_checkpoint_read(
        model->checkpoint, tensor, 0, n, copy, &scratch, err);
    lmq_scratch_free(&scratch);
    *vector = copy;
    return status;
}

static enum lmq_status
load_norm(struct lmq_model *model, enum lmq_role role, int32_t layer,
          const float **vector, struct lmq_error *err)
{
    return load_vector(model,
                       lmq_checkpoint_find(model->checkpoint, role,
                                           LMQ_PART_WEIGHT, layer),
                       vector, err);
}

static enum lmq_status
load_matrix(struct lmq_model *model, enum lmq_role role, int32_t layer,
            struct lmq_matrix *matrix, struct lmq_error *err)
{
    const struct lmq_tensor *weight = lmq_checkpoint_find(
        model->checkpoint, role, LMQ_PART_WEIGHT, layer);
    const struct lmq_tensor *bias =
        lmq_checkpoint_find(model->checkpoint, role, LMQ_PART_BIAS, layer);

    matrix->tensor = weight;
    matrix->n_rows = (size_t)weight->n_rows;
    matrix->n_cols = (size_t)weight->n_cols;
    enum lmq_status status =
        lmq_checkpoint_container(model->checkpoint) != NULL
            ? use_container(model, matrix, err)
            : use_rows(model, matrix, err);
    if (status == LMQ_OK && (layer < 0 || !model->is_lazy))
        status = load_copy(model, matrix, err);
    if (status == LMQ_OK && bias != NULL)
        status = load_vector(model, bias, &matrix->bias, err);
    return status;
}

static enum lmq_status
load_layer(struct lmq_model *model, uint32_t index, struct lmq_error *err)
{
    struct lmq_layer *layer = &model->layers[index];
    int32_t number = (int32_t)index;
    static const enum lmq_role roles[LMQ_LAYER_MATRICES] = {
        LMQ_ROLE_ATTN_Q,   LMQ_ROLE_ATTN_K,  LMQ_ROLE_ATTN_V,
        LMQ_ROLE_ATTN_OUT, LMQ_ROLE_FFN_GATE, LMQ_ROLE_FFN_UP,
        LMQ_ROLE_FFN_DOWN,
    };
    struct lmq_matrix *matrices[LMQ_LAYER_MATRICES];
    enum lmq_status status =
        load_norm(model, LMQ_ROLE_ATTN_NORM, number, &layer->attn_norm, err);

    if (status == LMQ_OK)
        status =
            load_norm(model, LMQ_ROLE_FFN_NORM, number, &layer->ffn_norm, err);
    lmq_layer_matrices(layer, matrices);
    for (size_t i = 0; i < LMQ_LAYER_MATRICES && status == LMQ_OK; i++)
        status = load_matrix(model, roles[i], number, matrices[i], err);
    return status;
}

static enum lmq_status
load_head(struct lmq_model *model, struct lmq_error *err)
{
    const struct lmq_tensor *head = lmq_checkpoint_find(
        model->checkpoint, LMQ_ROLE_HEAD, LMQ_PART_WEIGHT, -1);
    bool is_tied = head == NULL || head->alias_of != NULL;

    if (!is_tied)
        return load_matrix(model, LMQ_ROLE_HEAD, -1, &model->head, err);
    model->head = model->embedding;
    model->head.owned = model->head.owned_scales = NULL;
    return LMQ_OK;
}

/* ---- One layer at a time ---- */

void
lmq_layer_matrices(struct lmq_layer *layer,
                   struct lmq_matrix *matrices[LMQ_LAYER_MATRICES])
{
    matrices[0] = &layer->q;
    matrices[1] = &layer->k;
    matrices[2] = &layer->v;
    matrices[3] = &layer->out;
    matrices[4] = &layer->gate;
    matrices[5] = &layer->up;
    matrices[6] = &layer->down;
}

enum lmq_status
lmq_model_load_layer(struct lmq_model *model, size_t layer,
                     struct lmq_error *err)
{
    struct lmq_matrix *matrices[LMQ_LAYER_MATRICES];
    enum lmq_status status = LMQ_OK;

    lmq_layer_matrices(&model->layers[layer], matrices);
    for (size_t i = 0; i < LMQ_LAYER_MATRICES && status == LMQ_OK; i++)
        status = load_copy(model, matrices[i], err);
    return status;
}

static void
free_copy(struct lmq_matrix *matrix)
{
    lmq_mem_free(matrix->owned);
    lmq_mem_free(matrix->owned_scales);
    matrix->owned = matrix->owned_scales = NULL;
}

void
lmq_model_drop_layer(struct lmq_model *model, size_t layer)
{
    struct lmq_matrix *matrices[LMQ_LAYER_MATRICES];

    lmq_layer_matrices(&model->layers[layer], matrices);
    for (size_t i = 0; i < LMQ_LAYER_MATRICES; i++) {
        const struct lmq_tensor *tensor = matrices[i]->tensor;
        if (matrices[i]->is_copied)
            free_copy(matrices[i]);
        lmq_input_forget(model->checkpoint->files[tensor->file],
                         tensor->offset, tensor->size_bytes);
    }
}

uint64_t
lmq_model_layer_bytes(const struct lmq_model *model, size_t layer)
{
    struct lmq_matrix *matrices[LMQ_LAYER_MATRICES];
    uint64_t n = 0;

    lmq_layer_matrices(&model->layers[layer], matrices);
    for (size_t i = 0; i < LMQ_LAYER_MATRICES; i++)
        n += lmq_matrix_bytes(matrices[i]);
    return n;
}

/* ---- Opening ---- */

/* A recommendation that is not understood is none. */
static const char *
recommended_activations(const struct lmq_checkpoint *checkpoint)
{
    static const char *const known[] = {"q8", "q16", "f32"};
    const struct lmq_container *container =
        lmq_checkpoint_container(checkpoint);
    const char *text =
        container == NULL
            ? NULL
            : json_string_value(json_object_get(
                  json_object_get(container->metadata, "recommended"),
                  "activations"));

    for (size_t i = 0; text != NULL && i < 3; i++)
        if (strcmp(text, known[i]) == 0)
            return known[i];
    return "q16";
}

static enum lmq_status
open_model(struct lmq_checkpoint *checkpoint, bool is_lazy,
           struct lmq_model **out, struct lmq_error *err)
{
    const struct lmq_hparams *hparams = &checkpoint->hparams;

    *out = NULL;
    if (!checkpoint->has_model || hparams->unsupported[0] != '\0') {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "cannot be run: %s is not understood",
                 hparams->unsupported[0] == '\0' ? "the model"
                                                 : hparams->unsupported);
        lmq_error_in(err, checkpoint->path);
        return LMQ_ERR_UNSUPPORTED;
    }
    struct lmq_model *model = calloc(1, sizeof(*model));
    if (model == NULL)
        return lmq_fail_nomem(err);
    model->checkpoint = checkpoint;
    model->is_lazy = is_lazy;
    model->activations = recommended_activations(checkpoint);
    model->hparams = *hparams;
    model->layers = calloc(hparams->n_layers, sizeof(*model->layers));
    model->rope_frequencies = calloc(hparams->head_dim / 2, sizeof(double));
    enum lmq_status status = LMQ_OK;
    if (model->layers == NULL || model->rope_frequencies == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK) {
        lmq_rope_frequencies(hparams, model->rope_frequencies);
        status = load_matrix(model, LMQ_ROLE_EMBEDDING, -1, &model->embedding,
                             err);
    }
    if (status == LMQ_OK)
        status = load_head(model, err);
    if (status == LMQ_OK)
        status = load_norm(model, LMQ_ROLE_OUTPUT_NORM, -1,
                           &model->output_norm, err);
    for (uint32_t i = 0; i < hparams->n_layers && status == LMQ_OK; i++)
        status = load_layer(model, i, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, checkpoint->path);
        lmq_model_close(model);
        return status;
    }
    *out = model;
    return LMQ_OK;
}

enum lmq_status
lmq_model_open(struct lmq_checkpoint *checkpoint, struct lmq_model **model,
               struct lmq_error *err)
{
    return open_model(checkpoint, false, model, err);
}

enum lmq_status
lmq_model_open_lazily(struct lmq_checkpoint *checkpoint,
                      struct lmq_model **model, struct lmq_error *err)
{
    return open_model(checkpoint, true, model, err);
}

void
lmq_model_close(struct lmq_model *model)
{
    if (model == NULL)
        return;
    for (uint32_t i = 0; model->layers && i < model->hparams.n_layers; i++) {
        struct lmq_matrix *matrices[LMQ_LAYER_MATRICES];
        lmq_layer_matrices(&model->layers[i], matrices);
        for (size_t j = 0; j < LMQ_LAYER_MATRICES; j++)
            free_copy(matrices[j]);
    }
    free_copy(&model->embedding);
    free_copy(&model->head);
    for (size_t i = 0; i < model->n_vectors; i++)
        lmq_mem_free(model->vectors[i]);
    free(model->vectors);
    free(model->layers);
    free(model->rope_frequencies);
    free(model);
}

size_t
lmq_model_vocabulary(const struct lmq_model *model)
{
    return model->hparams.vocab_size;
}

size_t
lmq_model_context(const struct lmq_model *model)
{
    return model->hparams.context;
}
