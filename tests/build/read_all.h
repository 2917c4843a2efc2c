/*
 * read_all.h - opens a file as a checkpoint and reads whatever it offers.
 */
#ifndef LMQ_TESTS_BUILD_READ_ALL_H
#define LMQ_TESTS_BUILD_READ_ALL_H

#include <stdbool.h>

/* Opens it, reads every tensor (of large ones both ends). True if it could be
 * opened. Errors are fine; whoever calls this wants to know about crashes. */
bool read_all(const char *path);

/* The same, and also makes the tree that inspect shows; with the config.json
 * that is given, or NULL. */
bool inspect_all(const char *path);
bool inspect_with(const char *path, const char *config);

#endif
