/*
 * stored.h - folders with a model.safetensors that is made tensor by tensor,
 * and a config.json: for what other tools write, right or wrong.
 */
#ifndef LMQ_TESTS_BUILD_STORED_H
#define LMQ_TESTS_BUILD_STORED_H

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

/* All zero to begin with. */
struct stored {
    struct bytes header, data;
};

/* Begins an entry; the caller puts n bytes to stored->data. The shape is
 * written as in the header: "[2,3]". */
void stored_entry(struct stored *stored, const char *name, const char *dtype,
                  const char *shape, size_t n);
/* Floats: F32, F16 or BF16, rounded to nearest. */
void stored_floats(struct stored *stored, const char *name,
                   enum build_type type, const char *shape, const float *x,
                   size_t n);
/* Words of 32 bits. */
void stored_words(struct stored *stored, const char *name, const char *shape,
                  const uint32_t *words, size_t n);

/* Saves the folder "model" and forgets what it held; config may be NULL. */
const char *stored_save(struct stored *stored, const char *config);

/* config.json of a model that nobody knows, with a quantization_config. */
#define STORED_CONFIG(quantization)                                           \
    "{\"architectures\": [\"X\"], \"quantization_config\": {" quantization    \
    "}}"

/* The tensor has these elements, whole and in random pieces. */
void assert_elements(struct lmq_checkpoint *checkpoint, const char *name,
                     const float *wanted, size_t n, struct random *random);

#endif
