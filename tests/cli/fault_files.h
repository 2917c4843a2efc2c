/*
 * fault_files.h - files as a run finds them and leaves them.
 *
 * What goes wrong here ends the program.
 */
#ifndef LMQ_TESTS_CLI_FAULT_FILES_H
#define LMQ_TESTS_CLI_FAULT_FILES_H

#include <stddef.h>
#include <stdint.h>

struct fault_bytes {
    char *at;
    size_t n;
};

enum fault_walk { FAULT_HASH, FAULT_HASH_MASKED, FAULT_REMOVE };

void fault_die(const char *what);

/* A 0 stands behind the bytes. */
struct fault_bytes fault_load(const char *path);
void fault_save(const char *path, const void *bytes, size_t n);

/* The files of a folder, which has no folders, to another one. */
void fault_copy(const char *from, const char *to);

/* Goes on with a sum. */
uint64_t fault_hash(uint64_t sum, const void *bytes, size_t n);

/* Figures that differ from run to run become one sign. */
void fault_mask(struct fault_bytes *text);

/* Names and contents of all that is in a folder, in any order; or removes
 * it all. What --resume leaves does not count. */
uint64_t fault_walk(const char *folder, enum fault_walk what);

#endif
