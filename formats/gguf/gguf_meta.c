/*
 * gguf_meta.c - the header and the key/value part of a GGUF file.
 *
 * What one value is, and that it can be trusted, is known by gguf_values.c;
 * tensor infos are somebody else's business.
 *
 * A file, all of it little-endian:
 *
 *     "GGUF", version (u32), number of tensors (u64), of keys (u64)
 *     for each key: its text, its type (u32), its value
 *     tensor infos; zeros up to a multiple of general.alignment; data
 */
#include "config.h"

#include "formats/gguf/gguf_meta.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/gguf/gguf_build.h"

#define DEFAULT_ALIGNMENT 32

static enum lmq_status
read_values(struct lmq_gguf_cursor *c, struct lmq_gguf_meta *meta,
            uint64_t n_values)
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
        status = lmq_gguf_read_key(c, value);
        if (status == LMQ_OK)
            status = lmq_gguf_read_value(c, value);
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

/* The counts are only bounds: they are believed as far as there are bytes. */
static enum lmq_status
read_header(struct lmq_gguf_cursor *c, struct lmq_gguf_meta *meta,
            uint64_t *n_values)
{
    if (!lmq_gguf_is(c->bytes, c->end))
        return lmq_fail(c->err, LMQ_ERR_FORMAT, 0,
                        "GGUF: does not begin with \"GGUF\"");
    c->at = 4;
    enum lmq_status status =
        lmq_gguf_read_u32(c, "the version", &meta->version);
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
    status = lmq_gguf_read_u64(c, "the header", &meta->n_tensors);
    if (status == LMQ_OK)
        status = lmq_gguf_read_u64(c, "the header", n_values);
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

/* A table beside the values, which stay in the order of the file: look-ups by
 * halves, and equal keys stand side by side. */
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

/* A key like any other, though it says where the data begin. */
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
    struct lmq_gguf_cursor c = { bytes, 0, size, false, err };
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

enum lmq_status
lmq_gguf_get_uint(const struct lmq_gguf_meta *meta, const char *key,
                  uint64_t most, uint64_t *value, struct lmq_error *err)
{
    const struct lmq_gguf_value *v = lmq_gguf_find(meta, key);
    int64_t number;

    if (v == NULL)
        return LMQ_OK;
    if (v->type == LMQ_GGUF_BOOL ||
        !lmq_gguf_load_int(v->type, v->data, &number))
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

    if (v != NULL && !lmq_gguf_load_number(v->type, v->data, value))
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

/* ---- Writing the vocabulary ---- */

bool
lmq_gguf_is_of_vocab(const struct lmq_gguf_value *v)
{
    static const char prefix[] = "tokenizer.";

    return v->key_size > sizeof(prefix) - 1 &&
           memcmp(v->key, prefix, sizeof(prefix) - 1) == 0;
}

/* Values are copied as they are stored, so that types that nobody here knows
 * come along. */
enum lmq_status
lmq_gguf_write_vocab(const struct lmq_gguf_meta *meta, unsigned char **bytes,
                     size_t *size, struct lmq_error *err)
{
    /* Readers of tokenizers also look at it. */
    const struct lmq_gguf_value *architecture =
        lmq_gguf_find(meta, "general.architecture");
    struct lmq_gguf_builder builder = {0};

    *bytes = NULL;
    *size = 0;
    lmq_gguf_build_begin(&builder);
    for (size_t i = 0; i < meta->n_values; i++)
        if (lmq_gguf_is_of_vocab(&meta->values[i]) ||
            &meta->values[i] == architecture)
            lmq_gguf_put_value(&builder, &meta->values[i]);
    lmq_gguf_build_end(&builder, 0);
    if (builder.out.has_failed) {
        lmq_gguf_build_free(&builder);
        return lmq_fail_nomem(err);
    }
    *bytes = builder.out.bytes;
    *size = builder.out.n;
    return LMQ_OK;
}
