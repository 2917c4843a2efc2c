/*
 * kernels_one_body.h - the integer product of one token: which row tiles are
 * read side by side.
 *
 * A part of kernels_int8_body.h, behind the tiles that both use.
 */

#include "base/size.h"

/* Weights of any width where they lie. */
LMQ_INLINE void
one_token(const struct part *part, const unsigned char *x, int is16,
          unsigned bits)
{
    if (part->n_r == TILE_STREAMS)
        tile(part, TILE_STREAMS, 0, x, 1, 1, is16, bits, part->out);
    else if (part->n_r == 2)
        tile(part, 2, 0, x, 1, 1, is16, bits, part->out);
    else
        tile(part, 1, 0, x, 1, 1, is16, bits, part->out);
}

/* Copies with bits and is16 as constants. */
LMQ_INLINE void
one_token_any(const struct part *part, unsigned bits, const unsigned char *x,
              int is16)
{
    switch (bits) {
    case 4:
        one_token(part, x, is16, 4);
        break;
    case 5:
        one_token(part, x, is16, 5);
        break;
    case 6:
        one_token(part, x, is16, 6);
        break;
    default:
        one_token(part, x, is16, 8);
    }
}

static void
one_token_8(const struct part *part, unsigned bits, const unsigned char *x)
{
    one_token_any(part, bits, x, 0);
}

static void
one_token_16(const struct part *part, unsigned bits, const unsigned char *x)
{
    one_token_any(part, bits, x, 1);
}

/* n_r row tiles at a time: neighbours, or each so far behind the one before. */
static void
product_some(const struct block *block, size_t tile0, size_t tile1, size_t n_r,
             size_t apart)
{
    const struct lmq_tiles *tiles = block->tiles;
    const struct lmq_batch *batch = block->batch;
    const unsigned char *x =
        IS_WIDE(tiles->bits) ? batch->data : alone_as_int8(batch);
    const size_t step = apart == 1 ? n_r : 1;

    for (size_t tile = tile0; tile < tile1; tile += step) {
        const struct part part = {
            .from = streams_of(tiles, tile, 0, block->n_groups, apart),
            .n_groups = block->n_groups,
            .n_rows = tiles->n_rows - tile * LMQ_TILE_ROWS,
            .multiplier = tiles->multiplier,
            .out = block->out + tile * LMQ_TILE_ROWS,
            .n_r = n_r,
            .apart = apart,
        };
        (batch->bits == LMQ_BITS_16 ? one_token_16 : one_token_8)(
            &part, tiles->bits, x);
    }
}

/* From one half of the row tiles to the other, or a little more: lines that are
 * a multiple of a large page apart may lie in one bank of the memory, which
 * then closes one row of it to open another. */
static size_t
halves_apart(size_t n_tiles, size_t tile_bytes)
{
    const size_t page = (size_t)2 << 20, near = (size_t)32 << 10;
    const size_t half = n_tiles - n_tiles / 2;

    if ((half * tile_bytes + near) % page >= 2 * near)
        return half;
    return lmq_size_min(half + 2 * near / (tile_bytes + 1) + 1, n_tiles);
}

/* With one token the memory is the limit, and machines differ in what comes
 * closest to it: two plain streams (Zen 4), or row tiles that lie side by side
 * and asking for what comes (Sapphire Rapids). A stream is half of the rows and
 * so has no end, and two share the activations, which long rows find in the
 * second level cache each time. */
static void
product_one(const struct block *block, size_t tile0, size_t tile1)
{
    const struct lmq_tiles *tiles = block->tiles;
    const size_t n_tiles = tile1 - tile0;
    const size_t n_beside =
        block->batch->streams ? n_tiles - n_tiles % TILE_STREAMS : 0;
    const size_t begin = tile0 + n_beside, n_left = tile1 - begin;
    const size_t apart = halves_apart(
        n_left,
        block->n_groups * lmq_tile_group_bytes(tiles->group, tiles->bits));

    product_some(block, tile0, begin, TILE_STREAMS, 1);
    product_some(block, begin, tile1 - apart, 2, apart);
    product_some(block, tile1 - apart, begin + apart, 1, 1);
}
