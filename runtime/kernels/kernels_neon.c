/*
 * kernels_neon.c - kernels for AArch64 with the dot product instructions.
 */
#include "config.h"

#include "runtime/kernels/kernels.h"

#include <arm_neon.h>

#include "runtime/kernels/kernels_common.h"

/* ---- Registers of floats ---- */

typedef float32x4_t vr;

#define LMQ_WIDTH 4
/* 24 sums, 6 tokens' columns and a row's: 31 of 32 registers. */
#define LMQ_TILE_R 4
#define LMQ_TILE_T 6
#define LMQ_TURNED_V 1
#define LMQ_TURNED_T 4
#define LMQ_PEAK_REGISTERS 16

LMQ_INLINE vr
vr_set1(float x)
{
    return vdupq_n_f32(x);
}

LMQ_INLINE vr
vr_load(const void *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

LMQ_INLINE void
vr_store(float *p, vr x)
{
    vst1q_f32(p, x);
}

LMQ_INLINE vr
vr_add(vr a, vr b)
{
    return vaddq_f32(a, b);
}

LMQ_INLINE vr
vr_sub(vr a, vr b)
{
    return vsubq_f32(a, b);
}

LMQ_INLINE vr
vr_mul(vr a, vr b)
{
    return vmulq_f32(a, b);
}

LMQ_INLINE vr
vr_div(vr a, vr b)
{
    return vdivq_f32(a, b);
}

LMQ_INLINE vr
vr_fma(vr a, vr b, vr c)
{
    return vfmaq_f32(c, a, b);
}

/* vmaxq_f32 would treat NaN and zeros otherwise. */
LMQ_INLINE vr
vr_max(vr a, vr b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

LMQ_INLINE vr
vr_max_bits(vr a, vr b)
{
    return vreinterpretq_f32_u32(vmaxq_u32(
        vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(vabsq_f32(b))));
}

LMQ_INLINE uint32_t
vr_top_bits(vr x)
{
    return vmaxvq_u32(vreinterpretq_u32_f32(x));
}

LMQ_INLINE vr
vr_less(vr a, vr b, vr yes, vr no)
{
    return vbslq_f32(vcltq_f32(a, b), yes, no);
}

LMQ_INLINE vr
power_of_two(int32x4_t n)
{
    return vreinterpretq_f32_s32(
        vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* Two factors, as 2^n itself may not be a normal float; the first product is
 * exact, so there is one rounding. */
LMQ_INLINE vr
vr_scale2(vr p, vr n)
{
    int32x4_t i = vcvtq_s32_f32(n), half = vshrq_n_s32(i, 1);

    return vmulq_f32(vmulq_f32(p, power_of_two(half)),
                     power_of_two(vsubq_s32(i, half)));
}

/* s[j] += s[j + 2], s[0] + s[1]. */
LMQ_INLINE void
vr_sums(const vr *x, size_t n, float *out)
{
    LMQ_UNROLL for (size_t i = 0; i < n; i++) {
        float32x2_t y = vadd_f32(vget_low_f32(x[i]), vget_high_f32(x[i]));
        out[i] = vget_lane_f32(vpadd_f32(y, y), 0);
    }
}

/* Four columns of 4 rows that are `stride` bytes apart. */
LMQ_INLINE void
vr_turn(const unsigned char *p, size_t stride, vr *column)
{
    const float32x4x2_t ab =
        vtrnq_f32(vr_load(p), vr_load(p + stride));
    const float32x4x2_t cd =
        vtrnq_f32(vr_load(p + 2 * stride), vr_load(p + 3 * stride));

    column[0] = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
    column[1] = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
    column[2] =
        vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
    column[3] =
        vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}

LMQ_INLINE vr
vr_load_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

/* bfloat16 is the upper half of a float. */
LMQ_INLINE vr
vr_load_bf16(const void *p)
{
    return vreinterpretq_f32_u32(
        vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

LMQ_INLINE vr
vr_load_i8(const void *p)
{
    int16x8_t x =
        vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(load_i32(p))));

    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(x)));
}

LMQ_INLINE vr
vr_set1_f16(const void *p)
{
    uint16_t half;

    memcpy(&half, p, sizeof(half));
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half)));
}

LMQ_INLINE void
vr_store_f16(void *p, vr x)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(x)));
}

LMQ_INLINE void
vr_store_i8(void *p, vr x)
{
    int16x4_t y = vmovn_s32(vcvtq_s32_f32(x));
    int8x8_t z = vmovn_s16(vcombine_s16(y, y));
    int32_t bytes = vget_lane_s32(vreinterpret_s32_s8(z), 0);

    memcpy(p, &bytes, sizeof(bytes));
}

LMQ_INLINE void
vr_store_i16(int16_t *p, vr x)
{
    vst1_s16(p, vmovn_s32(vcvtq_s32_f32(x)));
}

#include "runtime/kernels/kernels_vector_body.h"

/* ---- int8 ---- */

#define LMQ_TILES 1
#define LMQ_LINE_PART 16
#define LMQ_WIDE 0

#include "runtime/kernels/kernels_int8_body.h"

/* sdot multiplies signed numbers: what the stored weights are too large is
 * taken from them, and start is not needed. */
LMQ_INLINE void
add_to_one(const struct streams *from, size_t n_r, size_t r,
           const unsigned char *head, size_t n_t, int is16, unsigned bits,
           vf *sum)
{
    const size_t n_v = is16 ? 2 * n_t : n_t, n_steps = STEPS(bits);
    const uint8x16_t half = vdupq_n_u8((uint8_t)(1 << (bits - 1)));
    const unsigned char *w = from->w + r * from->next_w;
    const unsigned char *scale = from->scale + r * from->next_scale;
    const unsigned char *x = head + HEAD_BYTES(n_t);
    int32x4_t acc[TILE_VECTORS][4];

    LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
        LMQ_UNROLL for (size_t j = 0; j < 4; j++)
            acc[v][j] = vdupq_n_s32(0);
    for (size_t k = 0; k < from->group; k += 4 * n_steps) {
        LMQ_UNROLL for (size_t s = 0; s < n_steps; s++, x += n_v * 4) {
            int8x16_t a[4];
            LMQ_UNROLL for (size_t j = 0; j < 4; j++)
                a[j] = vreinterpretq_s8_u8(vsubq_u8(
                    (uint8x16_t)load_step(w, s, j, bits), half));
            LMQ_UNROLL for (size_t v = 0; v < n_v; v++) {
                int8x16_t y =
                    vreinterpretq_s8_s32(vdupq_n_s32(load_i32(x + v * 4)));
                LMQ_UNROLL for (size_t j = 0; j < 4; j++)
                    acc[v][j] = vdotq_s32(acc[v][j], a[j], y);
            }
        }
        read_ahead(from, w, STEPS_BYTES(bits), n_r, n_t);
        w += STEPS_BYTES(bits);
    }
    LMQ_UNROLL for (size_t j = 0; j < 4; j++) {
        vr s = from->is_half ? vr_load_f16(scale + 8 * j)
                             : vr_load(scale + 16 * j);
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
            int32x4_t i = acc[t][j];
            if (is16) /* 256 * high + low */
                i = vaddq_s32(vshlq_n_s32(i, 8), acc[n_t + t][j]);
            sum[t].r[j] = vr_fma(
                vcvtq_f32_s32(i),
                vr_mul(s, vr_set1(load_f32(head + t * 4))), sum[t].r[j]);
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
    const int8x16_t a = vdupq_n_s8(1);
    int32x4_t acc[16], total = vdupq_n_s32(0);

    for (int i = 0; i < 16; i++)
        acc[i] = vdupq_n_s32(i);
    for (size_t round = 0; round < rounds; round++)
        LMQ_UNROLL for (int i = 0; i < 16; i++)
            acc[i] = vdotq_s32(acc[i], a, a);
    for (int i = 0; i < 16; i++)
        total = veorq_s32(total, acc[i]);
    return (double)(rounds * 16 * 32) + (vaddvq_s32(total) == 1 ? 1 : 0);
}

const struct lmq_kernels lmq_kernels_neon = {
    .name = "neon",
    VECTOR_KERNELS,
    INT8_KERNELS,
};
