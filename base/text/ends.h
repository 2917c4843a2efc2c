/*
 * ends.h - how a text ends.
 */
#ifndef LMQ_BASE_TEXT_ENDS_H
#define LMQ_BASE_TEXT_ENDS_H

#include <stdbool.h>
#include <string.h>

static inline bool
lmq_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

#endif
