/*
 * build_torch.h - writes what torch.save writes: zip archives, pickles, and
 * models in the files of PyTorch.
 */
#ifndef LMQ_TESTS_BUILD_BUILD_TORCH_H
#define LMQ_TESTS_BUILD_BUILD_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/build/build_checkpoint.h"

/* ---- Zip archives; all zero to begin with ---- */

struct build_zip {
    struct bytes file, directory;
    uint32_t n_members;
    bool is_large; /* with the records of 64 bits */
    bool is_aligned; /* bytes of members begin at multiples of 64 */
};

void zip_add(struct build_zip *zip, const char *name, const void *bytes,
             size_t n);
void zip_add_deflated(struct build_zip *zip, const char *name,
                      const void *bytes, size_t n);
/* Appends the archive to `bytes` and frees everything. */
void zip_end(struct build_zip *zip, struct bytes *bytes);

/* ---- Pickles: opcodes one after the other ---- */

/* A tensor as a view of a storage. */
struct build_view {
    const char *storage; /* "FloatStorage" */
    const char *key;     /* "0" */
    uint64_t n;          /* elements of the storage */
    uint64_t offset;
    uint32_t n_dims;
    uint64_t dims[BUILD_MAX_DIMS], strides[BUILD_MAX_DIMS];
};

void pickle_text(struct bytes *pickle, const char *text);
void pickle_int(struct bytes *pickle, uint64_t value);
void pickle_global(struct bytes *pickle, const char *module,
                   const char *name);
void pickle_tensor(struct bytes *pickle, const struct build_view *view);

/* ---- Models ---- */

/* The archive of a state dict of these tensors; `pickle_front` and
 * `pickle_back` (may be "") stand around the dictionary, as in
 * {"model": ..., "iter_num": 1}. */
struct build_torch {
    struct bytes front, back;
    enum build_type type;
    bool is_transposed; /* matrices are views of transposed ones */
    bool is_large;
};

void put_torch(struct bytes *bytes, const struct build_torch *how,
               const struct build_model *model, size_t first, size_t n);
/* The same into a file. */
void save_torch(const struct build_model *model, enum build_type type,
                const char *path);

/* The same model with Meta's names and rotary pairs side by side. */
struct build_model *build_as_meta(const struct build_model *model);

/* One of n parts of such a model. */
struct build_model *build_shard(const struct build_model *meta, uint32_t part,
                                uint32_t n, bool divides_vocabulary);

/* The params.json of such a model. */
void put_params(struct bytes *bytes, const struct build_model *model);

#endif
