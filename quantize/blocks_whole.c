/*
 * blocks_whole.c - blocks of GGUF with one scale for all of their elements.
 */
#include "config.h"

#include <string.h>

#include "quantize/blocks_kinds.h"

#define SMALL LMQ_SMALL_BLOCK

/* The fifth bits of 32 elements stand together in a little-endian word. */
static void
take_fifth_bits(const unsigned char *bytes, int *q)
{
    for (unsigned i = 0; i < SMALL; i++)
        q[i] |= (bytes[i / 8] >> i % 8 & 1) << 4;
}

void
lmq_decode_q4_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 18, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 2, 16, q);
        scale(q, SMALL, -8, load_half(block), 0, out);
    }
}

void
lmq_decode_q4_1(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 20, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 4, 16, q);
        scale(q, SMALL, 0, load_half(block), -load_half(block + 2), out);
    }
}

void
lmq_decode_q5_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 22, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 6, 16, q);
        take_fifth_bits(block + 2, q);
        scale(q, SMALL, -16, load_half(block), 0, out);
    }
}

void
lmq_decode_q5_1(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 24, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 8, 16, q);
        take_fifth_bits(block + 4, q);
        scale(q, SMALL, 0, load_half(block), -load_half(block + 2), out);
    }
}

void
lmq_decode_q8_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 34, out += SMALL) {
        float factor = load_half(block);
        for (unsigned i = 0; i < SMALL; i++)
            out[i] = (float)(int8_t)block[2 + i] * factor;
    }
}

/* ---- As integers ---- */

void
lmq_split_q8_0(const unsigned char *block, size_t n_blocks, int8_t *q,
               unsigned char *scales)
{
    for (; n_blocks > 0; n_blocks--, block += 34, q += SMALL, scales += 2) {
        memcpy(scales, block, 2);
        memcpy(q, block + 2, SMALL);
    }
}
