/*
 * factor.c - a Hessian in its units, and factored, block by block.
 *
 * All sums have one order, which follows from the sizes of blocks and not from
 * who computes them.
 */
#include "config.h"

#include "convert/calibrate/feedback/hessian.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "convert/calibrate/feedback/outer.h"

#define BLOCK LMQ_HESSIAN_BLOCK

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
