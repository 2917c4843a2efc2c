/*
 * mem.c - aligned blocks and growing arrays.
 */
#include "config.h"

#include "base/mem.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/machine/cgroup.h"
#include "base/size.h"

/* From here on the kernel gives pages that are zero, and only when they are
 * touched: a cache for a long context costs nothing until it is filled. */
#define LARGE ((size_t)1 << 20)

/* Where a block begins is told before what is aligned in it. Small ones end
 * where the numbers end, so that a checker of memory sees what goes beyond. */
static char *
make_block(size_t n_bytes, size_t *offset)
{
    void *block;

    *offset = LMQ_MEM_ALIGN;
    if (n_bytes < LARGE) {
        if (posix_memalign(&block, LMQ_MEM_ALIGN, n_bytes) != 0)
            return NULL;
        return memset(block, 0, n_bytes);
    }
    block = calloc(1, n_bytes + LMQ_MEM_ALIGN);
    if (block != NULL)
        *offset += (LMQ_MEM_ALIGN - (uintptr_t)block % LMQ_MEM_ALIGN) %
                   LMQ_MEM_ALIGN;
    return block;
}

void *
lmq_mem_aligned(size_t count, size_t size)
{
    size_t n_bytes, offset;

    if (!lmq_size_mul(count, size, &n_bytes) ||
        n_bytes > SIZE_MAX - 2 * LMQ_MEM_ALIGN)
        return NULL;
    char *block = make_block(n_bytes + LMQ_MEM_ALIGN, &offset);
    if (block == NULL)
        return NULL;
    memcpy(block + offset - sizeof(block), &block, sizeof(block));
    return block + offset;
}

void
lmq_mem_free(void *memory)
{
    void *block = NULL;

    if (memory != NULL)
        memcpy(&block, (char *)memory - sizeof(block), sizeof(block));
    free(block);
}

void *
lmq_mem_large_pages(void *memory, size_t n_bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)memory + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)memory + n_bytes) / page * page;

    if (memory != NULL && n_bytes >= LARGE)
        madvise((void *)from, end - from, MADV_HUGEPAGE);
#else
    (void)n_bytes;
#endif
    return memory;
}

int
lmq_mem_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
    void *old, *grown;
    size_t n = *capacity < 8 ? 8 : *capacity;
    size_t n_bytes;

    if (needed <= *capacity)
        return 0;
    while (n < needed)
        if (!lmq_size_mul(n, 2, &n))
            return -1;
    if (!lmq_size_mul(n, size, &n_bytes))
        return -1;
    memcpy(&old, array, sizeof(old));
    grown = realloc(old, n_bytes);
    if (grown == NULL)
        return -1;
    memcpy(array, &grown, sizeof(grown));
    *capacity = n;
    return 0;
}

#define LARGE_PAGE ((size_t)2 << 20)

int
lmq_mem_reserve(void *array, size_t *capacity, size_t n, size_t size)
{
    void *block = NULL;
    size_t n_bytes;

    if (!lmq_size_mul(n, size, &n_bytes))
        return -1;
    if (n_bytes < LARGE_PAGE)
        return lmq_mem_grow(array, capacity, n, size);
    if (posix_memalign(&block, LARGE_PAGE, n_bytes) != 0)
        return -1;
    lmq_mem_large_pages(block, n_bytes);
    memcpy(array, &block, sizeof(block));
    *capacity = n;
    return 0;
}

char *
lmq_mem_text(const void *bytes, size_t n)
{
    char *text = n == SIZE_MAX ? NULL : malloc(n + 1);

    if (text != NULL) {
        if (n > 0)
            memcpy(text, bytes, n);
        text[n] = '\0';
    }
    return text;
}

double
lmq_mem_limit(void)
{
    struct rlimit addresses;
    double limit =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    if (getrlimit(RLIMIT_AS, &addresses) == 0 &&
        addresses.rlim_cur != RLIM_INFINITY)
        limit = fmin(limit, (double)addresses.rlim_cur);
    return fmin(limit, lmq_cgroup_memory(LMQ_CGROUP_LIST, LMQ_CGROUP_ROOT));
}

double
lmq_mem_available(void)
{
    double available =
        (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    unsigned long long kilobytes;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
            available = 1024 * (double)kilobytes;
            break;
        }
    if (file != NULL)
        fclose(file);
    return fmax(0, fmin(available, lmq_mem_limit()));
}
