/*
 * checkasm_parts.h - what is checked, by the functions that it is about.
 */
#ifndef LMQ_TESTS_RUNTIME_CHECKASM_PARTS_H
#define LMQ_TESTS_RUNTIME_CHECKASM_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/kernels.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* printf into the file's `sizes`: what was being compared. */
#define SIZES(...) (snprintf(sizes, sizeof(sizes), __VA_ARGS__), sizes)

/* Whether the function is to be checked; if so, from the seed. */
bool checkasm_start(const char *function);

/* Counts; says the first failures. */
void checkasm_report(bool is_equal, const char *kernel, const char *isa,
                     const char *sizes);

/* Against plain C. */
void checkasm_product(const struct lmq_kernels *k);
void checkasm_quantize(const struct lmq_kernels *k);
void checkasm_rows(const struct lmq_kernels *k);
void checkasm_turned(const struct lmq_kernels *k);
void checkasm_row_types(const struct lmq_kernels *k);
void checkasm_vectors(const struct lmq_kernels *k);
void checkasm_exp_everywhere(const struct lmq_kernels *k);
void checkasm_soften(const struct lmq_kernels *k);
void checkasm_recur(const struct lmq_kernels *k);
void checkasm_select(const struct lmq_kernels *k);

/* Plain C against a naive reading of the contract, and libm. */
void checkasm_naive_product(void);
void checkasm_naive_quantize(void);
void checkasm_naive_halves(void);
void checkasm_naive_dot(void);
void checkasm_naive_soften(void);
void checkasm_naive_recur(void);
void checkasm_naive_select(void);
void checkasm_accuracy(void);

/* The names of what checkasm_vectors() checks, some twice. */
#define CHECKASM_N_VECTORS 23
extern const char *const checkasm_vector_names[CHECKASM_N_VECTORS];

#endif
