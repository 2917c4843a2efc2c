/*
 * utf8.c - characters in bytes, through utf8proc.
 */
#include "config.h"

#include "base/text/utf8.h"

#include <utf8proc.h>

size_t
lmq_utf8_sequence(const unsigned char *p, size_t n)
{
    utf8proc_int32_t code;

    if (n == 0)
        return 0;
    utf8proc_ssize_t length =
        utf8proc_iterate(p, n < 4 ? (utf8proc_ssize_t)n : 4, &code);
    return length > 0 ? (size_t)length : 0;
}

uint32_t
lmq_utf8_decode(const unsigned char *p, size_t n)
{
    utf8proc_int32_t code;

    if (p[0] < 0x80)
        return p[0];
    utf8proc_iterate(p, (utf8proc_ssize_t)n, &code);
    return (uint32_t)code;
}

size_t
lmq_utf8_encode(uint32_t code, unsigned char p[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, p);
}

bool
lmq_utf8_is_shown(uint32_t code)
{
    const utf8proc_property_t *property =
        utf8proc_get_property((utf8proc_int32_t)code);

    switch (property->bidi_class) {
    case UTF8PROC_BIDI_CLASS_LRE:
    case UTF8PROC_BIDI_CLASS_LRO:
    case UTF8PROC_BIDI_CLASS_RLE:
    case UTF8PROC_BIDI_CLASS_RLO:
    case UTF8PROC_BIDI_CLASS_PDF:
    case UTF8PROC_BIDI_CLASS_LRI:
    case UTF8PROC_BIDI_CLASS_RLI:
    case UTF8PROC_BIDI_CLASS_FSI:
    case UTF8PROC_BIDI_CLASS_PDI:
        return false;
    default:
        return property->category != UTF8PROC_CATEGORY_CC &&
               property->category != UTF8PROC_CATEGORY_ZL &&
               property->category != UTF8PROC_CATEGORY_ZP;
    }
}

size_t
lmq_utf8_valid(const unsigned char *p, size_t n)
{
    size_t at = 0;

    for (;;) {
        size_t length = lmq_utf8_length(p + at, n - at);
        if (length == 0)
            return at;
        at += length;
    }
}

size_t
lmq_utf8_invalid(const unsigned char *p, size_t n)
{
    size_t at = 0;

    while (at < n && lmq_utf8_length(p + at, n - at) == 0)
        at++;
    return at;
}
