/*
 * kernels_int8_body.h - the integer product around the inner tiles of one
 * instruction set: packing of activations, loops, threads' shares.
 *
 * A body to include after kernels_vector_body.h. The including file defines,
 * before and after it,
 *
 *   LMQ_LINE_PART  bytes of a register of integers
 *   LMQ_TILES      the row tiles it takes at a time for many tokens, 1 or 4
 *   LMQ_WIDE       1: activations meet 8 bits as int16, 0: as int8
 *   LMQ_SELECT(m, a, b)  where each byte's m has ones the bits of a, else those
 *                  of b, if that is one instruction
 *   add_group()    declared below
 *
 * A batch is cut into tiles of tokens, each [group]{head, numbers}:
 *
 *   head     float scale[tokens]; int32_t start[tokens]
 *   int8     [group / 4][vectors][4 columns], a vector is a token, or with 16
 *            bits the high halves of the tile's tokens, then the low halves;
 *            start[token] = -128 * sum of its numbers, which takes back the
 *            128 that the stored weights are too large
 *   int16    [group / 4][tokens][columns 0, 2, 1, 3]
 *
 * so that a tile of weights meets its activations as two plain streams. A token
 * alone meets fewer bits where they lie, and these as int8: where LMQ_WIDE is 1
 * it is packed twice, as int8 behind int16.
 */

/* With two registers of weights these are 12 sums: enough to hide the latency
 * of the integer products, and few enough for 16 registers. */
#define TILE_VECTORS 6
#define HEAD_BYTES(n_t) (8 * (n_t))

/* Only a token alone meets other bits than 8. */
#define IS_WIDE(bits) (LMQ_WIDE && (bits) == 8)

/* Row tiles that one token may read side by side. */
#define TILE_STREAMS 4

/* Tokens in a full tile. */
static size_t
tile_tokens(const struct lmq_batch *batch)
{
    return batch->bits == LMQ_BITS_16 && !LMQ_WIDE ? TILE_VECTORS / 2
                                                   : TILE_VECTORS;
}

/* Bytes of one group of n_t tokens: the last tile of a batch has fewer. */
LMQ_INLINE size_t
packed_bytes(size_t group, size_t n_t, int is16, int is_wide)
{
    return HEAD_BYTES(n_t) + group * n_t * (is16 || is_wide ? 2 : 1);
}

static size_t
group_bytes(const struct lmq_batch *batch, size_t n_t)
{
    return packed_bytes(batch->group, n_t, batch->bits == LMQ_BITS_16,
                        LMQ_WIDE);
}

/* The tile that begins with a token. All before it are full. */
static const unsigned char *
batch_tile(const struct lmq_batch *batch, size_t token)
{
    size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);

    return batch->data +
           token * n_groups * group_bytes(batch, tile_tokens(batch)) /
               tile_tokens(batch);
}

/* A token alone, as int8, which is behind int16. */
static unsigned char *
alone_as_int8(const struct lmq_batch *batch)
{
    size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);

    return batch->data + (LMQ_WIDE ? n_groups * group_bytes(batch, 1) : 0);
}

/* ---- Packing ---- */

/* Columns 0, 2, 1, 3: the weights are split into even and odd columns, and so
 * one load of 32 bits has the two numbers that meet either. */
LMQ_INLINE void
pack_wide(const int16_t q[][LMQ_GROUP_MAX], size_t n_t, size_t group,
          unsigned char *p)
{
    for (size_t k = 0; k < group; k += 4) {
        for (size_t t = 0; t < n_t; t++, p += 8) {
            const int16_t swapped[4] = {q[t][k], q[t][k + 2], q[t][k + 1],
                                        q[t][k + 3]};
            memcpy(p, swapped, sizeof(swapped));
        }
    }
}

/* q = 256 * high + low; low is the low byte with its sign. So x q is 256 times
 * one int8 product plus another. Steps of 32 let compilers vectorize. */
static void
split(const int16_t *q, size_t group, int8_t *restrict high,
      int8_t *restrict low)
{
    for (size_t k = 0; k < group; k += 32) {
        for (size_t i = 0; i < 32; i++)
            low[k + i] = (int8_t)q[k + i];
        for (size_t i = 0; i < 32; i++)
            high[k + i] = (int8_t)((q[k + i] + 128) >> 8);
    }
}

/* Vector v of n_vectors: stores its 4 columns per step, returns the sum. */
static int32_t
pack_vector(const int8_t *part, size_t group, size_t v, size_t n_vectors,
            unsigned char *p)
{
    int32_t sum = 0;

    p += v * 4;
    for (size_t k = 0; k < group; k += 32, part += 32) {
        for (size_t i = 0; i < 32; i++)
            sum += part[i];
        for (size_t i = 0; i < 32; i += 4, p += n_vectors * 4)
            memcpy(p, part + i, 4);
    }
    return sum;
}

static void
pack_int8(const int16_t q[][LMQ_GROUP_MAX], size_t n_t, size_t group,
          int is16, unsigned char *start, unsigned char *p)
{
    const size_t n_vectors = is16 ? 2 * n_t : n_t;
    int8_t low[LMQ_GROUP_MAX], high[LMQ_GROUP_MAX];

    for (size_t t = 0; t < n_t; t++) {
        split(q[t], group, high, low);
        int32_t sum =
            pack_vector(low, group, is16 ? n_t + t : t, n_vectors, p);
        if (is16)
            sum += 256 * pack_vector(high, group, t, n_vectors, p);
        sum *= -128;
        memcpy(start + t * sizeof(sum), &sum, sizeof(sum));
    }
}

/* A group's head, then its numbers, in the order in which the product goes
 * through them; returns what is behind them. */
LMQ_INLINE unsigned char *
pack_one(const int16_t q[][LMQ_GROUP_MAX], const float *scale, size_t n_t,
         size_t group, int is16, int is_wide, unsigned char *p)
{
    unsigned char *start = p + n_t * sizeof(*scale);

    memcpy(p, scale, n_t * sizeof(*scale));
    if (is_wide)
        pack_wide(q, n_t, group, p + HEAD_BYTES(n_t));
    else
        pack_int8(q, n_t, group, is16, start, p + HEAD_BYTES(n_t));
    return p + packed_bytes(group, n_t, is16, is_wide);
}

/* One tile of tokens, which begins at p. */
static void
pack_tile(const struct lmq_batch *batch, const float *x, size_t stride,
          size_t n_t, unsigned char *p)
{
    const int is16 = batch->bits == LMQ_BITS_16;
    const size_t group = batch->group;
    unsigned char *also =
        LMQ_WIDE && batch->n_tokens == 1 ? alone_as_int8(batch) : NULL;
    int16_t q[TILE_VECTORS][LMQ_GROUP_MAX];

    for (size_t k = 0; k < batch->n_cols; k += group) {
        const int16_t(*numbers)[LMQ_GROUP_MAX] =
            (const int16_t(*)[LMQ_GROUP_MAX])q;
        float scale[TILE_VECTORS];
        for (size_t t = 0; t < n_t; t++)
            scale[t] = pack_group(batch, x + t * stride, k, q[t]);
        p = pack_one(numbers, scale, n_t, group, is16, LMQ_WIDE, p);
        if (also != NULL)
            also = pack_one(numbers, scale, 1, group, is16, 0, also);
    }
}

/* Parts are whole tiles: so no two threads write to the same one. */
static void
batch_pack(const struct lmq_batch *batch, const float *x, size_t stride,
           size_t part, size_t n_parts)
{
    const size_t n_t = tile_tokens(batch);
    const size_t n_tiles = (batch->n_tokens + n_t - 1) / n_t;
    size_t end = n_tiles * (part + 1) / n_parts * n_t;

    if (end > batch->n_tokens)
        end = batch->n_tokens;
    for (size_t t = n_tiles * part / n_parts * n_t; t < end; t += n_t)
        pack_tile(batch, x + t * stride, stride,
                  end - t < n_t ? end - t : n_t,
                  (unsigned char *)batch_tile(batch, t));
}

/* ---- Weights ---- */

/* A register of numbers, four of a row side by side. */
typedef uint32_t vw __attribute__((vector_size(LMQ_LINE_PART)));

#define LINE_PARTS (LMQ_LINE / LMQ_LINE_PART)
#define EACH 0x01010101u /* a number in each byte */

/* Steps of 4 columns that are read together: of 8 in a block as many as their
 * lines have whole. */
#define BLOCK_STEPS 8
#define STEPS(bits) ((size_t)((bits) == 8 ? 1 : (bits) == 4 ? 2 : BLOCK_STEPS))
#define STEPS_BYTES(bits) (STEPS(bits) * 8 * (bits))

LMQ_INLINE vw
load_part(const unsigned char *p)
{
    vw x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* The line of a block that has the upper bits of step s, behind those of the
 * lower ones. */
#define ABOVE(s, bits) (4 + (s) * ((bits) - 4) / 8)

/* Numbers of step s of fewer than 8 bits, as q + 2^(bits - 1): the lower bits
 * and those above come together (quantize/tiles.h). Where one instruction takes
 * lower bits from here and upper ones from there, two steps share what masks
 * those above: what is left of the other's comes to lie below. */
LMQ_INLINE vw
join_bits(vw x, vw y, size_t s, unsigned bits)
{
    const size_t at = s * (bits - 4) % 8;
    const uint32_t ones = (1u << (bits - 4)) - 1;

    x >>= (uint32_t)(s % 2 * 4);
    if (bits == 4)
        return x & 0x0f * EACH;
#ifdef LMQ_SELECT
    y &= (ones << at % 4) * 0x11 * EACH;
    y = at <= 4 ? y << (uint32_t)(4 - at) : y >> (uint32_t)(at - 4);
    return LMQ_SELECT(0x0f, x, y);
#else
    y = at <= 4 ? y << (uint32_t)(4 - at) : y >> (uint32_t)(at - 4);
    return (x & 0x0f * EACH) | (y & ones * 16 * EACH);
#endif
}

/* A part of step s of those that begin at w. */
LMQ_INLINE vw
load_step(const unsigned char *w, size_t s, size_t part, unsigned bits)
{
    w += part * LMQ_LINE_PART;
    if (bits == 8)
        return load_part(w + s * LMQ_LINE);
    vw x = load_part(w + s / 2 * LMQ_LINE), y = {0};
    if (bits > 4)
        y = load_part(w + ABOVE(s, bits) * LMQ_LINE);
    return join_bits(x, y, s, bits);
}

/* One row tile as one of 8 bits, in each four some turned over. */
LMQ_INLINE void
widen_tile(const unsigned char *w, size_t n_blocks, unsigned bits,
           uint32_t turned, unsigned char *out)
{
    for (size_t i = 0; i < n_blocks; i++, w += LMQ_LINE * bits)
        LMQ_UNROLL for (size_t s = 0; s < BLOCK_STEPS; s++, out += LMQ_LINE)
            LMQ_UNROLL for (size_t part = 0; part < LINE_PARTS; part++) {
                vw x = (load_step(w, s, part, bits) +
                        (128 - (1u << (bits - 1))) * EACH) ^
                       turned;
                memcpy(out + part * LMQ_LINE_PART, &x, sizeof(x));
            }
}

/* ---- Product ---- */

/* Row tiles of which a group after the other is read. */
struct streams {
    const unsigned char *w, *scale; /* of the first row tile */
    size_t next_w, next_scale;      /* from there to the next one's */
    size_t ahead; /* so far behind what is read now lies what is asked for */
    size_t group;
    int is_half;
};

/* Asks for what comes behind n_bytes at w, where several row tiles are read
 * side by side: from memory with one token, from the second level cache with
 * many, which have no register to spare for how far that is. */
LMQ_INLINE void
read_ahead(const struct streams *from, const unsigned char *w, size_t n_bytes,
           size_t n_r, size_t n_t)
{
    if (n_r < TILE_STREAMS)
        return;
    LMQ_UNROLL for (size_t i = 0; i < n_bytes; i += LMQ_LINE)
        lmq_prefetch(w + i, n_t == 1 ? from->ahead : LMQ_AHEAD_BYTES);
}

/* Before the last groups of all rows, of which n_bytes are left: behind these
 * come not the rows that are read side by side, but those behind them, and so
 * do their scales. */
LMQ_INLINE void
look_behind(struct streams *from, size_t n_bytes, size_t n_r)
{
    if (n_bytes <= LMQ_AHEAD_BYTES)
        from->ahead = LMQ_AHEAD_BYTES + (n_r - 1) * from->next_w;
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        lmq_prefetch_second(from->scale + r * from->next_scale,
                            n_r * from->next_scale);
}

/* sum = fma(isum, weight scale * x scale, sum) for one group, in the order of
 * groups: of n_r row tiles, and of n_t tokens from their head on. All but the
 * pointers are constants; bits other than 8 are only for one token. */
LMQ_INLINE void
add_group(const struct streams *from, size_t n_r, const unsigned char *head,
          size_t n_t, int is16, unsigned bits, vf sum[][TILE_VECTORS]);

/* Sums of a tile of tokens, between one part of the columns and the next. */
typedef vf kept_sums[LMQ_TILES][TILE_VECTORS];

/* What is multiplied together: some row tiles, of which all groups or a part,
 * and tokens, which are many or one. */
struct part {
    struct streams from;
    size_t n_groups;
    bool begins, ends;  /* the rows: else there are sums before, or after */
    size_t n_rows;      /* of the matrix, from these row tiles on */
    float multiplier;
    float *out;
    size_t stride;      /* of a token's */
    kept_sums *kept;    /* of each tile of tokens */
    size_t n_r, apart;  /* row tiles, and from one to the next */
    struct lmq_wanted next; /* the tiles of tokens ask for it */
};

LMQ_INLINE struct streams
streams_of(const struct lmq_tiles *tiles, size_t row_tile, size_t group,
           size_t n_groups, size_t apart)
{
    const size_t w = lmq_tile_group_bytes(tiles->group, tiles->bits);
    const size_t scale = lmq_tile_scale_bytes(tiles->scale_type);
    const size_t before = row_tile * n_groups + group;

    return (struct streams){
        .w = tiles->q + before * w,
        .scale = tiles->scale + before * scale,
        .next_w = apart * n_groups * w,
        .next_scale = apart * n_groups * scale,
        .ahead = LMQ_AHEAD_BYTES,
        .group = tiles->group,
        .is_half = tiles->scale_type == LMQ_SCALES_F16,
    };
}

/* Asks for where the sums of some tokens go: these are lines far apart, and a
 * store that waits for one keeps all behind it waiting. */
LMQ_INLINE void
ask_for_out(const struct part *part, size_t n_r, size_t n_t, const float *out)
{
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            lmq_prefetch(out + t * part->stride + r * LMQ_TILE_ROWS, 0);
}

/* out = sum * multiplier, for the rows that there are. */
LMQ_INLINE void
store_rows(const struct part *part, size_t r, vf sum, float *out)
{
    const size_t row = r * part->apart * LMQ_TILE_ROWS;

    store_some(out + row, vf_mul(sum, vf_set1(part->multiplier)),
               part->n_rows - row);
}

/* Tile `number` of the tokens; with one token alone, n_t is 1 and is_alone. */
LMQ_INLINE void
tile(const struct part *part, size_t n_r, size_t number,
     const unsigned char *x, size_t n_t, int is_alone, int is16,
     unsigned bits, float *out)
{
    struct streams from = part->from;
    const size_t w_bytes = lmq_tile_group_bytes(from.group, bits);
    const size_t scale_bytes =
        LMQ_TILE_ROWS * (from.is_half ? sizeof(uint16_t) : sizeof(float));
    const size_t x_bytes = packed_bytes(from.group, n_t, is16, IS_WIDE(bits));
    struct lmq_asking asking = {0};
    vf sum[TILE_STREAMS][TILE_VECTORS];

    if (!is_alone && part->next.p != NULL)
        asking = lmq_asking_of(&part->next, number, part->n_groups);
    if (!is_alone && part->ends)
        ask_for_out(part, n_r, n_t, out);
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            sum[r][t] = is_alone || part->begins ? vf_set1(0.0f)
                                                 : part->kept[number][r][t];
    for (size_t g = 0; g < part->n_groups; g++) {
        if (is_alone && n_r == TILE_STREAMS)
            look_behind(&from, (part->n_groups - g) * w_bytes, n_r);
        add_group(&from, n_r, x, n_t, is16, bits, sum);
        if (n_r > 2 && !is_alone)
            lmq_keep_in_memory(sum); /* registers are for sums of integers */
        if (!is_alone)
            lmq_ask(&part->next, &asking);
        from.w += w_bytes;
        from.scale += scale_bytes;
        x += x_bytes;
    }
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            if (is_alone || part->ends)
                store_rows(part, r, sum[r][t], out + t * part->stride);
            else
                part->kept[number][r][t] = sum[r][t];
}

/* n_t is a constant in each case, so that the sums become registers. 16 bits in
 * int8 halves take two vectors a token: tiles of at most 3. */
#define TILE_CASE(n)                                                   \
    case n:                                                            \
        tile(part, n_r, number, x, n, 0, is16, 8, out);                \
        break

LMQ_INLINE void
tile_any(const struct part *part, size_t n_r, size_t number,
         const unsigned char *x, size_t n_t, int is16, float *out)
{
    switch (n_t) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
    default:
        if (is16 && !LMQ_WIDE)
            break;
        switch (n_t) {
            TILE_CASE(4);
            TILE_CASE(5);
            TILE_CASE(6);
        }
    }
}
#undef TILE_CASE

/* A block of tokens that meets all rows before the next one does. */
struct block {
    const struct lmq_tiles *tiles;
    const struct lmq_batch *batch;
    size_t n_groups; /* of a row: so that no tile divides */
    size_t token0, token1;
    size_t tile_tokens;
    size_t columns; /* that meet all tokens before the next ones do, so that
                       their weights stay near, and those that come next */
    size_t askers;  /* at least, to ask for these */
    bool is_signed; /* the product wants q, not q + 128 */
    float *out;
    size_t stride;
    unsigned char *scratch;
    int is16;
    void (*multiply)(const struct part *part, const struct block *block,
                     size_t group);
};

LMQ_INLINE void
product_rows(const struct part *part, size_t n_r, const struct block *block,
             size_t group, int is16)
{
    const struct lmq_batch *batch = block->batch;
    const size_t full = block->tile_tokens;

    for (size_t t = block->token0, number = 0; t < block->token1;
         t += full, number++) {
        const size_t n_t = block->token1 - t < full ? block->token1 - t : full;
        tile_any(part, n_r, number,
                 batch_tile(batch, t) + group * group_bytes(batch, n_t), n_t,
                 is16, part->out + t * part->stride);
    }
}

/* Copies with n_r and is16 as constants. */
LMQ_INLINE void
product_any(const struct part *part, const struct block *block, size_t group,
            int is16)
{
    if (LMQ_TILES > 1 && part->n_r == LMQ_TILES)
        product_rows(part, LMQ_TILES, block, group, is16);
    else if (LMQ_TILES > 1 && part->n_r == LMQ_TILES / 2)
        product_rows(part, LMQ_TILES / 2, block, group, is16);
    else
        product_rows(part, 1, block, group, is16);
}

static void
product_8(const struct part *part, const struct block *block, size_t group)
{
    product_any(part, block, group, 0);
}

static void
product_16(const struct part *part, const struct block *block, size_t group)
{
    product_any(part, block, group, 1);
}

/* ---- One token ---- */

#include "runtime/kernels/kernels_one_body.h"

/* ---- Many tokens ---- */

/* Of the activations, what stays in the second level cache while all rows go
 * by. */
#define BLOCK_BYTES ((size_t)384 << 10)

/* Weights stay there, too. */
#define BLOCK_COLUMNS ((size_t)2048)
_Static_assert(LMQ_TILES * LMQ_TILE_ROWS * BLOCK_COLUMNS <= LMQ_WIDE_BYTES &&
                   BLOCK_COLUMNS >= LMQ_BLOCK_COLS &&
                   (BLOCK_BYTES / (TILE_VECTORS * BLOCK_COLUMNS) + 1) *
                           sizeof(kept_sums) <= LMQ_SUMS_BYTES,
               "room for them as 8 bits, and where there are more columns for "
               "the sums of as many tiles of tokens as a block then has");

/* Fewer would ask for more at a time than can be under way, and the hardware
 * finds such streams by itself. */
#define ASKING_LEAST 4

/* These weights as 8 bits: a block of tokens shares the work. */
static void
widen(struct part *part, unsigned bits, bool is_signed, unsigned char *scratch)
{
    const uint32_t turned = is_signed ? 128 * EACH : 0;
    const size_t n_bytes =
        part->n_groups * lmq_tile_group_bytes(part->from.group, 8);
    const size_t n_blocks = n_bytes / (BLOCK_STEPS * LMQ_LINE);

    for (size_t r = 0; r < part->n_r; r++) {
        const unsigned char *w = part->from.w + r * part->from.next_w;
        unsigned char *out = scratch + r * n_bytes;
        if (bits == 4)
            widen_tile(w, n_blocks, 4, turned, out);
        else if (bits == 5)
            widen_tile(w, n_blocks, 5, turned, out);
        else if (bits == 6)
            widen_tile(w, n_blocks, 6, turned, out);
        else
            widen_tile(w, n_blocks, 8, turned, out);
    }
    part->from.w = scratch;
    part->from.next_w = n_bytes;
}

/* n_r row tiles, some columns after the others. Behind them come more row
 * tiles, or is_last. */
static void
multiply_block(const struct block *block, size_t tile, size_t n_r, bool is_last)
{
    const struct lmq_tiles *tiles = block->tiles;
    const size_t full = block->tile_tokens;
    const size_t step = block->columns / tiles->group;
    const size_t n_tiles = (block->token1 - block->token0 + full - 1) / full;

    for (size_t g = 0, n; g < block->n_groups; g += n) {
        n = block->n_groups - g < step ? block->n_groups - g : step;
        const bool ends = g + n == block->n_groups;
        struct part part = {
            .from = streams_of(tiles, tile, g, block->n_groups, 1),
            .n_groups = n,
            .begins = g == 0,
            .ends = ends,
            .n_rows = tiles->n_rows - tile * LMQ_TILE_ROWS,
            .multiplier = tiles->multiplier,
            .out = block->out + tile * LMQ_TILE_ROWS,
            .stride = block->stride,
            .kept = (kept_sums *)(void *)(block->scratch + LMQ_WIDE_BYTES),
            .n_r = n_r,
            .apart = 1,
        };
        if (n_tiles >= block->askers && !(ends && is_last))
            part.next = (struct lmq_wanted){
                .p = streams_of(tiles, ends ? tile + n_r : tile,
                                ends ? 0 : g + n, block->n_groups, 1).w,
                .n_rows = n_r,
                .stride = part.from.next_w,
                .n_lines = n * lmq_tile_group_bytes(tiles->group,
                                                    tiles->bits) / LMQ_LINE,
                .n_askers = n_tiles,
            };
        if (tiles->bits < 8 || block->is_signed)
            widen(&part, tiles->bits, block->is_signed, block->scratch);
        block->multiply(&part, block, g);
    }
}

/* Row tiles that are multiplied together, where so many are left. Sums that
 * wait in memory are dear where registers are stored half by half, and with 16
 * bits there are half as many of them. */
static size_t
tiles_together(const struct block *block, size_t n_left)
{
    const size_t n_tokens = block->token1 - block->token0;
    const bool is_few = block->batch->few && !block->is16 &&
                        n_tokens >= ASKING_LEAST * TILE_VECTORS;

    if (LMQ_TILES == 1 || n_left == 1)
        return 1;
    return is_few || n_left < LMQ_TILES ? LMQ_TILES / 2 : LMQ_TILES;
}

/* Tokens of a block, of about so many bytes. */
static size_t
block_tokens(const struct block *block, size_t n_bytes)
{
    const size_t full = block->tile_tokens;
    const size_t n_tiles = (block->batch->n_tokens + full - 1) / full;
    const size_t most =
        n_bytes / (block->n_groups * group_bytes(block->batch, full) + 1) + 1;

    return lmq_even_part(n_tiles, most) * full;
}

static struct block
block_of(const struct lmq_tiles *tiles, const struct lmq_batch *batch,
         float *out, size_t stride, void *scratch)
{
    const int is16 = batch->bits == LMQ_BITS_16 && !LMQ_WIDE;

    return (struct block){
        .tiles = tiles,
        .batch = batch,
        .n_groups = lmq_groups_per_row(batch->n_cols, batch->group),
        .tile_tokens = tile_tokens(batch),
        .columns = BLOCK_COLUMNS,
        .askers = ASKING_LEAST,
        .out = out,
        .stride = stride,
        .scratch = scratch,
        .is16 = is16,
        .multiply = is16 ? product_16 : product_8,
    };
}

/* The next `step` tokens; false if there are none. */
static bool
block_next(struct block *block, size_t step)
{
    const size_t n_tokens = block->batch->n_tokens;

    block->token0 = block->token1;
    block->token1 = n_tokens - block->token0 < step ? n_tokens
                                                    : block->token0 + step;
    return block->token0 < n_tokens;
}

static void
product(const struct lmq_tiles *tiles, size_t tile0, size_t tile1,
        const struct lmq_batch *batch, float *out, size_t stride,
        void *scratch)
{
    struct block block = block_of(tiles, batch, out, stride, scratch);

    if (batch->n_tokens == 1) {
        product_one(&block, tile0, tile1);
        return;
    }
    const size_t step = block_tokens(&block, BLOCK_BYTES);
    while (block_next(&block, step))
        for (size_t tile = tile0, n_r; tile < tile1; tile += n_r) {
            n_r = tiles_together(&block, tile1 - tile);
            multiply_block(&block, tile, n_r, tile + n_r == tile1);
        }
}

#define INT8_KERNELS                                                   \
    .passes_16 = LMQ_WIDE ? 1 : 2,                                     \
    .batch_pack = batch_pack, .product = product, .peak_int8 = peak_int8
