/*
 * exponentials.h - what logits are as parts of their sum: the same bits on
 * every machine.
 */
#ifndef LMQ_VALIDATE_EXPONENTIALS_H
#define LMQ_VALIDATE_EXPONENTIALS_H

#include <stddef.h>

/* e[i] = exp(x[i] - top), none of which is larger than `top`; returns the sum,
 * which is of eight lanes, in a fixed order. */
double lmq_exponentials(const float *x, size_t n, float top, double *e);

/* Its builds (exponentials_body.h). */
double lmq_exponentials_c(const float *x, size_t n, float top, double *e);
double lmq_exponentials_avx2(const float *x, size_t n, float top, double *e);
double lmq_exponentials_avx512(const float *x, size_t n, float top, double *e);

#endif
