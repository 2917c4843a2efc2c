/*
 * rope.c - frequencies and angles of the rotary positions.
 */
#include "config.h"

#include "runtime/rope.h"

#include "base/elementary.h"

#define PI 3.14159265358979323846

/* ---- Frequencies ---- */

/* Llama 3's scaling: long waves are stretched by the factor, short ones are
 * left alone, between them the two are blended. */
static double
scale_llama3(const struct lmq_hparams *h, double frequency)
{
    double turns = h->rope_context * frequency / (2 * PI);

    if (turns > h->rope_high_factor)
        return frequency;
    if (turns < h->rope_low_factor)
        return frequency / h->rope_factor;
    double blend = (turns - h->rope_low_factor) /
                   (h->rope_high_factor - h->rope_low_factor);
    return (1 - blend) * frequency / h->rope_factor + blend * frequency;
}

void
lmq_rope_frequencies(const struct lmq_hparams *hparams, double *frequencies)
{
    double log_theta = lmq_log(hparams->rope_theta);

    for (uint32_t i = 0; i < hparams->head_dim / 2; i++) {
        double frequency =
            lmq_exp(-2.0 * i / hparams->head_dim * log_theta);
        if (hparams->rope_scaling == LMQ_ROPE_LINEAR)
            frequency /= hparams->rope_factor;
        if (hparams->rope_scaling == LMQ_ROPE_LLAMA3)
            frequency = scale_llama3(hparams, frequency);
        frequencies[i] = frequency;
    }
}

void
lmq_rope_angles(const double *frequencies, size_t n, uint32_t position,
                float *cosines, float *sines)
{
    for (size_t i = 0; i < n; i++) {
        double sine, cosine;
        lmq_sincos(position * frequencies[i], &sine, &cosine);
        cosines[i] = (float)cosine;
        sines[i] = (float)sine;
    }
}
