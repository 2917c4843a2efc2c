/*
 * factor.c - a Hessian in its units, and factored, block by block.
 *
 * All sums have one order, which follows from the sizes of blocks and not from
 * who computes them.
 */
#include "config.h"

#include "convert/calibrate/feedback/hessian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    hessian->unit = unit;
    for (size_t i = 0; i < hessian->n; i++) {
        double *row = hessian->sums + i * hessian->stride;
        row[i] = diagonal_at(hessian, i, unit, damping);
        for (size_t j = i + 1; j < hessian->n; j++)
            row[j] /= unit;
    }
}

/* ---- Factoring ---- */

/* A block on the diagonal, from who has it. */
struct pivot {
    double u[BLOCK * BLOCK], d[BLOCK];
    uint64_t is_fine;
};

/* Columns [from, to), which are divided by what stands behind them. The strip i
 * of rows is of the process i modulo the number of them. */
struct panel {
    struct lmq_hessian *hessian;
    const struct lmq_peers *peers;
    size_t from, to;
    struct pivot pivot;
    double *plain, *scaled; /* what is above it, turned, a block for each strip;
                               and that times -D[j] */
};

static size_t
n_peers(const struct panel *panel)
{
    return lmq_peers_n(panel->peers);
}

static size_t
n_strips(const struct panel *panel)
{
    return panel->from / BLOCK; /* above it */
}

static size_t
strips_of(const struct panel *panel, size_t rank)
{
    size_t n = n_strips(panel), n_ranks = n_peers(panel);

    return n / n_ranks + (rank < n % n_ranks);
}

/* Where a strip's block stands: those of a process one after the other. */
static size_t
place_of(const struct panel *panel, size_t strip)
{
    size_t n = n_strips(panel), n_ranks = n_peers(panel);
    size_t rank = strip % n_ranks;

    return (strip / n_ranks + rank * (n / n_ranks) +
            lmq_size_min(rank, n % n_ranks)) *
           BLOCK * BLOCK;
}

/* One column after the other, from the last. */
static bool
factor_block(struct panel *panel, double least)
{
    size_t n = panel->to - panel->from, stride = panel->hessian->stride;
    const double *block = panel->hessian->sums + panel->from * (stride + 1);
    double *u = panel->pivot.u;

    for (size_t i = 0; i < n; i++)
        memcpy(u + i * BLOCK, block + i * stride, n * sizeof(*u));
    for (size_t j = n; j-- > 0;) {
        double d = u[j * BLOCK + j];
        if (!(d >= least && d <= HUGE_VAL / 2))
            return false;
        panel->pivot.d[j] = d;
        for (size_t i = 0; i < j; i++) {
            double x = u[i * BLOCK + j] / d;
            for (size_t k = i; k < j; k++)
                u[i * BLOCK + k] -= x * u[k * BLOCK + j];
        }
        for (size_t i = 0; i < j; i++)
            u[i * BLOCK + j] /= d;
    }
    return true;
}

/* What all have to know of the block on the diagonal. */
static enum lmq_status
find_pivot(struct panel *panel, double least, struct lmq_error *err)
{
    struct lmq_hessian *hessian = panel->hessian;
    struct pivot *pivot = &panel->pivot;
    size_t n = panel->to - panel->from, stride = hessian->stride;
    unsigned owner = (unsigned)(panel->from / BLOCK % n_peers(panel));

    if (owner == lmq_peers_rank(panel->peers))
        pivot->is_fine = factor_block(panel, least);
    enum lmq_status status =
        lmq_peers_share(panel->peers, owner, pivot, sizeof(*pivot), err);
    memcpy(hessian->weights + panel->from, pivot->d, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        memcpy(hessian->sums + panel->from * (stride + 1) + i * stride,
               pivot->u + i * BLOCK, n * sizeof(double));
    return status;
}

/* U[i][from..to) of the rows of a strip. */
static void
solve_strip(const struct panel *panel, size_t strip)
{
    const struct pivot *pivot = &panel->pivot;
    size_t n = panel->to - panel->from, stride = panel->hessian->stride;
    const double *rows =
        panel->hessian->sums + strip * BLOCK * stride + panel->from;
    double *plain = panel->plain + place_of(panel, strip);
    double *scaled = panel->scaled + place_of(panel, strip);

    for (size_t j = n; j-- > 0;) {
        double *x = plain + j * BLOCK;
        for (size_t i = 0; i < BLOCK; i++)
            x[i] = rows[i * stride + j];
        for (size_t m = j + 1; m < n; m++)
            for (size_t i = 0; i < BLOCK; i++)
                x[i] += scaled[m * BLOCK + i] * pivot->u[j * BLOCK + m];
        for (size_t i = 0; i < BLOCK; i++) {
            x[i] /= pivot->d[j];
            scaled[j * BLOCK + i] = -pivot->d[j] * x[i];
        }
    }
}

/* A member's share of the process's own. */
static void
solve(void *context, size_t member, size_t n_members)
{
    const struct panel *panel = context;
    size_t rank = lmq_peers_rank(panel->peers), n = n_peers(panel);

    for (size_t i = rank + n * member; i < n_strips(panel); i += n * n_members)
        solve_strip(panel, i);
}

static enum lmq_status
share_rows(const struct panel *panel, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (unsigned i = 0; i < n_peers(panel) && status == LMQ_OK; i++)
        status = lmq_peers_share(
            panel->peers, i, panel->plain + place_of(panel, i),
            strips_of(panel, i) * BLOCK * BLOCK * sizeof(double), err);
    return status;
}

/* What processes have found, to where it belongs. */
static void
spread(void *context, size_t member, size_t n_members)
{
    const struct panel *panel = context;
    size_t n = panel->to - panel->from, stride = panel->hessian->stride;

    for (size_t strip = member; strip < n_strips(panel);
         strip += n_members) {
        const double *plain = panel->plain + place_of(panel, strip);
        double *scaled = panel->scaled + place_of(panel, strip);
        double *rows = panel->hessian->sums + strip * BLOCK * stride;
        for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < BLOCK; i++)
                scaled[j * BLOCK + i] =
                    -panel->pivot.d[j] * plain[j * BLOCK + i];
        for (size_t i = 0; i < BLOCK; i++)
            for (size_t j = 0; j < n; j++)
                rows[i * stride + panel->from + j] = plain[j * BLOCK + i];
    }
}

/* What is above and left of the panel, less what it explains. */
static void
update(void *context, size_t member, size_t n_members)
{
    const struct panel *panel = context;
    size_t rank = lmq_peers_rank(panel->peers), n = n_peers(panel);
    size_t stride = panel->hessian->stride;

    for (size_t i = rank + n * member; i < n_strips(panel); i += n * n_members)
        for (size_t j = i; j < n_strips(panel); j++)
            lmq_outer_add(
                panel->hessian->sums + (i * stride + j) * BLOCK, stride,
                (struct lmq_strip){panel->scaled + place_of(panel, i), BLOCK},
                (struct lmq_strip){panel->plain + place_of(panel, j), BLOCK},
                BLOCK, BLOCK, panel->to - panel->from);
}

static enum lmq_status
divide(struct panel *panel, struct lmq_team *team, struct lmq_error *err)
{
    lmq_team_run(team, lmq_team_size(team), solve, panel);
    enum lmq_status status = share_rows(panel, err);
    if (status != LMQ_OK)
        return status;
    lmq_team_run(team, lmq_team_size(team), spread, panel);
    lmq_team_run(team, lmq_team_size(team), update, panel);
    return LMQ_OK;
}

static enum lmq_status
factor(struct panel *panel, double least, const struct lmq_workforce *who,
       bool *is_factored, struct lmq_error *err)
{
    struct lmq_hessian *hessian = panel->hessian;
    enum lmq_status status = LMQ_OK;

    for (size_t p = lmq_hessian_strips(hessian); p-- > 0 && status == LMQ_OK;) {
        panel->from = p * BLOCK;
        panel->to = lmq_size_min((p + 1) * BLOCK, hessian->n);
        status = find_pivot(panel, least, err);
        if (status == LMQ_OK && !panel->pivot.is_fine)
            return LMQ_OK;
        if (status == LMQ_OK)
            status = divide(panel, who->team, err);
        if (status == LMQ_OK)
            status = lmq_counter_report(who->counter, err);
    }
    *is_factored = status == LMQ_OK;
    return status;
}

enum lmq_status
lmq_hessian_factor(struct lmq_hessian *hessian, double damping,
                   const struct lmq_workforce *who, bool *is_factored,
                   struct lmq_error *err)
{
    double unit = find_unit(hessian);
    size_t n = BLOCK * hessian->stride;
    double *room = lmq_mem_aligned(2 * n, sizeof(double));
    struct panel *panel = calloc(1, sizeof(*panel));
    enum lmq_status status =
        room == NULL || panel == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    *is_factored = false;
    if (unit > 0 && status == LMQ_OK) {
        *panel = (struct panel){.hessian = hessian, .peers = who->peers,
                                .plain = room, .scaled = room + n};
        set_units(hessian, unit, damping);
        /* No pivot is smaller than what was added, but for rounding. */
        status = factor(panel, damping / 2, who, is_factored, err);
    }
    free(panel);
    lmq_mem_free(room);
    return status;
}
