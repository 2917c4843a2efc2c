/*
 * rope_scaling.h - the arithmetic of rotary scaling, for the runtime and for
 * formats that keep what it amounts to.
 *
 * Computed without the C library's functions where the runtime uses it, so
 * frequencies are the same bits everywhere.
 */
#ifndef LMQ_FORMATS_MODEL_ROPE_SCALING_H
#define LMQ_FORMATS_MODEL_ROPE_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/model/hparams.h"

/* Positions before scaling. */
double lmq_rope_original_context(const struct lmq_hparams *hparams);

/* The base that stretches the longest wave by `stretch` and leaves the
 * shortest one alone. */
double lmq_rope_stretched_base(double theta, double stretch, uint32_t dim);

/* Of pair i: base^(-2 i / dim). */
double lmq_rope_frequency(double log_base, uint32_t dim, uint32_t i);

/* Llama 3's scaling: long waves are stretched by the factor, short ones are
 * left alone, between them the two are blended. */
double lmq_rope_scale_llama3(const struct lmq_hparams *hparams,
                             double frequency);

/* YaRN's, of pair i. */
double lmq_rope_scale_yarn(const struct lmq_hparams *hparams, uint32_t dim,
                           uint32_t i, double frequency);

/* What YaRN multiplies cosines and sines by; `scale` is "mscale", usually 1. */
double lmq_rope_yarn_gain(double factor, double scale);

/* Bases and factors: what LMQ_ROPE_LLAMA3 and LMQ_ROPE_NTK amount to becomes
 * LMQ_ROPE_FACTORS and another base, which every format has words for. */
void lmq_hparams_settle_rope(struct lmq_hparams *hparams);

/* Likewise frequencies that, once scaled, are multiplied by the exponentials of
 * these, one for each pair; false if they are not scaled by YaRN, but in
 * another way, or too many. */
bool lmq_hparams_learn_frequencies(struct lmq_hparams *hparams,
                                   const float *logs);

#endif
