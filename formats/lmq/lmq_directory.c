/*
 * lmq_directory.c - the tensor directory of a container as bytes, and back.
 *
 * A record says what can be recomputed too: sizes from shape and type, the
 * name from the role. Loading requires all of it to agree.
 *
 * The directory is a header (number of records, size of one, size of the
 * names), the records, the names. A later version may make records longer:
 * what is behind the known part is not looked at, which is why their size is
 * said. Rules stand in a table; each is a sentence about one record, and its
 * message completes "tensor 'x' ...".
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/size.h"
#include "base/text/utf8.h"
#include "formats/lmq/lmq.h"

#define REC_RESERVED 200

/* Where a record has its extents: offset and size of each, then the
 * checksums. */
#define REC_EXTENTS 96
#define REC_CRCS 160

/* ---- Sizes ---- */

/* What the extents must be, from shape and type alone; false if a product does
 * not fit. Of unknown encodings only the file knows. */
bool
lmq_record_sizes(const struct lmq_record *record,
                 uint64_t sizes[LMQ_N_EXTENTS])
{
    struct lmq_tensor shape = {0};

    memset(sizes, 0, LMQ_N_EXTENTS * sizeof(sizes[0]));
    if (!lmq_tensor_set_dims(&shape, record->dims, record->n_dims))
        return false;
    if (record->encoding == LMQ_ENCODING_PLAIN)
        return lmq_u64_mul(record->n_rows * shape.n_cols,
                           lmq_dtype_size(record->dtype), &sizes[LMQ_VALUES]);
    if (record->encoding == LMQ_ENCODING_Q8)
        return lmq_layout_sizes(record->layout, record->n_rows, shape.n_cols,
                                &record->quant, &sizes[LMQ_VALUES],
                                &sizes[LMQ_SCALES]);
    return true;
}

uint64_t
lmq_record_bytes(const struct lmq_record *record)
{
    uint64_t sizes[LMQ_N_EXTENTS];

    lmq_record_sizes(record, sizes);
    return sizes[LMQ_VALUES] + sizes[LMQ_SCALES];
}

/* ---- Storing ---- */

uint64_t
lmq_record_rows(const struct lmq_record *record)
{
    struct lmq_tensor shape = {0};

    return record->n_dims <= LMQ_MAX_DIMS &&
                   lmq_tensor_set_dims(&shape, record->dims, record->n_dims)
               ? shape.n_rows
               : 0;
}

uint64_t
lmq_record_columns(const struct lmq_record *record)
{
    return record->n_dims == 0 || record->n_dims > LMQ_MAX_DIMS
               ? 1
               : record->dims[record->n_dims - 1];
}

/* Whether version 1.0 could rotate groups of this size, and whether rows have
 * no other groups. */
static bool
has_old_groups(const struct lmq_record *record)
{
    return record->quant.group_size == 64 || record->quant.group_size == 256;
}

static bool
has_whole_groups(const struct lmq_record *record)
{
    return has_old_groups(record) &&
           lmq_record_columns(record) % record->quant.group_size == 0;
}

unsigned char
lmq_record_encoding(const struct lmq_record *record)
{
    if (record->encoding != LMQ_ENCODING_Q8 ||
        record->quant.rotation == LMQ_ROTATION_NONE)
        return (unsigned char)record->encoding;
    return record->quant.rotation == LMQ_ROTATION_WHOLE ||
                   has_whole_groups(record)
               ? LMQ_ENCODING_ROTATED_WHOLE
               : LMQ_ENCODING_ROTATED_ALL;
}

/* lmq(5), "Record", has the places of the fields. */
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
    p[11] = lmq_record_encoding(record);
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
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++) {
        const struct lmq_extent *extent = &record->extents[i];
        lmq_store_u64le(p + REC_EXTENTS + 16 * i, extent->offset);
        lmq_store_u64le(p + REC_EXTENTS + 16 * i + 8, extent->size);
        lmq_store_u32le(p + REC_CRCS + 4 * i, extent->crc);
    }
    lmq_store_u64le(p + 176, record->first_row);
    lmq_store_u64le(p + 184, record->n_rows);
    lmq_store_u32le(p + 192, record->alias);
    p[196] = (unsigned char)record->source_dtype;
    p[197] = is_q8 ? (unsigned char)record->quant.bits : 0;
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

/* ---- Loading ---- */

/*
 * Fields that name a kind. One that this version does not know changes what
 * the bytes mean, so of such a tensor only its place is believed.
 */
static const struct {
    const char *what;
    size_t at;
    unsigned char end; /* of the known ones */
} kinds[] = {
    {"part", 10, LMQ_PART_COUNT},
    {"encoding", 11, LMQ_ENCODING_ROTATED_ALL + 1},
    {"type", 20, LMQ_DTYPE_BOOL + 1},
    {"layout", 21, LMQ_LAYOUT_COUNT},
    {"type of scales", 22, LMQ_SCALES_COUNT},
    {"zero points", 198, 1},
    {"scales of scales", 199, 1},
};

static bool
has_integers(unsigned char encoding)
{
    return encoding == LMQ_ENCODING_Q8 ||
           encoding == LMQ_ENCODING_ROTATED_WHOLE ||
           encoding == LMQ_ENCODING_ROTATED_ALL;
}

/* The first that is not known names the tensor in messages. */
static void
find_unknown(const unsigned char *p, struct lmq_record *record)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (record->unknown[0] == '\0' && p[kinds[i].at] >= kinds[i].end)
            snprintf(record->unknown, sizeof(record->unknown), "%s %u",
                     kinds[i].what, p[kinds[i].at]);
    if (record->unknown[0] != '\0' || !has_integers(p[11]))
        return;
    if (!lmq_width_is_valid(p[197]))
        snprintf(record->unknown, sizeof(record->unknown), "%u bits", p[197]);
    else if (p[197] < LMQ_BITS_MAX && p[21] != LMQ_LAYOUT_TILES)
        snprintf(record->unknown, sizeof(record->unknown), "rows of %u bits",
                 p[197]);
}

static void
load_place(const unsigned char *p, struct lmq_record *record)
{
    uint16_t role = lmq_load_u16le(p + 8);
    bool is_known = role < LMQ_ROLE_COUNT && p[10] < LMQ_PART_COUNT;

    /* A role of a later version is still a tensor. */
    record->place.role = is_known ? (enum lmq_role)role : LMQ_ROLE_OTHER;
    record->place.part = is_known ? (enum lmq_part)p[10] : LMQ_PART_WEIGHT;
    record->place.layer = lmq_load_i32le(p + 12);
    record->place.item = lmq_load_i32le(p + 16);
}

/* Believes nothing yet: rules look at it afterwards. Numbers of kinds are
 * compared before they become enumerators. */
static void
load_record(const unsigned char *p, struct lmq_record *record)
{
    load_place(p, record);
    record->n_dims = p[23];
    for (uint32_t i = 0; i < LMQ_MAX_DIMS; i++)
        record->dims[i] = lmq_load_u64le(p + 32 + 8 * i);
    for (size_t i = 0; i < LMQ_N_EXTENTS; i++)
        record->extents[i] = (struct lmq_extent){
            lmq_load_u64le(p + REC_EXTENTS + 16 * i),
            lmq_load_u64le(p + REC_EXTENTS + 16 * i + 8),
            lmq_load_u32le(p + REC_CRCS + 4 * i)};
    record->first_row = lmq_load_u64le(p + 176);
    record->n_rows = lmq_load_u64le(p + 184);
    record->alias = lmq_load_u32le(p + 192);
    /* Tells nothing about the bytes. */
    record->source_dtype =
        p[196] < LMQ_DTYPE_COUNT ? (enum lmq_dtype)p[196] : LMQ_DTYPE_COUNT;
    record->encoding = LMQ_ENCODING_UNKNOWN;
    find_unknown(p, record);
    if (record->unknown[0] != '\0') {
        record->alias = LMQ_NO_ALIAS;
        return;
    }
    record->encoding =
        has_integers(p[11]) ? LMQ_ENCODING_Q8 : (enum lmq_encoding)p[11];
    record->dtype = (enum lmq_dtype)p[20];
    record->layout = (enum lmq_layout)p[21];
    record->quant.bits = p[197];
    record->quant.scales = (enum lmq_scales)p[22];
    record->quant.group_size = lmq_load_u32le(p + 24);
    record->quant.multiplier = lmq_load_f32le(p + 28);
    if (p[11] == LMQ_ENCODING_ROTATED_WHOLE && !has_whole_groups(record))
        record->quant.rotation = LMQ_ROTATION_WHOLE;
    else if (record->encoding == LMQ_ENCODING_Q8 && p[11] != LMQ_ENCODING_Q8)
        record->quant.rotation = LMQ_ROTATION_ALL;
}

/* ---- Rules ---- */

/* What a rule looks at; `p` are the bytes of the record. */
struct subject {
    const unsigned char *p;
    const struct lmq_record *record;
    const struct lmq_superblock *superblock;
    uint64_t n_rows; /* of the whole tensor */
};

/* What lies behind the last dimension is zero; no dimension is, since a tensor
 * without elements has no place in a container. */
static bool
has_dims(const struct subject *s)
{
    bool is_right = s->record->n_dims <= LMQ_MAX_DIMS;

    for (uint32_t i = 0; i < LMQ_MAX_DIMS; i++)
        is_right &= (s->record->dims[i] == 0) == (i >= s->record->n_dims);
    return is_right;
}

/* Before anything is multiplied by it. */
static bool
has_possible_size(const struct subject *s)
{
    struct lmq_tensor shape = {0};

    return lmq_tensor_set_dims(&shape, s->record->dims, s->record->n_dims);
}

/* -1: it belongs to none. */
static bool
is_layer_and_item(const struct subject *s)
{
    const struct lmq_place *place = &s->record->place;

    return place->layer >= -1 && place->layer < LMQ_MAX_LAYERS &&
           place->item >= -1 && place->item < LMQ_MAX_ITEMS;
}

/* Of a role that is not known nothing can be said. */
static bool
has_canonical_name(const struct subject *s)
{
    const struct lmq_place *place = &s->record->place;
    char name[64];

    if (place->role == LMQ_ROLE_OTHER)
        return true;
    lmq_name_canonical(place, name, sizeof(name));
    return strcmp(name, s->record->name) == 0 &&
           lmq_role_is_per_layer(place->role) == (place->layer >= 0) &&
           (place->item < 0 || lmq_role_has_items(place->role)) &&
           (place->item >= 0 || !lmq_role_wants_item(place->role));
}

static bool
has_no_place(const struct subject *s)
{
    return lmq_load_u16le(s->p + 8) != LMQ_ROLE_OTHER ||
           (s->record->place.layer == -1 && s->record->place.item == -1);
}

/* Rows of a tensor that is cut over the members of a set: whole tiles. */
static bool
has_rows(const struct subject *s)
{
    const struct lmq_record *record = s->record;
    uint64_t end = record->first_row + record->n_rows;

    if (record->encoding == LMQ_ENCODING_ALIAS)
        return record->first_row == 0 && record->n_rows == 0;
    if (record->n_rows == 0 || record->first_row > s->n_rows ||
        record->n_rows > s->n_rows - record->first_row)
        return false;
    if (s->superblock->n_members == 0)
        return record->n_rows == s->n_rows;
    return record->first_row % LMQ_TILE_ROWS == 0 &&
           (end == s->n_rows || end % LMQ_TILE_ROWS == 0);
}

static bool
is_unknown(const struct subject *s)
{
    return s->record->encoding == LMQ_ENCODING_UNKNOWN;
}

bool
lmq_multiplier_is_sound(const struct lmq_quant *quant)
{
    float value = quant->multiplier;
    int exponent;

    return quant->scales == LMQ_SCALES_F16
               ? value >= 0x1p-126f && value <= 0x1p126f &&
                     frexpf(value, &exponent) == 0.5f
               : value == 1;
}

/* Each in one way: what version 1.0 can say has its number. */
static bool
has_its_rotation(const struct subject *s)
{
    return s->p[11] == LMQ_ENCODING_Q8 ||
           (s->p[11] == LMQ_ENCODING_ROTATED_WHOLE
                ? has_old_groups(s->record)
                : !has_whole_groups(s->record));
}

/* Only a tensor in groups has a group size; in any other these bytes are zero,
 * so that nothing can be smuggled in them. */
static bool
has_groups(const struct subject *s)
{
    const struct lmq_quant *quant = &s->record->quant;

    if (is_unknown(s))
        return true;
    if (s->record->encoding != LMQ_ENCODING_Q8) /* -0 is no zero */
        return lmq_is_zero(s->p + 24, 8) && s->p[197] == 0;
    return lmq_group_size_is_valid(quant->group_size) &&
           has_its_rotation(s) && lmq_multiplier_is_sound(quant);
}

/* Fields of another encoding are zero, and so is what is reserved. */
static bool
has_meaning(const struct subject *s)
{
    enum lmq_encoding encoding = s->record->encoding;

    return is_unknown(s) ||
           ((encoding == LMQ_ENCODING_PLAIN || s->p[20] == 0) &&
            (encoding == LMQ_ENCODING_Q8 || (s->p[21] == 0 && s->p[22] == 0)) &&
            lmq_is_reserved(s->superblock, s->p + REC_RESERVED,
                             LMQ_RECORD_SIZE - REC_RESERVED));
}

/* Two numbers that tell the same must agree: a reader may use either. */
static bool
has_its_sizes(const struct subject *s)
{
    uint64_t sizes[LMQ_N_EXTENTS];
    bool is_right = is_unknown(s) || lmq_record_sizes(s->record, sizes);

    for (size_t i = 0; i < LMQ_N_EXTENTS && is_right && !is_unknown(s); i++)
        is_right = s->record->extents[i].size == sizes[i];
    return is_right;
}

/* Empty extents have no place at all: there is one way to write them. */
static bool
is_inside(const struct subject *s)
{
    bool is_right = true;

    for (size_t i = 0; i < LMQ_N_EXTENTS; i++) {
        const struct lmq_extent *extent = &s->record->extents[i];
        is_right &= extent->size == 0
                        ? extent->offset == 0 && extent->crc == 0
                        : lmq_extent_is_inside(extent,
                                               s->superblock->alignment,
                                               s->superblock->file_size);
    }
    return is_right;
}

/* In order: each may rely on those before it. */
static const struct {
    bool (*holds)(const struct subject *s);
    const char *what;
} rules[] = {
    {has_dims, "has other dimensions than it says, or too many"},
    {has_possible_size, "is too large: the product of its dimensions"},
    {is_layer_and_item, "has a layer or an item that is out of range"},
    {has_canonical_name, "has the name of another role, layer or item"},
    {has_no_place, "has no role, but a layer or an item"},
    {has_groups, "has a group size or a multiplier that makes no sense"},
    {has_rows, "has rows that it cannot have here"},
    {has_its_sizes, "has another size in bytes than its shape and type need"},
    {is_inside, "lies outside the file or is not aligned"},
    {has_meaning, "has something in fields that mean nothing"},
};

/* The first rule that does not hold is told: those behind it would only say
 * the consequences. */
static enum lmq_status
check_record(const struct subject *s, uint64_t at, struct lmq_error *err)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (!rules[i].holds(s))
            return lmq_fail(err, LMQ_ERR_FORMAT, at, "tensor '%s' %s",
                            s->record->name, rules[i].what);
    return LMQ_OK;
}

/* After all records are loaded: an alias may name a later one. */
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

/* Names go to terminals and into other files: UTF-8 without zeros. */
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
lmq_directory_load(const unsigned char *bytes, size_t size,
                   const struct lmq_superblock *superblock,
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
        if (status != LMQ_OK)
            break;
        load_record(p, &loaded[i]);
        struct subject subject = {p, &loaded[i], superblock,
                                  lmq_record_rows(&loaded[i])};
        status = check_record(&subject, at, err);
        /* Of a role that is not known, layer and item mean nothing. */
        if (loaded[i].place.role == LMQ_ROLE_OTHER)
            loaded[i].place.layer = loaded[i].place.item = -1;
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
