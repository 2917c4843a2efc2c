/*
 * piece.c - what one thread does to one piece of a tensor.
 */
#include "config.h"

#include "convert/piece.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/size.h"
#include "formats/checkpoint/apart.h"
#include "formats/lmq/lmq_digests.h"
#include "formats/model/pools.h"
#include "quantize/rotate.h"
#include "runtime/pools/table.h"

static uint64_t
first_element(const struct lmq_tensor *source, const struct lmq_piece *piece)
{
    return piece->row * source->n_cols + piece->column;
}

/* While it is in the cache, and in rows whatever the layout. */
enum lmq_status
lmq_piece_digest_rows(const struct lmq_conversion *work,
                      struct lmq_piece *piece, struct lmq_piece_worker *worker,
                      struct lmq_error *err)
{
    const struct lmq_record *record = &work->plan->records[piece->record];
    const struct lmq_tensor *source = work->plan->sources[piece->record];
    struct lmq_rectangle part = lmq_piece_rectangle(piece);
    struct lmq_digest_rows rows = {.values = worker->q,
                            .value_size = lmq_dtype_size(record->dtype)};

    if (piece->leaves == NULL)
        return LMQ_OK;
    if (record->encoding == LMQ_ENCODING_Q8)
        rows = (struct lmq_digest_rows){worker->q, 1, worker->stored_scales,
                                 lmq_scale_size(record->quant.scales),
                                 record->quant.group_size};
    return lmq_piece_digest(worker->sha, &part, source->n_cols, &rows,
                            piece->leaves, err);
}

static enum lmq_status
read_piece(struct lmq_plan *plan, const struct lmq_piece *piece,
           struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_tensor *source = plan->sources[piece->record];
    uint64_t first = first_element(source, piece);

    if (piece->n_cols == source->n_cols || piece->n_rows == 1)
        return lmq_checkpoint_read(plan->checkpoint, source, first,
                                   piece->n_rows * piece->n_cols, worker->x,
                                   &worker->scratch, err);
    enum lmq_status status = LMQ_OK;
    for (size_t i = 0; i < piece->n_rows && status == LMQ_OK; i++)
        status = lmq_checkpoint_read(
            plan->checkpoint, source, first + i * source->n_cols,
            piece->n_cols, worker->x + i * piece->n_cols, &worker->scratch,
            err);
    return status;
}

/* Rows are the same wherever a tensor is cut; pieces are not. */
static void
add_row(struct lmq_piece *piece, const struct lmq_quant_stats *row,
        uint64_t first_element, uint64_t first_group)
{
    lmq_quant_stats_merge(&piece->stats, row, first_element, first_group);
    lmq_exact_add(&piece->sum_sq, row->sum_sq);
    lmq_exact_add(&piece->err_sq, row->err_sq);
}

static void
clear_stats(struct lmq_piece *piece)
{
    piece->stats = (struct lmq_quant_stats){0};
    piece->sum_sq = piece->err_sq = (struct lmq_exact_sum){0};
}

static void
quantize_piece(const struct lmq_plan *plan, struct lmq_piece *piece,
               struct lmq_piece_worker *worker)
{
    const struct lmq_record *record = &plan->records[piece->record];
    const struct lmq_tensor *source = plan->sources[piece->record];
    unsigned group = record->quant.group_size;
    size_t n_groups = lmq_groups_per_row(piece->n_cols, group);
    uint64_t row_groups = lmq_groups_per_row((size_t)source->n_cols, group);

    clear_stats(piece);
    for (size_t i = 0; i < piece->n_rows; i++) {
        struct lmq_quant_stats row = {0};
        uint64_t number = piece->row + i;
        lmq_quantize_row(&record->quant, worker->x + i * piece->n_cols,
                         piece->n_cols, worker->q + i * piece->n_cols,
                         worker->scales + i * n_groups, &row);
        add_row(piece, &row, number * source->n_cols + piece->column,
                number * row_groups + piece->column / group);
        if (row.has_nonfinite)
            return;
    }
    lmq_scales_store(record->quant.scales, record->quant.multiplier,
                     worker->scales, piece->n_rows * n_groups,
                     worker->stored_scales);
}

enum lmq_status
lmq_piece_write(const struct lmq_conversion *work, struct lmq_piece *piece,
           size_t extent, const void *bytes, uint64_t at, uint64_t size,
           struct lmq_error *err)
{
    const struct lmq_plan_part *part = &work->plan->parts[piece->part];
    const struct lmq_record *stored = lmq_plan_stored(work->plan, part);

    piece->sizes[extent] = size;
    piece->crcs[extent] = lmq_crc32(0, bytes, (size_t)size);
    if (work->outputs[part->member] == NULL)
        return LMQ_OK; /* somebody else's */
    return lmq_output_write(work->outputs[part->member],
                            stored->extents[extent].offset + at, bytes,
                            (size_t)size, err);
}

/* The row of a piece within its part. */
static uint64_t
row_in_part(const struct lmq_conversion *work, const struct lmq_piece *piece)
{
    return piece->row - work->plan->parts[piece->part].first_row;
}

struct lmq_run_sizes
lmq_piece_sizes(const struct lmq_record *record, uint64_t n_rows,
                uint64_t n_cols)
{
    struct lmq_run_sizes sizes = {
        lmq_dtype_size(record->dtype) * n_rows * n_cols, 0};

    if (record->encoding != LMQ_ENCODING_Q8)
        return sizes;
    bool fits = lmq_layout_sizes(record->layout, n_rows, n_cols,
                                 &record->quant, &sizes.values,
                                 &sizes.scales);
    assert(fits);
    (void)fits;
    return sizes;
}

static enum lmq_status
write_matrix(const struct lmq_conversion *work, struct lmq_piece *piece,
             const struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_record *record = &work->plan->records[piece->record];
    const struct lmq_tensor *source = work->plan->sources[piece->record];
    struct lmq_run_sizes before =
        lmq_piece_sizes(record, row_in_part(work, piece), source->n_cols);
    struct lmq_run_sizes beside = lmq_piece_sizes(record, 1, piece->column);
    struct lmq_run_sizes own =
        lmq_piece_sizes(record, piece->n_rows, piece->n_cols);
    const void *values = worker->q, *scales = worker->stored_scales;

    if (record->layout == LMQ_LAYOUT_TILES) {
        lmq_tiles_pack(worker->q, piece->n_cols, worker->stored_scales,
                       piece->n_rows, piece->n_cols, &record->quant,
                       worker->tile_values,
                       worker->tile_scales);
        values = worker->tile_values;
        scales = worker->tile_scales;
    }
    enum lmq_status status =
        lmq_piece_write(work, piece, LMQ_VALUES, values,
                   before.values + beside.values, own.values, err);
    if (status == LMQ_OK)
        status = lmq_piece_write(work, piece, LMQ_SCALES, scales,
                            before.scales + beside.scales, own.scales, err);
    return status;
}

/* Of elements that are kept, so many bytes each. */
static enum lmq_status
write_run(const struct lmq_conversion *work, struct lmq_piece *piece,
          size_t size, const void *bytes, struct lmq_error *err)
{
    uint64_t n_cols = work->plan->sources[piece->record]->n_cols;
    uint64_t row = row_in_part(work, piece);

    return lmq_piece_write(work, piece, LMQ_VALUES, bytes,
                      size * (row * n_cols + piece->column),
                      size * piece->n_rows * piece->n_cols, err);
}

/* `zero` is what 0 in the file is here. */
static uint64_t
zero_nonfinite(float *x, size_t n, float zero)
{
    uint64_t n_zeroed = 0;

    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) {
            x[i] = zero;
            n_zeroed++;
        }
    return n_zeroed;
}

enum lmq_status
lmq_piece_fail_nonfinite(const struct lmq_tensor *source, uint64_t element,
                         struct lmq_error *err)
{
    uint64_t n_cols;
    const struct lmq_tensor *part = lmq_tensor_part(source, &element);
    uint64_t at = lmq_tensor_stored_element(part, element, &n_cols);

    lmq_fail(err, LMQ_ERR_NONFINITE, at,
             "tensor '%s': %s at element %" PRIu64 " (row %" PRIu64
             ", column %" PRIu64 ")",
             part->stored_name,
             part->dtype == LMQ_DTYPE_F64
                 ? "NaN, infinity or too large for float32"
                 : "NaN or infinity",
             at, at / n_cols, at % n_cols);
    lmq_hint(err, ".on_nonfinite=zero puts 0 in its place; but find out "
                  "where it comes from");
    return LMQ_ERR_NONFINITE;
}

static enum lmq_status
fail_nonfinite(const struct lmq_plan *plan, const struct lmq_piece *piece,
               struct lmq_error *err)
{
    const struct lmq_tensor *source = plan->sources[piece->record];
    uint64_t n_cols;
    uint64_t at = lmq_tensor_stored_element(
        source, piece->stats.nonfinite_at, &n_cols);

    if (!piece->stats.is_turned_over)
        return lmq_piece_fail_nonfinite(source, piece->stats.nonfinite_at,
                                        err);
    lmq_fail(err, LMQ_ERR_NONFINITE, at,
             "tensor '%s': the group at element %" PRIu64 " (row %" PRIu64
             ", column %" PRIu64 ") is too large to be rotated",
             source->stored_name, at, at / n_cols, at % n_cols);
    lmq_hint(err, "a recipe may say 'rotate: no' of it");
    return LMQ_ERR_NONFINITE;
}

/* Of scales that are not finite, with all that they are for. */
static uint64_t
zero_groups(const struct lmq_piece *piece, const struct lmq_quant *quant,
            struct lmq_piece_worker *worker)
{
    size_t n_groups = lmq_groups_per_row(piece->n_cols, quant->group_size);
    size_t size = lmq_scale_size(quant->scales);
    uint64_t n_zeroed = 0;

    for (size_t i = 0; i < piece->n_rows * n_groups; i++) {
        size_t at = i % n_groups * quant->group_size;
        size_t n = lmq_size_min(quant->group_size, piece->n_cols - at);
        if (isfinite(worker->scales[i]))
            continue;
        memset(worker->q + i / n_groups * piece->n_cols + at, 0, n);
        memset(worker->stored_scales + i * size, 0, size);
        worker->scales[i] = 0;
        n_zeroed += n;
    }
    return n_zeroed;
}

/* The source's own integers and scales; of a width below 8 in the form of 8
 * bits, if that is what is written. */
static enum lmq_status
take_integers(struct lmq_plan *plan, struct lmq_piece *piece,
              struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_quant *own = &plan->records[piece->record].quant;
    const struct lmq_tensor *source = plan->sources[piece->record];
    const struct lmq_quant *quant = &source->quant;
    size_t n_groups = lmq_groups_per_row(piece->n_cols, quant->group_size);
    enum lmq_status status = lmq_checkpoint_read_integers(
        plan->checkpoint, source, piece->row, piece->n_rows, worker->q,
        worker->stored_scales, &worker->scratch, err);

    if (status != LMQ_OK)
        return status;
    if (own->bits == LMQ_BITS_MAX)
        lmq_quant_widen(quant, worker->q, piece->n_rows, piece->n_cols,
                        worker->stored_scales);
    lmq_scales_load(quant->scales, quant->multiplier, worker->stored_scales,
                    piece->n_rows * n_groups, worker->scales);
    if (plan->settings.zeroes)
        piece->n_zeroed = zero_groups(piece, quant, worker);
    for (size_t i = 0; i < piece->n_rows; i++) {
        struct lmq_quant_stats row = {0};
        piece->is_illegal |= !lmq_quant_take_row(
            own, worker->q + i * piece->n_cols, piece->n_cols,
            worker->scales + i * n_groups, &row);
        add_row(piece, &row, 0, 0);
    }
    return LMQ_OK;
}

static enum lmq_status
quantize_floats(struct lmq_plan *plan, struct lmq_piece *piece,
                struct lmq_piece_worker *worker, struct lmq_error *err)
{
    enum lmq_status status = read_piece(plan, piece, worker, err);

    if (status != LMQ_OK)
        return status;
    quantize_piece(plan, piece, worker);
    if (piece->stats.has_nonfinite && plan->settings.zeroes) {
        piece->n_zeroed =
            zero_nonfinite(worker->x, piece->n_rows * piece->n_cols, 0);
        quantize_piece(plan, piece, worker);
    }
    return piece->stats.has_nonfinite ? fail_nonfinite(plan, piece, err)
                                      : LMQ_OK;
}

/* What calibration has made of it. */
static enum lmq_status
take_calibrated(struct lmq_plan *plan, struct lmq_piece *piece,
                struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_quant *quant = &plan->records[piece->record].quant;
    const struct lmq_calibrated *from = &plan->calibrated[piece->record];
    size_t n_cols = (size_t)plan->sources[piece->record]->n_cols;
    size_t row_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t n_groups = lmq_groups_per_row(piece->n_cols, quant->group_size);
    size_t group = (size_t)piece->column / quant->group_size;
    enum lmq_status status = read_piece(plan, piece, worker, err);

    if (status != LMQ_OK)
        return status;
    piece->n_zeroed =
        zero_nonfinite(worker->x, piece->n_rows * piece->n_cols, 0);
    clear_stats(piece);
    for (size_t i = 0; i < piece->n_rows; i++) {
        struct lmq_quant_stats row = {0};
        size_t number = (size_t)piece->row + i;
        int8_t *q = worker->q + i * piece->n_cols;
        float *scales = worker->scales + i * n_groups;
        if (quant->rotation != LMQ_ROTATION_NONE)
            lmq_rotate_row(worker->x + i * piece->n_cols, piece->n_cols,
                           quant->group_size);
        memcpy(q, from->q + number * n_cols + piece->column, piece->n_cols);
        memcpy(scales, from->scales + number * row_groups + group,
               n_groups * sizeof(*scales));
        lmq_quant_measure_row(quant, worker->x + i * piece->n_cols,
                              piece->n_cols, q, scales, &row);
        add_row(piece, &row, number * n_cols + piece->column,
                number * row_groups + group);
    }
    lmq_scales_store(quant->scales, quant->multiplier, worker->scales,
                     piece->n_rows * n_groups, worker->stored_scales);
    return LMQ_OK;
}

static enum lmq_status
convert_matrix(const struct lmq_conversion *work, struct lmq_piece *piece,
               struct lmq_piece_worker *worker, struct lmq_error *err)
{
    struct lmq_plan *plan = work->plan;
    bool is_calibrated = plan->calibrated != NULL &&
                         plan->calibrated[piece->record].q != NULL;
    enum lmq_status status =
        plan->takes[piece->record]
            ? take_integers(plan, piece, worker, err)
        : is_calibrated ? take_calibrated(plan, piece, worker, err)
                        : quantize_floats(plan, piece, worker, err);

    /* What is illegal is done again from floats. */
    if (status != LMQ_OK || piece->is_illegal)
        return status;
    return write_matrix(work, piece, worker, err);
}

/* One float on its way out, in so many bytes; false if the type has none that
 * is finite. */
static bool
store_float(enum lmq_dtype type, float x, unsigned char *bytes,
            struct lmq_quant_stats *stats)
{
    float magnitude = fabsf(x);

    if (type == LMQ_DTYPE_F32) {
        lmq_store_f32le(bytes, x);
    } else {
        float rounded = lmq_dtype_round(type, x), error = fabsf(x - rounded);
        lmq_store_u16le(bytes, type == LMQ_DTYPE_F16 ? lmq_f32_to_f16(x)
                                                     : lmq_f32_to_bf16(x));
        if (!isfinite(rounded))
            return false;
        stats->err_sq += (double)error * (double)error;
        stats->max_err = fmaxf(stats->max_err, error);
    }
    stats->sum_sq += (double)magnitude * (double)magnitude;
    stats->max_abs = fmaxf(stats->max_abs, magnitude);
    return isfinite(magnitude);
}

static enum lmq_status
fail_too_large(const struct lmq_plan *plan, const struct lmq_piece *piece,
               float x, struct lmq_error *err)
{
    const struct lmq_record *record = &plan->records[piece->record];

    lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
             "tensor '%s': %g is too large for %s",
             plan->sources[piece->record]->stored_name, (double)x,
             lmq_dtype_name(record->dtype));
    lmq_hint(err, "'%s=bf16' or '=f32' has room for it", record->name);
    return LMQ_ERR_UNSUPPORTED;
}

/* Whether numbers name the experts of a layer. */
static bool
is_table(const struct lmq_plan *plan, const struct lmq_tensor *source)
{
    const struct lmq_hparams *h = &plan->checkpoint->hparams;
    const struct lmq_place *place = &source->place;

    return plan->checkpoint->has_model &&
           place->role == LMQ_ROLE_TOKEN_EXPERTS && place->layer >= 0 &&
           (uint32_t)place->layer < h->n_layers &&
           lmq_layer_has_table(h, (size_t)place->layer) &&
           source->n_cols == h->n_experts_used;
}

/* What nobody could run is not written. Rows are as wide as the experts of a
 * token, and no piece cuts them. */
static enum lmq_status
check_table(const struct lmq_plan *plan, const struct lmq_piece *piece,
            const struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_tensor *source = plan->sources[piece->record];

    return is_table(plan, source)
               ? lmq_table_check(&plan->checkpoint->hparams, source,
                                 first_element(source, piece), worker->x,
                                 piece->n_rows * piece->n_cols, err)
               : LMQ_OK;
}

/* Floats that stay floats: a census, and out in their type. */
static enum lmq_status
copy_floats(const struct lmq_conversion *work, struct lmq_piece *piece,
            struct lmq_piece_worker *worker, struct lmq_error *err)
{
    struct lmq_plan *plan = work->plan;
    enum lmq_dtype type = plan->records[piece->record].dtype;
    size_t size = lmq_dtype_size(type);
    unsigned char *bytes = (unsigned char *)worker->q;
    uint64_t first = first_element(plan->sources[piece->record], piece);
    size_t n = piece->n_rows * piece->n_cols;
    enum lmq_status status = read_piece(plan, piece, worker, err);

    if (status != LMQ_OK)
        return status;
    if (plan->settings.zeroes)
        piece->n_zeroed = zero_nonfinite(
            worker->x, n, plan->sources[piece->record]->view.plus);
    for (size_t i = 0; i < piece->n_rows; i++) {
        struct lmq_quant_stats row = {.n = piece->n_cols};
        size_t at = i * piece->n_cols, j = 0;
        while (j < piece->n_cols &&
               store_float(type, worker->x[at + j], bytes + size * (at + j),
                           &row))
            j++;
        if (j < piece->n_cols && isfinite(worker->x[at + j]))
            return fail_too_large(plan, piece, worker->x[at + j], err);
        row.has_nonfinite = j < piece->n_cols;
        row.nonfinite_at = j;
        add_row(piece, &row, first + at, 0);
        if (row.has_nonfinite)
            return fail_nonfinite(plan, piece, err);
    }
    status = check_table(plan, piece, worker, err);
    return status == LMQ_OK ? write_run(work, piece, size, bytes, err)
                            : status;
}

static enum lmq_status
copy_integers(const struct lmq_conversion *work, struct lmq_piece *piece,
              struct lmq_piece_worker *worker, struct lmq_error *err)
{
    struct lmq_plan *plan = work->plan;
    size_t size = lmq_dtype_size(plan->records[piece->record].dtype);
    const struct lmq_tensor *source = plan->sources[piece->record];
    enum lmq_status status = LMQ_OK;

    if (is_table(plan, source)) {
        status = read_piece(plan, piece, worker, err);
        if (status == LMQ_OK)
            status = check_table(plan, piece, worker, err);
    }
    if (status == LMQ_OK)
        status = lmq_checkpoint_read_raw(
            plan->checkpoint, source, first_element(source, piece),
            piece->n_rows * piece->n_cols, worker->q, err);
    return status == LMQ_OK
               ? write_run(work, piece, size, worker->q, err)
               : status;
}

enum lmq_status
lmq_piece_convert(const struct lmq_conversion *work, struct lmq_piece *piece,
                  struct lmq_piece_worker *worker, struct lmq_error *err)
{
    const struct lmq_record *record = &work->plan->records[piece->record];
    enum lmq_status status;

    if (record->encoding == LMQ_ENCODING_Q8)
        status = convert_matrix(work, piece, worker, err);
    else if (lmq_dtype_is_float(record->dtype))
        status = copy_floats(work, piece, worker, err);
    else
        status = copy_integers(work, piece, worker, err);
    return status == LMQ_OK ? lmq_piece_digest_rows(work, piece, worker, err)
                            : status;
}
