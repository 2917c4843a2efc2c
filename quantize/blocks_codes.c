/*
 * blocks_codes.c - blocks of GGUF whose nibbles are numbers of a table.
 */
#include "config.h"

#include "quantize/blocks_kinds.h"

#define SMALL LMQ_SMALL_BLOCK

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

void
lmq_decode_iq4_nl(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 18, out += SMALL)
        decode_steps(block + 2, load_half(block), out);
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
            decode_steps(block + 8 + 16 * part, factor * (float)(six - 32),
                         out);
        }
    }
}
