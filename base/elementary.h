/*
 * elementary.h - exp, log, softplus, sin and cos that are the same bits
 * everywhere.
 *
 * The C library's differ in the last bit from one version to the next; these
 * use nothing but IEEE operations on doubles in a fixed order. Their relative
 * error is some 1e-15 (sin and cos: absolute, for angles up to 1e6).
 */
#ifndef LMQ_BASE_ELEMENTARY_H
#define LMQ_BASE_ELEMENTARY_H

/* x > 0 and finite. */
double lmq_log(double x);

/* 0 below -745, infinity above 709. */
double lmq_exp(double x);

/* log(1 + exp(x)), which is x for large ones. */
double lmq_softplus(double x);

void lmq_sincos(double angle, double *sine, double *cosine);

#endif
