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

#endif
