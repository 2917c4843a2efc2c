/*
 * notes.c - remarks for people.
 */
#include "config.h"

#include "base/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/c_locale.h"

void
lmq_notes_add_list(struct lmq_notes *notes, const char *format, va_list args)
{
    char text[512];
    char *note = NULL;

    lmq_c_vsnprintf(text, sizeof(text), format, args);
    if (lmq_mem_grow(&notes->texts, &notes->capacity, notes->n + 1,
                     sizeof(*notes->texts)) == 0)
        note = strdup(text);
    if (note != NULL)
        notes->texts[notes->n++] = note;
    else
        notes->has_lost = true;
}

void
lmq_notes_add(struct lmq_notes *notes, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    lmq_notes_add_list(notes, format, args);
    va_end(args);
}

void
lmq_notes_free(struct lmq_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        free(notes->texts[i]);
    free(notes->texts);
    *notes = (struct lmq_notes){0};
}
