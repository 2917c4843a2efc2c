/*
 * kernels_vector_body.h - the float kernels, once for every instruction set.
 *
 * A body to include after the registers that kernels_lanes_body.h asks for and
 * LMQ_TILE_R x LMQ_TILE_T, the rows x tokens whose lane sums fit them.
 */
#include <math.h>

#include "quantize/rotate.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/kernels_common.h"
#include "runtime/kernels/kernels_lanes_body.h"

#define Q8_BLOCK 32
#define Q8_BYTES (2 + Q8_BLOCK)

/* ---- Ragged ends: lanes that are not there are zeros ---- */

/* Nothing is read or written behind the array, as that may be the end of a
 * page. Zeros add nothing to a lane sum. */

LMQ_INLINE vf
load_some(const float *x, size_t n)
{
    float part[LANES];

    if (n < LANES) {
        memset(part, 0, sizeof(part));
        memcpy(part, x, n * sizeof(*x));
        x = part;
    }
    return vf_load(x);
}

LMQ_INLINE void
store_some(float *x, vf v, size_t n)
{
    float part[LANES];

    if (n >= LANES) {
        vf_store(x, v);
    } else {
        vf_store(part, v);
        memcpy(x, part, n * sizeof(*x));
    }
}

/* ---- Elementary functions ---- */

/* exp(x) = 2^n * exp(r), |r| <= ln(2) / 2; the polynomial is Cephes' expf.
 * Limits beyond which the result is 0 or inf keep n small. */
LMQ_INLINE vf
vf_exp(vf x)
{
    const vf magic = vf_set1(12582912.0f); /* 1.5 * 2^23: rounds to integer */

    x = vf_max(vf_set1(-104.0f), x); /* in this order NaN survives */
    x = vf_less(vf_set1(89.0f), x, vf_set1(89.0f), x);
    vf n = vf_sub(vf_fma(x, vf_set1(1.44269504f), magic), magic);
    /* r = x - n ln(2), with ln(2) in two floats, as one has too few bits. */
    vf r = vf_fma(n, vf_set1(-0.693147182f), x);
    r = vf_fma(n, vf_set1(1.90465421e-9f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_add(vf_fma(vf_mul(p, r), r, r), vf_set1(1.0f));
    return vf_scale2(p, n);
}

LMQ_INLINE vf
vf_neg(vf x)
{
    return vf_mul(x, vf_set1(-1.0f));
}

/* x / (1 + exp(-y)): divided, as estimates of 1 / y differ between processors
 * even of one instruction set. */
LMQ_INLINE vf
vf_gate(vf x, vf y)
{
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_neg(y))));
}

LMQ_INLINE vf
vf_silu(vf x)
{
    return vf_gate(x, x);
}

/* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)) */
LMQ_INLINE vf
vf_gelu_tanh(vf x)
{
    vf cube = vf_mul(vf_mul(x, x), x);
    vf u = vf_fma(cube, vf_set1(0.044715f), x);

    return vf_gate(x, vf_mul(u, vf_set1(1.59576912f))); /* 2 sqrt(2 / pi) */
}

/* Abramowitz and Stegun 7.1.26, for z >= 0:
 * erfc(z) = (a1 t + ... + a5 t^5) exp(-z^2), t = 1 / (1 + p z), within 1.5e-7.
 * So the tail of a negative x does not come out of a difference near 0. */
LMQ_INLINE vf
vf_gelu_erf(vf x)
{
    const vf zero = vf_set1(0.0f);
    vf z = vf_mul(vf_less(x, zero, vf_neg(x), x), vf_set1(0.707106781f));
    vf t = vf_div(vf_set1(1.0f),
                  vf_fma(z, vf_set1(0.3275911f), vf_set1(1.0f)));
    vf p = vf_set1(1.061405429f);
    p = vf_fma(p, t, vf_set1(-1.453152027f));
    p = vf_fma(p, t, vf_set1(1.421413741f));
    p = vf_fma(p, t, vf_set1(-0.284496736f));
    p = vf_fma(p, t, vf_set1(0.254829592f));
    vf tail = vf_mul(vf_mul(p, t), vf_exp(vf_neg(vf_mul(z, z))));
    tail = vf_mul(x, vf_mul(tail, vf_set1(0.5f)));
    return vf_less(x, zero, tail, vf_sub(x, tail));
}

/* Cephes' tanhf: a polynomial where 1 - 2 / (exp(2 x) + 1) would cancel. */
LMQ_INLINE vf
vf_tanh(vf x)
{
    const vf zero = vf_set1(0.0f), one = vf_set1(1.0f), two = vf_set1(2.0f);
    vf z = vf_less(x, zero, vf_neg(x), x);
    vf big = vf_sub(one, vf_div(two, vf_add(vf_exp(vf_mul(z, two)), one)));
    big = vf_less(x, zero, vf_neg(big), big);
    vf s = vf_mul(x, x);
    vf p = vf_set1(-5.70498872745e-3f);
    p = vf_fma(p, s, vf_set1(2.06390887954e-2f));
    p = vf_fma(p, s, vf_set1(-5.37397155531e-2f));
    p = vf_fma(p, s, vf_set1(1.33314422036e-1f));
    p = vf_fma(p, s, vf_set1(-3.33332819422e-1f));
    return vf_less(z, vf_set1(0.625f), vf_fma(vf_mul(p, s), x, x), big);
}

/* max(x, 0) + ln(1 + t), t = exp(-|x|), and ln(1 + t) = 2 artanh(s) with
 * s = t / (2 + t), whose series ends soon as s is at most 1/3. */
LMQ_INLINE vf
vf_softplus(vf x)
{
    const vf zero = vf_set1(0.0f);
    vf t = vf_exp(vf_less(x, zero, x, vf_neg(x)));
    vf s = vf_div(t, vf_add(vf_set1(2.0f), t)), square = vf_mul(s, s);
    vf p = vf_set1(2.0f / 15);
    p = vf_fma(p, square, vf_set1(2.0f / 13));
    p = vf_fma(p, square, vf_set1(2.0f / 11));
    p = vf_fma(p, square, vf_set1(2.0f / 9));
    p = vf_fma(p, square, vf_set1(2.0f / 7));
    p = vf_fma(p, square, vf_set1(2.0f / 5));
    p = vf_fma(p, square, vf_set1(2.0f / 3));
    p = vf_fma(p, square, vf_set1(2.0f));
    vf y = vf_fma(p, s, vf_less(zero, x, x, zero));
    return vf_add(y, vf_sub(x, x)); /* of an infinity NaN */
}

/* NaN survives. */
LMQ_INLINE vf
vf_clamp(vf x, float limit)
{
    x = vf_max(vf_set1(-limit), x);
    return vf_less(vf_set1(limit), x, vf_set1(limit), x);
}

/* ---- Loops over one array ---- */

/* name(x, n): every x[i] = expression of the vector v */
#define MAP(name, expression, ...)                                     \
    static void name(__VA_ARGS__)                                      \
    {                                                                  \
        for (size_t i = 0; i < n; i += LANES) {                        \
            vf v = load_some(x + i, n - i);                            \
            store_some(x + i, expression, n - i);                      \
        }                                                              \
    }

MAP(map_exp, vf_exp(v), float *x, size_t n)
MAP(map_silu, vf_silu(v), float *x, size_t n)
MAP(map_gelu_tanh, vf_gelu_tanh(v), float *x, size_t n)
MAP(map_gelu_erf, vf_gelu_erf(v), float *x, size_t n)
MAP(map_sigmoid, vf_gate(vf_set1(1.0f), v), float *x, size_t n)
MAP(map_softplus, vf_softplus(v), float *x, size_t n)
MAP(map_relu, vf_max(vf_set1(0.0f), v), float *x, size_t n)
MAP(map_clamp, vf_clamp(v, limit), float *x, size_t n, float limit)
MAP(map_scale, vf_mul(v, vf_set1(s)), float *x, size_t n, float s)
MAP(map_add, vf_add(v, load_some(y + i, n - i)),
    float *x, const float *y, size_t n)
MAP(map_mul, vf_mul(v, load_some(y + i, n - i)),
    float *x, const float *y, size_t n)
MAP(map_axpy, vf_fma(vf_set1(s), load_some(y + i, n - i), v),
    float *x, const float *y, size_t n, float s)
#undef MAP

/* cap * tanh(x * (1 / cap)) */
static void
map_softcap(float *x, size_t n, float cap)
{
    const vf inverse = vf_set1(1.0f / cap);

    for (size_t i = 0; i < n; i += LANES) {
        vf v = load_some(x + i, n - i);
        v = vf_mul(vf_set1(cap), vf_tanh(vf_mul(v, inverse)));
        store_some(x + i, v, n - i);
    }
}

/* One vector of sums only: more would hide the latency of fma, but the order
 * of the lane sum is the contract's. */
static float
sum_products(const float *x, const float *y, size_t n)
{
    vf sum = vf_set1(0.0f);

    for (size_t i = 0; i < n; i += LANES)
        sum = vf_fma(load_some(x + i, n - i), load_some(y + i, n - i), sum);
    return vf_sum(sum);
}

/* The largest lane, by halves as in a lane sum. */
LMQ_INLINE float
top_lane(vf m)
{
    float lane[LANES];

    vf_store(lane, m);
    LMQ_UNROLL for (size_t half = LANES / 2; half > 0; half /= 2)
        LMQ_UNROLL for (size_t j = 0; j < half; j++)
            lane[j] = lane[j] > lane[j + half] ? lane[j] : lane[j + half];
    return lane[0];
}

/* Here the ragged end is filled with -inf: a zero could be the largest. */
static float
maximum(const float *x, size_t n)
{
    float part[LANES];
    vf m = vf_set1(-INFINITY);
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        m = vf_max(m, vf_load(x + i));
    if (i < n) {
        vf_store(part, vf_set1(-INFINITY));
        memcpy(part, x + i, (n - i) * sizeof(*x));
        m = vf_max(m, vf_load(part));
    }
    return top_lane(m);
}

/* x = exp(x - m); the sum reads what was stored, so that lanes that are not
 * there add 0, not exp(-m). */
static float
exp_sum(float *x, size_t n, float m)
{
    vf sum = vf_set1(0.0f);

    for (size_t i = 0; i < n; i += LANES) {
        vf v = vf_exp(vf_sub(load_some(x + i, n - i), vf_set1(m)));
        store_some(x + i, v, n - i);
        sum = vf_add(sum, load_some(x + i, n - i));
    }
    return vf_sum(sum);
}

/* x = exp(x - max(x)) / sum: without the maximum exp would overflow. */
static void
softmax(float *x, size_t n)
{
    float sum = exp_sum(x, n, maximum(x, n));

    map_scale(x, n, 1.0f / sum);
}

/* ---- A softmax that goes on, for several rows ---- */

/* So many at a time: one alone waits for its maximum, then for the
 * exponentials, then for their sum. */
#define ROWS_TOGETHER LMQ_TILE_R

LMQ_INLINE void
rows_maxima(const float *x, size_t stride, size_t n, size_t n_rows, float *out)
{
    vf m[ROWS_TOGETHER];

    LMQ_UNROLL for (size_t r = 0; r < n_rows; r++)
        m[r] = vf_set1(-INFINITY);
    for (size_t i = 0; i < n; i += LANES)
        LMQ_UNROLL for (size_t r = 0; r < n_rows; r++)
            m[r] = vf_max(m[r], vf_load(x + r * stride + i));
    LMQ_UNROLL for (size_t r = 0; r < n_rows; r++)
        out[r] = top_lane(m[r]);
}

/* x = exp(x - max); out: the sums. */
LMQ_INLINE void
rows_exp(float *x, size_t stride, size_t n, size_t n_rows, const float *max,
         float *out)
{
    vf sum[ROWS_TOGETHER];

    LMQ_UNROLL for (size_t r = 0; r < n_rows; r++)
        sum[r] = vf_set1(0.0f);
    for (size_t i = 0; i < n; i += LANES)
        LMQ_UNROLL for (size_t r = 0; r < n_rows; r++) {
            float *at = x + r * stride + i;
            vf v = vf_exp(vf_sub(vf_load(at), vf_set1(max[r])));
            vf_store(at, v);
            sum[r] = vf_add(sum[r], v);
        }
    vf_sums(sum, n_rows, out);
}

/* At most LANES rows. One whose maximum does not grow has the factor
 * exp(0) = 1. */
static void
soften_rows(float *x, size_t stride, size_t n, size_t n_rows, float *max,
            float *sum, float *factor)
{
    float here[LANES];
    size_t r = 0;

    for (; r + ROWS_TOGETHER <= n_rows; r += ROWS_TOGETHER)
        rows_maxima(x + r * stride, stride, n, ROWS_TOGETHER, here + r);
    for (; r < n_rows; r++)
        rows_maxima(x + r * stride, stride, n, 1, here + r);

    const vf before = load_some(max, n_rows), top = load_some(here, n_rows);
    const vf m = vf_less(before, top, top, before);
    const vf f = vf_exp(vf_sub(before, m));
    store_some(max, m, n_rows);
    store_some(factor, f, n_rows);

    for (r = 0; r + ROWS_TOGETHER <= n_rows; r += ROWS_TOGETHER)
        rows_exp(x + r * stride, stride, n, ROWS_TOGETHER, max + r, here + r);
    for (; r < n_rows; r++)
        rows_exp(x + r * stride, stride, n, 1, max + r, here + r);
    store_some(sum,
               vf_add(vf_mul(load_some(sum, n_rows), f),
                      load_some(here, n_rows)),
               n_rows);
}

static void
soften(float *x, size_t stride, size_t n, size_t n_rows, float *max,
       float *sum, float *factor)
{
    for (size_t r = 0; r < n_rows; r += LANES)
        soften_rows(x + r * stride, stride, n,
                    n_rows - r < LANES ? n_rows - r : LANES, max + r, sum + r,
                    factor + r);
}

/* out = x / sqrt(mean(x^2) + eps) * weight. Roots and divisions are rounded as
 * IEEE says; an estimate of 1 / sqrt would be another number elsewhere. */
static void
rmsnorm(const float *x, const float *weight, size_t n, float eps, float *out)
{
    float mean = sum_products(x, x, n) / (float)n;
    const vf s = vf_set1(1.0f / sqrtf(mean + eps));

    for (size_t i = 0; i < n; i += LANES) {
        vf v = vf_mul(load_some(x + i, n - i), s);
        if (weight != NULL)
            v = vf_mul(v, load_some(weight + i, n - i));
        store_some(out + i, v, n - i);
    }
}

/* out = (x - mean) / sqrt(var + eps) * weight + bias. The variance takes a
 * pass of its own: mean(x^2) - mean^2 would cancel. */
static void
layernorm(const float *x, const float *weight, const float *bias, size_t n,
          float eps, float *out)
{
    vf sum = vf_set1(0.0f), squares = vf_set1(0.0f);

    for (size_t i = 0; i < n; i += LANES)
        sum = vf_add(sum, load_some(x + i, n - i));
    const vf mean = vf_set1(vf_sum(sum) / (float)n);
    for (size_t i = 0; i < n; i += LANES) {
        vf d = vf_sub(load_some(x + i, n - i), mean);
        if (n - i < LANES) { /* 0 - mean is no deviation */
            float part[LANES];
            vf_store(part, d);
            d = load_some(part, n - i);
        }
        squares = vf_fma(d, d, squares);
    }
    float variance = vf_sum(squares) / (float)n;
    const vf s = vf_set1(1.0f / sqrtf(variance + eps));
    for (size_t i = 0; i < n; i += LANES) {
        vf d = vf_mul(vf_sub(load_some(x + i, n - i), mean), s);
        if (bias != NULL)
            d = vf_fma(d, load_some(weight + i, n - i),
                       load_some(bias + i, n - i));
        else if (weight != NULL)
            d = vf_mul(d, load_some(weight + i, n - i));
        store_some(out + i, d, n - i);
    }
}

/* (a, b) = (a cos - b sin, b cos + a sin). Pairs are half a head apart, so a
 * and b are whole registers; formats that store neighbours are reordered when
 * they are read. */
static void
rope(float *x, const float *cosine, const float *sine, size_t half)
{
    for (size_t i = 0; i < half; i += LANES) {
        vf a = load_some(x + i, half - i);
        vf b = load_some(x + half + i, half - i);
        vf c = load_some(cosine + i, half - i);
        vf s = load_some(sine + i, half - i);
        store_some(x + i, vf_fma(a, c, vf_neg(vf_mul(b, s))), half - i);
        store_some(x + half + i, vf_fma(b, c, vf_mul(a, s)), half - i);
    }
}

/* ---- Quantizing ---- */

/* The largest |x| as bits: unlike a comparison of floats it never loses NaN,
 * and NaN > inf > every number. */
static uint32_t
max_bits(const float *x, size_t n)
{
    vf m = vf_set1(0.0f);

    for (size_t i = 0; i < n; i += LANES)
        m = vf_max_bits(m, load_some(x + i, n - i));
    return vf_top_bits(m);
}

/* x * inverse, rounded and clamped, for n <= LANES numbers. |x| * inverse is
 * below 2^22, where adding 1.5 * 2^23 rounds to an integer. */
LMQ_INLINE vf
round_clamp(const float *x, size_t n, float inverse, float limit)
{
    const vf magic = vf_set1(12582912.0f);
    vf v = vf_mul(load_some(x, n), vf_set1(inverse));

    return vf_clamp(vf_sub(vf_add(v, magic), magic), limit);
}

/* Quantizes up to `group` numbers, pads with zeros, returns the scale. */
static float
quantize_group(const float *x, size_t n, size_t group, enum lmq_bits bits,
               int16_t *q)
{
    const float limit = bits == LMQ_BITS_8 ? 127.0f : 32639.0f;
    uint32_t max = max_bits(x, n);
    float scale = lmq_f32_of_bits(max) / limit;

    if (max >= 0x7f800000 || scale < 0x1p-126f) {
        memset(q, 0, group * sizeof(*q));
        return max >= 0x7f800000 ? NAN : 0.0f;
    }
    float inverse = 1.0f / scale;
    size_t i = 0;
    for (; i < n; i += LANES)
        vf_store_i16(q + i, round_clamp(x + i, n - i, inverse, limit));
    if (i < group)
        memset(q + i, 0, (group - i) * sizeof(*q));
    return scale;
}

/* The group of a token that begins at column k. */
static float
pack_group(const struct lmq_batch *batch, const float *x, size_t k, int16_t *q)
{
    const size_t group = batch->group;
    const size_t n = batch->n_cols - k < group ? batch->n_cols - k : group;
    float turned[LMQ_GROUP_MAX];

    if (batch->rotation == LMQ_ROTATION_NONE)
        return quantize_group(x + k, n, group, batch->bits, q);
    memcpy(turned, x + k, n * sizeof(*x));
    lmq_rotate_group(turned, n, group, batch->rotation);
    return quantize_group(turned, n, group, batch->bits, q);
}

static void
quantize(const float *x, size_t n, size_t group, enum lmq_bits bits,
         int16_t *q, float *scale)
{
    for (size_t i = 0; i < n; i += group)
        *scale++ = quantize_group(x + i, n - i < group ? n - i : group, group,
                                  bits, q + i);
}

/* ---- Rows of other types ---- */

/* LMQ_WIDTH columns that the row has, `offset` behind `column`, which begins a
 * block of Q8. */
LMQ_INLINE vr
load_columns(const unsigned char *row, enum lmq_row_type type, size_t column,
             size_t offset)
{
    const unsigned char *block = row + column / Q8_BLOCK * Q8_BYTES +
                                 offset / Q8_BLOCK * Q8_BYTES;

    column += offset;
    switch (type) {
    case LMQ_ROW_F32:
        return vr_load(row + column * 4);
    case LMQ_ROW_F16:
        return vr_load_f16(row + column * 2);
    case LMQ_ROW_BF16:
        return vr_load_bf16(row + column * 2);
    default:
        return vr_mul(vr_load_i8(block + 2 + offset % Q8_BLOCK),
                      vr_set1_f16(block));
    }
}

/* Columns [column, column + 16) of a row that has n of them. */
LMQ_INLINE vf
load_row(const unsigned char *row, enum lmq_row_type type, size_t column,
         size_t n)
{
    unsigned char part[LANES * sizeof(float)];
    vf x;

    /* The last block of Q8 is padded. */
    if (n - column < LANES && type != LMQ_ROW_Q8) {
        memset(part, 0, sizeof(part));
        memcpy(part, row + lmq_row_bytes(type, column),
               lmq_row_bytes(type, n - column));
        row = part;
        column = 0;
    }
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
        x.r[i] = load_columns(row, type, column / Q8_BLOCK * Q8_BLOCK,
                              column % Q8_BLOCK + i * LMQ_WIDTH);
    return x;
}

/* Exact for every type: each is a part of float. */
static void
row_widen(const void *row, enum lmq_row_type type, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += LANES)
        store_some(out + i, load_row(row, type, i, n), n - i);
}

/* The numbers are divided by the scale that a reader will find, rounded to a
 * half, not by the one before rounding. */
static void
narrow_block(const float *x, size_t n, unsigned char *block)
{
    unsigned char half[LANES * 2];
    float lane[LANES];
    uint32_t max = max_bits(x, n);

    memset(block, 0, Q8_BYTES);
    vr_store_f16(half, vr_set1(lmq_f32_of_bits(max) / 127.0f));
    memcpy(block, half, 2);
    vr_store(lane, vr_set1_f16(block));
    float scale = lane[0];
    if (!(scale < INFINITY)) {
        block[0] = 0x00; /* NaN: 0x7e00 */
        block[1] = 0x7e;
    } else if (scale > 0) {
        for (size_t i = 0; i < n; i += LANES)
            vf_store_i8(block + 2 + i,
                        round_clamp(x + i, n - i, 1.0f / scale, 127.0f));
    }
}

static void
row_narrow(const float *x, size_t n, enum lmq_row_type type, void *row)
{
    unsigned char *p = row;

    if (type == LMQ_ROW_F32) {
        memcpy(row, x, n * sizeof(*x));
    } else if (type == LMQ_ROW_F16) {
        for (size_t i = 0; i < n; i += LANES) {
            unsigned char part[LANES * 2];
            size_t here = n - i < LANES ? n - i : LANES;
            vf_store_f16(part, load_some(x + i, n - i));
            memcpy(p + i * 2, part, here * 2);
        }
    } else {
        for (size_t i = 0; i < n; i += Q8_BLOCK, p += Q8_BYTES)
            narrow_block(x + i, n - i < Q8_BLOCK ? n - i : Q8_BLOCK, p);
    }
}

#include "runtime/kernels/kernels_state_body.h"

#include "runtime/kernels/kernels_rows_body.h"

#include "runtime/kernels/kernels_turned_body.h"

#include "runtime/kernels/kernels_probes_body.h"

#define VECTOR_KERNELS                                                 \
    .quantize = quantize, .rows_product = rows_product,                \
    .rows_turn = rows_turn, .turned_product = turned_product,          \
    .rows_mix = rows_mix, .row_widen = row_widen,                      \
    .row_narrow = row_narrow, .rmsnorm = rmsnorm,                      \
    .layernorm = layernorm, .softmax = softmax, .max = maximum,        \
    .exp_sum = exp_sum, .soften = soften, .scale = map_scale,          \
    .dot = sum_products, .exp = map_exp, .silu = map_silu,             \
    .gelu_tanh = map_gelu_tanh, .gelu_erf = map_gelu_erf,              \
    .sigmoid = map_sigmoid, .softplus = map_softplus,                  \
    .softcap = map_softcap, .relu = map_relu, .clamp = map_clamp,      \
    .add = map_add, .mul = map_mul, .axpy = map_axpy, .rope = rope,    \
    .recur = recur, .select = select_all,                              \
    .peak_f32 = peak_f32, .read_memory = read_memory
