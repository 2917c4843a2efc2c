/*
 * drift.h - gathers what the lock-step finds, and turns it into figures with
 * their uncertainty.
 */
#ifndef LMQ_VALIDATE_DRIFT_H
#define LMQ_VALIDATE_DRIFT_H

#include <jansson.h>

#include "validate/lockstep.h"

#define LMQ_WORST 20
#define LMQ_POSITION_BINS 16

/* One position that is remembered for being bad. */
struct lmq_worst {
    double kld;
    size_t window_first, token; /* where, within the corpus */
    int32_t top1_reference, top1;
    double nll_reference, nll;
};

/* Everything about one judged side. Sums run in the order of the text. */
struct lmq_drift {
    size_t n;
    double *kld;           /* (n): for the percentiles */
    double *delta;         /* (n): nll - nll of the reference */
    double *top1;          /* (n): 1 where the top token is the same, or 0 */
    size_t *document;      /* (n) */
    size_t kld_capacity, delta_capacity, top1_capacity, document_capacity;
    double nll_reference, nll, kld_sum, tv, delta_p_sq, top5;
    size_t n_top1_equal, n_lost, n_gained;
    double max_abs, sum_abs, sum_sq, dot, norm_reference_sq, norm_sq;
    uint64_t n_bytes; /* of text that the scored tokens stand for */
    struct lmq_worst worst[LMQ_WORST]; /* the worst first */
    size_t n_worst;
    double bin_kld[LMQ_POSITION_BINS];
    size_t bin_n[LMQ_POSITION_BINS];
};

void lmq_drift_free(struct lmq_drift *drift);

/* `position` of `context` is where the token stands in its window. */
enum lmq_status lmq_drift_add(struct lmq_drift *drift,
                              const struct lmq_window *window, size_t position,
                              size_t context,
                              const struct lmq_position_drift *at,
                              struct lmq_error *err);

double lmq_drift_perplexity(double nll_sum, size_t n);

/* The mean of x, (n) of them, and its standard errors: over positions, and over
 * documents, NAN if there is but one. */
struct lmq_spread {
    double mean, by_position, by_document;
};
enum lmq_status lmq_drift_spread(const struct lmq_drift *drift,
                                 const double *x, struct lmq_spread *spread,
                                 struct lmq_error *err);

/* The keys of the report: reference, model, ppl_ratio, kld, ... */
enum lmq_status lmq_drift_describe(const struct lmq_drift *drift,
                                   size_t vocabulary, json_t **report,
                                   struct lmq_error *err);

#endif
