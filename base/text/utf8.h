/*
 * utf8.h - characters in bytes; what a character is says utf8proc.
 */
#ifndef LMQ_BASE_UTF8_H
#define LMQ_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What lmq_utf8_length() does beyond ASCII. */
size_t lmq_utf8_sequence(const unsigned char *p, size_t n);

/* Bytes of the character at p (1..4), 0 if what stands there is none:
 * overlong forms, surrogates and values above U+10FFFF are refused. */
static inline size_t
lmq_utf8_length(const unsigned char *p, size_t n)
{
    return n > 0 && p[0] < 0x80 ? 1 : lmq_utf8_sequence(p, n);
}

/* The code point of a valid character of n bytes, and its bytes (1..4). */
uint32_t lmq_utf8_decode(const unsigned char *p, size_t n);
size_t lmq_utf8_encode(uint32_t code, unsigned char p[4]);

/* Whether a terminal shows it, and nothing but it: it is no control character,
 * turns no text around and ends no line. */
bool lmq_utf8_is_shown(uint32_t code);

/* Bytes from p that are valid UTF-8. */
size_t lmq_utf8_valid(const unsigned char *p, size_t n);

/* Bytes from p that are not: all of them up to the next valid character. */
size_t lmq_utf8_invalid(const unsigned char *p, size_t n);

static inline bool
lmq_is_utf8(const unsigned char *p, size_t n)
{
    return lmq_utf8_valid(p, n) == n;
}

#endif
