/*
 * lmq.c - the structures of a container as bytes, and back.
 *
 * Loading believes nothing: every number is checked against its range and
 * against what can be computed from the others, and reserved bytes are zero.
 */
#include "config.h"

#include "formats/lmq.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"

/* The high bit, CR LF and ^Z catch transfers that mangle binary files. */
const unsigned char lmq_magic[8] = {0x89, 'L',  'M',  'Q',
                                    '\r', '\n', 0x1a, '\n'};

static const unsigned char end_magic[8] = {'L',  'M',  'Q',  'E',
                                           'N', 'D', '\r', '\n'};

#define BYTE_ORDER_MARK 0x01020304u
#define BYTE_ORDER_SWAPPED 0x04030201u

static bool
is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static bool
is_inside(const struct lmq_extent *extent, uint64_t file_size)
{
    return extent->offset % LMQ_ALIGN == 0 &&
           extent->offset >= LMQ_SUPERBLOCK_SIZE &&
           extent->offset <= file_size &&
           extent->size <= file_size - extent->offset;
}

/* ---- Superblock ---- */

#define SB_CRC (LMQ_SUPERBLOCK_SIZE - 4)
#define SB_RESERVED 56

void
lmq_superblock_store(struct lmq_superblock *superblock,
                     unsigned char bytes[LMQ_SUPERBLOCK_SIZE])
{
    memset(bytes, 0, LMQ_SUPERBLOCK_SIZE);
    memcpy(bytes, lmq_magic, sizeof(lmq_magic));
    lmq_store_u32le(bytes + 8, BYTE_ORDER_MARK);
    lmq_store_u16le(bytes + 12, superblock->major);
    lmq_store_u16le(bytes + 14, superblock->minor);
    lmq_store_u64le(bytes + 16, superblock->incompatible);
    lmq_store_u64le(bytes + 24, superblock->compatible);
    lmq_store_u64le(bytes + 32, superblock->file_size);
    lmq_store_u64le(bytes + 40, superblock->table_offset);
    lmq_store_u32le(bytes + 48, superblock->n_sections);
    lmq_store_u32le(bytes + 52, superblock->table_crc);
    superblock->own_crc = lmq_crc32(0, bytes, SB_CRC);
    lmq_store_u32le(bytes + SB_CRC, superblock->own_crc);
}

/* Magic and version come first: they tell whether the rest means anything. */
static enum lmq_status
check_identity(const unsigned char *bytes, struct lmq_error *err)
{
    if (memcmp(bytes, lmq_magic, sizeof(lmq_magic)) != 0) {
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "the magic number is damaged (bytes 0 to 7)");
        lmq_hint(err, "a transfer in text mode does that; copy it as binary");
        return LMQ_ERR_FORMAT;
    }
    uint32_t order = lmq_load_u32le(bytes + 8);
    if (order == BYTE_ORDER_SWAPPED)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, 8,
                        "was written in big-endian order, which is not "
                        "supported");
    if (order != BYTE_ORDER_MARK)
        return lmq_fail(err, LMQ_ERR_FORMAT, 8,
                        "the byte-order mark is %08x, expected %08x", order,
                        BYTE_ORDER_MARK);
    uint32_t crc = lmq_crc32(0, bytes, SB_CRC);
    if (crc != lmq_load_u32le(bytes + SB_CRC))
        return lmq_fail(err, LMQ_ERR_FORMAT, SB_CRC,
                        "the superblock is damaged (CRC-32 %08x, expected "
                        "%08x)",
                        crc, lmq_load_u32le(bytes + SB_CRC));
    uint16_t major = lmq_load_u16le(bytes + 12);
    if (major != LMQ_MAJOR) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 12,
                 "needs a reader of format version %u.%u, this one reads %d.x",
                 major, lmq_load_u16le(bytes + 14), LMQ_MAJOR);
        lmq_hint(err, major > LMQ_MAJOR ? "a newer lmquant reads it"
                                        : "convert the checkpoint again");
        return LMQ_ERR_UNSUPPORTED;
    }
    uint64_t unknown =
        lmq_load_u64le(bytes + 16) & ~(uint64_t)LMQ_INCOMPATIBLE_KNOWN;
    if (unknown != 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 16,
                 "uses features that this version does not know (needs "
                 "version %u.%u; flags %#" PRIx64 ")",
                 major, lmq_load_u16le(bytes + 14), unknown);
        lmq_hint(err, "a newer lmquant reads it");
        return LMQ_ERR_UNSUPPORTED;
    }
    return LMQ_OK;
}

enum lmq_status
lmq_superblock_load(const unsigned char bytes[LMQ_SUPERBLOCK_SIZE],
                    uint64_t file_size, struct lmq_superblock *superblock,
                    struct lmq_error *err)
{
    enum lmq_status status = check_identity(bytes, err);

    if (status != LMQ_OK)
        return status;
    *superblock = (struct lmq_superblock){
        .major = lmq_load_u16le(bytes + 12),
        .minor = lmq_load_u16le(bytes + 14),
        .incompatible = lmq_load_u64le(bytes + 16),
        .compatible = lmq_load_u64le(bytes + 24),
        .file_size = lmq_load_u64le(bytes + 32),
        .table_offset = lmq_load_u64le(bytes + 40),
        .n_sections = lmq_load_u32le(bytes + 48),
        .table_crc = lmq_load_u32le(bytes + 52),
        .own_crc = lmq_load_u32le(bytes + SB_CRC),
    };
    if (superblock->file_size != file_size) {
        lmq_fail(err, LMQ_ERR_FORMAT, 32,
                 "is %" PRIu64 " bytes, expected %" PRIu64 " (%s)", file_size,
                 superblock->file_size,
                 file_size < superblock->file_size ? "truncated"
                                                   : "something was appended");
        lmq_hint(err, "copy the file again, or convert again");
        return LMQ_ERR_FORMAT;
    }
    uint64_t table_size = (uint64_t)superblock->n_sections * LMQ_SECTION_SIZE;
    struct lmq_extent table = {superblock->table_offset, table_size, 0};
    if (superblock->n_sections == 0 ||
        superblock->n_sections > LMQ_MAX_SECTIONS ||
        !is_inside(&table, file_size) ||
        file_size - table.offset - table_size != LMQ_TRAILER_SIZE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 40,
                        "the section table (%u entries at %" PRIu64 ") does "
                        "not end where the trailer begins",
                        superblock->n_sections, superblock->table_offset);
    if (!is_zero(bytes + SB_RESERVED, SB_CRC - SB_RESERVED))
        return lmq_fail(err, LMQ_ERR_FORMAT, SB_RESERVED,
                        "reserved bytes of the superblock are not zero");
    return LMQ_OK;
}

/* ---- Sections ---- */

void
lmq_section_store(const struct lmq_section *section,
                  unsigned char bytes[LMQ_SECTION_SIZE])
{
    memset(bytes, 0, LMQ_SECTION_SIZE);
    lmq_store_u32le(bytes, section->type);
    lmq_store_u32le(bytes + 4, section->flags);
    lmq_store_u64le(bytes + 8, section->stored.offset);
    lmq_store_u64le(bytes + 16, section->stored.size);
    lmq_store_u64le(bytes + 24, section->size);
    lmq_store_u32le(bytes + 32, section->stored.crc);
    memcpy(bytes + 40, section->name, strlen(section->name));
}

static bool
is_name(const unsigned char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '/')
        i++;
    return is_zero(bytes + i, n - i);
}

bool
lmq_section_name_is_valid(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= LMQ_SECTION_NAME && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 &&
           is_name((const unsigned char *)name, n);
}

enum lmq_status
lmq_section_load(const unsigned char bytes[LMQ_SECTION_SIZE], uint64_t at,
                 uint64_t file_size, struct lmq_section *section,
                 struct lmq_error *err)
{
    *section = (struct lmq_section){
        .type = lmq_load_u32le(bytes),
        .flags = lmq_load_u32le(bytes + 4),
        .stored = {lmq_load_u64le(bytes + 8), lmq_load_u64le(bytes + 16),
                   lmq_load_u32le(bytes + 32)},
        .size = lmq_load_u64le(bytes + 24),
    };
    memcpy(section->name, bytes + 40, LMQ_SECTION_NAME);
    bool is_known = section->type >= LMQ_SECTION_METADATA &&
                    section->type <= LMQ_SECTION_FILE;
    if ((section->flags & ~LMQ_SECTION_FLAGS_KNOWN) != 0 ||
        (!is_known && (section->flags & LMQ_SECTION_REQUIRED))) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, at,
                 "has a section of type %u with flags %#x, which this version "
                 "does not know",
                 section->type, section->flags);
        lmq_hint(err, "a newer lmquant reads it");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (!is_inside(&section->stored, file_size) ||
        section->stored.size > LMQ_MAX_SECTION_BYTES ||
        section->size > LMQ_MAX_SECTION_BYTES)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section (type %u, %" PRIu64 " bytes at %" PRIu64
                        ") lies outside the file, is not aligned or too large",
                        section->type, section->stored.size,
                        section->stored.offset);
    bool is_deflated = section->flags & LMQ_SECTION_DEFLATED;
    /* A few bytes must not become millions of records. */
    if (is_deflated && (section->type == LMQ_SECTION_METADATA ||
                        section->type == LMQ_SECTION_DIRECTORY))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "the directory or the metadata are deflated, which "
                        "only embedded files may be");
    if (is_deflated ? section->size / LMQ_MAX_INFLATION > section->stored.size
                    : section->size != section->stored.size)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section of %" PRIu64 " stored bytes cannot hold "
                        "%" PRIu64,
                        section->stored.size, section->size);
    if (!is_zero(bytes + 36, 4) || !is_name(bytes + 40, LMQ_SECTION_NAME) ||
        (section->type == LMQ_SECTION_FILE &&
         !lmq_section_name_is_valid(section->name)))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section's name or reserved bytes are malformed");
    return LMQ_OK;
}

/* ---- Trailer ---- */

#define TR_CRC (LMQ_TRAILER_SIZE - 4)

void
lmq_trailer_store(const struct lmq_superblock *superblock,
                  unsigned char bytes[LMQ_TRAILER_SIZE])
{
    memset(bytes, 0, LMQ_TRAILER_SIZE);
    memcpy(bytes, end_magic, sizeof(end_magic));
    lmq_store_u64le(bytes + 8, superblock->file_size);
    lmq_store_u32le(bytes + 16, superblock->own_crc);
    lmq_store_u32le(bytes + TR_CRC, lmq_crc32(0, bytes, TR_CRC));
}

enum lmq_status
lmq_trailer_load(const unsigned char bytes[LMQ_TRAILER_SIZE],
                 const struct lmq_superblock *superblock,
                 struct lmq_error *err)
{
    uint64_t at = superblock->file_size - LMQ_TRAILER_SIZE;

    if (memcmp(bytes, end_magic, sizeof(end_magic)) != 0 ||
        lmq_crc32(0, bytes, TR_CRC) != lmq_load_u32le(bytes + TR_CRC) ||
        !is_zero(bytes + 20, TR_CRC - 20))
        return lmq_fail(err, LMQ_ERR_FORMAT, at, "the trailer is damaged");
    if (lmq_load_u64le(bytes + 8) != superblock->file_size ||
        lmq_load_u32le(bytes + 16) != superblock->own_crc)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "the trailer does not belong to this superblock");
    return LMQ_OK;
}

/* ---- Directory ---- */

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
    lmq_store_u32le(p + 16, (uint32_t)record->expert);
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
    record->expert = lmq_load_i32le(p + 16);
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
    if (!is_zero(p + REC_RESERVED, LMQ_RECORD_SIZE - REC_RESERVED))
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
        record->expert < -1)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "tensor '%s': layer %d and expert %d make no sense",
                        record->name, (int)record->place.layer,
                        (int)record->expert);
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
    if ((values_size > 0 && !is_inside(values, file_size)) ||
        (scales_size > 0 && !is_inside(scales, file_size)))
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
