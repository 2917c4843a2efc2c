/*
 * buffer.h - bytes that grow.
 */
#ifndef LMQ_BASE_BUFFER_H
#define LMQ_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/*
 * Zero it to begin; lmq_buffer_free() at the end.
 *
 * What appends gives 0, or -1 without memory or beyond what the buffer may
 * hold, and then leaves the bytes as they are and has_failed set: who appends
 * much asks once, at the end.
 */
struct lmq_buffer {
    unsigned char *bytes;
    size_t n, capacity;
    size_t most;  /* what it may hold; 0: anything */
    bool is_full; /* somebody wanted more than that */
    bool has_failed;
};

int lmq_buffer_append(struct lmq_buffer *buffer, const void *bytes, size_t n);
int lmq_buffer_append_u32le(struct lmq_buffer *buffer, uint32_t value);
int lmq_buffer_append_u64le(struct lmq_buffer *buffer, uint64_t value);
int lmq_buffer_append_f32le(struct lmq_buffer *buffer, float value);

/* A code point as UTF-8. */
int lmq_buffer_append_char(struct lmq_buffer *buffer, uint32_t code);

/* As printf() has it, without the 0 at the end. */
int lmq_buffer_print(struct lmq_buffer *buffer, const char *format, ...)
    LMQ_PRINTF(2, 3);

/* Room for n bytes behind the last one, to be filled and counted by the
 * caller; NULL as above. */
unsigned char *lmq_buffer_room(struct lmq_buffer *buffer, size_t n);

/* The bytes with a 0 behind them, which the caller frees with free(); NULL if
 * anything has failed. The buffer is empty then. */
char *lmq_buffer_text(struct lmq_buffer *buffer);

void lmq_buffer_free(struct lmq_buffer *buffer);

#endif
