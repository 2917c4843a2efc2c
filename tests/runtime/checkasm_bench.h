/*
 * checkasm_bench.h - how fast the kernels are, and how near to the limit.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_BENCH_H
#define LMQ_TESTS_RUNTIME_CHECKASM_BENCH_H

#include "runtime/kernels/kernels.h"
#include "tests/runtime/checkasm_choice.h"

/* Prints a table of the chosen functions for one instruction set. Each figure
 * is the best of a few rounds, with the probe measured between them. */
void checkasm_bench(const struct lmq_kernels *k,
                    const struct checkasm_choice *choice);

#endif
