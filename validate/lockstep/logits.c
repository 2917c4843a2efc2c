/*
 * logits.c - compares two rows of logits.
 *
 * The loops are plain C over eight lanes, so that compilers vectorize them
 * and the order of every sum is fixed.
 */
#include "config.h"

#include "validate/lockstep/logits.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "validate/lockstep/exponentials.h"

#define LANES 8
#define TOP 5

static double
sum_lanes(const double s[LANES])
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static float
maximum(const float *x, size_t n)
{
    float lanes[LANES], top = x[0];

    for (int j = 0; j < LANES; j++)
        lanes[j] = x[0];
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] = x[i + (size_t)j] > lanes[j] ? x[i + (size_t)j]
                                                   : lanes[j];
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (int j = 0; j < LANES; j++)
        top = lanes[j] > top ? lanes[j] : top;
    return top;
}

/* The five largest, best first; of equal ones the first. */
static void
find_top(const float *x, size_t n, int32_t top[TOP])
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        if (found == TOP && !(x[i] > x[top[TOP - 1]]))
            continue;
        size_t at = found < TOP ? found++ : TOP - 1;
        while (at > 0 && x[i] > x[top[at - 1]]) {
            top[at] = top[at - 1];
            at--;
        }
        top[at] = (int32_t)i;
    }
    for (; found < TOP; found++)
        top[found] = -1;
}

static void
compare_tops(const float *a, const float *b, size_t n, int32_t next,
             struct lmq_position_drift *drift)
{
    int32_t top_a[TOP], top_b[TOP];
    int shared = 0, all = 0;

    find_top(a, n, top_a);
    find_top(b, n, top_b);
    for (int i = 0; i < TOP; i++)
        for (int j = 0; j < TOP; j++)
            shared += top_a[i] >= 0 && top_a[i] == top_b[j];
    for (int i = 0; i < TOP; i++)
        all += top_a[i] >= 0;
    drift->top5 = (double)shared / all;
    drift->top1_reference = top_a[0];
    drift->top1 = top_b[0];
    drift->is_top1_equal = top_a[0] == top_b[0];
    drift->is_lost = top_a[0] == next && top_b[0] != next;
    drift->is_gained = top_a[0] != next && top_b[0] == next;
}

void
lmq_compare_logits(const float *a, const float *b, size_t n, int32_t next,
                   double *scratch, struct lmq_position_drift *drift)
{
    double *ea = scratch, *eb = scratch + n;
    float top_a = maximum(a, n), top_b = maximum(b, n);
    double sum_a = lmq_exponentials(a, n, top_a, ea);
    double sum_b = lmq_exponentials(b, n, top_b, eb);
    double log_a = (double)top_a + lmq_log(sum_a);
    double log_b = (double)top_b + lmq_log(sum_b);
    double shift = log_b - log_a, scale_a = 1 / sum_a, scale_b = 1 / sum_b;
    double kld[LANES] = {0}, tv[LANES] = {0}, abs_sum[LANES] = {0},
           sq[LANES] = {0}, dot[LANES] = {0}, aa[LANES] = {0},
           bb[LANES] = {0}, most[LANES] = {0};

    for (size_t i = 0; i < n; i += LANES) {
        size_t width = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < width; j++) {
            double x = (double)a[i + j], y = (double)b[i + j], d = x - y;
            double p = ea[i + j] * scale_a, q = eb[i + j] * scale_b;
            kld[j] += p * (d + shift);
            tv[j] += fabs(p - q);
            abs_sum[j] += fabs(d);
            sq[j] += d * d;
            dot[j] += x * y;
            aa[j] += x * x;
            bb[j] += y * y;
            most[j] = fabs(d) > most[j] ? fabs(d) : most[j];
        }
    }
    for (int j = 1; j < LANES; j++)
        most[0] = most[j] > most[0] ? most[j] : most[0];
    double divergence = sum_lanes(kld);
    *drift = (struct lmq_position_drift){
        .nll_reference = log_a - (double)a[next],
        .nll = log_b - (double)b[next],
        /* Rounding may leave -1e-16, but none is below 0. NaN stays. */
        .kld = divergence < 0 ? 0 : divergence,
        .total_variation = sum_lanes(tv) / 2,
        .delta_p = eb[next] * scale_b - ea[next] * scale_a,
        .max_abs = most[0],
        .sum_abs = sum_lanes(abs_sum),
        .sum_sq = sum_lanes(sq),
        .dot = sum_lanes(dot),
        .norm_reference_sq = sum_lanes(aa),
        .norm_sq = sum_lanes(bb),
    };
    compare_tops(a, b, n, next, drift);
}

void
lmq_compare_streams(const float *a, const float *b, size_t n,
                    struct lmq_stream_drift *drift)
{
    double err[LANES] = {0}, aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0};

    for (size_t i = 0; i < n; i += LANES) {
        size_t width = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < width; j++) {
            double x = (double)a[i + j], y = (double)b[i + j];
            err[j] += (x - y) * (x - y);
            aa[j] += x * x;
            bb[j] += y * y;
            ab[j] += x * y;
        }
    }
    *drift = (struct lmq_stream_drift){n, sum_lanes(err), sum_lanes(aa),
                                       sum_lanes(bb), sum_lanes(ab)};
}

void
lmq_stream_drift_add(struct lmq_stream_drift *total,
                     const struct lmq_stream_drift *more)
{
    total->n += more->n;
    total->err_sq += more->err_sq;
    total->reference_sq += more->reference_sq;
    total->model_sq += more->model_sq;
    total->dot += more->dot;
}
