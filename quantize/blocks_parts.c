/*
 * blocks_parts.c - blocks of GGUF in parts with scales of their own, which
 * are integers with a scale themselves: 256 elements.
 */
#include "config.h"

#include "quantize/blocks_kinds.h"

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
void
lmq_decode_q2_k(const unsigned char *block, size_t n_blocks, float *out)
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
void
lmq_decode_q3_k(const unsigned char *block, size_t n_blocks, float *out)
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

void
lmq_decode_q4_k(const unsigned char *block, size_t n_blocks, float *out)
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

void
lmq_decode_q5_k(const unsigned char *block, size_t n_blocks, float *out)
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
void
lmq_decode_q6_k(const unsigned char *block, size_t n_blocks, float *out)
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
