/*
 * group_avx2.c - group_body.h compiled for AVX2.
 */
#include "config.h"

#include <immintrin.h>

#define LMQ_ROW_NAME lmq_quantize_row_avx2
#define LMQ_SCALE_NAME lmq_quant_weighted_scale_avx2
#define LMQ_ROW_WIDTH 8
#define LMQ_ROW_MISS(v) ((v) - _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT))
#define LMQ_ROW_MAX(a, b) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define LMQ_ROW_MIN(a, b) _mm256_min_epi32((__m256i)(a), (__m256i)(b))
#define LMQ_ROW_CLAMP(v, low, high) _mm256_min_ps(_mm256_max_ps(v, low), high)
#define LMQ_ROW_SQUARES(sum, v)      \
    _mm256_add_epi32((__m256i)(sum), \
                     _mm256_madd_epi16((__m256i)(v), (__m256i)(v)))
#define LMQ_ROW_HALF(v) \
    _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define LMQ_ROW_TURN(v, at) \
    _mm256_permutevar8x32_epi32((__m256i)(v), (__m256i)(at))
#define LMQ_ROW_BITS(v) (unsigned)_mm256_movemask_ps((__m256)(v))
#include "quantize/group_body.h"
