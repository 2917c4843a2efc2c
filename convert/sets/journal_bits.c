/*
 * journal_bits.c - numbers and bytes as JSON, without loss.
 */
#include "config.h"

#include "convert/sets/journal_bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *
lmq_f64_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return json_integer((json_int_t)bits);
}

json_t *
lmq_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return json_integer(bits);
}

double
lmq_f64_of(const json_t *json)
{
    uint64_t bits = (uint64_t)json_integer_value(json);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

float
lmq_f32_of(const json_t *json)
{
    uint32_t bits = (uint32_t)json_integer_value(json);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

json_t *
lmq_hex_of(const unsigned char *bytes, size_t n)
{
    char *text = malloc(2 * n + 1);

    if (text == NULL)
        return NULL;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    json_t *json = json_string(text);
    free(text);
    return json;
}

bool
lmq_hex_read(const json_t *json, unsigned char *bytes, size_t n)
{
    const char *text = json_string_value(json);

    if (text == NULL || strlen(text) != 2 * n ||
        strspn(text, "0123456789abcdef") != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned value;
        sscanf(text + 2 * i, "%2x", &value);
        bytes[i] = (unsigned char)value;
    }
    return true;
}
