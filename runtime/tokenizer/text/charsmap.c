/*
 * charsmap.c - SentencePiece's precompiled normalization rules.
 *
 * The blob is the size of a Darts double array, that array, and the texts that
 * its values are offsets into. Nothing in it is trusted: each step checks that
 * it stays inside.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "runtime/tokenizer/text/tok_normal.h"

/* What a rule may make of its text: Unicode's longest are 33 bytes. */
#define MAX_RULE_TEXT 1024

/* The last byte is 0, so each text ends. */
static bool
has_long_text(const unsigned char *texts, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t length = strlen((const char *)texts + at);
        if (length > MAX_RULE_TEXT)
            return true;
        at += length + 1;
    }
    return false;
}

enum lmq_status
lmq_charsmap_open(struct lmq_charsmap *charsmap, struct lmq_chars blob,
                  struct lmq_error *err)
{
    if (blob.n == 0)
        return LMQ_OK;
    uint32_t n_bytes = blob.n < 4 ? 0 : lmq_load_u32le(blob.p);
    if (blob.n < 5 || n_bytes % 4 != 0 || n_bytes == 0 ||
        n_bytes > blob.n - 5 || blob.p[blob.n - 1] != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the precompiled charsmap (%zu bytes) is damaged",
                        blob.n);
    if (has_long_text(blob.p + 4 + n_bytes, blob.n - 4 - n_bytes))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                        "the precompiled charsmap has a rule that makes more "
                        "than %d bytes",
                        MAX_RULE_TEXT);
    charsmap->bytes = malloc(blob.n);
    if (charsmap->bytes == NULL)
        return lmq_fail_nomem(err);
    memcpy(charsmap->bytes, blob.p, blob.n);
    charsmap->n_units = n_bytes / 4;
    charsmap->texts = charsmap->bytes + 4 + n_bytes;
    charsmap->n_texts = blob.n - 4 - n_bytes;
    return LMQ_OK;
}

/* Darts-clone's unit: bits 0-7 label, 8 has a leaf, 9-30 offset; a leaf has
 * bit 31 and the value. 0 outside, which no label matches but 0. */
static uint32_t
unit_at(const struct lmq_charsmap *charsmap, size_t index)
{
    return index < charsmap->n_units
               ? lmq_load_u32le(charsmap->bytes + 4 + 4 * index)
               : 0;
}

static size_t
unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

size_t
lmq_charsmap_find(const struct lmq_charsmap *charsmap, struct lmq_chars text,
                  bool is_longest, struct lmq_chars *to)
{
    size_t longest = 0;
    size_t node = unit_offset(unit_at(charsmap, 0));

    for (size_t i = 0; i < text.n && text.p[i] != 0; i++) {
        node ^= text.p[i];
        uint32_t unit = unit_at(charsmap, node);
        if ((unit & 0x800000ffu) != text.p[i])
            break;
        node ^= unit_offset(unit);
        if ((unit >> 8 & 1) == 0)
            continue;
        uint32_t value = unit_at(charsmap, node) & 0x7fffffffu;
        if (value >= charsmap->n_texts)
            continue;
        const unsigned char *p = charsmap->texts + value;
        *to = lmq_chars(p, strlen((const char *)p));
        longest = i + 1;
        if (!is_longest)
            break;
    }
    return longest;
}

bool
lmq_charsmap_begins(const struct lmq_charsmap *charsmap, struct lmq_chars text)
{
    size_t node = unit_offset(unit_at(charsmap, 0));

    for (size_t i = 0; i < text.n; i++) {
        node ^= text.p[i];
        uint32_t unit = unit_at(charsmap, node);
        if (text.p[i] == 0 || (unit & 0x800000ffu) != text.p[i])
            return false;
        node ^= unit_offset(unit);
    }
    return true;
}
