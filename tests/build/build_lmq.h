/*
 * build_lmq.h - puts containers together from their parts, for files that no
 * conversion makes: written from lmq(5), independent of the program's writer.
 */
#ifndef LMQ_TESTS_BUILD_BUILD_LMQ_H
#define LMQ_TESTS_BUILD_BUILD_LMQ_H

#include "tests/build/build_checkpoint.h"

/* Fields of a record that are seldom other than 0 have no name here: they are
 * patched afterwards. The sizes of values and scales decide about extents. */
struct built_tensor {
    const char *name;
    unsigned role;
    unsigned char part, encoding, type, layout, scale_type, n_dims;
    int layer, item;
    uint64_t dims[8];
    uint32_t group;
    float multiplier;
    const void *values, *scales;
    size_t values_size, scales_size;
    uint32_t alias; /* of encoding 2 */
};

struct built_section {
    uint32_t type, flags;
    const char *name;
    const void *bytes;
    size_t n, size; /* size: of the content, if it is deflated; else 0 */
};

struct built_lmq {
    unsigned char log2; /* of the alignment */
    uint32_t record_size;
    const struct built_tensor *tensors;
    uint32_t n_tensors;
    const char *metadata;
    const struct built_section *sections; /* before metadata and directory */
    uint32_t n_sections;
};

void put_lmq(struct bytes *bytes, const struct built_lmq *file);

#endif
