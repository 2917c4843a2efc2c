/*
 * lmq.h - the .lmq container: what stands where, and its limits.
 *
 * lmq(5) is normative; names here follow the page. lmq.c turns each structure
 * into bytes and back, lmq_write.c lays files out, lmq_read.c is the format
 * for the reader interface, lmq_verify.c checks every byte.
 */
#ifndef LMQ_FORMATS_LMQ_LMQ_H
#define LMQ_FORMATS_LMQ_LMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/output.h"
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
#define LMQ_RECORD_SIZE 192
#define LMQ_TRAILER_SIZE 32
#define LMQ_ALIGN 64

/* Hard limits (lmq(5), "Limits"). */
#define LMQ_MAX_SECTIONS 1024
#define LMQ_MAX_SECTION_BYTES ((uint64_t)1 << 28)
#define LMQ_MAX_RECORD_SIZE 4096
/* What is deflated may grow by so much, and a little anyway: texts grow by 4 to
 * 20. Deflate itself could do 1032. */
#define LMQ_MAX_INFLATION 64
#define LMQ_FREE_INFLATION ((uint64_t)1 << 20)

bool lmq_inflation_is_fair(uint64_t stored_size, uint64_t size);

/* Feature flags. This one is set where the model's description has keys that
 * version 1.0 does not know: who skips them computes nonsense. */
#define LMQ_INCOMPATIBLE_VARIANT 1u
#define LMQ_INCOMPATIBLE_KNOWN LMQ_INCOMPATIBLE_VARIANT
#define LMQ_COMPATIBLE_KNOWN 0

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
    uint32_t own_crc; /* filled in by both directions */
};

enum lmq_section_type {
    LMQ_SECTION_METADATA = 1,
    LMQ_SECTION_DIRECTORY = 2,
    LMQ_SECTION_FILE = 3 /* an embedded file: the tokenizer's */
};

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
    LMQ_ENCODING_Q8 = 1,
    LMQ_ENCODING_ALIAS = 2,
    LMQ_ENCODING_COUNT
};

#define LMQ_NO_ALIAS UINT32_MAX

/* One tensor. */
struct lmq_record {
    char *name; /* owned */
    struct lmq_place place;
    enum lmq_encoding encoding;
    enum lmq_dtype dtype;        /* PLAIN: of the elements */
    enum lmq_dtype source_dtype; /* what it was converted from */
    enum lmq_layout layout;      /* Q8 */
    struct lmq_quant quant;      /* Q8; the method is not stored here */
    uint32_t n_dims;
    uint64_t dims[LMQ_MAX_DIMS];
    struct lmq_extent values, scales;
    uint32_t alias; /* index of the record it shares, or LMQ_NO_ALIAS */
    float max_abs, max_err, worst_err_sq;
    double sum_sq, err_sq;
    uint64_t worst_group;
};

/* ---- lmq.c: bytes <-> structures ---- */

extern const unsigned char lmq_magic[8];

bool lmq_is_zero(const unsigned char *bytes, size_t n);

/* Aligned, behind the superblock, within the file. */
bool lmq_extent_is_inside(const struct lmq_extent *extent, uint64_t file_size);

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
                                 uint64_t at, uint64_t file_size,
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

/* Loads and checks every record against the size of the file and against the
 * others: *records is freed with lmq_records_free(). */
enum lmq_status lmq_directory_load(const unsigned char *bytes, size_t size,
                                   uint64_t file_size,
                                   struct lmq_record **records, size_t *n,
                                   struct lmq_error *err);
void lmq_records_free(struct lmq_record *records, size_t n);

/* Sizes of the extents of a record, from its shape, encoding and layout;
 * false if they wrap. */
bool lmq_record_sizes(const struct lmq_record *record, uint64_t *values_size,
                      uint64_t *scales_size);

/* ---- lmq_read.c ---- */

/* A container that is open: everything but the tensors' bytes. */
struct lmq_container {
    struct lmq_superblock superblock;
    struct lmq_section *sections;
    size_t n_sections;
    struct lmq_record *records;
    size_t n_records;
    json_t *metadata;
};

enum lmq_status lmq_container_load(struct lmq_input *input,
                                   struct lmq_container *container,
                                   struct lmq_error *err);
void lmq_container_free(struct lmq_container *container);

/* The container behind a checkpoint, which must be one: for this room. */
const struct lmq_container *
lmq_checkpoint_container(const struct lmq_checkpoint *checkpoint);

/* ---- lmq_verify.c ---- */

/* Reads the tensor's bytes and compares their checksums; LMQ_ERR_FORMAT if
 * they are damaged. */
enum lmq_status
lmq_container_verify_tensor(const struct lmq_checkpoint *checkpoint,
                            const struct lmq_tensor *tensor,
                            struct lmq_error *err);

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
    uint64_t contents_offset; /* behind the tensors */
    uint64_t file_size;
    uint64_t incompatible; /* flags */
};

/* Sets the extents' offsets and sizes of all records. `contents` come in the
 * order of the file; the directory is placed behind them. */
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
