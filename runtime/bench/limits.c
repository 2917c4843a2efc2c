/*
 * limits.c - how fast could it be?
 */
#include "config.h"

#include "runtime/bench/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* Larger than any cache. */
#define READ_BYTES ((size_t)512 << 20)
/* Fewer weights are read again, until it was so much; less memory tells
 * nothing. */
#define READ_LEAST ((size_t)64 << 20)
#define COMPUTE_SECONDS 0.05

/* ---- Samples ---- */

void
lmq_samples_add(struct lmq_samples *samples, double value)
{
    if (samples->n < LMQ_SAMPLES_MAX)
        samples->values[samples->n++] = value;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double
lmq_samples_median(struct lmq_samples *samples)
{
    qsort(samples->values, (size_t)samples->n, sizeof(samples->values[0]),
          compare_doubles);
    return samples->values[samples->n / 2];
}

/* ---- Computing ---- */

/* What all members do at the same time; each does as much. */
struct arithmetic {
    double (*run)(size_t rounds);
    size_t rounds;
    double ops; /* of all */
};

static void
run_arithmetic(void *context, size_t member, size_t n_members)
{
    struct arithmetic *arithmetic = context;
    double ops = arithmetic->run(arithmetic->rounds);

    if (member == 0)
        arithmetic->ops = ops * (double)n_members;
}

static double
measure_arithmetic(struct lmq_team *team, double (*run)(size_t rounds))
{
    struct arithmetic arithmetic = {.run = run, .rounds = 1 << 14};
    double seconds = 0;

    while (seconds < COMPUTE_SECONDS) {
        double start = lmq_clock_seconds();
        arithmetic.rounds *= 2;
        lmq_team_run(team, lmq_team_size(team), run_arithmetic, &arithmetic);
        seconds = lmq_clock_seconds() - start;
    }
    return arithmetic.ops / seconds;
}

void
lmq_limits_compute(struct lmq_limits *limits)
{
    const struct lmq_kernels *kernels = lmq_kernels();

    lmq_samples_add(&limits->int8_ops,
                    measure_arithmetic(limits->team, kernels->peak_int8));
    lmq_samples_add(&limits->f32_flops,
                    measure_arithmetic(limits->team, kernels->peak_f32));
}

/* ---- Reading ---- */

/* What a member reads, in one of the ways that there are. */
struct reading {
    const struct lmq_limits *limits;
    bool is_one, ahead;
    size_t member, n_members;
    size_t n_bytes; /* so far, of all members */
};

/* Its share of what lies there. */
static void
read_part(struct reading *reading, const void *memory, size_t n_bytes)
{
    size_t share = n_bytes / reading->n_members / LMQ_MEM_ALIGN * LMQ_MEM_ALIGN;
    volatile float sink = lmq_kernels()->read_memory(
        (const unsigned char *)memory + share * reading->member, share,
        reading->is_one, reading->ahead);

    (void)sink;
    reading->n_bytes += share * reading->n_members;
}

static void
read_memory(struct reading *reading)
{
    read_part(reading, reading->limits->memory, reading->limits->n_bytes);
}

static void
read_matrix(struct reading *reading, const struct lmq_matrix *matrix)
{
    if (reading->n_bytes >= READ_BYTES)
        return;
    if (matrix->is_int8)
        read_part(reading, matrix->tiles.q,
                  lmq_tiles_count(matrix->tiles.n_rows) *
                      (size_t)lmq_tile_values_size(matrix->tiles.n_cols,
                                                   matrix->tiles.group,
                                                   matrix->tiles.bits));
    else
        read_part(reading, matrix->rows.data, (size_t)lmq_matrix_bytes(matrix));
}

/* Where decode reads them, again and again if they are few. */
static void
read_weights(struct reading *reading)
{
    const struct lmq_model *model = reading->limits->model;

    do {
        for (uint32_t i = 0; i < model->hparams.n_layers; i++)
            for (size_t j = 0; j < model->layers[i].n_matrices; j++)
                read_matrix(reading, model->layers[i].matrices[j]);
        read_matrix(reading, &model->head);
    } while (reading->n_bytes > 0 && reading->n_bytes < READ_LEAST);
}

/* What all members read at the same time, and in what way. */
struct reading_together {
    struct reading one;
    void (*read)(struct reading *reading);
    size_t n_bytes;
};

static void
read_together(void *context, size_t member, size_t n_members)
{
    struct reading_together *all = context;
    struct reading one = all->one;

    one.member = member;
    one.n_members = n_members;
    all->read(&one);
    if (member == 0)
        all->n_bytes = one.n_bytes;
}

/* The limit is what the best way reads. */
static double
measure_reading(const struct lmq_limits *limits,
                void (*read)(struct reading *reading))
{
    double best = 0;

    for (int way = 0; way < 4; way++) {
        struct reading_together all = {
            {.limits = limits, .is_one = way / 2 == 1, .ahead = way % 2 == 1},
            read, 0};
        double start = lmq_clock_seconds();
        lmq_team_run(limits->team, lmq_team_size(limits->team), read_together,
                     &all);
        best = fmax(best,
                    (double)all.n_bytes / (lmq_clock_seconds() - start));
    }
    return best;
}

void
lmq_limits_read(struct lmq_limits *limits)
{
    lmq_samples_add(&limits->read_bytes, measure_reading(limits, read_memory));
    lmq_samples_add(&limits->read_weights,
                    measure_reading(limits, read_weights));
}

/* ---- The whole ---- */

enum lmq_status
lmq_limits_prepare(struct lmq_limits *limits, const struct lmq_model *model,
                   struct lmq_team *team, struct lmq_error *err)
{
    double half = lmq_mem_limit() / 2;

    limits->model = model;
    limits->team = team;
    if (half < (double)READ_LEAST)
        return lmq_fail(err, LMQ_ERR_NOMEM, 0,
                        "the memory's speed is measured with %zu MiB at least, "
                        "half of the %.0f MiB that there are is less",
                        READ_LEAST >> 20, half / (1 << 19));
    limits->n_bytes = half < (double)READ_BYTES ? (size_t)half : READ_BYTES;
    limits->memory = lmq_mem_aligned(limits->n_bytes, 1);
    if (limits->memory == NULL)
        return lmq_fail_nomem(err);
    lmq_mem_large_pages(limits->memory, limits->n_bytes);
    memset(limits->memory, 1, limits->n_bytes); /* else there is none */
    return LMQ_OK;
}

void
lmq_limits_free(struct lmq_limits *limits)
{
    lmq_mem_free(limits->memory);
    limits->memory = NULL;
}
