/*
 * reading.c - how the weights of a single token are read: the faster way.
 */
#include "config.h"

#include "runtime/reading.h"

/* Of each way so many, and the fastest of them: what else the machine does
 * makes tokens slower, never faster. Half of them are enough where one way is
 * much slower, for then trying it is dear. Rounds are so short that a choice
 * made beside a busy neighbour does not last, so long that trying costs
 * nothing. */
#define TRIALS 4
#define ROUND_TOKENS 256
#define MUCH_SLOWER 1.25

static bool
is_settled(const struct lmq_reading *reading)
{
    const double *seconds = reading->seconds;

    return reading->n_tokens >= 2 * TRIALS ||
           (reading->n_tokens >= TRIALS &&
            (seconds[0] > MUCH_SLOWER * seconds[1] ||
             seconds[1] > MUCH_SLOWER * seconds[0]));
}

void
lmq_reading_learn(struct lmq_reading *reading, double seconds)
{
    double *fastest = &reading->seconds[reading->streams];

    if (reading->n_tokens < 2 || seconds < *fastest) /* the first of its way */
        *fastest = seconds;
    reading->n_tokens++;
    if (is_settled(reading))
        reading->streams = reading->seconds[1] < reading->seconds[0];
    else
        reading->streams = !reading->streams;
    if (reading->n_tokens == ROUND_TOKENS)
        reading->n_tokens = 0;
}
