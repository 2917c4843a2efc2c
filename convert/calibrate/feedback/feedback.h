/*
 * feedback.h - rounds rows so that each number makes up for what those before
 * it missed ("GPTQ", "LDLQ").
 */
#ifndef LMQ_CONVERT_CALIBRATE_FEEDBACK_H
#define LMQ_CONVERT_CALIBRATE_FEEDBACK_H

#include "convert/calibrate/feedback/hessian.h"
#include "quantize/group.h"

/* Rows that are worked on side by side. */
#define LMQ_FEEDBACK_ROWS ((size_t)16)

/* One thread's room, for rows of n numbers. */
struct lmq_feedback_room {
    double *errors;  /* (n, LMQ_FEEDBACK_ROWS): value - quantized value */
    double *targets; /* (LMQ_GROUP_MAX, LMQ_FEEDBACK_ROWS) */
    double *before;  /* the same, while scales are tried */
    int8_t *q;       /* (n): a row by search alone */
    float *scales;   /* (n) */
};

bool lmq_feedback_room_init(struct lmq_feedback_room *room, size_t n);
void lmq_feedback_room_free(struct lmq_feedback_room *room);
double lmq_feedback_room_bytes(size_t n);

/* What came of some rows. */
struct lmq_feedback_result {
    float max_scale; /* for lmq_choose_multiplier() */
    double cost;     /* e^T H e, in the Hessian's units */
    double searched; /* what it would be by search alone */
};

/*
 * Quantizes n_rows rows x of hessian->n finite numbers each, at most
 * LMQ_FEEDBACK_ROWS: q and scales as lmq_quantize_row() gives them. What each
 * column makes up for besides are the offsets (n, LMQ_FEEDBACK_ROWS). No row
 * costs more than by search alone, which is taken where feedback does not pay.
 * The Hessian is factored. Rows of a matrix that is rotated are so already.
 */
void lmq_feedback_rows(const struct lmq_hessian *hessian,
                       const struct lmq_quant *quant, const float *x,
                       const double *offsets, size_t n_rows,
                       struct lmq_feedback_room *room, int8_t *q,
                       float *scales, struct lmq_feedback_result *result);

/* The same by search alone, with the diagonal as weights (weighed, not
 * factored). `cost` and `searched` are not filled in. */
void lmq_weighted_rows(const struct lmq_hessian *hessian,
                       const struct lmq_quant *quant, const float *x,
                       size_t n_rows, int8_t *q, float *scales,
                       struct lmq_feedback_result *result);

#endif
