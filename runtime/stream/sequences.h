/*
 * sequences.h - what streams are given of the last tokens.
 */
#ifndef LMQ_RUNTIME_STREAM_SEQUENCES_H
#define LMQ_RUNTIME_STREAM_SEQUENCES_H

#include "runtime/member.h"

/* streams += what rows of the layer's table say of each token and those before
 * it. All members take part: before it each has its share of the tokens'
 * streams, and behind it, too. */
void lmq_grams_add(const struct lmq_member *member);

#endif
