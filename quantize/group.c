/*
 * group.c - the part of group.h that is not arithmetic on groups, and the
 * choice among the builds of the part that is (group_body.h).
 */
#include "config.h"

#include "quantize/group.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "base/threads/cpu.h"
#include "quantize/rotate.h"

/* The smallest largest-scale that half precision holds well: the scales of a
 * tensor's smaller groups then still have 8 bits or more. */
#define SCALE_LOW 0x1p-12f
#define SCALE_HIGH 65504.0f
/* Where the multiplier puts the largest scale of a tensor that needs one, and
 * the smallest multiplier that is a normal float. */
#define SCALE_EXPONENT 8
#define MULTIPLIER_EXPONENT_MIN (-126)

/* As in group_body.h. */
#define ROUND_MAGIC 12582912.0f

const struct lmq_name lmq_rotation_names[] = {
    {"no", LMQ_ROTATION_NONE}, {"yes", LMQ_ROTATION_ALL}, {NULL, 0}};

const struct lmq_name lmq_group_names[] = {
    {"32", LMQ_GROUP_MIN},
    {"64", 64},
    {"128", 128},
    {"256", LMQ_GROUP_MAX},
    {NULL, 0},
};

bool
lmq_group_size_is_valid(unsigned group_size)
{
    return lmq_names_of(lmq_group_names, group_size) != NULL;
}

bool
lmq_width_is_valid(unsigned bits)
{
    return bits >= LMQ_BITS_MIN && bits <= LMQ_BITS_MAX && bits != 7;
}

const struct lmq_name lmq_method_names[] = {
    {"absmax", LMQ_METHOD_ABSMAX},
    {"search", LMQ_METHOD_SEARCH},
    {"gptq", LMQ_METHOD_GPTQ},
    {NULL, 0},
};

const struct lmq_name lmq_scales_names[] = {
    {"f16", LMQ_SCALES_F16},
    {"f32", LMQ_SCALES_F32},
    {NULL, 0},
};

size_t
lmq_groups_per_row(size_t n, size_t group_size)
{
    return n / group_size + (n % group_size != 0);
}

float
lmq_choose_multiplier(enum lmq_scales scales, float max_scale)
{
    int exponent;

    if (scales == LMQ_SCALES_F32 || max_scale == 0 ||
        (max_scale >= SCALE_LOW && max_scale <= SCALE_HIGH))
        return 1;
    frexpf(max_scale, &exponent);
    exponent -= SCALE_EXPONENT;
    return ldexpf(1, exponent < MULTIPLIER_EXPONENT_MIN
                         ? MULTIPLIER_EXPONENT_MIN
                         : exponent);
}

static void
quantize_plainly(const struct lmq_quant *quant, const float *x, size_t n,
                 int8_t *q, float *scales, struct lmq_quant_stats *stats)
{
    switch (lmq_cpu()) {
#ifdef LMQ_HAVE_AVX512VNNI
    case LMQ_CPU_AMX:
    case LMQ_CPU_AVX512VNNI:
        lmq_quantize_row_avx512(quant, x, n, q, scales, stats);
        return;
#endif
#ifdef LMQ_HAVE_AVX2
    case LMQ_CPU_AVXVNNI:
    case LMQ_CPU_AVX2:
        lmq_quantize_row_avx2(quant, x, n, q, scales, stats);
        return;
#endif
    default:
        lmq_quantize_row_c(quant, x, n, q, scales, stats);
    }
}

/* Sums of finite numbers may be infinite. */
static void
find_nonfinite(const float *x, size_t n, uint64_t first,
               struct lmq_quant_stats *stats)
{
    size_t i = 0;

    while (i < n && isfinite(x[i]))
        i++;
    stats->is_turned_over = i == n;
    stats->nonfinite_at = first + (i < n ? i : 0);
}

void
lmq_quantize_row(const struct lmq_quant *quant, const float *x, size_t n,
                 int8_t *q, float *scales, struct lmq_quant_stats *stats)
{
    const size_t group = quant->group_size;
    const uint64_t before = stats->n;
    float turned[LMQ_GROUP_MAX];

    if (quant->rotation == LMQ_ROTATION_NONE) {
        quantize_plainly(quant, x, n, q, scales, stats);
        return;
    }
    for (size_t at = 0; at < n; at += group, scales++) {
        const size_t size = lmq_size_min(group, n - at);
        memcpy(turned, x + at, size * sizeof(*x));
        lmq_rotate_all(turned, size);
        quantize_plainly(quant, turned, size, q + at, scales, stats);
        /* Who turns it back adds as many up as a group has. */
        stats->has_nonfinite |=
            stats->max_abs > FLT_MAX / (2 * (float)group);
        if (stats->has_nonfinite) {
            find_nonfinite(x + at, size, before + at, stats);
            return;
        }
    }
}

float
lmq_quant_weighted_scale(const struct lmq_quant *quant, const float *x,
                         const float *weights, size_t n, float *stored)
{
    switch (lmq_cpu()) {
#ifdef LMQ_HAVE_AVX512VNNI
    case LMQ_CPU_AMX:
    case LMQ_CPU_AVX512VNNI:
        return lmq_quant_weighted_scale_avx512(quant, x, weights, n, stored);
#endif
#ifdef LMQ_HAVE_AVX2
    case LMQ_CPU_AVXVNNI:
    case LMQ_CPU_AVX2:
        return lmq_quant_weighted_scale_avx2(quant, x, weights, n, stored);
#endif
    default:
        return lmq_quant_weighted_scale_c(quant, x, weights, n, stored);
    }
}

int
lmq_quant_round(unsigned bits, float x, float inverse)
{
    float v = x * inverse;

    if (!(v > (float)lmq_q_least(bits)))
        return lmq_q_least(bits);
    if (v > (float)lmq_q_most(bits))
        return lmq_q_most(bits);
    return (int)(v + ROUND_MAGIC - ROUND_MAGIC);
}

void
lmq_quant_measure_row(const struct lmq_quant *quant, const float *x, size_t n,
                      const int8_t *q, const float *scales,
                      struct lmq_quant_stats *stats)
{
    for (size_t at = 0; at < n; at += quant->group_size, scales++) {
        size_t end = lmq_size_min(at + quant->group_size, n);
        double err_sq = 0;
        for (size_t i = at; i < end; i++) {
            float err = x[i] - (float)q[i] * *scales;
            stats->sum_sq += (double)x[i] * (double)x[i];
            err_sq += (double)err * (double)err;
            stats->max_abs = fmaxf(stats->max_abs, fabsf(x[i]));
            stats->max_err = fmaxf(stats->max_err, fabsf(err));
        }
        stats->err_sq += err_sq;
        if ((float)err_sq > stats->worst_err_sq) {
            stats->worst_err_sq = (float)err_sq;
            stats->worst_group = stats->n_groups;
        }
        stats->max_scale = fmaxf(stats->max_scale, fabsf(*scales));
        stats->n_groups++;
    }
    stats->n += n;
}

void
lmq_quant_stats_merge(struct lmq_quant_stats *stats,
                      const struct lmq_quant_stats *next,
                      uint64_t first_element, uint64_t first_group)
{
    if (next->has_nonfinite && !stats->has_nonfinite) {
        stats->has_nonfinite = true;
        stats->nonfinite_at = first_element + next->nonfinite_at;
        stats->is_turned_over = next->is_turned_over;
    }
    if (next->worst_err_sq > stats->worst_err_sq) {
        stats->worst_err_sq = next->worst_err_sq;
        stats->worst_group = first_group + next->worst_group;
    }
    stats->n += next->n;
    stats->n_groups += next->n_groups;
    stats->sum_sq += next->sum_sq;
    stats->err_sq += next->err_sq;
    stats->max_abs = fmaxf(stats->max_abs, next->max_abs);
    stats->max_err = fmaxf(stats->max_err, next->max_err);
    stats->max_scale = fmaxf(stats->max_scale, next->max_scale);
}

/* `least` and `most` are those of the group's integers, or 0. */
static bool
is_legal(unsigned bits, float scale, int least, int most)
{
    float largest = (float)(most > -least ? most : -least);

    if (least < lmq_q_least(bits) || most > lmq_q_most(bits) ||
        (signbit(scale) && (bits == LMQ_BITS_MAX || scale == 0)))
        return false;
    return scale == 0 ? largest == 0
                      : isnormal(scale) && isfinite(largest * scale);
}

bool
lmq_quant_take_row(const struct lmq_quant *quant, const int8_t *q, size_t n,
                   const float *scales, struct lmq_quant_stats *stats)
{
    unsigned group_size = quant->group_size;
    bool are_legal = true;

    for (size_t start = 0; start < n; start += group_size, scales++) {
        size_t end = lmq_size_min(start + group_size, n);
        int least = 0, most = 0, sum_sq = 0; /* at most 256 times 2^14 */
        for (size_t i = start; i < end; i++) {
            least = q[i] < least ? q[i] : least;
            most = q[i] > most ? q[i] : most;
            sum_sq += q[i] * q[i];
        }
        float magnitude = fabsf(*scales);
        are_legal &= is_legal(quant->bits, *scales, least, most);
        stats->sum_sq += sum_sq * ((double)*scales * (double)*scales);
        stats->max_abs =
            fmaxf(stats->max_abs,
                  (float)(most > -least ? most : -least) * magnitude);
        stats->max_scale = fmaxf(stats->max_scale, magnitude);
        stats->n_groups++;
    }
    stats->n += n;
    return are_legal;
}

void
lmq_quant_widen(const struct lmq_quant *quant, int8_t *q, size_t n_rows,
                size_t n_cols, unsigned char *stored_scales)
{
    size_t size = quant->scales == LMQ_SCALES_F16 ? 2 : 4;

    if (quant->bits == LMQ_BITS_MAX)
        return;
    for (size_t row = 0; row < n_rows; row++)
        for (size_t at = 0; at < n_cols; at += quant->group_size) {
            size_t n = lmq_size_min(quant->group_size, n_cols - at);
            unsigned char *sign = stored_scales + size - 1;
            for (size_t i = 0; *sign & 0x80 && i < n; i++)
                q[i] = (int8_t)-q[i];
            *sign &= 0x7f;
            stored_scales += size;
            q += n;
        }
}

double
lmq_quant_snr_db(double signal_sq, double noise_sq)
{
    return noise_sq > 0 ? 10 * log10(signal_sq / noise_sq) : (double)INFINITY;
}

double
lmq_quant_cosine(double product, double a_sq, double b_sq)
{
    if (a_sq == 0 && b_sq == 0)
        return 1;
    return product / (sqrt(a_sq) * sqrt(b_sq));
}
