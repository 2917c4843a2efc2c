/*
 * family_writer.h - what the writers of families' tensors share.
 */
#ifndef LMQ_TESTS_FAMILIES_MORE_FAMILY_WRITER_H
#define LMQ_TESTS_FAMILIES_MORE_FAMILY_WRITER_H

#include "tests/build/build_checkpoint.h"
#include "tests/families/family.h"

struct writer {
    const struct family_model *model;
    struct build_model *to;
    size_t layer;
};

/* "layers.#.mlp.experts.@.up_proj" with its numbers, and an end but for "=". */
void family_name_tensor(const struct writer *w, char *to, size_t size,
                        const char *pattern, size_t item, const char *end);

/* As stored.as says. */
void family_write_mask(const struct writer *w, const struct stored *as,
                       const void *parts);
void family_write_frequencies(const struct writer *w, const struct stored *as,
                              const void *parts);
void family_write_blocks(const struct writer *w, const struct stored *as,
                         const void *parts);
void family_write_deep(const struct writer *w, const struct stored *as,
                       const void *parts);
void family_write_shards(const struct writer *w, const struct stored *as,
                         const void *parts);

#endif
