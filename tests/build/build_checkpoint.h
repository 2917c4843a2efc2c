/*
 * build_checkpoint.h - makes small checkpoints: tensors with names, and
 * writers of the formats that they are read from.
 *
 * Independent of the readers on purpose: what both agree on is in the
 * formats' own descriptions. Failures end the program: these are for tests.
 */
#ifndef LMQ_TESTS_BUILD_BUILD_CHECKPOINT_H
#define LMQ_TESTS_BUILD_BUILD_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Bytes ---- */

/* A growing run of bytes; all zero to begin with. */
struct bytes {
    unsigned char *at;
    size_t n, capacity;
};

void put(struct bytes *bytes, const void *more, size_t n);
void put_text(struct bytes *bytes, const char *text);
void put_u16(struct bytes *bytes, uint16_t value);
void put_u32(struct bytes *bytes, uint32_t value);
void put_u64(struct bytes *bytes, uint64_t value);
void put_f32(struct bytes *bytes, float value);
void put_zeros(struct bytes *bytes, size_t n);
void bytes_free(struct bytes *bytes);
void save(const struct bytes *bytes, const char *path);

/* ---- Models ---- */

/* Normal, mean 0 and deviation 1, nearly: the sum of twelve uniform numbers. */
double build_normal(uint64_t *state);

#define BUILD_MAX_DIMS 4

/* In the convention of Hugging Face: rotary pairs in halves. */
struct build_tensor {
    char name[96];
    uint64_t dims[BUILD_MAX_DIMS];
    uint32_t n_dims;
    size_t n_elements;
    float *x;
};

struct build_sizes {
    uint32_t dim, hidden, layers, heads, kv_heads, vocab, context;
    bool is_tied;
};

struct build_model {
    struct build_sizes sizes;
    struct build_tensor *tensors;
    size_t n_tensors;
};

/* dim 24, hidden 40, 2 layers, 4 heads on 2, vocabulary 33: no multiple of
 * anything. */
extern const struct build_sizes build_small;

/* A Llama with normally distributed weights. */
struct build_model *build_model(const struct build_sizes *sizes,
                                uint64_t seed);
void build_free(struct build_model *model);
/* By the name of Hugging Face, without "model.". */
struct build_tensor *build_find(struct build_model *model, const char *name);
/* Adds a tensor of zeros. */
struct build_tensor *build_add(struct build_model *model, const char *name,
                               const uint64_t *dims, uint32_t n_dims);

/* ---- Writers ---- */

enum build_type { BUILD_F32, BUILD_F16, BUILD_BF16, BUILD_F64 };

/* Rounded to nearest. */
void put_element(struct bytes *bytes, float value, enum build_type type);

/* Header and data as given, for files that are wrong on purpose. */
void put_safetensors_raw(struct bytes *bytes, const char *header,
                         const void *data, size_t n);
/* Tensors [first, first + n) of the model. */
void put_safetensors(struct bytes *bytes, const struct build_model *model,
                     size_t first, size_t n, enum build_type type);
/* Version 0 or 1. */
void put_llama2c(struct bytes *bytes, const struct build_model *model,
                 int version);
/* Version 2 as export.py makes it, the flattened matrices in groups that
 * divide them. If `same` is not NULL it gets a file of version 1 with what the
 * values stand for. */
void put_llama2c_q8(struct bytes *bytes, const struct build_model *model,
                    uint32_t group, struct bytes *same);
void put_config(struct bytes *bytes, const struct build_model *model);

void save_safetensors(const struct build_model *model, const char *path);
/* A folder with model.safetensors and config.json. */
void save_folder(const struct build_model *model, const char *path,
                 enum build_type type);

/* ---- Containers ---- */

/* Corrects all checksums of a .lmq that was changed on purpose: of sections
 * that are not deflated, the table, the superblock, the trailer. */
void reseal_lmq(unsigned char *bytes, size_t n);
/* Where the bytes of the first section of that type begin; 0: none. */
size_t find_lmq_section(const unsigned char *bytes, size_t n, uint32_t type);
/* Where that section's entry in the table is; 0: none. */
size_t find_lmq_entry(const unsigned char *bytes, size_t n, uint32_t type);

#endif
