/*
 * fuzz.h - what fuzzing targets have in common.
 */
#ifndef LMQ_TESTS_FUZZ_FUZZ_H
#define LMQ_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The one function of a target; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The path of a file in memory that holds these bytes until the next call. */
const char *fuzz_file(const uint8_t *bytes, size_t n);

/* Another one, of a text. */
const char *fuzz_text(const char *text);

/* The same of two, "m-00001-of-00002.lmq" and the other: the bytes before
 * `cut` and those from it on. The path of the first. */
const char *fuzz_members(const uint8_t *bytes, size_t n, size_t cut);

#endif
