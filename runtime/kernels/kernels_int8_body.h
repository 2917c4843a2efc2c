/*
 * kernels_int8_body.h - the integer product around the inner tiles of one
 * instruction set: packing of activations, loops, threads' shares.
 *
 * A body to include after kernels_vector_body.h. The including file defines,
 * before and after it,
 *
 *   LMQ_LINE_PART  bytes of a register of integers
 *   LMQ_TILE_PAIR  the row tiles it takes at a time for many tokens, 1 or 2
 *   LMQ_WIDE       1: activations as int16, 0: as int8
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
 * so that a tile of weights meets its activations as two plain streams.
 */

/* With two registers of weights these are 12 sums: enough to hide the latency
 * of the integer products, and few enough for 16 registers. */
#define TILE_VECTORS 6
#define HEAD_BYTES(n_t) (8 * (n_t))

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
static size_t
group_bytes(const struct lmq_batch *batch, size_t n_t)
{
    size_t number = batch->bits == LMQ_BITS_16 || LMQ_WIDE ? 2 : 1;

    return HEAD_BYTES(n_t) + batch->group * n_t * number;
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

/* ---- Packing ---- */

#if LMQ_WIDE

/* Columns 0, 2, 1, 3: the weights are split into even and odd columns, and so
 * one load of 32 bits has the two numbers that meet either. */
static void
pack_numbers(const int16_t q[][LMQ_GROUP_MAX], size_t n_t, size_t group,
             int is16, unsigned char *start, unsigned char *p)
{
    (void)is16;
    (void)start;
    for (size_t k = 0; k < group; k += 4) {
        for (size_t t = 0; t < n_t; t++, p += 8) {
            const int16_t swapped[4] = {q[t][k], q[t][k + 2], q[t][k + 1],
                                        q[t][k + 3]};
            memcpy(p, swapped, sizeof(swapped));
        }
    }
}

#else

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
pack_numbers(const int16_t q[][LMQ_GROUP_MAX], size_t n_t, size_t group,
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

#endif

/* One tile of tokens: for each group its head, then its numbers, in the order
 * in which the product goes through them. */
static void
pack_tile(const struct lmq_batch *batch, const float *x, size_t stride,
          size_t n_t, unsigned char *p)
{
    int16_t q[TILE_VECTORS][LMQ_GROUP_MAX];
    const size_t group = batch->group;

    for (size_t k = 0; k < batch->n_cols; k += group) {
        float scale[TILE_VECTORS];
        for (size_t t = 0; t < n_t; t++)
            scale[t] = pack_group(batch, x + t * stride, k, q[t]);
        memcpy(p, scale, n_t * sizeof(scale[0]));
        pack_numbers((const int16_t(*)[LMQ_GROUP_MAX])q, n_t, group,
                     batch->bits == LMQ_BITS_16, p + n_t * sizeof(scale[0]),
                     p + HEAD_BYTES(n_t));
        p += group_bytes(batch, n_t);
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

#define LINE ((size_t)64)
#define LINE_PARTS (LINE / LMQ_LINE_PART)
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

/* A part of step s of those that begin at w, as q + 2^(bits - 1): the lower
 * bits and those above come together (quantize/tiles.h). */
LMQ_INLINE vw
load_step(const unsigned char *w, size_t s, size_t part, unsigned bits)
{
    const size_t at = part * LMQ_LINE_PART, above = s * (bits - 4);

    if (bits == 8)
        return load_part(w + s * LINE + at);
    vw x = load_part(w + s / 2 * LINE + at) >> (uint32_t)(s % 2 * 4) &
           0x0f * EACH;
    if (bits == 4)
        return x;
    vw y = load_part(w + (4 + above / 8) * LINE + at);
    y = above % 8 <= 4 ? y << (uint32_t)(4 - above % 8)
                       : y >> (uint32_t)(above % 8 - 4);
    return x | (y & ((1u << (bits - 4)) - 1) * 16 * EACH);
}

/* One row tile of fewer than 8 bits as one of 8. */
LMQ_INLINE void
widen_tile(const unsigned char *w, size_t n_blocks, unsigned bits,
           unsigned char *out)
{
    for (size_t i = 0; i < n_blocks; i++, w += LINE * bits)
        LMQ_UNROLL for (size_t s = 0; s < BLOCK_STEPS; s++, out += LINE)
            LMQ_UNROLL for (size_t part = 0; part < LINE_PARTS; part++) {
                vw x = load_step(w, s, part, bits) +
                       (128 - (1u << (bits - 1))) * EACH;
                memcpy(out + part * LMQ_LINE_PART, &x, sizeof(x));
            }
}

/* ---- Product ---- */

/* The n_bytes that come so far behind those that are read now. */
LMQ_INLINE void
read_ahead(const unsigned char *w, size_t n_bytes, size_t n_r)
{
    LMQ_UNROLL for (size_t i = 0; n_r == TILE_STREAMS && i < n_bytes; i += LINE)
        lmq_prefetch(w + i, LMQ_AHEAD_BYTES);
}

/* Row tiles of which a group after the other is read. */
struct streams {
    const unsigned char *w, *scale; /* of the first row tile */
    size_t next_w, next_scale;      /* from there to the next one's */
    size_t group;
    int is_half;
};

/* sum = fma(isum, weight scale * x scale, sum) for one group, in the order of
 * groups: of n_r row tiles, and of n_t tokens from their head on. All but the
 * pointers are constants; n_r is TILE_STREAMS only for one token, and bits
 * other than 8 are, too. */
LMQ_INLINE void
add_group(const struct streams *from, size_t n_r, const unsigned char *head,
          size_t n_t, int is16, unsigned bits, vf sum[][TILE_VECTORS]);

/* Row tiles from one on, and where their sums go. */
struct part {
    const struct lmq_tiles *tiles;
    size_t n_groups; /* of a row: so that no tile divides */
    size_t row_tile;
    float *out;
    size_t stride; /* of a token's */
};

LMQ_INLINE const unsigned char *
tile_weights(const struct part *part, unsigned bits)
{
    return part->tiles->q +
           part->row_tile * part->n_groups *
               lmq_tile_group_bytes(part->tiles->group, bits);
}

LMQ_INLINE const unsigned char *
tile_scales(const struct part *part)
{
    return part->tiles->scale +
           part->row_tile * part->n_groups *
               lmq_tile_scale_bytes(part->tiles->scale_type);
}

/* out = sum * multiplier, for the rows that there are. */
LMQ_INLINE void
store_rows(const struct part *part, size_t r, vf sum, float *out)
{
    const struct lmq_tiles *tiles = part->tiles;
    const size_t row = (part->row_tile + r) * LMQ_TILE_ROWS;

    store_some(out + row, vf_mul(sum, vf_set1(tiles->multiplier)),
               tiles->n_rows - row);
}

LMQ_INLINE void
tile(const struct part *part, size_t n_r, const unsigned char *x, size_t n_t,
     int is16, unsigned bits, float *out)
{
    const struct lmq_tiles *tiles = part->tiles;
    const size_t n_groups = part->n_groups;
    const size_t w_bytes = lmq_tile_group_bytes(tiles->group, bits);
    const size_t scale_bytes = lmq_tile_scale_bytes(tiles->scale_type);
    const size_t x_bytes = n_t * (is16 || LMQ_WIDE ? 2 : 1) * tiles->group;
    struct streams from = {
        .w = tile_weights(part, bits),
        .scale = tile_scales(part),
        .next_w = n_groups * w_bytes,
        .next_scale = n_groups * scale_bytes,
        .group = tiles->group,
        .is_half = tiles->scale_type == LMQ_SCALES_F16,
    };
    vf sum[TILE_STREAMS][TILE_VECTORS];

    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            sum[r][t] = vf_set1(0.0f);
    for (size_t g = 0; g < n_groups; g++) {
        add_group(&from, n_r, x, n_t, is16, bits, sum);
        from.w += w_bytes;
        from.scale += scale_bytes;
        x += HEAD_BYTES(n_t) + x_bytes;
    }
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            store_rows(part, r, sum[r][t], out + t * part->stride);
}

/* n_t is a constant in each case, so that the sums become registers. 16 bits in
 * int8 halves take two vectors a token: tiles of at most 3. */
#define TILE_CASE(n)                                                   \
    case n:                                                            \
        tile(part, n_r, x, n, is16, 8, out);                           \
        break

LMQ_INLINE void
tile_any(const struct part *part, size_t n_r, const unsigned char *x,
         size_t n_t, int is16, float *out)
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

/* n_r row tiles and the tokens [token0, token1). */
LMQ_INLINE void
product_rows(const struct part *part, size_t n_r,
             const struct lmq_batch *batch, size_t token0, size_t token1,
             int is16)
{
    const size_t full = tile_tokens(batch);

    for (size_t t = token0; t < token1; t += full)
        tile_any(part, n_r, batch_tile(batch, t),
                 token1 - t < full ? token1 - t : full, is16,
                 part->out + t * part->stride);
}

/* Copies with n_r and is16 as constants. */
static void
product_8(const struct part *part, size_t n_r, const struct lmq_batch *batch,
          size_t token0, size_t token1)
{
    if (LMQ_TILE_PAIR > 1 && n_r > 1)
        product_rows(part, LMQ_TILE_PAIR, batch, token0, token1, 0);
    else
        product_rows(part, 1, batch, token0, token1, 0);
}

static void
product_16(const struct part *part, size_t n_r, const struct lmq_batch *batch,
           size_t token0, size_t token1)
{
    if (LMQ_TILE_PAIR > 1 && n_r > 1)
        product_rows(part, LMQ_TILE_PAIR, batch, token0, token1, 1);
    else
        product_rows(part, 1, batch, token0, token1, 1);
}

/* One token, and weights of any width where they lie. */
LMQ_INLINE void
one_token(const struct part *part, size_t n_r, const unsigned char *x,
          int is16, unsigned bits)
{
    if (n_r == TILE_STREAMS)
        tile(part, TILE_STREAMS, x, 1, is16, bits, part->out);
    else
        tile(part, 1, x, 1, is16, bits, part->out);
}

static void
one_token_8(const struct part *part, size_t n_r, const unsigned char *x)
{
    switch (part->tiles->bits) {
    case 4:
        one_token(part, n_r, x, 0, 4);
        break;
    case 5:
        one_token(part, n_r, x, 0, 5);
        break;
    case 6:
        one_token(part, n_r, x, 0, 6);
        break;
    default:
        one_token(part, n_r, x, 0, 8);
    }
}

static void
one_token_16(const struct part *part, size_t n_r, const unsigned char *x)
{
    switch (part->tiles->bits) {
    case 4:
        one_token(part, n_r, x, 1, 4);
        break;
    case 5:
        one_token(part, n_r, x, 1, 5);
        break;
    case 6:
        one_token(part, n_r, x, 1, 6);
        break;
    default:
        one_token(part, n_r, x, 1, 8);
    }
}

/* n_r row tiles as a matrix of 8 bits: for many tokens, of which a block shares
 * the work. */
static struct lmq_tiles
widen(const struct part *part, size_t n_r, unsigned char *scratch)
{
    struct lmq_tiles wide = *part->tiles;
    const size_t n_blocks = n_r * part->n_groups * wide.group /
                            (BLOCK_STEPS * LMQ_TILE_COLUMNS);
    const unsigned char *w = tile_weights(part, wide.bits);

    if (wide.bits == 4)
        widen_tile(w, n_blocks, 4, scratch);
    else if (wide.bits == 5)
        widen_tile(w, n_blocks, 5, scratch);
    else
        widen_tile(w, n_blocks, 6, scratch);
    wide.bits = 8;
    wide.q = scratch;
    wide.scale = tile_scales(part);
    wide.n_rows -= part->row_tile * LMQ_TILE_ROWS;
    return wide;
}

/* With one token the memory is the limit, and machines differ in what comes
 * closest to it: one stream (Zen 4: 99 % of what can be read, 68 % with four),
 * or several and asking for what comes (Sapphire Rapids: 93 %, with one stream
 * 70 %). */
static void
product_one(struct part part, size_t tile1, const struct lmq_batch *batch,
            int is16)
{
    const size_t most = batch->streams ? TILE_STREAMS : 1;

    for (size_t n_r; part.row_tile < tile1; part.row_tile += n_r) {
        n_r = tile1 - part.row_tile < most ? 1 : most;
        (is16 ? one_token_16 : one_token_8)(&part, n_r, batch->data);
    }
}

/* Of the activations, what stays in the second level cache while all rows go
 * by. */
#define BLOCK_BYTES ((size_t)384 << 10)

static void
product(const struct lmq_tiles *tiles, size_t tile0, size_t tile1,
        const struct lmq_batch *batch, float *out, size_t stride,
        void *scratch)
{
    const int is16 = batch->bits == LMQ_BITS_16 && !LMQ_WIDE;
    const size_t n_tokens = batch->n_tokens, full = tile_tokens(batch);
    const size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);
    const size_t n_tiles =
        BLOCK_BYTES / (n_groups * group_bytes(batch, full) + 1) + 1;
    const size_t step = n_tiles * full;
    /* A few tokens are as one: the memory is the limit. */
    const size_t most =
        n_tokens * batch->bits <= 4 * LMQ_BITS_8 ? 1 : LMQ_TILE_PAIR;

    if (n_tokens == 1) {
        product_one((struct part){tiles, n_groups, tile0, out, stride}, tile1,
                    batch, is16);
        return;
    }
    for (size_t t = 0; t < n_tokens; t += step) {
        const size_t end = n_tokens - t < step ? n_tokens : t + step;
        for (size_t tile = tile0, n_r; tile < tile1; tile += n_r) {
            struct part part = {tiles, n_groups, tile, out, stride};
            struct lmq_tiles wide;
            n_r = tile1 - tile < most ? 1 : most;
            if (tiles->bits < 8) {
                wide = widen(&part, n_r, scratch);
                part = (struct part){&wide, n_groups, 0,
                                     out + tile * LMQ_TILE_ROWS, stride};
            }
            (is16 ? product_16 : product_8)(&part, n_r, batch, t, end);
        }
    }
}

#define INT8_KERNELS                                                   \
    .passes_16 = LMQ_WIDE ? 1 : 2,                                     \
    .batch_pack = batch_pack, .product = product, .peak_int8 = peak_int8
