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

/* The pair, as a fraction between two, that makes so many turns within the
 * original context. */
static double
pair_with_turns(const struct lmq_hparams *h, uint32_t dim, double turns)
{
    double wave = lmq_rope_original_context(h) / (fmax(turns, 1e-9) * 2 * PI);

    return dim * lmq_log(wave) / (2 * lmq_log(h->rope_theta));
}

/* YaRN (Peng et al., 2023, "NTK-by-parts"): pairs of low frequency are
 * interpolated by the factor, those of high frequency are left alone, with a
 * ramp over the pairs between them:
 *   frequency = ramp * frequency / factor + (1 - ramp) * frequency */
double
lmq_rope_scale_yarn(const struct lmq_hparams *h, uint32_t dim, uint32_t i,
                    double frequency)
{
    if (!(h->rope_theta > 1))
        return frequency; /* all pairs have the same */
    double low = pair_with_turns(h, dim, h->rope_beta_fast);
    double high = pair_with_turns(h, dim, h->rope_beta_slow);
    if (!h->rope_ramp_exact) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, dim - 1);
    double width = high == low ? 0.001 : high - low; /* as Transformers */
    double ramp = fmin(fmax((i - low) / width, 0), 1);

    return frequency / h->rope_factor * ramp + frequency * (1 - ramp);
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

bool
lmq_hparams_learn_frequencies(struct lmq_hparams *h, const float *logs)
{
    uint32_t rotary = lmq_hparams_far_rotary_dim(h);
    double log_base = lmq_log(h->rope_theta);

    if ((h->rope_scaling != LMQ_ROPE_PLAIN &&
         h->rope_scaling != LMQ_ROPE_YARN) ||
        rotary / 2 > LMQ_MAX_ROPE_FACTORS)
        return false;
    for (uint32_t i = 0; i < rotary / 2; i++) {
        double frequency = lmq_rope_frequency(log_base, rotary, i);
        double scaled =
            h->rope_scaling == LMQ_ROPE_YARN
                ? lmq_rope_scale_yarn(h, rotary, i, frequency)
                : frequency;
        h->rope_short[i] = frequency / (scaled * lmq_exp((double)logs[i]));
        h->rope_long[i] = h->rope_short[i];
    }
    h->n_rope_factors = rotary / 2;
    h->rope_scaling = LMQ_ROPE_FACTORS;
    return true;
}
