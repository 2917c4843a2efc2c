/*
 * glob.c - patterns for names.
 *
 * fnmatch() would do, but its time is exponential in the number of stars, and
 * what a range is depends on the locale.
 */
#include "config.h"

#include "base/text/glob.h"

#include <stddef.h>
#include <string.h>

/* Behind the ']' of a set that begins at `set`; NULL if it has none. The first
 * character within is none that ends it. */
static const char *
set_end(const char *set)
{
    const char *at = set + 1 + (set[1] == '!');

    if (*at == '\0')
        return NULL;
    const char *end = strchr(at + 1, ']');
    return end == NULL ? NULL : end + 1;
}

bool
lmq_glob_is_valid(const char *pattern)
{
    while ((pattern = strchr(pattern, '[')) != NULL) {
        pattern = set_end(pattern);
        if (pattern == NULL)
            return false;
    }
    return true;
}

static bool
is_in_set(const char *set, const char *end, unsigned char c)
{
    bool is_other = set[1] == '!', is_in = false;

    for (const char *at = set + 1 + is_other; at < end - 1; at++) {
        unsigned char first = (unsigned char)at[0], last = first;
        if (at[1] == '-' && at + 2 < end - 1) {
            last = (unsigned char)at[2];
            at += 2;
        }
        is_in |= c >= first && c <= last;
    }
    return is_in != is_other;
}

/* What one character is matched with, a star apart; NULL if it is not. */
static const char *
match_one(const char *pattern, unsigned char c)
{
    if (*pattern == '[') {
        const char *end = set_end(pattern);
        return is_in_set(pattern, end, c) ? end : NULL;
    }
    return *pattern == '?' || (unsigned char)*pattern == c ? pattern + 1
                                                           : NULL;
}

bool
lmq_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;

    while (*text != '\0') {
        const char *next = NULL;
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
            continue;
        }
        if (*pattern != '\0')
            next = match_one(pattern, (unsigned char)*text);
        if (next != NULL) {
            pattern = next;
            text++;
        } else if (star != NULL) { /* the last star takes one more */
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
