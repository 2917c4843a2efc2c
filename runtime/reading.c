/*
 * reading.c - how the weights of a single token are read: the faster way.
 */
#include "config.h"

#include "runtime/reading.h"

/* Of each way so many, and the fastest of them: what else the machine does
 * makes tokens slower, never faster. Rounds are so short that a choice made
 * beside a busy neighbour does not last, so long that trying costs nothing. */
#define TRIALS 4
#define ROUND_TOKENS 256

void
lmq_reading_learn(struct lmq_reading *reading, double seconds)
{
    double *fastest = &reading->seconds[reading->streams];

    if (reading->n_tokens < 2 || seconds < *fastest) /* the first of its way */
        *fastest = seconds;
    reading->n_tokens++;
    if (reading->n_tokens < 2 * TRIALS)
        reading->streams = !reading->streams;
    else
        reading->streams = reading->seconds[1] < reading->seconds[0];
    if (reading->n_tokens == ROUND_TOKENS)
        reading->n_tokens = 0;
}
