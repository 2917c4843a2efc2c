/*
 * convolve.h - sums over the last few tokens, each channel for itself.
 */
#ifndef LMQ_RUNTIME_LAYER_CONVOLVE_H
#define LMQ_RUNTIME_LAYER_CONVOLVE_H

#include "runtime/member.h"

/*
 * Both take part of what all members do, with barriers before and behind, and
 * the layer's tail of tokens goes on; at position 0 it begins anew.
 */

/* q, k, v = silu(conv(q, k, v) + bias), in place. */
void lmq_convolve_heads(const struct lmq_member *member);

/* work->attention = q * conv(k * v). */
void lmq_convolve_products(const struct lmq_member *member);

#endif
