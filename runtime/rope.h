/*
 * rope.h - rotary positions: which angle each pair of a head turns by.
 */
#ifndef LMQ_RUNTIME_ROPE_H
#define LMQ_RUNTIME_ROPE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/hparams.h"

/* frequencies: head_dim / 2 numbers, radians per position. Computed without
 * the C library's functions, so they are the same bits everywhere. */
void lmq_rope_frequencies(const struct lmq_hparams *hparams,
                          double *frequencies);

/* cos and sin of position * frequency. */
void lmq_rope_angles(const double *frequencies, size_t n, uint32_t position,
                     float *cosines, float *sines);

#endif
