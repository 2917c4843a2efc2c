/*
 * group_body.h - the arithmetic of quantizing a row.
 *
 * A file that defines LMQ_ROW_NAME, LMQ_SCALE_NAME and LMQ_ROW_WIDTH (floats
 * per register) before including this gets these functions, compiled for the
 * instruction set of that file. The code is plain C on 16 lanes: every
 * operation is an IEEE operation on separate elements and every sum has a fixed
 * order, so all builds give the same bits. It may define what its instruction
 * set has in one instruction: LMQ_ROW_MISS(v), v less the nearest whole number;
 * LMQ_ROW_HALF(v), floats as half precision has them; LMQ_ROW_MAX(a, b) and
 * LMQ_ROW_MIN(a, b), of 32-bit integers; LMQ_ROW_CLAMP(v, low, high), of finite
 * floats; with LMQ_ROW_SQUARES what group_look_body.h says.
 */
#include "quantize/group.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "quantize/dtype.h"

#define LANES 16

/* Sixteen lanes in as many vectors as the instruction set needs. */
#define PARTS (LANES / LMQ_ROW_WIDTH)

/* Groups that go through each pass before the next: what one waits for, another
 * does. */
#define BATCH ((size_t)16)

/* What is to know that its groups have 64 numbers. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

typedef float vec __attribute__((vector_size(4 * LMQ_ROW_WIDTH)));
typedef int32_t ivec __attribute__((vector_size(4 * LMQ_ROW_WIDTH)));
typedef float quad __attribute__((vector_size(16)));
typedef int32_t iquad __attribute__((vector_size(16)));
typedef int8_t bvec __attribute__((vector_size(LMQ_ROW_WIDTH)));

/* Adding and subtracting 1.5 * 2^23 rounds |v| < 2^22 to an integer, ties to
 * even, on any machine. */
#define ROUND_MAGIC 12582912.0f

/* The steps tried are max / (127 + offset). More than half above 127 would
 * clip the largest value; a step more than 5 % wider loses more than the luck
 * of the draw brings back (measured on normal and on trained weights). They are
 * told by their distance from one in the middle, in twentieths. */
#define EACH_STEP(F)                                                    \
    F(65), F(56), F(48), F(40), F(32), F(24), F(16), F(8), F(0), F(-8), \
        F(-16), F(-24), F(-32), F(-40), F(-52), F(-64)
#define OFFSET(k) (((k) - 56) / 20.0f)
static const float search_offsets[LANES] = {EACH_STEP(OFFSET)};

/* The same for fewer bits, around the largest magnitude that they have: 8, 16
 * or 32. Clipping the largest value pays there (4 bits, groups of 64: 0.1 dB;
 * four times as many steps give 0.02 to 0.06 dB more). */
static const float narrow_offsets[LANES] = {
    0.6f,   0.3f,   0.0f,   -0.3f,  -0.6f,  -0.9f,  -1.2f,  -1.5f,
    -1.8f,  -2.1f,  -2.4f,  -2.7f,  -3.0f,  -3.3f,  -3.6f,  -3.9f,
};

#ifndef LMQ_ROW_HALF
#define LMQ_ROW_HALF(v) half_of(v)
static inline vec
half_of(vec v)
{
    for (size_t i = 0; i < LMQ_ROW_WIDTH; i++)
        v[i] = lmq_f16_to_f32(lmq_f32_to_f16(v[i]));
    return v;
}
#endif

/* A sum over lanes folds the upper half onto the lower, four times. */
static inline float
sum_lanes(const vec *v)
{
    quad s[4];

    memcpy(s, v, sizeof(s));
    s[0] = (s[0] + s[2]) + (s[1] + s[3]);
    return (s[0][0] + s[0][2]) + (s[0][1] + s[0][3]);
}

/* Of two vectors of non-negative floats as bits, the larger of each pair:
 * integers compare as those floats do, and NaN and infinity come out on top. */
static inline ivec
larger(ivec a, ivec b)
{
#ifdef LMQ_ROW_MAX
    return (ivec)LMQ_ROW_MAX(a, b);
#else
    ivec is_more = a > b;

    return (a & is_more) | (b & ~is_more);
#endif
}

static inline ivec
smaller(ivec a, ivec b)
{
#ifdef LMQ_ROW_MIN
    return (ivec)LMQ_ROW_MIN(a, b);
#else
    return ~larger(~a, ~b);
#endif
}

static inline uint32_t
top_lane(const ivec *v)
{
    iquad s[4];
    int32_t top = 0;

    memcpy(s, v, sizeof(s));
    for (int i = 1; i < 4; i++) {
        iquad is_more = s[i] > s[0];
        s[0] = (s[i] & is_more) | (s[0] & ~is_more);
    }
    for (int i = 0; i < 4; i++)
        top = s[0][i] > top ? s[0][i] : top;
    return (uint32_t)top;
}

/* The bits of the largest magnitude among a multiple of LANES floats. */
static inline uint32_t
max_magnitude(const float *x, size_t n)
{
    ivec most[PARTS] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t p = 0; p < PARTS; p++) {
            ivec bits;
            memcpy(&bits, x + i + p * LMQ_ROW_WIDTH, sizeof(bits));
            most[p] = larger(bits & 0x7fffffff, most[p]);
        }
    return top_lane(most);
}

/* Scales as the file will hold them; 0 for one that is too small to divide by.
 * One below zero keeps its sign. */
static inline vec
stored_scales(const struct lmq_quant *quant, vec scales)
{
    /* Largest values near the end of the float range: the products with it
     * must stay finite, also if half precision rounds it up. */
    static const float most[] = {[4] = FLT_MAX * 0.999f / 8,
                                 [5] = FLT_MAX * 0.999f / 16,
                                 [6] = FLT_MAX * 0.999f / 32,
                                 [8] = FLT_MAX / 128};
    ivec sign = (ivec)scales & INT32_MIN;
    ivec largest = (ivec)((vec){0} + most[quant->bits]);
    vec v = (vec)smaller((ivec)scales & INT32_MAX, largest);

    if (quant->scales == LMQ_SCALES_F16)
        v = LMQ_ROW_HALF(v / quant->multiplier) * quant->multiplier;
    return (vec)(((ivec)v | sign) & (v >= FLT_MIN) & (v <= FLT_MAX));
}

/* To whole numbers; with fewer bits than 8 to those that there are. */
static inline vec
whole_of(vec v, unsigned bits)
{
    vec q = v + ROUND_MAGIC - ROUND_MAGIC;

    if (bits == LMQ_BITS_MAX)
        return q;
    float least = (float)lmq_q_least(bits), most = (float)lmq_q_most(bits);
    vec low = (vec){0} + least, high = (vec){0} + most;
#ifdef LMQ_ROW_CLAMP
    return LMQ_ROW_CLAMP(q, low, high);
#else
    ivec is_low = q < low, is_high = q > high;
    return (vec)(((ivec)q & ~(is_low | is_high)) | (is_low & (ivec)low) |
                 (is_high & (ivec)high));
#endif
}

/* What is left of v. */
static inline vec
miss_of(vec v, unsigned bits)
{
#ifdef LMQ_ROW_MISS
    if (bits == LMQ_BITS_MAX)
        return LMQ_ROW_MISS(v);
#endif
    return v - whole_of(v, bits);
}

/* The lane with the smallest of 16 non-negative floats. The last four bits of
 * each make room for the number of its lane, which spares the branches. */
static inline int
least_lane(const vec *v)
{
    const iquad numbers = {0, 1, 2, 3};
    iquad keys[4];
    int32_t least = INT32_MAX;

    memcpy(keys, v, sizeof(keys));
    for (int i = 0; i < 4; i++)
        keys[i] = (keys[i] & ~(LANES - 1)) | (numbers + 4 * i);
    for (int i = 1; i < 4; i++) {
        iquad is_less = keys[i] < keys[0];
        keys[0] = (keys[i] & is_less) | (keys[0] & ~is_less);
    }
    for (int i = 0; i < 4; i++)
        least = keys[0][i] < least ? keys[0][i] : least;
    return least & (LANES - 1);
}

/* Of x * q and of q * q, which least squares need, lane by lane. */
struct factor_sums {
    vec xq[PARTS], qq[PARTS];
};

ALWAYS_INLINE void
sum_factor(const float *x, size_t n, float inverse, unsigned bits,
           struct factor_sums *sums)
{
    vec xq[PARTS] = {0}, qq[PARTS] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t p = 0; p < PARTS; p++) {
            vec v;
            memcpy(&v, x + i + p * LMQ_ROW_WIDTH, sizeof(v));
            vec q = whole_of(v * inverse, bits);
            xq[p] += v * q;
            qq[p] += q * q;
        }
    memcpy(sums->xq, xq, sizeof(xq));
    memcpy(sums->qq, qq, sizeof(qq));
}

/* Least squares: the factor with which these whole numbers come closest. */
static inline float
best_factor(const float *x, size_t n, float inverse, unsigned bits)
{
    struct factor_sums sums;

    sum_factor(x, n, inverse, bits, &sums);
    return sum_lanes(sums.xq) / sum_lanes(sums.qq);
}

/* Tries sixteen steps at once, one per lane, and tells the best. `top` is the
 * element with the largest magnitude as it is to come out with q = `limit`, but
 * for what an offset adds. */
static inline unsigned
best_step(const float *x, size_t n, float top, float limit,
          const float *offsets, unsigned bits)
{
    vec inverse[PARTS], err_sq[PARTS] = {0}, odd_err_sq[PARTS] = {0};

    memcpy(inverse, offsets, sizeof(inverse));
    for (size_t p = 0; p < PARTS; p++)
        inverse[p] = (inverse[p] + limit) / top;
    for (size_t i = 0; i < n; i += 2) /* two chains hide the latency */
        for (size_t p = 0; p < PARTS; p++) {
            vec v = x[i] * inverse[p];
            vec w = x[i + 1] * inverse[p];
            v = miss_of(v, bits);
            w = miss_of(w, bits);
            err_sq[p] += v * v;
            odd_err_sq[p] += w * w;
        }
    for (size_t p = 0; p < PARTS; p++) /* from steps to units of x */
        err_sq[p] = (err_sq[p] + odd_err_sq[p]) / (inverse[p] * inverse[p]);
    return (unsigned)least_lane(err_sq);
}

static inline float
search_scale(const float *x, size_t n, float top, float limit,
             const float *offsets, unsigned bits)
{
    unsigned best = best_step(x, n, top, limit, offsets, bits);

    return best_factor(x, n, (offsets[best] + limit) / top, bits);
}

/* Sums of squares of very large or very small values would leave the range of
 * float; there the plain scale is good enough. */
static inline bool
is_searched(const struct lmq_quant *quant, float max_abs)
{
    return quant->method != LMQ_METHOD_ABSMAX && max_abs > 0x1p-50f &&
           max_abs < 0x1p50f;
}

#ifdef LMQ_ROW_SQUARES
#include "quantize/group_look_body.h"
#endif

/* The same where errors have weights. */
static inline float
weighted_factor(const float *x, const float *weights, size_t n, float inverse,
                unsigned bits)
{
    vec xq[PARTS] = {0}, qq[PARTS] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t p = 0; p < PARTS; p++) {
            vec v, w;
            memcpy(&v, x + i + p * LMQ_ROW_WIDTH, sizeof(v));
            memcpy(&w, weights + i + p * LMQ_ROW_WIDTH, sizeof(w));
            vec q = whole_of(v * inverse, bits);
            xq[p] += w * v * q;
            qq[p] += w * q * q;
        }
    return sum_lanes(xq) / sum_lanes(qq);
}

static float
weighted_search(const float *x, const float *weights, size_t n, float top,
                float limit, const float *offsets, unsigned bits)
{
    vec inverse[PARTS], err_sq[PARTS] = {0};
    float steps[LANES];

    memcpy(inverse, offsets, sizeof(inverse));
    for (size_t p = 0; p < PARTS; p++)
        inverse[p] = (inverse[p] + limit) / top;
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < PARTS; p++) {
            vec v = x[i] * inverse[p];
            v = miss_of(v, bits);
            err_sq[p] += weights[i] * (v * v);
        }
    for (size_t p = 0; p < PARTS; p++) /* from steps to units of x */
        err_sq[p] = err_sq[p] / (inverse[p] * inverse[p]);
    memcpy(steps, inverse, sizeof(steps));
    return weighted_factor(x, weights, n, steps[least_lane(err_sq)], bits);
}

/* What the largest magnitude is to come out as: the least integer, which has
 * none opposite; so the scale has the other sign. (Trying both gave less than
 * 0.01 dB.) */
static inline float
narrow_top(const float *x, size_t n, float max_abs)
{
    ivec is_least[PARTS] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t p = 0; p < PARTS; p++) {
            vec v;
            memcpy(&v, x + i + p * LMQ_ROW_WIDTH, sizeof(v));
            is_least[p] |= (v == (vec){0} - max_abs) & 1;
        }
    return top_lane(is_least) != 0 ? max_abs : -max_abs;
}

/* `bits` is a constant, so that 8 bits cost no comparisons. */
static inline float
choose_narrow(const struct lmq_quant *quant, const float *x, size_t n,
              float max_abs, unsigned bits)
{
    float limit = (float)-lmq_q_least(bits);
    float top = narrow_top(x, n, max_abs);

    return is_searched(quant, max_abs)
               ? search_scale(x, n, top, limit, narrow_offsets, bits)
               : top / limit;
}

static inline float
choose_scale(const struct lmq_quant *quant, const float *x, size_t n,
             float max_abs)
{
    switch (quant->bits) {
    case 4:
        return choose_narrow(quant, x, n, max_abs, 4);
    case 5:
        return choose_narrow(quant, x, n, max_abs, 5);
    case 6:
        return choose_narrow(quant, x, n, max_abs, 6);
    default:
        return is_searched(quant, max_abs)
                   ? search_scale(x, n, max_abs, (float)LMQ_Q_MAX,
                                  search_offsets, LMQ_BITS_MAX)
                   : max_abs / LMQ_Q_MAX;
    }
}

static inline float
choose_weighted(const struct lmq_quant *quant, const float *x,
                const float *weights, size_t n, float max_abs)
{
    unsigned bits = quant->bits;

    if (!is_searched(quant, max_abs))
        return choose_scale(quant, x, n, max_abs);
    if (bits == LMQ_BITS_MAX)
        return weighted_search(x, weights, n, max_abs, (float)LMQ_Q_MAX,
                               search_offsets, LMQ_BITS_MAX);
    return weighted_search(x, weights, n, narrow_top(x, n, max_abs),
                           (float)-lmq_q_least(bits), narrow_offsets, bits);
}

/* Sums of squares between these have all that squares of errors need of the
 * range of float. */
#define SQUARES_LEAST 0x1p-80f
#define SQUARES_MOST 0x1p100f

static void
add_squares(const float *x, size_t n, float scale, const int8_t *q,
            struct lmq_quant_stats *stats)
{
    double sum_sq = 0, err_sq = 0;

    for (size_t i = 0; i < n; i++) {
        double err = (double)x[i] - (double)((float)q[i] * scale);
        sum_sq += (double)x[i] * (double)x[i];
        err_sq += err * err;
    }
    stats->sum_sq += sum_sq;
    stats->err_sq += err_sq;
}

/* Of a group's squares and of what it misses, lane by lane. */
struct group_sums {
    vec sq[PARTS], err_sq[PARTS];
};

/* The values for a given scale and its inverse, and what they miss; the bits of
 * the most that a number misses go into `most`. n is a multiple of LANES; x and
 * q may be padded with zeros. */
ALWAYS_INLINE void
round_group(const struct lmq_quant *quant, const float *x, size_t n,
            float scale, float inverse, int8_t *q, struct group_sums *sums,
            ivec most[PARTS])
{
    vec least = (vec){0} + (ROUND_MAGIC + (float)lmq_q_least(quant->bits));
    vec largest = (vec){0} + (ROUND_MAGIC + (float)lmq_q_most(quant->bits));
    vec sum_sq[PARTS] = {0}, err_sq[PARTS] = {0};
    ivec far[PARTS] = {0};

    for (size_t i = 0; i < n; i += LANES)
        for (size_t p = 0; p < PARTS; p++) {
            size_t at = i + p * LMQ_ROW_WIDTH;
            vec v;
            memcpy(&v, x + at, sizeof(v));
            /* The last bits of the sum are the whole number's. */
            ivec whole = (ivec)(v * inverse + ROUND_MAGIC);
            whole = larger(smaller(whole, (ivec)largest), (ivec)least);
            bvec bytes = __builtin_convertvector(whole, bvec);
            memcpy(q + at, &bytes, sizeof(bytes));
            vec err = v - ((vec)whole - ROUND_MAGIC) * scale;
            sum_sq[p] += v * v;
            err_sq[p] += err * err;
            far[p] = larger((ivec)err & 0x7fffffff, far[p]);
        }
    memcpy(sums->sq, sum_sq, sizeof(sum_sq));
    memcpy(sums->err_sq, err_sq, sizeof(err_sq));
    for (size_t p = 0; p < PARTS; p++)
        most[p] = larger(far[p], most[p]);
}

ALWAYS_INLINE void
count_group(const float *x, size_t n, float scale, const int8_t *q,
            const struct group_sums *sums, struct lmq_quant_stats *stats)
{
    float group_err = sum_lanes(sums->err_sq), group_sq = sum_lanes(sums->sq);

    if (group_sq > SQUARES_LEAST && group_sq < SQUARES_MOST) {
        stats->sum_sq += (double)group_sq;
        stats->err_sq += (double)group_err;
    } else {
        add_squares(x, n, scale, q, stats);
    }
    if (group_err > stats->worst_err_sq) {
        stats->worst_err_sq = group_err;
        stats->worst_group = stats->n_groups;
    }
    stats->n_groups++;
}

static inline void
choose_scales(const struct lmq_quant *quant, const float *x, size_t n,
              size_t n_groups, const float *max_abs, float *scales)
{
#ifdef LMQ_ROW_SQUARES
    if (quant->bits == LMQ_BITS_MAX && quant->method != LMQ_METHOD_ABSMAX) {
        search_scales(quant, x, n, n_groups, max_abs, scales);
        return;
    }
#endif
    for (size_t i = 0; i < n_groups; i++, x += n)
        scales[i] = choose_scale(quant, x, n, max_abs[i]);
}

/* Whole groups of n, at most BATCH: how many were quantized before one that has
 * a number that is not finite, if there is one. */
static inline size_t
quantize_groups(const struct lmq_quant *quant, const float *x, size_t n,
                size_t n_groups, int8_t *q, float *stored,
                struct lmq_quant_stats *stats)
{
    ivec most[PARTS] = {0};
    float max_abs[BATCH] = {0}, wanted[BATCH] = {0}, scales[BATCH], max_err;
    float inverse[BATCH];
    struct group_sums sums[BATCH];
    size_t n_finite = 0;

    for (; n_finite < n_groups; n_finite++) {
        uint32_t top = max_magnitude(x + n_finite * n, n);
        if (top >= 0x7f800000)
            break;
        memcpy(&max_abs[n_finite], &top, sizeof(top));
    }
    choose_scales(quant, x, n, n_finite, max_abs, wanted);
    for (size_t i = 0; i < BATCH; i += LMQ_ROW_WIDTH) {
        vec v;
        memcpy(&v, wanted + i, sizeof(v));
        v = stored_scales(quant, v);
        memcpy(scales + i, &v, sizeof(v));
        v = (vec)((ivec)(1 / v) & (v != 0));
        memcpy(inverse + i, &v, sizeof(v));
    }
    for (size_t i = 0; i < n_finite; i++) {
        float scale = wanted[i] < 0 ? -wanted[i] : wanted[i];
        stats->max_scale = scale > stats->max_scale ? scale : stats->max_scale;
        stats->max_abs =
            max_abs[i] > stats->max_abs ? max_abs[i] : stats->max_abs;
    }
    for (size_t i = 0; i < n_finite; i++)
        round_group(quant, x + i * n, n, scales[i], inverse[i], q + i * n,
                    &sums[i], most);
    for (size_t i = 0; i < n_finite; i++)
        count_group(x + i * n, n, scales[i], q + i * n, &sums[i], stats);
    memcpy(stored, scales, n_finite * sizeof(*stored));
    uint32_t top = top_lane(most);
    memcpy(&max_err, &top, sizeof(max_err));
    stats->max_err = max_err > stats->max_err ? max_err : stats->max_err;
    stats->has_nonfinite = n_finite < n_groups;
    return n_finite;
}

/* A shorter or ragged group goes through a padded copy: zeros change neither
 * the maximum nor any sum. */
static void
quantize_ragged(const struct lmq_quant *quant, const float *x, size_t n,
                int8_t *q, float *scale, struct lmq_quant_stats *stats)
{
    float padded[LMQ_GROUP_MAX] = {0};
    int8_t values[LMQ_GROUP_MAX];
    size_t whole = (n + LANES - 1) / LANES * LANES;

    memcpy(padded, x, n * sizeof(*x));
    quantize_groups(quant, padded, whole, 1, values, scale, stats);
    memcpy(q, values, n);
}

void
LMQ_ROW_NAME(const struct lmq_quant *quant, const float *x, size_t n,
             int8_t *q, float *scales, struct lmq_quant_stats *stats)
{
    size_t size = quant->group_size, at = 0, n_groups;

    for (; n - at >= size && !stats->has_nonfinite; at += n_groups * size) {
        n_groups = (n - at) / size < BATCH ? (n - at) / size : BATCH;
        /* A number that is known loops by itself. */
        n_groups = size == 64 ? quantize_groups(quant, x + at, 64, n_groups,
                                                q + at, scales, stats)
                              : quantize_groups(quant, x + at, size, n_groups,
                                                q + at, scales, stats);
        scales += n_groups;
    }
    if (at < n && !stats->has_nonfinite)
        quantize_ragged(quant, x + at, n - at, q + at, scales, stats);
    if (stats->has_nonfinite) {
        while (isfinite(x[at]))
            at++;
        stats->nonfinite_at = stats->n + at;
        return;
    }
    stats->n += n;
}

float
LMQ_SCALE_NAME(const struct lmq_quant *quant, const float *x,
               const float *weights, size_t n, float *stored)
{
    float padded[LMQ_GROUP_MAX] = {0}, padded_weights[LMQ_GROUP_MAX] = {0};
    size_t whole = (n + LANES - 1) / LANES * LANES;
    float max_abs;

    memcpy(padded, x, n * sizeof(*x));
    memcpy(padded_weights, weights, n * sizeof(*weights));
    uint32_t top = max_magnitude(padded, whole);
    memcpy(&max_abs, &top, sizeof(max_abs));
    float wanted =
        choose_weighted(quant, padded, padded_weights, whole, max_abs);
    *stored = stored_scales(quant, (vec){0} + wanted)[0];
    return wanted < 0 ? -wanted : wanted;
}

#ifdef LMQ_STEPS_NAME /* too little work for more than one build */
void
LMQ_STEPS_NAME(const struct lmq_quant *quant, const float *x, size_t n,
               float steps[LMQ_QUANT_STEPS])
{
    bool is_wide = quant->bits == LMQ_BITS_MAX;
    float limit =
        is_wide ? (float)LMQ_Q_MAX : (float)-lmq_q_least(quant->bits);
    const float *offsets = is_wide ? search_offsets : narrow_offsets;
    float padded[LMQ_GROUP_MAX] = {0};
    size_t whole = (n + LANES - 1) / LANES * LANES;
    float max_abs;

    memcpy(padded, x, n * sizeof(*x));
    uint32_t magnitude = max_magnitude(padded, whole);
    memcpy(&max_abs, &magnitude, sizeof(max_abs));
    float top = is_wide ? max_abs : narrow_top(padded, whole, max_abs);
    for (size_t i = 0; i < LMQ_QUANT_STEPS; i++)
        steps[i] =
            stored_scales(quant, (vec){0} + top / (limit + offsets[i]))[0];
}
#endif
