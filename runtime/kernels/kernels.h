/*
 * kernels.h - the arithmetic of the forward pass, and its contract.
 *
 * Every result below is defined to the last bit. kernels_plain.c defines
 * it in plain C; each instruction set gives the same bits, for any split of
 * tiles, rows and tokens over threads and calls. Exceptions: the sign and
 * payload of a NaN differ between processors, and nobody may depend on them;
 * and signalling NaNs count as NaN.
 *
 * The rules that make this possible:
 *
 *   - Products of integers are exact, so their order is free.
 *   - "fma" is one rounding (C's fmaf); where it is not written, a product is
 *     rounded before it is added. Rounding is to nearest, ties to even, and
 *     denormal numbers are kept: nobody may set FTZ or DAZ.
 *   - The *lane sum* of n terms: lane j (0..15) takes the terms j, j + 16,
 *     j + 32, ... in this order, starting from +0; a last step with fewer
 *     than 16 terms is padded with zeros. Then s[j] += s[j + 8] for j < 8,
 *     s[j] += s[j + 4] for j < 4, s[j] += s[j + 2] for j < 2, s[0] + s[1].
 *   - max(a, b) is a > b ? a : b.
 *
 * Pointers to float need no more than the alignment of float, pointers into
 * a checkpoint none at all. No kernel reads or writes outside its arrays,
 * allocates, locks or fails. Floats, also in rows, are those of the machine;
 * halves, bfloat16 and the scales of tiles are little-endian, as in files.
 */
#ifndef LMQ_RUNTIME_KERNELS_KERNELS_H
#define LMQ_RUNTIME_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threads/cpu.h"
#include "quantize/tiles.h"

/* ---- Weights of 4 to 8 bits in tiles ---- */

/*
 * A matrix of n_rows x n_cols numbers q of `bits` bits, in groups of `group`
 * consecutive columns of one row, arranged as tiles (quantize/tiles.h): a tile
 * is one stream of cache lines, each with one step of 4 columns for 16 rows,
 * or with fewer than 8 bits a part of several steps. The scales are IEEE
 * halves or floats, with fewer than 8 bits of either sign. The weight is
 * q * scale * multiplier; the multiplier is a power of two, which keeps the
 * scales of tiny tensors normal halves. Integers and scales are all that
 * results depend on, not how many bits they are stored in.
 */
struct lmq_tiles {
    unsigned bits; /* 4, 5, 6 or 8 */
    const unsigned char *q;     /* aligned to 64 bytes */
    const unsigned char *scale; /* any alignment */
    enum lmq_scales scale_type;
    float multiplier;
    size_t n_rows;
    size_t n_cols;
    size_t group;
    enum lmq_rotation rotation; /* of its groups, and so of what they meet */
};

/* One row as floats: (q * scale) * multiplier, +0 where q is 0, turned back.
 * For embeddings. */
void lmq_tiles_row(const struct lmq_tiles *tiles, size_t row, float *out);

/* ---- Activations for the int8 product ---- */

/*
 * Quantized per token in the groups of the weights, turned before as those are
 * (quantize/rotate.h):
 *
 *   scale = max|x| / limit, q = x * (1 / scale) rounded, clamped to +-limit
 *
 * A group whose scale is below 2^-126 (1 / scale would overflow) has scale 0
 * and zeros. A group with NaN or infinity has scale NaN and zeros: it makes
 * the whole token NaN, visibly, and nothing undefined.
 *
 * 16 bits: the limit is 0x7f7f, not 0x7fff, so that q = 256 * hi + lo with lo
 * in [-128, 127] leaves hi in [-127, 127]: two int8 products do the work.
 */
enum lmq_bits {
    LMQ_BITS_8 = 8,   /* limit 127 */
    LMQ_BITS_16 = 16  /* limit 32639 */
};

/* Quantized tokens, arranged as one instruction set wants them: opaque, and
 * only for the product of the same struct lmq_kernels. */
struct lmq_batch {
    size_t n_tokens;
    size_t n_cols;
    size_t group;
    enum lmq_rotation rotation;
    enum lmq_bits bits;
    bool streams; /* of one token: read several row tiles side by side, ahead
                     of their use; faster or not, the result is the same */
    bool few;     /* of many tokens: fewer row tiles at a time, whose sums stay
                     in registers; the same */
    unsigned char *data; /* lmq_batch_bytes(), aligned to 64; the caller's */
};

/* What `data` needs at most; 0 if that does not fit into a size_t. */
size_t lmq_batch_bytes(size_t n_tokens, size_t n_cols, size_t group);

/* ---- Rows of floats ---- */

/*
 * A matrix as a checkpoint or a KV cache stores it, row after row. Widening
 * to float is exact for every type.
 *
 * Q8: blocks of 32 columns, each a half scale and then 32 int8: 34 bytes; a
 * last block with fewer columns is padded with zeros.
 */
enum lmq_row_type {
    LMQ_ROW_F32,
    LMQ_ROW_F16,
    LMQ_ROW_BF16,
    LMQ_ROW_Q8
};


struct lmq_rows {
    const void *data;  /* any alignment */
    enum lmq_row_type type;
    size_t n_cols;
    size_t stride;     /* bytes from row to row */
    bool parts;        /* one token reads several parts of the rows side by
                          side; faster or not, the result is the same */
};

/* Bytes of one row. */
static inline size_t
lmq_row_bytes(enum lmq_row_type type, size_t n_cols)
{
    switch (type) {
    case LMQ_ROW_F32:
        return n_cols * 4;
    case LMQ_ROW_Q8:
        return (n_cols + 31) / 32 * 34;
    default:
        return n_cols * 2;
    }
}

/*
 * Scratch of products, aligned to 64, one per thread: a block of weights in
 * another form; sums that wait between blocks of columns, where there is more
 * than one; of products of floats as many tokens as are copied together, in
 * floats of all their columns: as many as stay near, but not so few that the
 * weights are read too often, nor more than help.
 */
#define LMQ_BLOCK_COLS ((size_t)1024)
#define LMQ_WIDE_COLS (4 * LMQ_BLOCK_COLS) /* more make rows wide */
#define LMQ_WIDE_BYTES ((size_t)262144)
#define LMQ_SUMS_BYTES ((size_t)786432)
#define LMQ_TOGETHER_NEAR ((size_t)1 << 18)
#define LMQ_TOGETHER_MOST ((size_t)1 << 20)
#define LMQ_TOKENS_LEAST ((size_t)66)
#define LMQ_TOKENS_WIDE ((size_t)126) /* of wide rows */
#define LMQ_TOKENS_MOST ((size_t)192)

/* For rows of up to so many columns. */
size_t lmq_scratch_bytes(size_t n_cols);

#define LMQ_TURNED_ROWS ((size_t)64)

/* ---- The kernels ---- */

/* What a token gives to a state of n_rows rows of n numbers. */
struct lmq_selection {
    const float *rates;              /* (n_rows, n) */
    const float *k, *q;              /* (n_rows) */
    const float *v, *steps, *skip;   /* (n) */
};

struct lmq_kernels {
    const char *name;
    int passes_16; /* int8 products that make one of 16 bits: 2, or 1 */

    /* One token: n floats -> q, padded with zeros to a multiple of `group`,
     * and the scale of each group. */
    void (*quantize)(const float *x, size_t n, size_t group,
                     enum lmq_bits bits, int16_t *q, float *scale);

    /* Quantizes part `part` of `n_parts` of the tokens x, which are `stride`
     * floats apart, into `batch`; threads take different parts. */
    void (*batch_pack)(const struct lmq_batch *batch, const float *x,
                       size_t stride, size_t part, size_t n_parts);

    /* out[token * stride + row] for the rows of tiles [tile0, tile1), with
     * acc = fma(isum, weight scale * x scale, acc) over the groups in order,
     * from +0, and out = acc * multiplier. isum is the exact product of
     * integers, converted to float with one rounding. Group and columns of
     * `tiles` and `batch` must agree. `scratch` has lmq_scratch_bytes(). */
    void (*product)(const struct lmq_tiles *tiles, size_t tile0, size_t tile1,
                    const struct lmq_batch *batch, float *out, size_t stride,
                    void *scratch);

    /* out[token * out_stride + row] for rows [row0, row1): the lane sum, with
     * fma, of row[i] * x[i]. Also for scores: q times the rows of a cache. */
    void (*rows_product)(const struct lmq_rows *rows, size_t row0, size_t row1,
                         const float *x, size_t x_stride, size_t n_tokens,
                         float *out, size_t out_stride, void *scratch);

    /* The same numbers for many tokens and the n rows of a short matrix, whose
     * columns are a multiple of 16: rows_turn() puts these in an order of its
     * own, of as many floats as the next multiple of LMQ_TURNED_ROWS rows has;
     * turned_product() of the first n may also write to the columns of `out`
     * up to the next multiple, numbers without meaning. Few sums at a time if
     * asked for, which stay in registers: the same numbers. */
    void (*rows_turn)(const struct lmq_rows *rows, size_t n, float *turned);
    void (*turned_product)(const float *turned, size_t n, size_t n_cols,
                           bool few, const float *x, size_t x_stride,
                           size_t n_tokens, float *out, size_t out_stride);

    /* out[token][i] = fma(weight[token][row], row[i], out[token][i]) for rows
     * [row0, row1) in order. For the values of attention. */
    void (*rows_mix)(const struct lmq_rows *rows, size_t row0, size_t row1,
                     const float *weight, size_t weight_stride,
                     size_t n_tokens, float *out, size_t out_stride);

    /* One row to floats, exactly. */
    void (*row_widen)(const void *row, enum lmq_row_type type, size_t n,
                      float *out);

    /* n floats to one row of type F32, F16 or Q8, rounded to nearest even.
     * Q8: scale = half(max|x| / 127), q = x * (1 / scale) rounded, clamped to
     * +-127; zeros if the scale is 0. NaN, infinity and what overflows half
     * make the scale NaN and q zeros. */
    void (*row_narrow)(const float *x, size_t n, enum lmq_row_type type,
                       void *row);

    /* out = (x * s) * weight, or x * s if weight is NULL, s = 1 / sqrt(sum / n
     * + eps), `sum` the lane sum with fma of x[i] * x[i]. out may be x. */
    void (*rmsnorm)(const float *x, const float *weight, size_t n, float eps,
                    float *out);

    /* mean = lane sum of x / n, d = x - mean, s = 1 / sqrt(sum / n + eps)
     * with the lane sum (fma) of d * d; out = fma(d * s, weight, bias),
     * (d * s) * weight if bias is NULL, d * s if weight is NULL too. out may
     * be x. */
    void (*layernorm)(const float *x, const float *weight, const float *bias,
                      size_t n, float eps, float *out);

    /* In place: m = max of x; x = exp(x - m); x = x * (1 / lane sum of x).
     * -inf gives 0; a row of nothing but -inf, or with NaN, gives NaN. */
    void (*softmax)(float *x, size_t n);

    /* Its pieces: the maximum, in lanes like the lane sum (-inf for n = 0; a
     * NaN may get lost); exp(x - m) in place, returning the lane sum;
     * x *= s. */
    float (*max)(const float *x, size_t n);
    float (*exp_sum)(float *x, size_t n, float m);
    void (*scale)(float *x, size_t n, float s);

    /* A softmax in blocks, for rows of n numbers (a multiple of 16) that are
     * `stride` apart, of which max and sum are those of the blocks before:
     * m = the larger of max and the block's; factor = exp(max - m), NaN if both
     * are the same infinity; max = m; x = exp(x - m) in place; sum = sum *
     * factor + lane sum of x. */
    void (*soften)(float *x, size_t stride, size_t n, size_t n_rows,
                   float *max, float *sum, float *factor);

    /* The lane sum with fma. */
    float (*dot)(const float *x, const float *y, size_t n);

    /* In place. exp is within 1.5 ulp of the truth, 0 below -104, inf above
     * 88.73; the others within 1e-6 + 1e-6 |x|.
     *   silu       x / (1 + exp(-x))
     *   gelu_tanh  0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
     *   gelu_erf   0.5 x (1 + erf(x / sqrt(2)))
     *   sigmoid    1 / (1 + exp(-x))
     *   softplus   ln(1 + exp(x)); NaN of what is not finite
     *   softcap    cap * tanh(x * (1 / cap)) */
    void (*exp)(float *x, size_t n);
    void (*silu)(float *x, size_t n);
    void (*gelu_tanh)(float *x, size_t n);
    void (*gelu_erf)(float *x, size_t n);
    void (*sigmoid)(float *x, size_t n);
    void (*softplus)(float *x, size_t n);
    void (*softcap)(float *x, size_t n, float cap);

    /* In place: max(0, x); x within [-limit, limit]. NaN stays. */
    void (*relu)(float *x, size_t n);
    void (*clamp)(float *x, size_t n, float limit);

    /* x += y; x *= y; x = fma(s, y, x). */
    void (*add)(float *x, const float *y, size_t n);
    void (*mul)(float *x, const float *y, size_t n);
    void (*axpy)(float *x, const float *y, size_t n, float s);

    /* In place, for i < half, with a = x[i] and b = x[i + half]:
     * x[i] = fma(a, cos[i], -(b * sin[i])),
     * x[i + half] = fma(b, cos[i], a * sin[i]). */
    void (*rope)(float *x, const float *cos, const float *sin, size_t half);

    /* A state of n_rows rows of n numbers, one after the other: row i *=
     * decay[i], or decay[0] unless they differ; row i = fma(k[i], v, row i),
     * unless v is NULL; sum = fma(q[i], row i, sum), from zeros on. The n sums
     * go to o, which may be v. */
    void (*recur)(float *state, size_t n_rows, size_t n, const float *decay,
                  bool differs, const float *k, const float *v,
                  const float *q, float *o);

    /* The same with a decay for each number: row i *= exp(rates * steps), or 0
     * if that is below 2^-64; row i = fma(k[i], v * steps, row i); sum = fma(
     * q[i], row i, sum); o = fma(skip, v, sum). */
    void (*select)(float *state, size_t n_rows, size_t n,
                   const struct lmq_selection *given, float *o);

    /* What the machine can do at most, for the bench: run `rounds` rounds on
     * registers and return the number of operations (a multiply-add is two);
     * read the memory (but for some last bytes) from one place or from four,
     * perhaps asking ahead for what comes, and return something that depends
     * on all of it. */
    double (*peak_int8)(size_t rounds);
    double (*peak_f32)(size_t rounds);
    float (*read_memory)(const void *memory, size_t n_bytes, bool is_one,
                         bool ahead);
};

/* NULL if this build has none for `cpu`; whether the machine can run it is
 * lmq_cpu_has()'s business. */
const struct lmq_kernels *lmq_kernels_get(enum lmq_cpu cpu);

/* Those of lmq_cpu(). */
const struct lmq_kernels *lmq_kernels(void);

extern const struct lmq_kernels lmq_kernels_c;
extern const struct lmq_kernels lmq_kernels_avx2;
extern const struct lmq_kernels lmq_kernels_avxvnni;
extern const struct lmq_kernels lmq_kernels_avx512;
extern const struct lmq_kernels lmq_kernels_amx;
extern const struct lmq_kernels lmq_kernels_neon;

#endif
