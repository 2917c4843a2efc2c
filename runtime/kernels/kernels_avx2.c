/*
 * kernels_avx2.c - kernels for AVX2, FMA and F16C, without VNNI.
 *
 * With 8 bits vpmaddubsw would saturate. Instead both factors become int16: a
 * step of 4 columns of 8 rows is split into its even and its odd columns, and
 * vpmaddwd multiplies pairs exactly: 2 * 127 * 32639 < 2^31. So 16 bits of
 * activations cost no more here than 8.
 *
 * Fewer bits, which one token meets where they lie, are no such trouble: some
 * products of vpmaddubsw can even be added as int16.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include "runtime/kernels/kernels_avx2_registers.h"
#include "runtime/kernels/kernels_vector_body.h"

#define LMQ_TILES 1
#define LMQ_LINE_PART 32
#define LMQ_WIDE 1

#include "runtime/kernels/kernels_int8_body.h"

/* The sums of one group for 8 rows and n_t tokens. */
LMQ_INLINE void
group_sums(const struct streams *from, const unsigned char *w,
           const unsigned char *x, size_t n_r, size_t n_t, __m256i *acc)
{
    const __m256i half = _mm256_set1_epi8((char)128);

    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        acc[t] = _mm256_setzero_si256();
    for (size_t k = 0; k < from->group; k += 4, x += n_t * 8) {
        __m256i a = _mm256_sub_epi8((__m256i)load_part(w), half);
        __m256i odd = _mm256_srai_epi16(a, 8);
        __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8);
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
            __m256i e = _mm256_set1_epi32(load_i32(x + t * 8));
            __m256i o = _mm256_set1_epi32(load_i32(x + t * 8 + 4));
            e = _mm256_madd_epi16(even, e);
            o = _mm256_madd_epi16(odd, o);
            acc[t] = _mm256_add_epi32(acc[t], _mm256_add_epi32(e, o));
        }
        read_ahead(from, w, LMQ_LINE, n_r, n_t);
        w += LMQ_LINE;
    }
}

/* sum = fma(isum, weight scale * x scale, sum) for half h of the rows. */
LMQ_INLINE void
add_half(const struct streams *from, size_t r, size_t h, __m256i isum,
         const unsigned char *x_scale, vf *sum)
{
    const unsigned char *scale = from->scale + r * from->next_scale;
    const vr s = from->is_half ? vr_load_f16(scale + 16 * h)
                               : vr_load(scale + 32 * h);

    sum->r[h] = vr_fma(_mm256_cvtepi32_ps(isum),
                       vr_mul(s, vr_set1(load_f32(x_scale))), sum->r[h]);
}

LMQ_INLINE void
add_wide(const struct streams *from, size_t n_r, size_t r,
         const unsigned char *head, size_t n_t, vf *sum)
{
    const unsigned char *w = from->w + r * from->next_w;
    __m256i acc[TILE_VECTORS];

    LMQ_UNROLL for (size_t h = 0; h < 2; h++) {
        /* Both halves are in the lines that the first one has asked for. */
        group_sums(from, w + 32 * h, head + HEAD_BYTES(n_t),
                   h == 0 ? n_r : 1, n_t, acc);
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            add_half(from, r, h, acc[t], head + t * 4, &sum[t]);
    }
}

/* So many products of pairs, of at most 2 * 128 * (2^bits - 1), make a sum of
 * 16 bits: 8 of 4 bits, 4 of 5, 2 of 6. */
#define FITTING(bits) ((size_t)(32767 / (256 * ((1 << (bits)) - 1))))

/* One token and weights of fewer bits, as q + 2^(bits - 1). */
LMQ_INLINE void
add_int8(const struct streams *from, size_t r, const unsigned char *head,
         int is16, unsigned bits, vf *sum)
{
    const size_t n_v = is16 ? 2 : 1;
    const unsigned char *w = from->w + r * from->next_w;
    const unsigned char *x = head + HEAD_BYTES(1);
    __m256i acc[2], part[2][2];

    acc[0] = acc[1] = _mm256_srai_epi32(
        _mm256_set1_epi32(load_i32(head + 4)), (int)(8 - bits));
    for (size_t k = 0; k < from->group; k += 4 * BLOCK_STEPS) {
        LMQ_UNROLL for (size_t s = 0; s < BLOCK_STEPS; s++, x += 4 * n_v) {
            const bool begins = s % FITTING(bits) == 0;
            const bool ends = (s + 1) % FITTING(bits) == 0;
            LMQ_UNROLL for (size_t h = 0; h < 2; h++) {
                __m256i a = (__m256i)load_step(w, s, h, bits);
                LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
                    __m256i y = _mm256_maddubs_epi16(
                        a, _mm256_set1_epi32(load_i32(x + 4 * v)));
                    part[h][v] =
                        begins ? y : _mm256_add_epi16(part[h][v], y);
                    /* Compilers would make a tree, and have no registers. */
                    __asm__("" : "+x"(part[h][v]));
                    /* Of two the first is of the high halves. */
                    if (ends)
                        acc[h] = _mm256_add_epi32(
                            acc[h],
                            _mm256_madd_epi16(
                                part[h][v],
                                _mm256_set1_epi16(v + 1 < n_v ? 256 : 1)));
                }
            }
        }
        LMQ_UNROLL for (size_t i = 0; i < bits; i++)
            lmq_prefetch(w + i * LMQ_LINE, from->ahead);
        w += bits * LMQ_LINE;
    }
    LMQ_UNROLL for (size_t h = 0; h < 2; h++)
        add_half(from, r, h, acc[h], head, sum);
}

LMQ_INLINE void
add_group(const struct streams *from, size_t n_r, const unsigned char *head,
          size_t n_t, int is16, unsigned bits, vf sum[][TILE_VECTORS])
{
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        if (IS_WIDE(bits))
            add_wide(from, n_r, r, head, n_t, sum[r]);
        else
            add_int8(from, r, head, is16, bits, sum[r]);
}

static double
peak_int8(size_t rounds)
{
    const __m256i a = _mm256_set1_epi32(0x00010001);
    __m256i acc[10], total = a;

    LMQ_UNROLL for (int i = 0; i < 10; i++)
        acc[i] = _mm256_set1_epi32(i);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (int i = 0; i < 10; i++)
            acc[i] =
                _mm256_add_epi32(acc[i], _mm256_madd_epi16(acc[i], a));
    LMQ_UNROLL for (int i = 0; i < 10; i++)
        total = _mm256_xor_si256(total, acc[i]);
    return (double)(rounds * 10 * 32) +
           (_mm256_testz_si256(total, total) ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_avx2 = {
    .name = "avx2",
    VECTOR_KERNELS,
    INT8_KERNELS,
};
