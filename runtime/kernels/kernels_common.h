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

/* n things in as few parts as have at most so many, and all about as many: the
 * size of a part. */
LMQ_INLINE size_t
lmq_even_part(size_t n, size_t most)
{
    const size_t n_parts = (n + most - 1) / most;

    return n == 0 ? 0 : (n + n_parts - 1) / n_parts;
}

/* ---- Asking for what comes next ---- */

#define LMQ_LINE ((size_t)64)

/* Rows, or parts of them, that are wanted soon; p is NULL if nothing is. */
struct lmq_wanted {
    const unsigned char *p;
    size_t n_rows, stride;
    size_t n_lines;  /* of a row */
    size_t n_askers; /* who share in asking for them */
};

/* A share of them: lines that are neighbours, as they come fastest. */
struct lmq_asking {
    size_t at;       /* from p on */
    size_t n;        /* lines that are left */
    size_t of_row;   /* of these, before the next row */
    size_t together; /* each time */
};

/* Asker `number` will ask so many times. */
LMQ_INLINE struct lmq_asking
lmq_asking_of(const struct lmq_wanted *wanted, size_t number, size_t n_times)
{
    const size_t n = wanted->n_rows * wanted->n_lines;
    const size_t from = n * number / wanted->n_askers;
    const size_t to = n * (number + 1) / wanted->n_askers;
    const size_t line = from % wanted->n_lines;

    return (struct lmq_asking){
        .at = from / wanted->n_lines * wanted->stride + line * LMQ_LINE,
        .n = to - from,
        .of_row = wanted->n_lines - line,
        .together = (to - from + n_times - 1) / n_times,
    };
}

LMQ_INLINE void
lmq_ask(const struct lmq_wanted *wanted, struct lmq_asking *asking)
{
    for (size_t i = 0; i < asking->together && asking->n > 0; i++) {
        lmq_prefetch_second(wanted->p, asking->at);
        asking->at += LMQ_LINE;
        asking->n--;
        if (--asking->of_row == 0) {
            asking->at += wanted->stride - wanted->n_lines * LMQ_LINE;
            asking->of_row = wanted->n_lines;
        }
    }
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
