/*
 * reading.h - how the weights of a single token are read: the faster way.
 *
 * Decoding is as fast as the memory, and machines differ in what reads it
 * fastest: one stream, or several and asking ahead (struct lmq_batch). Nothing
 * but the time depends on it, so the tokens themselves are the measurement: of
 * a round the first few take turns, the others go the way of the fastest one.
 */
#ifndef LMQ_RUNTIME_READING_H
#define LMQ_RUNTIME_READING_H

#include <stdbool.h>

struct lmq_reading {
    bool streams;      /* the way of the next token */
    unsigned n_tokens; /* of this round */
    double seconds[2]; /* of the fastest token: one stream, several */
};

/* After a token that took so long. */
void lmq_reading_learn(struct lmq_reading *reading, double seconds);

#endif
