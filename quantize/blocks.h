/*
 * blocks.h - the block types of GGUF: groups of small integers with scales.
 *
 * Each type is a row of one table; a block is decoded to floats in the order
 * and the arithmetic (float32) that its makers use.
 */
#ifndef LMQ_QUANTIZE_BLOCKS_H
#define LMQ_QUANTIZE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct lmq_block_type {
    const char *name;  /* "q4_k", as reports call it */
    uint32_t number;   /* GGUF's */
    uint32_t n;        /* elements of a block */
    uint32_t size;     /* its bytes */
    void (*decode)(const unsigned char *blocks, size_t n_blocks, float *out);
    /* The same numbers as n integers and one float16 for each block; NULL
     * where a block is more than that. */
    void (*split)(const unsigned char *blocks, size_t n_blocks, int8_t *q,
                  unsigned char *scales);
};

/* NULL for a number that is no block type, or one that is not read. */
const struct lmq_block_type *lmq_block_type(uint32_t number);

#endif
