/*
 * rope_scaling.c - what rotary scaling does to bases, frequencies and sizes.
 */
#include "config.h"

#include "formats/model/rope_scaling.h"

#include <math.h>

#include "base/elementary.h"

#define PI 3.14159265358979323846

double
lmq_rope_original_context(const struct lmq_hparams *h)
{
    return h->rope_context != 0 ? h->rope_context : h->context;
}

double
lmq_rope_stretched_base(double theta, double stretch, uint32_t dim)
{
    if (dim <= 2)
        return theta;
    return theta * lmq_exp(lmq_log(stretch) * dim / (dim - 2));
}

double
lmq_rope_frequency(double log_base, uint32_t dim, uint32_t i)
{
    return lmq_exp(-2.0 * i / dim * log_base);
}

double
lmq_rope_scale_llama3(const struct lmq_hparams *h, double frequency)
{
    double turns = lmq_rope_original_context(h) * frequency / (2 * PI);

    if (turns >= h->rope_high_factor) /* which may be the low one, too */
        return frequency;
    if (turns < h->rope_low_factor)
        return frequency / h->rope_factor;
    double blend = (turns - h->rope_low_factor) /
                   (h->rope_high_factor - h->rope_low_factor);
    return (1 - blend) * frequency / h->rope_factor + blend * frequency;
}

double
lmq_rope_yarn_gain(double factor, double scale)
{
    return factor <= 1 ? 1 : 0.1 * scale * log(factor) + 1;
}

void
lmq_hparams_settle_rope(struct lmq_hparams *h)
{
    uint32_t rotary = lmq_hparams_far_rotary_dim(h);

    if (h->rope_scaling == LMQ_ROPE_NTK && rotary > 2) {
        h->rope_theta =
            lmq_rope_stretched_base(h->rope_theta, h->rope_factor, rotary);
        h->rope_scaling = LMQ_ROPE_PLAIN;
    } else if (h->rope_scaling == LMQ_ROPE_LLAMA3 &&
               rotary / 2 <= LMQ_MAX_ROPE_FACTORS) {
        for (uint32_t i = 0; i < rotary / 2; i++) {
            double frequency =
                lmq_rope_frequency(lmq_log(h->rope_theta), rotary, i);
            h->rope_short[i] = frequency / lmq_rope_scale_llama3(h, frequency);
        }
        h->n_rope_factors = rotary / 2;
        h->rope_scaling = LMQ_ROPE_FACTORS;
    }
}
