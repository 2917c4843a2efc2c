/*
 * sandbox_files.h - which files can still be opened.
 */
#ifndef LMQ_BASE_SANDBOX_FILES_H
#define LMQ_BASE_SANDBOX_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* From here on this thread, and those that it starts, can only read, and only
 * below the folders of these paths, what links there stand for, and what says
 * how many cores there are. False, and all as it was, where the kernel has no
 * Landlock. Needs "no new privileges". */
bool lmq_sandbox_files(const char *const *paths, size_t n);

#endif
