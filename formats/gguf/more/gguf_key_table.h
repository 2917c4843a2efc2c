/*
 * gguf_key_table.h - the tables of keys that gguf_keys.c goes by.
 */
#ifndef LMQ_FORMATS_GGUF_MORE_GGUF_KEY_TABLE_H
#define LMQ_FORMATS_GGUF_MORE_GGUF_KEY_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum lmq_gguf_key_flags {
    LMQ_KEY_REQUIRED = 1,  /* a file without it is damaged */
    LMQ_KEY_PER_LAYER = 2, /* may be an array, of equal numbers */
    LMQ_KEY_INVERSE = 4,   /* the file says one divided by it */
    LMQ_KEY_EVEN_ZERO = 8, /* written even if it is 0: llama.cpp asks for it */
    LMQ_KEY_NEGATIVE = 16  /* the file says it less than 0 */
};

/* Both end with a name that is NULL. */
struct lmq_gguf_key {
    const char *name;
    size_t field;      /* in struct lmq_hparams */
    uint64_t families; /* those with one of these bits; 0: all */
    unsigned flags;
};
extern const struct lmq_gguf_key lmq_gguf_key_table[];

struct lmq_gguf_other_key {
    const char *name;
    uint64_t families;
};
extern const struct lmq_gguf_other_key lmq_gguf_other_keys[];

#endif
