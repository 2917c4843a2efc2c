/*
 * tok_buffer.c - bytes that grow, and the UTF-8 steps of the tokenizers.
 */
#include "config.h"

#include "runtime/tokenizer/text/tok_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

int
lmq_buffer_append(struct lmq_buffer *buffer, const void *bytes, size_t n)
{
    size_t needed;

    if (n == 0)
        return 0;
    if (!lmq_size_add(buffer->n, n, &needed))
        return -1;
    if (buffer->most != 0 && needed > buffer->most) {
        buffer->is_full = true;
        return -1;
    }
    if (lmq_mem_grow(&buffer->bytes, &buffer->capacity, needed, 1) != 0)
        return -1;
    memcpy(buffer->bytes + buffer->n, bytes, n);
    buffer->n = needed;
    return 0;
}

enum lmq_status
lmq_buffer_fail(const struct lmq_buffer *buffer, size_t n,
                struct lmq_error *err)
{
    if (!buffer->is_full)
        return lmq_fail_nomem(err);
    return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                    "the tokenizer makes more than %zu bytes of a text of %zu",
                    buffer->most, n);
}

void
lmq_buffer_free(struct lmq_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}

int
lmq_buffer_append_char(struct lmq_buffer *buffer, uint32_t code)
{
    unsigned char p[4];
    size_t n;

    if (code < 0x80) {
        p[0] = (unsigned char)code;
        n = 1;
    } else if (code < 0x800) {
        p[0] = (unsigned char)(0xc0 | code >> 6);
        p[1] = (unsigned char)(0x80 | (code & 0x3f));
        n = 2;
    } else if (code < 0x10000) {
        p[0] = (unsigned char)(0xe0 | code >> 12);
        p[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        p[2] = (unsigned char)(0x80 | (code & 0x3f));
        n = 3;
    } else {
        p[0] = (unsigned char)(0xf0 | code >> 18);
        p[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
        p[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        p[3] = (unsigned char)(0x80 | (code & 0x3f));
        n = 4;
    }
    return lmq_buffer_append(buffer, p, n);
}

uint32_t
lmq_utf8_decode(const unsigned char *p, size_t n)
{
    static const unsigned char masks[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = p[0] & masks[n];

    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
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

bool
lmq_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 ||
           code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

bool
lmq_chars_equal(struct lmq_chars a, struct lmq_chars b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The six bits of a digit, -1 for other characters. */
static int
base64_digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int
lmq_base64_decode(struct lmq_chars text, struct lmq_buffer *out)
{
    unsigned bits = 0, n_bits = 0;

    for (int i = 0; i < 2 && text.n > 0 && text.p[text.n - 1] == '='; i++)
        text.n--;
    for (size_t i = 0; i < text.n; i++) {
        int digit = base64_digit(text.p[i]);
        if (digit < 0)
            return -1;
        bits = (bits << 6 | (unsigned)digit) & 0xffff;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            unsigned char c = (unsigned char)(bits >> n_bits);
            if (lmq_buffer_append(out, &c, 1) != 0)
                return -1;
        }
    }
    return 0;
}
