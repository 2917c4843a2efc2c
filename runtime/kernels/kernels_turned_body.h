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

/* n_v vectors of rows of a tile x n_t tokens. */
LMQ_INLINE void
turned_tile(const float *turned, size_t n_cols, const float *x,
            size_t x_stride, float *out, size_t out_stride, size_t n_v,
            size_t n_t)
{
    vf waiting[TURNED_LEVELS][LMQ_TURNED_T][LMQ_TURNED_V];
    vf sum[LMQ_TURNED_T][LMQ_TURNED_V];

    for (size_t lane = 0; lane < LANES; lane++) {
        const float *column = x + turned_lane[lane];
        const size_t n_waiting = turned_waiting(lane);
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
                    LMQ_UNROLL for (size_t i = 0; i < REGISTERS; i++)
                        sum[t][v].r[i] =
                            vr_fma(w[v].r[i], y, sum[t][v].r[i]);
            }
        }
        for (size_t level = 0; level < n_waiting; level++)
            LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
                LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
                    sum[t][v] = vf_add(waiting[level][t][v], sum[t][v]);
        LMQ_UNROLL for (size_t t = 0; n_waiting < TURNED_LEVELS && t < n_t;
                        t++)
            LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
                waiting[n_waiting][t][v] = sum[t][v];
    }
    LMQ_UNROLL for (size_t t = 0; t < n_t; t++)
        LMQ_UNROLL for (size_t v = 0; v < n_v; v++)
            vf_store(out + t * out_stride + v * LANES, sum[t][v]);
}

/* A tile's rows x all tokens. */
LMQ_INLINE void
turned_strip(const float *turned, size_t n_cols, const float *x,
             size_t x_stride, size_t n_tokens, float *out, size_t out_stride,
             size_t n_v)
{
    for (size_t t = 0, n_t; t < n_tokens; t += n_t) {
        const float *y = x + t * x_stride;
        float *o = out + t * out_stride;
        n_t = tile_width(n_tokens - t, LMQ_TURNED_T);
        if (n_t == LMQ_TURNED_T)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v,
                        LMQ_TURNED_T);
        else if (LMQ_TURNED_T > 4 && n_t == 4)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 4);
        else if (LMQ_TURNED_T > 2 && n_t == 2)
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 2);
        else
            turned_tile(turned, n_cols, y, x_stride, o, out_stride, n_v, 1);
    }
}

/* Of a last tile that is half empty only the half. */
static void
turned_product(const float *turned, size_t n, size_t n_cols, const float *x,
               size_t x_stride, size_t n_tokens, float *out,
               size_t out_stride)
{
    for (size_t r = 0; r < n; r += TURNED_ROWS, turned += TURNED_ROWS * n_cols)
        if (LMQ_TURNED_V == 1 || n - r > TURNED_ROWS / 2)
            turned_strip(turned, n_cols, x, x_stride, n_tokens, out + r,
                         out_stride, LMQ_TURNED_V);
        else
            turned_strip(turned, n_cols, x, x_stride, n_tokens, out + r,
                         out_stride, (LMQ_TURNED_V + 1) / 2);
}
