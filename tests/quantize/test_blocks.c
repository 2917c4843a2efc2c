/*
 * test_blocks.c - the block types of GGUF, against blocks worked out by hand.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "quantize/blocks.h"
#include "quantize/dtype.h"
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
    type_named(name)->decode(block, 1, x);
}

START_TEST(sizes_are_those_of_the_format)
{
    static const struct {
        uint32_t number, n, size;
    } known[] = {
        {2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
        {8, 32, 34},    {10, 256, 84},  {11, 256, 110}, {12, 256, 144},
        {13, 256, 176}, {14, 256, 210}, {20, 32, 18},   {23, 256, 136},
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
        type->decode(blocks, 3, together);
        for (size_t i = 0; i < 3; i++) {
            type->decode(blocks + i * type->size, 1, alone);
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
        several_blocks_are_one_after_the_other,
    };

    return RUN_SUITE("blocks", tests);
}
