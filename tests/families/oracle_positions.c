/*
 * oracle_positions.c - rotary positions and ALiBi, in doubles.
 */
#include "config.h"

#include "tests/families/oracle_parts.h"

#include <math.h>

/* The dimension (of rotary ones) whose pair turns `turns` times in the
 * original context. */
static double
yarn_dimension(const struct oracle_shape *s, double turns, double theta,
               size_t dims)
{
    return (double)dims * log((double)s->original / (turns * 2 * acos(-1))) /
           (2 * log(theta));
}

/* How much of the frequency stays, from 0 to 1. */
static double
yarn_keeps(const struct oracle_shape *s, size_t pair, double theta,
           size_t dims)
{
    double from = yarn_dimension(s, s->high, theta, dims);
    double to = yarn_dimension(s, s->low, theta, dims);

    from = fmax(s->is_ramp_exact ? from : floor(from), 0);
    to = fmin(s->is_ramp_exact ? to : ceil(to), (double)dims - 1);

    if (from == to) /* the definition's own way out */
        to += 0.001;
    return 1 - fmin(fmax(((double)pair - from) / (to - from), 0), 1);
}

static double
llama3_frequency(const struct oracle_shape *s, double f)
{
    double wave = 2 * acos(-1) / f, original = (double)s->original;

    if (wave < original / s->high)
        return f;
    if (wave > original / s->low)
        return f / s->factor;
    double smooth = (original / wave - s->low) / (s->high - s->low);
    return (1 - smooth) * f / s->factor + smooth * f;
}

/* What scaling makes of theta. */
static double
base(const struct oracle_shape *s, size_t position, double theta, size_t dims)
{
    double power = (double)dims / ((double)dims - 2);
    double seen = fmax((double)position + 1, (double)s->original);

    if (s->rope == ORACLE_ROPE_NTK)
        return theta * pow(s->factor, power);
    if (s->rope == ORACLE_ROPE_DYNAMIC)
        return theta *
               pow(s->factor * seen / (double)s->original - (s->factor - 1),
                   power);
    return theta;
}

bool
oracle_is_long(const struct oracle_shape *s, size_t n)
{
    return s->rope == ORACLE_ROPE_LONG && s->original > 0 && n > s->original;
}

static double
frequency(const struct oracle *o, size_t pair, size_t dims, size_t position,
          bool is_scaled, double theta)
{
    const struct oracle_shape *s = o->s;
    double power = -2 * (double)pair / (double)dims;
    double f = pow(theta, power);

    if (!is_scaled)
        return f;
    f = pow(base(s, position, theta, dims), power);
    if (s->rope == ORACLE_ROPE_LINEAR)
        return f / s->factor;
    if (s->rope == ORACLE_ROPE_LLAMA3)
        return llama3_frequency(s, f);
    if (s->rope == ORACLE_ROPE_LONG)
        return f / (oracle_is_long(s, o->n) ? s->long_factors
                                            : s->short_factors)[pair];
    if (s->rope == ORACLE_ROPE_YARN) {
        double keeps = yarn_keeps(s, pair, theta, dims);
        return f * keeps + f / s->factor * (1 - keeps);
    }
    return f;
}

void
oracle_turn(const struct oracle *o, size_t layer, double *x, size_t position,
            int way)
{
    const struct oracle_shape *s = o->s;
    size_t dims = oracle_rotary_dim(s, layer);
    bool is_part = s->full_part > 0 && oracle_is_full(s, layer);
    size_t n_turning =
        is_part ? (size_t)(s->full_part * (double)dims / 2) : dims / 2;
    bool is_local = s->window_theta > 0 &&
                    oracle_pattern(s->sliding, layer) &&
                    oracle_pool_size(s, layer) == 0;
    double theta = is_local ? s->window_theta : s->theta;
    double scale = is_local ? 1 : oracle_or_one(s->rope_scale);

    if (s->positions != ORACLE_ROTARY ||
        (s->turning != NULL && !oracle_pattern(s->turning, layer)))
        return;
    for (size_t i = 0; i < n_turning; i++) {
        double *one = s->is_interleaved ? x + 2 * i : x + i;
        double *two = s->is_interleaved ? one + 1 : one + dims / 2;
        double angle = (double)position *
                       frequency(o, i, dims, position, !is_local, theta);
        if (o->model->turning.w != NULL)
            angle *= exp((double)o->model->turning.w[i]);
        double a = *one, b = *two;
        if (s->turns_back != (way < 0))
            angle = -angle;
        *one = scale * (a * cos(angle) - b * sin(angle));
        *two = scale * (a * sin(angle) + b * cos(angle));
    }
}

void
oracle_rotate(const struct oracle *o, size_t layer, double *x, size_t n_heads,
              size_t width, size_t first)
{
    for (size_t i = 0; i < o->n * n_heads; i++)
        oracle_turn(o, layer, x + i * width + first, i / n_heads, 1);
}

double
oracle_growth(const struct oracle_shape *s, size_t layer, size_t t)
{
    if (!(s->growth > 0) ||
        (s->growing != NULL && !oracle_pattern(s->growing, layer)))
        return 1;
    return 1 + s->growth * log(1 + floor((double)(t + s->growth_shift) /
                                         (double)s->growth_period));
}

/* Of n heads, n a power of two: 2^(-8/n), 2^(-16/n), ...; of others the first
 * so many, and then every other one of twice as many. */
double
oracle_alibi_slope(size_t head, size_t n_heads)
{
    size_t n = 1;

    while (2 * n <= n_heads)
        n *= 2;
    if (head < n)
        return pow(2, -8.0 * (double)(head + 1) / (double)n);
    return pow(2, -8.0 * (double)(2 * (head - n) + 1) / (double)(2 * n));
}
