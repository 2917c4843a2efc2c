/*
 * temporary.h - names for files that are not finished.
 *
 * Whoever makes such a file locks it for as long as it is needed; so those
 * that nobody needs any more can be told from the others, and go.
 */
#ifndef LMQ_BASE_FILES_TEMPORARY_H
#define LMQ_BASE_FILES_TEMPORARY_H

#include <sys/types.h>

/* So many names are tried. */
#define LMQ_TEMPORARY_TRIES 100

/* A new name in the folder that is hardly there yet, another one for each
 * attempt; NULL without memory. */
char *lmq_temporary_name(const char *folder, unsigned attempt);

/* The one name of the file in the folder that is locked by who gives names
 * there, on whatever machine; NULL without memory. */
char *lmq_temporary_lock(const char *folder);

/* Created, or with flags of 0 maybe there already, and locked, where there are
 * locks; else -1, with EEXIST if somebody else has it. */
int lmq_temporary_open(const char *name, int flags, mode_t mode);

/* Gives a file that has none a name, as link() does. */
int lmq_temporary_link(int fd, const char *name);

/* Removes those in the folder that belong to nobody who is alive. */
void lmq_temporary_clean(const char *folder);

#endif
