/*
 * lmq.h - the .lmq container: what stands where, and its limits.
 *
 * lmq(5) is normative; names here follow the page. lmq.c turns each structure
 * into bytes and back, lmq_write.c lays files out, lmq_container.c opens
 * them, lmq_set.c several that are one model, lmq_read.c is the format for the
 * reader interface, ../verify.c checks every byte.
 */
#ifndef LMQ_FORMATS_LMQ_LMQ_H
#define LMQ_FORMATS_LMQ_LMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/file.h"
#include "base/files/output.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/model/names.h"
#include "quantize/dtype.h"
#include "quantize/group.h"
#include "quantize/tiles.h"

#define LMQ_MAJOR 1
#define LMQ_MINOR 1

#define LMQ_SUPERBLOCK_SIZE 128
#define LMQ_SECTION_SIZE 96
#define LMQ_SECTION_NAME 56
#define LMQ_DIRECTORY_HEADER 16
#define LMQ_RECORD_SIZE 256
#define LMQ_STATISTICS_HEADER 8
#define LMQ_STATISTICS_SIZE 48
#define LMQ_TRAILER_SIZE 48

/* Tensors begin at multiples of what the superblock says, 2^6 to 2^21, what
 * describes them at multiples of the least. */
#define LMQ_ALIGN 64
#define LMQ_ALIGN_LOG2_MIN 6
#define LMQ_ALIGN_LOG2_MAX 21

/* Hard limits (lmq(5), "Limits"). */
#define LMQ_MAX_SECTIONS 1024
#define LMQ_MAX_SECTION_BYTES ((uint64_t)1 << 28)
#define LMQ_MAX_RECORD_SIZE 4096

/* Feature flags: none yet. */
#define LMQ_INCOMPATIBLE_KNOWN 0
#define LMQ_COMPATIBLE_KNOWN 0

/* Members of a set. */
#define LMQ_MAX_MEMBERS 99999
#define LMQ_SET_ID 16

/* A run of bytes in the file. */
struct lmq_extent {
    uint64_t offset, size;
    uint32_t crc;
};

struct lmq_superblock {
    uint16_t major, minor;
    uint64_t incompatible, compatible;
    uint64_t file_size;
    uint64_t table_offset;
    uint32_t n_sections;
    uint32_t table_crc;
    uint64_t alignment; /* of tensors */
    uint32_t member, n_members; /* of a set, from 1; 0 and 0: of none */
    unsigned char set_id[LMQ_SET_ID];
    uint32_t own_crc; /* filled in by both directions */
};

enum lmq_section_type {
    LMQ_SECTION_METADATA = 1,
    LMQ_SECTION_DIRECTORY = 2,
    LMQ_SECTION_FILE = 3, /* an embedded file: the tokenizer's */
    LMQ_SECTION_STATISTICS = 4,
    LMQ_SECTION_DIGESTS = 5,
    LMQ_SECTION_KNOWN_END
};

/* Types from here on are for private use. */
#define LMQ_SECTION_PRIVATE 0x80000000u

#define LMQ_SECTION_DEFLATED 1u
#define LMQ_SECTION_REQUIRED 2u
#define LMQ_SECTION_FLAGS_KNOWN 3u

struct lmq_section {
    uint32_t type;
    uint32_t flags;
    struct lmq_extent stored;
    uint64_t size; /* of the content */
    char name[LMQ_SECTION_NAME + 1];
};

enum lmq_encoding {
    LMQ_ENCODING_PLAIN = 0,
    LMQ_ENCODING_Q8 = 1, /* groups of integers, of quant.bits bits */
    LMQ_ENCODING_ALIAS = 2,
    LMQ_ENCODING_COUNT,
    LMQ_ENCODING_UNKNOWN = LMQ_ENCODING_COUNT /* see `unknown` */
};

/* Q8 that is rotated, in a file: whole groups of 64 and 256, or all groups of
 * any size, since version 1.1. */
#define LMQ_ENCODING_ROTATED_WHOLE 3
#define LMQ_ENCODING_ROTATED_ALL 4

#define LMQ_NO_ALIAS UINT32_MAX

/* What can be stored of a tensor. */
enum { LMQ_VALUES, LMQ_SCALES, LMQ_ZEROS, LMQ_SUPERS, LMQ_N_EXTENTS };

/* One tensor, or the rows of it that stand in this member of a set. */
struct lmq_record {
    char *name; /* owned */
    struct lmq_place place;
    enum lmq_encoding encoding;
    char unknown[24]; /* "layout 7": it can be listed, not read; or "" */
    enum lmq_dtype dtype;        /* PLAIN: of the elements */
    enum lmq_dtype source_dtype; /* what it was converted from; or COUNT */
    enum lmq_layout layout;      /* Q8 */
    struct lmq_quant quant;      /* Q8; the method is not stored here */
    uint32_t n_dims;
    uint64_t dims[LMQ_MAX_DIMS];
    uint64_t first_row, n_rows; /* of its own, that stand here */
    struct lmq_extent extents[LMQ_N_EXTENTS];
    uint32_t alias; /* index of the record it shares, or LMQ_NO_ALIAS */
    /* From the statistics, if the container has them. */
    float max_abs, max_err, worst_err_sq;
    double sum_sq, err_sq;
    uint64_t worst_group;
};

/* ---- lmq.c: bytes <-> structures ---- */

extern const unsigned char lmq_magic[8];

bool lmq_is_zero(const unsigned char *bytes, size_t n);

/* Reserved bytes: zeros, unless a compatible flag that we do not know announces
 * that they mean something by now. */
bool lmq_is_reserved(const struct lmq_superblock *superblock,
                     const unsigned char *bytes, size_t n);

/* At a multiple of `alignment`, behind the superblock, within the file. */
bool lmq_extent_is_inside(const struct lmq_extent *extent, uint64_t alignment,
                          uint64_t file_size);

void lmq_superblock_store(struct lmq_superblock *superblock,
                          unsigned char bytes[LMQ_SUPERBLOCK_SIZE]);
enum lmq_status
lmq_superblock_load(const unsigned char bytes[LMQ_SUPERBLOCK_SIZE],
                    uint64_t file_size, struct lmq_superblock *superblock,
                    struct lmq_error *err);

/* Whether an embedded file can have this name: 1 to 56 printable ASCII
 * characters, no space, no slash, not "." or "..". */
bool lmq_section_name_is_valid(const char *name);

void lmq_section_store(const struct lmq_section *section,
                       unsigned char bytes[LMQ_SECTION_SIZE]);
enum lmq_status lmq_section_load(const unsigned char bytes[LMQ_SECTION_SIZE],
                                 uint64_t at,
                                 const struct lmq_superblock *superblock,
                                 struct lmq_section *section,
                                 struct lmq_error *err);

void lmq_trailer_store(const struct lmq_superblock *superblock,
                       unsigned char bytes[LMQ_TRAILER_SIZE]);
enum lmq_status
lmq_trailer_load(const unsigned char bytes[LMQ_TRAILER_SIZE],
                 const struct lmq_superblock *superblock,
                 struct lmq_error *err);

/* ---- lmq_directory.c ---- */

/* The whole directory section; *bytes is freed with free(). */
uint64_t lmq_directory_size(const struct lmq_record *records, size_t n);
enum lmq_status lmq_directory_store(const struct lmq_record *records, size_t n,
                                    unsigned char **bytes, size_t *size,
                                    struct lmq_error *err);

/* Loads and checks every record against the file and against the others:
 * *records is freed with lmq_records_free(). */
enum lmq_status lmq_directory_load(const unsigned char *bytes, size_t size,
                                   const struct lmq_superblock *superblock,
                                   struct lmq_record **records, size_t *n,
                                   struct lmq_error *err);
void lmq_records_free(struct lmq_record *records, size_t n);

/* Of the whole tensor: dims are said in full in each piece, first_row and
 * n_rows tell which rows it has. 0: a shape that is none. */
uint64_t lmq_record_rows(const struct lmq_record *record);
/* A scalar is one column, as everywhere. */
uint64_t lmq_record_columns(const struct lmq_record *record);

/* The number of its encoding in a file. */
unsigned char lmq_record_encoding(const struct lmq_record *record);

/* Sizes of the extents of a record, from its shape, encoding and layout;
 * false if they wrap. */
bool lmq_record_sizes(const struct lmq_record *record,
                      uint64_t sizes[LMQ_N_EXTENTS]);

/* Of values and scales together, where the sizes do not wrap. */
uint64_t lmq_record_bytes(const struct lmq_record *record);

/* ---- lmq_statistics.c ---- */

/* A power of two, so that multiplying by it is exact; of scales in
 * float32 1. */
bool lmq_multiplier_is_sound(const struct lmq_quant *quant);

/* Whether a container may say that of a tensor. */
bool lmq_statistics_are_sound(const struct lmq_record *record);

/* What converting did to the tensors; *bytes is freed with free(). */
enum lmq_status lmq_statistics_store(const struct lmq_record *records,
                                     size_t n, unsigned char **bytes,
                                     size_t *size, struct lmq_error *err);
size_t lmq_statistics_size(size_t n);
/* Into the records. */
enum lmq_status lmq_statistics_load(const unsigned char *bytes, size_t size,
                                    const struct lmq_superblock *superblock,
                                    struct lmq_record *records, size_t n,
                                    struct lmq_error *err);

/* ---- lmq_metadata.c ---- */

/* Names of a million tensors, as their source calls them, fit; nothing of it
 * needs more than a few brackets. */
#define LMQ_MAX_METADATA ((size_t)1 << 26)
#define LMQ_MAX_METADATA_DEPTH 32

/* Parses and checks them; *metadata is released with json_decref(), also if
 * this fails. */
enum lmq_status lmq_metadata_load(const unsigned char *bytes, size_t size,
                                  json_t **metadata, struct lmq_error *err);

/* What they say of a set must be what the superblock says. */
enum lmq_status lmq_metadata_check_set(const json_t *metadata,
                                       const struct lmq_superblock *superblock,
                                       struct lmq_error *err);

struct lmq_layout_plan;
/* The object "set" of a member, of a whole of n_tensors; NULL without
 * memory. */
json_t *lmq_metadata_make_set(const struct lmq_layout_plan *layout,
                              size_t n_tensors);

/* ---- lmq_container.c ---- */

struct lmq_digests; /* lmq_digests.h */

/* A container that is open: everything but the tensors' bytes. */
struct lmq_container {
    struct lmq_superblock superblock;
    struct lmq_section *sections;
    size_t n_sections;
    struct lmq_record *records;
    size_t n_records;
    bool has_statistics;
    json_t *metadata;
    struct lmq_digests *digests; /* as the file has them, or NULL */
};

enum lmq_status lmq_container_load(struct lmq_input *input,
                                   struct lmq_container *container,
                                   struct lmq_error *err);
void lmq_container_free(struct lmq_container *container);

/* An extent, and what it begins at multiples of. */
struct lmq_file_span {
    struct lmq_extent extent;
    uint64_t alignment;
};

/* Everything but the trailer that is not empty, in the order of the file;
 * *spans is freed with free(). */
enum lmq_status lmq_container_spans(const struct lmq_container *container,
                                    struct lmq_file_span **spans, size_t *n,
                                    struct lmq_error *err);

/* The content of a section, inflated; *bytes is freed with free(). */
enum lmq_status lmq_section_read(struct lmq_input *input,
                                 const struct lmq_section *section,
                                 unsigned char **bytes, size_t *size,
                                 struct lmq_error *err);

/* Reads what stands here of a tensor and compares its checksums;
 * LMQ_ERR_FORMAT if it is damaged. */
enum lmq_status lmq_record_verify(struct lmq_input *input,
                                  const struct lmq_record *record,
                                  struct lmq_error *err);

/* ---- lmq_set.c ---- */

/* The container behind a checkpoint, which must be one: the first of a set,
 * which says what there is to say of the whole. */
const struct lmq_container *
lmq_checkpoint_container(const struct lmq_checkpoint *checkpoint);

/* ---- lmq_write.c ---- */

/* A section to be written. */
struct lmq_content {
    enum lmq_section_type type;
    const char *name;
    const unsigned char *bytes;
    size_t size;
    bool is_deflated; /* `bytes` is deflated; `raw_size` is what it holds */
    size_t raw_size;
};

/* Where everything goes; computed before the first byte is written. */
struct lmq_layout_plan {
    uint64_t alignment;       /* given; of tensors */
    uint32_t member, n_members; /* given; of a set, as in the superblock */
    unsigned char set_id[LMQ_SET_ID];
    bool has_no_statistics; /* given: these are not known */
    struct lmq_digests *digests; /* given, or NULL; all is known when the frame
                                    is written but the root, which is set */
    uint64_t contents_offset; /* behind the tensors */
    uint64_t file_size;
};

/* Sets the extents' offsets and sizes of all records. Behind the tensors come
 * the contents, statistics and directory, in whatever order: all begin at
 * multiples of LMQ_ALIGN, so it does not change the size. */
enum lmq_status lmq_write_plan(struct lmq_record *records, size_t n_records,
                               const struct lmq_content *contents,
                               size_t n_contents, struct lmq_layout_plan *plan,
                               struct lmq_error *err);

/* Writes all but the tensors' bytes, whose CRCs the records hold by now. */
enum lmq_status lmq_write_frame(struct lmq_output *output,
                                const struct lmq_layout_plan *plan,
                                const struct lmq_record *records,
                                size_t n_records,
                                const struct lmq_content *contents,
                                size_t n_contents, struct lmq_error *err);

#endif
