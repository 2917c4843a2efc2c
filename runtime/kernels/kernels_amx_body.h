/*
 * kernels_amx_body.h - the integer product of many tokens in tile registers.
 *
 * A body to include after kernels_int8_body.h, whose product it leaves the few
 * tokens to. One instruction multiplies 16 tokens' numbers of a group with a
 * row tile, which lies in memory as it wants it (quantize/tiles.h). Its 256
 * sums leave by memory: they are stored, loaded, scaled and added while the
 * next group is multiplied.
 *
 * A batch is cut into tiles of 16 tokens, each {scales, numbers}:
 *
 *   scales   [group][16 tokens] float
 *   numbers  [group][chunk][tokens][columns of a chunk] int8, or with 16 bits
 *            [group][chunk]{high halves, low halves} of that
 *
 * where a chunk are the columns of one instruction, 64 or a group of 32. The
 * last tile has fewer tokens, but room for as many scales.
 */

#define AMX_TOKENS ((size_t)16)
#define AMX_CHUNK ((size_t)64)
#define AMX_SUMS ((size_t)256) /* of one instruction */

/* With fewer tokens registers of 512 bits are faster. */
static bool
takes_tiles(const struct lmq_batch *batch)
{
    return batch->n_tokens >= (batch->bits == LMQ_BITS_16 ? 16 : 32);
}

/* ---- Packing ---- */

static size_t
amx_group_bytes(const struct lmq_batch *batch, size_t n_t)
{
    return batch->group * n_t * (batch->bits == LMQ_BITS_16 ? 2 : 1);
}

/* The tile that begins with a token. All before it are full. */
static unsigned char *
amx_tile(const struct lmq_batch *batch, size_t token)
{
    const size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);
    const size_t scales = AMX_TOKENS * sizeof(float);

    return batch->data +
           token / AMX_TOKENS * n_groups *
               (scales + amx_group_bytes(batch, AMX_TOKENS));
}

/* A group of token t of n_t. */
static void
amx_pack_group(const struct lmq_batch *batch, const int16_t *q, size_t t,
               size_t n_t, unsigned char *p)
{
    const size_t chunk = lmq_size_min(batch->group, AMX_CHUNK);
    int8_t low[LMQ_GROUP_MAX], high[LMQ_GROUP_MAX];

    split(q, batch->group, high, low);
    for (size_t k = 0; k < batch->group; k += chunk) {
        if (batch->bits == LMQ_BITS_16) {
            memcpy(p + t * chunk, high + k, chunk);
            p += n_t * chunk;
        }
        memcpy(p + t * chunk, low + k, chunk);
        p += n_t * chunk;
    }
}

static void
amx_pack_tile(const struct lmq_batch *batch, const float *x, size_t stride,
              size_t n_t, unsigned char *p)
{
    const size_t n_groups = lmq_groups_per_row(batch->n_cols, batch->group);
    unsigned char *numbers = p + n_groups * AMX_TOKENS * sizeof(float);

    for (size_t g = 0; g < n_groups; g++) {
        float scale[AMX_TOKENS] = {0};
        for (size_t t = 0; t < n_t; t++) {
            int16_t q[LMQ_GROUP_MAX];
            scale[t] = pack_group(batch, x + t * stride, g * batch->group, q);
            amx_pack_group(batch, q, t, n_t, numbers);
        }
        memcpy(p + g * sizeof(scale), scale, sizeof(scale));
        numbers += amx_group_bytes(batch, n_t);
    }
}

/* Parts are whole tiles. */
static void
amx_batch_pack(const struct lmq_batch *batch, const float *x, size_t stride,
               size_t part, size_t n_parts)
{
    const size_t n_tiles = (batch->n_tokens + AMX_TOKENS - 1) / AMX_TOKENS;

    if (!takes_tiles(batch)) {
        batch_pack(batch, x, stride, part, n_parts);
        return;
    }
    for (size_t tile = n_tiles * part / n_parts;
         tile < n_tiles * (part + 1) / n_parts; tile++) {
        const size_t t = tile * AMX_TOKENS;
        amx_pack_tile(batch, x + t * stride, stride,
                      lmq_size_min(batch->n_tokens - t, AMX_TOKENS),
                      amx_tile(batch, t));
    }
}

/* ---- Tile registers ---- */

/* 0 and 1 are sums, of every other group, 2 and 3 those of the low halves; 4
 * and 5 are weights, 6 and 7 tokens. As text, not by the compiler's header:
 * this says what is read and what is written, and compilers that do not know
 * the registers need not. */
#define TILE_ZERO(n) __asm__ volatile("tilezero %%tmm" #n : :)
#define TILE_LOAD(n, p, row)                                           \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #n                   \
                     :                                                 \
                     : "r"(p), "r"(row),                               \
                       "m"(*(const unsigned char(*)[1024])(p)))
#define TILE_STORE(n, p)                                               \
    __asm__ volatile("tilestored %%tmm" #n ", (%1,%2,1)"               \
                     : "=m"(*(p))                                      \
                     : "r"(p), "r"((size_t)64))
#define TILE_DOT(sum, x, w)                                            \
    __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #x ", %%tmm" #sum : :)

typedef int32_t amx_sums[AMX_SUMS];

/* n_t tokens, whose chunks have so many columns. */
static void
amx_begin(size_t n_t, size_t chunk)
{
    struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t n_rows[16];
    } shape = {.palette = 1};

    for (size_t i = 0; i < 8; i++) {
        const bool is_weights = i == 4 || i == 5;
        shape.row_bytes[i] = (uint16_t)(i >= 6 ? chunk : 64);
        shape.n_rows[i] =
            (uint8_t)(is_weights ? chunk / LMQ_TILE_COLUMNS : n_t);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}

static void
amx_end(void)
{
    __asm__ volatile("tilerelease" : :);
}

/* ---- Product ---- */

/* Some groups of one row tile, and a tile of tokens: what is multiplied next,
 * and the scales of what is added next. */
struct amx_part {
    const unsigned char *w, *x, *w_scale;
    const float *x_scale;
    size_t n_groups, n_chunks; /* of a group */
    size_t n_t, chunk;
    int is_half;
    amx_sums *sums; /* of the last groups */
    /* What is asked for: each group a line of `out`, which is one for each
     * token, and every other one some lines of `next`. */
    const unsigned char *out, *next;
    size_t out_stride, next_at, next_lines;
};

#define AMX_SLOTS ((size_t)4)

LMQ_INLINE amx_sums *
sums_of(const struct amx_part *part, size_t g, int is16)
{
    return &part->sums[is16 ? g * 2 % AMX_SLOTS : g % AMX_SLOTS];
}

#define MULTIPLY_GROUP(first, second, weights, tokens, low_tokens)     \
    do {                                                               \
        TILE_ZERO(first);                                              \
        if (is16)                                                      \
            TILE_ZERO(second);                                         \
        for (size_t c = 0; c < n_chunks; c++) {                        \
            TILE_LOAD(weights, part->w, (size_t)64);                   \
            part->w += LMQ_TILE_ROWS * chunk;                          \
            TILE_LOAD(tokens, part->x, chunk);                         \
            part->x += n_t * chunk;                                    \
            TILE_DOT(first, tokens, weights);                          \
            if (is16) {                                                \
                TILE_LOAD(low_tokens, part->x, chunk);                 \
                part->x += n_t * chunk;                                \
                TILE_DOT(second, low_tokens, weights);                 \
            }                                                          \
        }                                                              \
    } while (0)

/* The next group, which is odd or not. */
LMQ_INLINE void
multiply_group(struct amx_part *part, int is_odd, int is_usual, int is16)
{
    const size_t n_chunks = is_usual ? 1 : part->n_chunks;
    const size_t chunk = is_usual ? AMX_CHUNK : part->chunk;
    const size_t n_t = is_usual ? AMX_TOKENS : part->n_t;

    if (is_odd)
        MULTIPLY_GROUP(1, 3, 5, 7, 6);
    else
        MULTIPLY_GROUP(0, 2, 4, 6, 7);
}
#undef MULTIPLY_GROUP

LMQ_INLINE void
store_sums(amx_sums *sums, int is_odd, int is16)
{
    if (is_odd) {
        TILE_STORE(1, sums);
        if (is16)
            TILE_STORE(3, sums + 1);
    } else {
        TILE_STORE(0, sums);
        if (is16)
            TILE_STORE(2, sums + 1);
    }
}

/* As add_group() of kernels_int8_body.h. */
LMQ_INLINE void
add_sums(struct amx_part *part, const amx_sums *sums, int is16, vr *sum)
{
    const vr s = part->is_half ? vr_load_f16(part->w_scale)
                               : vr_load(part->w_scale);

    LMQ_UNROLL for (size_t t = 0; t < AMX_TOKENS; t++) {
        __m512i i = _mm512_load_si512(*sums + t * LMQ_TILE_ROWS);
        if (is16) /* 256 * high + low */
            i = _mm512_add_epi32(
                _mm512_slli_epi32(i, 8),
                _mm512_load_si512(sums[1] + t * LMQ_TILE_ROWS));
        sum[t] = vr_fma(_mm512_cvtepi32_ps(i),
                        vr_mul(s, vr_set1(part->x_scale[t])), sum[t]);
    }
    part->w_scale += LMQ_TILE_ROWS * (part->is_half ? 2 : 4);
    part->x_scale += AMX_TOKENS;
}

/* What one instruction takes 16 cycles for is ready 52 cycles later: so sums
 * are stored one group later, and of one product read another one later. */
LMQ_INLINE void
amx_step(struct amx_part *part, size_t g, int is_odd, int is_usual, int is16,
         vr *sum)
{
    const size_t lag = is16 ? 1 : 2;

    if (g < part->n_groups)
        multiply_group(part, is_odd, is_usual, is16);
    if (g >= 1 && g - 1 < part->n_groups)
        store_sums(sums_of(part, g - 1, is16), !is_odd, is16);
    if (g >= lag && g - lag < part->n_groups)
        add_sums(part, sums_of(part, g - lag, is16), is16, sum);
}

LMQ_INLINE void
amx_multiply(struct amx_part part, int is_usual, int is16, vr *sum)
{
    for (size_t g = 0; g < part.n_groups + 2; g += 2) {
        amx_step(&part, g, 0, is_usual, is16, sum);
        if (g < part.n_t) {
            lmq_prefetch(part.out, g * part.out_stride);
            lmq_prefetch(part.out, (g + 1) * part.out_stride);
        }
        amx_step(&part, g + 1, 1, is_usual, is16, sum);
        for (size_t i = 0; i < part.next_lines; i++, part.next_at += LMQ_LINE)
            lmq_prefetch_second(part.next, part.next_at);
    }
}

/* ---- Many tokens ---- */

/* Of the activations, what stays in the second level cache. */
#define AMX_BLOCK_BYTES ((size_t)1 << 20)

/* Columns whose weights stay in the first. */
#define AMX_COLUMNS LMQ_BLOCK_COLS
_Static_assert(LMQ_TILE_ROWS * AMX_COLUMNS + AMX_SLOTS * sizeof(amx_sums) <=
                       LMQ_WIDE_BYTES &&
                   (AMX_BLOCK_BYTES / (AMX_TOKENS * AMX_COLUMNS) + 1) *
                           AMX_SUMS * sizeof(float) <= LMQ_SUMS_BYTES,
               "room for them as 8 bits, and where there are more columns for "
               "the sums of as many tiles of tokens as a block then has");

/* Behind the weights of a part. */
static amx_sums *
amx_sums_of(const struct block *block)
{
    return (amx_sums *)(void *)(block->scratch + LMQ_TILE_ROWS * AMX_COLUMNS);
}

/* Tokens from t on, of a block. */
LMQ_INLINE void
amx_tokens(const struct part *part, const struct block *block, size_t group,
           size_t t, int is16)
{
    const struct lmq_batch *batch = block->batch;
    const size_t n_t = lmq_size_min(block->token1 - t, AMX_TOKENS);
    const size_t number = (t - block->token0) / AMX_TOKENS;
    const float *scales = (const float *)(const void *)amx_tile(batch, t);
    float *kept = (float *)(void *)part->kept + number * AMX_SUMS;
    float *out = part->out + t * part->stride;
    struct amx_part tokens = {
        .w = part->from.w,
        .x = (const unsigned char *)(scales + block->n_groups * AMX_TOKENS) +
             group * amx_group_bytes(batch, n_t),
        .w_scale = part->from.scale,
        .x_scale = scales + group * AMX_TOKENS,
        .n_groups = part->n_groups,
        .n_chunks = (batch->group + AMX_CHUNK - 1) / AMX_CHUNK,
        .n_t = n_t,
        .chunk = lmq_size_min(batch->group, AMX_CHUNK),
        .is_half = part->from.is_half,
        .sums = amx_sums_of(block),
        .out = (const unsigned char *)(part->ends ? out : kept),
        .out_stride = part->ends ? part->stride * sizeof(*out) : 0,
    };
    vr sum[AMX_TOKENS];

    if (part->next.p != NULL) {
        struct lmq_asking asking = lmq_asking_of(&part->next, number,
                                                 part->n_groups / 2 + 1);
        tokens.next = part->next.p;
        tokens.next_at = asking.at;
        tokens.next_lines = asking.together;
    }
    LMQ_UNROLL for (size_t i = 0; i < AMX_TOKENS; i++)
        sum[i] = part->begins ? vr_set1(0.0f)
                              : vr_load(kept + i * LMQ_TILE_ROWS);
    if (n_t < AMX_TOKENS)
        amx_begin(n_t, tokens.chunk);
    if (n_t == AMX_TOKENS && batch->group == AMX_CHUNK) /* as a rule */
        amx_multiply(tokens, 1, is16, sum);
    else
        amx_multiply(tokens, 0, is16, sum);
    if (n_t < AMX_TOKENS)
        amx_begin(AMX_TOKENS, tokens.chunk);
    LMQ_UNROLL for (size_t i = 0; i < AMX_TOKENS; i++)
        if (!part->ends)
            vr_store(kept + i * LMQ_TILE_ROWS, sum[i]);
        else if (i < n_t)
            store_rows(part, 0, (vf){{sum[i]}}, out + i * part->stride);
}

static void
amx_product_8(const struct part *part, const struct block *block, size_t group)
{
    for (size_t t = block->token0; t < block->token1; t += AMX_TOKENS)
        amx_tokens(part, block, group, t, 0);
}

static void
amx_product_16(const struct part *part, const struct block *block, size_t group)
{
    for (size_t t = block->token0; t < block->token1; t += AMX_TOKENS)
        amx_tokens(part, block, group, t, 1);
}

static void
amx_product(const struct lmq_tiles *tiles, size_t tile0, size_t tile1,
            const struct lmq_batch *batch, float *out, size_t stride,
            void *scratch)
{
    struct block block = block_of(tiles, batch, out, stride, scratch);

    if (!takes_tiles(batch)) {
        product(tiles, tile0, tile1, batch, out, stride, scratch);
        return;
    }
    block.tile_tokens = AMX_TOKENS;
    block.columns = AMX_COLUMNS;
    block.askers = 1;
    block.is_signed = true;
    block.multiply = block.is16 ? amx_product_16 : amx_product_8;
    memset(amx_sums_of(&block), 0, AMX_SLOTS * sizeof(amx_sums));
    amx_begin(AMX_TOKENS, lmq_size_min(batch->group, AMX_CHUNK));
    const size_t step = block_tokens(&block, AMX_BLOCK_BYTES);
    while (block_next(&block, step))
        for (size_t tile = tile0; tile < tile1; tile++)
            multiply_block(&block, tile, 1, tile + 1 == tile1);
    amx_end();
}

/* What a group of 16 rows and tokens takes at least: the product, and its sums
 * to memory and from there, scaled and added. */
static double
amx_peak(size_t rounds)
{
    amx_sums sums[2] __attribute__((aligned(64))) = {{0}};
    const float scale[AMX_TOKENS] = {0};
    vr sum[AMX_TOKENS], total = vr_set1(0.0f);
    struct amx_part part = {0};

    amx_begin(AMX_TOKENS, AMX_CHUNK);
    TILE_LOAD(4, (const unsigned char *)sums, (size_t)64);
    TILE_LOAD(6, (const unsigned char *)sums, (size_t)64);
    TILE_ZERO(2);
    LMQ_UNROLL for (size_t t = 0; t < AMX_TOKENS; t++)
        sum[t] = vr_set1((float)t);
    for (size_t round = 0; round < rounds; round++) {
        TILE_ZERO(0);
        TILE_DOT(0, 6, 4);
        TILE_STORE(2, &sums[1]);
        part.w_scale = (const unsigned char *)scale;
        part.x_scale = scale;
        add_sums(&part, &sums[0], 0, sum);
    }
    amx_end();
    LMQ_UNROLL for (size_t t = 0; t < AMX_TOKENS; t++)
        total = vr_add(total, sum[t]);
    return (double)(rounds * 2 * AMX_TOKENS * LMQ_TILE_ROWS * AMX_CHUNK) +
           (sum_register(total) == 1.0f ? 1 : 0);
}

#define AMX_KERNELS                                                    \
    .passes_16 = 2, .batch_pack = amx_batch_pack,                      \
    .product = amx_product, .peak_int8 = amx_peak
