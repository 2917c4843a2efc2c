/*
 * learners.h - a small model of any family, with a tokenizer, and a text to
 * learn from.
 */
#ifndef LMQ_TESTS_CONVERT_LEARNERS_H
#define LMQ_TESTS_CONVERT_LEARNERS_H

#include "tests/families/family.h"

/* "text.txt" in the test's folder, of n bytes. */
const char *some_text(size_t n);

/* "family" in the test's folder, and "tokenizer.bin". */
void save_learner(const struct family *family);

#endif
