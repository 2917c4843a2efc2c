/*
 * kernels_avxvnni.c - kernels for AVX2 with VNNI on 256 bits.
 *
 * A step of 4 columns of a row tile is two registers here: with 12 of sums and
 * one of activations 15 of 16, so row tiles do not come in pairs.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include "runtime/kernels/kernels_avx2_registers.h"
#include "runtime/kernels/kernels_vector_body.h"

#define LMQ_TILE_PAIR 1
#define LMQ_LINE_PART 32
#define LMQ_WIDE 0

LMQ_INLINE void
tile(const struct lmq_tiles *tiles, size_t row_tile, size_t n_r,
     const unsigned char *x, size_t n_t, int is16, unsigned bits, float *out,
     size_t stride);

#include "runtime/kernels/kernels_int8_body.h"

/* One group of a row tile, added to the sums of its tokens. As in
 * kernels_avx512.c the accumulator starts with what takes back what the stored
 * weights are too large. */
LMQ_INLINE void
add_group(const unsigned char *w, const unsigned char *scale, int is_half,
          const unsigned char *head, size_t group, size_t n_r, size_t n_t,
          int is16, unsigned bits, vf *sum)
{
    const size_t n_v = is16 ? 2 * n_t : n_t, n_steps = STEPS(bits);
    const unsigned char *x = head + HEAD_BYTES;
    __m256i acc[TILE_VECTORS][2];

    LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
        acc[v][0] = acc[v][1] =
            _mm256_set1_epi32(load_i32(head + 32 + v * 4) >> (8 - bits));
    for (size_t k = 0; k < group; k += 4 * n_steps) {
        LMQ_UNROLL for (size_t s = 0; s < n_steps; s++, x += n_v * 4) {
            __m256i a = (__m256i)load_step(w, s, 0, bits);
            __m256i b = (__m256i)load_step(w, s, 1, bits);
            LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
                __m256i y = _mm256_set1_epi32(load_i32(x + v * 4));
                acc[v][0] = _mm256_dpbusd_avx_epi32(acc[v][0], a, y);
                acc[v][1] = _mm256_dpbusd_avx_epi32(acc[v][1], b, y);
            }
        }
        read_ahead(w, STEPS_BYTES(bits), n_r);
        w += STEPS_BYTES(bits);
    }
    LMQ_UNROLL for (size_t h = 0; h < 2; h++) {
        vr s = is_half ? vr_load_f16(scale + 16 * h)
                       : vr_load(scale + 32 * h);
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
            __m256i i = acc[t][h];
            if (is16) /* 256 * high + low */
                i = _mm256_add_epi32(_mm256_slli_epi32(i, 8),
                                     acc[n_t + t][h]);
            sum[t].r[h] = vr_fma(
                _mm256_cvtepi32_ps(i),
                vr_mul(s, vr_set1(load_f32(head + t * 4))), sum[t].r[h]);
        }
    }
}

LMQ_INLINE void
tile(const struct lmq_tiles *tiles, size_t row_tile, size_t n_r,
     const unsigned char *x, size_t n_t, int is16, unsigned bits, float *out,
     size_t stride)
{
    const size_t n_v = is16 ? 2 * n_t : n_t;
    const size_t n_groups = lmq_groups_per_row(tiles->n_cols, tiles->group);
    const int is_half = tiles->scale_type == LMQ_SCALES_F16;
    const unsigned char *w = tile_weights(tiles, row_tile);
    const unsigned char *scale = tile_scales(tiles, row_tile);
    const size_t next_w = n_groups * lmq_tile_group_bytes(tiles->group, bits);
    const size_t scale_bytes = lmq_tile_scale_bytes(tiles->scale_type);
    vf sum[TILE_STREAMS][TILE_VECTORS];

    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            sum[r][t] = vf_set1(0.0f);
    for (size_t g = 0; g < n_groups; g++) {
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            add_group(w + r * next_w, scale + r * n_groups * scale_bytes,
                      is_half, x, tiles->group, n_r, n_t, is16, bits,
                      sum[r]);
        w += lmq_tile_group_bytes(tiles->group, bits);
        x += HEAD_BYTES + tiles->group * n_v;
        scale += scale_bytes;
    }
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            store_rows(tiles, row_tile + r, sum[r][t], out + t * stride);
}

static double
peak_int8(size_t rounds)
{
    const __m256i a = _mm256_set1_epi32(0x01010101);
    __m256i acc[12], total = a;

    for (int i = 0; i < 12; i++)
        acc[i] = _mm256_set1_epi32(i);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (int i = 0; i < 12; i++)
            acc[i] = _mm256_dpbusd_avx_epi32(acc[i], a, a);
    for (int i = 0; i < 12; i++)
        total = _mm256_xor_si256(total, acc[i]);
    return (double)(rounds * 12 * 64) +
           (_mm256_testz_si256(total, total) ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_avxvnni = {
    .name = "avxvnni",
    VECTOR_KERNELS,
    INT8_KERNELS,
};
