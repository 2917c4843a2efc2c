/*
 * lmq_container.c - opens containers: the frame, the sections, the directory.
 *
 * Opening checks the frame (superblock, table, trailer, directory, metadata)
 * and that every byte of the file belongs to exactly one of them or to one
 * tensor. The tensors' own checksums are compared when somebody asks for it:
 * opening a large model must not read it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/files/inflate.h"
#include "base/mem.h"
#include "base/size.h"
#include "formats/hf/hf_config.h"
#include "formats/lmq/lmq.h"
#include "formats/lmq/lmq_describe.h"
#include "formats/lmq/lmq_digests.h"

/* ---- Sections ---- */

static enum lmq_status
inflate_section(const struct lmq_section *section, const unsigned char *stored,
                unsigned char *bytes, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_inflate(stored, (size_t)section->stored.size, bytes,
                    (size_t)section->size, true);

    if (status == LMQ_ERR_NOMEM)
        return lmq_fail_nomem(err);
    return status == LMQ_OK
               ? status
               : lmq_fail(err, status, section->stored.offset,
                          "section '%s' does not inflate to its %" PRIu64
                          " bytes",
                          section->name, section->size);
}

/* The content of a section, inflated; *bytes is freed with free(). */
enum lmq_status
lmq_section_read(struct lmq_input *input, const struct lmq_section *section,
             unsigned char **bytes, size_t *size, struct lmq_error *err)
{
    size_t stored_size = (size_t)section->stored.size;

    *bytes = NULL;
    *size = (size_t)section->size;
    unsigned char *stored = malloc(stored_size + 1);
    if (stored == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_input_read(input, section->stored.offset,
                                            stored, stored_size, err);
    if (status == LMQ_OK &&
        lmq_crc32(0, stored, stored_size) != section->stored.crc)
        status = lmq_fail(err, LMQ_ERR_FORMAT, section->stored.offset,
                          "section '%s' (type %u) is damaged: its CRC-32 does "
                          "not match",
                          section->name, section->type);
    if (status == LMQ_OK && !(section->flags & LMQ_SECTION_DEFLATED)) {
        /* A 0 behind the content, which is no part of it, lets parsers of text
         * stop. */
        stored[stored_size] = 0;
        *bytes = stored;
        return LMQ_OK;
    }
    unsigned char *content = NULL;
    if (status == LMQ_OK) {
        content = malloc(*size + 1);
        status = content == NULL
                     ? lmq_fail_nomem(err)
                     : inflate_section(section, stored, content, err);
    }
    free(stored);
    if (status != LMQ_OK) {
        free(content);
        return status;
    }
    content[*size] = 0;
    *bytes = content;
    return LMQ_OK;
}

/* ---- The frame ---- */

/* The table's own checksum stands in the superblock, which comes first; the
 * trailer is compared last and says the same again. */
static enum lmq_status
load_table(struct lmq_input *input, struct lmq_container *container,
           struct lmq_error *err)
{
    const struct lmq_superblock *sb = &container->superblock;
    size_t size = (size_t)sb->n_sections * LMQ_SECTION_SIZE;
    unsigned char tail[LMQ_TRAILER_SIZE];

    unsigned char *table = malloc(size);
    container->sections = calloc(sb->n_sections, sizeof(struct lmq_section));
    if (table == NULL || container->sections == NULL) {
        free(table);
        return lmq_fail_nomem(err);
    }
    enum lmq_status status =
        lmq_input_read(input, sb->table_offset, table, size, err);
    if (status == LMQ_OK && lmq_crc32(0, table, size) != sb->table_crc)
        status = lmq_fail(err, LMQ_ERR_FORMAT, sb->table_offset,
                          "the section table is damaged: its CRC-32 does not "
                          "match");
    for (size_t i = 0; i < sb->n_sections && status == LMQ_OK; i++) {
        status = lmq_section_load(table + i * LMQ_SECTION_SIZE,
                                  sb->table_offset + i * LMQ_SECTION_SIZE,
                                  sb, &container->sections[i], err);
        container->n_sections = i + 1;
    }
    free(table);
    if (status == LMQ_OK)
        status = lmq_input_read(input, sb->file_size - sizeof(tail), tail,
                                sizeof(tail), err);
    return status == LMQ_OK ? lmq_trailer_load(tail, sb, err) : status;
}

/* The section of a type that there is one of at most; without it *bytes is
 * NULL, if it may lack. */
static enum lmq_status
read_only_section(struct lmq_input *input,
                  const struct lmq_container *container,
                  enum lmq_section_type type, const char *what, bool may_lack,
                  unsigned char **bytes, size_t *size, uint64_t *offset,
                  struct lmq_error *err)
{
    const struct lmq_section *found = NULL;

    *bytes = NULL;
    for (size_t i = 0; i < container->n_sections; i++) {
        if (container->sections[i].type != (uint32_t)type)
            continue;
        if (found != NULL)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0, "has two %s sections",
                            what);
        found = &container->sections[i];
    }
    if (found == NULL && may_lack)
        return LMQ_OK;
    if (found == NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0, "has no %s section", what);
    *offset = found->stored.offset;
    return lmq_section_read(input, found, bytes, size, err);
}

/* By where they begin. */
static int
compare_spans(const void *a, const void *b)
{
    const struct lmq_file_span *x = a, *y = b;

    return x->extent.offset < y->extent.offset
               ? -1
               : x->extent.offset > y->extent.offset;
}

/* All that the file consists of: the superblock, the table, sections with
 * content, extents of tensors; empty ones take no room and are left out. The
 * trailer ends the file by definition. */
enum lmq_status
lmq_container_spans(const struct lmq_container *container,
                    struct lmq_file_span **spans, size_t *n,
                    struct lmq_error *err)
{
    const struct lmq_superblock *sb = &container->superblock;
    struct lmq_file_span *all = calloc(LMQ_N_EXTENTS * container->n_records +
                                      container->n_sections + 2,
                                  sizeof(*all));
    size_t count = 0;

    *spans = all;
    if (all == NULL)
        return lmq_fail_nomem(err);
    all[count++] =
        (struct lmq_file_span){{0, LMQ_SUPERBLOCK_SIZE, 0}, LMQ_ALIGN};
    all[count++] = (struct lmq_file_span){
        {sb->table_offset, (uint64_t)sb->n_sections * LMQ_SECTION_SIZE, 0},
        LMQ_ALIGN};
    for (size_t i = 0; i < container->n_sections; i++)
        if (container->sections[i].stored.size > 0)
            all[count++] = (struct lmq_file_span){
                container->sections[i].stored, LMQ_ALIGN};
    for (size_t i = 0; i < container->n_records; i++)
        for (size_t j = 0; j < LMQ_N_EXTENTS; j++)
            if (container->records[i].extents[j].size > 0)
                all[count++] = (struct lmq_file_span){
                    container->records[i].extents[j], sb->alignment};
    qsort(all, count, sizeof(*all), compare_spans);
    *n = count;
    return LMQ_OK;
}

/* Nothing overlaps, and between two neighbours there is only what alignment
 * takes: no byte is hidden, none means two things. */
static enum lmq_status
check_tiling(const struct lmq_container *container, struct lmq_error *err)
{
    struct lmq_file_span *spans;
    size_t n = 0;
    enum lmq_status status = lmq_container_spans(container, &spans, &n, err);

    for (size_t i = 1; i < n && status == LMQ_OK; i++) {
        const struct lmq_extent *before = &spans[i - 1].extent;
        uint64_t at = spans[i].extent.offset, aligned;
        if (!lmq_u64_align(before->offset + before->size, spans[i].alignment,
                           &aligned) ||
            at != aligned)
            status = lmq_fail(err, LMQ_ERR_FORMAT, at,
                              "something begins at offset %" PRIu64
                              ", expected %" PRIu64 " (%s)",
                              at, aligned,
                              at < aligned ? "an overlap" : "a gap");
    }
    if (status == LMQ_OK &&
        spans[n - 1].extent.offset != container->superblock.table_offset)
        status = lmq_fail(err, LMQ_ERR_FORMAT, spans[n - 1].extent.offset,
                          "something lies behind the section table");
    free(spans);
    return status;
}

/* The model and the embedded files stand in the first member of a set. */
static bool
has_what_first_has(const struct lmq_container *container)
{
    for (size_t i = 0; i < container->n_sections; i++)
        if (container->sections[i].type == LMQ_SECTION_FILE)
            return true;
    return json_object_get(container->metadata, "model") != NULL;
}

/* What all members share stands once, so that two members cannot contradict
 * each other. */
static enum lmq_status
check_membership(const struct lmq_container *container, struct lmq_error *err)
{
    const struct lmq_superblock *sb = &container->superblock;

    if (sb->member > 1 && has_what_first_has(container))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "is member %" PRIu32 " of a set, but has a model or "
                        "embedded files, which only the first may have",
                        sb->member);
    return lmq_metadata_check_set(container->metadata, sb, err);
}

static enum lmq_status
take_directory(struct lmq_container *container, const unsigned char *bytes,
               size_t size, struct lmq_error *err)
{
    return lmq_directory_load(bytes, size, &container->superblock,
                              &container->records, &container->n_records, err);
}

static enum lmq_status
take_metadata(struct lmq_container *container, const unsigned char *bytes,
              size_t size, struct lmq_error *err)
{
    return lmq_metadata_load(bytes, size, &container->metadata, err);
}

static enum lmq_status
take_statistics(struct lmq_container *container, const unsigned char *bytes,
                size_t size, struct lmq_error *err)
{
    container->has_statistics = true;
    return lmq_statistics_load(bytes, size, &container->superblock,
                               container->records, container->n_records, err);
}

static enum lmq_status
take_digests(struct lmq_container *container, const unsigned char *bytes,
             size_t size, struct lmq_error *err)
{
    container->digests = calloc(1, sizeof(*container->digests));
    return container->digests == NULL
               ? lmq_fail_nomem(err)
               : lmq_digests_load(bytes, size, container->records,
                                  container->n_records, container->digests,
                                  err);
}

/* In this order: each may need what those before it have told. `take` keeps
 * what it needs of the bytes, and counts offsets from their beginning; `check`
 * asks how that goes with the rest of the file. */
static const struct part {
    enum lmq_section_type type;
    const char *what;
    bool may_lack;
    enum lmq_status (*take)(struct lmq_container *container,
                            const unsigned char *bytes, size_t size,
                            struct lmq_error *err);
    enum lmq_status (*check)(const struct lmq_container *container,
                             struct lmq_error *err);
} parts[] = {
    {LMQ_SECTION_DIRECTORY, "directory", false, take_directory, check_tiling},
    {LMQ_SECTION_METADATA, "metadata", false, take_metadata, check_membership},
    {LMQ_SECTION_STATISTICS, "statistics", true, take_statistics, NULL},
    {LMQ_SECTION_DIGESTS, "digests", true, take_digests, NULL},
};

static enum lmq_status
load_part(struct lmq_input *input, struct lmq_container *container,
          const struct part *part, struct lmq_error *err)
{
    unsigned char *bytes;
    uint64_t offset = 0;
    size_t size;
    enum lmq_status status =
        read_only_section(input, container, part->type, part->what,
                          part->may_lack, &bytes, &size, &offset, err);

    if (status != LMQ_OK || bytes == NULL)
        return status;
    status = part->take(container, bytes, size, err);
    free(bytes);
    if (status != LMQ_OK && err != NULL)
        err->offset += offset;
    if (status == LMQ_OK && part->check != NULL)
        status = part->check(container, err);
    return status;
}

enum lmq_status
lmq_container_load(struct lmq_input *input, struct lmq_container *container,
                   struct lmq_error *err)
{
    unsigned char head[LMQ_SUPERBLOCK_SIZE];

    *container = (struct lmq_container){0};
    enum lmq_status status = lmq_input_read(input, 0, head, sizeof(head), err);
    if (status == LMQ_OK)
        status = lmq_superblock_load(head, lmq_input_size(input),
                                     &container->superblock, err);
    if (status == LMQ_OK)
        status = load_table(input, container, err);
    for (size_t i = 0;
         i < sizeof(parts) / sizeof(parts[0]) && status == LMQ_OK; i++)
        status = load_part(input, container, &parts[i], err);
    if (status != LMQ_OK)
        lmq_container_free(container);
    return status;
}

void
lmq_container_free(struct lmq_container *container)
{
    free(container->sections);
    lmq_records_free(container->records, container->n_records);
    json_decref(container->metadata);
    if (container->digests != NULL)
        lmq_digests_free(container->digests);
    free(container->digests);
    *container = (struct lmq_container){0};
}

/* ---- One tensor ---- */

static enum lmq_status
verify_extent(struct lmq_input *input, const struct lmq_extent *extent,
              const struct lmq_record *record, struct lmq_error *err)
{
    uint32_t crc = 0;
    enum lmq_status status =
        lmq_input_crc(input, extent->offset, extent->size, &crc, err);

    if (status != LMQ_OK || crc == extent->crc)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, extent->offset,
             "tensor '%s' is damaged: its CRC-32 is %08" PRIx32
             ", expected %08" PRIx32,
             record->name, crc, extent->crc);
    lmq_hint(err, "lmquant verify names all that is damaged");
    lmq_error_in(err, lmq_input_path(input));
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_record_verify(struct lmq_input *input, const struct lmq_record *record,
                  struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < LMQ_N_EXTENTS && status == LMQ_OK; i++)
        if (record->extents[i].size > 0)
            status = verify_extent(input, &record->extents[i], record, err);
    return status;
}
