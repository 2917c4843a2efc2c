/*
 * feedback.c - 16 rows at a time, group after group.
 *
 * With H = U D U^T (hessian.h) the number that column k of a row should be is
 *
 *   target[k] = x[k] + offset[k] + the sum of error[j] U[j][k] over j < k
 *   error[j] = x[j] - scale q[j]
 *
 * (with offsets for what other layers have missed, mend.h), and what rounding
 * it costs is D[k] (target[k] - scale q[k])^2. A group's scale is searched for
 * when its first column is reached, with D as weights, which is just what
 * errors of these targets cost; and then each step of the search is tried with
 * feedback within the group, since that draws the lots anew. (stories260K, mean
 * KLD: 3.05e-4 instead of 3.28e-4 with 8 bits, 0.073 instead of 0.078 with 4.)
 */
#include "config.h"

#include "convert/calibrate/feedback/feedback.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "convert/calibrate/feedback/outer.h"

#define ROWS LMQ_FEEDBACK_ROWS

/* Columns of which each makes up for those before it at once. */
#define NEIGHBOURS ((size_t)8)
/* Columns that are made up for at a time. */
#define EARLIER ((size_t)32)

/* Weights that are smaller, beside the largest of a group, do not matter; but
 * a sum of them is divided by. */
#define LEAST_WEIGHT 1e-6

/* ---- Memory ---- */

bool
lmq_feedback_room_init(struct lmq_feedback_room *room, size_t n)
{
    *room = (struct lmq_feedback_room){
        .errors = lmq_mem_aligned(n, ROWS * sizeof(double)),
        .targets = lmq_mem_aligned(LMQ_GROUP_MAX, ROWS * sizeof(double)),
        .before = lmq_mem_aligned(LMQ_GROUP_MAX, ROWS * sizeof(double)),
        .q = lmq_mem_aligned(n, 1),
        .scales = lmq_mem_aligned(n, sizeof(float)),
    };
    return room->errors != NULL && room->targets != NULL &&
           room->before != NULL && room->q != NULL && room->scales != NULL;
}

void
lmq_feedback_room_free(struct lmq_feedback_room *room)
{
    lmq_mem_free(room->errors);
    lmq_mem_free(room->targets);
    lmq_mem_free(room->before);
    lmq_mem_free(room->q);
    lmq_mem_free(room->scales);
    *room = (struct lmq_feedback_room){0};
}

double
lmq_feedback_room_bytes(size_t n)
{
    return (double)n * (8 * ROWS + 5);
}

/* ---- Targets ---- */

/* Columns [at, at + n) of the rows. */
struct block {
    const struct lmq_hessian *hessian;
    const double *offsets; /* (all columns, ROWS) */
    size_t at, n;
    double *targets; /* (n, ROWS) */
    double *errors;  /* (all columns, ROWS) */
};

static size_t
padded(size_t n)
{
    return (n + LMQ_OUTER_ROWS - 1) / LMQ_OUTER_ROWS * LMQ_OUTER_ROWS;
}

/* targets = offsets. */
static void
begin_targets(const struct block *block)
{
    memset(block->targets, 0, padded(block->n) * ROWS * sizeof(double));
    memcpy(block->targets, block->offsets + block->at * ROWS,
           block->n * ROWS * sizeof(double));
}

/* targets += what all columns before the block have missed; some of these at a
 * time, of which all numbers stay in the first-level cache. */
static void
add_earlier(const struct block *block)
{
    const struct lmq_hessian *hessian = block->hessian;
    size_t n = padded(block->n);

    for (size_t j = 0; j < block->at; j += EARLIER)
        lmq_outer_add(block->targets, ROWS,
                      (struct lmq_strip){hessian->sums + j * hessian->stride +
                                             block->at,
                                         hessian->stride},
                      (struct lmq_strip){block->errors + j * ROWS, ROWS}, n,
                      ROWS, lmq_size_min(EARLIER, block->at - j));
}

/* The targets of later columns += what column k of the block missed: at once
 * of its few neighbours, and of all behind them when the last of these is
 * reached. */
static void
add_column(const struct block *block, size_t k)
{
    size_t stride = block->hessian->stride;
    size_t end = lmq_size_min((k / NEIGHBOURS + 1) * NEIGHBOURS, block->n);
    const double *u =
        block->hessian->sums + (block->at + k) * stride + block->at;
    const double *errors = block->errors + (block->at + k) * ROWS;

    for (size_t m = k + 1; m < end; m++)
        for (size_t r = 0; r < ROWS; r++)
            block->targets[m * ROWS + r] += u[m] * errors[r];
    if (k + 1 < end || end == block->n)
        return;
    size_t first = end - NEIGHBOURS;
    size_t n = padded(block->n - end);
    lmq_outer_add(block->targets + end * ROWS, ROWS,
                  (struct lmq_strip){u - (k - first) * stride + end, stride},
                  (struct lmq_strip){errors - (k - first) * ROWS, ROWS}, n,
                  ROWS, NEIGHBOURS);
}

/* The block's weights, relative to the largest. */
static void
find_weights(const double *from, size_t n, float *weights)
{
    double most = 0;

    for (size_t k = 0; k < n; k++)
        most = fmax(most, from[k]);
    for (size_t k = 0; k < n; k++)
        weights[k] = (float)fmax(from[k] / most, LEAST_WEIGHT);
}

/* ---- With feedback ---- */

/* The scale of row r's group. */
static float
find_scale(const struct block *block, const struct lmq_quant *quant,
           const float *weights, size_t r, float *max_scale)
{
    float x[LMQ_GROUP_MAX], scale;

    for (size_t k = 0; k < block->n; k++)
        x[k] = (float)block->targets[k * ROWS + r];
    float wanted =
        lmq_quant_weighted_scale(quant, x, weights, block->n, &scale);
    *max_scale = fmaxf(*max_scale, wanted);
    return scale;
}

/* One group of all rows. costs[r] += what its errors cost. */
static void
round_block(const struct block *block, const struct lmq_quant *quant,
            const float *x, size_t n_rows, int8_t *q, const float *scales,
            double *costs)
{
    size_t n = block->hessian->n;
    float inverses[ROWS];

    for (size_t r = 0; r < n_rows; r++)
        inverses[r] = scales[r] < 0 || scales[r] > 0 ? 1 / scales[r] : 0;
    for (size_t k = 0; k < block->n; k++) {
        double weight = block->hessian->weights[block->at + k];
        double *errors = block->errors + (block->at + k) * ROWS;
        for (size_t r = 0; r < n_rows; r++) {
            size_t at = r * n + block->at + k;
            double target = block->targets[k * ROWS + r];
            q[at] = (int8_t)lmq_quant_round(quant->bits, (float)target,
                                            inverses[r]);
            double value = (double)q[at] * (double)scales[r];
            errors[r] = (double)x[at] - value;
            costs[r] += weight * ((target - value) * (target - value));
        }
        add_column(block, k);
    }
}

/* Takes the step for a row's group that costs least, if one costs less than the
 * scale that is there. */
static void
try_steps(const struct block *block, const struct lmq_quant *quant,
          const float *x, size_t n_rows, double *before, int8_t *q,
          float *scales, float *max_scales)
{
    size_t n_bytes = block->n * ROWS * sizeof(*before);
    float steps[ROWS][LMQ_QUANT_STEPS], group[LMQ_GROUP_MAX];
    double least[ROWS] = {0};

    memcpy(before, block->targets, n_bytes);
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t k = 0; k < block->n; k++)
            group[k] = (float)before[k * ROWS + r];
        lmq_quant_steps(quant, group, block->n, steps[r]);
    }
    round_block(block, quant, x, n_rows, q, scales, least);
    for (size_t i = 0; i < LMQ_QUANT_STEPS; i++) {
        double costs[ROWS] = {0};
        float tried[ROWS];
        for (size_t r = 0; r < n_rows; r++)
            tried[r] = steps[r][i];
        memcpy(block->targets, before, n_bytes);
        round_block(block, quant, x, n_rows, q, tried, costs);
        for (size_t r = 0; r < n_rows; r++) {
            if (!(costs[r] < least[r]))
                continue;
            least[r] = costs[r];
            scales[r] = tried[r];
            max_scales[r] = fmaxf(max_scales[r], fabsf(tried[r]));
        }
    }
    memcpy(block->targets, before, n_bytes);
}

static void
feed_back(const struct lmq_hessian *hessian, const struct lmq_quant *quant,
          const float *x, const double *offsets, size_t n_rows,
          struct lmq_feedback_room *room, int8_t *q, float *scales,
          double *costs, float *max_scales)
{
    size_t n = hessian->n, group = quant->group_size;
    size_t n_groups = lmq_groups_per_row(n, group);
    float weights[LMQ_GROUP_MAX], block_scales[ROWS] = {0};

    memset(room->errors, 0, n * ROWS * sizeof(double));
    for (size_t at = 0; at < n; at += group) {
        struct block block = {hessian, offsets, at,
                              lmq_size_min(group, n - at), room->targets,
                              room->errors};
        begin_targets(&block);
        for (size_t r = 0; r < n_rows; r++)
            for (size_t k = 0; k < block.n; k++)
                room->targets[k * ROWS + r] += (double)x[r * n + at + k];
        add_earlier(&block);
        find_weights(hessian->weights + at, block.n, weights);
        for (size_t r = 0; r < n_rows; r++)
            block_scales[r] =
                find_scale(&block, quant, weights, r, &max_scales[r]);
        try_steps(&block, quant, x, n_rows, room->before, q, block_scales,
                  max_scales);
        for (size_t r = 0; r < n_rows; r++)
            scales[r * n_groups + at / group] = block_scales[r];
        round_block(&block, quant, x, n_rows, q, block_scales, costs);
    }
}

/* ---- By search alone ---- */

/* What the errors of rows cost that are rounded already. */
static void
add_costs(const struct lmq_hessian *hessian, const double *offsets,
          struct lmq_feedback_room *room, double *costs)
{
    for (size_t at = 0; at < hessian->n; at += LMQ_GROUP_MIN) {
        struct block block = {hessian, offsets, at,
                              lmq_size_min(LMQ_GROUP_MIN, hessian->n - at),
                              room->targets, room->errors};
        begin_targets(&block);
        add_earlier(&block);
        for (size_t k = 0; k < block.n; k++) {
            double weight = hessian->weights[at + k];
            for (size_t r = 0; r < ROWS; r++) {
                double miss = room->errors[(at + k) * ROWS + r] +
                              room->targets[k * ROWS + r];
                costs[r] += weight * (miss * miss);
            }
            add_column(&block, k);
        }
    }
}

static void
search_row(const struct lmq_quant *quant, const float *x, size_t n,
           struct lmq_feedback_room *room, struct lmq_quant_stats *stats)
{
    struct lmq_quant search = *quant;

    search.method = LMQ_METHOD_SEARCH;
    search.rotation = LMQ_ROTATION_NONE; /* the rows are turned already */
    lmq_quantize_row(&search, x, n, room->q, room->scales, stats);
}

static void
search_costs(const struct lmq_hessian *hessian, const struct lmq_quant *quant,
             const float *x, const double *offsets, size_t n_rows,
             struct lmq_feedback_room *room, double *costs)
{
    size_t n = hessian->n;

    memset(room->errors, 0, n * ROWS * sizeof(double));
    for (size_t r = 0; r < n_rows; r++) {
        struct lmq_quant_stats stats = {0};
        search_row(quant, x + r * n, n, room, &stats);
        for (size_t k = 0; k < n; k++)
            room->errors[k * ROWS + r] =
                (double)x[r * n + k] -
                (double)room->q[k] *
                    (double)room->scales[k / quant->group_size];
    }
    add_costs(hessian, offsets, room, costs);
}

/* ---- All of it ---- */

void
lmq_feedback_rows(const struct lmq_hessian *hessian,
                  const struct lmq_quant *quant, const float *x,
                  const double *offsets, size_t n_rows,
                  struct lmq_feedback_room *room, int8_t *q, float *scales,
                  struct lmq_feedback_result *result)
{
    size_t n = hessian->n, n_groups = lmq_groups_per_row(n, quant->group_size);
    double costs[ROWS] = {0}, searched[ROWS] = {0};
    float max_scales[ROWS] = {0};

    *result = (struct lmq_feedback_result){0};
    feed_back(hessian, quant, x, offsets, n_rows, room, q, scales, costs,
              max_scales);
    search_costs(hessian, quant, x, offsets, n_rows, room, searched);
    for (size_t r = 0; r < n_rows; r++) {
        if (!(costs[r] <= searched[r])) {
            struct lmq_quant_stats stats = {0};
            search_row(quant, x + r * n, n, room, &stats);
            memcpy(q + r * n, room->q, n);
            memcpy(scales + r * n_groups, room->scales,
                   n_groups * sizeof(*scales));
            costs[r] = searched[r];
            max_scales[r] = stats.max_scale;
        }
        result->cost += costs[r];
        result->searched += searched[r];
        result->max_scale = fmaxf(result->max_scale, max_scales[r]);
    }
}

void
lmq_weighted_rows(const struct lmq_hessian *hessian,
                  const struct lmq_quant *quant, const float *x, size_t n_rows,
                  int8_t *q, float *scales,
                  struct lmq_feedback_result *result)
{
    size_t n = hessian->n, group = quant->group_size;
    float weights[LMQ_GROUP_MAX];

    *result = (struct lmq_feedback_result){0};
    for (size_t r = 0; r < n_rows; r++)
        for (size_t at = 0; at < n; at += group, scales++) {
            size_t size = lmq_size_min(group, n - at);
            const float *from = x + r * n + at;
            find_weights(hessian->weights + at, size, weights);
            float wanted = lmq_quant_weighted_scale(quant, from, weights, size,
                                                    scales);
            result->max_scale = fmaxf(result->max_scale, wanted);
            float inverse = *scales < 0 || *scales > 0 ? 1 / *scales : 0;
            for (size_t k = 0; k < size; k++)
                q[r * n + at + k] = (int8_t)lmq_quant_round(
                    quant->bits, from[k], inverse);
        }
}
