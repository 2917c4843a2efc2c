/*
 * lmq_directory.c - the tensor directory of a container as bytes, and back.
 *
 * A record says what can be recomputed too: sizes from shape and type, the
 * name from the role. Loading requires all of it to agree.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "base/utf8.h"
#include "formats/lmq/lmq.h"

#define REC_RESERVED 180

bool
lmq_record_sizes(const struct lmq_record *record, uint64_t *values_size,
                 uint64_t *scales_size)
{
    struct lmq_tensor shape = {0};

    *values_size = *scales_size = 0;
    if (!lmq_tensor_set_dims(&shape, record->dims, record->n_dims))
        return false;
    if (record->encoding == LMQ_ENCODING_PLAIN)
        return lmq_u64_mul(shape.n_elements, lmq_dtype_size(record->dtype),
                           values_size);
    if (record->encoding == LMQ_ENCODING_Q8)
        return lmq_layout_sizes(record->layout, shape.n_rows, shape.n_cols,
                                record->quant.group_size, record->quant.scales,
                                values_size, scales_size);
    return true;
}

static void
store_f64(unsigned char *p, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    lmq_store_u64le(p, bits);
}

static double
load_f64(const unsigned char *p)
{
    uint64_t bits = lmq_load_u64le(p);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void
store_record(const struct lmq_record *record, uint32_t name_at,
             unsigned char *p)
{
    bool is_q8 = record->encoding == LMQ_ENCODING_Q8;

    memset(p, 0, LMQ_RECORD_SIZE);
    lmq_store_u32le(p, name_at);
    lmq_store_u32le(p + 4, (uint32_t)strlen(record->name));
    lmq_store_u16le(p + 8, (uint16_t)record->place.role);
    p[10] = (unsigned char)record->place.part;
    p[11] = (unsigned char)record->encoding;
    lmq_store_u32le(p + 12, (uint32_t)record->place.layer);
    lmq_store_u32le(p + 16, (uint32_t)record->place.item);
    p[20] = (unsigned char)record->dtype;
    p[21] = (unsigned char)record->layout;
    p[22] = is_q8 ? (unsigned char)record->quant.scales : 0;
    p[23] = (unsigned char)record->n_dims;
    lmq_store_u32le(p + 24, is_q8 ? record->quant.group_size : 0);
    lmq_store_f32le(p + 28, is_q8 ? record->quant.multiplier : 0);
    for (uint32_t i = 0; i < record->n_dims; i++)
        lmq_store_u64le(p + 32 + 8 * i, record->dims[i]);
    lmq_store_u64le(p + 96, record->values.offset);
    lmq_store_u64le(p + 104, record->values.size);
    lmq_store_u64le(p + 112, record->scales.offset);
    lmq_store_u64le(p + 120, record->scales.size);
    lmq_store_u32le(p + 128, record->values.crc);
    lmq_store_u32le(p + 132, record->scales.crc);
    lmq_store_u32le(p + 136, record->alias);
    lmq_store_u32le(p + 140, (uint32_t)record->source_dtype);
    lmq_store_f32le(p + 144, record->max_abs);
    lmq_store_f32le(p + 148, record->max_err);
    store_f64(p + 152, record->sum_sq);
    store_f64(p + 160, record->err_sq);
    lmq_store_u64le(p + 168, record->worst_group);
    lmq_store_f32le(p + 176, record->worst_err_sq);
}

static size_t
names_size(const struct lmq_record *records, size_t n)
{
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += strlen(records[i].name);
    return size;
}

uint64_t
lmq_directory_size(const struct lmq_record *records, size_t n)
{
    return LMQ_DIRECTORY_HEADER + (uint64_t)n * LMQ_RECORD_SIZE +
           names_size(records, n);
}

enum lmq_status
lmq_directory_store(const struct lmq_record *records, size_t n,
                    unsigned char **bytes, size_t *size, struct lmq_error *err)
{
    *size = (size_t)lmq_directory_size(records, n);
    *bytes = calloc(1, *size);
    if (*bytes == NULL)
        return lmq_fail_nomem(err);
    unsigned char *p = *bytes;
    size_t names_at = LMQ_DIRECTORY_HEADER + n * LMQ_RECORD_SIZE, name_at = 0;
    lmq_store_u32le(p, (uint32_t)n);
    lmq_store_u32le(p + 4, LMQ_RECORD_SIZE);
    lmq_store_u64le(p + 8, *size - names_at);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(records[i].name);
        store_record(&records[i], (uint32_t)name_at,
                     p + LMQ_DIRECTORY_HEADER + i * LMQ_RECORD_SIZE);
        memcpy(p + names_at + name_at, records[i].name, length);
        name_at += length;
    }
    return LMQ_OK;
}

/* Fields that name a kind must name a known one: a kind that is not known
 * changes what the bytes mean. */
static bool
has_known_kinds(const unsigned char *p)
{
    return p[10] < LMQ_PART_COUNT && p[11] < LMQ_ENCODING_COUNT &&
           p[20] < LMQ_DTYPE_COUNT && p[21] < LMQ_LAYOUT_COUNT &&
           p[22] < LMQ_SCALES_COUNT &&
           lmq_load_u32le(p + 140) < LMQ_DTYPE_COUNT;
}

static enum lmq_status
load_record(const unsigned char *p, uint64_t at, const char *name,
            struct lmq_record *record, struct lmq_error *err)
{
    uint16_t role = lmq_load_u16le(p + 8);

    if (!has_known_kinds(p) || p[23] > LMQ_MAX_DIMS)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, at,
                        "tensor '%s' has a kind that this version does not "
                        "know (encoding %u, type %u, layout %u, scales %u, "
                        "%u dimensions)",
                        name, p[11], p[20], p[21], p[22], p[23]);
    /* A role of a later version is still a tensor. */
    record->place.role =
        role < LMQ_ROLE_COUNT ? (enum lmq_role)role : LMQ_ROLE_OTHER;
    record->place.part = (enum lmq_part)p[10];
    record->place.layer = lmq_load_i32le(p + 12);
    record->place.item = lmq_load_i32le(p + 16);
    record->encoding = (enum lmq_encoding)p[11];
    record->dtype = (enum lmq_dtype)p[20];
    record->layout = (enum lmq_layout)p[21];
    record->quant.scales = (enum lmq_scales)p[22];
    record->n_dims = p[23];
    record->quant.group_size = lmq_load_u32le(p + 24);
    record->quant.multiplier = lmq_load_f32le(p + 28);
    for (uint32_t i = 0; i < LMQ_MAX_DIMS; i++)
        record->dims[i] = lmq_load_u64le(p + 32 + 8 * i);
    record->values = (struct lmq_extent){lmq_load_u64le(p + 96),
                                         lmq_load_u64le(p + 104),
                                         lmq_load_u32le(p + 128)};
    record->scales = (struct lmq_extent){lmq_load_u64le(p + 112),
                                         lmq_load_u64le(p + 120),
                                         lmq_load_u32le(p + 132)};
    record->alias = lmq_load_u32le(p + 136);
    record->source_dtype = (enum lmq_dtype)lmq_load_u32le(p + 140);
    record->max_abs = lmq_load_f32le(p + 144);
    record->max_err = lmq_load_f32le(p + 148);
    record->sum_sq = load_f64(p + 152);
    record->err_sq = load_f64(p + 160);
    record->worst_group = lmq_load_u64le(p + 168);
    record->worst_err_sq = lmq_load_f32le(p + 176);
    if (!lmq_is_zero(p + REC_RESERVED, LMQ_RECORD_SIZE - REC_RESERVED))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "reserved bytes of tensor '%s' are not zero", name);
    return LMQ_OK;
}

/* A power of two, so that multiplying by it is exact. */
static bool
is_multiplier(float value)
{
    int exponent;

    return value >= 0x1p-126f && value <= 0x1p126f &&
           frexpf(value, &exponent) == 0.5f;
}

/* Sums of squares of very large weights may be infinite. */
static bool
is_measure(double value)
{
    return value >= 0;
}

static enum lmq_status
check_record(const struct lmq_record *record, uint64_t at, uint64_t file_size,
             struct lmq_error *err)
{
    const struct lmq_extent *values = &record->values;
    const struct lmq_extent *scales = &record->scales;
    bool is_q8 = record->encoding == LMQ_ENCODING_Q8;
    uint64_t values_size, scales_size;

    if (record->place.layer < -1 || record->place.layer >= LMQ_MAX_LAYERS ||
        record->place.item < -1 || record->place.item >= LMQ_MAX_ITEMS ||
        (record->place.item >= 0 && !lmq_role_has_items(record->place.role)))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s': layer %d and item %d make no sense",
                        record->name, (int)record->place.layer,
                        (int)record->place.item);
    char name[64];
    if (record->place.role != LMQ_ROLE_OTHER)
        lmq_name_canonical(&record->place, name, sizeof(name));
    if (record->place.role != LMQ_ROLE_OTHER &&
        (strcmp(name, record->name) != 0 ||
         lmq_role_is_per_layer(record->place.role) !=
             (record->place.layer >= 0)))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s' has the role and layer of '%s'",
                        record->name, name);
    for (uint32_t i = 0; i < LMQ_MAX_DIMS; i++)
        if ((record->dims[i] == 0) != (i >= record->n_dims))
            return lmq_fail(err, LMQ_ERR_FORMAT, at,
                            "tensor '%s': dimension %u is %" PRIu64
                            " of %u dimensions",
                            record->name, i, record->dims[i], record->n_dims);
    if (is_q8 ? !lmq_group_size_is_valid(record->quant.group_size) ||
                    !is_multiplier(record->quant.multiplier) ||
                    (record->quant.scales == LMQ_SCALES_F32 &&
                     record->quant.multiplier != 1)
              : record->quant.group_size != 0 || record->quant.multiplier != 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s': group size %u and multiplier %g do not "
                        "make sense",
                        record->name, record->quant.group_size,
                        (double)record->quant.multiplier);
    if (!lmq_record_sizes(record, &values_size, &scales_size))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s': the product of its dimensions is too "
                        "large",
                        record->name);
    if (values->size != values_size || scales->size != scales_size)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s' has %" PRIu64 " + %" PRIu64
                        " bytes, its shape and type need %" PRIu64
                        " + %" PRIu64,
                        record->name, values->size, scales->size, values_size,
                        scales_size);
    if ((values_size > 0 && !lmq_extent_is_inside(values, file_size)) ||
        (scales_size > 0 && !lmq_extent_is_inside(scales, file_size)))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s' lies outside the file or is not aligned",
                        record->name);
    if (!is_measure((double)record->max_abs) ||
        !is_measure((double)record->max_err) || !is_measure(record->sum_sq) ||
        !is_measure(record->err_sq) ||
        !is_measure((double)record->worst_err_sq))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s': its statistics are no numbers from 0",
                        record->name);
    return LMQ_OK;
}

static enum lmq_status
check_aliases(const struct lmq_record *records, size_t n,
              struct lmq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct lmq_record *record = &records[i];
        bool is_alias = record->encoding == LMQ_ENCODING_ALIAS;
        if (is_alias != (record->alias != LMQ_NO_ALIAS))
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' is an alias of nothing",
                            record->name);
        if (!is_alias)
            continue;
        /* No chains, so no circles. */
        if (record->alias >= n ||
            records[record->alias].encoding == LMQ_ENCODING_ALIAS ||
            records[record->alias].n_dims != record->n_dims ||
            memcmp(records[record->alias].dims, record->dims,
                   sizeof(record->dims)) != 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                            "tensor '%s' is an alias of tensor %u, which has "
                            "another shape or is none",
                            record->name, record->alias);
    }
    return LMQ_OK;
}

static enum lmq_status
load_name(const unsigned char *names, uint64_t size, const unsigned char *p,
          uint64_t at, char **name, struct lmq_error *err)
{
    uint32_t offset = lmq_load_u32le(p), length = lmq_load_u32le(p + 4);

    if (offset > size || length > size - offset || length == 0 ||
        length > LMQ_MAX_TENSOR_NAME)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a tensor's name (%u bytes at %u of %" PRIu64
                        ") is out of range",
                        length, offset, size);
    for (size_t i = 0; i < length;) {
        size_t n = names[offset + i] == 0
                       ? 0
                       : lmq_utf8_length(names + offset + i, length - i);
        if (n == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, at,
                            "a tensor's name is not UTF-8");
        i += n;
    }
    *name = strndup((const char *)names + offset, length);
    return *name == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

enum lmq_status
lmq_directory_load(const unsigned char *bytes, size_t size, uint64_t file_size,
                   struct lmq_record **records, size_t *n,
                   struct lmq_error *err)
{
    *records = NULL;
    *n = 0;
    if (size < LMQ_DIRECTORY_HEADER)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the directory is %zu bytes, its header needs %d",
                        size, LMQ_DIRECTORY_HEADER);
    uint32_t count = lmq_load_u32le(bytes);
    uint32_t record_size = lmq_load_u32le(bytes + 4);
    uint64_t names = lmq_load_u64le(bytes + 8);
    uint64_t left = size - LMQ_DIRECTORY_HEADER;
    if (count > LMQ_MAX_TENSORS || record_size < LMQ_RECORD_SIZE ||
        record_size > LMQ_MAX_RECORD_SIZE || names > left ||
        (uint64_t)count * record_size != left - names)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the directory (%u records of %u bytes, %" PRIu64
                        " bytes of names) does not fill its %zu bytes",
                        count, record_size, names, size);
    struct lmq_record *loaded = calloc((size_t)count + 1, sizeof(*loaded));
    if (loaded == NULL)
        return lmq_fail_nomem(err);

    enum lmq_status status = LMQ_OK;
    const unsigned char *name_bytes = bytes + (size - names);
    for (uint32_t i = 0; i < count && status == LMQ_OK; i++) {
        uint64_t at = LMQ_DIRECTORY_HEADER + (uint64_t)i * record_size;
        const unsigned char *p = bytes + at;
        status = load_name(name_bytes, names, p, at, &loaded[i].name, err);
        if (status == LMQ_OK)
            status = load_record(p, at, loaded[i].name, &loaded[i], err);
        if (status == LMQ_OK)
            status = check_record(&loaded[i], at, file_size, err);
    }
    if (status == LMQ_OK)
        status = check_aliases(loaded, count, err);
    if (status != LMQ_OK) {
        lmq_records_free(loaded, count);
        return status;
    }
    *records = loaded;
    *n = count;
    return LMQ_OK;
}

void
lmq_records_free(struct lmq_record *records, size_t n)
{
    for (size_t i = 0; records != NULL && i < n; i++)
        free(records[i].name);
    free(records);
}
