/*
 * size.h - arithmetic on sizes that come from files.
 *
 * Every product and sum of numbers that somebody else wrote goes through
 * these; they return false instead of wrapping.
 */
#ifndef LMQ_BASE_SIZE_H
#define LMQ_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool
lmq_u64_mul(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline bool
lmq_u64_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool
lmq_size_mul(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline bool
lmq_size_add(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* The next multiple of `unit`, a power of two. */
static inline bool
lmq_u64_align(uint64_t value, uint64_t unit, uint64_t *aligned)
{
    if (!lmq_u64_add(value, unit - 1, aligned))
        return false;
    *aligned &= ~(unit - 1);
    return true;
}

/* Ceiling of a / b; b > 0. */
static inline uint64_t
lmq_u64_ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t
lmq_u64_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t
lmq_u64_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline size_t
lmq_size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t
lmq_size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
