/*
 * build_lmq.c - see build_lmq.h.
 */
#include "config.h"

#include "tests/build/build_lmq.h"

#include <string.h>
#include <zlib.h>

static void
align(struct bytes *bytes, size_t unit)
{
    put_zeros(bytes, (unit - bytes->n % unit) % unit);
}

static uint32_t
checksum(const void *p, size_t n)
{
    return (uint32_t)crc32(0, p, (uInt)n);
}

/* ---- Tensors and their records ---- */

struct extent {
    uint64_t at;
    size_t n;
    uint32_t crc;
};

static struct extent
put_extent(struct bytes *bytes, const void *p, size_t n, unsigned log2)
{
    struct extent extent = {0, n, 0};

    if (n == 0)
        return extent;
    align(bytes, (size_t)1 << log2);
    extent.at = bytes->n;
    extent.crc = checksum(p, n);
    put(bytes, p, n);
    return extent;
}

static void
put_record(struct bytes *d, const struct built_tensor *t, size_t name_at,
           const struct extent *values, const struct extent *scales,
           uint32_t record_size)
{
    size_t start = d->n;
    const bool has_integers = t->encoding == 1 || t->encoding > 2;
    uint64_t rows = t->encoding == 2 ? 0 : 1;

    for (unsigned i = 0; i + 1 < t->n_dims; i++)
        rows *= t->dims[i];
    put_u32(d, (uint32_t)name_at);
    put_u32(d, (uint32_t)strlen(t->name));
    put_u16(d, (uint16_t)t->role);
    put(d, (const unsigned char[]){t->part, t->encoding}, 2);
    put_u32(d, (uint32_t)t->layer);
    put_u32(d, (uint32_t)t->item);
    put(d, (const unsigned char[]){t->type, t->layout, t->scale_type,
                                   t->n_dims}, 4);
    put_u32(d, t->group);
    put_f32(d, t->multiplier);
    for (unsigned i = 0; i < 8; i++)
        put_u64(d, t->dims[i]);
    put_u64(d, values->at);
    put_u64(d, values->n);
    put_u64(d, scales->at);
    put_u64(d, scales->n);
    put_zeros(d, 32); /* no zero points, no scales of scales */
    put_u32(d, values->crc);
    put_u32(d, scales->crc);
    put_zeros(d, 8 + 8); /* their checksums; the first row */
    put_u64(d, rows);
    put_u32(d, t->encoding == 2 ? t->alias : UINT32_MAX);
    put(d, (const unsigned char[]){t->type, has_integers ? 8 : 0}, 2);
    put_zeros(d, start + 256 - d->n);
    /* What later versions may add to a record is theirs. */
    while (d->n < start + record_size)
        put(d, "\xa5", 1);
}

static void
put_directory(struct bytes *d, struct bytes *bytes,
              const struct built_lmq *file)
{
    size_t names = 0;

    for (uint32_t i = 0; i < file->n_tensors; i++)
        names += strlen(file->tensors[i].name);
    put_u32(d, file->n_tensors);
    put_u32(d, file->record_size);
    put_u64(d, names);
    names = 0;
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const struct built_tensor *t = &file->tensors[i];
        struct extent values =
            put_extent(bytes, t->values, t->values_size, file->log2);
        struct extent scales =
            put_extent(bytes, t->scales, t->scales_size, file->log2);
        put_record(d, t, names, &values, &scales, file->record_size);
        names += strlen(t->name);
    }
    for (uint32_t i = 0; i < file->n_tensors; i++)
        put_text(d, file->tensors[i].name);
}

/* ---- Sections and the frame ---- */

static void
put_section(struct bytes *bytes, struct bytes *table,
            const struct built_section *section)
{
    size_t n = strlen(section->name);
    uint64_t at = 128; /* of an empty section */

    if (section->n > 0) {
        align(bytes, 64);
        at = bytes->n;
    }
    put_u32(table, section->type);
    put_u32(table, section->flags);
    put_u64(table, at);
    put_u64(table, section->n);
    put_u64(table, section->size > 0 ? section->size : section->n);
    put_u32(table, checksum(section->bytes, section->n));
    put_u32(table, 0);
    put(table, section->name, n);
    put_zeros(table, 56 - n);
    put(bytes, section->bytes, section->n);
}

static void
put_frame(struct bytes *bytes, const struct built_lmq *file,
          const struct bytes *table)
{
    struct bytes head = {0};

    align(bytes, 64);
    uint64_t table_at = bytes->n;
    put(&head, "\x89LMQ\r\n\x1a\n\x04\x03\x02\x01\x01\0\0", 16);
    put_zeros(&head, 16);
    put_u64(&head, table_at + table->n + 48);
    put_u64(&head, table_at);
    put_u32(&head, (uint32_t)(table->n / 96));
    put_zeros(&head, 4);
    put(&head, &file->log2, 1);
    memcpy(bytes->at, head.at, head.n);
    bytes_free(&head);
    put(bytes, table->at, table->n);
    put(bytes, "LMQEND\r\n", 8);
    put_zeros(bytes, 40);
    reseal_lmq(bytes->at, bytes->n);
}

void
put_lmq(struct bytes *bytes, const struct built_lmq *file)
{
    struct bytes directory = {0}, table = {0};

    put_zeros(bytes, 128);
    put_directory(&directory, bytes, file);
    for (uint32_t i = 0; i < file->n_sections; i++)
        put_section(bytes, &table, &file->sections[i]);
    const struct built_section own[] = {
        {1, 0, "", file->metadata, strlen(file->metadata), 0},
        {2, 0, "", directory.at, directory.n, 0}};
    put_section(bytes, &table, &own[0]);
    put_section(bytes, &table, &own[1]);
    put_frame(bytes, file, &table);
    bytes_free(&directory);
    bytes_free(&table);
}
