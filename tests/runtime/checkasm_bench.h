/*
 * checkasm_bench.h - how fast the kernels are, and how near to the limit.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_BENCH_H
#define LMQ_TESTS_RUNTIME_CHECKASM_BENCH_H

#include <stddef.h>

#include "runtime/kernels/kernels.h"

/* Prints a table for one instruction set. Each figure is the best of a few
 * rounds, with the probe measured between them. */
void checkasm_bench(const struct lmq_kernels *k, size_t n_threads);

#endif
