/*
 * sets.h - what the suites of sets share: a model, and how it is written.
 */
#ifndef LMQ_TESTS_CONVERT_SETS_H
#define LMQ_TESTS_CONVERT_SETS_H

#include "lmquant.h"
#include "tests/build/build_checkpoint.h"

/* Matrices of 40 and 70 rows: cut in several places, with a ragged end. */
extern const struct build_sizes sizes_of_sets;

/* Into "model" in the test's folder. */
void save_model(uint64_t seed);

/* "set-00002-of-00003.lmq" in the test's folder. */
const char *member_path(size_t number, size_t n);

/* How many files there are. */
size_t convert_set(const struct lmq_convert_options *given);

/* As "one.lmq". */
void convert_one(const struct lmq_convert_options *given);

#endif
