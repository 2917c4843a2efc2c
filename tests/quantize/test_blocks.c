/*
 * test_blocks.c - the block types of GGUF, against blocks worked out by hand
 * and against what other programs make of them.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/files/file.h"
#include "quantize/blocks.h"
#include "quantize/dtype.h"
#include "quantize/group.h"
#include "tests/build/suite.h"

#define MOST 256
#define ONE 0x3c00  /* 1 in half precision */
#define HALF 0x3800 /* 0.5 */

static const struct lmq_block_type *
type_named(const char *name)
{
    for (uint32_t i = 0; i < 64; i++) {
        const struct lmq_block_type *type = lmq_block_type(i);
        if (type != NULL && strcmp(type->name, name) == 0)
            return type;
    }
    ck_abort_msg("there is no %s", name);
}

static void
decode(const char *name, const unsigned char *block, float *x)
{
    lmq_blocks_decode(type_named(name), block, 1, x);
}

START_TEST(sizes_are_those_of_the_format)
{
    static const struct {
        uint32_t number, n, size;
    } known[] = {
        {2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
        {8, 32, 34},    {10, 256, 84},  {11, 256, 110}, {12, 256, 144},
        {13, 256, 176}, {14, 256, 210}, {16, 256, 66},  {17, 256, 74},
        {18, 256, 98},  {19, 256, 50},  {20, 32, 18},   {21, 256, 110},
        {22, 256, 82},  {23, 256, 136}, {29, 256, 56},  {34, 256, 54},
        {35, 256, 66},  {39, 32, 17},   {40, 64, 36},   {41, 128, 18},
        {42, 64, 18},
    };
    size_t n_found = 0;

    for (uint32_t i = 0; i < 1000; i++)
        n_found += lmq_block_type(i) != NULL;
    ck_assert_uint_eq(n_found, sizeof(known) / sizeof(known[0]));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct lmq_block_type *type = lmq_block_type(known[i].number);
        ck_assert_ptr_nonnull(type);
        ck_assert_uint_eq(type->n, known[i].n);
        ck_assert_uint_eq(type->size, known[i].size);
        ck_assert_uint_eq(type->number, known[i].number);
    }
}
END_TEST

/* Byte i holds i % 16 below and (i + 1) % 16 above. */
static void
put_nibbles(unsigned char *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i % 16 | (i + 1) % 16 << 4);
}

START_TEST(nibbles_are_halves_of_a_block)
{
    unsigned char block[24] = {0};
    float x[MOST];

    lmq_store_u16le(block, HALF);
    put_nibbles(block + 2, 16);
    decode("q4_0", block, x);
    ck_assert(x[0] == -4 && x[1] == -3.5f && x[15] == 3.5f);
    ck_assert(x[16] == -3.5f && x[30] == 3.5f && x[31] == -4);

    lmq_store_u16le(block + 2, ONE); /* the minimum */
    put_nibbles(block + 4, 16);
    decode("q4_1", block, x);
    ck_assert(x[0] == 1 && x[1] == 1.5f && x[15] == 8.5f);
    ck_assert(x[16] == 1.5f && x[31] == 1);

    decode("iq4_nl", block, x);
    ck_assert(x[0] == 0.5f * -127 && x[16] == 0.5f * -127); /* 00 */
    ck_assert(x[1] == 0.5f * 53 && x[17] == 0.5f * -65);    /* 3c */
}
END_TEST

START_TEST(fifth_bits_stand_apart)
{
    unsigned char block[24] = {0};
    float x[MOST];

    lmq_store_u16le(block, ONE);
    lmq_store_u32le(block + 2, 0x80010002); /* of 1, 16 and 31 */
    put_nibbles(block + 6, 16);
    decode("q5_0", block, x);
    ck_assert(x[0] == -16 && x[1] == 1 && x[2] == -14);
    ck_assert(x[16] == 1 && x[17] == -14 && x[31] == 0);

    lmq_store_u16le(block + 2, ONE);
    lmq_store_u32le(block + 4, 0x80010002);
    put_nibbles(block + 8, 16);
    decode("q5_1", block, x);
    ck_assert(x[0] == 1 && x[1] == 18 && x[2] == 3);
    ck_assert(x[16] == 18 && x[31] == 17);
}
END_TEST

START_TEST(q8_0_is_bytes_and_a_scale)
{
    unsigned char block[34] = {0};
    float x[MOST];

    lmq_store_u16le(block, HALF);
    block[2] = 0x80;
    block[3] = 0x7f;
    block[33] = 0xff;
    decode("q8_0", block, x);
    ck_assert(x[0] == -64 && x[1] == 63.5f && x[2] == 0 && x[31] == -0.5f);
}
END_TEST

START_TEST(q2_k_has_a_minimum_for_each_sixteen)
{
    unsigned char block[84] = {0};
    float x[MOST];

    block[0] = 0x21;  /* scale 1, minimum 2 */
    block[3] = 0x03;  /* the fourth part: scale 3 */
    block[15] = 0x42; /* the last: scale 2, minimum 4 */
    block[16] = 0x0d; /* element 0: 1, 32: 3, 64: 0, 96: 0 */
    block[16 + 63] = 0x40; /* element 255: 1 */
    block[16 + 31] = 0x08; /* element 63 (fourth part): 2 */
    lmq_store_u16le(block + 80, ONE);
    lmq_store_u16le(block + 82, HALF);
    decode("q2_k", block, x);
    ck_assert(x[0] == 0 && x[1] == -1 && x[32] == 0 && x[63] == 6);
    ck_assert(x[255] == 0 && x[254] == -2);
}
END_TEST

START_TEST(q3_k_has_a_bit_that_means_no_four)
{
    unsigned char block[110] = {0};
    float x[MOST];

    memset(block, 0xff, 32); /* all third bits but that of element 128 */
    block[0] = 0xef;
    block[32] = 0x02;              /* element 0: 2 */
    block[32 + 32] = 0x03;         /* element 128: 3 - 4 */
    block[96] = 0x21;              /* low bits of parts 0 and 8 */
    block[104] = 0x02 | 0x02 << 4; /* upper bits of parts 0 and 8 */
    lmq_store_u16le(block + 108, ONE);
    decode("q3_k", block, x);
    ck_assert(x[0] == 2 * (33 - 32) && x[1] == 0);
    ck_assert(x[128] == -1 * (34 - 32) && x[129] == 0);
    /* A part without scale bits has -32. */
    block[32 + 16] = 0x01;
    decode("q3_k", block, x);
    ck_assert(x[16] == -32);
}
END_TEST

START_TEST(q4_k_and_q5_k_share_their_scales)
{
    unsigned char block[176] = {0};
    float x[MOST];

    lmq_store_u16le(block, ONE);
    lmq_store_u16le(block + 2, HALF);
    block[4] = 3 | 2 << 6;  /* part 0: scale 3; upper bits of part 4 */
    block[8] = 4 | 1 << 6;  /* part 0: minimum 4; upper of part 4 */
    block[12] = 5 | 6 << 4; /* part 4: scale 5 + 32, minimum 6 + 16 */
    block[16] = 0x25;       /* element 0: 5, 32: 2 */
    block[16 + 64] = 0x01;  /* element 128: 1 */
    decode("q4_k", block, x);
    ck_assert(x[0] == 3 * 5 - 2 && x[1] == -2 && x[32] == 0);
    ck_assert(x[128] == 37 - 11 && x[129] == -11);

    memset(block + 16, 0, 160);
    block[16] = 0x01 | 0x10; /* the fifth bits of elements 0 and 128 */
    block[48] = 0x05;
    decode("q5_k", block, x);
    ck_assert(x[0] == 3 * 21 - 2 && x[1] == -2);
    ck_assert(x[128] == 37 * 16 - 11);
}
END_TEST

START_TEST(q6_k_has_signed_scales)
{
    unsigned char block[210] = {0};
    float x[MOST];

    memset(block + 128, 0xaa, 64); /* upper bits 2: all are 32 - 32 */
    block[0] = 0x31;               /* element 0: 1, 64: 3 */
    block[32] = 0x02;              /* element 32: 2 */
    block[128] = 0xab;             /* element 0: upper bits 3 */
    block[192] = 0xfe;             /* part 0: -2 */
    block[194] = 3;                /* part 2 */
    block[196] = 1;
    lmq_store_u16le(block + 208, HALF);
    decode("q6_k", block, x);
    ck_assert(x[0] == -17 && x[1] == 0 && x[32] == 3 && x[64] == 1.5f);
}
END_TEST

START_TEST(iq4_xs_has_six_bits_for_each_scale)
{
    unsigned char block[136] = {0};
    float x[MOST];

    lmq_store_u16le(block, ONE);
    lmq_store_u16le(block + 2, 2 | 1 << 14); /* upper bits: part 0, part 7 */
    block[4] = 1;       /* part 0: 33 - 32 */
    block[7] = 15 << 4; /* part 7: 31 - 32 */
    block[8] = 0xf8;
    block[8 + 7 * 16] = 0x08;
    decode("iq4_xs", block, x);
    ck_assert(x[0] == 1 && x[16] == 113 && x[1] == -127);
    ck_assert(x[224] == -1 && x[32] == -127 * -32);
}
END_TEST

START_TEST(one_bit_is_a_sign_and_two_begin_at_minus_one)
{
    unsigned char block[18] = {0};
    float x[MOST];

    lmq_store_u16le(block, HALF);
    block[2] = 0x05;
    block[17] = 0x80;
    decode("q1_0", block, x);
    ck_assert(x[0] == 0.5f && x[1] == -0.5f && x[2] == 0.5f);
    ck_assert(x[126] == -0.5f && x[127] == 0.5f);

    block[2] = 0xe4; /* 0, 1, 2, 3 */
    decode("q2_0", block, x);
    ck_assert(x[0] == -0.5f && x[1] == 0 && x[2] == 0.5f && x[3] == 1);
    ck_assert(x[63] == 0.5f && x[62] == -0.5f);
}
END_TEST

START_TEST(five_ternary_digits_are_a_byte)
{
    unsigned char block[66] = {0};
    float x[MOST];

    lmq_store_u16le(block + 52, HALF);
    /* 1, 2, 0, 1, 2 of 243 parts of 256, rounded up */
    block[1] = ((1 * 81 + 2 * 27 + 0 * 9 + 1 * 3 + 2) * 256 + 242) / 243;
    block[33] = block[1]; /* the second of sixteen bytes */
    block[51] = block[1]; /* the last of four, of four digits */
    decode("tq1_0", block, x);
    ck_assert(x[0] == -0.5f && x[1] == 0 && x[33] == 0.5f);
    ck_assert(x[65] == -0.5f && x[97] == 0 && x[129] == 0.5f);
    ck_assert(x[161] == 0 && x[177] == 0.5f && x[193] == -0.5f);
    ck_assert(x[209] == 0 && x[225] == 0.5f);
    ck_assert(x[243] == 0 && x[247] == 0.5f && x[251] == -0.5f && x[255] == 0);

    memset(block, 0x55, 64);
    lmq_store_u16le(block + 64, HALF);
    block[0] = 0x48;  /* elements 0, 32, 64, 96: 0, 2, 0, 1 */
    block[63] = 0x80; /* elements 159, 191, 223, 255 */
    decode("tq2_0", block, x);
    ck_assert(x[0] == -0.5f && x[32] == 0.5f && x[64] == -0.5f);
    ck_assert(x[96] == 0 && x[1] == 0 && x[159] == -0.5f && x[255] == 0.5f);
}
END_TEST

START_TEST(floats_of_four_bits_have_scales_without_sign)
{
    unsigned char block[36] = {0};
    float x[MOST];

    block[0] = 128;  /* 2 */
    block[1] = 0x71; /* element 0: 0.5, 16: 6 */
    block[16] = 0xf9;
    decode("mxfp4", block, x);
    ck_assert(x[0] == 1 && x[16] == 12 && x[15] == -1 && x[31] == -12);
    block[0] = 0;
    decode("mxfp4", block, x);
    ck_assert(x[0] == 0x1p-128f && x[16] == 6 * 0x1p-127f);

    memset(block, 0, sizeof(block));
    block[0] = 0x38; /* 1 */
    block[1] = 0x01; /* 2^-9 */
    block[2] = 0x7f; /* NaN, taken for 0 */
    block[3] = 0x7e; /* 448 */
    memset(block + 4, 0x72, 32); /* 1 and 6 */
    decode("nvfp4", block, x);
    ck_assert(x[0] == 1 && x[7] == 1 && x[8] == 6 && x[15] == 6);
    ck_assert(x[16] == 0x1p-9f && x[24] == 6 * 0x1p-9f);
    ck_assert(x[32] == 0 && x[47] == 0 && x[48] == 448 && x[56] == 6 * 448);
}
END_TEST

/* The first points of lattices are the lowest in all elements. */
START_TEST(points_of_a_lattice_have_signs_and_scales)
{
    unsigned char block[110] = {0};
    float x[MOST];

    lmq_store_u16le(block, ONE);
    block[2] = 1; /* element 0 is 43, the others 8 */
    lmq_store_u32le(block + 6, 0x10000000 | 3 | 1 << 7); /* scale, signs */
    decode("iq2_xxs", block, x);
    ck_assert(x[0] == 1.5f * 0.25f * -43 && x[1] == 1.5f * 0.25f * -8);
    ck_assert(x[2] == 1.5f * 0.25f * 8 && x[7] == 3); /* even already */
    ck_assert(x[8] == -3 && x[9] == 3 && x[15] == -3); /* made even */
    ck_assert(x[32] == 1 && x[255] == 1);

    memset(block + 2, 0, sizeof(block) - 2);
    block[3] = 1;
    block[66] = 1 | 1 << 1; /* points 256 and 257: 7 5 9 5, 5 7 9 5 */
    block[74] = 0x90;       /* elements 4 and 7 are negative */
    block[106] = 2;         /* 5 */
    decode("iq3_s", block, x);
    ck_assert(x[0] == 35 && x[1] == 25 && x[2] == 45 && x[3] == 25);
    ck_assert(x[4] == -25 && x[5] == 35 && x[6] == 45 && x[7] == -25);
    ck_assert(x[31] == 5 && x[32] == 1);

    memset(block + 2, 0, sizeof(block) - 2);
    lmq_store_u16le(block + 34, 0x8000 | 7 << 12 | 7 << 3);
    block[3] = 0xff; /* the last point: all are 1 */
    decode("iq1_s", block, x);
    ck_assert(x[0] == 15 * -1.125f && x[8] == 15 * 0.875f);
    ck_assert(x[15] == x[8] && x[32] == -0.875f);
}
END_TEST

/* What the gguf package makes of 256 blocks, of which some have scales that
 * are not finite (tests/against/gguf_blocks.py); of Q1_0 and Q2_0, which it
 * does not decode, what ggml makes of them. */
START_TEST(types_give_what_their_makers_give)
{
    static const struct {
        const char *name;
        uint32_t crc;
    } known[] = {
        {"q4_0", 0x8fbf4641},
        {"q4_1", 0x53a404ac},
        {"q5_0", 0x9bce8cf4},
        {"q5_1", 0x34ddbef4},
        {"q8_0", 0x7245f2fa},
        {"q2_k", 0xaf67c6e6},
        {"q3_k", 0x493f353b},
        {"q4_k", 0xd84d1423},
        {"q5_k", 0xe34f0b98},
        {"q6_k", 0x654ddfb0},
        {"iq2_xxs", 0xd95318fe},
        {"iq2_xs", 0xcf95bdd2},
        {"iq3_xxs", 0xac1b0d57},
        {"iq1_s", 0xf72fe309},
        {"iq4_nl", 0xde9d71aa},
        {"iq3_s", 0x4bed2644},
        {"iq2_s", 0x4f5793b3},
        {"iq4_xs", 0x40a8b509},
        {"iq1_m", 0xc6541ce2},
        {"tq1_0", 0x73c3a920},
        {"tq2_0", 0xb174a29c},
        {"mxfp4", 0xde4a6448},
        {"nvfp4", 0x9ee1eba9},
        {"q1_0", 0x1edb1330},
        {"q2_0", 0x69ea04e4},
    };
    unsigned char bytes[4 * MOST];
    float x[MOST];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct lmq_block_type *type = type_named(known[i].name);
        uint32_t state = type->number, crc = 0;
        for (int round = 0; round < 256; round++) {
            for (uint32_t k = 0; k < type->size; k++) {
                state = state * 1664525 + 1013904223;
                bytes[k] = (unsigned char)(state >> 24);
            }
            lmq_blocks_decode(type, bytes, 1, x);
            for (uint32_t k = 0; k < type->n; k++)
                lmq_store_f32le(bytes + 4 * k, isnan(x[k]) ? NAN : x[k]);
            crc = lmq_crc32(crc, bytes, 4 * type->n);
        }
        ck_assert_msg(crc == known[i].crc, "%s: %08x", known[i].name, crc);
    }
}
END_TEST

START_TEST(integers_and_scales_are_the_same_numbers)
{
    struct random random = {random_seed()};
    unsigned char block[MOST], scale[2];
    int8_t q[MOST];
    float x[MOST];

    for (uint32_t number = 0; number < 64; number++) {
        const struct lmq_block_type *type = lmq_block_type(number);
        if (type == NULL || type->integers == NULL)
            continue;
        for (int round = 0; round < 1000; round++) {
            for (uint32_t i = 0; i < type->size; i++)
                block[i] = (unsigned char)random_u64(&random);
            block[type->scale_at + 1] &= 0xbf; /* finite */
            lmq_blocks_decode(type, block, 1, x);
            lmq_blocks_split(type, block, 1, q, scale);
            float factor = lmq_f16_to_f32(lmq_load_u16le(scale));
            bool is_held = type->bits < LMQ_BITS_MAX ||
                           memchr(q, 0x80, type->n) != NULL;
            REQUIRE(factor > 0 || (factor == 0 && !signbit(factor)) || is_held,
                    "%s", type->name);
            for (uint32_t i = 0; i < type->n && type->bits < LMQ_BITS_MAX; i++)
                REQUIRE(q[i] >= lmq_q_least(type->bits) &&
                            q[i] <= lmq_q_most(type->bits),
                        "%s", type->name);
            for (uint32_t i = 0; i < type->n; i++)
                REQUIRE(factor * (float)q[i] == x[i], "%s", type->name);
        }
    }
}
END_TEST

START_TEST(several_blocks_are_one_after_the_other)
{
    struct random random = {random_seed()};
    unsigned char blocks[3 * 210];
    float together[3 * MOST], alone[MOST];

    for (size_t i = 0; i < sizeof(blocks); i++)
        blocks[i] = (unsigned char)random_u64(&random);
    for (uint32_t number = 0; number < 64; number++) {
        const struct lmq_block_type *type = lmq_block_type(number);
        if (type == NULL)
            continue;
        lmq_blocks_decode(type, blocks, 3, together);
        for (size_t i = 0; i < 3; i++) {
            lmq_blocks_decode(type, blocks + i * type->size, 1, alone);
            ck_assert_mem_eq(together + i * type->n, alone,
                             type->n * sizeof(*alone));
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        sizes_are_those_of_the_format,
        nibbles_are_halves_of_a_block,
        fifth_bits_stand_apart,
        q8_0_is_bytes_and_a_scale,
        q2_k_has_a_minimum_for_each_sixteen,
        q3_k_has_a_bit_that_means_no_four,
        q4_k_and_q5_k_share_their_scales,
        q6_k_has_signed_scales,
        iq4_xs_has_six_bits_for_each_scale,
        one_bit_is_a_sign_and_two_begin_at_minus_one,
        five_ternary_digits_are_a_byte,
        floats_of_four_bits_have_scales_without_sign,
        points_of_a_lattice_have_signs_and_scales,
        types_give_what_their_makers_give,
        integers_and_scales_are_the_same_numbers,
        several_blocks_are_one_after_the_other,
    };

    return RUN_SUITE("blocks", tests);
}
