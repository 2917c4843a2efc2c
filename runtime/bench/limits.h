/*
 * limits.h - how fast could it be?
 *
 * What this machine computes and reads per second, with the threads that a
 * session has. Each call adds a sample, since the speed of a machine drifts;
 * the medians count.
 */
#ifndef LMQ_RUNTIME_BENCH_LIMITS_H
#define LMQ_RUNTIME_BENCH_LIMITS_H

#include "base/error.h"
#include "base/threads/team.h"
#include "runtime/model.h"

#define LMQ_SAMPLES_MAX 256

struct lmq_samples {
    double values[LMQ_SAMPLES_MAX];
    int n;
};

void lmq_samples_add(struct lmq_samples *samples, double value);

/* Puts them in order. */
double lmq_samples_median(struct lmq_samples *samples);

struct lmq_limits {
    struct lmq_team *team;
    const struct lmq_model *model;
    unsigned char *memory; /* to read */
    size_t n_bytes;
    /* per second; reading the model's weights where decode reads them */
    struct lmq_samples read_bytes, read_weights, int8_ops, f32_flops;
};

/* Zeroed before; freed also if this fails. */
enum lmq_status lmq_limits_prepare(struct lmq_limits *limits,
                                   const struct lmq_model *model,
                                   struct lmq_team *team,
                                   struct lmq_error *err);
void lmq_limits_free(struct lmq_limits *limits);

void lmq_limits_compute(struct lmq_limits *limits);
void lmq_limits_read(struct lmq_limits *limits);

#endif
