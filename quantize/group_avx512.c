/*
 * group_avx512.c - group_body.h compiled for AVX-512.
 */
#include "config.h"

#include <immintrin.h>

#define LMQ_ROW_NAME lmq_quantize_row_avx512
#define LMQ_SCALE_NAME lmq_quant_weighted_scale_avx512
#define LMQ_ROW_WIDTH 16
#define LMQ_ROW_MISS(v) _mm512_reduce_ps(v, _MM_FROUND_TO_NEAREST_INT)
#define LMQ_ROW_MAX(a, b) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define LMQ_ROW_MIN(a, b) _mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define LMQ_ROW_CLAMP(v, low, high) _mm512_min_ps(_mm512_max_ps(v, low), high)
#define LMQ_ROW_SQUARES(sum, v) \
    _mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(v), (__m512i)(v))
#define LMQ_ROW_HALF(v) \
    _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define LMQ_ROW_TURN(v, at) \
    _mm512_permutexvar_epi32((__m512i)(at), (__m512i)(v))
#define LMQ_ROW_BITS(v) (unsigned)_mm512_movepi32_mask((__m512i)(v))
#include "quantize/group_body.h"
