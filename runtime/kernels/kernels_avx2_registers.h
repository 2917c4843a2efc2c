/*
 * kernels_avx2_registers.h - the registers of AVX2, FMA and F16C: 8 floats.
 *
 * For kernels_avx2.c and kernels_avxvnni.c, which differ only in the int8
 * product.
 */
#include <immintrin.h>

#include "runtime/kernels/kernels_common.h"

typedef __m256 vr;

#define LMQ_WIDTH 8
/* 12 sums, 3 tokens' columns and a row's: all 16 registers. */
#define LMQ_TILE_R 4
#define LMQ_TILE_T 3
#define LMQ_TURNED_V 1
#define LMQ_TURNED_T 5
#define LMQ_PEAK_REGISTERS 10

LMQ_INLINE vr
vr_set1(float x)
{
    return _mm256_set1_ps(x);
}

LMQ_INLINE vr
vr_load(const void *p)
{
    return _mm256_loadu_ps(p);
}

LMQ_INLINE void
vr_store(float *p, vr x)
{
    _mm256_storeu_ps(p, x);
}

LMQ_INLINE vr
vr_add(vr a, vr b)
{
    return _mm256_add_ps(a, b);
}

LMQ_INLINE vr
vr_sub(vr a, vr b)
{
    return _mm256_sub_ps(a, b);
}

LMQ_INLINE vr
vr_mul(vr a, vr b)
{
    return _mm256_mul_ps(a, b);
}

LMQ_INLINE vr
vr_div(vr a, vr b)
{
    return _mm256_div_ps(a, b);
}

LMQ_INLINE vr
vr_fma(vr a, vr b, vr c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* vmaxps: b if one of them is NaN. */
LMQ_INLINE vr
vr_max(vr a, vr b)
{
    return _mm256_max_ps(a, b);
}

/* Neither has a sign, so a signed comparison does. */
LMQ_INLINE vr
vr_max_bits(vr a, vr b)
{
    __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(b),
                                         _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(
        _mm256_max_epi32(_mm256_castps_si256(a), magnitude));
}

LMQ_INLINE uint32_t
vr_top_bits(vr x)
{
    __m256i y = _mm256_castps_si256(x);
    __m128i z = _mm_max_epi32(_mm256_castsi256_si128(y),
                              _mm256_extracti128_si256(y, 1));
    z = _mm_max_epi32(z, _mm_shuffle_epi32(z, 0x4e));
    z = _mm_max_epi32(z, _mm_shuffle_epi32(z, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(z);
}

LMQ_INLINE vr
vr_less(vr a, vr b, vr yes, vr no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

LMQ_INLINE vr
power_of_two(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* Two factors, as 2^n itself may not be a normal float; the first product is
 * exact, so there is one rounding. */
LMQ_INLINE vr
vr_scale2(vr p, vr n)
{
    __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1);

    return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two(half)),
                         power_of_two(_mm256_sub_epi32(i, half)));
}

/* s[j] += s[j + 4], then 2, 1; two registers at a time. */
LMQ_INLINE void
vr_sums(const vr *x, size_t n, float *out)
{
    LMQ_UNROLL for (size_t i = 0; i < n; i += 2) {
        vr a = x[i], b = x[i + 1 < n ? i + 1 : i];
        a = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                          _mm256_permute2f128_ps(a, b, 0x31));
        a = _mm256_add_ps(a, _mm256_permute_ps(a, 0x4e));
        a = _mm256_add_ps(a, _mm256_permute_ps(a, 0xb1));
        out[i] = _mm256_cvtss_f32(a);
        if (i + 1 < n)
            out[i + 1] = _mm_cvtss_f32(_mm256_extractf128_ps(a, 1));
    }
}

/* Four floats of rows 0 and 4. */
LMQ_INLINE vr
load_quads(const unsigned char *p, size_t stride)
{
    return _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm_loadu_ps((const void *)p)),
        _mm_loadu_ps((const void *)(p + 4 * stride)), 1);
}

/* Four columns of 8 rows that are `stride` bytes apart. */
LMQ_INLINE void
vr_turn(const unsigned char *p, size_t stride, vr *column)
{
    const vr a = load_quads(p, stride), b = load_quads(p + stride, stride);
    const vr c = load_quads(p + 2 * stride, stride);
    const vr d = load_quads(p + 3 * stride, stride);
    const __m256d low_ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    const __m256d high_ab = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    const __m256d low_cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    const __m256d high_cd = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));

    column[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low_ab, low_cd));
    column[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low_ab, low_cd));
    column[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high_ab, high_cd));
    column[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high_ab, high_cd));
}

LMQ_INLINE vr
vr_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

/* bfloat16 is the upper half of a float. */
LMQ_INLINE vr
vr_load_bf16(const void *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

LMQ_INLINE vr
vr_load_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}

LMQ_INLINE vr
vr_set1_f16(const void *p)
{
    uint16_t half;

    memcpy(&half, p, sizeof(half));
    return _mm256_cvtph_ps(_mm_set1_epi16((short)half));
}

LMQ_INLINE void
vr_store_f16(void *p, vr x)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

LMQ_INLINE __m128i
narrow_i16(vr x)
{
    __m256i y = _mm256_cvtps_epi32(x);

    return _mm_packs_epi32(_mm256_castsi256_si128(y),
                           _mm256_extracti128_si256(y, 1));
}

LMQ_INLINE void
vr_store_i8(void *p, vr x)
{
    __m128i y = narrow_i16(x);

    _mm_storel_epi64(p, _mm_packs_epi16(y, y));
}

LMQ_INLINE void
vr_store_i16(void *p, vr x)
{
    _mm_storeu_si128(p, narrow_i16(x));
}
