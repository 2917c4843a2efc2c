/*
 * dtype.h - the types in which checkpoints store numbers, and how each becomes
 * float32.
 */
#ifndef LMQ_QUANTIZE_DTYPE_H
#define LMQ_QUANTIZE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values stand in .lmq files (lmq(5), "Element types"): append only. */
enum lmq_dtype {
    LMQ_DTYPE_F32 = 0,
    LMQ_DTYPE_F16 = 1,
    LMQ_DTYPE_BF16 = 2,
    LMQ_DTYPE_F64 = 3,
    LMQ_DTYPE_F8_E4M3 = 4,
    LMQ_DTYPE_F8_E5M2 = 5,
    LMQ_DTYPE_I8 = 6,
    LMQ_DTYPE_U8 = 7,
    LMQ_DTYPE_I16 = 8,
    LMQ_DTYPE_U16 = 9,
    LMQ_DTYPE_I32 = 10,
    LMQ_DTYPE_U32 = 11,
    LMQ_DTYPE_I64 = 12,
    LMQ_DTYPE_U64 = 13,
    LMQ_DTYPE_BOOL = 14,
    LMQ_DTYPE_F8_E8M0 = 15, /* there only as what something was made of */
    LMQ_DTYPE_COUNT
};

/* "f32", "bf16", "f8_e4m3", ... */
const char *lmq_dtype_name(enum lmq_dtype type);

/* Bytes of one element: 1, 2, 4 or 8. */
size_t lmq_dtype_size(enum lmq_dtype type);

/* Whether it is a floating-point type: only those are quantized. */
bool lmq_dtype_is_float(enum lmq_dtype type);

/* n little-endian elements to float32. Exact for every type up to 16 bits and
 * float32; float64 and wide integers are rounded to nearest. */
void lmq_dtype_to_f32(enum lmq_dtype type, const unsigned char *bytes,
                      float *values, size_t n);

/* The numbers of E2M1, four bits. */
extern const float lmq_e2m1_values[16];

/* IEEE half precision; to half rounds to nearest, ties to even, and
 * overflows to infinity. */
float lmq_f16_to_f32(uint16_t half);
uint16_t lmq_f32_to_f16(float value);

/* bfloat16, rounded in the same way; but a NaN may become a number. */
float lmq_bf16_to_f32(uint16_t half);
uint16_t lmq_f32_to_bf16(float value);

/* Rounded to a type (F32, F16 or BF16) and back; a NaN stays one. */
float lmq_dtype_round(enum lmq_dtype type, float value);

#endif
