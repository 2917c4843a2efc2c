/*
 * build_gguf.h - makes GGUF files, right ones and wrong ones.
 *
 * Independent of the reader and of the exporter: the layout is written down
 * here once more, from the format's own description.
 */
#ifndef LMQ_TESTS_BUILD_BUILD_GGUF_H
#define LMQ_TESTS_BUILD_BUILD_GGUF_H

#include "tests/build/build_checkpoint.h"

/* The numbers of types of values and of tensors. */
enum {
    GGUF_U32 = 4,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_TEXT = 8,
    GGUF_LIST = 9
};
enum { GGUF_T_F32 = 0, GGUF_T_F16 = 1, GGUF_T_Q8_0 = 8, GGUF_T_BF16 = 30 };

struct gguf {
    struct bytes keys, infos, data;
    uint64_t n_keys, n_tensors;
    uint64_t claims_tensors; /* said in the header instead; 0: the truth */
    uint32_t version;        /* 0: 3 */
};

void gguf_key(struct gguf *gguf, const char *key, uint32_t type);
void gguf_u32(struct gguf *gguf, const char *key, uint32_t value);
void gguf_f32(struct gguf *gguf, const char *key, float value);
void gguf_text(struct gguf *gguf, const char *key, const char *value);
/* Bytes with their length. */
void gguf_string(struct bytes *bytes, const char *text);

/* An info; dimensions come outermost first. */
void gguf_info(struct gguf *gguf, const char *name, const uint64_t *dims,
               uint32_t n_dims, uint32_t type, uint64_t offset);
/* The same, and its data at the next multiple of 32. */
void gguf_tensor(struct gguf *gguf, const char *name, const uint64_t *dims,
                 uint32_t n_dims, uint32_t type, const void *data, size_t n);

/* The file; frees what it was made of. */
void gguf_end(struct gguf *gguf, struct bytes *file);

/* The keys of a Llama, and (a part of) its tensors as float32, with queries
 * and keys in interleaved pairs. */
void gguf_llama_keys(struct gguf *gguf, const struct build_model *model);
void gguf_llama_tensors(struct gguf *gguf, const struct build_model *model,
                        size_t first, size_t n);

/* File number i of the corpus (make_files.c): its name, what it is, its bytes.
 * False past the last one. */
bool gguf_file(size_t i, const char **name, const char **sentence,
               struct bytes *bytes);

/* Ends it, writes it, frees it. */
void save_gguf(struct gguf *gguf, const char *path);
/* All of a Llama. */
void save_llama(const struct build_model *model, uint32_t version,
                const char *path);

#endif
