/*
 * mem.c - aligned blocks and growing arrays.
 */
#include "config.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

void *
lmq_mem_aligned(size_t count, size_t size)
{
    size_t n_bytes;
    void *memory;

    if (!lmq_size_mul(count, size, &n_bytes))
        return NULL;
    if (n_bytes == 0)
        n_bytes = 1;
    if (posix_memalign(&memory, LMQ_MEM_ALIGN, n_bytes) != 0)
        return NULL;
    return memset(memory, 0, n_bytes);
}

void
lmq_mem_free(void *memory)
{
    free(memory);
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
lmq_mem_physical(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}
