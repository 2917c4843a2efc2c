/*
 * checkasm_products.c - products of matrices, and what they multiply.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/kernels/kernels.h"
#include "tests/runtime/checkasm_memory.h"
#include "tests/runtime/checkasm_parts.h"

static const struct lmq_kernels *const plain = &lmq_kernels_c;

static char sizes[160];

/* ---- int8 ---- */

struct matrix {
    struct lmq_tiles tiles;
    struct buffer q, scale;
};

static uint16_t
random_half(enum pattern pattern)
{
    uint16_t half = (uint16_t)(random_u32() & 0x7fff);

    if (pattern == DENORMAL)
        return half & 0x3ff;
    if (pattern == ZERO_GROUPS && random_below(2))
        return 0;
    if (half >= 0x7c00)
        half = 0x7bff;
    return pattern == PLAIN ? (half & 0x3ff) | 0x2000 : half;
}

static const unsigned widths[] = {8, 4, 5, 6};

/* The least is largest by itself; what is stored, without a sign, the most. */
static int8_t
random_q(unsigned bits, enum pattern pattern, size_t row)
{
    const int least = lmq_q_least(bits), most = lmq_q_most(bits);

    if (pattern == EXTREME)
        return (int8_t)(random_below(2) ? least : most);
    if (pattern == LARGEST_SUMS || (pattern == LOW_128 && row % 4 < 2))
        return (int8_t)(row % 2 ? most : least);
    return (int8_t)((int)random_below((size_t)(most - least) + 1) + least);
}

/* Numbers of `bits` bits, stored in so many and in *wide in 8. */
static struct matrix
matrix_new(size_t n_rows, size_t n_cols, const struct lmq_quant *quant,
           enum pattern pattern, struct matrix *wide)
{
    const size_t group = quant->group_size;
    const enum lmq_scales type = quant->scales;
    const size_t n =
        lmq_tiles_count(n_rows) * lmq_groups_per_row(n_cols, group);
    struct lmq_quant whole = *quant;
    struct matrix m = {
        .q = buffer_new(n * lmq_tile_group_bytes(group, quant->bits)),
        .scale = buffer_new(n * lmq_tile_scale_bytes(type)),
    };

    *wide = (struct matrix){
        .q = buffer_new(n * lmq_tile_group_bytes(group, 8)),
        .scale = buffer_new(n * lmq_tile_scale_bytes(type)),
    };
    whole.bits = 8;
    int8_t *q = malloc(16 * n_cols);
    unsigned char *scale = malloc(16 * 4 * n_cols);

    for (size_t row = 0; row < n_rows; row += 16) {
        const size_t here = n_rows - row < 16 ? n_rows - row : 16;
        const size_t n_groups = lmq_groups_per_row(n_cols, group);
        for (size_t i = 0; i < here * n_cols; i++)
            q[i] = random_q(quant->bits, pattern, row + i / n_cols);
        for (size_t i = 0; i < here * n_groups; i++) {
            const bool flips = quant->bits < 8 && random_below(2);
            uint16_t half = random_half(pattern) | (flips ? 0x8000 : 0);
            float x = fabsf(pattern_float(pattern, i)) * (flips ? -1 : 1);
            if (type == LMQ_SCALES_F16)
                lmq_store_u16le(scale + 2 * i, half);
            else
                lmq_store_f32le(scale + 4 * i, x);
        }
        const size_t tile_scales =
            row / 16 * n_groups * lmq_tile_scale_bytes(type);
        lmq_tiles_pack(q, n_cols, scale, here, n_cols, quant,
                       m.q.data + row * n_groups * group / 8 * quant->bits,
                       m.scale.data + tile_scales);
        lmq_tiles_pack(q, n_cols, scale, here, n_cols, &whole,
                       wide->q.data + row * n_groups * group,
                       wide->scale.data + tile_scales);
    }
    free(q);
    free(scale);
    m.tiles = (struct lmq_tiles){
        quant->bits, m.q.data, m.scale.data, type,
        0x1p-3f,     n_rows,   n_cols,       group,
        quant->rotation,
    };
    wide->tiles = m.tiles;
    wide->tiles.bits = 8;
    wide->tiles.q = wide->q.data;
    wide->tiles.scale = wide->scale.data;
    return m;
}

static void
matrix_free(struct matrix *m)
{
    buffer_free(&m->q);
    buffer_free(&m->scale);
}

/* Of n things that begin `stride` apart, up to the gap behind the last one. */
static size_t
spread(size_t n, size_t stride, size_t gap)
{
    return n == 0 ? 0 : n * stride - gap;
}

/* Packs and multiplies, in two parts each. Half of the rows are then multiplied
 * with `also`, unless it is NULL: matrices share what they meet. */
static struct buffer
multiply(const struct lmq_kernels *k, const struct matrix *m,
         const struct matrix *also, const float *x, size_t n_tokens,
         size_t x_stride, enum lmq_bits bits, bool streams, bool few)
{
    const size_t n_cols = m->tiles.n_cols, group = m->tiles.group;
    const size_t n_tiles = lmq_tiles_count(m->tiles.n_rows);
    const size_t stride = m->tiles.n_rows + 3;
    struct buffer data =
        buffer_new(lmq_batch_bytes(n_tokens, n_cols, group));
    struct buffer out =
        buffer_new(spread(n_tokens, stride, 3) * sizeof(float));
    struct lmq_batch batch = {.n_tokens = n_tokens,
                              .n_cols = n_cols,
                              .group = group,
                              .rotation = m->tiles.rotation,
                              .bits = bits,
                              .streams = streams,
                              .few = few,
                              .data = data.data};

    k->batch_pack(&batch, x, x_stride, 1, 2);
    k->batch_pack(&batch, x, x_stride, 0, 2);
    struct buffer scratch = buffer_new(lmq_scratch_bytes(n_cols));
    k->product(&m->tiles, n_tiles / 3, n_tiles, &batch, floats(&out), stride,
               scratch.data);
    k->product(&m->tiles, 0, n_tiles / 3, &batch, floats(&out), stride,
               scratch.data);
    if (also != NULL)
        k->product(&also->tiles, 0, n_tiles / 2, &batch, floats(&out), stride,
                   scratch.data);
    buffer_free(&data);
    buffer_free(&scratch);
    return out;
}

static const size_t some_rows[] = {1, 15, 16, 17, 33, 50, 100, 150};
static const size_t some_cols[] = {1, 15, 16, 17, 63, 64, 65, 172, 200, 520};
static const size_t some_tokens[] = {0, 1, 2,  3,  4,  5,  6,  7,  8,
                                     9, 10, 11, 12, 13, 16, 25, 33, 64, 200};

struct product {
    size_t n_tokens, n_rows, n_cols;
    enum lmq_bits bits;
    struct lmq_quant quant;
    enum pattern pattern;
    bool streams, few;
};

static void
compare_product(const struct lmq_kernels *k, const struct product *p)
{
    const size_t stride = p->n_cols + 1;
    struct matrix wide;
    struct matrix m =
        matrix_new(p->n_rows, p->n_cols, &p->quant, p->pattern, &wide);
    struct buffer x =
        buffer_floats(spread(p->n_tokens, stride, 1), p->pattern);
    struct buffer a = multiply(plain, &wide, NULL, floats(&x), p->n_tokens,
                               stride, p->bits, false, false);
    struct buffer b = multiply(k, &m, p->streams ? &wide : NULL, floats(&x),
                               p->n_tokens, stride, p->bits, p->streams,
                               p->few);

    checkasm_report(
        same_buffers(&a, &b, true), "product", k->name,
        SIZES("%zu rows, %zu columns, %zu tokens, q%u in groups of %u, "
              "%d bits, scale type %d, pattern %d, streams %d, few %d, "
              "rotation %d",
              p->n_rows, p->n_cols, p->n_tokens, p->quant.bits,
              p->quant.group_size, (int)p->bits, (int)p->quant.scales,
              (int)p->pattern, (int)p->streams, (int)p->few,
              (int)p->quant.rotation));
    buffer_free(&x);
    matrix_free(&m);
    matrix_free(&wide);
}

/* One token has kernels of its own for each width. */
static void
compare_one_token(const struct lmq_kernels *k, unsigned width)
{
    struct product p = {
        .n_tokens = 1, .n_rows = 33, .n_cols = 520, .quant.bits = width};

    for (p.quant.group_size = LMQ_GROUP_MIN;
         p.quant.group_size <= LMQ_GROUP_MAX; p.quant.group_size *= 2)
        for (int pattern = 0; pattern < PATTERN_COUNT; pattern++)
            for (int way = 0; way < 4; way++) {
                p.pattern = (enum pattern)pattern;
                p.bits = way % 2 ? LMQ_BITS_8 : LMQ_BITS_16;
                p.streams = way / 2;
                compare_product(k, &p);
            }
}

void
checkasm_product(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(some_tokens) * 120; i++) {
        struct product p = {
            .n_tokens = some_tokens[i % COUNT(some_tokens)],
            .n_rows = some_rows[random_below(COUNT(some_rows))],
            /* Of many columns, some are multiplied after the others. */
            .n_cols = i % 16 ? some_cols[random_below(COUNT(some_cols))]
                             : 1900 + random_below(2400),
            .bits = random_below(2) ? LMQ_BITS_8 : LMQ_BITS_16,
            .quant.bits = widths[random_below(2) ? 0 : random_below(4)],
            .quant.group_size = (unsigned)LMQ_GROUP_MIN << random_below(4),
            .quant.scales = random_below(2) ? LMQ_SCALES_F16 : LMQ_SCALES_F32,
            .pattern = (enum pattern)random_below(PATTERN_COUNT),
            .streams = random_below(2),
            .few = random_below(2),
        };
        if (random_below(2))
            p.quant.rotation =
                random_below(2) ? LMQ_ROTATION_ALL : LMQ_ROTATION_WHOLE;
        compare_product(k, &p);
    }
    for (size_t i = 0; i < COUNT(widths); i++)
        compare_one_token(k, widths[i]);

    /* Halves of the rows that are a large page apart. */
    compare_product(k, &(struct product){.n_tokens = 1,
                                         .n_rows = 4096,
                                         .n_cols = 1024,
                                         .bits = LMQ_BITS_16,
                                         .quant.bits = 8,
                                         .quant.group_size = 64});
}

void
checkasm_quantize(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < 2000; i++) {
        size_t n = some_cols[i % COUNT(some_cols)];
        size_t group = (size_t)32 << random_below(4);
        size_t n_groups = lmq_groups_per_row(n, group);
        enum lmq_bits bits = random_below(2) ? LMQ_BITS_8 : LMQ_BITS_16;
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        struct buffer x = buffer_floats(n, pattern);
        struct buffer q[2], scale[2];
        for (size_t j = 0; j < 2; j++) {
            q[j] = buffer_new(n_groups * group * sizeof(int16_t));
            scale[j] = buffer_new(n_groups * sizeof(float));
            (j ? k : plain)->quantize(floats(&x), n, group, bits,
                                  (int16_t *)(void *)q[j].data,
                                  floats(&scale[j]));
        }
        bool same = same_buffers(&q[0], &q[1], false);
        same &= same_buffers(&scale[0], &scale[1], true);
        checkasm_report(
            same, "quantize", k->name,
            SIZES("%zu numbers, groups of %zu, %d bits, pattern %d", n, group,
                  (int)bits, (int)pattern));
        buffer_free(&x);
    }
}

/* ---- Rows ---- */

/* Rows of random numbers of a type, 3 bytes apart and so not aligned. */
static struct buffer
rows_new(struct lmq_rows *rows, enum lmq_row_type type, size_t n_rows,
         size_t n_cols, enum pattern pattern)
{
    const size_t n_bytes = lmq_row_bytes(type, n_cols);
    struct buffer x = buffer_floats(n_cols, pattern);
    struct buffer b = buffer_new(n_rows * (n_bytes + 3) - 3);

    for (size_t r = 0; r < n_rows; r++) {
        unsigned char *row = b.data + r * (n_bytes + 3);
        for (size_t i = 0; i < n_cols; i++)
            floats(&x)[i] = pattern_float(pattern, i);
        for (size_t i = 0; type == LMQ_ROW_BF16 && i < n_cols; i++) {
            uint32_t bits;
            memcpy(&bits, floats(&x) + i, sizeof(bits));
            lmq_store_u16le(row + 2 * i, (uint16_t)(bits >> 16));
        }
        if (type != LMQ_ROW_BF16)
            plain->row_narrow(floats(&x), n_cols, type, row);
    }
    buffer_free(&x);
    *rows = (struct lmq_rows){
        .data = b.data, .type = type, .n_cols = n_cols, .stride = n_bytes + 3};
    return b;
}

void
checkasm_rows(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(some_tokens) * 60; i++) {
        size_t n_tokens = some_tokens[i % COUNT(some_tokens)];
        size_t n_rows = some_rows[random_below(COUNT(some_rows))];
        size_t n_cols = i % 16 ? some_cols[random_below(COUNT(some_cols))]
                               : 700 + random_below(900);
        if (i % 32 == 0) { /* of short ones, more than a block has */
            n_rows += 150;
            n_cols = 940 + random_below(170);
        }
        if (n_tokens == 1) /* parts of them are long */
            n_rows += 150 + random_below(900);
        if (i % 150 == 75) /* too many to pack all of them */
            n_cols = 174750 + random_below(40), n_rows = 1 + n_rows % 40;
        size_t row0 = random_below(n_rows), row1 = n_rows;
        enum lmq_row_type type = (enum lmq_row_type)random_below(4);
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        struct lmq_rows rows;
        struct buffer r = rows_new(&rows, type, n_rows, n_cols, pattern);
        rows.parts = random_below(2) == 1;
        struct buffer x =
            buffer_floats(spread(n_tokens, n_cols + 1, 1), pattern);
        struct buffer w = buffer_floats(n_tokens * n_rows, pattern);
        struct buffer scratch = buffer_new(lmq_scratch_bytes(n_cols));
        struct buffer out[2], mix[2];
        for (size_t j = 0; j < 2; j++) {
            const struct lmq_kernels *which = j ? k : plain;
            out[j] = buffer_new(spread(n_tokens, n_rows + 2, 2) * 4);
            which->rows_product(&rows, row0, row1, floats(&x), n_cols + 1,
                                n_tokens, floats(&out[j]), n_rows + 2,
                                scratch.data);
            mix[j] = buffer_copy(&x);
            which->rows_mix(&rows, row0, row1, floats(&w), n_rows, n_tokens,
                            floats(&mix[j]), n_cols + 1);
        }
        SIZES("rows %zu to %zu, %zu columns, %zu tokens, type %d, pattern %d",
              row0, row1, n_cols, n_tokens, (int)type, (int)pattern);
        checkasm_report(same_buffers(&out[0], &out[1], true), "rows_product",
                        k->name, sizes);
        checkasm_report(same_buffers(&mix[0], &mix[1], true), "rows_mix",
                        k->name, sizes);
        buffer_free(&r);
        buffer_free(&x);
        buffer_free(&w);
        buffer_free(&scratch);
    }
}

/* The same numbers as rows_product() of plain C has. */
void
checkasm_turned(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(some_tokens) * 60; i++) {
        const size_t n_tokens = some_tokens[i % COUNT(some_tokens)];
        const size_t n_cols = 16 * (1 + random_below(i % 20 ? 16 : 40));
        const size_t n_rows = random_below(150);
        const size_t n = random_below(n_rows + 1); /* of these */
        const size_t whole = (n_rows + LMQ_TURNED_ROWS - 1) /
                             LMQ_TURNED_ROWS * LMQ_TURNED_ROWS;
        const size_t stride = whole + i % 3;
        enum lmq_row_type type = (enum lmq_row_type)random_below(4);
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        struct lmq_rows rows;
        struct buffer r = rows_new(&rows, type, n_rows, n_cols, pattern);
        struct buffer x =
            buffer_floats(spread(n_tokens, n_cols + 1, 1), pattern);
        struct buffer turned = buffer_new(whole * n_cols * 4);
        struct buffer wide = buffer_new(n_tokens * (whole + 2) * 4);
        struct buffer scratch = buffer_new(lmq_scratch_bytes(n_cols));
        struct buffer out[2];
        for (size_t j = 0; j < 2; j++)
            out[j] = buffer_new(n_tokens * n * 4);
        plain->rows_product(&rows, 0, n, floats(&x), n_cols + 1, n_tokens,
                            floats(&out[0]), n, scratch.data);
        k->rows_turn(&rows, n_rows, floats(&turned));
        k->turned_product(floats(&turned), n, n_cols, i % 2 == 1, floats(&x),
                          n_cols + 1, n_tokens, floats(&wide), stride);
        for (size_t t = 0; t < n_tokens && n > 0; t++)
            memcpy(floats(&out[1]) + t * n, floats(&wide) + t * stride,
                   n * sizeof(float));
        SIZES("%zu of %zu rows, %zu columns, %zu tokens, type %d, pattern %d",
              n, n_rows, n_cols, n_tokens, (int)type, (int)pattern);
        checkasm_report(same_buffers(&out[0], &out[1], true),
                        "turned_product", k->name, sizes);
        buffer_free(&r);
        buffer_free(&x);
        buffer_free(&turned);
        buffer_free(&wide);
        buffer_free(&scratch);
    }
}

void
checkasm_row_types(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < 1000; i++) {
        size_t n = some_cols[i % COUNT(some_cols)];
        enum lmq_row_type type = (enum lmq_row_type)random_below(4);
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        struct lmq_rows rows;
        struct buffer row = rows_new(&rows, type, 1, n, pattern);
        struct buffer x = buffer_floats(n, pattern), wide[2], narrow[2];
        for (size_t j = 0; j < 2; j++) {
            wide[j] = buffer_new(n * sizeof(float));
            (j ? k : plain)->row_widen(row.data, type, n, floats(&wide[j]));
            narrow[j] = buffer_new(lmq_row_bytes(type, n));
            if (type != LMQ_ROW_BF16)
                (j ? k : plain)
                    ->row_narrow(floats(&x), n, type, narrow[j].data);
        }
        SIZES("%zu columns, type %d, pattern %d", n, (int)type, (int)pattern);
        checkasm_report(same_buffers(&wide[0], &wide[1], true), "row_widen",
                        k->name, sizes);
        checkasm_report(
            same_buffers(&narrow[0], &narrow[1], type == LMQ_ROW_F32),
            "row_narrow", k->name, sizes);
        buffer_free(&row);
        buffer_free(&x);
    }
}

/* ---- The plain C against a naive reading of the contract ---- */

void
checkasm_naive_quantize(void)
{
    for (size_t i = 0; i < 500; i++) {
        size_t n = 1 + random_below(700), limit = i % 2 ? 127 : 32639;
        struct buffer x = buffer_floats(n, PLAIN);
        int16_t q[768];
        float scale[12], max = 0;
        bool same = true;
        plain->quantize(floats(&x), n, 64, i % 2 ? LMQ_BITS_8 : LMQ_BITS_16, q,
                    scale);
        for (size_t g = 0; g < n; g += 64, max = 0) {
            for (size_t j = g; j < g + 64 && j < n; j++)
                max = fmaxf(max, fabsf(floats(&x)[j]));
            same &= same_float(scale[g / 64], max / (float)limit);
            for (size_t j = g; j < g + 64 && j < n; j++)
                same &= (float)q[j] ==
                        rintf(floats(&x)[j] * (1 / scale[g / 64]));
        }
        checkasm_report(same, "quantize", "c", SIZES("%zu numbers", n));
        buffer_free(&x);
    }
}

void
checkasm_naive_halves(void)
{
    bool same = true;

    for (uint32_t i = 0; i < 0x10000; i++) {
        unsigned char half[2], back[2];
        unsigned exponent = i >> 10 & 31;
        double value = exponent
                           ? ldexp(1024.0 + (i & 1023), (int)exponent - 25)
                           : ldexp(i & 1023, -24);
        float x;
        if (exponent == 31)
            value = i & 1023 ? NAN : INFINITY;
        lmq_store_u16le(half, (uint16_t)i);
        plain->row_widen(half, LMQ_ROW_F16, 1, &x);
        same &= same_float(x, (float)(i & 0x8000 ? -value : value));
        plain->row_narrow(&x, 1, LMQ_ROW_F16, back);
        same &= lmq_load_u16le(back) == (i | (isnan(x) ? 0x200 : 0));
    }
    checkasm_report(same, "row_widen, row_narrow", "c", "all halves");
}

/* The weights as floats times the activations as floats is nearly the
 * product: it pins the layout, the scales and the sign of the offset. */
void
checkasm_naive_product(void)
{
    for (size_t i = 0; i < 40; i++) {
        const size_t n_rows = 35, n_cols = 200;
        const struct lmq_quant quant = {
            .bits = widths[i / 2 % 4],
            .group_size = 64,
            .scales = i % 2 ? LMQ_SCALES_F16 : LMQ_SCALES_F32,
        };
        struct matrix wide;
        struct matrix m = matrix_new(n_rows, n_cols, &quant, PLAIN, &wide);
        struct buffer x = buffer_floats(n_cols, PLAIN);
        struct buffer out =
            multiply(plain, &m, NULL, floats(&x), 1, n_cols, LMQ_BITS_16,
                     false, false);
        struct buffer other =
            multiply(plain, &wide, NULL, floats(&x), 1, n_cols, LMQ_BITS_16,
                     false, false);
        bool is_near = same_floats(floats(&out), floats(&other), n_rows);
        for (size_t row = 0; row < n_rows; row++) {
            float w[200];
            double sum = 0, norm = 0;
            lmq_tiles_row(&m.tiles, row, w);
            for (size_t j = 0; j < n_cols; j++) {
                sum += (double)w[j] * (double)floats(&x)[j];
                norm += fabs((double)w[j]);
            }
            is_near &= fabs(sum - (double)floats(&out)[row]) < norm / 32639;
        }
        checkasm_report(is_near, "product", "c", "35 rows, 200 columns");
        buffer_free(&x);
        buffer_free(&out);
        buffer_free(&other);
        matrix_free(&m);
        matrix_free(&wide);
    }

    /* A row tile that is wider than the scratch is. */
    compare_product(plain, &(struct product){.n_tokens = 1,
                                             .n_rows = 16,
                                             .n_cols = 400000,
                                             .bits = LMQ_BITS_16,
                                             .quant.bits = 4,
                                             .quant.group_size = 64});
}
