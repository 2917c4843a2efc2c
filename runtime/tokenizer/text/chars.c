/*
 * chars.c - text of fixed length, and what tokenizers ask about characters.
 */
#include "config.h"

#include "runtime/tokenizer/text/chars.h"

#include <string.h>

#include "base/error.h"

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

const unsigned char *
lmq_chars_find(struct lmq_chars text, struct lmq_chars part)
{
    while (part.n > 0 && text.n >= part.n) {
        const unsigned char *p =
            memchr(text.p, part.p[0], text.n - part.n + 1);
        if (p == NULL || memcmp(p, part.p, part.n) == 0)
            return p;
        p++;
        text = lmq_chars(p, text.n - (size_t)(p - text.p));
    }
    return NULL;
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
