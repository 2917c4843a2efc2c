/*
 * drift.h - gathers what the lock-step finds, and turns it into figures with
 * their uncertainty.
 */
#ifndef LMQ_VALIDATE_DRIFT_H
#define LMQ_VALIDATE_DRIFT_H

#include <jansson.h>

#include "base/exact_sum.h"
#include "validate/lockstep/lockstep.h"

#define LMQ_WORST 20
#define LMQ_POSITION_BINS 16
/* What an attribution tells apart: types of keys and values, kinds of parts. */
#define LMQ_ATTRIBUTED_KV 4
#define LMQ_ATTRIBUTED_PARTS 4

/* One position that is remembered for being bad. */
struct lmq_worst {
    double kld;
    size_t window_first, token; /* where, within the corpus */
    int32_t top1_reference, top1;
    double nll_reference, nll;
};

/* What is summed over all positions, each without rounding: who adds up which
 * part of a text is not to be seen. */
enum lmq_drift_sum {
    LMQ_SUM_NLL_REFERENCE,
    LMQ_SUM_NLL,
    LMQ_SUM_KLD,
    LMQ_SUM_TV,
    LMQ_SUM_DELTA_P_SQ,
    LMQ_SUM_TOP5,
    LMQ_SUM_ABS,
    LMQ_SUM_SQ,
    LMQ_SUM_DOT,
    LMQ_SUM_NORM_REFERENCE_SQ,
    LMQ_SUM_NORM_SQ,
    LMQ_SUMS
};

/* Everything about one judged side; lists are in the order of the text. */
struct lmq_drift {
    size_t n;
    double *kld;           /* (n): for the percentiles */
    double *delta;         /* (n): nll - nll of the reference */
    double *top1;          /* (n): 1 where the top token is the same, or 0 */
    size_t *document;      /* (n) */
    size_t kld_capacity, delta_capacity, top1_capacity, document_capacity;
    struct lmq_exact_sum sums[LMQ_SUMS];
    size_t n_top1_equal, n_lost, n_gained;
    double max_abs;
    uint64_t n_bytes; /* of text that the scored tokens stand for */
    struct lmq_worst worst[LMQ_WORST]; /* the worst first */
    size_t n_worst;
    struct lmq_exact_sum bin_kld[LMQ_POSITION_BINS];
    size_t bin_n[LMQ_POSITION_BINS];
};

void lmq_drift_free(struct lmq_drift *drift);

/* Room for n positions; not 0 without memory. */
int lmq_drift_reserve(struct lmq_drift *drift, size_t n);
/* `position` of `context` is where the token stands in its window. */
enum lmq_status lmq_drift_add(struct lmq_drift *drift,
                              const struct lmq_window *window, size_t position,
                              size_t context,
                              const struct lmq_position_drift *at,
                              struct lmq_error *err);

double lmq_drift_sum(const struct lmq_drift *drift, enum lmq_drift_sum which);
size_t lmq_drift_documents(const struct lmq_drift *drift);
double lmq_drift_mean_kld(const struct lmq_drift *drift);
double lmq_drift_perplexity(double nll_sum, size_t n);

/* The residual stream after one layer, over all windows, as exactly. */
struct lmq_stream_sums {
    uint64_t n;
    struct lmq_exact_sum err_sq, reference_sq, model_sq, dot;
};

void lmq_stream_sums_add(struct lmq_stream_sums *sums,
                         const struct lmq_stream_drift *window);

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
