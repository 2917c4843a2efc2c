/*
 * stops.h - texts that end what is generated.
 */
#ifndef LMQ_CLI_STOPS_H
#define LMQ_CLI_STOPS_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_STOPS 32

/* Zero it to begin, then set texts. */
struct stops {
    const char *texts[MAX_STOPS];
    int n_texts;
    bool is_silent;    /* look, print nothing */
    const char *found; /* the one that came, or NULL */
    char *held;        /* what may be the beginning of one */
    size_t n_held, capacity;
};

/* Prints what is certain to stand before all of the texts. False, and a
 * message, without memory. */
bool print_until_stop(struct stops *stops, const char *text, size_t n);
/* Nothing follows: what may only have begun has not, and a text that came
 * behind its beginning counts. */
void end_held(struct stops *stops);
/* Prints what was held back, and forgets what was found. */
void print_held(struct stops *stops);
void free_stops(struct stops *stops);

#endif
