/*
 * part_fields.c - numbers as texts that lose nothing.
 */
#include "config.h"

#include "validate/parts/part_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/report.h"

#define DIGITS 16 /* of a double */

const char *const lmq_part_sum_names[LMQ_SUMS] = {
    [LMQ_SUM_NLL_REFERENCE] = "nll_reference",
    [LMQ_SUM_NLL] = "nll",
    [LMQ_SUM_KLD] = "kld",
    [LMQ_SUM_TV] = "total_variation",
    [LMQ_SUM_DELTA_P_SQ] = "delta_p_sq",
    [LMQ_SUM_TOP5] = "top5",
    [LMQ_SUM_ABS] = "logits_abs",
    [LMQ_SUM_SQ] = "logits_sq",
    [LMQ_SUM_DOT] = "logits_dot",
    [LMQ_SUM_NORM_REFERENCE_SQ] = "logits_reference_sq",
    [LMQ_SUM_NORM_SQ] = "logits_model_sq",
};

json_t *
lmq_part_sum(const struct lmq_exact_sum *sum)
{
    char text[LMQ_EXACT_TEXT];

    lmq_exact_print(sum, text);
    return json_string(text);
}

json_t *
lmq_part_numbers(const double *numbers, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char *text = n > SIZE_MAX / DIGITS - 1 ? NULL : malloc(n * DIGITS + 1);

    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof(bits));
        for (size_t j = 0; j < DIGITS; j++)
            text[i * DIGITS + j] = digits[bits >> (60 - 4 * j) & 15];
    }
    json_t *json = json_stringn(text, n * DIGITS);
    free(text);
    return json;
}

size_t
lmq_part_count_numbers(const json_t *json)
{
    return json_string_length(json) / DIGITS;
}

bool
lmq_part_read_numbers(const json_t *json, double *numbers, size_t n)
{
    const char *text = json_string_value(json);

    if (text == NULL || json_string_length(json) / DIGITS != n ||
        json_string_length(json) % DIGITS != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t j = 0; j < DIGITS; j++) {
            char c = text[i * DIGITS + j];
            bool is_digit = c >= '0' && c <= '9';
            if (!is_digit && !(c >= 'a' && c <= 'f'))
                return false;
            bits = bits << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
        }
        memcpy(&numbers[i], &bits, sizeof(bits));
    }
    return true;
}

/* Without a product that could wrap: the first parts have one more. */
struct lmq_part_range
lmq_part_of(size_t total, size_t part, size_t n_parts)
{
    size_t each = total / n_parts, more = total % n_parts;
    size_t before = part - 1;

    return (struct lmq_part_range){
        before * each + (before < more ? before : more),
        each + (before < more)};
}

static uint32_t
add_number(uint32_t crc, uint64_t number)
{
    unsigned char bytes[8];

    lmq_store_u64le(bytes, number);
    return lmq_crc32(crc, bytes, sizeof(bytes));
}

json_t *
lmq_part_tokens(const struct lmq_corpus *corpus)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < corpus->n_tokens; i++)
        crc = add_number(crc, (uint64_t)corpus->tokens[i]);
    for (size_t i = 0; i < corpus->n_windows; i++) {
        const struct lmq_window *window = &corpus->windows[i];
        crc = add_number(crc, window->first);
        crc = add_number(crc, window->n);
        crc = add_number(crc, window->scored);
        crc = add_number(crc, window->document);
    }
    return lmq_json_crc(crc);
}
