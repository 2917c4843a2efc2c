/*
 * lmq_write.c - lays a container out and writes all of it but the tensors.
 *
 * Everything has its place before the first byte is written, so tensors can
 * be written in any order, by several threads. Checksums are known last: the
 * directory, the table, the trailer and the superblock are written then.
 *
 * In the file: the superblock; tensors, each extent aligned so that it can be
 * mapped; embedded files; statistics; digests; metadata; the directory; the
 * section table; the trailer.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/size.h"
#include "formats/lmq/lmq.h"
#include "formats/lmq/lmq_digests.h"

/* The sections that are made here. */
enum { STATISTICS, DIGESTS, DIRECTORY, N_OWN };

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

/* Digests and statistics may lack. */
static size_t
count_sections(size_t n_contents, const struct lmq_layout_plan *plan)
{
    return n_contents + N_OWN - (plan->digests == NULL) -
           plan->has_no_statistics;
}

/* The order of the records is that of the bytes; sections follow in the sizes
 * that they will have, which are known before their content is. */
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
    if (!plan->has_no_statistics)
        place(&at, lmq_statistics_size(n_records), LMQ_ALIGN, &extent);
    if (plan->digests != NULL)
        place(&at, lmq_digests_size(plan->digests), LMQ_ALIGN, &extent);
    place(&at, lmq_directory_size(records, n_records), LMQ_ALIGN, &extent);
    place(&at, count_sections(n_contents, plan) * LMQ_SECTION_SIZE, LMQ_ALIGN,
          &extent);
    plan->file_size = at + LMQ_TRAILER_SIZE;
    return LMQ_OK;
}

/* What describes the tensors stands last, so that one read of the end of a
 * file finds it; the statistics and digests, which few want, before it. */
static void
put_in_order(const struct lmq_content *contents, size_t n,
             const struct lmq_content own[N_OWN], struct lmq_content *all)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (contents[i].type != LMQ_SECTION_METADATA)
            all[count++] = contents[i];
    if (own[STATISTICS].bytes != NULL)
        all[count++] = own[STATISTICS];
    if (own[DIGESTS].bytes != NULL)
        all[count++] = own[DIGESTS];
    for (size_t i = 0; i < n; i++)
        if (contents[i].type == LMQ_SECTION_METADATA)
            all[count++] = contents[i];
    all[count] = own[DIRECTORY];
}

/* The sections behind the tensors, and what leads to them. */
struct frame {
    struct lmq_superblock superblock;
    size_t n;
    struct lmq_content *contents;
    struct lmq_section *sections;
    unsigned char *table;
    unsigned char *own[N_OWN];
    unsigned char head[LMQ_SUPERBLOCK_SIZE], tail[LMQ_TRAILER_SIZE];
};

static void
free_frame(struct frame *frame)
{
    for (size_t i = 0; i < N_OWN; i++)
        free(frame->own[i]);
    free(frame->contents);
    free(frame->sections);
    free(frame->table);
}

/* All in memory: it is small beside the tensors, and its checksums are needed
 * before the first of it is written. */
static enum lmq_status
make_contents(struct frame *frame, const struct lmq_layout_plan *plan,
              const struct lmq_record *records, size_t n_records,
              const struct lmq_content *contents, size_t n_contents,
              struct lmq_error *err)
{
    struct lmq_content own[N_OWN] = {
        [STATISTICS] = {.type = LMQ_SECTION_STATISTICS, .name = ""},
        [DIGESTS] = {.type = LMQ_SECTION_DIGESTS, .name = ""},
        [DIRECTORY] = {.type = LMQ_SECTION_DIRECTORY, .name = ""},
    };

    frame->n = count_sections(n_contents, plan);
    frame->contents = calloc(frame->n, sizeof(*frame->contents));
    frame->sections = calloc(frame->n, sizeof(*frame->sections));
    frame->table = calloc(frame->n, LMQ_SECTION_SIZE);
    if (frame->contents == NULL || frame->sections == NULL ||
        frame->table == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = LMQ_OK;
    if (!plan->has_no_statistics)
        status = lmq_statistics_store(records, n_records,
                                      &frame->own[STATISTICS],
                                      &own[STATISTICS].size, err);
    if (status == LMQ_OK)
        status = lmq_directory_store(records, n_records,
                                     &frame->own[DIRECTORY],
                                     &own[DIRECTORY].size, err);
    if (status == LMQ_OK && plan->digests != NULL) {
        own[DIGESTS].size = (size_t)lmq_digests_size(plan->digests);
        status = lmq_digests_store(plan->digests, &frame->own[DIGESTS], err);
    }
    for (size_t i = 0; i < N_OWN; i++)
        own[i].bytes = frame->own[i];
    if (status == LMQ_OK)
        put_in_order(contents, n_contents, own, frame->contents);
    return status;
}

/* An empty one has a legal place all the same. */
static enum lmq_status
place_section(struct frame *frame, size_t i, uint64_t *at,
              struct lmq_error *err)
{
    const struct lmq_content *content = &frame->contents[i];
    struct lmq_section *section = &frame->sections[i];

    *section = (struct lmq_section){
        .type = content->type,
        .flags = content->is_deflated ? LMQ_SECTION_DEFLATED : 0,
        .size = content->is_deflated ? content->raw_size : content->size,
    };
    if (content->size > LMQ_MAX_SECTION_BYTES ||
        section->size > LMQ_MAX_SECTION_BYTES ||
        strlen(content->name) > LMQ_SECTION_NAME)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "'%s' (%zu bytes) does not fit into a container",
                        content->name, content->size);
    strcpy(section->name, content->name);
    place(at, content->size, LMQ_ALIGN, &section->stored);
    if (content->size == 0)
        section->stored.offset = LMQ_SUPERBLOCK_SIZE;
    section->stored.crc = lmq_crc32(0, content->bytes, content->size);
    lmq_section_store(section, frame->table + i * LMQ_SECTION_SIZE);
    return LMQ_OK;
}

/* The root covers the frame, but for itself and the checksums that follow from
 * it; so it is the last to be known. */
static enum lmq_status
add_root(struct frame *frame, struct lmq_digests *digests,
         struct lmq_error *err)
{
    unsigned char *bytes = frame->own[DIGESTS];
    unsigned char *each = calloc(frame->n, LMQ_SHA256_SIZE);
    enum lmq_status status = each == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    size_t own = 0;

    for (size_t i = 0; i < frame->n && status == LMQ_OK; i++)
        if (frame->contents[i].bytes == bytes)
            own = i;
        else
            status = lmq_digest_bytes(frame->contents[i].bytes,
                                      frame->contents[i].size,
                                      each + i * LMQ_SHA256_SIZE, err);
    lmq_superblock_store(&frame->superblock, frame->head);
    if (status == LMQ_OK)
        status = lmq_root_digest(frame->head, frame->table, frame->n, each,
                                 bytes, frame->contents[own].size,
                                 digests->root, err);
    free(each);
    if (status != LMQ_OK)
        return status;
    memcpy(bytes + LMQ_DIGESTS_ROOT, digests->root, LMQ_SHA256_SIZE);
    frame->sections[own].stored.crc =
        lmq_crc32(0, bytes, frame->contents[own].size);
    lmq_section_store(&frame->sections[own],
                      frame->table + own * LMQ_SECTION_SIZE);
    return LMQ_OK;
}

/* The least version that has all of it. */
static uint16_t
minor_of(const struct lmq_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lmq_record_encoding(&records[i]) == LMQ_ENCODING_ROTATED_ALL)
            return LMQ_MINOR;
    return 0;
}

/* From the inside out: contents, then the table with their checksums, then the
 * superblock with the table's, then the trailer with the superblock's. */
static enum lmq_status
make_frame(struct frame *frame, const struct lmq_layout_plan *plan,
           const struct lmq_record *records, size_t n_records,
           const struct lmq_content *contents, size_t n_contents,
           struct lmq_error *err)
{
    struct lmq_superblock *superblock = &frame->superblock;
    uint64_t at = plan->contents_offset;
    struct lmq_extent table_at;
    enum lmq_status status = make_contents(frame, plan, records, n_records,
                                           contents, n_contents, err);

    for (size_t i = 0; i < frame->n && status == LMQ_OK; i++)
        status = place_section(frame, i, &at, err);
    if (status != LMQ_OK)
        return status;
    place(&at, frame->n * LMQ_SECTION_SIZE, LMQ_ALIGN, &table_at);
    *superblock = (struct lmq_superblock){
        .major = LMQ_MAJOR,
        .minor = minor_of(records, n_records),
        .file_size = plan->file_size,
        .table_offset = table_at.offset,
        .n_sections = (uint32_t)frame->n,
        .alignment = plan->alignment,
        .member = plan->member,
        .n_members = plan->n_members,
    };
    memcpy(superblock->set_id, plan->set_id, LMQ_SET_ID);
    if (plan->digests != NULL)
        status = add_root(frame, plan->digests, err);
    superblock->table_crc =
        lmq_crc32(0, frame->table, frame->n * LMQ_SECTION_SIZE);
    lmq_superblock_store(superblock, frame->head);
    lmq_trailer_store(superblock, frame->tail);
    return status;
}

/* The superblock comes last: until then the file does not begin like a
 * container. */
enum lmq_status
lmq_write_frame(struct lmq_output *output, const struct lmq_layout_plan *plan,
                const struct lmq_record *records, size_t n_records,
                const struct lmq_content *contents, size_t n_contents,
                struct lmq_error *err)
{
    struct frame frame = {0};
    enum lmq_status status = make_frame(&frame, plan, records, n_records,
                                        contents, n_contents, err);

    for (size_t i = 0; i < frame.n && status == LMQ_OK; i++)
        status = lmq_output_write(output, frame.sections[i].stored.offset,
                                  frame.contents[i].bytes,
                                  frame.contents[i].size, err);
    if (status == LMQ_OK)
        status = lmq_output_write(output, frame.superblock.table_offset,
                                  frame.table, frame.n * LMQ_SECTION_SIZE,
                                  err);
    if (status == LMQ_OK)
        status = lmq_output_write(output,
                                  plan->file_size - sizeof(frame.tail),
                                  frame.tail, sizeof(frame.tail), err);
    if (status == LMQ_OK)
        status = lmq_output_write(output, 0, frame.head, sizeof(frame.head),
                                  err);
    free_frame(&frame);
    return status;
}
