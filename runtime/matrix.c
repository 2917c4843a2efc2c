/*
 * matrix.c - puts a tensor into one of the two forms that kernels take: tiles
 * of int8, or rows of floats. In place, if that is how it lies in the file.
 */
#include "config.h"

#include "runtime/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/grams/grams.h"
#include "quantize/tiles.h"

const struct lmq_tiles *
lmq_matrix_tiles(const struct lmq_matrix *matrix, size_t *first)
{
    const struct lmq_tiles *tiles = &matrix->tiles;
    size_t begin = 0, n = lmq_tiles_count(tiles->n_rows);

    for (size_t i = 0; i < matrix->n_further && *first >= begin + n; i++) {
        begin += n;
        tiles = &matrix->further[i];
        n = lmq_tiles_count(tiles->n_rows);
    }
    *first = begin;
    return tiles;
}

void
lmq_matrix_row(const struct lmq_matrix *matrix, size_t row, float *out)
{
    const struct lmq_rows *rows = &matrix->rows;
    size_t first = row / LMQ_TILE_ROWS;

    if (matrix->is_int8) {
        const struct lmq_tiles *tiles = lmq_matrix_tiles(matrix, &first);
        lmq_tiles_row(tiles, row - first * LMQ_TILE_ROWS, out);
    } else {
        lmq_kernels()->row_widen((const char *)rows->data + row * rows->stride,
                                 rows->type, rows->n_cols, out);
    }
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

    /* More than 32 bits can count is no memory there. */
    float *copy = lmq_mem_aligned(matrix->n_rows,
                                  matrix->n_cols * sizeof(*copy));
    if (copy == NULL)
        return lmq_fail_nomem(err);
    matrix->owned = copy;
    enum lmq_status status = lmq_checkpoint_read(
        model->checkpoint, matrix->tensor, 0, matrix->n_rows * matrix->n_cols,
        copy, &scratch, err);
    lmq_scratch_free(&scratch);
    set_rows(matrix, copy, LMQ_ROW_F32);
    return status;
}

/* Files of others may hold what kernels do not take. */
static bool
is_sound(unsigned bits, const int8_t *q, size_t n, const float *scales,
         size_t n_scales)
{
    bool is_sound = true;

    for (size_t i = 0; i < n; i++)
        is_sound &= q[i] >= lmq_q_least(bits);
    for (size_t i = 0; i < n_scales; i++)
        is_sound &= isfinite(scales[i]) &&
                    (scales[i] >= 0 || bits < LMQ_BITS_MAX);
    return is_sound;
}

/* 16 rows on their way into a tile. */
struct strip {
    int8_t *q;             /* (LMQ_TILE_ROWS, n_cols) */
    unsigned char *stored; /* (LMQ_TILE_ROWS, n_groups) */
    float *scales;         /* the same */
    struct lmq_scratch scratch;
};

static enum lmq_status
fill_tiles(struct lmq_model *model, struct lmq_matrix *matrix,
           struct strip *strip, bool *fits, struct lmq_error *err)
{
    const struct lmq_quant *quant = &matrix->tensor->quant;
    size_t n_cols = matrix->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    unsigned char *q = matrix->owned, *s = matrix->owned_scales;
    enum lmq_status status = LMQ_OK;

    *fits = true;
    for (size_t row = 0; row < matrix->n_rows; row += LMQ_TILE_ROWS) {
        size_t n = lmq_size_min(LMQ_TILE_ROWS, matrix->n_rows - row);
        status = lmq_checkpoint_read_integers(model->checkpoint,
                                              matrix->tensor, row, n,
                                              strip->q, strip->stored,
                                              &strip->scratch, err);
        if (status != LMQ_OK)
            return status;
        lmq_scales_load(quant->scales, quant->multiplier, strip->stored,
                        n * n_groups, strip->scales);
        *fits = is_sound(quant->bits, strip->q, n * n_cols, strip->scales,
                         n * n_groups);
        if (!*fits)
            return LMQ_OK;
        lmq_tiles_pack(strip->q, n_cols, strip->stored, n, n_cols,
                       quant, q, s);
        q += lmq_tile_values_size(n_cols, quant->group_size, quant->bits);
        s += lmq_tile_scales_size(n_cols, quant->group_size, quant->scales);
    }
    matrix->tiles.q = matrix->owned;
    matrix->tiles.scale = matrix->owned_scales;
    return LMQ_OK;
}

/* Integers that do not stand as tiles in the file are rearranged; *fits is
 * false if kernels cannot take them. */
static enum lmq_status
copy_tiles(struct lmq_model *model, struct lmq_matrix *matrix, bool *fits,
           struct lmq_error *err)
{
    const struct lmq_quant *quant = &matrix->tensor->quant;
    size_t n_cols = matrix->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t n_tiles = lmq_tiles_count(matrix->n_rows);
    struct strip strip = {
        .q = lmq_mem_aligned(LMQ_TILE_ROWS, n_cols),
        .stored = lmq_mem_aligned(LMQ_TILE_ROWS * n_groups,
                                  lmq_scale_size(quant->scales)),
        .scales = lmq_mem_aligned(LMQ_TILE_ROWS * n_groups, sizeof(float)),
    };

    matrix->owned = lmq_mem_aligned(
        n_tiles,
        lmq_tile_values_size(n_cols, quant->group_size, quant->bits));
    matrix->owned_scales = lmq_mem_aligned(
        n_tiles,
        lmq_tile_scales_size(n_cols, quant->group_size, quant->scales));
    lmq_mem_large_pages(matrix->owned,
                        n_tiles * lmq_tile_values_size(
                                      n_cols, quant->group_size, quant->bits));
    enum lmq_status status =
        strip.q == NULL || strip.stored == NULL || strip.scales == NULL ||
                matrix->owned == NULL || matrix->owned_scales == NULL
            ? lmq_fail_nomem(err)
            : fill_tiles(model, matrix, &strip, fits, err);
    lmq_mem_free(strip.q);
    lmq_mem_free(strip.stored);
    lmq_mem_free(strip.scales);
    lmq_scratch_free(&strip.scratch);
    return status;
}

/* From then on it is one of floats. */
static enum lmq_status
copy_integers(struct lmq_model *model, struct lmq_matrix *matrix,
              struct lmq_error *err)
{
    bool fits = true;
    enum lmq_status status = copy_tiles(model, matrix, &fits, err);

    if (status != LMQ_OK || fits)
        return status;
    lmq_matrix_drop(matrix);
    matrix->is_int8 = false;
    lmq_checkpoint_note(model->checkpoint,
                        "tensor '%s' has -128, or scales that are negative or "
                        "not finite: it is computed with as float32",
                        matrix->tensor->stored_name);
    return copy_rows(model, matrix, err);
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
        status = matrix->is_int8 ? copy_integers(model, matrix, err)
                                 : copy_rows(model, matrix, err);
    if (status == LMQ_OK && matrix->rounding.block > 0)
        lmq_round_rows(matrix->rounding.weights, matrix->rounding.block,
                       matrix->owned, matrix->n_rows, matrix->n_cols);
    if (status == LMQ_OK)
        model->n_copied_bytes += (size_t)lmq_matrix_bytes(matrix);
    return status;
}

enum lmq_status
lmq_matrix_replace(struct lmq_matrix *matrix, const struct lmq_quant *quant,
                   const int8_t *q, const unsigned char *stored_scales,
                   struct lmq_error *err)
{
    size_t n_tiles = lmq_tiles_count(matrix->n_rows);
    size_t n_cols = matrix->n_cols, group = quant->group_size;
    unsigned char *values = lmq_mem_aligned(
        n_tiles, lmq_tile_values_size(n_cols, group, quant->bits));
    unsigned char *scales = lmq_mem_aligned(
        n_tiles, lmq_tile_scales_size(n_cols, group, quant->scales));

    if (values == NULL || scales == NULL) {
        lmq_mem_free(values);
        lmq_mem_free(scales);
        return lmq_fail_nomem(err);
    }
    lmq_tiles_pack(q, n_cols, stored_scales, matrix->n_rows, n_cols, quant,
                   values, scales);
    lmq_matrix_drop(matrix);
    matrix->owned = values;
    matrix->owned_scales = scales;
    matrix->is_copied = matrix->is_int8 = true;
    matrix->tiles = (struct lmq_tiles){
        .bits = quant->bits,
        .q = values,
        .scale = scales,
        .scale_type = quant->scales,
        .multiplier = quant->multiplier,
        .n_rows = matrix->n_rows,
        .n_cols = n_cols,
        .group = group,
        .rotation = quant->rotation,
    };
    return LMQ_OK;
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

/* Elements: routers, and what does not count beside the rest. */
#define COPIED_MOST 65536

/* Rows of floats where they lie in the file, if the kernels can take them. */
static enum lmq_status
use_rows(struct lmq_model *model, struct lmq_matrix *matrix,
         struct lmq_error *err)
{
    const struct lmq_tensor *tensor = matrix->tensor;
    enum lmq_row_type type;
    const unsigned char *bytes;

    /* Where there are checksums, what is small is copied, and they are
     * compared; what was kept as floats may be large. */
    matrix->is_copied =
        !row_type_of(tensor, &type) ||
        (model->checkpoint->format->verify_tensor != NULL &&
         tensor->n_elements <= COPIED_MOST);
    if (matrix->is_copied)
        type = LMQ_ROW_F32;
    set_rows(matrix, NULL, type);
    if (matrix->is_copied)
        return LMQ_OK;
    enum lmq_status status = lmq_input_map(
        model->checkpoint->files[tensor->file], &bytes, err);
    if (status == LMQ_OK)
        set_rows(matrix, bytes + tensor->offset, type);
    return status;
}

/* A copy as floats, rounded when it is made. */
static enum lmq_status
use_rounded(struct lmq_model *model, struct lmq_matrix *matrix,
            struct lmq_error *err)
{
    enum lmq_status status =
        lmq_emulation_find(model->emulation, &model->hparams, matrix->tensor,
                           &matrix->rounding, err);

    matrix->is_copied = true;
    matrix->tiles.group = matrix->rounding.block;
    set_rows(matrix, NULL, LMQ_ROW_F32);
    return status;
}

/* Tiles where they lie in a file; *has_all is false if they do not. */
static enum lmq_status
map_tiles(struct lmq_model *model, const struct lmq_tensor *tensor,
          size_t row, struct lmq_tiles *tiles, bool *has_all,
          struct lmq_error *err)
{
    struct lmq_tile_run run;
    const unsigned char *file;

    *has_all =
        lmq_checkpoint_find_tiles(model->checkpoint, tensor, row, &run);
    if (!*has_all)
        return LMQ_OK;
    enum lmq_status status =
        lmq_input_map(model->checkpoint->files[run.file], &file, err);
    if (status != LMQ_OK)
        return status;
    tiles->n_rows = (size_t)run.n_rows;
    tiles->q = file + run.values_at;
    tiles->scale = file + run.scales_at;
    return LMQ_OK;
}

/* What stands of it in other files than the first. */
static enum lmq_status
map_further(struct lmq_model *model, struct lmq_matrix *matrix,
            struct lmq_error *err)
{
    size_t capacity = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t row = matrix->tiles.n_rows;
         row < matrix->n_rows && !matrix->is_copied && status == LMQ_OK;) {
        struct lmq_tiles tiles = matrix->tiles;
        bool has_all;
        if (lmq_mem_grow(&matrix->further, &capacity, matrix->n_further + 1,
                         sizeof(tiles)) != 0)
            return lmq_fail_nomem(err);
        status = map_tiles(model, matrix->tensor, row, &tiles, &has_all, err);
        matrix->further[matrix->n_further++] = tiles;
        matrix->is_copied = !has_all;
        row += tiles.n_rows;
    }
    return status;
}

/* Tiles where they lie, or a copy that is made later. */
static enum lmq_status
use_integers(struct lmq_model *model, struct lmq_matrix *matrix,
             struct lmq_error *err)
{
    const struct lmq_tensor *tensor = matrix->tensor;
    bool has_all;

    matrix->is_int8 = true;
    model->is_int8 = true;
    matrix->tiles = (struct lmq_tiles){
        .bits = tensor->quant.bits,
        .scale_type = tensor->quant.scales,
        .multiplier = tensor->quant.multiplier,
        .n_rows = matrix->n_rows,
        .n_cols = matrix->n_cols,
        .group = tensor->quant.group_size,
        .rotation = tensor->quant.rotation,
    };
    enum lmq_status status =
        map_tiles(model, tensor, 0, &matrix->tiles, &has_all, err);
    matrix->is_copied = !has_all;
    if (status == LMQ_OK)
        status = map_further(model, matrix, err);
    if (matrix->is_copied)
        matrix->tiles.n_rows = matrix->n_rows;
    if (status != LMQ_OK)
        lmq_matrix_drop(matrix);
    return status;
}

/* Says something of all that stands of it in files. */
static void
say_of_ranges(const struct lmq_model *model, const struct lmq_matrix *matrix,
              void (*say)(void *context, struct lmq_input *, uint64_t,
                          uint64_t),
              void *context)
{
    const struct lmq_checkpoint *checkpoint = model->checkpoint;
    const struct lmq_tensor *tensor = matrix->tensor;
    const struct lmq_tiles *tiles = &matrix->tiles;
    struct lmq_tile_run run;

    if (!tensor->is_cut) {
        say(context, checkpoint->files[tensor->file], tensor->offset,
            tensor->size_bytes);
        return;
    }
    for (size_t row = 0; !matrix->is_copied && row < matrix->n_rows;
         row += (size_t)run.n_rows) {
        if (!lmq_checkpoint_find_tiles(checkpoint, tensor, row, &run))
            break;
        uint64_t n = lmq_tiles_count((size_t)run.n_rows);
        struct lmq_input *file = checkpoint->files[run.file];
        say(context, file, run.values_at,
            n * lmq_tile_values_size(tiles->n_cols, tiles->group,
                                     tiles->bits));
        say(context, file, run.scales_at,
            n * lmq_tile_scales_size(tiles->n_cols, tiles->group,
                                     tiles->scale_type));
    }
}

/* Norms lie between matrices; a gap of at most this is read, too. */
#define GAP ((uint64_t)2 << 20)

void
lmq_expected_read(struct lmq_expected *expected)
{
    if (expected->file != NULL)
        lmq_input_expect(expected->file, expected->from,
                         expected->to - expected->from);
    expected->file = NULL;
}

static void
expect_range(void *context, struct lmq_input *file, uint64_t at, uint64_t n)
{
    struct lmq_expected *expected = context;

    if (expected->file != file || at > expected->to + GAP ||
        expected->from > at + n + GAP) {
        lmq_expected_read(expected);
        *expected = (struct lmq_expected){file, at, at + n};
    } else {
        expected->from = lmq_u64_min(expected->from, at);
        expected->to = lmq_u64_max(expected->to, at + n);
    }
}

void
lmq_matrix_expect(const struct lmq_model *model,
                  const struct lmq_matrix *matrix,
                  struct lmq_expected *expected)
{
    if (matrix->tensor != NULL && !matrix->is_copied)
        say_of_ranges(model, matrix, expect_range, expected);
}

void
lmq_matrix_await(const struct lmq_model *model, const struct lmq_matrix *matrix)
{
    struct lmq_expected expected = {0};

    lmq_matrix_expect(model, matrix, &expected);
    lmq_expected_read(&expected);
}

static void
forget_range(void *context, struct lmq_input *file, uint64_t at, uint64_t n)
{
    (void)context;
    lmq_input_forget(file, at, n);
}

void
lmq_matrix_forget(const struct lmq_model *model,
                  const struct lmq_matrix *matrix)
{
    say_of_ranges(model, matrix, forget_range, NULL);
}

uint64_t
lmq_matrix_bytes(const struct lmq_matrix *matrix)
{
    const struct lmq_tiles *tiles = &matrix->tiles;

    if (!matrix->is_int8)
        return (uint64_t)matrix->n_rows * matrix->rows.stride;
    return (uint64_t)lmq_tiles_count(matrix->n_rows) *
           (lmq_tile_values_size(tiles->n_cols, tiles->group, tiles->bits) +
            lmq_tile_scales_size(tiles->n_cols, tiles->group,
                                 tiles->scale_type));
}

double
lmq_matrix_share(const struct lmq_model *model,
                 const struct lmq_matrix *matrix)
{
    const struct lmq_hparams *h = &model->hparams;
    const struct lmq_place *place = &matrix->tensor->place;

    if (place->role == LMQ_ROLE_GRAM_TABLE) /* so many of its rows */
        return (double)lmq_gram_places(h) / (double)matrix->n_rows;
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
    if (model->emulation != LMQ_EMULATE_NONE)
        return use_rounded(model, matrix, err);
    return tensor->quant.group_size != 0 ? use_integers(model, matrix, err)
                                         : use_rows(model, matrix, err);
}

void
lmq_matrix_drop(struct lmq_matrix *matrix)
{
    lmq_mem_free(matrix->owned);
    lmq_mem_free(matrix->owned_scales);
    free(matrix->further);
    matrix->owned = matrix->owned_scales = NULL;
    matrix->further = NULL;
    matrix->n_further = 0;
}
