/*
 * pickle_value.h - what a pickle describes: values, the globals that they may
 * refer to, and looking at them.
 */
#ifndef LMQ_FORMATS_TORCH_PICKLE_VALUE_H
#define LMQ_FORMATS_TORCH_PICKLE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quantize/dtype.h"

enum lmq_pickle_kind {
    LMQ_PICKLE_NONE,
    LMQ_PICKLE_BOOL,
    LMQ_PICKLE_INT,
    LMQ_PICKLE_REAL,
    LMQ_PICKLE_BIG,        /* a whole number beyond 64 bits, not kept */
    LMQ_PICKLE_TEXT,       /* UTF-8, not terminated */
    LMQ_PICKLE_BYTES,
    LMQ_PICKLE_TUPLE,      /* and frozen sets */
    LMQ_PICKLE_LIST,       /* and sets */
    LMQ_PICKLE_DICT,       /* keys and values take turns */
    LMQ_PICKLE_GLOBAL,
    LMQ_PICKLE_OBJECT,     /* what a call of `global` would give */
    LMQ_PICKLE_PERSISTENT  /* `arguments` say where it is kept */
};

/* What the known globals are. */
enum lmq_pickle_role {
    LMQ_PICKLE_IS_OTHER,        /* harmless and not needed */
    LMQ_PICKLE_IS_DICT,
    LMQ_PICKLE_IS_SIZE,         /* a tuple of sizes */
    LMQ_PICKLE_IS_TENSOR,       /* (storage, offset, sizes, strides, ...) */
    LMQ_PICKLE_IS_TENSOR_V3,    /* the same and, as the seventh, a type */
    LMQ_PICKLE_IS_PARAMETER,    /* (tensor, ...) */
    LMQ_PICKLE_IS_FROM_TYPE,    /* (global, type, its arguments, state) */
    LMQ_PICKLE_IS_STORAGE,      /* of `dtype` */
    LMQ_PICKLE_IS_BYTE_STORAGE, /* of bytes, whatever they mean */
    LMQ_PICKLE_IS_DTYPE
};

struct lmq_pickle_global {
    const char *module, *name;
    enum lmq_pickle_role role;
    enum lmq_dtype dtype; /* of IS_STORAGE and IS_DTYPE */
};

#define LMQ_PICKLE_NOTHING UINT32_MAX /* no value, no cell */

struct lmq_pickle_value {
    unsigned char kind;   /* enum lmq_pickle_kind */
    unsigned char global; /* GLOBAL, OBJECT: its number in the list */
    uint32_t n_items;     /* TUPLE, LIST, DICT (two for each key) */
    union {
        int64_t integer; /* BOOL, INT */
        double real;
        struct {
            const unsigned char *at; /* within the pickle */
            size_t n;
        } text; /* TEXT, BYTES */
        struct {
            uint32_t first, last; /* cells */
            uint32_t arguments;   /* a value: OBJECT, PERSISTENT */
        } parts;
    } is;
};

/* Items form lists, as they may stand in several places. */
struct lmq_pickle_cell {
    uint32_t value, next;
};

struct lmq_pickle {
    struct lmq_pickle_value *values;
    size_t n_values, values_capacity;
    struct lmq_pickle_cell *cells;
    size_t n_cells, cells_capacity;
    uint32_t root;
};

/* ---- Looking at values; NULL is no value, and gives none ---- */

const struct lmq_pickle_value *lmq_pickle_root(const struct lmq_pickle *pickle);

static inline bool
lmq_pickle_is(const struct lmq_pickle_value *value, enum lmq_pickle_kind kind)
{
    return value != NULL && value->kind == kind;
}

/* Its number in the list, -1 for one that is not in it. */
int lmq_pickle_find_global(const unsigned char *module, size_t n_module,
                           const unsigned char *name, size_t n_name);

/* Of a GLOBAL or an OBJECT, else NULL. */
const struct lmq_pickle_global *
lmq_pickle_global(const struct lmq_pickle_value *value);

/* The arguments of an OBJECT or a PERSISTENT: always a tuple. */
const struct lmq_pickle_value *
lmq_pickle_arguments(const struct lmq_pickle *pickle,
                     const struct lmq_pickle_value *value);

/* The item with that index, NULL if there are not so many. */
const struct lmq_pickle_value *
lmq_pickle_item(const struct lmq_pickle *pickle,
                const struct lmq_pickle_value *value, size_t index);

/* What a dictionary has under a key; the last one, if there are several. */
const struct lmq_pickle_value *
lmq_pickle_get(const struct lmq_pickle *pickle,
               const struct lmq_pickle_value *dict, const char *key);

/* Walks through the items: *cell is what lmq_pickle_first() gives. */
uint32_t lmq_pickle_first(const struct lmq_pickle_value *value);
const struct lmq_pickle_value *
lmq_pickle_next(const struct lmq_pickle *pickle, uint32_t *cell);

/* Whether it is this text. */
bool lmq_pickle_says(const struct lmq_pickle_value *value, const char *text);

#endif
