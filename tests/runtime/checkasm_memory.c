/*
 * checkasm_memory.c - random numbers of the nasty kind, in guarded arrays.
 */
#include "config.h"

#include "tests/runtime/checkasm_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"

/* ---- Random numbers ---- */

uint64_t checkasm_state;

uint32_t
random_u32(void)
{
    return (uint32_t)(lmq_random_next(&checkasm_state) >> 32);
}

size_t
random_below(size_t n)
{
    return random_u32() % n;
}

float
random_float(void)
{
    return (float)((int32_t)random_u32()) * 0x1p-31f;
}

float
pattern_float(enum pattern pattern, size_t i)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f};
    float x = random_float();

    switch (pattern) {
    case EXTREME:
        return x < 0 ? -32639.0f : 32639.0f;
    case LARGEST_SUMS:
        return -32639.0f;
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

struct buffer
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

struct buffer
buffer_floats(size_t n, enum pattern pattern)
{
    struct buffer b = buffer_new(n * sizeof(float));

    for (size_t i = 0; i < n; i++) {
        float x = pattern_float(pattern, i);
        memcpy(b.data + i * sizeof(x), &x, sizeof(x));
    }
    return b;
}

struct buffer
buffer_copy(const struct buffer *from)
{
    struct buffer b = buffer_new(from->n_bytes);

    memcpy(b.data, from->data, from->n_bytes);
    return b;
}

float *
floats(const struct buffer *b)
{
    return (float *)(void *)b->data;
}

void
buffer_free(struct buffer *b)
{
    munmap(b->map, b->map_bytes);
}

/* ---- Comparing ---- */

bool
same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

bool
same_floats(const float *a, const float *b, size_t n)
{
    if (memcmp(a, b, n * sizeof(*a)) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!same_float(a[i], b[i]))
            return false;
    return true;
}

bool
same_buffers(struct buffer *a, struct buffer *b, bool is_float)
{
    bool same = memcmp(a->data - 64, b->data - 64, 64) == 0;

    for (size_t i = 1; i <= 64; i++)
        same = same && a->data[-(ptrdiff_t)i] == 0xa5;
    same = same && (is_float ? same_floats(floats(a), floats(b),
                                           a->n_bytes / sizeof(float))
                             : memcmp(a->data, b->data, a->n_bytes) == 0);
    buffer_free(a);
    buffer_free(b);
    return same;
}
