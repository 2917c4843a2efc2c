/*
 * gguf_meta.h - the header and the key/value part of a GGUF file.
 *
 * Everything returned points into the bytes that were given; nothing large is
 * copied.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_META_H
#define LMQ_FORMATS_GGUF_GGUF_META_H

#include "formats/gguf/gguf_values.h"

/* What is accepted; real files stay far below. */
#define LMQ_GGUF_MAX_KEYS 65536
#define LMQ_GGUF_MAX_ALIGNMENT 65536

/* Only read from outside. It owns its tables: keys, texts and items point into
 * the bytes that it was opened with. */
struct lmq_gguf_meta {
    uint32_t version;
    uint32_t alignment; /* general.alignment, 32 without it; a power of two */
    uint64_t n_tensors; /* as the header says; not yet checked */
    size_t tensors_at;  /* where the tensor infos begin */
    struct lmq_gguf_value *values; /* in the order of the file */
    size_t n_values, values_capacity;
    const struct lmq_gguf_value **by_key; /* (n_values), sorted */
};

/* Whether these bytes begin like a GGUF of any version or byte order. */
bool lmq_gguf_is(const unsigned char *bytes, size_t size);

/*
 * Parses versions 2 and 3. `bytes` must outlive *out. They may be only the
 * beginning of a file: if they end before the metadata does, the status is
 * LMQ_ERR_FORMAT and *is_short (may be NULL) true, so try again with more.
 */
enum lmq_status lmq_gguf_meta_open(const unsigned char *bytes, size_t size,
                                   struct lmq_gguf_meta **out, bool *is_short,
                                   struct lmq_error *err);
void lmq_gguf_meta_close(struct lmq_gguf_meta *meta);

/* NULL if there is no such key. */
const struct lmq_gguf_value *
lmq_gguf_find(const struct lmq_gguf_meta *meta, const char *key);

/* Whether it stands under "tokenizer.". */
bool lmq_gguf_is_of_vocab(const struct lmq_gguf_value *value);

/*
 * Typed look-ups. An absent key leaves *value as it is and is no error; a
 * value of another kind, or out of range, is LMQ_ERR_FORMAT. Any integer
 * width serves as an integer, f32 and f64 serve as a number.
 */
enum lmq_status lmq_gguf_get_uint(const struct lmq_gguf_meta *meta,
                                  const char *key, uint64_t most,
                                  uint64_t *value, struct lmq_error *err);
enum lmq_status lmq_gguf_get_number(const struct lmq_gguf_meta *meta,
                                    const char *key, double *value,
                                    struct lmq_error *err);
enum lmq_status lmq_gguf_get_bool(const struct lmq_gguf_meta *meta,
                                  const char *key, bool *value,
                                  struct lmq_error *err);
enum lmq_status lmq_gguf_get_text(const struct lmq_gguf_meta *meta,
                                  const char *key, const unsigned char **text,
                                  size_t *size, struct lmq_error *err);
/* An array of that item type; NULL if the key is absent. */
enum lmq_status lmq_gguf_get_array(const struct lmq_gguf_meta *meta,
                                   const char *key,
                                   enum lmq_gguf_type item_type,
                                   const struct lmq_gguf_value **value,
                                   struct lmq_error *err);

/*
 * A GGUF version 3 without tensors: general.architecture and everything under
 * "tokenizer.", as stored and in the same order. The caller frees *bytes with
 * free().
 */
enum lmq_status lmq_gguf_write_vocab(const struct lmq_gguf_meta *meta,
                                     unsigned char **bytes, size_t *size,
                                     struct lmq_error *err);

#endif
