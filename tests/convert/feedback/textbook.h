/*
 * textbook.h - tokens, their Hessian, and what errors cost, as plainly as it
 * can be said: what rounding with feedback is compared with.
 */
#ifndef LMQ_TESTS_CONVERT_FEEDBACK_TEXTBOOK_H
#define LMQ_TESTS_CONVERT_FEEDBACK_TEXTBOOK_H

#include "base/threads/team.h"
#include "convert/calibrate/feedback/hessian.h"
#include "tests/build/suite.h"

/* Whole blocks, groups and registers do not fit in. */
#define TEXTBOOK_COLUMNS 150
#define TEXTBOOK_TOKENS 400
#define TEXTBOOK_DAMPING 0.01

/* (n, width), which the caller frees. What columns have in common, so that
 * feedback has something to do. */
float *textbook_tokens(size_t n, size_t width, struct random *random);
void textbook_rows(float *x, size_t n, struct random *random);

/* Whether it can be factored. */
bool textbook_factor(struct lmq_hessian *hessian, double damping,
                     struct lmq_team *team);

/* n tokens x in calls of `step`. */
struct lmq_hessian textbook_add_up(const float *x, size_t n, size_t step,
                                   struct lmq_team *team);

/* ---- The same in plain doubles ---- */

/* H[i][j], not yet in units. */
double textbook_sum(const float *x, size_t n, size_t i, size_t j);

/* H of TEXTBOOK_TOKENS in the units of a factored one, whole; the caller frees
 * it. */
double *textbook_hessian(const float *x);

/* Of quantizing x: e H e. */
double textbook_cost(const double *h, const float *x, const int8_t *q,
                     const float *scales, size_t group);

/* Gauss and Jordan. */
void textbook_invert(const double *h, double *inverse);

#endif
