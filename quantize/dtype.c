/*
 * dtype.c - conversions to float32, written so that compilers vectorize them.
 */
#include "config.h"

#include "quantize/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"

/* ---- Half precision ---- */

float
lmq_f16_to_f32(uint16_t half)
{
    /* Moving exponent and mantissa into place leaves the exponent 112 too
     * small; the product mends that and normalizes subnormals exactly. */
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t bits = lmq_f32_bits(lmq_f32_of_bits(magnitude) * 0x1p112f);

    bits |= magnitude >= 0x0f800000 ? 0x7f800000 : 0; /* infinity, NaN */
    return lmq_f32_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

uint16_t
lmq_f32_to_f16(float value)
{
    uint32_t bits = lmq_f32_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude >= 0x47800000) /* 65536 and more, infinity, NaN */
        return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
    if (magnitude < 0x38800000) {
        /* Subnormal halves are multiples of 2^-24; adding 0.5, whose last
         * place that is, rounds to them, ties to even. */
        float shifted = lmq_f32_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (lmq_f32_bits(shifted) - 0x3f000000));
    }
    uint32_t odd = magnitude >> 13 & 1;
    uint32_t rounded = magnitude - 0x38000000 + 0xfff + odd;
    return (uint16_t)(sign | rounded >> 13);
}

/* ---- Four bits ---- */

const float lmq_e2m1_values[16] = {
    0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/* ---- bfloat16 ---- */

float
lmq_bf16_to_f32(uint16_t half)
{
    return lmq_f32_of_bits((uint32_t)half << 16);
}

uint16_t
lmq_f32_to_bf16(float value)
{
    uint32_t bits = lmq_f32_bits(value);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- Either ---- */

float
lmq_dtype_round(enum lmq_dtype type, float value)
{
    assert(type == LMQ_DTYPE_F32 || type == LMQ_DTYPE_F16 ||
           type == LMQ_DTYPE_BF16);
    if (isnan(value) || type == LMQ_DTYPE_F32)
        return value;
    return type == LMQ_DTYPE_F16 ? lmq_f16_to_f32(lmq_f32_to_f16(value))
                                 : lmq_bf16_to_f32(lmq_f32_to_bf16(value));
}

/* ---- Converters: one per type, n elements ---- */

static double
load_f64(const unsigned char *p)
{
    uint64_t bits = lmq_load_u64le(p);
    double wide;

    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

#define CONVERTER(name, step, expression)                                     \
    static void name(const unsigned char *bytes, float *values, size_t n)     \
    {                                                                         \
        for (size_t i = 0; i < n; i++) {                                      \
            const unsigned char *p = bytes + (step) * i;                      \
            values[i] = (float)(expression);                                  \
        }                                                                     \
    }

CONVERTER(from_f32, 4, lmq_load_f32le(p))
CONVERTER(from_f16, 2, lmq_f16_to_f32(lmq_load_u16le(p)))
CONVERTER(from_bf16, 2, lmq_f32_of_bits((uint32_t)lmq_load_u16le(p) << 16))
CONVERTER(from_f64, 8, load_f64(p))
/* E5M2 is the upper byte of a half. */
CONVERTER(from_f8_e5m2, 1, lmq_f16_to_f32((uint16_t)(*p << 8)))
CONVERTER(from_i8, 1, (int8_t)*p)
CONVERTER(from_u8, 1, *p)
CONVERTER(from_i16, 2, (int16_t)lmq_load_u16le(p))
CONVERTER(from_u16, 2, lmq_load_u16le(p))
CONVERTER(from_i32, 4, lmq_load_i32le(p))
CONVERTER(from_u32, 4, lmq_load_u32le(p))
CONVERTER(from_i64, 8, (int64_t)lmq_load_u64le(p))
CONVERTER(from_u64, 8, lmq_load_u64le(p))

/* E4M3 has no infinity; its only NaN is all ones. */
static void
from_f8_e4m3(const unsigned char *bytes, float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = bytes[i] & 0x7fu;
        uint32_t bits =
            lmq_f32_bits(lmq_f32_of_bits(magnitude << 20) * 0x1p120f);
        bits = magnitude == 0x7f ? 0x7fc00000 : bits;
        values[i] = lmq_f32_of_bits(bits | (uint32_t)(bytes[i] & 0x80) << 24);
    }
}

/* E8M0 is nothing but an exponent; the lowest is subnormal here. */
static void
from_f8_e8m0(const unsigned char *bytes, float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = lmq_f32_of_bits(bytes[i] == 0      ? 0x00400000
                                    : bytes[i] == 0xff ? 0x7fc00000
                                                       : (uint32_t)bytes[i]
                                                             << 23);
}

/* ---- The table ---- */

static const struct {
    const char *name;
    size_t size;
    bool is_float;
    void (*to_f32)(const unsigned char *bytes, float *values, size_t n);
} types[LMQ_DTYPE_COUNT] = {
    [LMQ_DTYPE_F32] = {"f32", 4, true, from_f32},
    [LMQ_DTYPE_F16] = {"f16", 2, true, from_f16},
    [LMQ_DTYPE_BF16] = {"bf16", 2, true, from_bf16},
    [LMQ_DTYPE_F64] = {"f64", 8, true, from_f64},
    [LMQ_DTYPE_F8_E4M3] = {"f8_e4m3", 1, true, from_f8_e4m3},
    [LMQ_DTYPE_F8_E5M2] = {"f8_e5m2", 1, true, from_f8_e5m2},
    [LMQ_DTYPE_I8] = {"i8", 1, false, from_i8},
    [LMQ_DTYPE_U8] = {"u8", 1, false, from_u8},
    [LMQ_DTYPE_I16] = {"i16", 2, false, from_i16},
    [LMQ_DTYPE_U16] = {"u16", 2, false, from_u16},
    [LMQ_DTYPE_I32] = {"i32", 4, false, from_i32},
    [LMQ_DTYPE_U32] = {"u32", 4, false, from_u32},
    [LMQ_DTYPE_I64] = {"i64", 8, false, from_i64},
    [LMQ_DTYPE_U64] = {"u64", 8, false, from_u64},
    [LMQ_DTYPE_BOOL] = {"bool", 1, false, from_u8},
    [LMQ_DTYPE_F8_E8M0] = {"f8_e8m0", 1, true, from_f8_e8m0},
};

const char *
lmq_dtype_name(enum lmq_dtype type)
{
    assert(type < LMQ_DTYPE_COUNT);
    return types[type].name;
}

size_t
lmq_dtype_size(enum lmq_dtype type)
{
    assert(type < LMQ_DTYPE_COUNT);
    return types[type].size;
}

bool
lmq_dtype_is_float(enum lmq_dtype type)
{
    assert(type < LMQ_DTYPE_COUNT);
    return types[type].is_float;
}

void
lmq_dtype_to_f32(enum lmq_dtype type, const unsigned char *bytes,
                 float *values, size_t n)
{
    assert(type < LMQ_DTYPE_COUNT);
    types[type].to_f32(bytes, values, n);
}
