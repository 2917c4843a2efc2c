/*
 * blocks.c - the block types of GGUF, decoded to floats.
 *
 * Every type is integers of few bits and scales: the bits are spread into
 * small integers, which are multiplied by a scale and lowered by a minimum, in
 * float32 and in this order, so that the results are ggml's to the last bit.
 * How, stands with their kinds: blocks_whole.c and its neighbours.
 */
#include "config.h"

#include "quantize/blocks.h"

#include <assert.h>
#include <string.h>

#include "quantize/blocks_kinds.h"
#include "quantize/group.h"

#define SMALL LMQ_SMALL_BLOCK
#define SUPER LMQ_SUPER_BLOCK

static const struct lmq_block_type types[] = {
    {"q4_0", 2, SMALL, 18, NULL, lmq_integers_q4_0, 0, 4},
    {"q4_1", 3, SMALL, 20, lmq_decode_q4_1, NULL, 0, 0},
    {"q5_0", 6, SMALL, 22, NULL, lmq_integers_q5_0, 0, 5},
    {"q5_1", 7, SMALL, 24, lmq_decode_q5_1, NULL, 0, 0},
    {"q8_0", 8, SMALL, 34, NULL, lmq_integers_q8_0, 0, 8},
    {"q2_k", 10, SUPER, 84, lmq_decode_q2_k, NULL, 0, 0},
    {"q3_k", 11, SUPER, 110, lmq_decode_q3_k, NULL, 0, 0},
    {"q4_k", 12, SUPER, 144, lmq_decode_q4_k, NULL, 0, 0},
    {"q5_k", 13, SUPER, 176, lmq_decode_q5_k, NULL, 0, 0},
    {"q6_k", 14, SUPER, 210, lmq_decode_q6_k, NULL, 0, 0},
    {"iq2_xxs", 16, SUPER, 66, lmq_decode_iq2_xxs, NULL, 0, 0},
    {"iq2_xs", 17, SUPER, 74, lmq_decode_iq2_xs, NULL, 0, 0},
    {"iq3_xxs", 18, SUPER, 98, lmq_decode_iq3_xxs, NULL, 0, 0},
    {"iq1_s", 19, SUPER, 50, lmq_decode_iq1_s, NULL, 0, 0},
    {"iq4_nl", 20, SMALL, 18, lmq_decode_iq4_nl, NULL, 0, 0},
    {"iq3_s", 21, SUPER, 110, lmq_decode_iq3_s, NULL, 0, 0},
    {"iq2_s", 22, SUPER, 82, lmq_decode_iq2_s, NULL, 0, 0},
    {"iq4_xs", 23, SUPER, 136, lmq_decode_iq4_xs, NULL, 0, 0},
    {"iq1_m", 29, SUPER, 56, lmq_decode_iq1_m, NULL, 0, 0},
    {"tq1_0", 34, SUPER, 54, NULL, lmq_integers_tq1_0, 52, 4},
    {"tq2_0", 35, SUPER, 66, NULL, lmq_integers_tq2_0, 64, 4},
    {"mxfp4", 39, SMALL, 17, lmq_decode_mxfp4, NULL, 0, 0},
    {"nvfp4", 40, 64, 36, lmq_decode_nvfp4, NULL, 0, 0},
    {"q1_0", 41, 128, 18, NULL, lmq_integers_q1_0, 0, 4},
    {"q2_0", 42, 64, 18, NULL, lmq_integers_q2_0, 0, 4},
};

const struct lmq_block_type *
lmq_block_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

void
lmq_blocks_decode(const struct lmq_block_type *type,
                  const unsigned char *blocks, size_t n_blocks, float *out)
{
    int8_t q[LMQ_BLOCK_MAX];

    if (type->decode != NULL) {
        type->decode(blocks, n_blocks, out);
        return;
    }
    for (; n_blocks > 0; n_blocks--, blocks += type->size, out += type->n) {
        float factor = load_half(blocks + type->scale_at);
        type->integers(blocks, q);
        for (uint32_t i = 0; i < type->n; i++)
            out[i] = factor * (float)q[i];
    }
}

/* What kernels take: no scales below zero beside 8 bits, and nothing but zeros
 * beside a scale that is one, whatever its sign. */
static void
settle(unsigned bits, int8_t *q, size_t n, unsigned char *scale)
{
    if (scale[0] == 0 && (scale[1] & 0x7f) == 0) {
        scale[1] = 0;
        memset(q, 0, n);
    }
    if (bits < LMQ_BITS_MAX || (scale[1] & 0x80) == 0 ||
        memchr(q, 0x80, n) != NULL)
        return;
    scale[1] &= 0x7f;
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)-q[i];
}

void
lmq_blocks_split(const struct lmq_block_type *type,
                 const unsigned char *blocks, size_t n_blocks, int8_t *q,
                 unsigned char *scales)
{
    assert(type->integers != NULL);
    for (; n_blocks > 0; n_blocks--) {
        type->integers(blocks, q);
        memcpy(scales, blocks + type->scale_at, 2);
        settle(type->bits, q, type->n, scales);
        blocks += type->size;
        q += type->n;
        scales += 2;
    }
}
