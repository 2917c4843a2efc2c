/*
 * bytes.h - numbers in files are little-endian bytes at any address.
 */
#ifndef LMQ_BASE_BYTES_H
#define LMQ_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>

/* A float32 as it is stored. */
static inline uint32_t
lmq_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float
lmq_f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t
lmq_load_u16le(const unsigned char *p)
{
    return (uint16_t)(p[0] | (unsigned)p[1] << 8);
}

static inline uint32_t
lmq_load_u32le(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static inline uint64_t
lmq_load_u64le(const unsigned char *p)
{
    return (uint64_t)lmq_load_u32le(p) | (uint64_t)lmq_load_u32le(p + 4) << 32;
}

static inline int32_t
lmq_load_i32le(const unsigned char *p)
{
    return (int32_t)lmq_load_u32le(p);
}

static inline float
lmq_load_f32le(const unsigned char *p)
{
    return lmq_f32_of_bits(lmq_load_u32le(p));
}

static inline void
lmq_store_u16le(unsigned char *p, uint16_t value)
{
    p[0] = (unsigned char)value;
    p[1] = (unsigned char)(value >> 8);
}

static inline void
lmq_store_u32le(unsigned char *p, uint32_t value)
{
    p[0] = (unsigned char)value;
    p[1] = (unsigned char)(value >> 8);
    p[2] = (unsigned char)(value >> 16);
    p[3] = (unsigned char)(value >> 24);
}

static inline void
lmq_store_u64le(unsigned char *p, uint64_t value)
{
    lmq_store_u32le(p, (uint32_t)value);
    lmq_store_u32le(p + 4, (uint32_t)(value >> 32));
}

static inline void
lmq_store_f32le(unsigned char *p, float value)
{
    lmq_store_u32le(p, lmq_f32_bits(value));
}

static inline double
lmq_load_f64le(const unsigned char *p)
{
    uint64_t bits = lmq_load_u64le(p);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline void
lmq_store_f64le(unsigned char *p, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    lmq_store_u64le(p, bits);
}

#endif
