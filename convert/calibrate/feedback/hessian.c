/*
 * hessian.c - adding up, block by block.
 */
#include "config.h"

#include "convert/calibrate/feedback/hessian.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "convert/calibrate/feedback/outer.h"
#include "quantize/rotate.h"

#define BLOCK LMQ_HESSIAN_BLOCK

/* Doubles in a line of the cache; an even number of them makes a block. */
#define LINE ((size_t)8)

/* ---- Memory ---- */

static size_t
padded(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* An odd number of lines of the cache lies between two rows: else those of a
 * strip would all want the same few places in it. */
size_t
lmq_hessian_stride(size_t n)
{
    return padded(n) + LINE;
}

bool
lmq_hessian_init(struct lmq_hessian *hessian, size_t n)
{
    size_t stride = lmq_hessian_stride(n), bytes;

    *hessian = (struct lmq_hessian){.n = n, .stride = stride};
    if (!lmq_size_mul(stride, stride, &bytes))
        return false;
    hessian->sums = lmq_mem_aligned(bytes, sizeof(double));
    hessian->weights = lmq_mem_aligned(stride, sizeof(double));
    if (hessian->sums != NULL && hessian->weights != NULL)
        return true;
    lmq_hessian_free(hessian);
    return false;
}

void
lmq_hessian_free(struct lmq_hessian *hessian)
{
    lmq_mem_free(hessian->sums);
    lmq_mem_free(hessian->weights);
    *hessian = (struct lmq_hessian){0};
}

double
lmq_hessian_bytes(size_t n)
{
    double stride = (double)lmq_hessian_stride(n);

    return 8 * stride * (stride + 1 + 2 * (double)BLOCK);
}

size_t
lmq_hessian_buffer(size_t n)
{
    return LMQ_HESSIAN_TOKENS * lmq_hessian_stride(n);
}

/* ---- Adding up ---- */

void
lmq_hessian_widen(const float *x, size_t n, size_t rotated, double *to)
{
    size_t stride = lmq_hessian_stride(n), at = 0;
    float turned[LMQ_ROTATED_MOST];

    while (rotated > 0 && at < n) {
        const size_t size = lmq_size_min(rotated, n - at);
        memcpy(turned, x + at, size * sizeof(*x));
        lmq_rotate_all(turned, size);
        for (size_t i = 0; i < size; i++)
            to[at++] = (double)turned[i];
    }
    for (; at < n; at++)
        to[at] = (double)x[at];
    for (; at < stride; at++)
        to[at] = 0;
}

void
lmq_hessian_add(struct lmq_hessian *hessian, const float *x, size_t stride,
                size_t n_tokens, double *buffer, size_t member,
                size_t n_members)
{
    size_t width = padded(hessian->n), room = hessian->stride;

    for (size_t at = 0; at < n_tokens; at += LMQ_HESSIAN_TOKENS) {
        size_t n = lmq_size_min(LMQ_HESSIAN_TOKENS, n_tokens - at);
        for (size_t t = 0; t < n; t++)
            lmq_hessian_widen(x + (at + t) * stride, hessian->n,
                              hessian->rotated, buffer + t * room);
        for (size_t i = member * BLOCK; i < width; i += n_members * BLOCK)
            for (size_t j = i; j < width; j += BLOCK)
                lmq_outer_add(hessian->sums + i * room + j, room,
                              (struct lmq_strip){buffer + i, room},
                              (struct lmq_strip){buffer + j, room}, BLOCK,
                              BLOCK, n);
    }
}

size_t
lmq_hessian_strips(const struct lmq_hessian *hessian)
{
    return padded(hessian->n) / BLOCK;
}

void *
lmq_hessian_strip(const struct lmq_hessian *hessian, size_t i, size_t *n_bytes)
{
    *n_bytes = BLOCK * hessian->stride * sizeof(double);
    return hessian->sums + i * BLOCK * hessian->stride;
}
