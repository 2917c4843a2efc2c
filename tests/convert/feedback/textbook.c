/*
 * textbook.c - tokens, their Hessian, and what errors cost, as plainly as it
 * can be said.
 */
#include "config.h"

#include "tests/convert/feedback/textbook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"

#define COLUMNS TEXTBOOK_COLUMNS
#define TOKENS TEXTBOOK_TOKENS
#define DAMPING TEXTBOOK_DAMPING

/* What columns have in common, so that feedback has something to do. */
float *
textbook_tokens(size_t n, size_t width, struct random *random)
{
    float *x = malloc(n * width * sizeof(*x));

    ck_assert_ptr_nonnull(x);
    for (size_t t = 0; t < n; t++) {
        double common = random_normal(random), last = 0;
        for (size_t i = 0; i < width; i++) {
            last = 0.7 * last + random_normal(random);
            x[t * width + i] =
                (float)((1 + (double)(i % 5)) * (last + 0.5 * common));
        }
    }
    return x;
}

void
textbook_rows(float *x, size_t n, struct random *random)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(0.02 * random_normal(random));
}

/* Whether it can be factored. */
bool
textbook_factor(struct lmq_hessian *hessian, double damping,
                struct lmq_team *team)
{
    const struct lmq_counter counter = {0};
    const struct lmq_workforce who = {.team = team, .counter = &counter};
    bool is_factored;

    ck_assert_int_eq(
        lmq_hessian_factor(hessian, damping, &who, &is_factored, NULL),
        LMQ_OK);
    return is_factored;
}

/* ---- Adding up ---- */

struct adding {
    struct lmq_hessian *hessian;
    const float *x;
    size_t n;
    double *buffers[8];
};

static void
add_part(void *context, size_t member, size_t n_members)
{
    struct adding *adding = context;

    lmq_hessian_add(adding->hessian, adding->x, COLUMNS, adding->n,
                    adding->buffers[member], member, n_members);
    if (member == 0)
        adding->hessian->n_tokens += adding->n;
}

/* Tokens in calls of `step`. */
struct lmq_hessian
textbook_add_up(const float *x, size_t n, size_t step, struct lmq_team *team)
{
    struct lmq_hessian hessian;
    struct adding adding = {.hessian = &hessian};

    ck_assert(lmq_hessian_init(&hessian, COLUMNS));
    for (size_t i = 0; i < 8; i++) {
        adding.buffers[i] =
            calloc(lmq_hessian_buffer(COLUMNS), sizeof(double));
        ck_assert_ptr_nonnull(adding.buffers[i]);
    }
    for (size_t at = 0; at < n; at += step) {
        adding.x = x + at * COLUMNS;
        adding.n = n - at < step ? n - at : step;
        lmq_team_run(team, lmq_team_size(team), add_part, &adding);
    }
    for (size_t i = 0; i < 8; i++)
        free(adding.buffers[i]);
    return hessian;
}

double
textbook_sum(const float *x, size_t n, size_t i, size_t j)
{
    double sum = 0;

    for (size_t t = 0; t < n; t++)
        sum += (double)x[t * COLUMNS + i] * (double)x[t * COLUMNS + j];
    return sum;
}

/* ---- In plain doubles ---- */

/* H in the units of a factored one, whole. */
double *
textbook_hessian(const float *x)
{
    double *h = calloc(COLUMNS * COLUMNS, sizeof(*h)), unit = 0;

    ck_assert_ptr_nonnull(h);
    for (size_t i = 0; i < COLUMNS; i++)
        unit += textbook_sum(x, TOKENS, i, i) / COLUMNS;
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            h[i * COLUMNS + j] = textbook_sum(x, TOKENS, i, j) / unit +
                                 (i == j ? DAMPING : 0);
    return h;
}

double
textbook_cost(const double *h, const float *x, const int8_t *q,
              const float *scales, size_t group)
{
    double errors[COLUMNS], sum = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        errors[i] = (double)x[i] - (double)q[i] * (double)scales[i / group];
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            sum += errors[i] * h[i * COLUMNS + j] * errors[j];
    return sum;
}

/* Gauss and Jordan. */
void
textbook_invert(const double *h, double *inverse)
{
    static double a[COLUMNS][2 * COLUMNS];

    memset(a, 0, sizeof(a));
    for (size_t i = 0; i < COLUMNS; i++) {
        memcpy(a[i], h + i * COLUMNS, COLUMNS * sizeof(*h));
        a[i][COLUMNS + i] = 1;
    }
    for (size_t p = 0; p < COLUMNS; p++)
        for (size_t i = 0; i < COLUMNS; i++) {
            double f = i == p ? 1 / a[p][p] - 1 : -a[i][p] / a[p][p];
            for (size_t j = 0; j < 2 * COLUMNS && i != p; j++)
                a[i][j] += f * a[p][j];
        }
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            inverse[i * COLUMNS + j] = a[i][COLUMNS + j] / a[i][i];
}
