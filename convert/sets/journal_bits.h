/*
 * journal_bits.h - numbers as their bits, bytes as hexadecimal digits: what a
 * journal says is what it was told.
 */
#ifndef LMQ_CONVERT_SETS_JOURNAL_BITS_H
#define LMQ_CONVERT_SETS_JOURNAL_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/report.h"

json_t *lmq_f64_bits(double value);
json_t *lmq_f32_bits(float value);
double lmq_f64_of(const json_t *json);
float lmq_f32_of(const json_t *json);

/* 2 n digits. */
json_t *lmq_hex_of(const unsigned char *bytes, size_t n);
/* False if it is not so long, or no hexadecimal digits. */
bool lmq_hex_read(const json_t *json, unsigned char *bytes, size_t n);

#endif
