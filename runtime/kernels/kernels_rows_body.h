/*
 * kernels_rows_body.h - products with rows of floats; a part of
 * kernels_vector_body.h.
 *
 * Both products compute tiles of rows x tokens whose sums stay in registers,
 * the tile sizes constant in each copy of the inlined function.
 */

/*
 * Blocks that keep near what the inner loops read again and again: a tile's
 * tokens in the first level cache, a block's rows and tokens in the second.
 * Tokens are copied into scratch before all rows go by, [block of columns][tile
 * of tokens][step of 16 columns][token][16], as in place their rows, powers of
 * two apart, would fight for the same few cache lines; the lane sums of a block
 * wait there from one block of columns to the next. Short rows are one block,
 * and there are more of them. For so many tokens that it pays, rows of other
 * types are widened to floats first.
 */
#define BLOCK_ROWS ((size_t)32)
#define BLOCK_ROWS_WIDE ((size_t)64) /* of wide rows that are widened: so tokens
                                        go by half as often */
#define BLOCK_COLS LMQ_BLOCK_COLS
#define BLOCK_FLOATS (BLOCK_ROWS_WIDE * BLOCK_COLS)
#define WIDENING_LEAST ((size_t)36) /* tokens */

/* Steps of columns after which a tile asks for some of what comes next: more
 * than a few lines at a time would have to wait for each other. */
#define ASKING_STEPS ((size_t)8)
#define ASKING_LEAST_TILES ((size_t)2) /* of tokens */

_Static_assert(LMQ_WIDE_BYTES == BLOCK_FLOATS * sizeof(float) &&
                   LMQ_SUMS_BYTES ==
                       BLOCK_ROWS_WIDE * LMQ_TOKENS_MOST * LANES *
                           sizeof(float) &&
                   LMQ_TOGETHER_MOST >= LMQ_TOKENS_MOST * BLOCK_COLS &&
                   LMQ_TOKENS_MOST % LMQ_TILE_T == 0 && LMQ_TILE_T <= 6,
               "scratch has room for blocks, and they have whole tiles");

/* With few tokens the memory is the limit, and its prefetchers do not see
 * through short rows: so far before their use these are asked for; and so far
 * long ones of which all columns go by. */
#define NEAR_BYTES ((size_t)3072)
#define ALONG_BYTES ((size_t)4096)

/* What stays near from one row to the next; processors have this or more. */
#define FIRST_LEVEL_BYTES ((size_t)32 << 10)

struct rows_job {
    const struct lmq_rows *rows;
    const unsigned char *data; /* of row0, from a column on */
    size_t stride, column;
    enum lmq_row_type type;
    const float *x;
    size_t x_stride;
    float *out;
    size_t out_stride;
    size_t col0, col1;     /* of this block */
    size_t row0, row1, row_end;
    size_t token0, token1;
    float *wide;           /* [BLOCK_FLOATS] */
    float *sums; /* [tile of tokens][tile of rows][row][token][LANES] */
    const float *packed;   /* this block's, or one token */
    struct lmq_wanted next; /* the tiles of tokens ask for it */
    bool is_short;          /* so are the rows; few tokens ask for bytes that */
    size_t ahead;           /* are so far ahead, */
    size_t leap, behind;    /* or from byte `leap` of a row on so far */
    size_t apart;           /* rows from one of a tile to the next */
};

/* Tokens in the tile that begins when `n` are left. Few sizes, as each is a
 * copy of the code. */
LMQ_INLINE size_t
tile_width(size_t n, size_t most)
{
    if (n >= most)
        return most;
    if (n >= 4)
        return 4;
    return n >= 2 ? 2 : 1;
}

/* Columns of the block, as they are packed: whole vectors. */
static size_t
block_width(const struct rows_job *job)
{
    return (job->col1 - job->col0 + LANES - 1) / LANES * LANES;
}

/* Tokens of the block side by side, as the tiles will read them: one stream,
 * padded with zeros to whole vectors. */
static void
rows_pack(const struct rows_job *job, float *to)
{
    for (size_t t = job->token0, n_t; t < job->token1; t += n_t) {
        n_t = tile_width(job->token1 - t, LMQ_TILE_T);
        for (size_t i = job->col0; i < job->col1; i += LANES)
            for (size_t j = 0; j < n_t; j++, to += LANES)
                vf_store(to, load_some(job->x + (t + j) * job->x_stride + i,
                                       job->col1 - i));
    }
}

/* What comes after byte `at` of a tile's rows. */
LMQ_INLINE void
ask_for_rows(const struct rows_job *job, const unsigned char *const *p,
             size_t at, size_t n_r)
{
    if (job->is_short) {
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            lmq_prefetch(p[r], at + job->ahead);
        return;
    }
    at += at < job->leap ? job->ahead : job->behind;
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        lmq_prefetch_second(p[r], at);
}

/* One step: `offset` columns behind `column`, and x of them. */
LMQ_INLINE void
add_step(const unsigned char *const *p, size_t column, size_t offset,
         const float *x, enum lmq_row_type type, size_t n_r, size_t n_t,
         size_t part, size_t n_parts, vr acc[LMQ_TILE_T][LMQ_TILE_R][REGISTERS])
{
    LMQ_UNROLL for (size_t j = 0; j < n_parts; j++) {
        const size_t lane = (part + j) * LMQ_WIDTH;
        vr v[LMQ_TILE_T];
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
            v[t] = vr_load(x + t * LANES + lane);
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++) {
            vr w = load_columns(p[r], type, column, offset + lane);
            LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
                acc[t][r][j] = vr_fma(w, v[t], acc[t][r][j]);
        }
    }
}

/* Adds the full steps of columns to registers [part, part + n_parts) of the
 * lane sums. x: the tile's tokens, packed. */
LMQ_INLINE void
add_columns(const struct rows_job *job, const unsigned char *const *p,
            const float *x, enum lmq_row_type type, size_t n_r, size_t n_t,
            size_t part, size_t n_parts, struct lmq_asking *asking,
            vf sum[LMQ_TILE_T][LMQ_TILE_R])
{
    const size_t from = job->column;
    vr acc[LMQ_TILE_T][LMQ_TILE_R][REGISTERS];

    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            LMQ_UNROLL for (size_t j = 0; j < n_parts; j++)
                acc[t][r][j] = sum[t][r].r[part + j];
    for (size_t i = job->col0; i + LANES <= job->col1; i += LANES) {
        const size_t at = i - from;
        const size_t column =
            type == LMQ_ROW_Q8 ? at / Q8_BLOCK * Q8_BLOCK : at;
        const bool is_two =
            (type == LMQ_ROW_Q8 || (n_t == 1 && job->apart > 1)) &&
            at == column && i + 2 * LANES <= job->col1;
        if (n_t < LMQ_TILE_T && job->apart == 1) {
            ask_for_rows(job, p, lmq_row_bytes(type, at), n_r);
        } else if (part == 0 && (i - job->col0) / LANES % ASKING_STEPS == 0) {
            lmq_ask(&job->next, asking);
        }
        if (is_two) { /* few instructions, and a block's scale is read once */
            add_step(p, column, 0, x, type, n_r, n_t, part, n_parts, acc);
            x += n_t * LANES;
            i += LANES;
            add_step(p, column, LANES, x, type, n_r, n_t, part, n_parts, acc);
        } else {
            add_step(p, column, at - column, x, type, n_r, n_t, part, n_parts,
                     acc);
        }
        x += n_t * LANES;
    }
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            LMQ_UNROLL for (size_t j = 0; j < n_parts; j++)
                sum[t][r].r[part + j] = acc[t][r][j];
}

/* Adds the last columns of the rows, fewer than LANES. */
LMQ_INLINE void
add_rest(const struct rows_job *job, const unsigned char *const *p,
         const float *x, enum lmq_row_type type, size_t n_r, size_t n_t,
         vf sum[LMQ_TILE_T][LMQ_TILE_R])
{
    const size_t n = job->rows->n_cols, column = n / LANES * LANES;

    x += (column - job->col0) * n_t;
    LMQ_UNROLL for (size_t r = 0; r < n_r; r++) {
        vf w = load_row(p[r], type, column - job->column, n - job->column);
        LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
            vf v = load_some(x + t * LANES, n_t == 1 ? n - column : LANES);
            sum[t][r] = vf_fma(w, v, sum[t][r]);
        }
    }
}

/* A sum for each of n rows, which are so many apart. */
LMQ_INLINE void
put_sums(const vf *sums, size_t n, size_t apart, float *out)
{
    float some[LMQ_TILE_R];

    if (apart == 1) {
        vf_sums(sums, n, out);
        return;
    }
    vf_sums(sums, n, some);
    LMQ_UNROLL for (size_t i = 0; i < n; i++)
        out[i * apart] = some[i];
}

/* n_r rows x n_t tokens over the block's columns. Between blocks of columns the
 * lane sums wait in memory: a float there is what it was in a register, so
 * blocks change no bits. */
LMQ_INLINE void
rows_tile(const struct rows_job *job, size_t row, size_t token,
          const float *x, enum lmq_row_type type, size_t n_r, size_t n_t,
          struct lmq_asking *asking)
{
    /* A tile has LMQ_TILE_R * LMQ_TILE_T registers for sums: if the vectors
     * are longer, it goes through its columns once for each of their
     * registers. */
    const size_t n_parts =
        n_r * n_t * REGISTERS <= LMQ_TILE_R * LMQ_TILE_T ? REGISTERS : 1;
    const int is_first = job->col0 == 0;
    const int is_last = job->col1 == job->rows->n_cols;
    const unsigned char *p[LMQ_TILE_R];
    float *sums = is_first && is_last
                      ? NULL
                      : job->sums + ((token - job->token0) * BLOCK_ROWS_WIDE +
                                     (row - job->row0) * n_t) * LANES;
    vf sum[LMQ_TILE_T][LMQ_TILE_R];

    LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
        p[r] = job->data + (row - job->row0 + r * job->apart) * job->stride;
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
            sum[t][r] = is_first
                ? vf_set1(0.0f)
                : vf_load(sums + (r * n_t + t) * LANES);
    LMQ_UNROLL for (size_t part = 0; part < REGISTERS; part += n_parts)
        add_columns(job, p, x, type, n_r, n_t, part, n_parts, asking, sum);
    if (is_last && job->rows->n_cols % LANES != 0)
        add_rest(job, p, x, type, n_r, n_t, sum);
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
        if (is_last)
            put_sums(sum[t], n_r, job->apart,
                     job->out + (token + t) * job->out_stride + row);
        else
            LMQ_UNROLL for (size_t r = 0; r < n_r; r++)
                vf_store(sums + (r * n_t + t) * LANES, sum[t][r]);
    }
}

/* One tile of tokens, all rows of the block. */
LMQ_INLINE void
rows_strip(const struct rows_job *job, size_t token, const float *x,
           enum lmq_row_type type, size_t n_t)
{
    size_t row = job->row0;
    struct lmq_asking asking = {0};

    if (n_t == LMQ_TILE_T && job->next.p != NULL)
        asking = lmq_asking_of(
            &job->next, (token - job->token0) / LMQ_TILE_T,
            (job->row1 - row + LMQ_TILE_R - 1) / LMQ_TILE_R *
                ((block_width(job) / LANES + ASKING_STEPS - 1) /
                 ASKING_STEPS));
    for (; n_t == 1 && job->apart > 1 && row < job->row1; row++)
        rows_tile(job, row, token, x, type, LMQ_TILE_R, n_t, &asking);
    for (; LMQ_TILE_R > 1 && row + LMQ_TILE_R <= job->row1; row += LMQ_TILE_R)
        rows_tile(job, row, token, x, type, LMQ_TILE_R, n_t, &asking);
    for (; row < job->row1; row++)
        rows_tile(job, row, token, x, type, 1, n_t, &asking);
}

/* All rows and tokens of the block. In each case n_t is a constant. */
LMQ_INLINE void
rows_block(const struct rows_job *job, enum lmq_row_type type)
{
    const float *x = job->packed;

    for (size_t t = job->token0, n_t; t < job->token1; t += n_t) {
        n_t = tile_width(job->token1 - t, LMQ_TILE_T);
        if (n_t == LMQ_TILE_T)
            rows_strip(job, t, x, type, LMQ_TILE_T);
        else if (LMQ_TILE_T > 4 && n_t == 4)
            rows_strip(job, t, x, type, 4);
        else if (LMQ_TILE_T > 2 && n_t == 2)
            rows_strip(job, t, x, type, 2);
        else
            rows_strip(job, t, x, type, 1);
        x += n_t * block_width(job);
    }
}

/* The type is a constant in each copy of the loops: no switch inside. */
static void
rows_f32(const struct rows_job *job)
{
    rows_block(job, LMQ_ROW_F32);
}

static void
rows_f16(const struct rows_job *job)
{
    rows_block(job, LMQ_ROW_F16);
}

static void
rows_bf16(const struct rows_job *job)
{
    rows_block(job, LMQ_ROW_BF16);
}

static void
rows_q8(const struct rows_job *job)
{
    rows_block(job, LMQ_ROW_Q8);
}

/* The block's rows as floats, a constant type in each case. */
LMQ_INLINE void
rows_widen(const struct rows_job *job, enum lmq_row_type type, float *to)
{
    const unsigned char *row = job->data;

    for (size_t r = job->row0; r < job->row1; r++, row += job->stride)
        for (size_t i = job->col0; i < job->col1; i += LANES, to += LANES)
            vf_store(to, load_row(row, type, i, job->rows->n_cols));
}

static void
rows_widen_any(struct rows_job *job)
{
    if (job->type == LMQ_ROW_F16)
        rows_widen(job, LMQ_ROW_F16, job->wide);
    else if (job->type == LMQ_ROW_BF16)
        rows_widen(job, LMQ_ROW_BF16, job->wide);
    else
        rows_widen(job, LMQ_ROW_Q8, job->wide);
    job->data = (const unsigned char *)job->wide;
    job->stride = block_width(job) * sizeof(float);
    job->column = job->col0;
    job->type = LMQ_ROW_F32;
}

/* How rows and tokens are cut. One token needs no packing and no blocks of
 * columns: it is read in place, its sums stay in registers from the first
 * column to the last, and the rows go by as one stream. */
struct rows_plan {
    bool is_one;
    bool packs_blocks; /* all columns of a tile of tokens would be too many */
    size_t n_rows, n_cols, n_tokens;
};

/* Tokens that meet a block of rows. */
static size_t
tokens_together(size_t n_cols, size_t n_tokens)
{
    const size_t n_tiles = (n_tokens + LMQ_TILE_T - 1) / LMQ_TILE_T;
    const size_t most = LMQ_TOGETHER_MOST / n_cols;
    const size_t least =
        n_cols > LMQ_WIDE_COLS ? LMQ_TOKENS_WIDE : LMQ_TOKENS_LEAST;
    size_t n = LMQ_TOGETHER_NEAR / n_cols + LMQ_TILE_T - 1;

    n = n < least ? least : n;
    n = n > LMQ_TOKENS_MOST ? LMQ_TOKENS_MOST : n;
    n = most >= LMQ_TILE_T && n > most ? most : n;
    return LMQ_TILE_T * lmq_even_part(n_tiles, n / LMQ_TILE_T);
}

static bool
widens(const struct lmq_rows *rows, size_t n_tokens)
{
    return rows->type != LMQ_ROW_F32 && n_tokens >= WIDENING_LEAST;
}

static struct rows_plan
plan_rows(const struct lmq_rows *rows, size_t n_tokens)
{
    const size_t n = rows->n_cols;
    const bool is_one = n_tokens == 1;
    const bool is_wide = n > LMQ_WIDE_COLS && widens(rows, n_tokens);
    const size_t n_blocks = is_one ? 1 : (n + BLOCK_COLS - 1) / BLOCK_COLS;
    const size_t step =
        ((n + n_blocks - 1) / n_blocks + LANES - 1) / LANES * LANES;

    return (struct rows_plan){
        .is_one = is_one,
        .packs_blocks = n_blocks * step > LMQ_TOGETHER_MOST / LMQ_TILE_T,
        .n_rows = is_wide                  ? BLOCK_ROWS_WIDE
                  : is_one || n_blocks > 1 ? BLOCK_ROWS
                                           : BLOCK_ROWS * BLOCK_COLS / step,
        .n_cols = step,
        .n_tokens = is_one ? 1 : tokens_together(n_blocks * step, n_tokens),
    };
}

/* What comes behind the block: its rows' next columns, or the first ones of the
 * next rows. */
static struct lmq_wanted
wanted_next(const struct rows_job *job, const struct rows_plan *plan)
{
    const struct lmq_rows *rows = job->rows;
    const bool ends = job->col1 == rows->n_cols;
    const size_t column = ends ? 0 : job->col1;
    const size_t row = ends ? job->row1 : job->row0;
    const size_t n_rows = job->row_end - row, n_cols = rows->n_cols - column;
    const size_t n_bytes = lmq_row_bytes(
        rows->type, n_cols < plan->n_cols ? n_cols : plan->n_cols);
    const size_t n_tiles = (job->token1 - job->token0) / LMQ_TILE_T;

    if (plan->is_one || n_rows == 0 || n_tiles < ASKING_LEAST_TILES)
        return (struct lmq_wanted){.p = NULL};
    return (struct lmq_wanted){
        .p = (const unsigned char *)rows->data + row * rows->stride +
             lmq_row_bytes(rows->type, column),
        .n_rows = n_rows < plan->n_rows ? n_rows : plan->n_rows,
        .stride = rows->stride,
        .n_lines = (n_bytes + LMQ_LINE - 1) / LMQ_LINE,
        .n_askers = n_tiles,
    };
}

/* How far ahead tiles of few tokens ask: of short rows for the same columns of
 * a later tile, of all columns for those that follow, behind the end for those
 * of the next tile, else for the same columns of the next tile but one. */
static void
look_ahead(struct rows_job *job)
{
    const size_t tile = LMQ_TILE_R * job->stride;
    const bool is_whole = job->col1 - job->col0 == job->rows->n_cols;

    job->is_short = 2 * tile <= NEAR_BYTES;
    job->leap = SIZE_MAX;
    job->ahead = job->is_short ? NEAR_BYTES / tile * tile : 2 * tile;
    if (is_whole && !job->is_short) {
        job->ahead = ALONG_BYTES;
        job->leap = job->stride > ALONG_BYTES ? job->stride - ALONG_BYTES : 0;
        job->behind = ALONG_BYTES + tile - job->stride;
    }
}

/* A block of rows and the job's tokens, which are packed unless the plan says
 * otherwise. */
static void
multiply_rows_block(struct rows_job *job, const struct rows_plan *plan,
                    float *packed)
{
    static void (*const blocks[])(const struct rows_job *) = {
        [LMQ_ROW_F32] = rows_f32,
        [LMQ_ROW_F16] = rows_f16,
        [LMQ_ROW_BF16] = rows_bf16,
        [LMQ_ROW_Q8] = rows_q8,
    };
    const struct lmq_rows *rows = job->rows;
    const size_t n_tokens = job->token1 - job->token0;

    for (size_t c = 0; c < rows->n_cols; c = job->col1) {
        job->col0 = c;
        job->col1 =
            rows->n_cols - c > plan->n_cols ? c + plan->n_cols : rows->n_cols;
        job->data =
            (const unsigned char *)rows->data + job->row0 * rows->stride;
        job->stride = rows->stride;
        job->column = 0;
        job->type = rows->type;
        job->next = wanted_next(job, plan);
        if (widens(rows, n_tokens))
            rows_widen_any(job);
        look_ahead(job);
        if (plan->is_one) {
            job->packed = job->x;
        } else if (plan->packs_blocks) {
            rows_pack(job, packed);
            job->packed = packed;
        } else {
            job->packed = packed + c * n_tokens;
        }
        blocks[job->type](job);
    }
}

/* All columns of the job's tokens. */
static void
rows_pack_all(struct rows_job *job, const struct rows_plan *plan,
              float *packed)
{
    const size_t n = job->rows->n_cols;

    for (size_t c = 0; c < n; c = job->col1) {
        job->col0 = c;
        job->col1 = n - c > plan->n_cols ? c + plan->n_cols : n;
        rows_pack(job, packed + c * (job->token1 - job->token0));
    }
}

/* From each part of the rows to the next, if a tile has a row of each; 0 if it
 * had better have neighbours. Parts are streams without an end, which the
 * memory's prefetchers like best, but activations that have to come from the
 * second level with every row stand in their way, unless rows are much longer.
 * Parts that are a multiple of a large page apart may lie in one bank of the
 * memory. */
static size_t
parts_apart(const struct lmq_rows *rows, size_t n_rows, size_t n_tokens)
{
    const size_t page = (size_t)2 << 20, near = (size_t)32 << 10;
    const size_t tile =
        rows->n_cols * sizeof(float) + LMQ_TILE_R * rows->stride;
    size_t part = n_rows / LMQ_TILE_R;

    if (!rows->parts || LMQ_TILE_R == 1 || n_tokens != 1 ||
        (rows->type != LMQ_ROW_F32 && tile > FIRST_LEVEL_BYTES))
        return 0;
    while (part > 0 && (part * rows->stride + near) % page < 2 * near)
        part--;
    return part;
}

static void
rows_product(const struct lmq_rows *rows, size_t row0, size_t row1,
             const float *x, size_t x_stride, size_t n_tokens, float *out,
             size_t out_stride, void *scratch)
{
    float *wide = scratch, *sums = wide + BLOCK_FLOATS;
    float *packed = rows->n_cols > BLOCK_COLS
                        ? sums + LMQ_SUMS_BYTES / sizeof(float)
                        : sums;
    struct rows_job job = {
        .rows = rows, .x = x, .x_stride = x_stride, .out = out,
        .out_stride = out_stride, .row_end = row1, .wide = wide, .sums = sums,
        .token1 = n_tokens,
    };

    if (row0 >= row1) /* nothing to copy the tokens for */
        return;
    const struct rows_plan plan = plan_rows(rows, n_tokens);
    job.apart = parts_apart(rows, row1 - row0, n_tokens);
    if (job.apart > 1) {
        job.row0 = row0;
        job.row1 = row0 + job.apart;
        multiply_rows_block(&job, &plan, packed);
        row0 += LMQ_TILE_R * job.apart;
    }
    job.apart = 1;
    for (size_t t = 0; t < n_tokens; t = job.token1) {
        job.token0 = t;
        job.token1 =
            n_tokens - t > plan.n_tokens ? t + plan.n_tokens : n_tokens;
        if (!plan.is_one && !plan.packs_blocks)
            rows_pack_all(&job, &plan, packed);
        for (size_t r = row0; r < row1; r = job.row1) {
            job.row0 = r;
            job.row1 = row1 - r > plan.n_rows ? r + plan.n_rows : row1;
            multiply_rows_block(&job, &plan, packed);
        }
    }
}

/* ---- Sums of rows ---- */

/* Vectors of columns whose sums for LMQ_TILE_T tokens fit the registers. */
#define MIX_VECTORS                                                    \
    (LMQ_TILE_R > REGISTERS ? LMQ_TILE_R / REGISTERS : (size_t)1)

/* n_v vectors of columns x n_t tokens; only a single vector may be ragged. The
 * sums stay in registers while all rows go by, in ascending order, as the
 * contract says. */
LMQ_INLINE void
mix_tile(const struct lmq_rows *rows, size_t row0, size_t row1, size_t column,
         const float *weight, size_t weight_stride, float *out,
         size_t out_stride, enum lmq_row_type type, size_t n_v, size_t n_t)
{
    const size_t n = n_v > 1 ? n_v * LANES : rows->n_cols - column;
    const unsigned char *row =
        (const unsigned char *)rows->data + row0 * rows->stride;
    const size_t ahead = (NEAR_BYTES / rows->stride + 1) * rows->stride +
                         lmq_row_bytes(type, column);
    vf sum[LMQ_TILE_R][LMQ_TILE_T], x;

    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            sum[v][t] = load_some(out + t * out_stride + column + v * LANES,
                                  n - v * LANES);
    for (size_t r = row0; r < row1; r++, row += rows->stride) {
        if (n_t < LMQ_TILE_T)
            LMQ_UNROLL for (size_t i = 0; i < lmq_row_bytes(type, n_v * LANES);
                            i += LMQ_LINE)
                lmq_prefetch(row, ahead + i);
        if (n_v == 1)
            x = load_row(row, type, column, rows->n_cols);
        LMQ_UNROLL for (size_t i = 0; i < n_v * REGISTERS; i++) {
            const size_t v = i / REGISTERS, j = i % REGISTERS;
            vr y = n_v == 1 ? x.r[j]
                            : load_columns(row, type, column, i * LMQ_WIDTH);
            LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
                sum[v][t].r[j] =
                    vr_fma(vr_set1(weight[t * weight_stride + r]), y,
                           sum[v][t].r[j]);
        }
    }
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            store_some(out + t * out_stride + column + v * LANES, sum[v][t],
                       n - v * LANES);
}

/* All columns for n_t tokens. */
LMQ_INLINE void
mix_strip(const struct lmq_rows *rows, size_t row0, size_t row1,
          const float *weight, size_t weight_stride, float *out,
          size_t out_stride, enum lmq_row_type type, size_t n_t)
{
    const size_t wide = MIX_VECTORS * LANES;
    size_t c = 0;

    for (; MIX_VECTORS > 1 && c + wide <= rows->n_cols; c += wide)
        mix_tile(rows, row0, row1, c, weight, weight_stride, out, out_stride,
                 type, MIX_VECTORS, n_t);
    for (; c < rows->n_cols; c += LANES)
        mix_tile(rows, row0, row1, c, weight, weight_stride, out, out_stride,
                 type, 1, n_t);
}

/* All tokens. In each case type and n_t are constants. */
LMQ_INLINE void
mix_type(const struct lmq_rows *rows, size_t row0, size_t row1,
         const float *weight, size_t weight_stride, size_t n_tokens,
         float *out, size_t out_stride, enum lmq_row_type type)
{
    for (size_t t = 0, n_t; t < n_tokens; t += n_t) {
        const float *w = weight + t * weight_stride;
        float *o = out + t * out_stride;
        n_t = tile_width(n_tokens - t, LMQ_TILE_T);
        if (n_t == LMQ_TILE_T)
            mix_strip(rows, row0, row1, w, weight_stride, o, out_stride, type,
                      LMQ_TILE_T);
        else if (LMQ_TILE_T > 4 && n_t == 4)
            mix_strip(rows, row0, row1, w, weight_stride, o, out_stride, type,
                      4);
        else if (LMQ_TILE_T > 2 && n_t == 2)
            mix_strip(rows, row0, row1, w, weight_stride, o, out_stride, type,
                      2);
        else
            mix_strip(rows, row0, row1, w, weight_stride, o, out_stride, type,
                      1);
    }
}

static void
rows_mix(const struct lmq_rows *rows, size_t row0, size_t row1,
         const float *weight, size_t weight_stride, size_t n_tokens,
         float *out, size_t out_stride)
{
    switch (rows->type) {
    case LMQ_ROW_F32:
        mix_type(rows, row0, row1, weight, weight_stride, n_tokens, out,
                 out_stride, LMQ_ROW_F32);
        break;
    case LMQ_ROW_F16:
        mix_type(rows, row0, row1, weight, weight_stride, n_tokens, out,
                 out_stride, LMQ_ROW_F16);
        break;
    case LMQ_ROW_BF16:
        mix_type(rows, row0, row1, weight, weight_stride, n_tokens, out,
                 out_stride, LMQ_ROW_BF16);
        break;
    case LMQ_ROW_Q8:
        mix_type(rows, row0, row1, weight, weight_stride, n_tokens, out,
                 out_stride, LMQ_ROW_Q8);
        break;
    }
}
