/*
 * checkasm_memory.h - random numbers of the nasty kind, in guarded arrays.
 *
 * A part of checkasm.c, which includes it once.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_MEMORY_H
#define LMQ_TESTS_RUNTIME_CHECKASM_MEMORY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"

/* ---- Random numbers ---- */

static uint64_t state;

static uint32_t
random_u32(void)
{
    return (uint32_t)(lmq_random_next(&state) >> 32);
}

static size_t
random_below(size_t n)
{
    return random_u32() % n;
}

static float
random_float(void)
{
    return (float)((int32_t)random_u32()) * 0x1p-31f;
}

/* What the kernels meet, and what they should never meet. */
enum pattern {
    PLAIN,
    EXTREME, /* +-32639 and nothing else */
    LOW_128, /* integers whose low half is -128 */
    ZERO_GROUPS,
    DENORMAL,
    HUGE_NUMBERS,
    NONFINITE,
    PATTERN_COUNT
};

static float
pattern_float(enum pattern pattern, size_t i)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f};
    float x = random_float();

    switch (pattern) {
    case EXTREME:
        return x < 0 ? -32639.0f : 32639.0f;
    case LOW_128:
        if (i % 32 == 0)
            return 32639.0f;
        return (float)((int)random_below(255) - 127) * 256.0f - 128.0f;
    case ZERO_GROUPS:
        return i / 64 % 2 ? x : (x < 0 ? -0.0f : 0.0f);
    case DENORMAL:
        return x * (i / 64 % 2 ? 1e-36f : 1e-42f);
    case HUGE_NUMBERS:
        return x * 3.4e38f;
    case NONFINITE:
        return random_below(40) ? x : odd[random_below(4)];
    default:
        return x;
    }
}

/* ---- Guarded memory ---- */

struct buffer {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *data; /* n_bytes, then an unreadable page */
    size_t n_bytes;
};

static struct buffer
buffer_new(size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct buffer b = {0};

    b.n_bytes = n_bytes;
    b.map_bytes = ((n_bytes + 64 + page - 1) / page + 1) * page;
    b.map = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED ||
        mprotect(b.map + b.map_bytes - page, page, PROT_NONE) != 0) {
        perror("checkasm: mmap");
        exit(1);
    }
    b.data = b.map + b.map_bytes - page - n_bytes;
    memset(b.map, 0xa5, b.map_bytes - page);
    return b;
}

static struct buffer
buffer_floats(size_t n, enum pattern pattern)
{
    struct buffer b = buffer_new(n * sizeof(float));

    for (size_t i = 0; i < n; i++) {
        float x = pattern_float(pattern, i);
        memcpy(b.data + i * sizeof(x), &x, sizeof(x));
    }
    return b;
}

static struct buffer
buffer_copy(const struct buffer *from)
{
    struct buffer b = buffer_new(from->n_bytes);

    memcpy(b.data, from->data, from->n_bytes);
    return b;
}

static float *
floats(const struct buffer *b)
{
    return (float *)(void *)b->data;
}

static void
buffer_free(struct buffer *b)
{
    munmap(b->map, b->map_bytes);
}

#endif
