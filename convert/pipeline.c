/*
 * pipeline.c - pieces of tensors through a few buffers per thread.
 *
 * Tensors are cut into pieces of a fixed size, which are worked on by all
 * threads; their checksums and statistics are merged in order (base/tasks.h).
 */
#include "config.h"

#include "convert/pipeline.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/tasks.h"
#include "formats/lmq/lmq_digests.h"

/* Elements of a piece: small enough for the second-level cache with all of
 * its buffers, large enough that system calls do not count. */
#define PIECE LMQ_PIECE
/* Pieces that are worked on between two merges. */
#define WINDOW 256
/* What all buffers may take. */
#define BUFFERS_MAX ((size_t)96 << 20)

/* A rectangle of a tensor. */
struct piece {
    size_t part;   /* of the plan: where it goes */
    size_t record; /* of the plan */
    uint64_t row, column; /* the first */
    size_t n_rows, n_cols;
    bool is_last; /* of its part */
    bool is_illegal; /* integers that cannot be taken as they are */
    /* The result: */
    uint64_t sizes[LMQ_N_EXTENTS];
    uint32_t crcs[LMQ_N_EXTENTS];
    struct lmq_quant_stats stats;
    uint64_t n_zeroed;
    unsigned char *leaves; /* digests, if the container gets them */
};

/* One thread's buffers. */
struct worker {
    struct lmq_sha256 *sha; /* with digests */
    struct lmq_scratch scratch;
    float *x;
    int8_t *q;
    float *scales;
    unsigned char *stored_scales;
    unsigned char *tile_values, *tile_scales;
};

struct pipeline {
    struct lmq_plan *plan;
    struct lmq_output *const *outputs; /* of the members */
    struct lmq_counter counter;
    struct lmq_workers workers;
    struct piece *window;
    unsigned char *leaves; /* (WINDOW, n_leaves, LMQ_SHA256_SIZE) */
    size_t n_leaves;
    /* Where the next piece begins, and the part where the last one ends. */
    size_t index, end;
    uint64_t row, column;
    bool has_begun; /* the part `index`: row and column are within it */
    /* What was merged, first of the tensor that is being worked on: */
    struct lmq_quant_stats total;
    struct lmq_quant_stats part_total; /* of what of it stands in one file */
    uint64_t n_tensor_zeroed;
    bool is_illegal;
    uint64_t n_zeroed;
    bool *is_due; /* per record: to be done again, in another way */
    struct lmq_gather gather;
};

/* ---- Cutting ---- */

/* Integers that are taken come in whole rows, since that is how they are read,
 * and from tiles at best 16 of them. */
static struct lmq_rectangle
taken_rows(const struct lmq_tensor *source, uint64_t row, uint64_t end_row)
{
    uint64_t n_units = PIECE / source->n_cols / LMQ_TILE_ROWS;
    uint64_t rows = n_units == 0 ? LMQ_TILE_ROWS
                                 : lmq_u64_min(n_units, LMQ_PIECE_LEAVES) *
                                       LMQ_TILE_ROWS;

    return (struct lmq_rectangle){
        .row = row,
        .n_rows = (size_t)lmq_u64_min(rows, end_row - row),
        .n_cols = (size_t)source->n_cols};
}

static struct lmq_rectangle
rectangle_at(const struct lmq_record *record, const struct lmq_tensor *source,
             bool is_taken, uint64_t end_row, uint64_t row, uint64_t column)
{
    return is_taken ? taken_rows(source, row, end_row)
                    : lmq_rectangle_at(record->layout, end_row,
                                       source->n_cols, row, column);
}

/* The piece of a part that begins at (row, column). */
static struct piece
cut(const struct lmq_plan *plan, size_t index, uint64_t row, uint64_t column)
{
    const struct lmq_plan_part *part = &plan->parts[index];
    const struct lmq_tensor *source = plan->sources[part->record];
    uint64_t end_row = part->first_row + part->n_rows;
    struct lmq_rectangle found =
        rectangle_at(&plan->records[part->record], source,
                     plan->takes[part->record], end_row, row, column);

    return (struct piece){
        .part = index,
        .record = part->record,
        .row = row,
        .column = column,
        .n_rows = found.n_rows,
        .n_cols = found.n_cols,
        .is_last = row + found.n_rows == end_row &&
                   column + found.n_cols == source->n_cols,
    };
}

static struct lmq_rectangle
rectangle_of(const struct piece *piece)
{
    return (struct lmq_rectangle){piece->row, piece->column, piece->n_rows,
                                  piece->n_cols};
}

/* ---- One piece ---- */

static uint64_t
first_element(const struct lmq_tensor *source, const struct piece *piece)
{
    return piece->row * source->n_cols + piece->column;
}

/* While it is in the cache, and in rows whatever the layout. */
static enum lmq_status
digest_piece(struct pipeline *pipeline, struct piece *piece,
             struct worker *worker, struct lmq_error *err)
{
    const struct lmq_record *record = &pipeline->plan->records[piece->record];
    const struct lmq_tensor *source = pipeline->plan->sources[piece->record];
    struct lmq_rectangle part = rectangle_of(piece);
    struct lmq_rows rows = {.values = worker->q,
                            .value_size = lmq_dtype_size(record->dtype)};

    if (piece->leaves == NULL)
        return LMQ_OK;
    if (record->encoding == LMQ_ENCODING_Q8)
        rows = (struct lmq_rows){worker->q, 1, worker->stored_scales,
                                 lmq_scale_size(record->quant.scales),
                                 record->quant.group_size};
    return lmq_piece_digest(worker->sha, &part, source->n_cols, &rows,
                            piece->leaves, err);
}

static enum lmq_status
read_piece(struct lmq_plan *plan, const struct piece *piece,
           struct worker *worker, struct lmq_error *err)
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

static void
quantize_piece(const struct lmq_plan *plan, struct piece *piece,
               struct worker *worker)
{
    const struct lmq_record *record = &plan->records[piece->record];
    const struct lmq_tensor *source = plan->sources[piece->record];
    unsigned group = record->quant.group_size;
    size_t n_groups = lmq_groups_per_row(piece->n_cols, group);
    uint64_t row_groups = lmq_groups_per_row((size_t)source->n_cols, group);

    piece->stats = (struct lmq_quant_stats){0};
    for (size_t i = 0; i < piece->n_rows; i++) {
        struct lmq_quant_stats row = {0};
        uint64_t number = piece->row + i;
        lmq_quantize_row(&record->quant, worker->x + i * piece->n_cols,
                         piece->n_cols, worker->q + i * piece->n_cols,
                         worker->scales + i * n_groups, &row);
        lmq_quant_stats_merge(&piece->stats, &row,
                              number * source->n_cols + piece->column,
                              number * row_groups + piece->column / group);
        if (row.has_nonfinite)
            return;
    }
    lmq_scales_store(record->quant.scales, record->quant.multiplier,
                     worker->scales, piece->n_rows * n_groups,
                     worker->stored_scales);
}

/* What a piece became, `at` bytes into an extent of its part. */
static enum lmq_status
write_part(struct pipeline *pipeline, struct piece *piece, size_t extent,
           const void *bytes, uint64_t at, uint64_t size,
           struct lmq_error *err)
{
    const struct lmq_plan_part *part = &pipeline->plan->parts[piece->part];
    const struct lmq_record *stored = lmq_plan_stored(pipeline->plan, part);

    piece->sizes[extent] = size;
    piece->crcs[extent] = lmq_crc32(0, bytes, (size_t)size);
    return lmq_output_write(pipeline->outputs[part->member],
                            stored->extents[extent].offset + at, bytes,
                            (size_t)size, err);
}

/* The row of a piece within its part. */
static uint64_t
row_in_part(const struct pipeline *pipeline, const struct piece *piece)
{
    return piece->row - pipeline->plan->parts[piece->part].first_row;
}

struct sizes {
    uint64_t values, scales;
};

/* Of a part of the tensor, for all of which the plan has room. */
static struct sizes
sizes_of(const struct lmq_record *record, uint64_t n_rows, uint64_t n_cols)
{
    struct sizes sizes;
    bool fits = lmq_layout_sizes(record->layout, n_rows, n_cols,
                                 record->quant.group_size,
                                 record->quant.scales, &sizes.values,
                                 &sizes.scales);

    assert(fits);
    (void)fits;
    return sizes;
}

static enum lmq_status
write_matrix(struct pipeline *pipeline, struct piece *piece,
             const struct worker *worker, struct lmq_error *err)
{
    const struct lmq_record *record = &pipeline->plan->records[piece->record];
    const struct lmq_tensor *source = pipeline->plan->sources[piece->record];
    struct sizes before =
        sizes_of(record, row_in_part(pipeline, piece), source->n_cols);
    struct sizes beside = sizes_of(record, 1, piece->column);
    struct sizes own = sizes_of(record, piece->n_rows, piece->n_cols);
    const void *values = worker->q, *scales = worker->stored_scales;

    if (record->layout == LMQ_LAYOUT_TILES) {
        lmq_tiles_pack(worker->q, piece->n_cols, worker->stored_scales,
                       piece->n_rows, piece->n_cols, record->quant.group_size,
                       record->quant.scales, worker->tile_values,
                       worker->tile_scales);
        values = worker->tile_values;
        scales = worker->tile_scales;
    }
    enum lmq_status status =
        write_part(pipeline, piece, LMQ_VALUES, values,
                   before.values + beside.values, own.values, err);
    if (status == LMQ_OK)
        status = write_part(pipeline, piece, LMQ_SCALES, scales,
                            before.scales + beside.scales, own.scales, err);
    return status;
}

/* Of elements that are kept, so many bytes each. */
static enum lmq_status
write_run(struct pipeline *pipeline, struct piece *piece, size_t size,
          const void *bytes, struct lmq_error *err)
{
    uint64_t n_cols = pipeline->plan->sources[piece->record]->n_cols;
    uint64_t row = row_in_part(pipeline, piece);

    return write_part(pipeline, piece, LMQ_VALUES, bytes,
                      size * (row * n_cols + piece->column),
                      size * piece->n_rows * piece->n_cols, err);
}

static uint64_t
zero_nonfinite(float *x, size_t n)
{
    uint64_t n_zeroed = 0;

    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) {
            x[i] = 0;
            n_zeroed++;
        }
    return n_zeroed;
}

static enum lmq_status
fail_nonfinite(const struct lmq_plan *plan, const struct piece *piece,
               struct lmq_error *err)
{
    const struct lmq_tensor *source = plan->sources[piece->record];
    uint64_t n_cols;
    uint64_t at = lmq_tensor_stored_element(
        source, piece->stats.nonfinite_at, &n_cols);

    lmq_fail(err, LMQ_ERR_NONFINITE, at,
             "tensor '%s': NaN or infinity at element %" PRIu64
             " (row %" PRIu64 ", column %" PRIu64 ")",
             source->stored_name, at, at / n_cols, at % n_cols);
    lmq_hint(err, ".on_nonfinite=zero puts 0 in its place; but find out "
                  "where it comes from");
    return LMQ_ERR_NONFINITE;
}

/* The source's own integers and scales. */
static enum lmq_status
take_integers(struct lmq_plan *plan, struct piece *piece,
              struct worker *worker, struct lmq_error *err)
{
    const struct lmq_tensor *source = plan->sources[piece->record];
    const struct lmq_quant *quant = &source->quant;
    size_t n_groups = lmq_groups_per_row(piece->n_cols, quant->group_size);
    enum lmq_status status = lmq_checkpoint_read_integers(
        plan->checkpoint, source, piece->row, piece->n_rows, worker->q,
        worker->stored_scales, &worker->scratch, err);

    if (status != LMQ_OK)
        return status;
    lmq_scales_load(quant->scales, quant->multiplier, worker->stored_scales,
                    piece->n_rows * n_groups, worker->scales);
    for (size_t i = 0; i < piece->n_rows; i++)
        piece->is_illegal |= !lmq_quant_take_row(
            quant->group_size, worker->q + i * piece->n_cols, piece->n_cols,
            worker->scales + i * n_groups, &piece->stats);
    return LMQ_OK;
}

static enum lmq_status
quantize_floats(struct lmq_plan *plan, struct piece *piece,
                struct worker *worker, struct lmq_error *err)
{
    enum lmq_status status = read_piece(plan, piece, worker, err);

    if (status != LMQ_OK)
        return status;
    quantize_piece(plan, piece, worker);
    if (piece->stats.has_nonfinite && plan->settings.zeroes) {
        piece->n_zeroed =
            zero_nonfinite(worker->x, piece->n_rows * piece->n_cols);
        quantize_piece(plan, piece, worker);
    }
    return piece->stats.has_nonfinite ? fail_nonfinite(plan, piece, err)
                                      : LMQ_OK;
}

static enum lmq_status
convert_matrix(struct pipeline *pipeline, struct piece *piece,
               struct worker *worker, struct lmq_error *err)
{
    struct lmq_plan *plan = pipeline->plan;
    enum lmq_status status =
        plan->takes[piece->record]
            ? take_integers(plan, piece, worker, err)
            : quantize_floats(plan, piece, worker, err);

    /* What is illegal is done again from floats. */
    if (status != LMQ_OK || piece->is_illegal)
        return status;
    return write_matrix(pipeline, piece, worker, err);
}

/* Floats that are kept: a census, and out as float32. */
static enum lmq_status
copy_floats(struct pipeline *pipeline, struct piece *piece,
            struct worker *worker, struct lmq_error *err)
{
    struct lmq_plan *plan = pipeline->plan;
    unsigned char *bytes = (unsigned char *)worker->q;
    uint64_t first = first_element(plan->sources[piece->record], piece);
    size_t n = piece->n_rows * piece->n_cols;
    enum lmq_status status = read_piece(plan, piece, worker, err);

    if (status != LMQ_OK)
        return status;
    if (plan->settings.zeroes)
        piece->n_zeroed = zero_nonfinite(worker->x, n);
    struct lmq_quant_stats *stats = &piece->stats;
    for (size_t i = 0; i < n; i++) {
        float magnitude = fabsf(worker->x[i]);
        if (!isfinite(magnitude)) {
            stats->has_nonfinite = true;
            stats->nonfinite_at = first + i;
            return fail_nonfinite(plan, piece, err);
        }
        stats->sum_sq += (double)magnitude * (double)magnitude;
        stats->max_abs = fmaxf(stats->max_abs, magnitude);
        lmq_store_f32le(bytes + 4 * i, worker->x[i]);
    }
    stats->n = n;
    return write_run(pipeline, piece, 4, bytes, err);
}

static enum lmq_status
copy_integers(struct pipeline *pipeline, struct piece *piece,
              struct worker *worker, struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->plan;
    size_t size = lmq_dtype_size(plan->records[piece->record].dtype);
    const struct lmq_tensor *source = plan->sources[piece->record];
    enum lmq_status status = lmq_checkpoint_read_raw(
        plan->checkpoint, source, first_element(source, piece),
        piece->n_rows * piece->n_cols, worker->q, err);

    return status == LMQ_OK
               ? write_run(pipeline, piece, size, worker->q, err)
               : status;
}

static enum lmq_status
convert_piece(void *context, size_t slot, void *state, struct lmq_error *err)
{
    struct pipeline *pipeline = context;
    struct piece *piece = &pipeline->window[slot];
    const struct lmq_record *record = &pipeline->plan->records[piece->record];

    enum lmq_status status;

    if (record->encoding == LMQ_ENCODING_Q8)
        status = convert_matrix(pipeline, piece, state, err);
    else if (record->dtype == LMQ_DTYPE_F32)
        status = copy_floats(pipeline, piece, state, err);
    else
        status = copy_integers(pipeline, piece, state, err);
    return status == LMQ_OK ? digest_piece(pipeline, piece, state, err)
                            : status;
}

/* ---- All of them, in order ---- */

static bool
next_piece(void *context, size_t slot)
{
    struct pipeline *pipeline = context;
    const struct lmq_plan *plan = pipeline->plan;
    struct piece *piece = &pipeline->window[slot];

    if (pipeline->index == pipeline->end)
        return false;
    *piece = pipeline->has_begun
                 ? cut(plan, pipeline->index, pipeline->row, pipeline->column)
                 : cut(plan, pipeline->index,
                       plan->parts[pipeline->index].first_row, 0);
    if (pipeline->leaves != NULL)
        piece->leaves =
            pipeline->leaves + slot * pipeline->n_leaves * LMQ_SHA256_SIZE;
    struct lmq_rectangle here = rectangle_of(piece);
    lmq_rectangle_next(&here, plan->sources[piece->record]->n_cols,
                       &pipeline->row, &pipeline->column);
    pipeline->has_begun = !piece->is_last;
    pipeline->index += piece->is_last;
    return true;
}

static void
set_statistics(struct lmq_record *record, const struct lmq_quant_stats *total)
{
    record->max_abs = total->max_abs;
    record->max_err = total->max_err;
    record->sum_sq = total->sum_sq;
    record->err_sq = total->err_sq;
    record->worst_err_sq = total->worst_err_sq;
    record->worst_group = total->worst_group;
}

static bool
is_last_part(const struct lmq_plan *plan, size_t index)
{
    return index + 1 == plan->n_parts ||
           plan->parts[index + 1].record != plan->parts[index].record;
}

/* Integers that turn out to be illegal in a container are not taken; scales
 * that turn out to need a multiplier get it. Either is done again. */
static void
end_record(struct pipeline *pipeline, size_t index)
{
    struct lmq_plan *plan = pipeline->plan;
    struct lmq_quant *quant = &plan->records[index].quant;
    float multiplier =
        lmq_choose_multiplier(quant->scales, pipeline->total.max_scale);
    bool is_quantized =
        plan->records[index].encoding == LMQ_ENCODING_Q8 &&
        !plan->takes[index];

    pipeline->is_due[index] =
        pipeline->is_illegal ||
        (is_quantized && multiplier != 1 && quant->multiplier == 1);
    if (pipeline->is_illegal) {
        plan->takes[index] = false;
        quant->multiplier = 1;
        lmq_notes_add(&plan->notes,
                      "tensor '%s' has -128, or scales that are negative, "
                      "tiny or not finite: it is quantized again",
                      plan->sources[index]->stored_name);
    } else if (pipeline->is_due[index]) {
        quant->multiplier = multiplier;
    } else {
        pipeline->n_zeroed += pipeline->n_tensor_zeroed;
    }
    pipeline->total = (struct lmq_quant_stats){0};
    pipeline->n_tensor_zeroed = 0;
    pipeline->is_illegal = false;
}

static enum lmq_status
merge_leaves(struct pipeline *pipeline, const struct piece *piece,
             struct lmq_error *err)
{
    struct lmq_plan *plan = pipeline->plan;
    const struct lmq_plan_part *part = &plan->parts[piece->part];
    const struct lmq_digests *digests = &plan->members[part->member].digests;
    struct lmq_rectangle here = rectangle_of(piece);
    enum lmq_status status = LMQ_OK;

    if (piece->row == 0 && piece->column == 0)
        status = lmq_gather_begin(
            &pipeline->gather, &plan->records[piece->record],
            digests->chunk_log2,
            plan->digests.tensors + piece->record * LMQ_SHA256_SIZE, err);
    if (piece->row == part->first_row && piece->column == 0)
        lmq_gather_begin_part(&pipeline->gather,
                              digests->chunks + digests->first[part->stored] *
                                                    LMQ_SHA256_SIZE);
    if (status == LMQ_OK)
        status = lmq_gather_add(&pipeline->gather, &here, piece->leaves, err);
    if (status == LMQ_OK && piece->is_last)
        status = lmq_gather_end_part(&pipeline->gather, err);
    return status == LMQ_OK && piece->is_last && is_last_part(plan, piece->part)
               ? lmq_gather_end(&pipeline->gather, err)
               : status;
}

static enum lmq_status
merge_piece(void *context, size_t slot, struct lmq_error *err)
{
    struct pipeline *pipeline = context;
    const struct lmq_plan *plan = pipeline->plan;
    const struct piece *piece = &pipeline->window[slot];
    struct lmq_record *stored =
        lmq_plan_stored(plan, &plan->parts[piece->part]);

    if (piece->leaves != NULL) {
        enum lmq_status status = merge_leaves(pipeline, piece, err);
        if (status != LMQ_OK)
            return status;
    }
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        stored->extents[i].crc = (uint32_t)crc32_combine(
            stored->extents[i].crc, piece->crcs[i], (off_t)piece->sizes[i]);
    lmq_quant_stats_merge(&pipeline->total, &piece->stats, 0, 0);
    lmq_quant_stats_merge(&pipeline->part_total, &piece->stats, 0, 0);
    pipeline->counter.done += piece->n_rows * piece->n_cols;
    pipeline->n_tensor_zeroed += piece->n_zeroed;
    pipeline->is_illegal |= piece->is_illegal;
    if (!piece->is_last)
        return LMQ_OK;
    set_statistics(stored, &pipeline->part_total);
    pipeline->part_total = (struct lmq_quant_stats){0};
    set_statistics(&plan->records[piece->record], &pipeline->total);
    if (is_last_part(plan, piece->part))
        end_record(pipeline, piece->record);
    return LMQ_OK;
}

/* Converts the parts [index, end), from the first of a record to the last of
 * one. */
static enum lmq_status
run_parts(struct pipeline *pipeline, size_t index, size_t end,
            struct lmq_error *err)
{
    const struct lmq_tasks tasks = {
        .window = WINDOW,
        .context = pipeline,
        .next = next_piece,
        .piece = convert_piece,
        .merge = merge_piece,
        .counter = &pipeline->counter,
    };

    pipeline->index = index;
    pipeline->end = end;
    return lmq_tasks_run(&tasks, &pipeline->workers, err);
}

/* ---- Buffers ---- */

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_sha256_free(worker->sha);
    lmq_scratch_free(&worker->scratch);
    lmq_mem_free(worker->x);
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->stored_scales);
    lmq_mem_free(worker->tile_values);
    lmq_mem_free(worker->tile_scales);
}

/* What is needed of the buffers, besides PIECE. */
struct room {
    size_t n_values; /* that are taken */
    size_t n_scales, n_tile;
    size_t n_leaves; /* of a piece */
    bool has_digests;
};

/* A piece of narrow rows has a scale for each, and padding to a whole group
 * in tiles. */
static void
make_room(struct room *room, const struct lmq_plan *plan, size_t index,
          bool is_taken)
{
    const struct lmq_record *record = &plan->records[index];
    struct lmq_rectangle piece = rectangle_at(
        record, plan->sources[index], is_taken, record->n_rows, 0, 0);
    size_t rows = lmq_tiles_count(piece.n_rows) * LMQ_TILE_ROWS;
    size_t n = rows *
               lmq_groups_per_row(piece.n_cols, record->quant.group_size);
    room->n_scales = lmq_size_max(n, room->n_scales);
    room->n_leaves = lmq_size_max(
        lmq_count_leaves(&piece, plan->sources[index]->n_cols),
        room->n_leaves);
    if (is_taken)
        room->n_values = lmq_size_max(rows * piece.n_cols, room->n_values);
}

/* What is taken may turn out to be quantized. */
static struct room
room_for(const struct lmq_plan *plan)
{
    struct room room = {.n_scales = 1,
                        .n_tile = 1,
                        .n_leaves = LMQ_PIECE_LEAVES,
                        .has_digests = plan->settings.has_digests};

    for (size_t i = 0; i < plan->n_records; i++) {
        if (plan->records[i].encoding != LMQ_ENCODING_Q8)
            continue;
        make_room(&room, plan, i, false);
        if (plan->takes[i])
            make_room(&room, plan, i, true);
    }
    if (plan->settings.layout == LMQ_LAYOUT_TILES)
        room.n_tile = room.n_scales * plan->settings.quant.group_size;
    return room;
}

static bool
make_worker(void *state, const void *context)
{
    const struct room *room = context;
    struct worker *worker = state;

    if (room->has_digests) {
        worker->sha = lmq_sha256_new();
        if (worker->sha == NULL)
            return false;
    }
    worker->x = lmq_mem_aligned(PIECE, sizeof(float));
    /* Also for floats and whole numbers on their way. */
    worker->q = lmq_mem_aligned(lmq_size_max(8 * PIECE, room->n_values), 1);
    worker->scales = lmq_mem_aligned(room->n_scales, sizeof(float));
    worker->stored_scales = lmq_mem_aligned(room->n_scales, 4);
    worker->tile_values = lmq_mem_aligned(room->n_tile, 1);
    worker->tile_scales = lmq_mem_aligned(room->n_scales, 4);
    return worker->x != NULL && worker->q != NULL && worker->scales != NULL &&
           worker->stored_scales != NULL && worker->tile_values != NULL &&
           worker->tile_scales != NULL;
}

static enum lmq_status
make_buffers(struct pipeline *pipeline, int threads, struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->plan;
    struct room room = room_for(plan);
    /* x, raw bytes up to float64, kept floats or integers; those that are
     * taken, and tiles that they are taken out of; scales, tiles */
    size_t each = PIECE * (4 + 8 + 8) + room.n_values * (1 + 2) +
                  room.n_scales * (4 + 4 + 4) + room.n_tile;
    size_t pieces = (size_t)lmq_u64_min(
        pipeline->counter.total / PIECE + plan->n_parts, WINDOW);

    pipeline->window = calloc(WINDOW, sizeof(*pipeline->window));
    pipeline->is_due = calloc(plan->n_records + 1, sizeof(bool));
    if (pipeline->window == NULL || pipeline->is_due == NULL)
        return lmq_fail_nomem(err);
    if (room.has_digests) {
        pipeline->n_leaves = room.n_leaves;
        pipeline->leaves =
            calloc((size_t)WINDOW * room.n_leaves, LMQ_SHA256_SIZE);
        if (pipeline->leaves == NULL)
            return lmq_fail_nomem(err);
    }
    return lmq_workers_open(&pipeline->workers, threads,
                            lmq_size_min(BUFFERS_MAX / each + 1, pieces),
                            sizeof(struct worker), make_worker, clear_worker,
                            &room, err);
}

/* ---- All of it ---- */

/* Again, in the way that was found to be needed. */
static enum lmq_status
redo_record(struct pipeline *pipeline, size_t first, size_t end,
            struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->plan;

    for (size_t i = first; i < end; i++) {
        struct lmq_record *stored = lmq_plan_stored(plan, &plan->parts[i]);
        stored->quant = plan->records[plan->parts[i].record].quant;
        stored->extents[LMQ_VALUES].crc = stored->extents[LMQ_SCALES].crc = 0;
    }
    return run_parts(pipeline, first, end, err);
}

static enum lmq_status
redo_records(struct pipeline *pipeline, struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->plan;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0, end; i < plan->n_parts && status == LMQ_OK; i = end) {
        for (end = i; !is_last_part(plan, end); end++)
            continue;
        end++;
        while (status == LMQ_OK && pipeline->is_due[plan->parts[i].record])
            status = redo_record(pipeline, i, end, err);
    }
    return status;
}

enum lmq_status
lmq_pipeline_run(struct lmq_plan *plan, struct lmq_output *const *outputs,
                 int threads, const struct lmq_progress *progress,
                 uint64_t *n_zeroed, struct lmq_error *err)
{
    struct pipeline pipeline = {
        .plan = plan,
        .outputs = outputs,
        .counter = {.progress = progress, .stage = "converting"},
    };

    for (size_t i = 0; i < plan->n_records; i++)
        if (plan->records[i].encoding != LMQ_ENCODING_ALIAS)
            pipeline.counter.total += plan->sources[i]->n_elements;
    for (size_t i = 0; i < plan->checkpoint->n_files; i++)
        lmq_input_keep_digests(plan->checkpoint->files[i]);
    enum lmq_status status = make_buffers(&pipeline, threads, err);
    if (status == LMQ_OK)
        status = run_parts(&pipeline, 0, plan->n_parts, err);
    if (status == LMQ_OK)
        status = redo_records(&pipeline, err);
    *n_zeroed = pipeline.n_zeroed;
    lmq_workers_close(&pipeline.workers);
    lmq_gather_free(&pipeline.gather);
    free(pipeline.leaves);
    free(pipeline.window);
    free(pipeline.is_due);
    return status;
}
