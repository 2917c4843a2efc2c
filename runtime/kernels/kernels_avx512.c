/*
 * kernels_avx512.c - kernels for AVX-512 F, BW, DQ, VL and VNNI, and for the
 * same with AMX.
 *
 * A vector of 16 floats is one register, and so is a step of 4 columns of a
 * row tile.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include <immintrin.h>

#include "base/size.h"
#include "runtime/kernels/kernels_common.h"

/* ---- Registers of floats ---- */

typedef __m512 vr;

#define LMQ_WIDTH 16
/* 24 sums, 6 tokens' columns and a row's: 31 of 32 registers. */
#define LMQ_TILE_R 4
#define LMQ_TILE_T 6
#define LMQ_TURNED_V 4
#define LMQ_TURNED_T 4
#define LMQ_PEAK_REGISTERS 12

LMQ_INLINE vr
vr_set1(float x)
{
    return _mm512_set1_ps(x);
}

LMQ_INLINE vr
vr_load(const void *p)
{
    return _mm512_loadu_ps(p);
}

LMQ_INLINE void
vr_store(float *p, vr x)
{
    _mm512_storeu_ps(p, x);
}

LMQ_INLINE vr
vr_add(vr a, vr b)
{
    return _mm512_add_ps(a, b);
}

LMQ_INLINE vr
vr_sub(vr a, vr b)
{
    return _mm512_sub_ps(a, b);
}

LMQ_INLINE vr
vr_mul(vr a, vr b)
{
    return _mm512_mul_ps(a, b);
}

LMQ_INLINE vr
vr_div(vr a, vr b)
{
    return _mm512_div_ps(a, b);
}

LMQ_INLINE vr
vr_fma(vr a, vr b, vr c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* vmaxps: b if one of them is NaN. */
LMQ_INLINE vr
vr_max(vr a, vr b)
{
    return _mm512_max_ps(a, b);
}

/* Neither has a sign, so a signed comparison does. */
LMQ_INLINE vr
vr_max_bits(vr a, vr b)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(
        _mm512_castps_si512(a), _mm512_castps_si512(_mm512_abs_ps(b))));
}

LMQ_INLINE uint32_t
vr_top_bits(vr x)
{
    return (uint32_t)_mm512_reduce_max_epi32(_mm512_castps_si512(x));
}

LMQ_INLINE vr
vr_less(vr a, vr b, vr yes, vr no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

/* vscalefps rounds once, also to denormal numbers: no two steps here. */
LMQ_INLINE vr
vr_scale2(vr p, vr n)
{
    return _mm512_scalef_ps(p, n);
}

/* s[j] += s[j + 8], then 4, 2, 1. */
LMQ_INLINE float
sum_register(vr x)
{
    __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x),
                             _mm512_extractf32x8_ps(x, 1));
    __m128 z = _mm_add_ps(_mm256_castps256_ps128(y),
                          _mm256_extractf128_ps(y, 1));
    z = _mm_add_ps(z, _mm_movehl_ps(z, z));
    return _mm_cvtss_f32(_mm_add_ss(z, _mm_movehdup_ps(z)));
}

/* Four sums in one go, in the same order as sum_register(). */
LMQ_INLINE void
vr_sums(const vr *x, size_t n, float *out)
{
    if (n < 4) {
        LMQ_UNROLL for (size_t i = 0; i < n; i++)
            out[i] = sum_register(x[i]);
        return;
    }
    /* The halves of two vectors, which meet as [low + high, high + low]: one of
     * the terms is blended, as there are more ports for that than for moving
     * lanes. */
    __m512 a = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, x[0], x[1]),
                             _mm512_shuffle_f32x4(x[0], x[1], 0x4e));
    __m512 b = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, x[2], x[3]),
                             _mm512_shuffle_f32x4(x[2], x[3], 0x4e));
    /* Then quarters: of vectors 0, 2, 1, 3. */
    const __m512i other = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13,
                                            14, 15, 24, 25, 26, 27);
    a = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, a, b),
                      _mm512_permutex2var_ps(a, other, b));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0x4e));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0xb1));
    const __m512i first = _mm512_setr_epi32(0, 8, 4, 12, 0, 0, 0, 0, 0, 0, 0,
                                            0, 0, 0, 0, 0);
    _mm_storeu_ps(out,
                  _mm512_castps512_ps128(_mm512_permutexvar_ps(first, a)));
}

/* Four floats of rows 0, 4, 8 and 12. */
LMQ_INLINE vr
load_quads(const unsigned char *p, size_t stride)
{
    vr x = _mm512_castps128_ps512(_mm_loadu_ps((const void *)p));

    x = _mm512_insertf32x4(x, _mm_loadu_ps((const void *)(p + 4 * stride)), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps((const void *)(p + 8 * stride)), 2);
    return _mm512_insertf32x4(
        x, _mm_loadu_ps((const void *)(p + 12 * stride)), 3);
}

/* Four columns of 16 rows that are `stride` bytes apart. */
LMQ_INLINE void
vr_turn(const unsigned char *p, size_t stride, vr *column)
{
    const vr a = load_quads(p, stride), b = load_quads(p + stride, stride);
    const vr c = load_quads(p + 2 * stride, stride);
    const vr d = load_quads(p + 3 * stride, stride);
    const __m512d low_ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    const __m512d high_ab = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    const __m512d low_cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    const __m512d high_cd = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));

    column[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low_ab, low_cd));
    column[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low_ab, low_cd));
    column[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high_ab, high_cd));
    column[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high_ab, high_cd));
}

LMQ_INLINE vr
vr_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

/* bfloat16 is the upper half of a float. */
LMQ_INLINE vr
vr_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

LMQ_INLINE vr
vr_load_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}

LMQ_INLINE vr
vr_set1_f16(const void *p)
{
    uint16_t half;

    memcpy(&half, p, sizeof(half));
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)half));
}

LMQ_INLINE void
vr_store_f16(void *p, vr x)
{
    /* All lanes by name: in the form without a mask, gcc's header narrows a
     * signed -1 to it, and -Wconversion says so where it is a macro (-O0). */
    _mm256_storeu_si256(
        p, _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT));
}

LMQ_INLINE void
vr_store_i8(void *p, vr x)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}

LMQ_INLINE void
vr_store_i16(void *p, vr x)
{
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
}

#include "runtime/kernels/kernels_vector_body.h"

/* ---- int8 ---- */

#define LMQ_TILES 4
#define LMQ_LINE_PART 64
#define LMQ_WIDE 0
#define LMQ_SELECT(m, a, b)                                            \
    ((vw)_mm512_ternarylogic_epi32((__m512i)(b), (__m512i)(a),         \
                                   _mm512_set1_epi8(m), 0xd8))

#include "runtime/kernels/kernels_int8_body.h"

/* What takes back that the weights are too large, in the low halves: with fewer
 * bits that is 8, 16 or 32, and the division is exact. */
LMQ_INLINE __m512i
start_of(const unsigned char *head, size_t n_t, size_t n_v, size_t v,
         unsigned bits)
{
    const size_t before = n_v - n_t;

    if (v < before)
        return _mm512_setzero_si512();
    return _mm512_srai_epi32(
        _mm512_set1_epi32(load_i32(head + (n_t + v - before) * 4)), 8 - bits);
}

/* A line that is used more than once, from one load: loads wait in a queue. */
LMQ_INLINE vw
load_once(const unsigned char *w)
{
    vw line = load_part(w);

    __asm__("" : "+v"(line)); /* else there are as many loads */
    return line;
}

/* vpdpbusd wants one factor without a sign: that is the weight, stored as
 * q + 128. For one token, the fewer instructions there are for a line of
 * weights, the more lines are under way: so steps are unrolled. A stream of
 * fewer bits comes so fast that one chain of sums is too slow for it: steps
 * take turns between two. All lines of a block of 5 or 6 bits are loaded in the
 * order in which they lie, which is how they come fastest, before they are put
 * together. Weights of long rows drive activations out of the first level
 * cache, so these are asked for four lines ahead. */
LMQ_INLINE void
add_group(const struct streams *from, size_t n_r, const unsigned char *head,
          size_t n_t, int is16, unsigned bits, vf sum[][TILE_VECTORS])
{
    const bool is_stream = n_t == 1 && n_r < TILE_STREAMS;
    const size_t n_v = is16 ? 2 * n_t : n_t;
    const size_t n_steps = bits < 8 ? is_stream ? BLOCK_STEPS : STEPS(bits)
                           : n_t == 1 ? 4 : 2;
    const size_t n_bytes = n_steps * 8 * bits;
    const size_t n_chains = bits < 8 && is_stream ? 2 : 1;
    const bool in_pairs = bits == 4 && is_stream;
    const bool in_blocks = bits < 8 && is_stream && !in_pairs;
    const unsigned char *w = from->w, *x = head + HEAD_BYTES(n_t);
    __m512i acc[TILE_STREAMS][TILE_VECTORS][2];
    vw line[TILE_STREAMS][8];

    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
            acc[r][v][0] = start_of(head, n_t, n_v, v, bits);
            acc[r][v][1] = _mm512_setzero_si512();
        }
    for (size_t k = 0; k < from->group; k += 4 * n_steps) {
        if (is_stream)
            lmq_prefetch(x, 4 * LMQ_LINE);
        LMQ_UNROLL for (size_t s = 0; s < n_steps; s++, x += n_v * 4) {
            const size_t chain = s % n_chains;
            __m512i a[TILE_STREAMS];
            LMQ_UNROLL for (size_t r = 0; r < n_r; r++) {
                const unsigned char *row = w + r * from->next_w;
                if (in_pairs && s % 2 == 0)
                    line[r][s / 2] = load_once(row + s / 2 * LMQ_LINE);
                if (in_blocks && s == 0)
                    LMQ_UNROLL for (size_t i = 0; i < bits; i++)
                        line[r][i] = load_once(row + i * LMQ_LINE);
                if (in_pairs) /* the second is 16 times as large */
                    a[r] = (__m512i)(line[r][s / 2] &
                                     (s % 2 == 0 ? 0x0f : 0xf0) * EACH);
                else if (in_blocks)
                    a[r] = (__m512i)join_bits(line[r][s / 2],
                                              line[r][ABOVE(s, bits)], s,
                                              bits);
                else
                    a[r] = (__m512i)load_step(row, s, 0, bits);
            }
            LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
                __m512i b = _mm512_set1_epi32(load_i32(x + v * 4));
                LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
                    acc[r][v][chain] =
                        _mm512_dpbusd_epi32(acc[r][v][chain], a[r], b);
            }
        }
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            read_ahead(from, w + r * from->next_w, n_bytes, n_r, n_t);
        w += n_bytes;
    }
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++) {
        const unsigned char *scale = from->scale + r * from->next_scale;
        vr s = from->is_half ? vr_load_f16(scale) : vr_load(scale);
        LMQ_UNROLL for (size_t v = 0; n_chains > 1 && v < n_v; v++)
            acc[r][v][0] = _mm512_add_epi32(
                acc[r][v][0], _mm512_srai_epi32(acc[r][v][1], 4 * in_pairs));
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
            __m512i i = acc[r][t][0];
            if (is16) /* 256 * high + low */
                i = _mm512_add_epi32(_mm512_slli_epi32(i, 8),
                                     acc[r][n_t + t][0]);
            sum[r][t].r[0] = vr_fma(
                _mm512_cvtepi32_ps(i),
                vr_mul(s, vr_set1(load_f32(head + t * 4))), sum[r][t].r[0]);
        }
    }
}

static double
peak_int8(size_t rounds)
{
    const __m512i a = _mm512_set1_epi32(0x01010101);
    __m512i acc[12];

    LMQ_UNROLL for (int i = 0; i < 12; i++)
        acc[i] = _mm512_set1_epi32(i);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (int i = 0; i < 12; i++)
            acc[i] = _mm512_dpbusd_epi32(acc[i], a, a);
    LMQ_UNROLL for (int i = 1; i < 12; i++)
        acc[0] = _mm512_xor_si512(acc[0], acc[i]);
    return (double)(rounds * 12 * 128) +
           (_mm512_reduce_add_epi32(acc[0]) == 1 ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_avx512 = {
    .name = "avx512vnni",
    VECTOR_KERNELS,
    INT8_KERNELS,
};

#ifdef LMQ_HAVE_AMX

#include "runtime/kernels/kernels_amx_body.h"

const struct lmq_kernels lmq_kernels_amx = {
    .name = "amx",
    VECTOR_KERNELS,
    AMX_KERNELS,
};

#endif
