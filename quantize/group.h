/*
 * group.h - one row of floats <-> groups of small integers and scales.
 *
 * The rules are lmq(5), "Quantized values": with 8 bits q in [-127, 127] and
 * no scale below zero; with fewer bits all numbers that they have, one more
 * below zero than above, and a scale of either sign, which decides on which
 * side the one more is. Ties to even, values quantized against the scale as it
 * is stored, a group of zeros has scale 0. Every build of these functions gives
 * the same bits.
 */
#ifndef LMQ_QUANTIZE_GROUP_H
#define LMQ_QUANTIZE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/name_table.h"
#include "quantize/rotate.h"

/* The first and the last of the sizes in lmq_group_names[]. */
#define LMQ_GROUP_MIN 32
#define LMQ_GROUP_MAX 256
#define LMQ_Q_MAX 127

/* Bits of an integer: the fewest, the most. There is no 7. */
#define LMQ_BITS_MIN 4
#define LMQ_BITS_MAX 8

enum lmq_method {
    LMQ_METHOD_ABSMAX, /* the largest becomes the largest integer */
    LMQ_METHOD_SEARCH, /* the scale near that one with the least error */
    LMQ_METHOD_GPTQ,   /* that too, and each number makes up for what those
                          before it missed (convert/calibrate); where nothing
                          is known of what rows are multiplied with, as
                          LMQ_METHOD_SEARCH */
    LMQ_METHOD_COUNT
};

enum lmq_scales {
    LMQ_SCALES_F16 = 0, /* values stand in files: append only */
    LMQ_SCALES_F32 = 1,
    LMQ_SCALES_COUNT
};

/* How a tensor is quantized. */
struct lmq_quant {
    unsigned bits;       /* 4, 5, 6 or 8 */
    unsigned group_size; /* of lmq_group_names[] */
    enum lmq_method method;
    enum lmq_scales scales;
    float multiplier; /* a power of two; 1 with LMQ_SCALES_F32 */
    enum lmq_rotation rotation; /* of groups, before */
};

/* What quantizing did to a run of elements, turned ones if they are. Sums over
 * groups in order. */
struct lmq_quant_stats {
    uint64_t n;
    double sum_sq;  /* of the original values */
    double err_sq;  /* of value - quantized value */
    float max_abs;  /* of the original values */
    float max_err;
    float max_scale;       /* before the multiplier is divided out */
    float worst_err_sq;    /* of the group with the largest squared error */
    uint64_t worst_group;  /* its number, counting from 0 */
    uint64_t n_groups;
    bool has_nonfinite;    /* then nothing else here means anything */
    uint64_t nonfinite_at; /* the first such element */
    bool is_turned_over;   /* it is finite, and turned, or turned back, it may
                              not be: the first of its group */
};

extern const struct lmq_name lmq_group_names[]; /* the valid sizes */
bool lmq_group_size_is_valid(unsigned group_size);
bool lmq_width_is_valid(unsigned bits);

/* The integers of a width: the least, and the largest. */
static inline int
lmq_q_least(unsigned bits)
{
    return bits == LMQ_BITS_MAX ? -LMQ_Q_MAX : -(1 << (bits - 1));
}

static inline int
lmq_q_most(unsigned bits)
{
    return (1 << (bits - 1)) - 1;
}

extern const struct lmq_name lmq_method_names[];
extern const struct lmq_name lmq_scales_names[];
extern const struct lmq_name lmq_rotation_names[]; /* "no", "yes" */

/* Groups of a row: the last one may be shorter. */
size_t lmq_groups_per_row(size_t n, size_t group_size);

/* The multiplier that suits a tensor whose largest scale is max_scale:
 * 1 unless half precision would lose digits or overflow. */
float lmq_choose_multiplier(enum lmq_scales scales, float max_scale);

/*
 * Quantizes one row: q gets n values, scales one float per group (already
 * rounded as stored, the multiplier not divided out). Adds to *stats. A
 * non-finite element ends the work with has_nonfinite set.
 */
void lmq_quantize_row(const struct lmq_quant *quant, const float *x, size_t n,
                      int8_t *q, float *scales, struct lmq_quant_stats *stats);

/* Its builds (group_body.h): for the choice among them, and for tests. */
void lmq_quantize_row_c(const struct lmq_quant *quant, const float *x,
                        size_t n, int8_t *q, float *scales,
                        struct lmq_quant_stats *stats);
void lmq_quantize_row_avx2(const struct lmq_quant *quant, const float *x,
                           size_t n, int8_t *q, float *scales,
                           struct lmq_quant_stats *stats);
void lmq_quantize_row_avx512(const struct lmq_quant *quant, const float *x,
                             size_t n, int8_t *q, float *scales,
                             struct lmq_quant_stats *stats);

/* ---- Piece by piece, for those who weigh errors ---- */

/*
 * The scale of one group of n numbers, all finite: that which quantizing a row
 * would choose, if the square of an error counted as often as its weight says.
 * Weights are positive, the largest near 1. The scale as stored is in *stored;
 * returned is its magnitude before that, for lmq_choose_multiplier().
 */
float lmq_quant_weighted_scale(const struct lmq_quant *quant, const float *x,
                               const float *weights, size_t n, float *stored);
float lmq_quant_weighted_scale_c(const struct lmq_quant *quant, const float *x,
                                 const float *weights, size_t n,
                                 float *stored);
float lmq_quant_weighted_scale_avx2(const struct lmq_quant *quant,
                                    const float *x, const float *weights,
                                    size_t n, float *stored);
float lmq_quant_weighted_scale_avx512(const struct lmq_quant *quant,
                                      const float *x, const float *weights,
                                      size_t n, float *stored);

/* What is tried for such a group, as scales as stored. */
#define LMQ_QUANT_STEPS 16
void lmq_quant_steps(const struct lmq_quant *quant, const float *x, size_t n,
                     float steps[LMQ_QUANT_STEPS]);

/* The integer of one number, as quantizing a row with the scale as stored
 * makes it; `inverse` is 1 / scale, or 0 if that is 0. */
int lmq_quant_round(unsigned bits, float x, float inverse);

/* Adds to *stats what a row that was quantized so has lost, all numbers of
 * which are finite. */
void lmq_quant_measure_row(const struct lmq_quant *quant, const float *x,
                           size_t n, const int8_t *q, const float *scales,
                           struct lmq_quant_stats *stats);

/* Adds the statistics of further elements, of which the first is number
 * first_element of the tensor and stands in its group first_group. The order
 * of the calls decides the last bits of the sums. */
void lmq_quant_stats_merge(struct lmq_quant_stats *stats,
                           const struct lmq_quant_stats *next,
                           uint64_t first_element, uint64_t first_group);

/*
 * A row of integers with scales as lmq_scales_load() gives them, to be taken as
 * it is: adds to *stats what it holds, without an error. False if lmq(5),
 * "Quantized values", forbids it.
 */
bool lmq_quant_take_row(const struct lmq_quant *quant, const int8_t *q,
                        size_t n, const float *scales,
                        struct lmq_quant_stats *stats);

/* Rows as a width below 8 has them, made such as 8 bits have: stored scales
 * below zero give their sign to the integers. */
void lmq_quant_widen(const struct lmq_quant *quant, int8_t *q, size_t n_rows,
                     size_t n_cols, unsigned char *stored_scales);

/* Signal to noise in dB; infinity if there is no noise. */
double lmq_quant_snr_db(double signal_sq, double noise_sq);

/* Of two vectors' product and squares: 1 if both are zero, NaN if one is. */
double lmq_quant_cosine(double product, double a_sq, double b_sq);

#endif
