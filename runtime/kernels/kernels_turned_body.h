/*
 * kernels_turned_body.h - products with rows that lie across the lanes; a part
 * of kernels_vector_body.h.
 *
 * To add the lanes of a sum up takes as many instructions as the products of a
 * short row. Where many tokens meet the same short rows these are turned
 * first: a vector is one column of 16 rows, and what was a lane is a vector of
 * its own. The sums are added in the same order, so they have the same bits.
 */

/* Rows of a tile. */
#define TURNED_ROWS ((size_t)LMQ_TURNED_V * LANES)

_Static_assert(LMQ_TURNED_ROWS % TURNED_ROWS == 0, "tiles are whole");

/* The lanes as their sums meet: 0 and 8, 4 and 12, these two, ...; so of what
 * is not added up yet there is one sum of 1, 2, 4 and 8 lanes at most. The
 * order is its own inverse. */
static const unsigned char turned_lane[LANES] = {
    0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

#define TURNED_LEVELS 4

/* Few sums, where storing a register is dear: six tokens, and three times as
 * many that wait. Behind the products of longer rows stores are hidden. */
#define TURNED_FEW_COLS 128
#define TURNED_FEW_T 6
#define TURNED_FEW_LEVELS 3
#define TURNED_MOST_T \
    (LMQ_TURNED_T > TURNED_FEW_T ? LMQ_TURNED_T : TURNED_FEW_T)

/* Of the lane that is number i: so many sums wait for it. */
LMQ_INLINE size_t
turned_waiting(size_t i)
{
    size_t n = 0;

    for (; i % 2 == 1; i /= 2)
        n++;
    return n;
}

/* 16 rows of 16 columns, `stride` bytes apart, each column to its place. */
LMQ_INLINE void
turn_block(const unsigned char *p, size_t stride, size_t n_steps, float *to)
{
    for (size_t column = 0; column < LANES; column += 4)
        LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++) {
            vr turned[4];
            vr_turn(p + i * LMQ_WIDTH * stride + column * sizeof(float),
                    stride, turned);
            LMQ_UNROLL for (size_t j = 0; j < 4; j++)
                vr_store(to + i * LMQ_WIDTH +
                             turned_lane[column + j] * n_steps * TURNED_ROWS,
                         turned[j]);
        }
}

/* The same, of rows of another type, or if some are not there: zeros. */
static void
turn_some(const struct lmq_rows *rows, size_t row, size_t n, size_t column,
          float *to)
{
    float block[LANES * LANES];
    const unsigned char *p =
        (const unsigned char *)rows->data + row * rows->stride;

    for (size_t i = 0; i < LANES; i++, p += rows->stride)
        vf_store(block + i * LANES,
                 i < n ? load_row(p, rows->type, column, rows->n_cols)
                       : vf_set1(0.0f));
    turn_block((const unsigned char *)block, LANES * sizeof(float),
               rows->n_cols / LANES, to);
}

/* [tile of rows][lane][step of 16 columns][row] */
static void
rows_turn(const struct lmq_rows *rows, size_t n, float *to)
{
    const size_t n_cols = rows->n_cols;

    for (size_t r = 0; r < n; r += TURNED_ROWS, to += TURNED_ROWS * n_cols)
        for (size_t i = 0; i < TURNED_ROWS; i += LANES)
            for (size_t c = 0; c < n_cols; c += LANES) {
                const size_t row = r + i, n_left = n > row ? n - row : 0;
                float *at = to + c / LANES * TURNED_ROWS + i;
                if (n_left >= LANES && rows->type == LMQ_ROW_F32)
                    turn_block((const unsigned char *)rows->data +
                                   row * rows->stride + c * sizeof(float),
                               rows->stride, n_cols / LANES, at);
                else
                    turn_some(rows, row, n_left, c, at);
            }
}

/* Sums of a tile. */
typedef vf turned_sums[TURNED_MOST_T][LMQ_TURNED_V];

LMQ_INLINE void
add_waiting(turned_sums waiting, turned_sums sum, size_t n_v, size_t n_t)
{
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            sum[t][v] = vf_add(waiting[t][v], sum[t][v]);
}

LMQ_INLINE void
copy_sums(turned_sums to, turned_sums sum, size_t n_v, size_t n_t)
{
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            to[t][v] = sum[t][v];
}

/* n_v vectors of rows of a tile x n_t tokens. Where the sums of `near` levels
 * wait in registers, few of them are stored. */
LMQ_INLINE void
turned_tile(const float *turned, size_t n_cols, const float *x,
            size_t x_stride, float *out, size_t out_stride, size_t n_v,
            size_t n_t, size_t near)
{
    turned_sums far_sum[TURNED_LEVELS], near_sum[TURNED_LEVELS], sum;
    const size_t n_near = (size_t)1 << near;

    for (size_t far = 0; far < LANES / n_near; far++) {
        LMQ_UNROLL for (size_t i = 0; i < n_near; i++) {
            const float *column = x + turned_lane[far * n_near + i];
            LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
                LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
                    sum[t][v] = vf_set1(0.0f);
            for (size_t c = 0; c < n_cols; c += LANES, turned += TURNED_ROWS) {
                vf w[LMQ_TURNED_V];
                LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
                    w[v] = vf_load(turned + v * LANES);
                LMQ_UNROLL for (size_t t = 0; t < n_t; t++) {
                    const vr y = vr_set1(column[t * x_stride + c]);
                    LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
                        LMQ_UNROLL for (size_t r = 0; r < REGISTERS; r++)
                            sum[t][v].r[r] =
                                vr_fma(w[v].r[r], y, sum[t][v].r[r]);
                }
            }
            LMQ_UNROLL for (size_t level = 0; level < turned_waiting(i);
                            level++)
                add_waiting(near_sum[level], sum, n_v, n_t);
            if (i + 1 < n_near)
                copy_sums(near_sum[turned_waiting(i)], sum, n_v, n_t);
        }
        const size_t n_waiting = turned_waiting(far);
        for (size_t level = 0; level < n_waiting; level++)
            add_waiting(far_sum[level], sum, n_v, n_t);
        if (far + 1 < LANES / n_near)
            copy_sums(far_sum[n_waiting], sum, n_v, n_t);
    }
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            vf_store(out + t * out_stride + v * LANES, sum[t][v]);
}

/* n_v vectors of a tile's rows x all tokens, `most` of them at a time. */
LMQ_INLINE void
turned_strip(const float *turned, size_t n_cols, const float *x,
             size_t x_stride, size_t n_tokens, float *out, size_t out_stride,
             size_t n_v, size_t most, size_t near)
{
    for (size_t t = 0, n_t; t < n_tokens; t += n_t) {
        const float *y = x + t * x_stride;
        float *o = out + t * out_stride;
        n_t = tile_width(n_tokens - t, most);
        if (n_t == most)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, most,
                        near);
        else if (most > 4 && n_t == 4)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 4,
                        near);
        else if (most > 2 && n_t == 2)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 2,
                        near);
        else
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 1,
                        near);
    }
}

/* Of a last tile that is half empty only the half. */
static void
turned_product(const float *turned, size_t n, size_t n_cols, bool few,
               const float *x, size_t x_stride, size_t n_tokens, float *out,
               size_t out_stride)
{
    const size_t n_v = LMQ_TURNED_V;
    const bool is_few = few && n_v > 1 && n_cols <= TURNED_FEW_COLS;

    for (size_t r = 0; r < n; r += TURNED_ROWS, turned += TURNED_ROWS * n_cols)
        if (is_few)
            for (size_t v = 0; v < TURNED_ROWS && r + v < n; v += LANES)
                turned_strip(turned + v, n_cols, x, x_stride, n_tokens,
                             out + r + v, out_stride, 1, TURNED_FEW_T,
                             TURNED_FEW_LEVELS);
        else if (n_v == 1 || n - r > TURNED_ROWS / 2)
            turned_strip(turned, n_cols, x, x_stride, n_tokens, out + r,
                         out_stride, n_v, LMQ_TURNED_T, 0);
        else
            turned_strip(turned, n_cols, x, x_stride, n_tokens, out + r,
                         out_stride, (n_v + 1) / 2, LMQ_TURNED_T, 0);
}
