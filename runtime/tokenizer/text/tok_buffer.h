/*
 * tok_buffer.h - bytes that grow, and the UTF-8 steps of the tokenizers.
 */
#ifndef LMQ_RUNTIME_TOKENIZER_TEXT_TOK_BUFFER_H
#define LMQ_RUNTIME_TOKENIZER_TEXT_TOK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* Zero it to begin; lmq_buffer_free() at the end. */
struct lmq_buffer {
    unsigned char *bytes;
    size_t n, capacity;
    size_t most;  /* what it may hold; 0: anything */
    bool is_full; /* somebody wanted more than that */
};

/* 0, or -1 without memory or beyond what it may hold, and unchanged. */
int lmq_buffer_append(struct lmq_buffer *buffer, const void *bytes, size_t n);
void lmq_buffer_free(struct lmq_buffer *buffer);

/* What to say when -1 came while a text of n bytes was worked on: that the
 * buffer is full, or that there is no memory. */
enum lmq_status lmq_buffer_fail(const struct lmq_buffer *buffer, size_t n,
                                struct lmq_error *err);

/* Appends a code point as UTF-8. */
int lmq_buffer_append_char(struct lmq_buffer *buffer, uint32_t code);

/* The code point of a valid character of n bytes. */
uint32_t lmq_utf8_decode(const unsigned char *p, size_t n);

/* Bytes from p that are valid UTF-8. */
size_t lmq_utf8_valid(const unsigned char *p, size_t n);

/* Bytes from p that are not: all of them up to the next valid character. */
size_t lmq_utf8_invalid(const unsigned char *p, size_t n);

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

#endif
