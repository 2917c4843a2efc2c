/*
 * lmq_write.c - lays a container out and writes all of it but the tensors.
 *
 * Everything has its place before the first byte is written, so tensors can
 * be written in any order, by several threads. Checksums are known last: the
 * directory, the table, the trailer and the superblock are written then.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "formats/lmq/lmq.h"

/* The statistics and the directory, which are made here. */
#define N_OWN_SECTIONS 2

/* Places `size` bytes at the next multiple of `alignment`. */
static bool
place(uint64_t *at, uint64_t size, uint64_t alignment,
      struct lmq_extent *extent)
{
    extent->size = size;
    extent->offset = 0;
    if (size == 0)
        return true;
    if (!lmq_u64_align(*at, alignment, at))
        return false;
    extent->offset = *at;
    return lmq_u64_add(*at, size, at) && *at <= INT64_MAX;
}

enum lmq_status
lmq_write_plan(struct lmq_record *records, size_t n_records,
               const struct lmq_content *contents, size_t n_contents,
               struct lmq_layout_plan *plan, struct lmq_error *err)
{
    uint64_t at = LMQ_SUPERBLOCK_SIZE, sizes[LMQ_N_EXTENTS];
    struct lmq_extent extent;

    for (size_t i = 0; i < n_records; i++) {
        bool fits = lmq_record_sizes(&records[i], sizes);
        for (size_t j = 0; j < LMQ_N_EXTENTS && fits; j++)
            fits = place(&at, sizes[j], plan->alignment,
                         &records[i].extents[j]);
        if (!fits)
            return lmq_fail(err, LMQ_ERR_FORMAT, 0, "tensor '%s' is too large",
                            records[i].name);
    }
    plan->contents_offset = at;
    for (size_t i = 0; i < n_contents; i++)
        place(&at, contents[i].size, LMQ_ALIGN, &extent);
    place(&at, lmq_statistics_size(n_records), LMQ_ALIGN, &extent);
    place(&at, lmq_directory_size(records, n_records), LMQ_ALIGN, &extent);
    place(&at, (n_contents + N_OWN_SECTIONS) * LMQ_SECTION_SIZE, LMQ_ALIGN,
          &extent);
    plan->file_size = at + LMQ_TRAILER_SIZE;
    return LMQ_OK;
}

static enum lmq_status
write_section(struct lmq_output *output, uint64_t *at,
              const struct lmq_content *content, unsigned char *entry,
              struct lmq_error *err)
{
    struct lmq_section section = {
        .type = content->type,
        .flags = content->is_deflated ? LMQ_SECTION_DEFLATED : 0,
        .size = content->is_deflated ? content->raw_size : content->size,
    };

    if (content->size > LMQ_MAX_SECTION_BYTES ||
        section.size > LMQ_MAX_SECTION_BYTES ||
        strlen(content->name) > LMQ_SECTION_NAME)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' (%zu bytes) does not fit into a container",
                        content->name, content->size);
    strcpy(section.name, content->name);
    place(at, content->size, LMQ_ALIGN, &section.stored);
    if (content->size == 0)
        section.stored.offset = LMQ_SUPERBLOCK_SIZE;
    section.stored.crc = lmq_crc32(0, content->bytes, content->size);
    lmq_section_store(&section, entry);
    return lmq_output_write(output, section.stored.offset, content->bytes,
                            content->size, err);
}

/* What describes the tensors stands last, so that one read of the end of a
 * file finds it; the statistics, which few want, before it. */
static void
put_in_order(const struct lmq_content *contents, size_t n,
             const struct lmq_content own[N_OWN_SECTIONS],
             struct lmq_content *all)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (contents[i].type != LMQ_SECTION_METADATA)
            all[count++] = contents[i];
    all[count++] = own[0];
    for (size_t i = 0; i < n; i++)
        if (contents[i].type == LMQ_SECTION_METADATA)
            all[count++] = contents[i];
    all[count] = own[1];
}

enum lmq_status
lmq_write_frame(struct lmq_output *output, const struct lmq_layout_plan *plan,
                const struct lmq_record *records, size_t n_records,
                const struct lmq_content *contents, size_t n_contents,
                struct lmq_error *err)
{
    size_t n_sections = n_contents + N_OWN_SECTIONS;
    struct lmq_superblock superblock = {
        .major = LMQ_MAJOR,
        .minor = LMQ_MINOR,
        .file_size = plan->file_size,
        .n_sections = (uint32_t)n_sections,
        .alignment = plan->alignment,
        .member = plan->member,
        .n_members = plan->n_members,
    };
    unsigned char head[LMQ_SUPERBLOCK_SIZE], tail[LMQ_TRAILER_SIZE];
    unsigned char *statistics = NULL, *directory = NULL;
    struct lmq_content own[N_OWN_SECTIONS] = {
        {.type = LMQ_SECTION_STATISTICS, .name = ""},
        {.type = LMQ_SECTION_DIRECTORY, .name = ""},
    };
    size_t table_size = n_sections * LMQ_SECTION_SIZE;
    uint64_t at = plan->contents_offset;
    struct lmq_extent table_at;

    unsigned char *table = calloc(n_sections, LMQ_SECTION_SIZE);
    struct lmq_content *all = calloc(n_sections, sizeof(*all));
    enum lmq_status status = table == NULL || all == NULL
                                 ? lmq_fail_nomem(err)
                                 : LMQ_OK;
    if (status == LMQ_OK)
        status = lmq_statistics_store(records, n_records, &statistics,
                                      &own[0].size, err);
    if (status == LMQ_OK)
        status = lmq_directory_store(records, n_records, &directory,
                                     &own[1].size, err);
    if (status != LMQ_OK)
        goto done;
    memcpy(superblock.set_id, plan->set_id, LMQ_SET_ID);
    own[0].bytes = statistics;
    own[1].bytes = directory;
    put_in_order(contents, n_contents, own, all);
    for (size_t i = 0; i < n_sections && status == LMQ_OK; i++)
        status = write_section(output, &at, &all[i],
                               table + i * LMQ_SECTION_SIZE, err);
    if (status != LMQ_OK)
        goto done;
    place(&at, table_size, LMQ_ALIGN, &table_at);
    superblock.table_offset = table_at.offset;
    superblock.table_crc = lmq_crc32(0, table, table_size);
    lmq_superblock_store(&superblock, head);
    lmq_trailer_store(&superblock, tail);
    status = lmq_output_write(output, table_at.offset, table, table_size, err);
    if (status == LMQ_OK)
        status = lmq_output_write(output, at, tail, sizeof(tail), err);
    if (status == LMQ_OK)
        status = lmq_output_write(output, 0, head, sizeof(head), err);
done:
    free(statistics);
    free(directory);
    free(all);
    free(table);
    return status;
}
