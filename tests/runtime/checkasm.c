/*
 * checkasm.c - are the kernels of every instruction set equal to plain C, bit
 * for bit, and do they stay inside their arrays? With --bench, how fast?
 *
 *   checkasm [--list] [--function NAME] [--isa NAME] [--bench] [--seed N] ...
 *
 * Each function starts from the seed again, so that a failure comes back when
 * that function is checked alone.
 * Arrays end where an unreadable page begins, and outputs have a pattern in
 * front and between their rows. NaNs compare equal, whatever their bits.
 * The plain C itself is compared with a second, naive reading of the contract
 * and with libm.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/kernels/kernels.h"
#include "tests/runtime/checkasm_bench.h"
#include "tests/runtime/checkasm_choice.h"
#include "tests/runtime/checkasm_memory.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct lmq_kernels *const c = &lmq_kernels_c;
static struct checkasm_choice choice;
static unsigned long n_passed, n_failed;

/* Whether it is to be checked; if so, from the seed. */
static bool
start(const char *function)
{
    state = choice.seed;
    return checkasm_function(&choice, function);
}

static void
report(bool is_equal, const char *kernel, const char *isa, const char *sizes)
{
    if (is_equal) {
        n_passed++;
        return;
    }
    if (n_failed++ < 20)
        printf("%s: %s differs from the contract for %s\n", isa, kernel,
               sizes);
}

/* printf into a static buffer: what was being compared. */
#define SIZES(...) (snprintf(sizes, sizeof(sizes), __VA_ARGS__), sizes)
static char sizes[160];

/* ---- Comparing ---- */

static bool
same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static bool
same_floats(const float *a, const float *b, size_t n)
{
    if (memcmp(a, b, n * sizeof(*a)) == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!same_float(a[i], b[i]))
            return false;
    return true;
}

/* Equal, and the bytes in front are untouched; frees both. */
static bool
same_buffers(struct buffer *a, struct buffer *b, bool is_float)
{
    bool same = memcmp(a->data - 64, b->data - 64, 64) == 0;

    for (size_t i = 1; i <= 64; i++)
        same = same && a->data[-(ptrdiff_t)i] == 0xa5;
    same = same && (is_float ? same_floats(floats(a), floats(b),
                                           a->n_bytes / sizeof(float))
                             : memcmp(a->data, b->data, a->n_bytes) == 0);
    buffer_free(a);
    buffer_free(b);
    return same;
}

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

static int8_t
random_q(unsigned bits, enum pattern pattern)
{
    const int least = lmq_q_least(bits), most = lmq_q_most(bits);

    if (pattern == EXTREME)
        return (int8_t)(random_below(2) ? least : most);
    return (int8_t)((int)random_below((size_t)(most - least) + 1) + least);
}

/* Numbers of `bits` bits, stored in so many and in *wide in 8. */
static struct matrix
matrix_new(size_t n_rows, size_t n_cols, const struct lmq_quant *quant,
           enum pattern pattern, struct matrix *wide)
{
    const size_t group = quant->group_size;
    const enum lmq_scales type = quant->scales;
    const size_t n = lmq_tiles_count(n_rows) * lmq_groups_per_row(n_cols, group);
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
            q[i] = random_q(quant->bits, pattern);
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

/* Packs and multiplies, in two parts each. */
static struct buffer
multiply(const struct lmq_kernels *k, const struct matrix *m, const float *x,
         size_t n_tokens, size_t x_stride, enum lmq_bits bits, bool streams)
{
    const size_t n_cols = m->tiles.n_cols, group = m->tiles.group;
    const size_t n_tiles = lmq_tiles_count(m->tiles.n_rows);
    const size_t stride = m->tiles.n_rows + 3;
    struct buffer data =
        buffer_new(lmq_batch_bytes(n_tokens, n_cols, group));
    struct buffer out =
        buffer_new((n_tokens * stride - 3) * sizeof(float));
    struct lmq_batch batch = {n_tokens, n_cols, group,
                              bits,     streams, data.data};

    k->batch_pack(&batch, x, x_stride, 1, 2);
    k->batch_pack(&batch, x, x_stride, 0, 2);
    struct buffer scratch = buffer_new(lmq_product_scratch(n_cols));
    k->product(&m->tiles, n_tiles / 3, n_tiles, &batch, floats(&out), stride,
               scratch.data);
    k->product(&m->tiles, 0, n_tiles / 3, &batch, floats(&out), stride,
               scratch.data);
    buffer_free(&data);
    buffer_free(&scratch);
    return out;
}

static const size_t some_rows[] = {1, 15, 16, 17, 33, 50, 100, 150};
static const size_t some_cols[] = {1, 15, 16, 17, 63, 64, 65, 172, 200, 520};
static const size_t some_tokens[] = {1, 2,  3,  4,  5,  6,  7, 8,
                                     9, 10, 11, 12, 13, 25, 64};

static void
check_product(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(some_tokens) * 120; i++) {
        size_t n_tokens = some_tokens[i % COUNT(some_tokens)];
        size_t n_rows = some_rows[random_below(COUNT(some_rows))];
        size_t n_cols = some_cols[random_below(COUNT(some_cols))];
        enum lmq_bits bits = random_below(2) ? LMQ_BITS_8 : LMQ_BITS_16;
        const struct lmq_quant quant = {
            .bits = widths[random_below(2) ? 0 : random_below(4)],
            .group_size = (unsigned)LMQ_GROUP_MIN << random_below(4),
            .scales = random_below(2) ? LMQ_SCALES_F16 : LMQ_SCALES_F32,
        };
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        bool streams = random_below(2);
        struct matrix wide;
        struct matrix m = matrix_new(n_rows, n_cols, &quant, pattern, &wide);
        struct buffer x =
            buffer_floats(n_tokens * (n_cols + 1) - 1, pattern);
        struct buffer a =
            multiply(c, &wide, floats(&x), n_tokens, n_cols + 1, bits, false);
        struct buffer b =
            multiply(k, &m, floats(&x), n_tokens, n_cols + 1, bits, streams);
        report(same_buffers(&a, &b, true), "product", k->name,
               SIZES("%zu rows, %zu columns, %zu tokens, q%u in groups of %u, "
                     "%d bits, scale type %d, pattern %d, streams %d", n_rows,
                     n_cols, n_tokens, quant.bits, quant.group_size,
                     (int)bits, (int)quant.scales, (int)pattern,
                     (int)streams));
        buffer_free(&x);
        matrix_free(&m);
        matrix_free(&wide);
    }
}

static void
check_quantize(const struct lmq_kernels *k)
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
            (j ? k : c)->quantize(floats(&x), n, group, bits,
                                  (int16_t *)(void *)q[j].data,
                                  floats(&scale[j]));
        }
        bool same = same_buffers(&q[0], &q[1], false);
        same &= same_buffers(&scale[0], &scale[1], true);
        report(same, "quantize", k->name,
               SIZES("%zu numbers, groups of %zu, %d bits, pattern %d", n,
                     group, (int)bits, (int)pattern));
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
            c->row_narrow(floats(&x), n_cols, type, row);
    }
    buffer_free(&x);
    *rows = (struct lmq_rows){b.data, type, n_cols, n_bytes + 3};
    return b;
}

static void
check_rows(const struct lmq_kernels *k)
{
    void *scratch = aligned_alloc(64, LMQ_SCRATCH_BYTES);

    for (size_t i = 0; i < COUNT(some_tokens) * 60; i++) {
        size_t n_tokens = some_tokens[i % COUNT(some_tokens)];
        size_t n_rows = some_rows[random_below(COUNT(some_rows))];
        size_t n_cols = i % 16 ? some_cols[random_below(COUNT(some_cols))]
                               : 1000 + random_below(100);
        size_t row0 = random_below(n_rows), row1 = n_rows;
        enum lmq_row_type type = (enum lmq_row_type)random_below(4);
        enum pattern pattern = (enum pattern)random_below(PATTERN_COUNT);
        struct lmq_rows rows;
        struct buffer r = rows_new(&rows, type, n_rows, n_cols, pattern);
        struct buffer x = buffer_floats(n_tokens * (n_cols + 1) - 1, pattern);
        struct buffer w = buffer_floats(n_tokens * n_rows, pattern);
        struct buffer out[2], mix[2];
        for (size_t j = 0; j < 2; j++) {
            const struct lmq_kernels *which = j ? k : c;
            out[j] = buffer_new((n_tokens * (n_rows + 2) - 2) * 4);
            which->rows_product(&rows, row0, row1, floats(&x), n_cols + 1,
                                n_tokens, floats(&out[j]), n_rows + 2,
                                scratch);
            mix[j] = buffer_copy(&x);
            which->rows_mix(&rows, row0, row1, floats(&w), n_rows, n_tokens,
                            floats(&mix[j]), n_cols + 1);
        }
        SIZES("rows %zu to %zu, %zu columns, %zu tokens, type %d, pattern %d",
              row0, row1, n_cols, n_tokens, (int)type, (int)pattern);
        report(same_buffers(&out[0], &out[1], true), "rows_product", k->name,
               sizes);
        report(same_buffers(&mix[0], &mix[1], true), "rows_mix", k->name,
               sizes);
        buffer_free(&r);
        buffer_free(&x);
        buffer_free(&w);
    }
    free(scratch);
}

static void
check_row_types(const struct lmq_kernels *k)
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
            (j ? k : c)->row_widen(row.data, type, n, floats(&wide[j]));
            narrow[j] = buffer_new(lmq_row_bytes(type, n));
            if (type != LMQ_ROW_BF16)
                (j ? k : c)->row_narrow(floats(&x), n, type, narrow[j].data);
        }
        SIZES("%zu columns, type %d, pattern %d", n, (int)type, (int)pattern);
        report(same_buffers(&wide[0], &wide[1], true), "row_widen", k->name,
               sizes);
        report(same_buffers(&narrow[0], &narrow[1], type == LMQ_ROW_F32),
               "row_narrow", k->name, sizes);
        buffer_free(&row);
        buffer_free(&x);
    }
}

/* ---- Vectors ---- */

/* Each runs one kernel on x (in place) and y; n is even. A sum becomes x[0]. */
static void
run_vector(const struct lmq_kernels *k, size_t which, float *x,
           const float *y, size_t n)
{
    switch (which) {
    case 0: k->rmsnorm(x, y, n, 1e-5f, x); break;
    case 1: k->layernorm(x, y, NULL, n, 1e-5f, x); break;
    case 2: k->layernorm(x, y, y, n, 1e-5f, x); break;
    case 3: k->softmax(x, n); break;
    case 4: x[0] = k->max(x, n); break;
    case 5: x[0] = k->exp_sum(x, n, 0.5f); break;
    case 6: k->scale(x, n, 3.3f); break;
    case 7: x[0] = k->dot(x, y, n); break;
    case 8: k->exp(x, n); break;
    case 9: k->silu(x, n); break;
    case 10: k->gelu_tanh(x, n); break;
    case 11: k->gelu_erf(x, n); break;
    case 12: k->softcap(x, n, 30.0f); break;
    case 13: k->sigmoid(x, n); break;
    case 14: k->relu(x, n); break;
    case 15: k->clamp(x, n, 1.5f); break;
    case 16: k->add(x, y, n); break;
    case 17: k->mul(x, y, n); break;
    case 18: k->axpy(x, y, n, 0.3f); break;
    case 19: k->layernorm(x, NULL, NULL, n, 1e-5f, x); break;
    case 20: k->rmsnorm(x, NULL, n, 1e-5f, x); break;
    default: k->rope(x, y, y + n / 2, n / 2); break;
    }
}

/* Layernorm is there with weights, with a bias too, and with neither; rmsnorm
 * with and without weights. */
static const char *const vector_names[] = {
    "rmsnorm", "layernorm", "layernorm", "softmax", "max",
    "exp_sum", "scale", "dot", "exp", "silu", "gelu_tanh", "gelu_erf",
    "softcap", "sigmoid", "relu", "clamp", "add", "mul", "axpy",
    "layernorm", "rmsnorm", "rope",
};

/* Functions of one number among them. */
#define FIRST_FUNCTION 8
#define END_FUNCTION 16

static void
check_vectors(const struct lmq_kernels *k)
{
    for (size_t which = 0; which < COUNT(vector_names); which++) {
        if (!start(vector_names[which]))
            continue;
        for (size_t i = 0; i < 400; i++) {
            size_t n = 2 * (1 + (i < 80 ? i : random_below(2000)));
            enum pattern pattern = (enum pattern)(i % PATTERN_COUNT);
            struct buffer x = buffer_floats(n, pattern);
            struct buffer y = buffer_floats(n, pattern);
            for (size_t j = 0; pattern == PLAIN && j < n; j++)
                floats(&x)[j] *= 20.0f;
            struct buffer z = buffer_copy(&x);
            run_vector(c, which, floats(&x), floats(&y), n);
            run_vector(k, which, floats(&z), floats(&y), n);
            report(same_buffers(&x, &z, true), vector_names[which], k->name,
                   SIZES("%zu numbers, pattern %d, case %zu", n, (int)pattern,
                         which));
            buffer_free(&y);
        }
    }
}

/* exp and the rest of the table over numbers that cover all exponents. */
static void
check_exp_everywhere(const struct lmq_kernels *k)
{
    const size_t n = 1 << 15;
    struct buffer x = buffer_new(n * sizeof(float));

    for (size_t which = FIRST_FUNCTION; which < END_FUNCTION; which++) {
        if (!start(vector_names[which]))
            continue;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)i << 17 | (random_u32() & 0x1ffff);
            memcpy(x.data + 4 * i, &bits, 4);
        }
        struct buffer y = buffer_copy(&x), z = buffer_copy(&x);
        run_vector(c, which, floats(&y), floats(&x), n);
        run_vector(k, which, floats(&z), floats(&x), n);
        report(same_buffers(&y, &z, true), vector_names[which], k->name,
               "all exponents");
    }
    buffer_free(&x);
}

/* ---- The plain C against a naive reading of the contract ---- */

static float
naive_dot(const float *x, const float *y, size_t n)
{
    float s[16] = {0};

    for (size_t i = 0; i < n; i++)
        s[i % 16] = fmaf(x[i], y[i], s[i % 16]);
    for (size_t step = 8; step > 0; step /= 2)
        for (size_t j = 0; j < step; j++)
            s[j] += s[j + step];
    return s[0];
}

static void
check_naive_dot(void)
{
    for (size_t i = 0; i < 500; i++) {
        size_t n = 1 + random_below(700);
        struct buffer x = buffer_floats(n, PLAIN), y = buffer_floats(n, PLAIN);
        report(same_float(c->dot(floats(&x), floats(&y), n),
                          naive_dot(floats(&x), floats(&y), n)),
               "dot", "c", SIZES("%zu numbers", n));
        buffer_free(&x);
        buffer_free(&y);
    }
}

static void
check_naive_quantize(void)
{
    for (size_t i = 0; i < 500; i++) {
        size_t n = 1 + random_below(700), limit = i % 2 ? 127 : 32639;
        struct buffer x = buffer_floats(n, PLAIN);
        int16_t q[768];
        float scale[12], max = 0;
        bool same = true;
        c->quantize(floats(&x), n, 64, i % 2 ? LMQ_BITS_8 : LMQ_BITS_16, q,
                    scale);
        for (size_t g = 0; g < n; g += 64, max = 0) {
            for (size_t j = g; j < g + 64 && j < n; j++)
                max = fmaxf(max, fabsf(floats(&x)[j]));
            same &= same_float(scale[g / 64], max / (float)limit);
            for (size_t j = g; j < g + 64 && j < n; j++)
                same &= (float)q[j] ==
                        rintf(floats(&x)[j] * (1 / scale[g / 64]));
        }
        report(same, "quantize", "c", SIZES("%zu numbers", n));
        buffer_free(&x);
    }
}

static void
check_naive_halves(void)
{
    bool same = true;

    for (uint32_t i = 0; i < 0x10000; i++) {
        unsigned char half[2], back[2];
        unsigned exponent = i >> 10 & 31;
        double value = exponent ? ldexp(1024.0 + (i & 1023), (int)exponent - 25)
                                : ldexp(i & 1023, -24);
        float x;
        if (exponent == 31)
            value = i & 1023 ? NAN : INFINITY;
        lmq_store_u16le(half, (uint16_t)i);
        c->row_widen(half, LMQ_ROW_F16, 1, &x);
        same &= same_float(x, (float)(i & 0x8000 ? -value : value));
        c->row_narrow(&x, 1, LMQ_ROW_F16, back);
        same &= lmq_load_u16le(back) == (i | (isnan(x) ? 0x200 : 0));
    }
    report(same, "row_widen, row_narrow", "c", "all halves");
}

/* The weights as floats times the activations as floats is nearly the
 * product: it pins the layout, the scales and the sign of the offset. */
static void
check_naive_product(void)
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
            multiply(c, &m, floats(&x), 1, n_cols, LMQ_BITS_16, false);
        struct buffer other =
            multiply(c, &wide, floats(&x), 1, n_cols, LMQ_BITS_16, false);
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
        report(is_near, "product", "c", "35 rows, 200 columns");
        buffer_free(&x);
        buffer_free(&out);
        buffer_free(&other);
        matrix_free(&m);
        matrix_free(&wide);
    }
}

static double
true_value(size_t which, double x)
{
    const double pi = 3.14159265358979323846;

    switch (which) {
    case 8: return exp(x);
    case 9: return x / (1 + exp(-x));
    case 10:
        return x / 2 *
               (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case 11: return x / 2 * erfc(-x / sqrt(2));
    case 12: return 30 * tanh(x / 30);
    case 13: return 1 / (1 + exp(-x));
    case 14: return fmax(x, 0);
    default: return fmin(fmax(x, -1.5), 1.5);
    }
}

/* The largest errors of exp (in units of the last place) and of the others
 * (against 1 + |x|) must be what kernels.h promises. */
static void
check_accuracy(void)
{
    for (size_t which = FIRST_FUNCTION; which < END_FUNCTION; which++) {
        if (!start(vector_names[which]))
            continue;
        double worst = 0;
        for (size_t i = 0; i < 400000; i++) {
            float range = i % 3 == 0 ? 103.0f : i % 3 == 1 ? 8.0f : 0.1f;
            float x = random_float() * range, y = x;
            run_vector(c, which, &y, &y, 1);
            double truth = true_value(which, (double)x);
            double unit = 1 + fabs((double)x);
            if (which == 8) {
                if (truth > 3.4028e38)
                    continue;
                unit = ldexp(1.0, (int)fmax(ilogb(truth), -126) - 23);
            }
            worst = fmax(worst, fabs((double)y - truth) / unit);
        }
        report(worst < (which == 8 ? 1.5 : 1e-6), vector_names[which], "c",
               SIZES("the worst error, %.3g", worst));
    }
}

/* ---- What there is ---- */

/* Functions that only have meaning together share a check. */
static const struct {
    const char *functions[2];
    void (*check)(const struct lmq_kernels *k);
    void (*check_c)(void);
} checks[] = {
    {{"product", "batch_pack"}, check_product, check_naive_product},
    {{"quantize"}, check_quantize, check_naive_quantize},
    {{"rows_product", "rows_mix"}, check_rows, NULL},
    {{"row_widen", "row_narrow"}, check_row_types, check_naive_halves},
    {{"dot"}, NULL, check_naive_dot},
};

#define MAX_FUNCTIONS (2 * COUNT(checks) + COUNT(vector_names))

static size_t
add_once(const char *name, const char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return n;
    names[n] = name;
    return n + 1;
}

static size_t
list_functions(const char **names)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(checks); i++)
        for (size_t j = 0; j < 2 && checks[i].functions[j] != NULL; j++)
            n = add_once(checks[i].functions[j], names, n);
    for (size_t i = 0; i < COUNT(vector_names); i++)
        n = add_once(vector_names[i], names, n);
    return n;
}

/* The tables that this build has and this machine can run; plain C first. */
static size_t
list_isas(const struct lmq_kernels **kernels, const char **names)
{
    size_t n = 0;

    for (int cpu = LMQ_CPU_C; cpu < LMQ_CPU_COUNT; cpu++) {
        const struct lmq_kernels *k = lmq_kernels_get((enum lmq_cpu)cpu);
        if (k == NULL || !lmq_cpu_has((enum lmq_cpu)cpu))
            continue;
        kernels[n] = k;
        names[n++] = k->name;
    }
    return n;
}

static void
check_isa(const struct lmq_kernels *k)
{
    for (size_t i = 0; i < COUNT(checks); i++) {
        const char *const *functions = checks[i].functions;
        if (!start(functions[0]) &&
            (functions[1] == NULL || !start(functions[1])))
            continue;
        if (k == c && checks[i].check_c != NULL)
            checks[i].check_c();
        if (k != c && checks[i].check != NULL)
            checks[i].check(k);
    }
    if (k == c) {
        check_accuracy();
        return;
    }
    check_vectors(k);
    check_exp_everywhere(k);
}

int
main(int argc, char **argv)
{
    const struct lmq_kernels *kernels[LMQ_CPU_COUNT];
    const char *functions[MAX_FUNCTIONS], *isas[LMQ_CPU_COUNT];
    size_t n_functions = list_functions(functions);
    size_t n_isas = list_isas(kernels, isas);
    int status = checkasm_parse(argc, argv, &choice);

    if (status >= 0)
        return status;
    if (!checkasm_all_known(&choice.functions, "function", functions,
                            n_functions) ||
        !checkasm_all_known(&choice.isas, "instruction set", isas, n_isas))
        return 2;
    if (choice.is_list) {
        for (size_t i = 0; i < n_functions; i++)
            printf("function %s\n", functions[i]);
        for (size_t i = 0; i < n_isas; i++)
            printf("isa %s\n", isas[i]);
        return 0;
    }
    printf("seed %lu\n", choice.seed);
    for (size_t i = 0; i < n_isas; i++) {
        if (!checkasm_isa(&choice, isas[i]))
            continue;
        printf("%s\n", isas[i]);
        check_isa(kernels[i]);
        if (choice.is_bench && (kernels[i] != c || choice.isas.n > 0))
            checkasm_bench(kernels[i], &choice);
    }
    printf("%lu passed, %lu failed\n", n_passed, n_failed);
    return n_failed != 0;
}
