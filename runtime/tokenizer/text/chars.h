/*
 * chars.h - text of fixed length, and what tokenizers ask about characters.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_CHARS_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/buffer.h"
#include "lmquant.h"

/* What to say when -1 came while a text of n bytes was worked on: that the
 * buffer is full, or that there is no memory. */
enum lmq_status lmq_buffer_fail(const struct lmq_buffer *buffer, size_t n,
                                struct lmq_error *err);

/* Unicode's White_Space. */
bool lmq_is_space(uint32_t code);

/* Text of fixed length, owned by whoever says so. */
struct lmq_chars {
    const unsigned char *p;
    size_t n;
};

static inline struct lmq_chars
lmq_chars(const void *p, size_t n)
{
    return (struct lmq_chars){ p, n };
}

/* Appends the bytes that base64 text stands for; -1 if it is none, or without
 * memory. */
int lmq_base64_decode(struct lmq_chars text, struct lmq_buffer *out);

bool lmq_chars_equal(struct lmq_chars a, struct lmq_chars b);

/* Where the part stands first; NULL if it does not, or is empty. */
const unsigned char *lmq_chars_find(struct lmq_chars text,
                                    struct lmq_chars part);

#endif
