/*
 * exact_sum.c - a long number in fixed point, in limbs of 32 bits that are
 * carried now and then.
 */
#include "config.h"

#include "base/exact_sum.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each addition makes a limb larger by less than 2^32. */
#define ADDITIONS_MAX ((uint32_t)1 << 29)
#define LIMB_BITS 32
#define LIMB_MASK 0xffffffffu
#define FRACTION_BITS 52
#define LOWEST_EXPONENT (-1074)

/* All limbs but the last, which has the sign, in [0, 2^32). */
static void
carry(struct lmq_exact_sum *sum)
{
    int64_t over = 0;

    for (int i = 0; i < LMQ_EXACT_LIMBS - 1; i++) {
        int64_t limb = sum->limbs[i] + over;
        int64_t low = limb & (int64_t)LIMB_MASK;
        over = (limb - low) / ((int64_t)1 << LIMB_BITS);
        sum->limbs[i] = low;
    }
    sum->limbs[LMQ_EXACT_LIMBS - 1] += over;
    sum->n = 1;
}

void
lmq_exact_add(struct lmq_exact_sum *sum, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    uint64_t fraction = bits & (((uint64_t)1 << FRACTION_BITS) - 1);
    unsigned exponent = (unsigned)(bits >> FRACTION_BITS) & 0x7ff;
    if (exponent == 0x7ff) {
        sum->special += x;
        return;
    }
    if (exponent > 0) {
        fraction |= (uint64_t)1 << FRACTION_BITS;
        exponent--;
    }
    unsigned shift = exponent % LIMB_BITS;
    int64_t parts[3] = {
        (int64_t)((fraction << shift) & LIMB_MASK),
        (int64_t)((fraction >> (LIMB_BITS - shift)) & LIMB_MASK),
        shift == 0 ? 0 : (int64_t)(fraction >> (2 * LIMB_BITS - shift)),
    };
    int64_t *limbs = sum->limbs + exponent / LIMB_BITS;
    for (int i = 0; i < 3; i++)
        limbs[i] += bits >> 63 != 0 ? -parts[i] : parts[i];
    if (++sum->n >= ADDITIONS_MAX)
        carry(sum);
}

void
lmq_exact_merge(struct lmq_exact_sum *sum, const struct lmq_exact_sum *more)
{
    for (int i = 0; i < LMQ_EXACT_LIMBS; i++)
        sum->limbs[i] += more->limbs[i];
    sum->special += more->special;
    sum->n += more->n;
    if (sum->n >= ADDITIONS_MAX)
        carry(sum);
}

/* 53 bits from the highest one on, rounded; nothing below 2^-1074 is ever
 * there, so subnormal numbers are exact. */
static double
round_limbs(const int64_t *limbs, int top)
{
    uint64_t high = (uint64_t)limbs[top] << LIMB_BITS;
    uint64_t low = top > 1 ? (uint64_t)limbs[top - 2] : 0;
    int exponent = LOWEST_EXPONENT + LIMB_BITS * top;
    bool is_sticky = false;

    high |= top > 0 ? (uint64_t)limbs[top - 1] : 0;
    for (int i = 0; i < top - 2; i++)
        is_sticky |= limbs[i] != 0;
    exponent -= LIMB_BITS;
    while (high >> 63 == 0) {
        high = high << 1 | (low >> (LIMB_BITS - 1) & 1);
        low <<= 1;
        exponent--;
    }
    is_sticky |= (low & LIMB_MASK) != 0;
    uint64_t kept = high >> 11, rest = high & 0x7ff;
    if (rest > 0x400 || (rest == 0x400 && (is_sticky || (kept & 1) != 0)))
        kept++;
    return ldexp((double)kept, exponent + 11);
}

/* Makes all limbs positive; returns whether it had to change the sign. */
static bool
take_sign(struct lmq_exact_sum *sum)
{
    carry(sum);
    if (sum->limbs[LMQ_EXACT_LIMBS - 1] >= 0)
        return false;
    for (int i = 0; i < LMQ_EXACT_LIMBS; i++)
        sum->limbs[i] = -sum->limbs[i];
    carry(sum);
    return true;
}

/* The highest limb that is not 0; -1: none. */
static int
find_top(const struct lmq_exact_sum *sum)
{
    int top = LMQ_EXACT_LIMBS - 1;

    while (top >= 0 && sum->limbs[top] == 0)
        top--;
    return top;
}

double
lmq_exact_round(const struct lmq_exact_sum *sum)
{
    struct lmq_exact_sum copy = *sum;

    if (!isfinite(copy.special))
        return copy.special;
    bool is_negative = take_sign(&copy);
    int top = find_top(&copy);
    if (top < 0)
        return 0;
    double value = round_limbs(copy.limbs, top);
    return is_negative ? -value : value;
}

/* ---- As text ---- */

void
lmq_exact_print(const struct lmq_exact_sum *sum, char text[LMQ_EXACT_TEXT])
{
    struct lmq_exact_sum copy = *sum;
    int low = 0;

    if (!isfinite(copy.special)) {
        strcpy(text, isnan(copy.special) ? "nan"
                     : copy.special > 0  ? "inf"
                                         : "-inf");
        return;
    }
    bool is_negative = take_sign(&copy);
    int top = find_top(&copy);
    if (top < 0) {
        strcpy(text, "0");
        return;
    }
    while (copy.limbs[low] == 0)
        low++;
    text += sprintf(text, "%s%" PRIx64, is_negative ? "-" : "",
                    (uint64_t)copy.limbs[top]);
    while (--top >= low)
        text += sprintf(text, "%08" PRIx64, (uint64_t)copy.limbs[top]);
    sprintf(text, "@%d", low);
}

static bool
parse_special(const char *text, struct lmq_exact_sum *sum)
{
    if (strcmp(text, "nan") == 0)
        sum->special = (double)NAN;
    else if (strcmp(text, "inf") == 0)
        sum->special = (double)INFINITY;
    else if (strcmp(text, "-inf") == 0)
        sum->special = -(double)INFINITY;
    else
        return strcmp(text, "0") == 0;
    return true;
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Eight digits for a limb, from the end on. */
static bool
parse_digits(const char *digits, size_t n, size_t low, bool is_negative,
             struct lmq_exact_sum *sum)
{
    const size_t per_limb = LIMB_BITS / 4;

    if (n == 0 || low >= LMQ_EXACT_LIMBS ||
        n > (LMQ_EXACT_LIMBS - low) * per_limb)
        return false;
    for (size_t i = 0; i < n; i++) {
        int digit = hex_digit(digits[n - 1 - i]);
        if (digit < 0)
            return false;
        int64_t value = (int64_t)digit << 4 * (i % per_limb);
        sum->limbs[low + i / per_limb] += is_negative ? -value : value;
    }
    sum->n = 1;
    /* Far above all sums of doubles; and the sum of many such fits. */
    return sum->limbs[LMQ_EXACT_LIMBS - 1] == 0;
}

bool
lmq_exact_parse(const char *text, struct lmq_exact_sum *sum)
{
    bool is_negative = text[0] == '-';
    const char *digits = text + is_negative;
    size_t n = strcspn(digits, "@");
    char *end;

    *sum = (struct lmq_exact_sum){0};
    if (digits[n] == '\0')
        return parse_special(text, sum);
    const char *move = digits + n + 1;
    if (move[0] < '0' || move[0] > '9' || strlen(move) > 2)
        return false;
    unsigned long low = strtoul(move, &end, 10);
    return *end == '\0' && parse_digits(digits, n, low, is_negative, sum);
}
