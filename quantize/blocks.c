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

#include "quantize/blocks_kinds.h"

#define SMALL LMQ_SMALL_BLOCK
#define SUPER LMQ_SUPER_BLOCK

static const struct lmq_block_type types[] = {
    {"q4_0", 2, SMALL, 18, lmq_decode_q4_0, NULL},
    {"q4_1", 3, SMALL, 20, lmq_decode_q4_1, NULL},
    {"q5_0", 6, SMALL, 22, lmq_decode_q5_0, NULL},
    {"q5_1", 7, SMALL, 24, lmq_decode_q5_1, NULL},
    {"q8_0", 8, SMALL, 34, lmq_decode_q8_0, lmq_split_q8_0},
    {"q2_k", 10, SUPER, 84, lmq_decode_q2_k, NULL},
    {"q3_k", 11, SUPER, 110, lmq_decode_q3_k, NULL},
    {"q4_k", 12, SUPER, 144, lmq_decode_q4_k, NULL},
    {"q5_k", 13, SUPER, 176, lmq_decode_q5_k, NULL},
    {"q6_k", 14, SUPER, 210, lmq_decode_q6_k, NULL},
    {"iq4_nl", 20, SMALL, 18, lmq_decode_iq4_nl, NULL},
    {"iq4_xs", 23, SUPER, 136, lmq_decode_iq4_xs, NULL},
};

const struct lmq_block_type *
lmq_block_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}
