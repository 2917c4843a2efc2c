/*
 * variants.h - small models of no family: each has many things at once that
 * the description of a model can say.
 */
#ifndef LMQ_TESTS_VARIANTS_H
#define LMQ_TESTS_VARIANTS_H

#include <stddef.h>

#define VARIANT_CONTEXT 160

/* How many there are. */
size_t variant_count(void);

/* Writes number i with random weights into a folder, and returns its name. */
const char *variant_make(size_t i, const char *folder);

#endif
