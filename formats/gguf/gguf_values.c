/*
 * gguf_values.c - keys and values as they stand in a GGUF file.
 *
 * Trusts nothing: every count and length is compared with the bytes that are
 * left before it is used.
 *
 * A text is its length in bytes (u64) and these bytes, with no 0 behind them.
 * An array is the type of its items (u32), their number (u64), and the items,
 * which may be arrays.
 */
#include "config.h"

#include "formats/gguf/gguf_values.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"

/* Bytes of one item; 0 for what has no fixed size. */
static const unsigned char item_sizes[LMQ_GGUF_TYPE_COUNT] = {
    [LMQ_GGUF_U8] = 1,  [LMQ_GGUF_I8] = 1,  [LMQ_GGUF_U16] = 2,
    [LMQ_GGUF_I16] = 2, [LMQ_GGUF_U32] = 4, [LMQ_GGUF_I32] = 4,
    [LMQ_GGUF_F32] = 4, [LMQ_GGUF_BOOL] = 1, [LMQ_GGUF_U64] = 8,
    [LMQ_GGUF_I64] = 8, [LMQ_GGUF_F64] = 8,
};

/* ---- Reading ---- */

/* `at` is never beyond `end`, so the difference cannot wrap; adding n to `at`
 * could. */
static enum lmq_status
need(struct lmq_gguf_cursor *c, uint64_t n, const char *what)
{
    if (n <= c->end - c->at)
        return LMQ_OK;
    c->is_short = true;
    return lmq_fail(c->err, LMQ_ERR_FORMAT, c->at,
                    "GGUF: %s at offset %zu needs %" PRIu64
                    " bytes, %zu are left",
                    what, c->at, n, c->end - c->at);
}

enum lmq_status
lmq_gguf_read_u32(struct lmq_gguf_cursor *c, const char *what, uint32_t *value)
{
    enum lmq_status status = need(c, 4, what);

    if (status == LMQ_OK) {
        *value = lmq_load_u32le(c->bytes + c->at);
        c->at += 4;
    }
    return status;
}

enum lmq_status
lmq_gguf_read_u64(struct lmq_gguf_cursor *c, const char *what, uint64_t *value)
{
    enum lmq_status status = need(c, 8, what);

    if (status == LMQ_OK) {
        *value = lmq_load_u64le(c->bytes + c->at);
        c->at += 8;
    }
    return status;
}

/* Empty texts are legal. */
static enum lmq_status
read_string(struct lmq_gguf_cursor *c, const char *what,
            const unsigned char **text, size_t *size)
{
    uint64_t n;
    enum lmq_status status = lmq_gguf_read_u64(c, what, &n);

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
read_type(struct lmq_gguf_cursor *c, enum lmq_gguf_type *type)
{
    size_t at = c->at;
    uint32_t number;
    enum lmq_status status = lmq_gguf_read_u32(c, "a value's type", &number);

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
check_bools(struct lmq_gguf_cursor *c, const unsigned char *p, uint64_t n)
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
skip_items(struct lmq_gguf_cursor *c, enum lmq_gguf_type type, uint64_t count,
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
                status = lmq_gguf_read_u64(c, "an array's length", &n);
            if (status == LMQ_OK)
                status = skip_items(c, inner, n, depth + 1);
        }
    }
    return status;
}

enum lmq_status
lmq_gguf_read_key(struct lmq_gguf_cursor *c, struct lmq_gguf_value *value)
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

/* value->raw is all behind the key's type, as another file can have it;
 * ->data are the items, or the bytes of a text. */
enum lmq_status
lmq_gguf_read_value(struct lmq_gguf_cursor *c, struct lmq_gguf_value *value)
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
                status = lmq_gguf_read_u64(c, "an array's length",
                                           &value->count);
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

/* ---- Numbers and texts ---- */

/* An integer of any width; for u64 the bits. */
bool
lmq_gguf_load_int(enum lmq_gguf_type type, const unsigned char *p,
                  int64_t *value)
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

bool
lmq_gguf_load_number(enum lmq_gguf_type type, const unsigned char *p,
                     double *value)
{
    if (type == LMQ_GGUF_F32) {
        *value = lmq_load_f32le(p);
        return true;
    }
    if (type == LMQ_GGUF_F64) {
        *value = lmq_load_f64le(p);
        return true;
    }
    return false;
}

static const unsigned char *
item_at(const struct lmq_gguf_value *array, uint64_t index)
{
    assert(index < array->count);
    return array->data + index * item_sizes[array->item_type];
}

int64_t
lmq_gguf_item_int(const struct lmq_gguf_value *array, uint64_t index)
{
    int64_t value = 0;

    lmq_gguf_load_int(array->item_type, item_at(array, index), &value);
    return value;
}

double
lmq_gguf_item_number(const struct lmq_gguf_value *array, uint64_t index)
{
    double value = 0;

    lmq_gguf_load_number(array->item_type, item_at(array, index), &value);
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
