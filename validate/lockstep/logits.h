/*
 * logits.h - how far are two rows of logits apart?
 */
#ifndef LMQ_VALIDATE_LOGITS_H
#define LMQ_VALIDATE_LOGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One position: the reference's logits against the model's. */
struct lmq_position_drift {
    double nll_reference, nll; /* of the token that follows, in nats */
    double kld;                /* of the model's distribution from the
                                  reference's, in nats */
    double total_variation;
    double delta_p;            /* of the token that follows: the model's
                                  less the reference's */
    double top5;               /* shared part of the five likeliest */
    bool is_top1_equal;
    bool is_lost, is_gained;   /* the likeliest token is the one that follows
                                  only for the reference, only for the model */
    int32_t top1_reference, top1; /* the likeliest token of each */
    /* of the logits themselves: */
    double max_abs, sum_abs, sum_sq, dot, norm_reference_sq, norm_sq;
};

/* The residual streams of some positions: the model's against the
 * reference's. */
struct lmq_stream_drift {
    uint64_t n; /* numbers compared */
    double err_sq, reference_sq, model_sq, dot;
};

void lmq_compare_streams(const float *reference, const float *model, size_t n,
                         struct lmq_stream_drift *drift);
void lmq_stream_drift_add(struct lmq_stream_drift *total,
                          const struct lmq_stream_drift *more);

/*
 * In doubles, sums in eight lanes and a fixed order, exponentials that are
 * the same everywhere. scratch has room for 2 n doubles.
 */
void lmq_compare_logits(const float *reference, const float *model, size_t n,
                        int32_t next, double *scratch,
                        struct lmq_position_drift *drift);

#endif
