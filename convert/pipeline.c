/*
 * pipeline.c - pieces of tensors through a few buffers per thread.
 *
 * Tensors are cut into pieces of a fixed size, which are worked on by all
 * threads; their checksums and statistics are merged in order
 * (base/threads/tasks.h).
 */
#include "config.h"

#include "convert/pipeline.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "convert/calibrate/calibrate.h"
#include "convert/members.h"
#include "convert/sets/copy_piece.h"
#include "formats/lmq/lmq_digests.h"

/* Elements of a piece: small enough for the second-level cache with all of
 * its buffers, large enough that system calls do not count. */
#define PIECE LMQ_PIECE
/* Pieces that are worked on between two merges. */
#define WINDOW 256
/* What all buffers may take. */
#define BUFFERS_MAX ((size_t)96 << 20)

struct pipeline {
    struct lmq_conversion work;
    struct lmq_counter counter;
    struct lmq_workers workers;
    struct lmq_piece *window;
    unsigned char *leaves; /* (WINDOW, n_leaves, LMQ_SHA256_SIZE) */
    size_t n_leaves;
    /* Where the next piece begins, and the part where the last one ends. */
    size_t index, end;
    uint64_t row, column;
    bool has_begun; /* the part `index`: row and column are within it */
    /* What was merged, first of the tensor that is being worked on: */
    struct lmq_quant_stats total;
    struct lmq_exact_sum sum_sq, err_sq; /* of it too, in no order */
    struct lmq_copy_check check; /* of a container that is copied */
    uint64_t n_tensor_zeroed;
    bool is_illegal;
    uint64_t n_zeroed;
    bool *is_due; /* per record: to be done again, in another way */
    struct lmq_gather gather;
    struct lmq_journal *journal; /* or NULL */
    size_t head; /* the record of it that is calibrated, or SIZE_MAX */
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
static struct lmq_piece
cut(const struct lmq_plan *plan, size_t index, uint64_t row, uint64_t column)
{
    const struct lmq_plan_part *part = &plan->parts[index];
    const struct lmq_tensor *source = plan->sources[part->record];
    uint64_t end_row = part->first_row + part->n_rows, end = end_row;

    if (plan->copied != NULL)
        end = lmq_u64_min(end, lmq_copy_end(plan, part->record, row));
    struct lmq_rectangle found =
        rectangle_at(&plan->records[part->record], source,
                     plan->takes[part->record], end, row, column);

    return (struct lmq_piece){
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

/* ---- All of them, in order ---- */

static enum lmq_status
convert_piece(void *context, size_t slot, void *state, struct lmq_error *err)
{
    struct pipeline *pipeline = context;

    return pipeline->work.plan->copied != NULL
               ? lmq_copy_piece(&pipeline->work, &pipeline->window[slot],
                                state, err)
               : lmq_piece_convert(&pipeline->work, &pipeline->window[slot],
                                   state, err);
}

/* All of a tensor is converted if some of its rows are written: what all its
 * parts have in common depends on all of them. */
static bool
is_wanted(const struct pipeline *pipeline, size_t index)
{
    const struct lmq_plan *plan = pipeline->work.plan;

    for (const struct lmq_plan_part *part = lmq_plan_first_part(plan, index);
         part < plan->parts + plan->n_parts && part->record == index; part++)
        if (pipeline->work.outputs[part->member] != NULL && !part->is_done)
            return true;
    return false;
}

static bool
next_piece(void *context, size_t slot)
{
    struct pipeline *pipeline = context;
    const struct lmq_plan *plan = pipeline->work.plan;
    struct lmq_piece *piece = &pipeline->window[slot];

    while (!pipeline->has_begun && pipeline->index < pipeline->end &&
           !is_wanted(pipeline, plan->parts[pipeline->index].record))
        pipeline->index++;
    if (pipeline->index == pipeline->end)
        return false;
    *piece = pipeline->has_begun
                 ? cut(plan, pipeline->index, pipeline->row, pipeline->column)
                 : cut(plan, pipeline->index,
                       plan->parts[pipeline->index].first_row, 0);
    if (pipeline->leaves != NULL)
        piece->leaves =
            pipeline->leaves + slot * pipeline->n_leaves * LMQ_SHA256_SIZE;
    struct lmq_rectangle here = lmq_piece_rectangle(piece);
    lmq_rectangle_next(&here, plan->sources[piece->record]->n_cols,
                       &pipeline->row, &pipeline->column);
    pipeline->has_begun = !piece->is_last;
    pipeline->index += piece->is_last;
    return true;
}

static void
set_statistics(struct pipeline *pipeline, size_t index)
{
    struct lmq_record *record = &pipeline->work.plan->records[index];
    const struct lmq_quant_stats *total = &pipeline->total;

    record->max_abs = total->max_abs;
    record->max_err = total->max_err;
    record->sum_sq = lmq_exact_round(&pipeline->sum_sq);
    record->err_sq = lmq_exact_round(&pipeline->err_sq);
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
static enum lmq_status
end_record(struct pipeline *pipeline, size_t index, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    struct lmq_plan *plan = pipeline->work.plan;
    struct lmq_quant *quant = &plan->records[index].quant;
    float multiplier =
        lmq_choose_multiplier(quant->scales, pipeline->total.max_scale);
    bool is_quantized =
        plan->records[index].encoding == LMQ_ENCODING_Q8 &&
        !plan->takes[index] &&
        (plan->calibrated == NULL || plan->calibrated[index].q == NULL);

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
        set_statistics(pipeline, index);
        lmq_plan_spread(plan, index);
        if (pipeline->journal != NULL)
            status = lmq_journal_add(pipeline->journal, plan, index,
                                     pipeline->n_tensor_zeroed, err);
    }
    pipeline->total = (struct lmq_quant_stats){0};
    pipeline->sum_sq = pipeline->err_sq = (struct lmq_exact_sum){0};
    pipeline->n_tensor_zeroed = 0;
    pipeline->is_illegal = false;
    return status;
}

static enum lmq_status
merge_leaves(struct pipeline *pipeline, const struct lmq_piece *piece,
             struct lmq_error *err)
{
    struct lmq_plan *plan = pipeline->work.plan;
    const struct lmq_plan_part *part = &plan->parts[piece->part];
    const struct lmq_digests *digests = &plan->members[part->member].digests;
    struct lmq_rectangle here = lmq_piece_rectangle(piece);
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
    const struct lmq_plan *plan = pipeline->work.plan;
    const struct lmq_piece *piece = &pipeline->window[slot];
    struct lmq_record *stored =
        lmq_plan_stored(plan, &plan->parts[piece->part]);

    if (piece->leaves != NULL) {
        enum lmq_status status = merge_leaves(pipeline, piece, err);
        if (status != LMQ_OK)
            return status;
    }
    bool is_first = piece->column == 0 &&
                    piece->row == plan->parts[piece->part].first_row;
    for (size_t i = 0; i < LMQ_N_EXTENTS && is_first; i++)
        stored->extents[i].crc = 0;
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        stored->extents[i].crc = (uint32_t)crc32_combine(
            stored->extents[i].crc, piece->crcs[i], (off_t)piece->sizes[i]);
    pipeline->counter.done += piece->n_rows * piece->n_cols;
    if (plan->copied != NULL) /* its statistics too */
        return lmq_copy_check_piece(&pipeline->check, plan, piece, err);
    lmq_quant_stats_merge(&pipeline->total, &piece->stats, 0, 0);
    lmq_exact_merge(&pipeline->sum_sq, &piece->sum_sq);
    lmq_exact_merge(&pipeline->err_sq, &piece->err_sq);
    pipeline->n_tensor_zeroed += piece->n_zeroed;
    pipeline->is_illegal |= piece->is_illegal;
    if (!piece->is_last || !is_last_part(plan, piece->part))
        return LMQ_OK;
    return end_record(pipeline, piece->record, err);
}

/* Converts the parts [index, end), from the first of a record to the last of
 * one. All of them in one go: small tensors share windows. That, rectangles,
 * and a merge that can fail are why this is lmq_tasks_run() and not
 * lmq_tasks_over(), whose ranges are runs of one whole. */
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

/* ---- With calibration ---- */

/* The layer of a part; the head comes behind them, if a text decides what it
 * becomes; -1: it is in none. */
static int32_t
layer_of(const struct pipeline *pipeline, size_t part)
{
    const struct lmq_plan *plan = pipeline->work.plan;
    size_t record = plan->parts[part].record;

    return record == pipeline->head
               ? (int32_t)plan->checkpoint->hparams.n_layers
               : plan->records[record].place.layer;
}

/* Behind the last layer of which something is left to write; 0: of none. */
static size_t
end_of_work(const struct pipeline *pipeline)
{
    const struct lmq_plan *plan = pipeline->work.plan;
    int32_t last = -1;

    for (size_t i = 0; i < plan->n_parts; i++)
        if (layer_of(pipeline, i) > last &&
            is_wanted(pipeline, plan->parts[i].record))
            last = layer_of(pipeline, i);
    return (size_t)(last + 1);
}

static enum lmq_status
write_layer(struct pipeline *pipeline, int32_t layer, struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->work.plan;
    enum lmq_status status = LMQ_OK;

    for (size_t at = 0, end; at < plan->n_parts && status == LMQ_OK;
         at = end) {
        int32_t own = layer_of(pipeline, at);
        for (end = at; end < plan->n_parts && layer_of(pipeline, end) == own;
             end++)
            continue;
        if (own == layer)
            status = run_parts(pipeline, at, end, err);
    }
    return status;
}

/* What is in no layer, and then layers one after the other, each when it has
 * been calibrated; as far as somebody has to write something. */
static enum lmq_status
run_layers(struct pipeline *pipeline, const struct lmq_progress *progress,
           struct lmq_error *err)
{
    struct lmq_plan *plan = pipeline->work.plan;

    pipeline->head = lmq_calibrator_head(plan);
    size_t end = end_of_work(pipeline);
    enum lmq_status status = write_layer(pipeline, -1, err);
    if (status == LMQ_OK)
        status = lmq_calibrator_agree(plan, &end, err);
    for (size_t layer = 0; layer < end && status == LMQ_OK; layer++) {
        status = lmq_calibrator_layer(&pipeline->work, layer, progress, err);
        if (status == LMQ_OK)
            status = write_layer(pipeline, (int32_t)layer, err);
        lmq_calibrated_forget(plan);
    }
    return status;
}

/* ---- Buffers ---- */

static void
clear_worker(void *state)
{
    struct lmq_piece_worker *worker = state;

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
    if (record->layout == LMQ_LAYOUT_TILES)
        room->n_tile =
            lmq_size_max(n * record->quant.group_size, room->n_tile);
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
    return room;
}

static bool
make_worker(void *state, const void *context)
{
    const struct room *room = context;
    struct lmq_piece_worker *worker = state;

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
    const struct lmq_plan *plan = pipeline->work.plan;
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
                            sizeof(struct lmq_piece_worker), make_worker,
                            clear_worker, &room, err);
}

/* ---- All of it ---- */

/* Again, in the way that was found to be needed. */
static enum lmq_status
redo_record(struct pipeline *pipeline, size_t first, size_t end,
            struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->work.plan;

    for (size_t i = first; i < end; i++) {
        struct lmq_record *stored = lmq_plan_stored(plan, &plan->parts[i]);
        stored->quant = plan->records[plan->parts[i].record].quant;
    }
    return run_parts(pipeline, first, end, err);
}

static enum lmq_status
redo_records(struct pipeline *pipeline, struct lmq_error *err)
{
    const struct lmq_plan *plan = pipeline->work.plan;
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
lmq_pipeline_run(const struct lmq_conversion *work,
                 struct lmq_journal *journal, int threads,
                 const struct lmq_progress *progress, uint64_t *n_zeroed,
                 struct lmq_error *err)
{
    const struct lmq_plan *plan = work->plan;
    struct pipeline pipeline = {
        .work = *work,
        .journal = journal,
        .counter = {.progress = progress,
                    .stage = plan->copied != NULL ? "copying" : "converting"},
    };

    for (size_t i = 0; i < plan->n_records; i++)
        if (plan->records[i].encoding != LMQ_ENCODING_ALIAS &&
            is_wanted(&pipeline, i))
            pipeline.counter.total += plan->sources[i]->n_elements;
    for (size_t i = 0;
         plan->copied == NULL && i < plan->checkpoint->n_files; i++)
        lmq_input_keep_digests(plan->checkpoint->files[i]);
    enum lmq_status status = make_buffers(&pipeline, threads, err);
    if (plan->calibrator != NULL) /* it tells how far all is */
        pipeline.counter.progress = NULL;
    if (status == LMQ_OK)
        status = plan->calibrator != NULL
                     ? run_layers(&pipeline, progress, err)
                     : run_parts(&pipeline, 0, plan->n_parts, err);
    if (status == LMQ_OK)
        status = redo_records(&pipeline, err);
    *n_zeroed += pipeline.n_zeroed;
    lmq_workers_close(&pipeline.workers);
    lmq_gather_free(&pipeline.gather);
    free(pipeline.leaves);
    free(pipeline.window);
    free(pipeline.is_due);
    return status;
}
