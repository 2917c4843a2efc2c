/*
 * emulate.c - the rounding of llama.cpp's blocks of 32 and of llama2.c's runq.
 *
 * As their reference code has it: ggml-quants.c, quantize_row_*_ref; export.py
 * and runq.c. Their sums of integers are exact, so what is left of a
 * difference is the order of a sum of floats.
 */
#include "config.h"

#include "runtime/emulate.h"

#include <float.h>
#include <math.h>

#include "base/error.h"
#include "base/size.h"

#define BLOCK 32
#define RUNQ_GROUP ((size_t)64)

const struct lmq_name lmq_emulation_names[] = {
    {"q8_0", LMQ_EMULATE_Q8_0}, {"q5_0", LMQ_EMULATE_Q5_0},
    {"q5_1", LMQ_EMULATE_Q5_1}, {"q4_0", LMQ_EMULATE_Q4_0},
    {"q4_1", LMQ_EMULATE_Q4_1}, {"runq", LMQ_EMULATE_RUNQ},
    {NULL, 0},
};

static float
half(float x)
{
    return lmq_dtype_round(LMQ_DTYPE_F16, x);
}

/* 1 / d; 0 where that would be no number. */
static float
inverse(float d)
{
    return fabsf(d) < FLT_MIN ? 0 : 1 / d;
}

static float
largest(const float *x, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most;
}

/* ---- llama.cpp ---- */

static void
round_f16(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = half(x[i]);
}

static void
round_q8_0(float *x, size_t n)
{
    float d = largest(x, n) / 127, id = inverse(d), stored = half(d);

    for (size_t i = 0; i < n; i++)
        x[i] = roundf(x[i] * id) * stored;
}

/* From -zero to zero - 1 steps; the largest magnitude is -zero of them. */
static void
round_signed(float *x, size_t n, int zero)
{
    float extreme = 0;

    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    float d = extreme / (float)-zero, id = inverse(d), stored = half(d);
    for (size_t i = 0; i < n; i++) {
        float q = truncf(x[i] * id + ((float)zero + 0.5f));
        x[i] = (fminf(q, (float)(2 * zero - 1)) - (float)zero) * stored;
    }
}

/* From the least number up, so many steps. */
static void
round_affine(float *x, size_t n, int steps)
{
    float least = x[0], most = x[0];

    for (size_t i = 1; i < n; i++) {
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    float d = (most - least) / (float)steps, id = inverse(d);
    float stored = half(d), offset = half(least);
    for (size_t i = 0; i < n; i++) {
        float q = truncf((x[i] - least) * id + 0.5f);
        x[i] = fminf(q, (float)steps) * stored + offset;
    }
}

static void
round_q5_0(float *x, size_t n)
{
    round_signed(x, n, 16);
}

static void
round_q4_0(float *x, size_t n)
{
    round_signed(x, n, 8);
}

static void
round_q5_1(float *x, size_t n)
{
    round_affine(x, n, 31);
}

static void
round_q4_1(float *x, size_t n)
{
    round_affine(x, n, 15);
}

/* ---- llama2.c ---- */

/* PyTorch rounds ties to even, */
static void
round_runq(float *x, size_t n)
{
    float scale = largest(x, n) / 127;

    for (size_t i = 0; i < n && scale >= FLT_MIN; i++)
        x[i] = rintf(x[i] / scale) * scale;
}

/* C's round() away from zero. */
static void
round_runq_operand(float *x, size_t n)
{
    float scale = largest(x, n) / 127;

    for (size_t i = 0; i < n && scale >= FLT_MIN; i++)
        x[i] = roundf(x[i] / scale) * scale;
}

/* ---- Which ---- */

/* A group that divides the model's width, as export.py looks for it. */
static size_t
runq_group(const struct lmq_hparams *hparams)
{
    size_t group = RUNQ_GROUP;

    while (hparams->dim % group != 0)
        group /= 2;
    return group;
}

const char *
lmq_emulation_activations(enum lmq_emulation emulation,
                          const struct lmq_hparams *hparams)
{
    static const char *const names[] = {"q8/64", "q8/32", "q8/16", "q8/8",
                                        "q8/4",  "q8/2",  "q8/1"};
    const size_t group =
        emulation == LMQ_EMULATE_RUNQ ? runq_group(hparams) : BLOCK;
    size_t i = 0;

    while ((RUNQ_GROUP >> i) != group)
        i++;
    return names[i];
}

static enum lmq_status
find_runq(const struct lmq_hparams *hparams, const struct lmq_tensor *tensor,
          struct lmq_rounding *rounding, struct lmq_error *err)
{
    const size_t group = runq_group(hparams);

    if (tensor->n_cols % group != 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "runq computes nonsense with this model: the rows of "
                        "tensor '%s' are no whole groups of %zu",
                        tensor->stored_name, group);
    *rounding = (struct lmq_rounding){group, group + 4, round_runq,
                                      round_runq_operand};
    return LMQ_OK;
}

enum lmq_status
lmq_emulation_find(enum lmq_emulation emulation,
                   const struct lmq_hparams *hparams,
                   const struct lmq_tensor *tensor,
                   struct lmq_rounding *rounding, struct lmq_error *err)
{
    static const struct lmq_rounding blocks[] = {
        [LMQ_EMULATE_Q8_0] = {BLOCK, 34, round_q8_0, round_q8_0},
        [LMQ_EMULATE_Q5_0] = {BLOCK, 22, round_q5_0, round_q8_0},
        [LMQ_EMULATE_Q5_1] = {BLOCK, 24, round_q5_1, round_q8_0},
        [LMQ_EMULATE_Q4_0] = {BLOCK, 18, round_q4_0, round_q8_0},
        [LMQ_EMULATE_Q4_1] = {BLOCK, 20, round_q4_1, round_q8_0},
    };
    /* Rows that are no whole blocks; another block than theirs. */
    static const struct lmq_rounding halves = {1, 2, round_f16, round_f16};

    *rounding = (struct lmq_rounding){0};
    if (lmq_role_is_small(tensor->place.role) || tensor->n_dims != 2 ||
        tensor->n_rows == 1 || emulation == LMQ_EMULATE_NONE)
        return LMQ_OK;
    if (emulation == LMQ_EMULATE_RUNQ)
        return find_runq(hparams, tensor, rounding, err);
    *rounding = tensor->n_cols % BLOCK == 0 ? blocks[emulation] : halves;
    return LMQ_OK;
}

void
lmq_round_rows(lmq_round *round, size_t block, float *x, size_t n_rows,
               size_t n_cols)
{
    for (size_t row = 0; row < n_rows; row++)
        for (size_t at = 0; at < n_cols; at += block)
            round(x + row * n_cols + at, lmq_size_min(block, n_cols - at));
}
