/*
 * mem.h - memory for numbers.
 */
#ifndef LMQ_BASE_MEM_H
#define LMQ_BASE_MEM_H

#include <stddef.h>

/* What the widest vector load wants, and a cache line. */
#define LMQ_MEM_ALIGN 64

/* count * size bytes, zeroed, aligned to LMQ_MEM_ALIGN; NULL if there is no
 * memory or the product wraps. Released with lmq_mem_free(). */
void *lmq_mem_aligned(size_t count, size_t size);
void lmq_mem_free(void *memory);

/* Asks for large pages for a block that will be read as a whole, which is
 * faster then (doc/performance.md), and returns it. */
void *lmq_mem_large_pages(void *memory, size_t n_bytes);

/* Grows *array (of `size`-byte elements, *capacity of them) so that `needed`
 * fit; doubles, so that appending is cheap. Returns 0, or -1 without memory
 * and with *array unchanged. */
int lmq_mem_grow(void *array, size_t *capacity, size_t needed, size_t size);

/* Room for n elements in an empty array of that kind, if it is known how many
 * there will be: large ones in large pages, for a page that is touched first
 * costs more than what is written there. */
int lmq_mem_reserve(void *array, size_t *capacity, size_t n, size_t size);

/* A copy of n bytes with a 0 behind them. */
char *lmq_mem_text(const void *bytes, size_t n);

/* Bytes that this process may have: those of the machine, or fewer where its
 * control groups or its own limit of addresses leave it less. */
double lmq_mem_limit(void);

/* Bytes that the machine has free, but no more than that limit. */
double lmq_mem_available(void);

#endif
