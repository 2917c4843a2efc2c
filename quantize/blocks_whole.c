/*
 * blocks_whole.c - blocks of GGUF with one scale for all of their elements.
 *
 * Most are integers times that scale, and are given as these integers; two
 * have a minimum too.
 */
#include "config.h"

#include <string.h>

#include "quantize/blocks_kinds.h"

#define SMALL LMQ_SMALL_BLOCK

/* ---- Four, five and eight bits ---- */

void
lmq_integers_q4_0(const unsigned char *block, int8_t *q)
{
    for (unsigned i = 0; i < SMALL / 2; i++) {
        q[i] = (int8_t)((block[2 + i] & 15) - 8);
        q[i + SMALL / 2] = (int8_t)((block[2 + i] >> 4) - 8);
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

/* The fifth bits of 32 elements stand together in a little-endian word. */
static void
take_five_bits(const unsigned char *fifth, const unsigned char *nibbles,
               int *q)
{
    take_nibbles(nibbles, SMALL / 2, q);
    for (unsigned i = 0; i < SMALL; i++)
        q[i] |= (fifth[i / 8] >> i % 8 & 1) << 4;
}

void
lmq_integers_q5_0(const unsigned char *block, int8_t *q)
{
    int wide[SMALL] = {0};

    take_five_bits(block + 2, block + 6, wide);
    for (unsigned i = 0; i < SMALL; i++)
        q[i] = (int8_t)(wide[i] - 16);
}

void
lmq_decode_q5_1(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 24, out += SMALL) {
        int q[SMALL] = {0};
        take_five_bits(block + 4, block + 8, q);
        scale(q, SMALL, 0, load_half(block), -load_half(block + 2), out);
    }
}

void
lmq_integers_q8_0(const unsigned char *block, int8_t *q)
{
    memcpy(q, block + 2, SMALL);
}

/* ---- One bit, two bits, and three values ---- */

/* A bit says which sign. */
void
lmq_integers_q1_0(const unsigned char *block, int8_t *q)
{
    for (unsigned i = 0; i < 128; i++)
        q[i] = (int8_t)(2 * (block[2 + i / 8] >> i % 8 & 1) - 1);
}

void
lmq_integers_q2_0(const unsigned char *block, int8_t *q)
{
    for (unsigned i = 0; i < 64; i++)
        q[i] = (int8_t)((block[2 + i / 4] >> i % 4 * 2 & 3) - 1);
}

/*
 * n_digits numbers of three values stand in each byte. A byte is their
 * fraction of 256 in base three: three times it carries the first digit over,
 * and leaves the fraction of the others. The first digits of all bytes come
 * first.
 */
static int8_t *
take_ternary(const unsigned char *bytes, unsigned n, unsigned n_digits,
             int8_t *q)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned fraction = bytes[i];
        for (unsigned digit = 0; digit < n_digits; digit++) {
            q[digit * n + i] = (int8_t)((int)(3 * fraction >> 8) - 1);
            fraction = 3 * fraction & 0xff;
        }
    }
    return q + (size_t)n * n_digits;
}

void
lmq_integers_tq1_0(const unsigned char *block, int8_t *q)
{
    q = take_ternary(block, 32, 5, q);
    q = take_ternary(block + 32, 16, 5, q);
    take_ternary(block + 48, 4, 4, q);
}

/* Like this they could also be 2, which no quantizer writes. */
void
lmq_integers_tq2_0(const unsigned char *block, int8_t *q)
{
    for (unsigned i = 0; i < LMQ_SUPER_BLOCK; i++) {
        unsigned half = i / 128, shift = i % 128 / 32 * 2;
        q[i] = (int8_t)((block[32 * half + i % 32] >> shift & 3) - 1);
    }
}
