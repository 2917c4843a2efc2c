/*
 * buffer.c - bytes that grow.
 */
#include "config.h"

#include "base/text/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/text/c_locale.h"
#include "base/text/utf8.h"

unsigned char *
lmq_buffer_room(struct lmq_buffer *buffer, size_t n)
{
    size_t needed;

    if (!lmq_size_add(buffer->n, n, &needed)) {
        buffer->has_failed = true;
        return NULL;
    }
    if (buffer->most != 0 && needed > buffer->most) {
        buffer->is_full = buffer->has_failed = true;
        return NULL;
    }
    if (lmq_mem_grow(&buffer->bytes, &buffer->capacity, needed, 1) != 0) {
        buffer->has_failed = true;
        return NULL;
    }
    return buffer->bytes + buffer->n;
}

int
lmq_buffer_append(struct lmq_buffer *buffer, const void *bytes, size_t n)
{
    if (n == 0)
        return 0;
    unsigned char *room = lmq_buffer_room(buffer, n);
    if (room == NULL)
        return -1;
    memcpy(room, bytes, n);
    buffer->n += n;
    return 0;
}

int
lmq_buffer_append_u32le(struct lmq_buffer *buffer, uint32_t value)
{
    unsigned char bytes[4];

    lmq_store_u32le(bytes, value);
    return lmq_buffer_append(buffer, bytes, sizeof(bytes));
}

int
lmq_buffer_append_u64le(struct lmq_buffer *buffer, uint64_t value)
{
    unsigned char bytes[8];

    lmq_store_u64le(bytes, value);
    return lmq_buffer_append(buffer, bytes, sizeof(bytes));
}

int
lmq_buffer_append_f32le(struct lmq_buffer *buffer, float value)
{
    unsigned char bytes[4];

    lmq_store_f32le(bytes, value);
    return lmq_buffer_append(buffer, bytes, sizeof(bytes));
}

int
lmq_buffer_append_char(struct lmq_buffer *buffer, uint32_t code)
{
    unsigned char bytes[4];

    return lmq_buffer_append(buffer, bytes, lmq_utf8_encode(code, bytes));
}

int
lmq_buffer_print(struct lmq_buffer *buffer, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int n = lmq_c_vsnprintf(NULL, 0, format, args);
    unsigned char *room =
        n < 0 ? NULL : lmq_buffer_room(buffer, (size_t)n + 1);
    if (room != NULL) {
        lmq_c_vsnprintf((char *)room, (size_t)n + 1, format, again);
        buffer->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
    buffer->has_failed |= room == NULL;
    return room == NULL ? -1 : 0;
}

char *
lmq_buffer_text(struct lmq_buffer *buffer)
{
    unsigned char *end = buffer->has_failed ? NULL
                                            : lmq_buffer_room(buffer, 1);
    unsigned char *text = buffer->bytes;

    if (end == NULL) {
        lmq_buffer_free(buffer);
        return NULL;
    }
    *end = '\0';
    *buffer = (struct lmq_buffer){0};
    return (char *)text;
}

void
lmq_buffer_free(struct lmq_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct lmq_buffer){0};
}
