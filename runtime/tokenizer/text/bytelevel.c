/*
 * bytelevel.c - GPT-2's letters for bytes.
 *
 * Byte-level vocabularies are written with one visible character per byte:
 * printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards.
 */
#include "config.h"

#include "base/text/utf8.h"
#include "runtime/tokenizer/model/tok_pipeline.h"

static bool
stands_for_itself(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
           (byte >= 0xae && byte <= 0xff);
}

/* The byte that a code point stands for, -1 for none. */
static int
letter_byte(uint32_t code)
{
    uint32_t next = 0x100;

    if (code < 0x100)
        return stands_for_itself(code) ? (int)code : -1;
    for (unsigned byte = 0; byte < 0x100; byte++)
        if (!stands_for_itself(byte) && next++ == code)
            return (int)byte;
    return -1;
}

bool
lmq_bytelevel_unmap(struct lmq_chars letters, struct lmq_buffer *out)
{
    size_t before = out->n;

    for (size_t at = 0; at < letters.n;) {
        size_t n = lmq_utf8_length(letters.p + at, letters.n - at);
        int byte = n == 0 ? -1
                          : letter_byte(lmq_utf8_decode(letters.p + at, n));
        if (byte < 0) {
            out->n = before;
            return false;
        }
        unsigned char c = (unsigned char)byte;
        lmq_buffer_append(out, &c, 1);
        at += n;
    }
    return true;
}
