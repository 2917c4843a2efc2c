/*
 * variants.h - small models of no family: each has many things at once that
 * the description of a model can say.
 */
#ifndef LMQ_TESTS_FAMILIES_VARIANTS_H
#define LMQ_TESTS_FAMILIES_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/model/hparams.h"

#define VARIANT_CONTEXT 160

/* How many there are. */
size_t variant_count(void);

/* The number of one that is there. */
size_t variant_find(const char *name);

/* Writes number i with random weights into a folder, and returns its name. */
const char *variant_make(size_t i, const char *folder);

/* A Llama, none of whose sizes is a multiple of much; and any description with
 * random weights, into a folder. */
void variant_base(struct lmq_hparams *h);
const char *variant_write(const struct lmq_hparams *h, bool has_biases,
                          uint64_t seed, const char *folder);

#endif
