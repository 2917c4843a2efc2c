/*
 * rope.h - positions: which angle RoPE rotates each pair of a head by, and
 * what ALiBi subtracts for a distance.
 *
 * Computed without the C library's functions, so they are the same bits
 * everywhere.
 */
#ifndef LMQ_RUNTIME_ROPE_H
#define LMQ_RUNTIME_ROPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/model/hparams.h"

/* Layers with a window and without pools may have another RoPE base than the
 * others. */
enum lmq_rope_kind {
    LMQ_ROPE_GLOBAL,
    LMQ_ROPE_LOCAL,
    LMQ_ROPE_KINDS
};

enum lmq_rope_kind lmq_layer_rope(const struct lmq_hparams *hparams,
                                  size_t layer);

/* Dimensions that turn in such layers. */
uint32_t lmq_rope_dim(const struct lmq_hparams *hparams,
                      enum lmq_rope_kind kind);

/* Whether a sequence of so many tokens turns by the long factors, at all of
 * its positions: longrope, past the original context. */
bool lmq_rope_is_long(const struct lmq_hparams *hparams, size_t length);

/* frequencies: rotary dimensions / 2 numbers, radians per position. */
void lmq_rope_frequencies(const struct lmq_hparams *hparams,
                          enum lmq_rope_kind kind, bool is_long,
                          double *frequencies);

/* Cosines and sines of one position, rotary dimensions / 2 of each. */
void lmq_rope_angles(const struct lmq_hparams *hparams,
                     enum lmq_rope_kind kind, const double *frequencies,
                     uint32_t position, float *cosines, float *sines);

/* ALiBi: what each head's scores lose by a distance of 1. */
void lmq_alibi_slopes(size_t n_heads, float *slopes);

/* A number as bfloat16 has it: so Falcon's slopes, positions and products. */
float lmq_alibi_coarse(float value);

#endif
