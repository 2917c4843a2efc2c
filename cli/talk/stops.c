/*
 * stops.c - texts that end what is generated.
 *
 * A text may come in pieces of any length, so the end of what is there is held
 * back as long as one of the stop texts may begin in it.
 */
#include "config.h"

#include "cli/talk/stops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether `text` is at the place, or as much of it as there is room for. */
static bool
may_begin(const char *at, size_t n, const char *text)
{
    size_t length = strlen(text);

    return memcmp(at, text, n < length ? n : length) == 0;
}

/* Where the first of the texts begins, or may begin; n_held: nowhere. */
static size_t
find_stop(struct stops *stops)
{
    for (size_t at = 0; at < stops->n_held; at++)
        for (int i = 0; i < stops->n_texts; i++) {
            size_t n = stops->n_held - at;
            if (!may_begin(stops->held + at, n, stops->texts[i]))
                continue;
            if (n >= strlen(stops->texts[i]))
                stops->found = stops->texts[i];
            return at;
        }
    return stops->n_held;
}

static void
print(const struct stops *stops, const char *text, size_t n)
{
    if (!stops->is_silent && n > 0)
        fwrite(text, 1, n, stdout);
}

bool
print_until_stop(struct stops *stops, const char *text, size_t n)
{
    if (stops->n_texts == 0) {
        print(stops, text, n);
        return true;
    }
    if (stops->found != NULL)
        return true;
    if (n > stops->capacity - stops->n_held) {
        size_t capacity = 2 * (stops->n_held + n);
        char *grown = realloc(stops->held, capacity);
        if (grown == NULL) {
            perror("lmquant");
            return false;
        }
        stops->held = grown;
        stops->capacity = capacity;
    }
    if (n > 0)
        memcpy(stops->held + stops->n_held, text, n);
    stops->n_held += n;
    size_t at = find_stop(stops);
    print(stops, stops->held, at);
    stops->n_held -= at;
    if (stops->n_held > 0)
        memmove(stops->held, stops->held + at, stops->n_held);
    return true;
}

void
end_held(struct stops *stops)
{
    for (size_t at = 0; at < stops->n_held && stops->found == NULL; at++)
        for (int i = 0; i < stops->n_texts && stops->found == NULL; i++) {
            size_t length = strlen(stops->texts[i]);
            if (length > stops->n_held - at ||
                memcmp(stops->held + at, stops->texts[i], length) != 0)
                continue;
            print(stops, stops->held, at);
            stops->found = stops->texts[i];
        }
}

void
print_held(struct stops *stops)
{
    if (stops->found == NULL)
        print(stops, stops->held, stops->n_held);
    stops->n_held = 0;
    stops->found = NULL;
}

void
free_stops(struct stops *stops)
{
    free(stops->held);
    stops->held = NULL;
    stops->capacity = stops->n_held = 0;
}
