/*
 * exact_sum.h - sums of doubles without any rounding on the way.
 *
 * So their digits do not depend on the order, nor on who added up which part.
 */
#ifndef LMQ_BASE_EXACT_SUM_H
#define LMQ_BASE_EXACT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of a double stand 2^-1074 to 2^1023; above is room for carries. */
#define LMQ_EXACT_LIMBS 67

/* All zero: 0. */
struct lmq_exact_sum {
    int64_t limbs[LMQ_EXACT_LIMBS]; /* of weight 2^(32 * i - 1074) */
    uint32_t n; /* additions since limbs were below 2^32 */
    double special; /* infinities, and NaN */
};

void lmq_exact_add(struct lmq_exact_sum *sum, double x);
void lmq_exact_merge(struct lmq_exact_sum *sum,
                     const struct lmq_exact_sum *more);

/*
 * The number itself: "0", or hexadecimal digits, '@', and by how many limbs
 * they are moved up, with '-' before it if it is negative; "inf", "-inf",
 * "nan". The second tells whether the text is one.
 */
#define LMQ_EXACT_TEXT (8 * (LMQ_EXACT_LIMBS + 1) + 8)
void lmq_exact_print(const struct lmq_exact_sum *sum,
                     char text[LMQ_EXACT_TEXT]);
bool lmq_exact_parse(const char *text, struct lmq_exact_sum *sum);

/* The double that is nearest, ties to even. */
double lmq_exact_round(const struct lmq_exact_sum *sum);

#endif
