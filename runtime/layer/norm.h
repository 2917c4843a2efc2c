/*
 * norm.h - the kinds of norms.
 */
#ifndef LMQ_RUNTIME_LAYER_NORM_H
#define LMQ_RUNTIME_LAYER_NORM_H

#include "runtime/model.h"

/* out = the model's norm of n numbers; out may be x. */
void lmq_norm(const struct lmq_hparams *hparams, const struct lmq_gain *gain,
              const float *x, size_t n, float *out);

/* x = norm(x), what a block gives, in place. */
void lmq_norm_block(const struct lmq_hparams *hparams,
                    const struct lmq_gain *gain, float *x, size_t n);

/* x (n, dim) = norm(x) with the last norm, if the model wants that between two
 * times through all layers. */
void lmq_norm_again(const struct lmq_model *model, float *x, size_t n);

/* x = rmsnorm(x), latents in place: RMS whatever the model's kind is. */
void lmq_norm_latents(const struct lmq_hparams *hparams,
                      const struct lmq_gain *gain, float *x, size_t n);

/* The part of the gain that belongs to the numbers from `first` on: a head's,
 * where each has its own. */
struct lmq_gain lmq_gain_from(const struct lmq_gain *gain, size_t first);

#endif
