/*
 * kernels_plain.c - the kernels in plain C, which define every result, and
 * the layout of tiles.
 *
 * The float kernels are in kernels_vector_body.h; here are the operations that
 * they are made of.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include <math.h>

#include "base/bytes.h"
#include "base/size.h"
#include "runtime/kernels/kernels_common.h"

/* ---- Registers of one float ---- */

typedef float vr;

#define LMQ_WIDTH 1
#define LMQ_TILE_R 1
#define LMQ_TILE_T 1
#define LMQ_TURNED_V 1
#define LMQ_TURNED_T 1
#define LMQ_PEAK_REGISTERS 16

/* 16 lanes of scalar code are better left to loops. */
#undef LMQ_UNROLL
#define LMQ_UNROLL

LMQ_INLINE vr
vr_set1(float x)
{
    return x;
}

LMQ_INLINE vr
vr_load(const void *p)
{
    return load_f32(p);
}

LMQ_INLINE void
vr_store(float *p, vr x)
{
    *p = x;
}

LMQ_INLINE vr
vr_add(vr a, vr b)
{
    return a + b;
}

LMQ_INLINE vr
vr_sub(vr a, vr b)
{
    return a - b;
}

LMQ_INLINE vr
vr_mul(vr a, vr b)
{
    return a * b;
}

LMQ_INLINE vr
vr_div(vr a, vr b)
{
    return a / b;
}

/* Exact before its one rounding, if need be by the C library: slow, but what
 * defines the result cannot be approximate. */
LMQ_INLINE vr
vr_fma(vr a, vr b, vr c)
{
    return fmaf(a, b, c);
}

/* b if one of them is NaN. */
LMQ_INLINE vr
vr_max(vr a, vr b)
{
    return a > b ? a : b;
}

/* The larger of a and |b| as integers; a has no sign. */
LMQ_INLINE vr
vr_max_bits(vr a, vr b)
{
    uint32_t bits = lmq_f32_bits(b) & 0x7fffffff;

    return lmq_f32_of_bits(bits > lmq_f32_bits(a) ? bits : lmq_f32_bits(a));
}

/* The largest lane; none has a sign. */
LMQ_INLINE uint32_t
vr_top_bits(vr x)
{
    return lmq_f32_bits(x);
}

LMQ_INLINE vr
vr_less(vr a, vr b, vr yes, vr no)
{
    return a < b ? yes : no;
}

/* p * 2^n with one rounding, for 0.5 < p < 2 and an integer n in [-151, 129]:
 * in two steps, the first exact. If n is NaN, so is p. */
LMQ_INLINE vr
vr_scale2(vr p, vr n)
{
    int i = n >= -151.0f ? (int)n : 0;
    int half = (i + 151) / 2 - 76; /* near i / 2 */

    return p * lmq_f32_of_bits((uint32_t)(half + 127) << 23) *
           lmq_f32_of_bits((uint32_t)(i - half + 127) << 23);
}

/* Ends n lane sums: s[j] += s[j + half] while a register has two halves. */
LMQ_INLINE void
vr_sums(const vr *x, size_t n, float *out)
{
    memcpy(out, x, n * sizeof(*x));
}

/* Four columns of LMQ_WIDTH rows that are `stride` bytes apart. */
LMQ_INLINE void
vr_turn(const unsigned char *p, size_t stride, vr *column)
{
    (void)stride;
    memcpy(column, p, 4 * sizeof(*column));
}

/* Exact: a denormal half is a multiple of 2^-24. */
static float
widen_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t rest = half & 0x7fff;
    float magnitude;

    if (rest >= 0x7c00)
        magnitude = lmq_f32_of_bits(rest << 13 | 0x7f800000);
    else if (rest >= 0x0400)
        magnitude = lmq_f32_of_bits((rest << 13) + ((127 - 15) << 23));
    else
        magnitude = (float)rest * 0x1p-24f;
    return lmq_f32_of_bits(lmq_f32_bits(magnitude) | sign);
}

/* Rounds to nearest, ties to even. */
static uint16_t
narrow_f16(float x)
{
    const uint32_t bits = lmq_f32_bits(x);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t rest = bits & 0x7fffffff;
    uint32_t half;

    if (rest > 0x7f800000)
        half = 0x7e00 | (rest >> 13 & 0x3ff);
    else if (rest >= 0x477ff000) /* 65520: halfway to 2^16 */
        half = 0x7c00;
    else if (rest >= 0x38800000) /* 2^-14 */
        half = (rest - ((127 - 15) << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    else /* 0.5 has the weight of the last place of a denormal half */
        half = lmq_f32_bits(lmq_f32_of_bits(rest) + 0.5f) - 0x3f000000;
    return (uint16_t)(sign | half);
}

LMQ_INLINE vr
vr_load_f16(const void *p)
{
    return widen_f16(lmq_load_u16le(p));
}

LMQ_INLINE vr
vr_load_bf16(const void *p)
{
    return lmq_f32_of_bits((uint32_t)lmq_load_u16le(p) << 16);
}

LMQ_INLINE vr
vr_load_i8(const void *p)
{
    return (float)*(const int8_t *)p;
}

LMQ_INLINE vr
vr_set1_f16(const void *p)
{
    return widen_f16(lmq_load_u16le(p));
}

LMQ_INLINE void
vr_store_f16(void *p, vr x)
{
    lmq_store_u16le(p, narrow_f16(x));
}

/* Integers in the range of the type; NaN does not come here. */
LMQ_INLINE void
vr_store_i8(void *p, vr x)
{
    *(int8_t *)p = (int8_t)x;
}

LMQ_INLINE void
vr_store_i16(int16_t *p, vr x)
{
    *p = (int16_t)x;
}

#include "runtime/kernels/kernels_vector_body.h"

/* ---- int8 weights in tiles ---- */

/* A group's scale, half or float, as the file has it. */
static float
tile_scale(const struct lmq_tiles *tiles, size_t row, size_t g)
{
    const size_t n_groups = lmq_groups_per_row(tiles->n_cols, tiles->group);
    const size_t i = (row / LMQ_TILE_ROWS * n_groups + g) * LMQ_TILE_ROWS +
                     row % LMQ_TILE_ROWS;

    return tiles->scale_type == LMQ_SCALES_F16
               ? widen_f16(lmq_load_u16le(tiles->scale + 2 * i))
               : lmq_load_f32le(tiles->scale + 4 * i);
}

static const unsigned char *
tile_of(const struct lmq_tiles *tiles, size_t row)
{
    return tiles->q + row / LMQ_TILE_ROWS *
                          lmq_tile_values_size(tiles->n_cols, tiles->group,
                                               tiles->bits);
}

/* Columns [at, end) of a row of a tile, -127..127. */
static void
tile_numbers(const struct lmq_tiles *tiles, const unsigned char *tile,
             size_t row, size_t at, size_t end, int *q)
{
    if (tiles->bits < LMQ_BITS_MAX) {
        for (size_t c = at; c < end; c++)
            q[c - at] = lmq_tile_number(tile, row, c, tiles->bits);
        return;
    }
    for (size_t c = at; c < end; c += LMQ_TILE_COLUMNS) {
        const unsigned char *four = tile + lmq_tile_index(row, c);
        for (size_t i = 0; i < LMQ_TILE_COLUMNS; i++)
            q[c - at + i] = four[i] - 128;
    }
}

void
lmq_tiles_row(const struct lmq_tiles *tiles, size_t row, float *out)
{
    const unsigned char *tile = tile_of(tiles, row);
    int q[LMQ_GROUP_MAX];

    for (size_t at = 0; at < tiles->n_cols; at += tiles->group) {
        const size_t n = lmq_size_min(tiles->group, tiles->n_cols - at);
        const float scale = tile_scale(tiles, row, at / tiles->group);
        const float size = fabsf(scale);
        const int sign = scale < 0 ? -1 : 1;
        tile_numbers(tiles, tile, row % LMQ_TILE_ROWS, at, at + n, q);
        for (size_t i = 0; i < n; i++)
            out[at + i] = (float)(sign * q[i]) * size * tiles->multiplier;
        lmq_rotate_group(out + at, n, tiles->group, tiles->rotation);
    }
}

size_t
lmq_batch_bytes(size_t n_tokens, size_t n_cols, size_t group)
{
    /* For each token and group a head of 64 bytes and numbers of 16 bits, or
     * where a token is alone two small ones and the numbers twice: what the
     * most generous instruction set takes. */
    const size_t each = n_tokens == 1 ? 16 + 4 * group : 64 + 2 * group;
    size_t n_bytes;

    if (!lmq_size_mul(n_tokens, lmq_groups_per_row(n_cols, group), &n_bytes) ||
        !lmq_size_mul(n_bytes, each, &n_bytes))
        return 0;
    return n_bytes;
}

/* ---- int8 product ---- */

/* One token of a batch is here its scales, then its numbers. */
static float *
token_scales(const struct lmq_batch *batch, size_t token)
{
    return (float *)batch->data +
           token * lmq_groups_per_row(batch->n_cols, batch->group) *
               (1 + batch->group / 2);
}

static void
batch_pack(const struct lmq_batch *batch, const float *x, size_t stride,
           size_t part, size_t n_parts)
{
    const size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);
    const size_t end = batch->n_tokens * (part + 1) / n_parts;

    for (size_t t = batch->n_tokens * part / n_parts; t < end; t++) {
        float *scale = token_scales(batch, t);
        int16_t *q = (int16_t *)(scale + n_groups);
        for (size_t k = 0; k < batch->n_cols; k += batch->group)
            *scale++ = pack_group(batch, x + t * stride, k, q + k);
    }
}

/* |sum| <= 256 * 127 * 32639 = 1,061,160,168 < 2^31. */
static int32_t
group_sum(const int *q, const int16_t *x, size_t group)
{
    int32_t sum = 0;

    for (size_t k = 0; k < group; k++)
        sum += q[k] * x[k];
    return sum;
}

/* out = multiplier * (acc = fma(isum, weight scale * x scale, acc)): over the
 * groups in order, as kernels.h says. Sums wait in `out`. */
static void
product(const struct lmq_tiles *tiles, size_t tile0, size_t tile1,
        const struct lmq_batch *batch, float *out, size_t stride,
        void *scratch)
{
    const size_t group = tiles->group;
    const size_t n_groups = lmq_groups_per_row(tiles->n_cols, group);
    const size_t end = lmq_size_min(tile1 * LMQ_TILE_ROWS, tiles->n_rows);
    int q[LMQ_GROUP_MAX];

    (void)scratch;
    for (size_t row = tile0 * LMQ_TILE_ROWS; row < end; row++) {
        for (size_t t = 0; t < batch->n_tokens; t++)
            out[t * stride + row] = 0.0f;
        for (size_t g = 0; g < n_groups; g++) {
            tile_numbers(tiles, tile_of(tiles, row), row % LMQ_TILE_ROWS,
                         g * group, (g + 1) * group, q);
            for (size_t t = 0; t < batch->n_tokens; t++) {
                const float *scale = token_scales(batch, t);
                const int16_t *x =
                    (const int16_t *)(scale + n_groups) + g * group;
                float *acc = &out[t * stride + row];
                *acc = fmaf((float)group_sum(q, x, group),
                            tile_scale(tiles, row, g) * scale[g], *acc);
            }
        }
        for (size_t t = 0; t < batch->n_tokens; t++)
            out[t * stride + row] *= tiles->multiplier;
    }
}

/* Sums wrap as unsigned numbers; the volatile factor keeps the compiler from
 * knowing the result. */
static double
peak_int8(size_t rounds)
{
    int32_t sum[16] = {0};
    const volatile int8_t one = 1;
    const int32_t factor = one;

    for (size_t round = 0; round < rounds; round++)
        for (size_t j = 0; j < 16; j++)
            sum[j] = (int32_t)((uint32_t)sum[j] * (uint32_t)factor + 3u);
    return (double)(rounds * 16 * 2) + (sum[0] == 1 ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_c = {
    .name = "c",
    .passes_16 = 1,
    VECTOR_KERNELS,
    .batch_pack = batch_pack,
    .product = product,
    .peak_int8 = peak_int8,
};
