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

#define LMQ_BLOCK_MAX 256 /* elements of a block at most */

struct lmq_block_type {
    const char *name;  /* "q4_k", as reports call it */
    uint32_t number;   /* GGUF's */
    uint32_t n;        /* elements of a block */
    uint32_t size;     /* its bytes */
    void (*decode)(const unsigned char *blocks, size_t n_blocks, float *out);
    /* Where `decode` is NULL: the n integers of one block, all of which are
     * multiplied by the float16 at scale_at. */
    void (*integers)(const unsigned char *block, int8_t *q);
    uint32_t scale_at;
    unsigned bits; /* of a container's integers that hold them (group.h) */
};

/* NULL for a number that is no block type, or one that is not read. */
const struct lmq_block_type *lmq_block_type(uint32_t number);

void lmq_blocks_decode(const struct lmq_block_type *type,
                       const unsigned char *blocks, size_t n_blocks,
                       float *out);

/* The same numbers as n integers and one float16 for each block, of a type
 * that has `integers`, as a container of its bits has them: of 8 bits a scale
 * below zero gives its sign to the integers, unless one of them is -128. */
void lmq_blocks_split(const struct lmq_block_type *type,
                      const unsigned char *blocks, size_t n_blocks, int8_t *q,
                      unsigned char *scales);

#endif
