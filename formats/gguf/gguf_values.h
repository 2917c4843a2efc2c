/*
 * gguf_values.h - a key of a GGUF file and its value.
 *
 * Everything returned points into the bytes that are read.
 */
#ifndef LMQ_FORMATS_GGUF_GGUF_VALUES_H
#define LMQ_FORMATS_GGUF_GGUF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lmquant.h"

/* What is accepted; real files stay far below. */
#define LMQ_GGUF_MAX_KEY_SIZE 65535
#define LMQ_GGUF_MAX_NESTING 4

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

/* ---- Reading ---- */

/* Each function steps over what it read; `what` is for the error. */
struct lmq_gguf_cursor {
    const unsigned char *bytes;
    size_t at, end;
    bool is_short; /* it failed at the end: more bytes might do */
    struct lmq_error *err;
};

enum lmq_status lmq_gguf_read_u32(struct lmq_gguf_cursor *c, const char *what,
                                  uint32_t *value);
enum lmq_status lmq_gguf_read_u64(struct lmq_gguf_cursor *c, const char *what,
                                  uint64_t *value);
enum lmq_status lmq_gguf_read_key(struct lmq_gguf_cursor *c,
                                  struct lmq_gguf_value *value);
/* All of it is checked, so that a walk over the value needs no checks. */
enum lmq_status lmq_gguf_read_value(struct lmq_gguf_cursor *c,
                                    struct lmq_gguf_value *value);

/* ---- Numbers and texts ---- */

/* An integer of any width, or a bool; for u64 the bits. */
bool lmq_gguf_load_int(enum lmq_gguf_type type, const unsigned char *p,
                       int64_t *value);
/* f32 or f64. */
bool lmq_gguf_load_number(enum lmq_gguf_type type, const unsigned char *p,
                          double *value);

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

#endif
