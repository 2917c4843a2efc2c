/*
 * elements.c - elements of tensors, from where and how files store them to
 * float32 in canonical order.
 *
 * Two steps: which stored elements follow each other (the view), and what
 * their bytes mean (numbers, blocks, a packing).
 *
 * A view says, for each of our rows, where the file has it: rows in another
 * order (pairs of RoPE), rows of a part of a fused tensor, columns in place of
 * rows. So nothing is copied or turned before it is needed, whatever the size
 * of the model.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/error.h"
#include "base/size.h"
#include "formats/checkpoint/checkpoint.h"
#include "quantize/blocks.h"
#include "quantize/tiles.h"

/* ---- Scratch ---- */

void
lmq_scratch_free(struct lmq_scratch *scratch)
{
    free(scratch->bytes);
    free(scratch->column);
    *scratch = (struct lmq_scratch){0};
}

/* What was in it is lost: scratch is for one call. */
static enum lmq_status
reserve(unsigned char **bytes, size_t *capacity, size_t size,
        struct lmq_error *err)
{
    if (*capacity >= size)
        return LMQ_OK;
    free(*bytes);
    *capacity = 0;
    *bytes = malloc(size);
    if (*bytes == NULL)
        return lmq_fail_nomem(err);
    *capacity = size;
    return LMQ_OK;
}

enum lmq_status
lmq_scratch_reserve(struct lmq_scratch *scratch, size_t size,
                    struct lmq_error *err)
{
    return reserve(&scratch->bytes, &scratch->size, size, err);
}

/* ---- Where rows stand ---- */

/* Whether it norms latents of a layer that sees everything. */
static bool
is_of_full_latents(const struct lmq_hparams *h, const struct lmq_place *place)
{
    return place->role == LMQ_ROLE_ATTN_KV_A_NORM && place->layer >= 0 &&
           place->layer < (int32_t)h->n_layers &&
           lmq_layer_is(h, (size_t)place->layer, LMQ_LAYER_FULL);
}

/* Of a matrix its bias is not; of a norm all that it gives is. */
void
lmq_tensor_scale(struct lmq_tensor *tensor, const struct lmq_source *source,
                 const struct lmq_hparams *hparams)
{
    struct lmq_view *view = &tensor->view;
    float times = tensor->place.role < LMQ_ROLE_COUNT &&
                          (tensor->place.part == LMQ_PART_WEIGHT ||
                           tensor->place.role == LMQ_ROLE_OUTPUT_NORM)
                      ? source->times[tensor->place.role]
                      : 0;

    if (source->full_latent_times > 0 &&
        is_of_full_latents(hparams, &tensor->place))
        times = source->full_latent_times;
    if (times > 0)
        view->times = times * (view->times > 0 ? view->times : 1);
}

/* Groups go along rows: of a matrix that is turned, scaled, shifted, or cut
 * within its groups there are only floats. */
void
lmq_tensor_settle_integers(struct lmq_tensor *tensor)
{
    const struct lmq_block_type *blocks = tensor->blocks;
    const struct lmq_view *view = &tensor->view;

    if (tensor->n_dims < 2 || view->pitch != 0 || view->times > 0 ||
        view->plus > 0 || view->has_unit_rows ||
        view->map != LMQ_MAP_NONE || view->column_pairs.n > 0 ||
        (view->columns.inner > 0 && tensor->quant.group_size > 0 &&
         view->columns.size % tensor->quant.group_size != 0) ||
        (blocks != NULL && tensor->n_cols % blocks->n != 0))
        tensor->quant = (struct lmq_quant){0};
}

/* Rows and columns stand in the file in their own order. */
static bool
is_in_order(const struct lmq_view *view)
{
    return view->unit == 0 && view->first == 0 && view->pairs.n == 0 &&
           view->rows.inner == 0 && view->columns.inner == 0 &&
           view->column_pairs.n == 0;
}

bool
lmq_tensor_is_as_stored(const struct lmq_tensor *tensor)
{
    const struct lmq_view *view = &tensor->view;

    return is_in_order(view) && view->pitch == 0 && !(view->times > 0) &&
           !(view->plus > 0) && view->map == LMQ_MAP_NONE &&
           !view->has_unit_rows && tensor->joined == NULL;
}

/* Then its bytes in the file are its elements, and can be mapped. */
bool
lmq_tensor_is_plain(const struct lmq_tensor *tensor)
{
    return tensor->blocks == NULL && tensor->encoding == NULL &&
           !tensor->is_cut && lmq_tensor_is_as_stored(tensor);
}

/* Units and pairs first: they say which row of the part it is; then the part
 * within what is fused, then where that begins. */
static uint64_t
stored_row(const struct lmq_tensor *tensor, uint64_t row)
{
    const struct lmq_view *view = &tensor->view;

    row = lmq_rope_row_stored(&view->pairs,
                                lmq_shuffle_row(&view->rows, row));
    if (view->unit != 0)
        row = row / view->unit * view->stride + row % view->unit;
    return view->first + row;
}

/* Stored columns from one of our rows to the next, where all are so far from
 * each other; 0: they are not. */
static uint64_t
column_step(const struct lmq_view *view)
{
    if (view->pairs.n != 0 || view->rows.inner != 0)
        return 0;
    return view->unit == 0 ? 1 : view->unit == 1 ? view->stride : 0;
}

/* Rows from this one on that are stored one after the other. */
static uint64_t
rows_in_line(const struct lmq_tensor *tensor, uint64_t row)
{
    const struct lmq_view *view = &tensor->view;
    uint64_t left = lmq_shuffle_in_line(&view->rows, row);

    row = lmq_shuffle_row(&view->rows, row);
    left = lmq_u64_min(left, lmq_rope_rows_in_line(&view->pairs, row));
    if (view->unit != 0)
        left = lmq_u64_min(left, view->unit - row % view->unit);
    return left;
}

/* Elements of a canonical row; a tensor of one dimension is a column. */
static uint64_t
row_size_of(const struct lmq_tensor *tensor)
{
    return tensor->n_dims == 1 ? 1 : tensor->n_cols;
}

/* For messages: a NaN is told where the user's own tools find it. */
uint64_t
lmq_tensor_stored_element(const struct lmq_tensor *tensor, uint64_t element,
                          uint64_t *n_cols)
{
    const struct lmq_view *view = &tensor->view;
    uint64_t row_size = row_size_of(tensor);
    uint64_t row = stored_row(tensor, element / row_size);
    uint64_t column = lmq_rope_row_stored(
        &view->column_pairs,
        lmq_shuffle_row(&view->columns, element % row_size));

    *n_cols = view->pitch != 0 ? view->pitch : tensor->n_cols;
    return view->origin +
           (view->pitch != 0 ? column * view->pitch + row
                             : row * row_size + column);
}

/* ---- Stored elements ---- */

/* Of a tensor that is cut over the files of a set only the format knows where
 * its rows go on. */
static struct lmq_run
find_run(const struct lmq_checkpoint *checkpoint,
         const struct lmq_tensor *tensor, uint64_t first)
{
    if (tensor->is_cut)
        return checkpoint->format->find_run(checkpoint, tensor, first);
    return (struct lmq_run){
        tensor->file, tensor->offset + first * lmq_dtype_size(tensor->dtype),
        UINT64_MAX};
}

enum lmq_status
lmq_checkpoint_read_raw(struct lmq_checkpoint *checkpoint,
                        const struct lmq_tensor *tensor, uint64_t first,
                        size_t n, void *bytes, struct lmq_error *err)
{
    size_t size = lmq_dtype_size(tensor->dtype);
    unsigned char *p = bytes;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        struct lmq_run run = find_run(checkpoint, tensor, first);
        size_t step = (size_t)lmq_u64_min(n, run.n);
        status = lmq_input_read(checkpoint->files[run.file], run.offset, p,
                                step * size, err);
        p += step * size;
        first += step;
        n -= step;
    }
    return status;
}

/* Float32 needs no conversion where the machine is little-endian: straight
 * into place. */
static enum lmq_status
read_numbers(struct lmq_checkpoint *checkpoint,
             const struct lmq_tensor *tensor, uint64_t first, size_t n,
             float *values, struct lmq_scratch *scratch, struct lmq_error *err)
{
    size_t size = lmq_dtype_size(tensor->dtype), n_bytes;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (tensor->dtype == LMQ_DTYPE_F32)
        return lmq_checkpoint_read_raw(checkpoint, tensor, first, n, values,
                                       err);
#endif
    if (!lmq_size_mul(n, size, &n_bytes))
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_scratch_reserve(scratch, n_bytes, err);
    if (status == LMQ_OK)
        status = lmq_checkpoint_read_raw(checkpoint, tensor, first, n,
                                         scratch->bytes, err);
    if (status == LMQ_OK)
        lmq_dtype_to_f32(tensor->dtype, scratch->bytes, values, n);
    return status;
}

/* Blocks of GGUF, whole ones decoded in place. The first and the last may be
 * needed in parts: decoded aside, and the part is copied. */
static enum lmq_status
read_blocks(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            uint64_t first, size_t n, float *values,
            struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct lmq_block_type *type = tensor->blocks;
    uint64_t first_block = first / type->n;
    uint64_t end_block = (first + n + type->n - 1) / type->n;
    size_t n_blocks = (size_t)(end_block - first_block), n_bytes;
    size_t skip = (size_t)(first - first_block * type->n);
    float whole[LMQ_BLOCK_MAX];

    if (!lmq_size_mul(n_blocks, type->size, &n_bytes))
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_scratch_reserve(scratch, n_bytes, err);
    if (status == LMQ_OK)
        status = lmq_input_read(checkpoint->files[tensor->file],
                                tensor->offset + first_block * type->size,
                                scratch->bytes, n_bytes, err);
    if (status != LMQ_OK)
        return status;
    const unsigned char *block = scratch->bytes;
    while (n > 0) {
        size_t step = lmq_size_min(n, type->n - skip);
        if (step == type->n) {
            size_t n_whole = n / type->n;
            lmq_blocks_decode(type, block, n_whole, values);
            step = n_whole * type->n;
            block += n_whole * type->size;
        } else {
            lmq_blocks_decode(type, block, 1, whole);
            memcpy(values, whole + skip, step * sizeof(*values));
            block += type->size;
        }
        values += step;
        n -= step;
        skip = 0;
    }
    return LMQ_OK;
}

/* Rows of a matrix that is packed; the first and the last may be parts. */
static enum lmq_status
read_packed(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            uint64_t first, size_t n, float *values,
            struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct lmq_packing *packing = tensor->packing;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        struct lmq_area area = {.row = first / packing->n_cols,
                                .column = first % packing->n_cols,
                                .n_rows = 1};
        area.n_cols =
            (size_t)lmq_u64_min(n, packing->n_cols - area.column);
        if (area.n_cols == packing->n_cols)
            area.n_rows = n / area.n_cols;
        status = packing->read(checkpoint, tensor, &area, values, scratch,
                               err);
        values += area.n_rows * area.n_cols;
        first += area.n_rows * area.n_cols;
        n -= area.n_rows * area.n_cols;
    }
    return status;
}

/* Elements as the file numbers them, from the tensor's offset on. */
static enum lmq_status
read_stored(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
            uint64_t first, size_t n, float *values,
            struct lmq_scratch *scratch, struct lmq_error *err)
{
    if (tensor->blocks != NULL)
        return read_blocks(checkpoint, tensor, first, n, values, scratch, err);
    if (tensor->packing != NULL)
        return read_packed(checkpoint, tensor, first, n, values, scratch, err);
    if (tensor->encoding != NULL)
        return checkpoint->format->read(checkpoint, tensor, first, n, values,
                                        err);
    return read_numbers(checkpoint, tensor, first, n, values, scratch, err);
}

/* ---- Views ---- */

/* Stored rows are our rows. */
static enum lmq_status
read_rows(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          uint64_t first, size_t n, float *values, struct lmq_scratch *scratch,
          struct lmq_error *err)
{
    uint64_t row_size = row_size_of(tensor);
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t row = first / row_size, column = first % row_size;
        uint64_t in_line = rows_in_line(tensor, row), until;
        if (lmq_u64_mul(in_line, row_size, &until))
            until -= column;
        else
            until = n; /* all that there is */
        size_t step = (size_t)lmq_u64_min(n, until);
        status = read_stored(checkpoint, tensor,
                             stored_row(tensor, row) * row_size +
                                 column,
                             step, values, scratch, err);
        values += step;
        first += step;
        n -= step;
    }
    return status;
}

/* The stored rows that are columns of ours, all at once. */
static enum lmq_status
read_stored_area(struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor, uint64_t first,
                 size_t n_rows, size_t n_cols, float *values,
                 struct lmq_scratch *scratch, struct lmq_error *err)
{
    const struct lmq_area area = {first / tensor->view.pitch,
                                  first % tensor->view.pitch, n_cols, n_rows};
    size_t n_bytes;

    if (!lmq_size_mul(n_rows, n_cols, &n_bytes) ||
        !lmq_size_mul(n_bytes, sizeof(float), &n_bytes))
        return lmq_fail_nomem(err);
    enum lmq_status status =
        reserve(&scratch->column, &scratch->column_size, n_bytes, err);
    if (status != LMQ_OK)
        return status;
    float *turned = (float *)(void *)scratch->column;
    status = tensor->packing->read(checkpoint, tensor, &area, turned, scratch,
                                   err);
    for (size_t r = 0; r < n_rows && status == LMQ_OK; r++)
        for (size_t c = 0; c < n_cols; c++)
            values[r * n_cols + c] = turned[c * n_rows + r];
    return status;
}

/* Rows [row, row + n_rows), which are stored side by side, or in every so
 * manyth column; columns [column, column + n_cols): each column is a run in the
 * file. */
static enum lmq_status
read_rectangle(struct lmq_checkpoint *checkpoint,
               const struct lmq_tensor *tensor, uint64_t row, size_t n_rows,
               uint64_t column, size_t n_cols, float *values,
               struct lmq_scratch *scratch, struct lmq_error *err)
{
    uint64_t stored = stored_row(tensor, row);
    size_t step = (size_t)lmq_u64_max(column_step(&tensor->view), 1);
    size_t n_run = (n_rows - 1) * step + 1, n_bytes;

    if (tensor->packing != NULL)
        return read_stored_area(checkpoint, tensor,
                                column * tensor->view.pitch + stored, n_rows,
                                n_cols, values, scratch, err);
    if (!lmq_size_mul(n_run, sizeof(float), &n_bytes))
        return lmq_fail_nomem(err);
    enum lmq_status status =
        reserve(&scratch->column, &scratch->column_size, n_bytes, err);
    float *run = (float *)(void *)scratch->column;
    for (size_t c = 0; c < n_cols && status == LMQ_OK; c++) {
        status = read_stored(checkpoint, tensor,
                             (column + c) * tensor->view.pitch + stored,
                             n_run, run, scratch, err);
        for (size_t r = 0; r < n_rows && status == LMQ_OK; r++)
            values[r * n_cols + c] = run[r * step];
    }
    return status;
}

/* Stored rows are our columns. */
static enum lmq_status
read_columns(struct lmq_checkpoint *checkpoint,
             const struct lmq_tensor *tensor, uint64_t first, size_t n,
             float *values, struct lmq_scratch *scratch, struct lmq_error *err)
{
    uint64_t row_size = row_size_of(tensor);
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t row = first / row_size, column = first % row_size;
        size_t n_rows = 1, n_cols = (size_t)lmq_u64_min(n, row_size - column);
        if (column == 0 && n >= row_size)
            n_rows = (size_t)lmq_u64_min(n / row_size,
                                         column_step(&tensor->view) != 0
                                             ? UINT64_MAX
                                             : rows_in_line(tensor, row));
        status = read_rectangle(checkpoint, tensor, row, n_rows, column,
                                n_cols, values, scratch, err);
        values += n_rows * n_cols;
        first += n_rows * n_cols;
        n -= n_rows * n_cols;
    }
    return status;
}

/* Of what is more, the exponential is more than a float32 can say. */
#define EXP_MOST 88

static enum lmq_status
map_elements(const struct lmq_tensor *tensor, uint64_t first, float *values,
             size_t n, struct lmq_error *err)
{
    enum lmq_map map = tensor->view.map;

    for (size_t i = 0; i < n; i++) {
        double x = (double)values[i];
        if (!isfinite(x)) /* which is noticed */
            continue;
        if (map == LMQ_MAP_LOG && x <= 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, first + i,
                            "tensor '%s': %g at element %" PRIu64
                            ", expected more than 0, as states decay",
                            tensor->stored_name, x, first + i);
        if (map == LMQ_MAP_LOG_OF_MINUS && x >= 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, first + i,
                            "tensor '%s': %g at element %" PRIu64
                            ", expected less than 0, as states decay",
                            tensor->stored_name, x, first + i);
        if (map == LMQ_MAP_LOG_OF_MINUS || map == LMQ_MAP_LOG)
            values[i] = (float)lmq_log(fabs(x));
        else if (map != LMQ_MAP_NONE)
            values[i] = x < EXP_MOST ? (float)lmq_exp(x) : INFINITY;
        if (map == LMQ_MAP_MINUS_EXP)
            values[i] = -values[i];
    }
    return LMQ_OK;
}

/* `plus` is what Gemma's norms lack: they are stored less one. */
static enum lmq_status
read_view(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
          uint64_t first, size_t n, float *values, struct lmq_scratch *scratch,
          struct lmq_error *err)
{
    enum lmq_status status =
        tensor->view.pitch != 0
            ? read_columns(checkpoint, tensor, first, n, values, scratch, err)
            : read_rows(checkpoint, tensor, first, n, values, scratch, err);
    if (status == LMQ_OK && tensor->view.times > 0)
        for (size_t i = 0; i < n; i++)
            values[i] *= tensor->view.times;
    if (status == LMQ_OK && tensor->view.plus > 0)
        for (size_t i = 0; i < n; i++)
            values[i] += tensor->view.plus;
    if (status == LMQ_OK && tensor->view.map != LMQ_MAP_NONE)
        status = map_elements(tensor, first, values, n, err);
    return status;
}

/* x /= |x|; no row is shorter than the least length that PyTorch's own
 * normalize() divides by. What is not finite may become 0, so it has none. */
static void
make_unit(float *x, size_t n)
{
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]))
            squares += (double)x[i] * (double)x[i];
    double length = fmax(sqrt(squares), 1e-12);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(x[i] / length);
}

/* Units of columns of one row. */
static void
shuffle_columns(const struct lmq_shuffle *columns, const void *stored,
                size_t n, size_t size, void *row)
{
    for (size_t i = 0; i < n;) {
        size_t step = (size_t)lmq_u64_min(n - i,
                                          lmq_shuffle_in_line(columns, i));
        memcpy((char *)row + i * size,
               (const char *)stored +
                   (size_t)lmq_shuffle_row(columns, i) * size,
               step * size);
        i += step;
    }
}

/* A length is that of the whole row, and a column may stand anywhere in it,
 * whatever part of it is wanted. */
static enum lmq_status
read_whole_rows(struct lmq_checkpoint *checkpoint,
                const struct lmq_tensor *tensor, uint64_t first, size_t n,
                float *values, struct lmq_scratch *scratch,
                struct lmq_error *err)
{
    size_t n_cols = (size_t)tensor->n_cols;
    float *stored = calloc(n_cols, 2 * sizeof(*stored));
    float *row = stored == NULL ? NULL : stored + n_cols;
    enum lmq_status status = row == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        size_t column = (size_t)(first % n_cols);
        size_t step = lmq_size_min(n, n_cols - column);
        status = read_view(checkpoint, tensor, first - column, n_cols, stored,
                           scratch, err);
        if (tensor->view.has_unit_rows)
            make_unit(stored, n_cols);
        if (tensor->view.column_pairs.n > 0)
            for (size_t i = 0; i < n_cols; i++)
                row[i] = stored[lmq_rope_row_stored(
                    &tensor->view.column_pairs, i)];
        else
            shuffle_columns(&tensor->view.columns, stored, n_cols,
                            sizeof(*row), row);
        memcpy(values, row + column, step * sizeof(*values));
        values += step;
        first += step;
        n -= step;
    }
    free(stored);
    return status;
}

/* ---- What others ask for ---- */

/* Of several tensors, each from its own. */
static enum lmq_status
read_joined(struct lmq_checkpoint *checkpoint,
            const struct lmq_tensor *tensor, uint64_t first, size_t n,
            float *values, struct lmq_scratch *scratch, struct lmq_error *err)
{
    uint64_t row_size = row_size_of(tensor);
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        uint64_t row = first / row_size, column = first % row_size;
        uint64_t own, n_rows;
        const struct lmq_tensor *part = lmq_joined_find(
            tensor->joined, stored_row(tensor, row), &own, &n_rows);
        n_rows = lmq_u64_min(n_rows, rows_in_line(tensor, row));
        size_t step = (size_t)lmq_u64_min(n, n_rows * row_size - column);
        status = lmq_checkpoint_read(checkpoint, part, own * row_size + column,
                                     step, values, scratch, err);
        values += step;
        first += step;
        n -= step;
    }
    return status;
}

/* All elements that anything is computed from come through here. */
enum lmq_status
lmq_checkpoint_read(struct lmq_checkpoint *checkpoint,
                    const struct lmq_tensor *tensor, uint64_t first, size_t n,
                    float *values, struct lmq_scratch *scratch,
                    struct lmq_error *err)
{
    enum lmq_status status = lmq_tensor_require(checkpoint, tensor, err);

    if (status != LMQ_OK)
        return status;
    if (tensor->joined != NULL)
        return read_joined(checkpoint, tensor, first, n, values, scratch, err);
    return tensor->view.has_unit_rows || tensor->view.columns.inner > 0 ||
                   tensor->view.column_pairs.n > 0
               ? read_whole_rows(checkpoint, tensor, first, n, values,
                                 scratch, err)
               : read_view(checkpoint, tensor, first, n, values, scratch,
                           err);
}

/* Columns of n rows of integers; groups move as a whole with their scales. */
static enum lmq_status
shuffle_integers(const struct lmq_tensor *tensor, size_t n, int8_t *q,
                 unsigned char *scales, struct lmq_scratch *scratch,
                 struct lmq_error *err)
{
    const struct lmq_quant *quant = &tensor->quant;
    size_t n_cols = (size_t)tensor->n_cols, group = quant->group_size;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t size = lmq_scale_size(quant->scales);
    struct lmq_shuffle groups = tensor->view.columns;
    enum lmq_status status = reserve(&scratch->column, &scratch->column_size,
                                     n_cols + n_groups * size, err);

    groups.size /= group;
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        memcpy(scratch->column, q, n_cols);
        memcpy(scratch->column + n_cols, scales, n_groups * size);
        shuffle_columns(&tensor->view.columns, scratch->column, n_cols, 1, q);
        shuffle_columns(&groups, scratch->column + n_cols, n_groups, size,
                        scales);
        q += n_cols;
        scales += n_groups * size;
    }
    return status;
}

/* Rows may stand in another order, but not as columns: groups go along stored
 * rows (lmq_tensor_settle_integers()). */
enum lmq_status
lmq_checkpoint_read_integers(struct lmq_checkpoint *checkpoint,
                             const struct lmq_tensor *tensor, uint64_t row,
                             size_t n, int8_t *q, unsigned char *scales,
                             struct lmq_scratch *scratch,
                             struct lmq_error *err)
{
    const struct lmq_quant *quant = &tensor->quant;
    size_t n_cols = (size_t)tensor->n_cols;
    size_t row_scales = lmq_row_scales_size(n_cols, quant);
    enum lmq_status (*read)(struct lmq_checkpoint *, const struct lmq_tensor *,
                            uint64_t, size_t, int8_t *, unsigned char *,
                            struct lmq_scratch *, struct lmq_error *) =
        tensor->packing != NULL ? tensor->packing->read_integers
                                : checkpoint->format->read_integers;
    enum lmq_status status = LMQ_OK;

    while (n > 0 && status == LMQ_OK) {
        size_t step = (size_t)lmq_u64_min(n, rows_in_line(tensor, row));
        status = read(checkpoint, tensor, stored_row(tensor, row), step, q,
                      scales, scratch, err);
        if (status == LMQ_OK && tensor->view.columns.inner > 0)
            status = shuffle_integers(tensor, step, q, scales, scratch, err);
        q += step * n_cols;
        scales += step * row_scales;
        row += step;
        n -= step;
    }
    return status;
}

/* Only of a whole tensor in its own order: a tile has 16 rows side by side,
 * and a view would take some of them. */
bool
lmq_checkpoint_find_tiles(const struct lmq_checkpoint *checkpoint,
                          const struct lmq_tensor *tensor, uint64_t row,
                          struct lmq_tile_run *run)
{
    return tensor->quant.group_size != 0 && is_in_order(&tensor->view) &&
           checkpoint->format->find_tiles != NULL &&
           checkpoint->format->find_tiles(checkpoint, tensor, row, run);
}
