/*
 * gguf_meta.c - the header and the key/value part of a GGUF file.
 *
 * Trusts nothing: every count and length is compared with the bytes that are
 * left before it is used, so a walk over a value that was accepted here needs
 * no further checks. Tensor infos are somebody else's business.
 *
 * A file, all of it little-endian:
 *
 *     "GGUF", version (u32), number of tensors (u64), of keys (u64)
 *     for each key: its text, its type (u32), its value
 *     tensor infos; zeros up to a multiple of general.alignment; data
 *
 * A text is its length in bytes (u64) and these bytes, with no 0 behind them.
 * An array is the type of its items (u32), their number (u64), and the items.
 */
#include "config.h"

#include "formats/gguf/gguf_meta.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"

#define HEADER_SIZE 24
#define DEFAULT_ALIGNMENT 32

/* Owns its tables only: keys, texts and items point into the bytes that it was
 * opened with. */
struct lmq_gguf_meta {
    uint32_t version, alignment;
    uint64_t n_tensors;
    size_t tensors_at; /* where the tensor infos begin */
    struct lmq_gguf_value *values; /* in the order of the file */
    size_t n_values, values_capacity;
    const struct lmq_gguf_value **by_key; /* (n_values), sorted */
};

/* Bytes of one item; 0 for what has no fixed size. */
static const unsigned char item_sizes[LMQ_GGUF_TYPE_COUNT] = {
    [LMQ_GGUF_U8] = 1,  [LMQ_GGUF_I8] = 1,  [LMQ_GGUF_U16] = 2,
    [LMQ_GGUF_I16] = 2, [LMQ_GGUF_U32] = 4, [LMQ_GGUF_I32] = 4,
    [LMQ_GGUF_F32] = 4, [LMQ_GGUF_BOOL] = 1, [LMQ_GGUF_U64] = 8,
    [LMQ_GGUF_I64] = 8, [LMQ_GGUF_F64] = 8,
};

/* ---- Reading ---- */

struct cursor {
    const unsigned char *bytes;
    size_t at, end;
    bool is_short; /* it failed at the end: more bytes might do */
    struct lmq_error *err;
};

/* `at` is never beyond `end`, so the difference cannot wrap; adding n to `at`
 * could. */
static enum lmq_status
need(struct cursor *c, uint64_t n, const char *what)
{
    if (n <= c->end - c->at)
        return LMQ_OK;
    c->is_short = true;
    return lmq_fail(c->err, LMQ_ERR_FORMAT, c->at,
                    "GGUF: %s at offset %zu needs %" PRIu64
                    " bytes, %zu are left",
                    what, c->at, n, c->end - c->at);
}

static enum lmq_status
read_u32(struct cursor *c, const char *what, uint32_t *value)
{
    enum lmq_status status = need(c, 4, what);

    if (status == LMQ_OK) {
        *value = lmq_load_u32le(c->bytes + c->at);
        c->at += 4;
    }
    return status;
}

static enum lmq_status
read_u64(struct cursor *c, const char *what, uint64_t *value)
{
    enum lmq_status status = need(c, 8, what);

    if (status == LMQ_OK) {
        *value = lmq_load_u64le(c->bytes + c->at);
        c->at += 8;
    }
    return status;
}

static enum lmq_status
read_string(struct cursor *c, const char *what, const unsigned char **text,
            size_t *size)
{
    uint64_t n;
    enum lmq_status status = read_u64(c, what, &n);

    if (status == LMQ_OK)
        status = need(c, n, what);
    if (status != LMQ_OK)
        return status;
    *text = c->bytes + c->at;
    *size = (size_t)n;
    c->at += (size_t)n;
    return LMQ_OK;
}

static enum lmq_status
read_type(struct cursor *c, enum lmq_gguf_type *type)
{
    size_t at = c->at;
    uint32_t number;
    enum lmq_status status = read_u32(c, "a value's type", &number);

    if (status != LMQ_OK)
        return status;
    if (number >= LMQ_GGUF_TYPE_COUNT)
        return lmq_fail(c->err, LMQ_ERR_FORMAT, at,
                        "GGUF: value type %" PRIu32 " at offset %zu is none",
                        number, at);
    *type = (enum lmq_gguf_type)number;
    return LMQ_OK;
}

/* Whoever reads one later takes the byte as it is. */
static enum lmq_status
check_bools(struct cursor *c, const unsigned char *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] > 1)
            return lmq_fail(c->err, LMQ_ERR_FORMAT,
                            (uint64_t)(p + i - c->bytes),
                            "GGUF: a boolean is %d", p[i]);
    return LMQ_OK;
}

/* Steps over `count` items. Each takes some bytes, so a count that lies ends
 * the loop at the end of the bytes. */
static enum lmq_status
skip_items(struct cursor *c, enum lmq_gguf_type type, uint64_t count,
           int depth)
{
    enum lmq_status status = LMQ_OK;
    uint64_t n_bytes;

    if (item_sizes[type] != 0) {
        if (!lmq_u64_mul(count, item_sizes[type], &n_bytes))
            n_bytes = UINT64_MAX;
        status = need(c, n_bytes, "an array");
        if (status == LMQ_OK && type == LMQ_GGUF_BOOL)
            status = check_bools(c, c->bytes + c->at, count);
        if (status == LMQ_OK)
            c->at += (size_t)n_bytes;
        return status;
    }
    /* Each level is a call of this function: the stack is not the file's. */
    if (type == LMQ_GGUF_ARRAY && depth >= LMQ_GGUF_MAX_NESTING)
        return lmq_fail(c->err, LMQ_ERR_UNSUPPORTED, c->at,
                        "GGUF: arrays nest deeper than %d",
                        LMQ_GGUF_MAX_NESTING);
    for (uint64_t i = 0; i < count && status == LMQ_OK; i++) {
        if (type == LMQ_GGUF_STRING) {
            const unsigned char *text;
            size_t size;
            status = read_string(c, "a string", &text, &size);
        } else {
            enum lmq_gguf_type inner = 0;
            uint64_t n;
            status = read_type(c, &inner);
            if (status == LMQ_OK)
                status = read_u64(c, "an array's length", &n);
            if (status == LMQ_OK)
                status = skip_items(c, inner, n, depth + 1);
        }
    }
    return status;
}

/* value->raw is all behind the key's type, as another file can have it;
 * ->data are the items, or the bytes of a text. */
static enum lmq_status
read_value(struct cursor *c, struct lmq_gguf_value *value)
{
    enum lmq_status status = read_type(c, &value->type);

    if (status != LMQ_OK)
        return status;
    value->raw = c->bytes + c->at;
    value->item_type = value->type;
    value->count = 1;
    if (value->type == LMQ_GGUF_STRING) {
        status = read_string(c, "a string", &value->data, &value->size);
    } else {
        if (value->type == LMQ_GGUF_ARRAY) {
            status = read_type(c, &value->item_type);
            if (status == LMQ_OK)
                status = read_u64(c, "an array's length", &value->count);
            if (status != LMQ_OK)
                return status;
        }
        value->data = c->bytes + c->at;
        status = skip_items(c, value->item_type, value->count, 1);
        value->size = (size_t)(c->bytes + c->at - value->data);
    }
    value->raw_size = (size_t)(c->bytes + c->at - value->raw);
    return status;
}

static enum lmq_status
read_key(struct cursor *c, struct lmq_gguf_value *value)
{
    size_t at = c->at;
    enum lmq_status status = read_string(c, "a key", &value->key,
                                         &value->key_size);

    if (status != LMQ_OK)
        return status;
    if (value->key_size == 0 || value->key_size > LMQ_GGUF_MAX_KEY_SIZE)
        return lmq_fail(c->err, LMQ_ERR_FORMAT, at,
                        "GGUF: a key of %zu bytes at offset %zu",
                        value->key_size, at);
    return LMQ_OK;
}

static enum lmq_status
read_values(struct cursor *c, struct lmq_gguf_meta *meta, uint64_t n_values)
{
    enum lmq_status status = LMQ_OK;

    for (uint64_t i = 0; i < n_values && status == LMQ_OK; i++) {
        /* Not all at once: the header's number may be a lie, and a key takes
         * fourteen bytes at least. */
        if (lmq_mem_grow(&meta->values, &meta->values_capacity,
                         meta->n_values + 1, sizeof(meta->values[0])) != 0)
            return lmq_fail_nomem(c->err);
        struct lmq_gguf_value *value = &meta->values[meta->n_values];
        memset(value, 0, sizeof(*value));
        status = read_key(c, value);
        if (status == LMQ_OK)
            status = read_value(c, value);
        if (status == LMQ_OK)
            meta->n_values++;
    }
    meta->tensors_at = c->at;
    return status;
}

/* ---- Header ---- */

bool
lmq_gguf_is(const unsigned char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

static enum lmq_status
read_header(struct cursor *c, struct lmq_gguf_meta *meta, uint64_t *n_values)
{
    if (!lmq_gguf_is(c->bytes, c->end))
        return lmq_fail(c->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: does not begin with \"GGUF\"");
    c->at = 4;
    enum lmq_status status = read_u32(c, "the version", &meta->version);
    if (status != LMQ_OK)
        return status;
    /* 2 or 3 in the other byte order. */
    if (meta->version != 0 && (meta->version & 0xffff) == 0)
        return lmq_fail(c->err, LMQ_ERR_UNSUPPORTED, 4,
                        "GGUF: big-endian files are not supported");
    if (meta->version != 2 && meta->version != 3)
        return lmq_fail(c->err, LMQ_ERR_UNSUPPORTED, 4,
                        "GGUF: version %" PRIu32
                        " is not supported, only 2 and 3",
                        meta->version);
    status = read_u64(c, "the header", &meta->n_tensors);
    if (status == LMQ_OK)
        status = read_u64(c, "the header", n_values);
    if (status == LMQ_OK && *n_values > LMQ_GGUF_MAX_KEYS)
        return lmq_fail(c->err, LMQ_ERR_FORMAT, 16,
                        "GGUF: %" PRIu64 " keys, at most %d are accepted",
                        *n_values, LMQ_GGUF_MAX_KEYS);
    return status;
}

/* Shorter first: cheap, and any order serves. */
static int
compare_keys(const unsigned char *a, size_t a_size, const unsigned char *b,
             size_t b_size)
{
    if (a_size != b_size)
        return a_size < b_size ? -1 : 1;
    return memcmp(a, b, a_size);
}

static int
compare_values(const void *a, const void *b)
{
    const struct lmq_gguf_value *const *x = a, *const *y = b;

    return compare_keys((*x)->key, (*x)->key_size, (*y)->key, (*y)->key_size);
}

static enum lmq_status
index_keys(struct lmq_gguf_meta *meta, struct lmq_error *err)
{
    size_t n = meta->n_values;

    meta->by_key = calloc(n + 1, sizeof(meta->by_key[0]));
    if (meta->by_key == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        meta->by_key[i] = &meta->values[i];
    qsort(meta->by_key, n, sizeof(meta->by_key[0]), compare_values);
    /* Two readers could take different ones of two values. */
    for (size_t i = 1; i < n; i++) {
        const struct lmq_gguf_value *v = meta->by_key[i];
        if (compare_values(&meta->by_key[i - 1], &meta->by_key[i]) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "GGUF: the key '%.*s' stands twice",
                            (int)lmq_size_min(v->key_size, 100),
                            (const char *)v->key);
    }
    return LMQ_OK;
}

static enum lmq_status
read_alignment(struct lmq_gguf_meta *meta, struct lmq_error *err)
{
    uint64_t alignment = DEFAULT_ALIGNMENT;
    enum lmq_status status =
        lmq_gguf_get_uint(meta, "general.alignment", UINT64_MAX, &alignment,
                          err);

    if (status != LMQ_OK)
        return status;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        alignment > LMQ_GGUF_MAX_ALIGNMENT)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: general.alignment is %" PRIu64
                        ", a power of two up to %d is expected",
                        alignment, LMQ_GGUF_MAX_ALIGNMENT);
    meta->alignment = (uint32_t)alignment;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_meta_open(const unsigned char *bytes, size_t size,
                   struct lmq_gguf_meta **out, bool *is_short,
                   struct lmq_error *err)
{
    struct cursor c = { bytes, 0, size, false, err };
    uint64_t n_values = 0;

    *out = NULL;
    struct lmq_gguf_meta *meta = calloc(1, sizeof(*meta));
    if (meta == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = read_header(&c, meta, &n_values);
    if (status == LMQ_OK)
        status = read_values(&c, meta, n_values);
    if (is_short != NULL)
        *is_short = c.is_short;
    if (status == LMQ_OK)
        status = index_keys(meta, err);
    if (status == LMQ_OK)
        status = read_alignment(meta, err);
    if (status != LMQ_OK) {
        lmq_gguf_meta_close(meta);
        return status;
    }
    *out = meta;
    return LMQ_OK;
}

void
lmq_gguf_meta_close(struct lmq_gguf_meta *meta)
{
    if (meta == NULL)
        return;
    free(meta->by_key);
    free(meta->values);
    free(meta);
}

/* ---- Looking up ---- */

uint32_t
lmq_gguf_version(const struct lmq_gguf_meta *meta)
{
    return meta->version;
}

uint64_t
lmq_gguf_n_tensors(const struct lmq_gguf_meta *meta)
{
    return meta->n_tensors;
}

size_t
lmq_gguf_tensors_at(const struct lmq_gguf_meta *meta)
{
    return meta->tensors_at;
}

uint32_t
lmq_gguf_alignment(const struct lmq_gguf_meta *meta)
{
    return meta->alignment;
}

size_t
lmq_gguf_n_values(const struct lmq_gguf_meta *meta)
{
    return meta->n_values;
}

const struct lmq_gguf_value *
lmq_gguf_value(const struct lmq_gguf_meta *meta, size_t index)
{
    assert(index < meta->n_values);
    return &meta->values[index];
}

const struct lmq_gguf_value *
lmq_gguf_find(const struct lmq_gguf_meta *meta, const char *key)
{
    size_t key_size = strlen(key);
    size_t low = 0, high = meta->n_values;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct lmq_gguf_value *v = meta->by_key[middle];
        int order = compare_keys((const unsigned char *)key, key_size, v->key,
                                 v->key_size);
        if (order == 0)
            return v;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static enum lmq_status
wrong_kind(const char *key, const char *expected, struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_FORMAT, 0, "GGUF: '%s' is not %s", key,
                    expected);
}

/* An integer of any width; for u64 the bits. */
static bool
load_int(enum lmq_gguf_type type, const unsigned char *p, int64_t *value)
{
    switch (type) {
    case LMQ_GGUF_U8:
    case LMQ_GGUF_BOOL:
        *value = p[0];
        return true;
    case LMQ_GGUF_I8:
        *value = (int8_t)p[0];
        return true;
    case LMQ_GGUF_U16:
        *value = lmq_load_u16le(p);
        return true;
    case LMQ_GGUF_I16:
        *value = (int16_t)lmq_load_u16le(p);
        return true;
    case LMQ_GGUF_U32:
        *value = lmq_load_u32le(p);
        return true;
    case LMQ_GGUF_I32:
        *value = lmq_load_i32le(p);
        return true;
    case LMQ_GGUF_U64:
    case LMQ_GGUF_I64:
        *value = (int64_t)lmq_load_u64le(p);
        return true;
    default:
        return false;
    }
}

static bool
load_number(enum lmq_gguf_type type, const unsigned char *p, double *value)
{
    if (type == LMQ_GGUF_F32) {
        *value = lmq_load_f32le(p);
        return true;
    }
    if (type == LMQ_GGUF_F64) {
        uint64_t bits = lmq_load_u64le(p);
        memcpy(value, &bits, sizeof(*value));
        return true;
    }
    return false;
}

enum lmq_status
lmq_gguf_get_uint(const struct lmq_gguf_meta *meta, const char *key,
                  uint64_t most, uint64_t *value, struct lmq_error *err)
{
    const struct lmq_gguf_value *v = lmq_gguf_find(meta, key);
    int64_t number;

    if (v == NULL)
        return LMQ_OK;
    if (v->type == LMQ_GGUF_BOOL || !load_int(v->type, v->data, &number))
        return wrong_kind(key, "an integer", err);
    if (number < 0 && v->type != LMQ_GGUF_U64)
        return wrong_kind(key, "an integer from 0", err);
    if ((uint64_t)number > most)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "GGUF: '%s' is %" PRIu64 ", more than %" PRIu64, key,
                        (uint64_t)number, most);
    *value = (uint64_t)number;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_get_number(const struct lmq_gguf_meta *meta, const char *key,
                    double *value, struct lmq_error *err)
{
    const struct lmq_gguf_value *v = lmq_gguf_find(meta, key);

    if (v != NULL && !load_number(v->type, v->data, value))
        return wrong_kind(key, "a number", err);
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_get_bool(const struct lmq_gguf_meta *meta, const char *key,
                  bool *value, struct lmq_error *err)
{
    const struct lmq_gguf_value *v = lmq_gguf_find(meta, key);

    if (v == NULL)
        return LMQ_OK;
    if (v->type != LMQ_GGUF_BOOL)
        return wrong_kind(key, "a boolean", err);
    *value = v->data[0] != 0;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_get_text(const struct lmq_gguf_meta *meta, const char *key,
                  const unsigned char **text, size_t *size,
                  struct lmq_error *err)
{
    const struct lmq_gguf_value *v = lmq_gguf_find(meta, key);

    if (v == NULL)
        return LMQ_OK;
    if (v->type != LMQ_GGUF_STRING)
        return wrong_kind(key, "a string", err);
    *text = v->data;
    *size = v->size;
    return LMQ_OK;
}

enum lmq_status
lmq_gguf_get_array(const struct lmq_gguf_meta *meta, const char *key,
                   enum lmq_gguf_type item_type,
                   const struct lmq_gguf_value **value, struct lmq_error *err)
{
    *value = lmq_gguf_find(meta, key);
    if (*value != NULL && ((*value)->type != LMQ_GGUF_ARRAY ||
                           (*value)->item_type != item_type)) {
        *value = NULL;
        return wrong_kind(key, "an array of the expected type", err);
    }
    return LMQ_OK;
}

int64_t
lmq_gguf_item_int(const struct lmq_gguf_value *array, uint64_t index)
{
    int64_t value = 0;

    assert(index < array->count);
    load_int(array->item_type,
             array->data + index * item_sizes[array->item_type], &value);
    return value;
}

double
lmq_gguf_item_number(const struct lmq_gguf_value *array, uint64_t index)
{
    double value = 0;

    assert(index < array->count);
    load_number(array->item_type,
                array->data + index * item_sizes[array->item_type], &value);
    return value;
}

struct lmq_gguf_strings
lmq_gguf_strings(const struct lmq_gguf_value *array)
{
    assert(array->item_type == LMQ_GGUF_STRING);
    return (struct lmq_gguf_strings){ array->data, array->count };
}

bool
lmq_gguf_next_string(struct lmq_gguf_strings *strings,
                     const unsigned char **text, size_t *size)
{
    if (strings->left == 0)
        return false;
    *size = (size_t)lmq_load_u64le(strings->at);
    *text = strings->at + 8;
    strings->at = *text + *size;
    strings->left--;
    return true;
}

/* ---- Writing the vocabulary ---- */

static bool
belongs_to_vocab(const struct lmq_gguf_value *v)
{
    static const char prefix[] = "tokenizer.";
    static const char name[] = "general.architecture";

    if (v->key_size == sizeof(name) - 1 &&
        memcmp(v->key, name, sizeof(name) - 1) == 0)
        return true;
    return v->key_size > sizeof(prefix) - 1 &&
           memcmp(v->key, prefix, sizeof(prefix) - 1) == 0;
}

enum lmq_status
lmq_gguf_write_vocab(const struct lmq_gguf_meta *meta, unsigned char **bytes,
                     size_t *size, struct lmq_error *err)
{
    /* Parts of one file in memory: the sum cannot wrap. */
    size_t n_bytes = HEADER_SIZE;
    uint64_t n_values = 0;

    *bytes = NULL;
    *size = 0;
    for (size_t i = 0; i < meta->n_values; i++) {
        const struct lmq_gguf_value *v = &meta->values[i];
        if (belongs_to_vocab(v)) {
            n_bytes += 8 + v->key_size + 4 + v->raw_size;
            n_values++;
        }
    }
    unsigned char *p = malloc(n_bytes);
    if (p == NULL)
        return lmq_fail_nomem(err);
    *bytes = p;
    *size = n_bytes;
    memcpy(p, "GGUF", 4);
    lmq_store_u32le(p + 4, 3);
    lmq_store_u64le(p + 8, 0);
    lmq_store_u64le(p + 16, n_values);
    p += HEADER_SIZE;
    for (size_t i = 0; i < meta->n_values; i++) {
        const struct lmq_gguf_value *v = &meta->values[i];
        if (!belongs_to_vocab(v))
            continue;
        lmq_store_u64le(p, v->key_size);
        memcpy(p + 8, v->key, v->key_size);
        p += 8 + v->key_size;
        lmq_store_u32le(p, v->type);
        memcpy(p + 4, v->raw, v->raw_size);
        p += 4 + v->raw_size;
    }
    return LMQ_OK;
}
