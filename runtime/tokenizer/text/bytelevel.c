/*
 * bytelevel.c - GPT-2's letters for bytes.
 *
 * Byte-level vocabularies are written with one visible character per byte:
 * printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards.
 */
#include "config.h"

#include "runtime/tokenizer/text/bytelevel.h"

#include "base/text/utf8.h"

/* The bytes that have no letter of their own; they are 0x100, 0x101, ... */
static const unsigned char others[] = {
    0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,
    14,  15,  16,  17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  27,
    28,  29,  30,  31,  32,  127, 128, 129, 130, 131, 132, 133, 134, 135,
    136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149,
    150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 173,
};

static bool
stands_for_itself(uint32_t code)
{
    return (code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xac) ||
           (code >= 0xae && code <= 0xff);
}

/* The byte that a code point stands for, -1 for none. */
static int
letter_byte(uint32_t code)
{
    if (stands_for_itself(code))
        return (int)code;
    return code >= 0x100 && code - 0x100 < sizeof(others)
               ? others[code - 0x100]
               : -1;
}

bool
lmq_bytelevel_unmap(struct lmq_chars letters, struct lmq_buffer *out)
{
    size_t before = out->n, n_bytes = 0;
    unsigned char bytes[64];

    for (size_t at = 0; at < letters.n;) {
        const unsigned char *p = letters.p + at;
        /* All of these letters have one byte of UTF-8 or two. */
        size_t n = p[0] < 0x80 ? 1 : lmq_utf8_length(p, letters.n - at);
        int byte = n == 1   ? letter_byte(p[0])
                   : n == 2 ? letter_byte((p[0] & 0x1fu) << 6 | (p[1] & 0x3fu))
                            : -1;
        if (byte < 0) {
            out->n = before;
            return false;
        }
        bytes[n_bytes++] = (unsigned char)byte;
        at += n;
        if (n_bytes == sizeof(bytes) || at == letters.n) {
            lmq_buffer_append(out, bytes, n_bytes);
            n_bytes = 0;
        }
    }
    return true;
}

/* Which of them it is, in `others`. */
static uint32_t
other_letter(unsigned char byte)
{
    uint32_t i = 0;

    while (others[i] != byte)
        i++;
    return 0x100 + i;
}

int
lmq_bytelevel_map(struct lmq_chars bytes, struct lmq_buffer *out)
{
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char byte = bytes.p[i];
        uint32_t code = stands_for_itself(byte) ? byte : other_letter(byte);
        unsigned char utf8[2] = { (unsigned char)(0xc0 | code >> 6),
                                  (unsigned char)(0x80 | (code & 0x3f)) };
        if (code < 0x80)
            lmq_buffer_append(out, &byte, 1);
        else
            lmq_buffer_append(out, utf8, 2);
    }
    return out->has_failed ? -1 : 0;
}
