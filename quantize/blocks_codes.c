/*
 * blocks_codes.c - blocks of GGUF whose nibbles are numbers of a table.
 */
#include "config.h"

#include <math.h>

#include "quantize/blocks_kinds.h"

#define SMALL LMQ_SMALL_BLOCK

/* n elements: low nibbles are the first half, high ones the second. */
static void
decode_codes(const int8_t *values, const unsigned char *bytes, unsigned n,
             float factor, float *out)
{
    int q[SMALL] = {0};

    take_nibbles(bytes, n / 2, q);
    for (unsigned i = 0; i < n; i++)
        out[i] = factor * (float)values[q[i]];
}

/* ---- Uneven steps ---- */

static const int8_t steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

void
lmq_decode_iq4_nl(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 18, out += SMALL)
        decode_codes(steps, block + 2, SMALL, load_half(block), out);
}

/* Eight parts with scales of six bits: two upper ones each in a word, then
 * the lower nibbles. */
void
lmq_decode_iq4_xs(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 136) {
        float factor = load_half(block);
        unsigned upper = lmq_load_u16le(block + 2);
        for (unsigned part = 0; part < 8; part++, out += SMALL) {
            int six = (block[4 + part / 2] >> part % 2 * 4 & 15) |
                      (int)(upper >> 2 * part & 3) << 4;
            decode_codes(steps, block + 8 + 16 * part, SMALL,
                         factor * (float)(six - 32), out);
        }
    }
}

/* ---- Floats of four bits ---- */

/* Twice the numbers of E2M1, whose scales are halved for it. */
static const int8_t doubled_e2m1[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                        0, -1, -2, -3, -4, -6, -8, -12};

/* The scale is a power of two. ggml takes all 256 of them for numbers, also
 * the one that the Microscaling formats call NaN. */
void
lmq_decode_mxfp4(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 17, out += SMALL)
        decode_codes(doubled_e2m1, block + 1, SMALL,
                     ldexpf(1, block[0] - 128), out);
}

/* Half of an E4M3 without sign. Its NaN means zero to ggml, which looks at the
 * sign only there: with one it is 480. */
static float
half_e4m3(unsigned char byte)
{
    int exponent = byte >> 3 & 15, mantissa = byte & 7;

    if (byte == 0x7f)
        return 0;
    return exponent == 0 ? ldexpf((float)mantissa, -10)
                         : ldexpf((float)(8 + mantissa), exponent - 11);
}

/* Four scales, for 16 elements each. */
void
lmq_decode_nvfp4(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 36)
        for (unsigned part = 0; part < 4; part++, out += 16)
            decode_codes(doubled_e2m1, block + 4 + 8 * part, 16,
                         half_e4m3(block[part]), out);
}
