/*
 * variant.c - makes matrices as a container would have them, in memory.
 *
 * Rows go through the same functions as in convert/piece.c, in strips of whole
 * tiles. So what is measured with a variant is what a conversion gives.
 */
#include "config.h"

#include "validate/plan/variant.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "quantize/dtype.h"
#include "quantize/tiles.h"

/* Elements that errors are estimated from: as many rows as that takes. */
#define ERROR_ELEMENTS ((uint64_t)1 << 19)

/* One thread's memory, as large as a strip of rows needs. */
struct worker {
    struct lmq_scratch scratch;
    float *x, *scales;
    int8_t *q;
    unsigned char *stored;
    size_t n_elements; /* there is room for */
};

/* A matrix on its way; what ranges found out, in their slots. */
struct making {
    struct lmq_checkpoint *checkpoint;
    const struct lmq_tensor *tensor;
    const struct lmq_encoding_choice *choice;
    struct lmq_quant quant;
    struct lmq_matrix *matrix; /* NULL: only the error is wanted */
    uint64_t step;             /* strips: each so many'th is looked at */
    struct lmq_quant_stats stats[LMQ_RANGES], total;
};

/* ---- Threads ---- */

static void
clear_worker(void *state)
{
    struct worker *worker = state;

    lmq_scratch_free(&worker->scratch);
    lmq_mem_free(worker->x);
    lmq_mem_free(worker->scales);
    lmq_mem_free(worker->q);
    lmq_mem_free(worker->stored);
}

enum lmq_status
lmq_variant_workers(struct lmq_workers *workers, int threads,
                    struct lmq_error *err)
{
    return lmq_workers_open(workers, threads, LMQ_RANGES,
                            sizeof(struct worker), NULL, clear_worker, NULL,
                            err);
}

static enum lmq_status
reserve(struct worker *worker, size_t n, struct lmq_error *err)
{
    if (worker->n_elements >= n)
        return LMQ_OK;
    struct lmq_scratch scratch = worker->scratch;
    worker->scratch = (struct lmq_scratch){0};
    clear_worker(worker);
    *worker = (struct worker){
        .scratch = scratch,
        .x = lmq_mem_aligned(n, sizeof(float)),
        .scales = lmq_mem_aligned(n, sizeof(float)),
        .q = lmq_mem_aligned(n, 1),
        .stored = lmq_mem_aligned(n, sizeof(float)),
    };
    if (worker->x == NULL || worker->scales == NULL || worker->q == NULL ||
        worker->stored == NULL)
        return lmq_fail_nomem(err);
    worker->n_elements = n;
    return LMQ_OK;
}

/* ---- Rows ---- */

static enum lmq_status
fail_nonfinite(const struct making *making, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_NONFINITE, 0, "tensor '%s' has NaN or infinity",
             making->tensor->stored_name);
    lmq_hint(err, "inspect .tensor NAME .has_stats says where");
    lmq_error_in(err, making->checkpoint->path);
    return LMQ_ERR_NONFINITE;
}

static enum lmq_status
quantize_rows(const struct making *making, struct worker *worker,
              uint64_t row, size_t n_rows, struct lmq_quant_stats *stats,
              struct lmq_error *err)
{
    const struct lmq_tensor *tensor = making->tensor;
    size_t n_cols = (size_t)tensor->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, making->quant.group_size);
    enum lmq_status status =
        lmq_checkpoint_read(making->checkpoint, tensor, row * n_cols,
                            n_rows * n_cols, worker->x, &worker->scratch, err);

    for (size_t i = 0; i < n_rows && status == LMQ_OK; i++) {
        struct lmq_quant_stats one = {0};
        lmq_quantize_row(&making->quant, worker->x + i * n_cols, n_cols,
                         worker->q + i * n_cols, worker->scales + i * n_groups,
                         &one);
        if (one.has_nonfinite)
            return fail_nonfinite(making, err);
        lmq_quant_stats_merge(stats, &one, 0, 0);
    }
    if (status == LMQ_OK)
        lmq_scales_store(making->quant.scales, making->quant.multiplier,
                         worker->scales, n_rows * n_groups, worker->stored);
    return status;
}

/* The source's own; its error is none. */
static enum lmq_status
take_rows(const struct making *making, struct worker *worker, uint64_t row,
          size_t n_rows, struct lmq_error *err)
{
    const struct lmq_tensor *tensor = making->tensor;
    enum lmq_status status = lmq_checkpoint_read_integers(
        making->checkpoint, tensor, row, n_rows, worker->q, worker->stored,
        &worker->scratch, err);

    if (status == LMQ_OK && making->quant.bits == LMQ_BITS_MAX)
        lmq_quant_widen(&tensor->quant, worker->q, n_rows,
                        (size_t)tensor->n_cols, worker->stored);
    return status;
}

static enum lmq_status
make_integers(const struct making *making, struct worker *worker,
              uint64_t row, size_t n_rows, struct lmq_quant_stats *stats,
              struct lmq_error *err)
{
    const struct lmq_quant *quant = &making->quant;
    size_t n_cols = (size_t)making->tensor->n_cols;
    enum lmq_status status =
        making->choice->is_taken
            ? take_rows(making, worker, row, n_rows, err)
            : quantize_rows(making, worker, row, n_rows, stats, err);

    if (status != LMQ_OK || making->matrix == NULL)
        return status;
    size_t tile = (size_t)(row / LMQ_TILE_ROWS);
    lmq_tiles_pack(worker->q, n_cols, worker->stored, n_rows, n_cols, quant,
                   (unsigned char *)making->matrix->owned +
                       tile * lmq_tile_values_size(n_cols, quant->group_size,
                                                   quant->bits),
                   (unsigned char *)making->matrix->owned_scales +
                       tile * lmq_tile_scales_size(n_cols, quant->group_size,
                                                   quant->scales));
    return LMQ_OK;
}

static enum lmq_status
make_floats(const struct making *making, struct worker *worker, uint64_t row,
            size_t n_rows, struct lmq_quant_stats *stats,
            struct lmq_error *err)
{
    enum lmq_dtype type = lmq_stored_types[making->choice->stored].dtype;
    size_t n = n_rows * (size_t)making->tensor->n_cols;
    float *out = making->matrix == NULL
                     ? worker->x
                     : (float *)making->matrix->owned +
                           row * making->tensor->n_cols;
    enum lmq_status status = lmq_checkpoint_read(
        making->checkpoint, making->tensor, row * making->tensor->n_cols, n,
        worker->x, &worker->scratch, err);

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        float x = worker->x[i], y = lmq_dtype_round(type, x);
        if (!isfinite(x))
            return fail_nonfinite(making, err);
        stats->sum_sq += (double)x * (double)x;
        stats->err_sq += (double)(x - y) * (double)(x - y);
        out[i] = y;
    }
    return status;
}

/* ---- A matrix ---- */

static bool
is_integer(const struct lmq_encoding_choice *choice)
{
    return lmq_stored_types[choice->stored].bits != 0;
}

/* A range is of strips: 16 rows each. */
static enum lmq_status
make_range(void *context, const struct lmq_range *range, void *state,
           struct lmq_error *err)
{
    struct making *making = context;
    struct lmq_quant_stats *stats = &making->stats[range->slot];
    uint64_t n_rows = making->tensor->n_rows;
    enum lmq_status status =
        reserve(state, LMQ_TILE_ROWS * (size_t)making->tensor->n_cols, err);

    *stats = (struct lmq_quant_stats){0};
    for (size_t i = 0; i < range->n && status == LMQ_OK; i++) {
        uint64_t row = (range->at + i) * making->step * LMQ_TILE_ROWS;
        size_t n = n_rows - row < LMQ_TILE_ROWS ? (size_t)(n_rows - row)
                                                : LMQ_TILE_ROWS;
        status = is_integer(making->choice)
                     ? make_integers(making, state, row, n, stats, err)
                     : make_floats(making, state, row, n, stats, err);
    }
    return status;
}

static void
merge_range(void *context, const struct lmq_range *range)
{
    struct making *making = context;

    lmq_quant_stats_merge(&making->total, &making->stats[range->slot], 0, 0);
}

static enum lmq_status
make_rows(struct making *making, const struct lmq_workers *workers,
          struct lmq_error *err)
{
    uint64_t n_strips = lmq_tiles_count((size_t)making->tensor->n_rows);
    const struct lmq_ranges ranges = {
        .whole = (n_strips + making->step - 1) / making->step,
        .chunk = 4,
        .context = making,
        .piece = make_range,
        .merge = merge_range,
    };

    making->total = (struct lmq_quant_stats){0};
    return lmq_tasks_over(&ranges, workers, err);
}

/* Scales that turn out to need a multiplier get it, as in a conversion. */
static enum lmq_status
make_all(struct making *making, const struct lmq_workers *workers,
         struct lmq_error *err)
{
    enum lmq_status status = make_rows(making, workers, err);

    if (status != LMQ_OK || !is_integer(making->choice) ||
        making->choice->is_taken)
        return status;
    making->quant.multiplier =
        lmq_choose_multiplier(making->quant.scales, making->total.max_scale);
    return making->quant.multiplier == 1 ? LMQ_OK
                                         : make_rows(making, workers, err);
}

static struct making
begin(struct lmq_checkpoint *checkpoint, const struct lmq_tensor *tensor,
      const struct lmq_encoding_choice *choice)
{
    struct making making = {.checkpoint = checkpoint,
                            .tensor = tensor,
                            .choice = choice,
                            .quant = choice->quant,
                            .step = 1};

    making.quant.multiplier = choice->is_taken ? tensor->quant.multiplier : 1;
    return making;
}

/* Memory for all of it, and how it is multiplied. */
static enum lmq_status
allocate(struct lmq_matrix *matrix, const struct lmq_encoding_choice *choice,
         struct lmq_error *err)
{
    const struct lmq_quant *quant = &choice->quant;
    size_t n_tiles = lmq_tiles_count(matrix->n_rows), n_cols = matrix->n_cols;

    matrix->is_int8 = is_integer(choice);
    if (matrix->is_int8) {
        matrix->owned = lmq_mem_aligned(
            n_tiles,
            lmq_tile_values_size(n_cols, quant->group_size, quant->bits));
        matrix->owned_scales = lmq_mem_aligned(
            n_tiles,
            lmq_tile_scales_size(n_cols, quant->group_size, quant->scales));
    } else {
        size_t n;
        if (lmq_size_mul(matrix->n_rows, n_cols, &n))
            matrix->owned = lmq_mem_aligned(n, sizeof(float));
    }
    if (matrix->owned == NULL ||
        (matrix->is_int8 && matrix->owned_scales == NULL))
        return lmq_fail_nomem(err);
    return LMQ_OK;
}

static void
point(struct lmq_matrix *matrix, const struct lmq_quant *quant)
{
    if (matrix->is_int8)
        matrix->tiles = (struct lmq_tiles){
            .bits = quant->bits,
            .scale_type = quant->scales,
            .multiplier = quant->multiplier,
            .n_rows = matrix->n_rows,
            .n_cols = matrix->n_cols,
            .group = quant->group_size,
            .rotation = quant->rotation,
            .q = matrix->owned,
            .scale = matrix->owned_scales,
        };
    else
        matrix->rows = (struct lmq_rows){
            .data = matrix->owned,
            .type = LMQ_ROW_F32,
            .n_cols = matrix->n_cols,
            .stride = lmq_row_bytes(LMQ_ROW_F32, matrix->n_cols),
        };
}

enum lmq_status
lmq_variant_make(struct lmq_checkpoint *checkpoint,
                 const struct lmq_tensor *tensor,
                 const struct lmq_encoding_choice *choice,
                 const struct lmq_workers *workers,
                 struct lmq_matrix *matrix, struct lmq_error *err)
{
    struct making making = begin(checkpoint, tensor, choice);

    *matrix = (struct lmq_matrix){.n_rows = (size_t)tensor->n_rows,
                                  .n_cols = (size_t)tensor->n_cols,
                                  .tensor = tensor,
                                  .is_copied = true};
    making.matrix = matrix;
    enum lmq_status status = allocate(matrix, choice, err);
    if (status == LMQ_OK)
        status = make_all(&making, workers, err);
    point(matrix, &making.quant);
    if (status != LMQ_OK)
        lmq_matrix_drop(matrix);
    return status;
}

enum lmq_status
lmq_variant_error(struct lmq_checkpoint *checkpoint,
                  const struct lmq_tensor *tensor,
                  const struct lmq_encoding_choice *choice,
                  const struct lmq_workers *workers, double *sum_sq,
                  double *err_sq, struct lmq_error *err)
{
    struct making making = begin(checkpoint, tensor, choice);
    enum lmq_status status = LMQ_OK;

    making.step = 1 + tensor->n_elements / ERROR_ELEMENTS;
    *sum_sq = *err_sq = 0;
    if (!choice->is_taken)
        status = make_rows(&making, workers, err);
    *sum_sq = making.total.sum_sq;
    *err_sq = making.total.err_sq;
    return status;
}
