/*
 * blocks.c - the block types of GGUF, decoded to floats.
 *
 * Every type is integers of few bits and scales: the bits are spread into
 * small integers, which are multiplied by a scale and lowered by a minimum, in
 * float32 and in this order, so that the results are ggml's to the last bit.
 */
#include "config.h"

#include "quantize/blocks.h"

#include <string.h>

#include "base/bytes.h"
#include "quantize/dtype.h"

#define SMALL 32  /* elements of a block with one scale */
#define SUPER 256 /* elements of a block with scales of parts */

static float
load_half(const unsigned char *p)
{
    return lmq_f16_to_f32(lmq_load_u16le(p));
}

/* ---- The steps ---- */

/* q[i] gets `mask` bits of byte i, moved up by `up`. */
static void
take_bits(const unsigned char *bytes, unsigned n, unsigned shift,
          unsigned mask, unsigned up, int *q)
{
    for (unsigned i = 0; i < n; i++)
        q[i] |= (int)((bytes[i] >> shift & mask) << up);
}

/* Low nibbles are the first half, high ones the second. */
static void
take_nibbles(const unsigned char *bytes, unsigned n_bytes, int *q)
{
    take_bits(bytes, n_bytes, 0, 15, 0, q);
    take_bits(bytes, n_bytes, 4, 15, 0, q + n_bytes);
}

static void
scale(const int *q, unsigned n, int offset, float factor, float minimum,
      float *out)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = factor * (float)(q[i] + offset) - minimum;
}

/* ---- One scale for 32 elements ---- */

/* The fifth bits of 32 elements stand together in a little-endian word. */
static void
take_fifth_bits(const unsigned char *bytes, int *q)
{
    for (unsigned i = 0; i < SMALL; i++)
        q[i] |= (bytes[i / 8] >> i % 8 & 1) << 4;
}

static void
decode_q4_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 18, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 2, 16, q);
        scale(q, SMALL, -8, load_half(block), 0, out);
    }
}

static void
decode_q4_1(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 20, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 4, 16, q);
        scale(q, SMALL, 0, load_half(block), -load_half(block + 2), out);
    }
}

static void
decode_q5_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 22, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 6, 16, q);
        take_fifth_bits(block + 2, q);
        scale(q, SMALL, -16, load_half(block), 0, out);
    }
}

static void
decode_q5_1(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 24, out += SMALL) {
        int q[SMALL] = {0};
        take_nibbles(block + 8, 16, q);
        take_fifth_bits(block + 4, q);
        scale(q, SMALL, 0, load_half(block), -load_half(block + 2), out);
    }
}

static void
decode_q8_0(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 34, out += SMALL) {
        float factor = load_half(block);
        for (unsigned i = 0; i < SMALL; i++)
            out[i] = (float)(int8_t)block[2 + i] * factor;
    }
}

/* ---- Parts with scales of their own in 256 elements ---- */

/* Twelve bytes hold eight pairs of six bits: scale and minimum. Those of the
 * first four pairs stand in the low bits of bytes 0-3 and 4-7; bytes 8-11 hold
 * the low halves of the others, whose upper two bits are the upper bits of
 * the first eight bytes. */
static void
load_six_bits(const unsigned char *bytes, unsigned index, float *factor,
              float *minimum)
{
    unsigned f, m;

    if (index < 4) {
        f = bytes[index] & 63u;
        m = bytes[index + 4] & 63u;
    } else {
        f = (bytes[index + 4] & 15u) | (unsigned)bytes[index - 4] >> 6 << 4;
        m = (unsigned)bytes[index + 4] >> 4 | (unsigned)bytes[index] >> 6 << 4;
    }
    *factor = (float)f;
    *minimum = (float)m;
}

/* Sixteen parts: nibbles with scale (low) and minimum (high), the elements of
 * two bits, the scale of the scales, that of the minima. */
static void
decode_q2_k(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 84) {
        float factor = load_half(block + 80), lowest = load_half(block + 82);
        for (unsigned part = 0; part < 16; part++, out += 16) {
            int q[16] = {0};
            unsigned half = part / 8, shift = part % 8 / 2 * 2;
            take_bits(block + 16 + 32 * half + 16 * (part % 2), 16, shift, 3,
                      0, q);
            scale(q, 16, 0, factor * (float)(block[part] & 15),
                  lowest * (float)(block[part] >> 4), out);
        }
    }
}

/* Sixteen parts: the third bits of all elements, their lower two bits, scales
 * of six bits (the low nibbles in eight bytes, the upper bits in four). */
static void
decode_q3_k(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 110) {
        const unsigned char *low = block + 96, *high = block + 104;
        float factor = load_half(block + 108);
        for (unsigned part = 0; part < 16; part++, out += 16) {
            int q[16] = {0};
            unsigned half = part / 8, step = part % 8 / 2;
            unsigned column = 16 * (part % 2);
            int six = (low[part % 8] >> part / 8 * 4 & 15) |
                      (high[part % 4] >> part / 4 * 2 & 3) << 4;
            take_bits(block + 32 + 32 * half + column, 16, 2 * step, 3, 0, q);
            take_bits(block + column, 16, 4 * half + step, 1, 2, q);
            scale(q, 16, -4, factor * (float)(six - 32), 0, out);
        }
    }
}

static void
decode_q4_k(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 144) {
        float factor = load_half(block), lowest = load_half(block + 2);
        for (unsigned part = 0; part < 8; part++, out += 32) {
            int q[32] = {0};
            float f, m;
            load_six_bits(block + 4, part, &f, &m);
            take_bits(block + 16 + part / 2 * 32, 32, part % 2 * 4, 15, 0, q);
            scale(q, 32, 0, factor * f, lowest * m, out);
        }
    }
}

static void
decode_q5_k(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 176) {
        float factor = load_half(block), lowest = load_half(block + 2);
        for (unsigned part = 0; part < 8; part++, out += 32) {
            int q[32] = {0};
            float f, m;
            load_six_bits(block + 4, part, &f, &m);
            take_bits(block + 48 + part / 2 * 32, 32, part % 2 * 4, 15, 0, q);
            take_bits(block + 16, 32, part, 1, 4, q);
            scale(q, 32, 0, factor * f, lowest * m, out);
        }
    }
}

/* Sixteen parts: the lower nibbles of the elements, their upper two bits,
 * signed scales. */
static void
decode_q6_k(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 210) {
        float factor = load_half(block + 208);
        for (unsigned part = 0; part < 16; part++, out += 16) {
            int q[16] = {0};
            unsigned half = part / 8, step = part % 8 / 2;
            unsigned column = 16 * (part % 2);
            take_bits(block + 64 * half + step % 2 * 32 + column, 16,
                      step / 2 * 4, 15, 0, q);
            take_bits(block + 128 + 32 * half + column, 16, 2 * step, 3, 4,
                      q);
            scale(q, 16, -32,
                  factor * (float)(int8_t)block[192 + part], 0, out);
        }
    }
}

/* ---- Nibbles that stand for uneven steps ---- */

static const int8_t steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

static void
decode_steps(const unsigned char *bytes, float factor, float *out)
{
    int q[SMALL] = {0};

    take_nibbles(bytes, 16, q);
    for (unsigned i = 0; i < SMALL; i++)
        out[i] = factor * (float)steps[q[i]];
}

static void
decode_iq4_nl(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 18, out += SMALL)
        decode_steps(block + 2, load_half(block), out);
}

/* Eight parts with scales of six bits: two upper ones each in a word, then
 * the lower nibbles. */
static void
decode_iq4_xs(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 136) {
        float factor = load_half(block);
        unsigned upper = lmq_load_u16le(block + 2);
        for (unsigned part = 0; part < 8; part++, out += SMALL) {
            int six = (block[4 + part / 2] >> part % 2 * 4 & 15) |
                      (int)(upper >> 2 * part & 3) << 4;
            decode_steps(block + 8 + 16 * part, factor * (float)(six - 32),
                         out);
        }
    }
}

/* ---- As integers ---- */

static void
split_q8_0(const unsigned char *block, size_t n_blocks, int8_t *q,
           unsigned char *scales)
{
    for (; n_blocks > 0; n_blocks--, block += 34, q += SMALL, scales += 2) {
        memcpy(scales, block, 2);
        memcpy(q, block + 2, SMALL);
    }
}

/* ---- The table ---- */

static const struct lmq_block_type types[] = {
    {"q4_0", 2, SMALL, 18, decode_q4_0, NULL},
    {"q4_1", 3, SMALL, 20, decode_q4_1, NULL},
    {"q5_0", 6, SMALL, 22, decode_q5_0, NULL},
    {"q5_1", 7, SMALL, 24, decode_q5_1, NULL},
    {"q8_0", 8, SMALL, 34, decode_q8_0, split_q8_0},
    {"q2_k", 10, SUPER, 84, decode_q2_k, NULL},
    {"q3_k", 11, SUPER, 110, decode_q3_k, NULL},
    {"q4_k", 12, SUPER, 144, decode_q4_k, NULL},
    {"q5_k", 13, SUPER, 176, decode_q5_k, NULL},
    {"q6_k", 14, SUPER, 210, decode_q6_k, NULL},
    {"iq4_nl", 20, SMALL, 18, decode_iq4_nl, NULL},
    {"iq4_xs", 23, SUPER, 136, decode_iq4_xs, NULL},
};

const struct lmq_block_type *
lmq_block_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}
