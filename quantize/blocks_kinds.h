/*
 * blocks_kinds.h - what the kinds of blocks share, and what each gives to the
 * table of blocks.c.
 */
#ifndef LMQ_QUANTIZE_BLOCKS_KINDS_H
#define LMQ_QUANTIZE_BLOCKS_KINDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "quantize/dtype.h"

#define LMQ_SMALL_BLOCK 32  /* elements with one scale */
#define LMQ_SUPER_BLOCK 256 /* elements with scales of parts */

/* ---- What a kind gives ---- */

typedef void lmq_decode_blocks(const unsigned char *block, size_t n_blocks,
                               float *out);
typedef void lmq_block_integers(const unsigned char *block, int8_t *q);

/* blocks_whole.c */
lmq_decode_blocks lmq_decode_q4_1, lmq_decode_q5_1;
lmq_block_integers lmq_integers_q1_0, lmq_integers_q2_0, lmq_integers_q4_0,
    lmq_integers_q5_0, lmq_integers_q8_0, lmq_integers_tq1_0,
    lmq_integers_tq2_0;
/* blocks_parts.c */
lmq_decode_blocks lmq_decode_q2_k, lmq_decode_q3_k, lmq_decode_q4_k,
    lmq_decode_q5_k, lmq_decode_q6_k;
/* blocks_codes.c */
lmq_decode_blocks lmq_decode_iq4_nl, lmq_decode_iq4_xs, lmq_decode_mxfp4,
    lmq_decode_nvfp4;
/* blocks_lattices.c */
lmq_decode_blocks lmq_decode_iq1_s, lmq_decode_iq1_m, lmq_decode_iq2_xxs,
    lmq_decode_iq2_xs, lmq_decode_iq2_s, lmq_decode_iq3_xxs, lmq_decode_iq3_s;

/* ---- The steps ---- */

static inline float
load_half(const unsigned char *p)
{
    return lmq_f16_to_f32(lmq_load_u16le(p));
}

/* q[i] gets `mask` bits of byte i, moved up by `up`. */
static inline void
take_bits(const unsigned char *bytes, unsigned n, unsigned shift,
          unsigned mask, unsigned up, int *q)
{
    for (unsigned i = 0; i < n; i++)
        q[i] |= (int)((bytes[i] >> shift & mask) << up);
}

/* Low nibbles are the first half, high ones the second. */
static inline void
take_nibbles(const unsigned char *bytes, unsigned n_bytes, int *q)
{
    take_bits(bytes, n_bytes, 0, 15, 0, q);
    take_bits(bytes, n_bytes, 4, 15, 0, q + n_bytes);
}

static inline void
scale(const int *q, unsigned n, int offset, float factor, float minimum,
      float *out)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = factor * (float)(q[i] + offset) - minimum;
}

#endif
