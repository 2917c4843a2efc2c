/*
 * kernels_common.h - what the bodies of the kernels share.
 */
#ifndef LMQ_RUNTIME_KERNELS_KERNELS_COMMON_H
#define LMQ_RUNTIME_KERNELS_KERNELS_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#if defined(__has_feature)
#define LMQ_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define LMQ_HAS_ASAN 1
#else
#define LMQ_HAS_ASAN 0
#endif

/* The inner functions take their tile sizes as constant arguments, and are
 * only fast if they are inlined and unrolled with them: also at -O2. Under a
 * sanitizer that makes so much code that compiling it takes minutes. */
#if LMQ_HAS_ASAN
#define LMQ_INLINE static inline
#define LMQ_UNROLL
#elif defined(__clang__)
#define LMQ_INLINE static inline __attribute__((always_inline))
#define LMQ_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LMQ_INLINE static inline __attribute__((always_inline))
#define LMQ_UNROLL _Pragma("GCC unroll 32")
#endif

/* How far ahead of its use memory is asked for: half a page, as far as it pays
 * before the hardware's own prefetchers have seen where a stream goes. */
#define LMQ_AHEAD_BYTES 2048

/* Any address will do: where no memory is, nothing happens. */
LMQ_INLINE void
lmq_prefetch(const void *p, size_t ahead)
{
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch((const void *)((uintptr_t)p + ahead));
#else
    (void)p;
    (void)ahead;
#endif
}

/* The same, but only as near as the second level cache: for what is wanted
 * later, and should not drive out what is wanted now. */
LMQ_INLINE void
lmq_prefetch_second(const void *p, size_t ahead)
{
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch((const void *)((uintptr_t)p + ahead), 0, 2);
#else
    (void)p;
    (void)ahead;
#endif
}

/* What is in an array stays there, where compilers would have it in registers
 * that others need more. */
LMQ_INLINE void
lmq_keep_in_memory(const void *p)
{
#if defined(__GNUC__) || defined(__clang__)
    __asm__ volatile("" : : "r"(p) : "memory");
#else
    (void)p;
#endif
}

/* 4 bytes at any address. */
LMQ_INLINE int32_t
load_i32(const void *p)
{
    int32_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

LMQ_INLINE float
load_f32(const void *p)
{
    float x;

    memcpy(&x, p, sizeof(x));
    return x;
}

#endif
