/*
 * random.h - numbers that look random and are the same everywhere: splitmix64
 * (Steele, Lea, Flood 2014). Not for secrets.
 */
#ifndef LMQ_BASE_RANDOM_H
#define LMQ_BASE_RANDOM_H

#include <stdint.h>

#define LMQ_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Number n of the sequence that `seed` begins, from 1 on. */
static inline uint64_t
lmq_random_at(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + n * LMQ_RANDOM_STEP;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* One after the other; the state begins as the seed. */
static inline uint64_t
lmq_random_next(uint64_t *state)
{
    uint64_t z = lmq_random_at(*state, 1);

    *state += LMQ_RANDOM_STEP;
    return z;
}

#endif
