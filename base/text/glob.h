/*
 * glob.h - patterns for names, as a shell has them for files.
 *
 * '*' is any run of characters, '?' one of them, "[a-c4]" one of these and
 * "[!a-c4]" one of the others; all else is itself. Nothing is special about
 * dots and slashes, and nothing depends on the locale.
 */
#ifndef LMQ_BASE_GLOB_H
#define LMQ_BASE_GLOB_H

#include <stdbool.h>

/* Whether each '[' has its ']', with something between them. */
bool lmq_glob_is_valid(const char *pattern);

/* Whether all of the text is as a valid pattern says. The time is at most the
 * product of both lengths. */
bool lmq_glob_match(const char *pattern, const char *text);

#endif
