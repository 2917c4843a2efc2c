/*
 * rounding.c - one matrix of a layer: rows for rows, shared out over threads
 * and processes.
 */
#include "config.h"

#include "convert/calibrate/rounding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/exact_sum.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "convert/calibrate/feedback/feedback.h"
#include "convert/calibrate/written.h"
#include "convert/members.h"
#include "quantize/rotate.h"

/* ---- Some rows ---- */

/* What came of many of them. */
struct total {
    float max_scale;
    struct lmq_exact_sum cost, searched;
};

/* One matrix at work. */
struct job {
    struct lmq_cal_layer *layer;
    const struct lmq_cal_item *item;
    const struct lmq_hessian *hessian; /* NULL: without */
    enum lmq_method method;
    struct lmq_calibrated *out;
    size_t first_row; /* of this process */
    struct lmq_feedback_result results[LMQ_RANGES];
    struct total total;
};

static enum lmq_status
read_rows(const struct job *job, const struct lmq_range *range,
          struct lmq_quantizer *own, struct lmq_error *err)
{
    const struct lmq_plan *plan = job->layer->plan;
    const struct lmq_tensor *tensor = job->item->matrix->tensor;
    size_t n_cols = (size_t)tensor->n_cols;
    uint64_t first = job->first_row + range->at;
    enum lmq_status status = lmq_checkpoint_read(
        plan->checkpoint, tensor, first * n_cols, range->n * n_cols,
        own->x, &own->scratch, err);

    for (size_t i = 0; i < range->n * n_cols && status == LMQ_OK; i++) {
        if (isfinite(own->x[i]))
            continue;
        if (!plan->settings.zeroes)
            return lmq_piece_fail_nonfinite(tensor, first * n_cols + i, err);
        own->x[i] = 0;
    }
    return status;
}

static void
round_rows(const struct lmq_quant *quant, const float *x, size_t n_rows,
           size_t n_cols, int8_t *q, float *scales,
           struct lmq_feedback_result *result)
{
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    struct lmq_quant_stats stats = {0};

    for (size_t i = 0; i < n_rows; i++)
        lmq_quantize_row(quant, x + i * n_cols, n_cols, q + i * n_cols,
                         scales + i * n_groups, &stats);
    *result = (struct lmq_feedback_result){.max_scale = stats.max_scale};
}

static enum lmq_status
quantize_range(void *context, const struct lmq_range *range, void *state,
               struct lmq_error *err)
{
    struct job *job = context;
    struct lmq_quantizer *own = state;
    const struct lmq_quant *quant =
        &job->layer->plan->records[job->item->record].quant;
    size_t n_cols = job->item->matrix->n_cols;
    size_t n_groups = lmq_groups_per_row(n_cols, quant->group_size);
    size_t row = job->first_row + (size_t)range->at;
    int8_t *q = job->out->q + row * n_cols;
    float *scales = job->out->scales + row * n_groups;
    struct lmq_feedback_result *result = &job->results[range->slot];
    enum lmq_status status = read_rows(job, range, own, err);

    if (status != LMQ_OK)
        return status;
    for (size_t i = 0; quant->rotation != LMQ_ROTATION_NONE &&
                       job->hessian != NULL && i < range->n;
         i++)
        lmq_rotate_row(own->x + i * n_cols, n_cols, quant->group_size);
    if (job->hessian == NULL)
        round_rows(quant, own->x, range->n, n_cols, q, scales, result);
    else if (job->method == LMQ_METHOD_GPTQ) {
        lmq_mend_offsets(&job->layer->inputs[job->item->input].mend, own->x,
                          n_cols, row, range->n, own->offsets);
        lmq_feedback_rows(job->hessian, quant, own->x, own->offsets, range->n,
                          &own->room, q, scales, result);
    } else
        lmq_weighted_rows(job->hessian, quant, own->x, range->n, q, scales,
                          result);
    return LMQ_OK;
}

static void
merge_range(void *context, const struct lmq_range *range)
{
    struct job *job = context;
    const struct lmq_feedback_result *result = &job->results[range->slot];

    job->total.max_scale = fmaxf(job->total.max_scale, result->max_scale);
    lmq_exact_add(&job->total.cost, result->cost);
    lmq_exact_add(&job->total.searched, result->searched);
}

/* ---- All of them ---- */

/* The first row of a process's own: those of a few ranges, or none. */
static size_t
first_row_of(const struct lmq_peers *peers, unsigned rank, size_t n_rows)
{
    uint64_t n = (n_rows + LMQ_FEEDBACK_ROWS - 1) / LMQ_FEEDBACK_ROWS;

    return lmq_size_min(
        (size_t)(n * rank / lmq_peers_n(peers)) * LMQ_FEEDBACK_ROWS, n_rows);
}

/* The others' totals, too. */
static enum lmq_status
share_totals(struct job *job, struct lmq_error *err)
{
    const struct lmq_peers *peers = job->layer->calibrator->peers;
    const struct total own = job->total;
    enum lmq_status status = LMQ_OK;

    job->total = (struct total){0};
    for (unsigned i = 0; i < lmq_peers_n(peers) && status == LMQ_OK; i++) {
        struct total total = own;
        status = lmq_peers_share(peers, i, &total, sizeof(total), err);
        job->total.max_scale = fmaxf(job->total.max_scale, total.max_scale);
        lmq_exact_merge(&job->total.cost, &total.cost);
        lmq_exact_merge(&job->total.searched, &total.searched);
    }
    return status;
}

static enum lmq_status
quantize_once(struct job *job, struct lmq_error *err)
{
    struct lmq_calibrator *calibrator = job->layer->calibrator;
    const struct lmq_peers *peers = calibrator->peers;
    unsigned rank = lmq_peers_rank(peers);
    size_t n_rows = job->item->matrix->n_rows;

    job->first_row = first_row_of(peers, rank, n_rows);
    const struct lmq_ranges ranges = {
        .whole = first_row_of(peers, rank + 1, n_rows) - job->first_row,
        .chunk = LMQ_FEEDBACK_ROWS,
        .context = job,
        .piece = quantize_range,
        .merge = merge_range,
        .counter = &calibrator->counter,
    };

    job->total = (struct total){0};
    enum lmq_status status =
        lmq_tasks_over(&ranges, &calibrator->workers, err);
    return status == LMQ_OK ? share_totals(job, err) : status;
}

static enum lmq_status
share_rows(struct job *job, struct lmq_error *err)
{
    const struct lmq_peers *peers = job->layer->calibrator->peers;
    const struct lmq_matrix *matrix = job->item->matrix;
    const struct lmq_quant *quant =
        &job->layer->plan->records[job->item->record].quant;
    size_t n_groups = lmq_groups_per_row(matrix->n_cols, quant->group_size);
    enum lmq_status status = LMQ_OK;

    for (unsigned i = 0; i < lmq_peers_n(peers) && status == LMQ_OK; i++) {
        size_t first = first_row_of(peers, i, matrix->n_rows);
        size_t n = first_row_of(peers, i + 1, matrix->n_rows) - first;
        status = lmq_peers_share(peers, i, job->out->q + first * matrix->n_cols,
                                 n * matrix->n_cols, err);
        if (status == LMQ_OK)
            status = lmq_peers_share(peers, i,
                                     job->out->scales + first * n_groups,
                                     n * n_groups * sizeof(float), err);
    }
    return status;
}

/* Again, if it turns out that scales need a multiplier. */
static enum lmq_status
quantize_all(struct job *job, struct lmq_error *err)
{
    struct lmq_plan *plan = job->layer->plan;
    struct lmq_quant *quant = &plan->records[job->item->record].quant;

    quant->multiplier = 1;
    enum lmq_status status = quantize_once(job, err);
    float multiplier =
        lmq_choose_multiplier(quant->scales, job->total.max_scale);
    if (status == LMQ_OK && multiplier != 1) {
        quant->multiplier = multiplier;
        status = quantize_once(job, err);
    }
    return status == LMQ_OK ? share_rows(job, err) : status;
}

static size_t
count_scales(const struct lmq_matrix *matrix, const struct lmq_quant *quant)
{
    return matrix->n_rows *
           lmq_groups_per_row(matrix->n_cols, quant->group_size);
}

enum lmq_status
lmq_cal_quantize(struct lmq_cal_layer *layer, const struct lmq_cal_item *item,
                 const struct lmq_hessian *hessian, struct lmq_error *err)
{
    struct lmq_plan *plan = layer->plan;
    const struct lmq_record *record = &plan->records[item->record];
    struct lmq_calibrated *out = &plan->calibrated[item->record];
    struct job *job = calloc(1, sizeof(*job));

    out->q = lmq_mem_aligned(item->matrix->n_rows, item->matrix->n_cols);
    out->scales = lmq_mem_aligned(count_scales(item->matrix, &record->quant),
                                  sizeof(float));
    if (job == NULL || out->q == NULL || out->scales == NULL) {
        free(job);
        return lmq_fail_nomem(err);
    }
    *job = (struct job){.layer = layer, .item = item, .hessian = hessian,
                        .method = record->quant.method, .out = out};
    enum lmq_status status = quantize_all(job, err);
    out->is_known = true;
    out->is_blind = hessian == NULL && item->input != SIZE_MAX;
    out->is_first = item->input != SIZE_MAX &&
                    layer->inputs[item->input].leader == item->matrix;
    out->method = hessian == NULL && job->method == LMQ_METHOD_GPTQ
                      ? LMQ_METHOD_SEARCH
                      : job->method;
    out->n_tokens = item->input == SIZE_MAX
                        ? 0
                        : layer->inputs[item->input].hessian.n_tokens;
    out->cost = lmq_exact_round(&job->total.cost);
    out->searched = lmq_exact_round(&job->total.searched);
    if (status == LMQ_OK)
        lmq_plan_spread(plan, item->record);
    free(job);
    return status;
}

/* ---- Computing with it ---- */

enum lmq_status
lmq_cal_use(const struct lmq_cal_layer *layer, const struct lmq_cal_item *item,
            struct lmq_error *err)
{
    const struct lmq_quant *quant = &layer->plan->records[item->record].quant;
    const struct lmq_calibrated *out = &layer->plan->calibrated[item->record];
    size_t n = count_scales(item->matrix, quant);
    unsigned char *stored = malloc(n * lmq_scale_size(quant->scales));

    if (stored == NULL)
        return lmq_fail_nomem(err);
    lmq_scales_store(quant->scales, quant->multiplier, out->scales, n, stored);
    enum lmq_status status =
        lmq_matrix_replace(item->matrix, quant, out->q, stored, err);
    free(stored);
    return status;
}

/* ---- What is written ---- */

/* Who writes a part: its member is that of the process with this number. */
static unsigned
writer_of(const struct lmq_peers *peers, const struct lmq_plan_part *part)
{
    return peers == NULL ? 0 : part->member;
}

static bool
is_part_of(const struct lmq_plan *plan, const struct lmq_plan_part *part,
           size_t record)
{
    return part < plan->parts + plan->n_parts && part->record == record;
}

enum lmq_status
lmq_cal_is_written(const struct lmq_cal_layer *layer, bool *is_written,
                   struct lmq_error *err)
{
    const struct lmq_plan *plan = layer->plan;
    const struct lmq_peers *peers = layer->calibrator->peers;
    enum lmq_status status = LMQ_OK;

    *is_written = true;
    for (size_t i = 0; i < layer->n_items; i++) {
        size_t record = layer->items[i].record;
        for (const struct lmq_plan_part *part =
                 lmq_plan_first_part(plan, record);
             is_part_of(plan, part, record) && status == LMQ_OK; part++) {
            unsigned char is_done = part->is_done;
            status = lmq_peers_share(peers, writer_of(peers, part), &is_done,
                                     1, err);
            *is_written &= is_done;
        }
    }
    return status;
}

/* What the journal of the first part says of all. */
static enum lmq_status
share_facts(const struct lmq_cal_layer *layer, size_t record,
            struct lmq_error *err)
{
    struct lmq_plan *plan = layer->plan;
    const struct lmq_peers *peers = layer->calibrator->peers;
    unsigned from = writer_of(peers, lmq_plan_first_part(plan, record));
    enum lmq_status status = lmq_peers_share(
        peers, from, &plan->records[record].quant.multiplier, sizeof(float),
        err);

    /* Its pointers are NULL in all. */
    return status == LMQ_OK
               ? lmq_peers_share(peers, from, &plan->calibrated[record],
                                 sizeof(plan->calibrated[record]), err)
               : status;
}

/* Rows of a part, from who has written it. */
static enum lmq_status
read_part(const struct lmq_cal_layer *layer,
          const struct lmq_conversion *work, const struct lmq_plan_part *part,
          size_t row_values, size_t row_scales, int8_t *q,
          unsigned char *scales, struct lmq_error *err)
{
    const struct lmq_peers *peers = layer->calibrator->peers;
    unsigned from = writer_of(peers, part);
    size_t n = (size_t)part->n_rows;
    enum lmq_status status = LMQ_OK;

    q += part->first_row * row_values;
    scales += part->first_row * row_scales;
    if (from == lmq_peers_rank(peers))
        status = lmq_written_read(work, part, q, scales, err);
    if (status == LMQ_OK)
        status = lmq_peers_share(peers, from, q, n * row_values, err);
    return status == LMQ_OK
               ? lmq_peers_share(peers, from, scales, n * row_scales, err)
               : status;
}

enum lmq_status
lmq_cal_use_written(const struct lmq_cal_layer *layer,
                    const struct lmq_cal_item *item,
                    const struct lmq_conversion *work, struct lmq_error *err)
{
    const struct lmq_plan *plan = layer->plan;
    const struct lmq_quant *quant = &plan->records[item->record].quant;
    struct lmq_matrix *matrix = item->matrix;
    size_t row_scales = lmq_row_scales_size(matrix->n_cols, quant);
    int8_t *q = lmq_mem_aligned(matrix->n_rows, matrix->n_cols);
    unsigned char *scales = malloc(matrix->n_rows * row_scales);
    enum lmq_status status = q == NULL || scales == NULL
                                 ? lmq_fail_nomem(err)
                                 : share_facts(layer, item->record, err);

    for (const struct lmq_plan_part *part =
             lmq_plan_first_part(plan, item->record);
         status == LMQ_OK && is_part_of(plan, part, item->record); part++)
        status = read_part(layer, work, part, matrix->n_cols, row_scales, q,
                           scales, err);
    if (status == LMQ_OK)
        status = lmq_matrix_replace(matrix, quant, q, scales, err);
    lmq_mem_free(q);
    free(scales);
    return status;
}
