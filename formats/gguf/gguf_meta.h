/*
 * gguf_meta.h - the header and the key/value part of a GGUF file.
 *
 * Everything returned points into the bytes that were given; nothing large is
 * copied. The tensor part begins at lmq_gguf_tensors_at().
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_META_H
#define LMQ_FORMATS_GGUF_GGUF_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* What is accepted; real files stay far below. */
#define LMQ_GGUF_MAX_KEYS 65536
#define LMQ_GGUF_MAX_KEY_SIZE 65535
#define LMQ_GGUF_MAX_NESTING 4
#define LMQ_GGUF_MAX_ALIGNMENT 65536

/* The numbers are the file's. */
enum lmq_gguf_type {
    LMQ_GGUF_U8,
    LMQ_GGUF_I8,
    LMQ_GGUF_U16,
    LMQ_GGUF_I16,
    LMQ_GGUF_U32,
    LMQ_GGUF_I32,
    LMQ_GGUF_F32,
    LMQ_GGUF_BOOL,
    LMQ_GGUF_STRING,
    LMQ_GGUF_ARRAY,
    LMQ_GGUF_U64,
    LMQ_GGUF_I64,
    LMQ_GGUF_F64,
    LMQ_GGUF_TYPE_COUNT
};

struct lmq_gguf_value {
    const unsigned char *key; /* not terminated */
    size_t key_size;
    enum lmq_gguf_type type;
    enum lmq_gguf_type item_type; /* of an array */
    uint64_t count;               /* of an array, else 1 */
    const unsigned char *data;    /* the number, the text, the first item */
    size_t size;                  /* of data in bytes */
    const unsigned char *raw;     /* the value as stored, after its type */
    size_t raw_size;
};

struct lmq_gguf_meta;

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

uint32_t lmq_gguf_version(const struct lmq_gguf_meta *meta);
/* As the header says; not yet checked against anything. */
uint64_t lmq_gguf_n_tensors(const struct lmq_gguf_meta *meta);
/* Offset of the first tensor info. */
size_t lmq_gguf_tensors_at(const struct lmq_gguf_meta *meta);
/* general.alignment, 32 without it; a power of two. */
uint32_t lmq_gguf_alignment(const struct lmq_gguf_meta *meta);

/* Keys in the order of the file. */
size_t lmq_gguf_n_values(const struct lmq_gguf_meta *meta);
const struct lmq_gguf_value *
lmq_gguf_value(const struct lmq_gguf_meta *meta, size_t index);
/* NULL if there is no such key. */
const struct lmq_gguf_value *
lmq_gguf_find(const struct lmq_gguf_meta *meta, const char *key);

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

/* Item `index` of an array of any integer type or bool, as 64 bits. */
int64_t lmq_gguf_item_int(const struct lmq_gguf_value *array, uint64_t index);
/* Item `index` of an array of f32 or f64. */
double lmq_gguf_item_number(const struct lmq_gguf_value *array,
                            uint64_t index);

/* Walks an array of strings. The lengths were checked when opening. */
struct lmq_gguf_strings {
    const unsigned char *at;
    uint64_t left;
};
struct lmq_gguf_strings
lmq_gguf_strings(const struct lmq_gguf_value *array);
/* False after the last one. */
bool lmq_gguf_next_string(struct lmq_gguf_strings *strings,
                          const unsigned char **text, size_t *size);

/*
 * A GGUF version 3 without tensors: general.architecture and everything under
 * "tokenizer.", as stored and in the same order. The caller frees *bytes with
 * free().
 */
enum lmq_status lmq_gguf_write_vocab(const struct lmq_gguf_meta *meta,
                                     unsigned char **bytes, size_t *size,
                                     struct lmq_error *err);

#endif
