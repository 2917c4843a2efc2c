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

#define LMQ_TILES 1
#define LMQ_LINE_PART 32
#define LMQ_WIDE 0

#include "runtime/kernels/kernels_int8_body.h"

/* What takes back that the weights are too large, in the low halves
 * (kernels_avx512.c). */
LMQ_INLINE __m256i
start_of(const unsigned char *head, size_t n_t, size_t n_v, size_t v,
         unsigned bits)
{
    const size_t before = n_v - n_t;

    if (v < before)
        return _mm256_setzero_si256();
    return _mm256_srai_epi32(
        _mm256_set1_epi32(load_i32(head + (n_t + v - before) * 4)),
        (int)(8 - bits));
}

LMQ_INLINE void
add_to_one(const struct streams *from, size_t n_r, size_t r,
           const unsigned char *head, size_t n_t, int is16, unsigned bits,
           vf *sum)
{
    const size_t n_v = is16 ? 2 * n_t : n_t, n_steps = STEPS(bits);
    const unsigned char *w = from->w + r * from->next_w;
    const unsigned char *scale = from->scale + r * from->next_scale;
    const unsigned char *x = head + HEAD_BYTES(n_t);
    __m256i acc[TILE_VECTORS][2];

    LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
        acc[v][0] = acc[v][1] = start_of(head, n_t, n_v, v, bits);
    for (size_t k = 0; k < from->group; k += 4 * n_steps) {
        LMQ_UNROLL for (size_t s = 0; s < n_steps; s++, x += n_v * 4) {
            __m256i a = (__m256i)load_step(w, s, 0, bits);
            __m256i b = (__m256i)load_step(w, s, 1, bits);
            LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
                __m256i y = _mm256_set1_epi32(load_i32(x + v * 4));
                acc[v][0] = _mm256_dpbusd_avx_epi32(acc[v][0], a, y);
                acc[v][1] = _mm256_dpbusd_avx_epi32(acc[v][1], b, y);
            }
        }
        read_ahead(from, w, STEPS_BYTES(bits), n_r, n_t);
        w += STEPS_BYTES(bits);
    }
    LMQ_UNROLL for (size_t h = 0; h < 2; h++) {
        vr s = from->is_half ? vr_load_f16(scale + 16 * h)
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
add_group(const struct streams *from, size_t n_r, const unsigned char *head,
          size_t n_t, int is16, unsigned bits, vf sum[][TILE_VECTORS])
{
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        add_to_one(from, n_r, r, head, n_t, is16, bits, sum[r]);
}

static double
peak_int8(size_t rounds)
{
    const __m256i a = _mm256_set1_epi32(0x01010101);
    __m256i acc[12], total = a;

    LMQ_UNROLL for (int i = 0; i < 12; i++)
        acc[i] = _mm256_set1_epi32(i);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (int i = 0; i < 12; i++)
            acc[i] = _mm256_dpbusd_avx_epi32(acc[i], a, a);
    LMQ_UNROLL for (int i = 0; i < 12; i++)
        total = _mm256_xor_si256(total, acc[i]);
    return (double)(rounds * 12 * 64) +
           (_mm256_testz_si256(total, total) ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_avxvnni = {
    .name = "avxvnni",
    VECTOR_KERNELS,
    INT8_KERNELS,
};
