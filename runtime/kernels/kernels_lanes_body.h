/*
 * kernels_lanes_body.h - vectors of 16 floats, made of registers.
 *
 * A body to include, not an interface. The including file defines `vr`, a
 * register of LMQ_WIDTH floats (1, 4, 8 or 16), and operations on it, with
 * the meaning that kernels_plain.c gives them for a single float:
 *
 *   vr_set1 vr_load vr_store vr_add vr_sub vr_mul vr_div vr_fma vr_max
 *   vr_max_bits vr_top_bits vr_less vr_scale2 vr_sums
 *   vr_load_f16 vr_load_bf16 vr_load_i8 vr_set1_f16
 *   vr_store_f16 vr_store_i8 vr_store_i16
 */
#include "runtime/kernels/kernels_common.h"

#define LANES 16
#define REGISTERS (LANES / LMQ_WIDTH)

/* Sixteen on every machine: lane j of a sum takes the same terms everywhere,
 * whether it lives in one register or in sixteen. */
typedef struct {
    vr r[REGISTERS];
} vf;

#define EACH(expression)                                               \
    vf y;                                                              \
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)                  \
        y.r[i] = expression;                                           \
    return y

LMQ_INLINE vf
vf_set1(float x)
{
    EACH(vr_set1(x));
}

LMQ_INLINE vf
vf_load(const float *p)
{
    EACH(vr_load(p + i * LMQ_WIDTH));
}

LMQ_INLINE void
vf_store(float *p, vf x)
{
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
        vr_store(p + i * LMQ_WIDTH, x.r[i]);
}

LMQ_INLINE vf
vf_add(vf a, vf b)
{
    EACH(vr_add(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_sub(vf a, vf b)
{
    EACH(vr_sub(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_mul(vf a, vf b)
{
    EACH(vr_mul(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_div(vf a, vf b)
{
    EACH(vr_div(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_fma(vf a, vf b, vf c)
{
    EACH(vr_fma(a.r[i], b.r[i], c.r[i]));
}

LMQ_INLINE vf
vf_max(vf a, vf b)
{
    EACH(vr_max(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_max_bits(vf a, vf b)
{
    EACH(vr_max_bits(a.r[i], b.r[i]));
}

LMQ_INLINE vf
vf_less(vf a, vf b, vf yes, vf no)
{
    EACH(vr_less(a.r[i], b.r[i], yes.r[i], no.r[i]));
}

LMQ_INLINE vf
vf_scale2(vf p, vf n)
{
    EACH(vr_scale2(p.r[i], n.r[i]));
}
#undef EACH

LMQ_INLINE uint32_t
vf_top_bits(vf x)
{
    LMQ_UNROLL for (size_t i = 1; i < REGISTERS; i++)
        x.r[0] = vr_max_bits(x.r[0], x.r[i]);
    return vr_top_bits(x.r[0]);
}

/* The end of n lane sums: s[j] += s[j + 8], then 4, 2, 1. Here as far as these
 * are different registers; vr_sums() goes on within one. */
LMQ_INLINE void
vf_sums(const vf *x, size_t n, float *out)
{
    vr sum[LMQ_TILE_R];

    LMQ_UNROLL for (size_t j = 0; j < n; j++) {
        vf y = x[j];
        LMQ_UNROLL for (size_t half = REGISTERS / 2; half > 0; half /= 2)
            LMQ_UNROLL for (size_t i = 0; i < half; i++)
                y.r[i] = vr_add(y.r[i], y.r[i + half]);
        sum[j] = y.r[0];
    }
    vr_sums(sum, n, out);
}

LMQ_INLINE float
vf_sum(vf x)
{
    float sum;

    vf_sums(&x, 1, &sum);
    return sum;
}

LMQ_INLINE void
vf_store_f16(unsigned char *p, vf x)
{
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
        vr_store_f16(p + i * LMQ_WIDTH * 2, x.r[i]);
}

LMQ_INLINE void
vf_store_i8(unsigned char *p, vf x)
{
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
        vr_store_i8(p + i * LMQ_WIDTH, x.r[i]);
}

LMQ_INLINE void
vf_store_i16(int16_t *p, vf x)
{
    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
        vr_store_i16(p + i * LMQ_WIDTH, x.r[i]);
}
