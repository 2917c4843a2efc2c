/*
 * blocks_lattices.c - blocks of GGUF whose elements are points of a lattice:
 * 256 elements, eight at a time.
 *
 * A point stands for their magnitudes, and bits for their signs; or, at less
 * than two bits, for the elements themselves, which are then moved by an
 * eighth.
 */
#include "config.h"

#include <stdbool.h>

#include "quantize/blocks_kinds.h"
#include "quantize/lattices.h"

#define SUPER LMQ_SUPER_BLOCK
#define N_EIGHTS (SUPER / 8)

/* ---- The steps ---- */

/* Seven signs are stored: the eighth makes their number even. */
static unsigned
complete_signs(unsigned seven)
{
    unsigned parity = seven ^ seven >> 4;

    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

static void
put_signed(const int8_t *point, unsigned signs, float factor, float *out)
{
    for (unsigned i = 0; i < 8; i++) {
        float magnitude = factor * (float)point[i];
        out[i] = signs >> i & 1 ? -magnitude : magnitude;
    }
}

static void
put_moved(const int8_t *point, float by, float factor, float *out)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = factor * ((float)point[i] + by);
}

static unsigned
nibble(const unsigned char *bytes, unsigned i)
{
    return bytes[i / 2] >> i % 2 * 4 & 15u;
}

/* ---- Two bits ---- */

static void
put_twos(const struct lmq_lattice *lattice, unsigned index, unsigned signs,
         float factor, float *out)
{
    int8_t point[8];

    lmq_lattice_point(lattice, index, point);
    put_signed(point, signs, factor, out);
}

static float
two_bit_factor(float factor, unsigned part)
{
    return factor * (0.5f + (float)part) * 0.25f;
}

/* Eight parts of four points: their numbers in bytes, then a word with four
 * times seven signs and the scale above them. */
void
lmq_decode_iq2_xxs(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 66) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            const unsigned char *part = block + 2 + i / 4 * 8;
            uint32_t word = lmq_load_u32le(part + 4);
            put_twos(&lmq_lattice_iq2_xxs, part[i % 4],
                     complete_signs(word >> i % 4 * 7 & 127),
                     two_bit_factor(factor, word >> 28), out);
        }
    }
}

/* Words of a number of nine bits and seven signs; then a nibble of scale for
 * two of them. */
void
lmq_decode_iq2_xs(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 74) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            unsigned word = lmq_load_u16le(block + 2 + 2 * i);
            put_twos(&lmq_lattice_iq2_xs, word & 511,
                     complete_signs(word >> 9),
                     two_bit_factor(factor, nibble(block + 66, i / 2)), out);
        }
    }
}

/* Low bytes of the numbers, all eight signs, two more bits for the numbers,
 * nibbles of scale. */
void
lmq_decode_iq2_s(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 82) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            unsigned upper = block[66 + i / 4] >> i % 4 * 2 & 3u;
            put_twos(&lmq_lattice_iq2_s, block[2 + i] | upper << 8,
                     block[34 + i],
                     two_bit_factor(factor, nibble(block + 74, i / 2)), out);
        }
    }
}

/* ---- Three bits: two points for eight elements ---- */

static void
put_threes(const struct lmq_lattice *lattice, const unsigned *index,
           unsigned signs, float factor, float *out)
{
    int8_t point[8];

    lmq_lattice_point(lattice, index[0], point);
    lmq_lattice_point(lattice, index[1], point + 4);
    put_signed(point, signs, factor, out);
}

/* All numbers; then for each part a word as in IQ2_XXS. */
void
lmq_decode_iq3_xxs(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 98) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            const unsigned char *at = block + 2 + 2 * i;
            uint32_t word = lmq_load_u32le(block + 66 + i / 4 * 4);
            put_threes(&lmq_lattice_iq3_xxs, (unsigned[]){at[0], at[1]},
                       complete_signs(word >> i % 4 * 7 & 127),
                       factor * (0.5f + (float)(word >> 28)) * 0.5f, out);
        }
    }
}

/* Low bytes of the numbers, their ninth bits, signs, nibbles of scale. */
void
lmq_decode_iq3_s(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 110) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            const unsigned char *at = block + 2 + 2 * i;
            unsigned upper = (unsigned)block[66 + i / 4] >> i % 4 * 2;
            unsigned index[] = {at[0] | (upper & 1) << 8,
                                at[1] | (upper & 2) << 7};
            float odd = (float)(1 + 2 * nibble(block + 106, i / 4));
            put_threes(&lmq_lattice_iq3_s, index, block[74 + i], factor * odd,
                       out);
        }
    }
}

/* ---- Less than two bits ---- */

static void
put_ones(unsigned index, bool is_lower, float factor, float *out)
{
    int8_t point[8];

    lmq_lattice_point(&lmq_lattice_iq1_s, index, point);
    put_moved(point, is_lower ? -0.125f : 0.125f, factor, out);
}

/* Low bytes of the numbers; then for each four of them a word: three more
 * bits for each, three of scale, and which way they are moved. */
void
lmq_decode_iq1_s(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 50) {
        float factor = load_half(block);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            unsigned word = lmq_load_u16le(block + 34 + i / 4 * 2);
            unsigned upper = word >> i % 4 * 3 & 7;
            put_ones(block[2 + i] | upper << 8, word >> 15 != 0,
                     factor * (float)(2 * (word >> 12 & 7) + 1), out);
        }
    }
}

/* Low bytes of the numbers; nibbles of three more bits and which way; four
 * words of four scales of three bits each, whose upper nibbles are the scale
 * of the scales. */
void
lmq_decode_iq1_m(const unsigned char *block, size_t n_blocks, float *out)
{
    for (; n_blocks > 0; n_blocks--, block += 56) {
        uint16_t half = 0;
        for (unsigned i = 0; i < 4; i++)
            half |= (uint16_t)(block[49 + 2 * i] >> 4 << 4 * i);
        float factor = lmq_f16_to_f32(half);
        for (unsigned i = 0; i < N_EIGHTS; i++, out += 8) {
            unsigned upper = nibble(block + 32, i);
            unsigned word = lmq_load_u16le(block + 48 + i / 8 * 2);
            unsigned part = word >> i % 8 / 2 * 3 & 7;
            put_ones(block[i] | (upper & 7) << 8, upper >> 3 != 0,
                     factor * (float)(2 * part + 1), out);
        }
    }
}
