/*
 * rope.c - frequencies and angles of RoPE; slopes of ALiBi.
 *
 *   frequency[i] = theta^(-2i / dim), as the scaling changes it   (dim / 2)
 *   angle[p][i] = p * frequency[i]                                (n, dim / 2)
 *   x[i], x[i + dim / 2] rotated by angle[i]: kernels->rope
 *
 * In double precision: at position 10^6 a float angle would be off by 0.03.
 */
#include "config.h"

#include "runtime/rope.h"

#include <math.h>

#include "base/elementary.h"
#include "formats/model/pools.h"
#include "formats/model/rope_scaling.h"
#include "quantize/dtype.h"

#define LN2 0.693147180559945309417

/* Faster than any model rotates, and slow enough for the sine. */
#define FASTEST 1e6

uint32_t
lmq_rope_dim(const struct lmq_hparams *hparams, enum lmq_rope_kind kind)
{
    return kind == LMQ_ROPE_LOCAL ? lmq_hparams_rotary_dim(hparams)
                                  : lmq_hparams_far_rotary_dim(hparams);
}

enum lmq_rope_kind
lmq_layer_rope(const struct lmq_hparams *hparams, size_t layer)
{
    return hparams->rope_local_theta != 0 &&
                   lmq_layer_window(hparams, layer) > 0 &&
                   lmq_layer_pool(hparams, layer) == 0
               ? LMQ_ROPE_LOCAL
               : LMQ_ROPE_GLOBAL;
}

/* ---- Bases ---- */

/* Dynamic NTK: theta stretched by how far the position is beyond the context.
 * Others take the length of what is evaluated; that would make a position's
 * result depend on its successors. */
static double
dynamic_base(const struct lmq_hparams *h, uint32_t dim, double position)
{
    double beyond = (position + 1) / lmq_rope_original_context(h) - 1;

    if (beyond <= 0)
        return h->rope_theta;
    return lmq_rope_stretched_base(h->rope_theta, 1 + h->rope_factor * beyond,
                                   dim);
}

/* ---- Frequencies ---- */

/* A scaling from a file may make frequencies of any size. */
static double
limit(double frequency)
{
    return frequency < FASTEST ? frequency : FASTEST;
}

bool
lmq_rope_is_long(const struct lmq_hparams *hparams, size_t length)
{
    return hparams->rope_scaling == LMQ_ROPE_LONGROPE &&
           (double)length > lmq_rope_original_context(hparams);
}

void
lmq_rope_frequencies(const struct lmq_hparams *hparams,
                     enum lmq_rope_kind kind, bool is_long,
                     double *frequencies)
{
    uint32_t dim = lmq_rope_dim(hparams, kind);
    bool is_local = kind == LMQ_ROPE_LOCAL;
    double base = is_local ? hparams->rope_local_theta : hparams->rope_theta;

    if (!is_local && hparams->rope_scaling == LMQ_ROPE_NTK)
        base = lmq_rope_stretched_base(base, hparams->rope_factor, dim);
    double log_base = lmq_log(base);
    for (uint32_t i = 0; i < dim / 2; i++) {
        double frequency = lmq_rope_frequency(log_base, dim, i);
        switch (is_local ? LMQ_ROPE_PLAIN : hparams->rope_scaling) {
        case LMQ_ROPE_LINEAR:
            frequency /= hparams->rope_factor;
            break;
        case LMQ_ROPE_LLAMA3:
            frequency = lmq_rope_scale_llama3(hparams, frequency);
            break;
        case LMQ_ROPE_YARN:
            frequency = lmq_rope_scale_yarn(hparams, dim, i, frequency);
            break;
        case LMQ_ROPE_LONGROPE:
            frequency /=
                is_long ? hparams->rope_long[i] : hparams->rope_short[i];
            break;
        case LMQ_ROPE_FACTORS:
            frequency /= hparams->rope_short[i];
            break;
        default: /* none, or the base has it: NTK and dynamic */
            break;
        }
        frequencies[i] = limit(frequency);
    }
}

/* ---- Angles ---- */

void
lmq_rope_angles(const struct lmq_hparams *hparams, enum lmq_rope_kind kind,
                const double *frequencies, uint32_t position, float *cosines,
                float *sines)
{
    uint32_t dim = lmq_rope_dim(hparams, kind);
    bool is_dynamic = kind == LMQ_ROPE_GLOBAL &&
                      hparams->rope_scaling == LMQ_ROPE_DYNAMIC;
    double log_base =
        is_dynamic ? lmq_log(dynamic_base(hparams, dim, position)) : 0;
    /* YaRN and LongRoPE scale attention: q and k by the factor each. */
    double size =
        kind == LMQ_ROPE_LOCAL ? 1 : hparams->rope_attention_factor;

    for (uint32_t i = 0; i < dim / 2; i++) {
        double sine, cosine;
        double frequency =
            is_dynamic ? limit(lmq_rope_frequency(log_base, dim, i))
                       : frequencies[i];
        lmq_sincos(position * frequency, &sine, &cosine);
        cosines[i] = (float)(cosine * size);
        sines[i] = (float)(sine * size);
    }
}

/* ---- ALiBi ---- */

/* As in the paper (Press et al., 2021): a geometric sequence for a power of
 * two; else that of the power below, then every second one of the power
 * above. */
void
lmq_alibi_slopes(size_t n_heads, float *slopes)
{
    size_t n = 1;

    while (n * 2 <= n_heads)
        n *= 2;
    for (size_t i = 0; i < n_heads; i++) {
        double exponent = i < n ? 8.0 * (double)(i + 1) / (double)n
                                : 4.0 * (double)(2 * (i - n) + 1) / (double)n;
        slopes[i] = (float)lmq_exp(-exponent * LN2);
    }
}

float
lmq_alibi_coarse(float value)
{
    return lmq_bf16_to_f32(lmq_f32_to_bf16(value));
}
