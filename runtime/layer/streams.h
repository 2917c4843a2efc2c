/*
 * streams.h - several residual streams, of which the first, x, goes through the
 * blocks, or of which blocks read a sum; and what goes past attention.
 */
#ifndef LMQ_RUNTIME_LAYER_STREAMS_H
#define LMQ_RUNTIME_LAYER_STREAMS_H

#include "runtime/member.h"

/* ---- Several streams ---- */

/* The streams (n, n_streams - 1, dim) beside the member's tokens, whose
 * embeddings are x (n, dim), of either kind. All members take part, and those
 * who read the streams need a barrier. */
void lmq_streams_spread(const struct lmq_member *member, const float *x,
                        float *streams);

/* Before a layer: what all streams of token t say that each of them will be
 * becomes work->streams, work->x and work->predicted. Uses its row of
 * work->out. */
void lmq_streams_predict(const struct lmq_member *member, size_t t);

/* Behind it: all streams of token t change as x has become another than
 * predicted. Uses its rows of work->out and, for lmq_streams_face(), of
 * work->xn. */
void lmq_streams_correct(const struct lmq_member *member, size_t t);

/* What a layer's input is multiplied with something of: x, or with several
 * streams what lmq_streams_correct() has scaled; (n, dim). */
float *lmq_streams_face(const struct lmq_member *member);

/* Adds y (dim) to the streams beside x of token t. */
void lmq_streams_add(const struct lmq_member *member, size_t t,
                     const float *y);

/* xn (n, dim) = the mean of all streams. All members take part: behind it each
 * has its share of the tokens. */
void lmq_streams_gather(const struct lmq_member *member, float *xn);

/* Where all streams of token t stand. */
void lmq_streams_find(const struct lmq_member *member, size_t t,
                      float *streams[LMQ_MAX_STREAMS]);

/* ---- Hyper-connections ---- */

/* x (dim) = what a block is given of all streams of token t, before its norm.
 * Leaves in work->hyper how the block writes. */
void lmq_hyper_read(const struct lmq_member *member,
                    const struct lmq_hyper *hyper, size_t t, float *x);

/* All streams of token t change by y (dim), what the block gives. */
void lmq_hyper_write(const struct lmq_member *member, size_t t,
                     const float *y);

/* x (dim) = what the head is given of token t, before its norm. */
void lmq_hyper_gather(const struct lmq_member *member, size_t t, float *x);

/* ---- Past attention ---- */

/* work->bypass = W_b W_a u (n, dim), u being attention's input. All members
 * take part, before and behind it they need a barrier. */
void lmq_bypass_make(const struct lmq_member *member, const float *u);

/* x = (x + u + norm(bypass)) / sqrt(2), of token t, with u (dim) its input. */
void lmq_bypass_add(const struct lmq_member *member, const float *u, size_t t);

#endif
