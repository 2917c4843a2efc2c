/*
 * hessian.c - adding up and factoring, block by block.
 *
 * All sums have one order, which follows from the sizes of blocks and not from
 * who computes them.
 */
#include "config.h"

#include "convert/calibrate/hessian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "convert/calibrate/outer.h"
#include "quantize/rotate.h"

/* Rows and columns of a block: two strips of it and the block itself stay in
 * the first-level cache. A multiple of what lmq_outer_add() wants. */
#define BLOCK ((size_t)32)

/* Doubles in a line of the cache; an even number of them makes a block. */
#define LINE ((size_t)8)

/* ---- Memory ---- */

static size_t
padded(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* An odd number of lines of the cache lies between two rows: else those of a
 * strip would all want the same few places in it. */
static size_t
stride_of(size_t n)
{
    return padded(n) + LINE;
}

bool
lmq_hessian_init(struct lmq_hessian *hessian, size_t n)
{
    size_t stride = stride_of(n), bytes;

    *hessian = (struct lmq_hessian){.n = n, .stride = stride};
    if (!lmq_size_mul(stride, stride, &bytes))
        return false;
    hessian->sums = lmq_mem_aligned(bytes, sizeof(double));
    hessian->weights = lmq_mem_aligned(stride, sizeof(double));
    if (hessian->sums != NULL && hessian->weights != NULL)
        return true;
    lmq_hessian_free(hessian);
    return false;
}

void
lmq_hessian_free(struct lmq_hessian *hessian)
{
    lmq_mem_free(hessian->sums);
    lmq_mem_free(hessian->weights);
    *hessian = (struct lmq_hessian){0};
}

double
lmq_hessian_bytes(size_t n)
{
    double stride = (double)stride_of(n);

    return 8 * stride * (stride + 1 + 2 * (double)BLOCK);
}

size_t
lmq_hessian_buffer(size_t n)
{
    return LMQ_HESSIAN_TOKENS * stride_of(n);
}

/* ---- Adding up ---- */

/* Whole groups are turned if they are to be, as the runtime does it. */
static void
widen_row(const struct lmq_hessian *hessian, const float *x, double *to)
{
    size_t group = hessian->rotated, at = 0;
    float turned[LMQ_ROTATED_MOST];

    for (; group > 0 && at + group <= hessian->n; at += group) {
        memcpy(turned, x + at, group * sizeof(*x));
        lmq_rotate_group(turned, group);
        for (size_t i = 0; i < group; i++)
            to[at + i] = (double)turned[i];
    }
    for (; at < hessian->n; at++)
        to[at] = (double)x[at];
    for (; at < hessian->stride; at++)
        to[at] = 0;
}

void
lmq_hessian_add(struct lmq_hessian *hessian, const float *x, size_t stride,
                size_t n_tokens, double *buffer, size_t member,
                size_t n_members)
{
    size_t width = padded(hessian->n), room = hessian->stride;

    for (size_t at = 0; at < n_tokens; at += LMQ_HESSIAN_TOKENS) {
        size_t n = lmq_size_min(LMQ_HESSIAN_TOKENS, n_tokens - at);
        for (size_t t = 0; t < n; t++)
            widen_row(hessian, x + (at + t) * stride, buffer + t * room);
        for (size_t i = member * BLOCK; i < width; i += n_members * BLOCK)
            for (size_t j = i; j < width; j += BLOCK)
                lmq_outer_add(hessian->sums + i * room + j, room,
                              (struct lmq_strip){buffer + i, room},
                              (struct lmq_strip){buffer + j, room}, BLOCK,
                              BLOCK, n);
    }
}

size_t
lmq_hessian_strips(const struct lmq_hessian *hessian)
{
    return padded(hessian->n) / BLOCK;
}

void *
lmq_hessian_strip(const struct lmq_hessian *hessian, size_t i, size_t *n_bytes)
{
    *n_bytes = BLOCK * hessian->stride * sizeof(double);
    return hessian->sums + i * BLOCK * hessian->stride;
}

/* ---- Units ---- */

/* The mean of the diagonal; 0 if there is none. */
static double
find_unit(const struct lmq_hessian *hessian)
{
    double sum = 0;

    for (size_t i = 0; i < hessian->n; i++)
        sum += hessian->sums[i * hessian->stride + i];
    return isfinite(sum) ? sum / (double)hessian->n : 0;
}

/* Inputs that are always 0 have no weight of their own: any number is as good,
 * so they are rounded as if they mattered as much as others. */
static double
diagonal_at(const struct lmq_hessian *hessian, size_t i, double unit,
            double damping)
{
    double x = hessian->sums[i * hessian->stride + i];

    return (x > 0 ? x / unit : 1) + damping;
}

bool
lmq_hessian_weigh(struct lmq_hessian *hessian, double damping)
{
    double unit = find_unit(hessian);

    if (!(unit > 0))
        return false;
    for (size_t i = 0; i < hessian->n; i++)
        hessian->weights[i] = diagonal_at(hessian, i, unit, damping);
    return true;
}

static void
set_units(struct lmq_hessian *hessian, double unit, double damping)
{
    for (size_t i = 0; i < hessian->n; i++) {
        double *row = hessian->sums + i * hessian->stride;
        row[i] = diagonal_at(hessian, i, unit, damping);
        for (size_t j = i + 1; j < hessian->n; j++)
            row[j] /= unit;
    }
}

/* ---- Factoring ---- */

/* Columns [from, to), which are divided by what stands behind them. */
struct panel {
    struct lmq_hessian *hessian;
    size_t from, to;
    double *scaled, *plain; /* (BLOCK, stride): column j of U, turned, in row
                               j - from; times -D[j], and as it is */
};

/* The block on the diagonal: one column after the other, from the last. */
static bool
factor_block(const struct panel *panel, double least)
{
    struct lmq_hessian *hessian = panel->hessian;
    size_t stride = hessian->stride;
    double *a = hessian->sums;

    for (size_t j = panel->to; j-- > panel->from;) {
        double d = a[j * stride + j];
        if (!(d >= least && d <= HUGE_VAL / 2))
            return false;
        hessian->weights[j] = d;
        for (size_t i = panel->from; i < j; i++) {
            double u = a[i * stride + j] / d;
            for (size_t k = i; k < j; k++)
                a[i * stride + k] -= u * a[k * stride + j];
        }
        for (size_t i = panel->from; i < j; i++)
            a[i * stride + j] /= d;
    }
    return true;
}

/* U[i][from..to) of a row above the block. */
static void
solve_row(const struct panel *panel, size_t i)
{
    struct lmq_hessian *hessian = panel->hessian;
    size_t stride = hessian->stride;
    double *row = hessian->sums + i * stride;

    for (size_t j = panel->to; j-- > panel->from;) {
        const double *later = hessian->sums + j * stride;
        double x = row[j];
        for (size_t m = j + 1; m < panel->to; m++)
            x += panel->scaled[(m - panel->from) * stride + i] * later[m];
        row[j] = x / hessian->weights[j];
        panel->plain[(j - panel->from) * stride + i] = row[j];
        panel->scaled[(j - panel->from) * stride + i] =
            -hessian->weights[j] * row[j];
    }
}

static void
solve_rows(void *context, size_t member, size_t n_members)
{
    const struct panel *panel = context;

    for (size_t i = panel->from * member / n_members;
         i < panel->from * (member + 1) / n_members; i++)
        solve_row(panel, i);
}

/* What is above and left of the panel, less what it explains. */
static void
update(void *context, size_t member, size_t n_members)
{
    const struct panel *panel = context;
    struct lmq_hessian *hessian = panel->hessian;
    size_t stride = hessian->stride;

    for (size_t i = member * BLOCK; i < panel->from; i += n_members * BLOCK)
        for (size_t j = i; j < panel->from; j += BLOCK)
            lmq_outer_add(hessian->sums + i * stride + j, stride,
                          (struct lmq_strip){panel->scaled + i, stride},
                          (struct lmq_strip){panel->plain + j, stride}, BLOCK,
                          BLOCK, panel->to - panel->from);
}

static enum lmq_status
factor(struct lmq_hessian *hessian, double least, double *room,
       struct lmq_team *team, const struct lmq_counter *counter,
       bool *is_factored, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t p = lmq_hessian_strips(hessian); p-- > 0 && status == LMQ_OK;
         status = lmq_counter_report(counter, err)) {
        struct panel panel = {
            .hessian = hessian,
            .from = p * BLOCK,
            .to = lmq_size_min((p + 1) * BLOCK, hessian->n),
            .scaled = room,
            .plain = room + BLOCK * hessian->stride,
        };
        if (!factor_block(&panel, least))
            return LMQ_OK;
        lmq_team_run(team, lmq_team_size(team), solve_rows, &panel);
        lmq_team_run(team, lmq_team_size(team), update, &panel);
    }
    *is_factored = status == LMQ_OK;
    return status;
}

enum lmq_status
lmq_hessian_factor(struct lmq_hessian *hessian, double damping,
                   struct lmq_team *team, const struct lmq_counter *counter,
                   bool *is_factored, struct lmq_error *err)
{
    double unit = find_unit(hessian);
    double *room =
        lmq_mem_aligned(2 * BLOCK * hessian->stride, sizeof(double));
    enum lmq_status status = room == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    *is_factored = false;
    if (unit > 0 && status == LMQ_OK) {
        set_units(hessian, unit, damping);
        /* No pivot is smaller than what was added, but for rounding. */
        status = factor(hessian, damping / 2, room, team, counter, is_factored,
                        err);
    }
    lmq_mem_free(room);
    return status;
}
