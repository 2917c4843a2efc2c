/*
 * notes.h - remarks for people: what was assumed, left out, or may surprise.
 *
 * Those of reading a checkpoint belong to it; those of an operation belong to
 * the operation and end with its report, so that the next one begins anew.
 */
#ifndef LMQ_BASE_NOTES_H
#define LMQ_BASE_NOTES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "lmquant.h"

/* All zero: none. */
struct lmq_notes {
    char **texts; /* a sentence each */
    size_t n, capacity;
    bool has_lost; /* one, for lack of memory; a report with it fails */
};

void lmq_notes_add(struct lmq_notes *notes, const char *format, ...)
    LMQ_PRINTF(2, 3);
void lmq_notes_add_list(struct lmq_notes *notes, const char *format,
                        va_list args) LMQ_PRINTF(2, 0);
void lmq_notes_free(struct lmq_notes *notes);

#endif
