/*
 * fuzz_section.c - any bytes as the metadata or as an embedded file, deflated
 * or not, of a container that is whole otherwise, checksums and all.
 *
 * The first byte says what the others are. Everything stays in memory. Where
 * neither can be wrong - a file that is not deflated, or one that was deflated
 * here - the container must open.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/crc32.h"
#include "formats/lmq/lmq.h"
#include "lmquant.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

enum kind {
    METADATA,
    FILE_PLAIN,
    FILE_STREAM,   /* the bytes are the stream, of any size */
    FILE_DEFLATED, /* the stream is made of the bytes */
};

#define N_SECTIONS 3
#define STREAM_MOST ((size_t)1 << 16)

static size_t
aligned(size_t n)
{
    return (n + LMQ_ALIGN - 1) / LMQ_ALIGN * LMQ_ALIGN;
}

static void
put_section(struct bytes *file, struct lmq_section *section,
            const unsigned char *bytes, size_t n)
{
    put_zeros(file, aligned(file->n) - file->n);
    section->stored.offset = file->n;
    section->stored.size = n;
    section->stored.crc = lmq_crc32(0, bytes, n);
    if (!(section->flags & LMQ_SECTION_DEFLATED))
        section->size = n;
    put(file, bytes, n);
}

/* One tensor of zeros: without any, nothing is looked at. */
static void
put_tensor(struct bytes *file, struct lmq_record *record)
{
    static const unsigned char zeros[LMQ_ALIGN];

    record->extents[LMQ_VALUES].offset = file->n;
    record->extents[LMQ_VALUES].size = sizeof(zeros);
    record->extents[LMQ_VALUES].crc = lmq_crc32(0, zeros, sizeof(zeros));
    put(file, zeros, sizeof(zeros));
}

/* A whole container around what is given. */
static void
put_container(struct bytes *file, const unsigned char *metadata,
              size_t n_metadata, const unsigned char *embedded,
              size_t n_embedded, uint64_t raw_size)
{
    struct lmq_section sections[N_SECTIONS] = {
        {.type = LMQ_SECTION_DIRECTORY},
        {.type = LMQ_SECTION_METADATA},
        {.type = LMQ_SECTION_FILE, .name = "tokenizer.json"},
    };
    struct lmq_superblock superblock = {
        .major = LMQ_MAJOR, .n_sections = N_SECTIONS,
        .alignment = LMQ_ALIGN};
    char name[] = "x";
    struct lmq_record record = {.name = name,
                                .place = {LMQ_ROLE_OTHER, LMQ_PART_WEIGHT, -1,
                                          -1},
                                .dtype = LMQ_DTYPE_F32,
                                .source_dtype = LMQ_DTYPE_F32,
                                .n_dims = 1,
                                .dims = {LMQ_ALIGN / 4},
                                .n_rows = 1,
                                .alias = LMQ_NO_ALIAS};
    unsigned char table[N_SECTIONS * LMQ_SECTION_SIZE];
    unsigned char tail[LMQ_TRAILER_SIZE], *directory = NULL;
    struct lmq_error err;
    size_t n_directory;

    if (raw_size > 0) {
        sections[2].flags = LMQ_SECTION_DEFLATED;
        sections[2].size = raw_size;
    }
    put_zeros(file, LMQ_SUPERBLOCK_SIZE);
    put_tensor(file, &record);
    if (lmq_directory_store(&record, 1, &directory, &n_directory, &err) !=
        LMQ_OK)
        abort();
    put_section(file, &sections[0], directory, n_directory);
    put_section(file, &sections[1], metadata, n_metadata);
    put_section(file, &sections[2], embedded, n_embedded);
    free(directory);
    put_zeros(file, aligned(file->n) - file->n);
    for (size_t i = 0; i < N_SECTIONS; i++)
        lmq_section_store(&sections[i], table + i * LMQ_SECTION_SIZE);
    superblock.table_offset = file->n;
    superblock.table_crc = lmq_crc32(0, table, sizeof(table));
    superblock.file_size = file->n + sizeof(table) + sizeof(tail);
    lmq_superblock_store(&superblock, file->at);
    lmq_trailer_store(&superblock, tail);
    put(file, table, sizeof(table));
    put(file, tail, sizeof(tail));
}

static void
look_at(const struct bytes *file, bool must_open)
{
    const char *path = fuzz_file(file->at, file->n);
    struct lmq_tokenizer *tokenizer;
    struct lmq_error err;

    if (!inspect_all(path) && must_open)
        abort();
    if (lmq_tokenizer_from_path(path, NULL, &tokenizer, &err) == LMQ_OK)
        lmq_tokenizer_close(tokenizer);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const unsigned char empty_metadata[] = "{}";
    static unsigned char stream[2 * STREAM_MOST];
    struct bytes file = {0};

    if (n < 5 || n > STREAM_MOST)
        return 0;
    enum kind kind = bytes[0] & 3;
    /* A stream that claims any size: 24 bits of it. */
    uint64_t raw_size =
        1 + (bytes[1] | (uint64_t)bytes[2] << 8 | (uint64_t)bytes[3] << 16);
    uLongf n_stream = sizeof(stream);
    bytes += 4;
    n -= 4;
    switch (kind) {
    case METADATA:
        put_container(&file, bytes, n, empty_metadata, 2, 0);
        break;
    case FILE_PLAIN:
        put_container(&file, empty_metadata, 2, bytes, n, 0);
        break;
    case FILE_STREAM:
        put_container(&file, empty_metadata, 2, bytes, n, raw_size);
        break;
    case FILE_DEFLATED:
        if (compress2(stream, &n_stream, bytes, (uLong)n, 1) != Z_OK)
            abort();
        put_container(&file, empty_metadata, 2, stream, n_stream, n);
        break;
    }
    look_at(&file, kind == FILE_PLAIN || kind == FILE_DEFLATED);
    bytes_free(&file);
    return 0;
}
