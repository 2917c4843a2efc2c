/*
 * lmq.c - the structures of a container as bytes, and back.
 *
 * Loading believes nothing: every number is checked against its range and
 * against what can be computed from the others, and reserved bytes are zero.
 */
#include "config.h"

#include "formats/lmq/lmq.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/files/inflate.h"
#include "base/size.h"

/* The high bit, CR LF and ^Z catch transfers that mangle binary files. */
const unsigned char lmq_magic[8] = {0x89, 'L',  'M',  'Q',
                                    '\r', '\n', 0x1a, '\n'};

/* At the other end of the file: together with its length it tells a whole file
 * from one that lost its end. */
static const unsigned char end_magic[8] = {'L',  'M',  'Q',  'E',
                                           'N', 'D', '\r', '\n'};

#define BYTE_ORDER_MARK 0x01020304u
#define BYTE_ORDER_SWAPPED 0x04030201u

bool
lmq_is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Reserved bytes are zero, unless a compatible feature is said that is not
 * known here: such a feature may use them, and what is known stays right. */
bool
lmq_is_reserved(const struct lmq_superblock *superblock,
                const unsigned char *bytes, size_t n)
{
    return (superblock->compatible & ~(uint64_t)LMQ_COMPATIBLE_KNOWN) != 0 ||
           lmq_is_zero(bytes, n);
}

/* Subtracts rather than adds: an offset near 2^64 would wrap. */
bool
lmq_extent_is_inside(const struct lmq_extent *extent, uint64_t alignment,
                     uint64_t file_size)
{
    return extent->offset % alignment == 0 &&
           extent->offset >= LMQ_SUPERBLOCK_SIZE &&
           extent->offset <= file_size &&
           extent->size <= file_size - extent->offset;
}

/* ---- Superblock ---- */

#define SB_CRC (LMQ_SUPERBLOCK_SIZE - 4)
#define SB_ALIGN_RESERVED 57
#define SB_RESERVED 84

void
lmq_superblock_store(struct lmq_superblock *superblock,
                     unsigned char bytes[LMQ_SUPERBLOCK_SIZE])
{
    /* lmq(5), "Superblock", has the places of the fields. What is not set
     * below is reserved. */
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
    for (uint64_t size = superblock->alignment; size > 1; size /= 2)
        bytes[56]++;
    lmq_store_u32le(bytes + 60, superblock->member);
    lmq_store_u32le(bytes + 64, superblock->n_members);
    memcpy(bytes + 68, superblock->set_id, LMQ_SET_ID);
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
    /* Behind the checksum: else a flipped bit of the version would be told as
     * "needs a newer reader". */
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
    if (bytes[56] == 0) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 56,
                 "was written before the format was settled, by a "
                 "pre-release of lmquant");
        lmq_hint(err, "convert the checkpoint again");
        return LMQ_ERR_UNSUPPORTED;
    }
    return LMQ_OK;
}

/* A member of a set has a number up to their count, and the set a name; one
 * that is of none has neither. */
static bool
is_membership(const struct lmq_superblock *superblock)
{
    if (superblock->n_members == 0)
        return superblock->member == 0 &&
               lmq_is_zero(superblock->set_id, LMQ_SET_ID);
    return superblock->n_members <= LMQ_MAX_MEMBERS &&
           superblock->member >= 1 &&
           superblock->member <= superblock->n_members &&
           !lmq_is_zero(superblock->set_id, LMQ_SET_ID);
}

/* What the frame cannot tell, though its checksum is right. */
static enum lmq_status
check_fields(const unsigned char *bytes,
             const struct lmq_superblock *superblock, struct lmq_error *err)
{
    if (bytes[56] < LMQ_ALIGN_LOG2_MIN || bytes[56] > LMQ_ALIGN_LOG2_MAX)
        return lmq_fail(err, LMQ_ERR_FORMAT, 56,
                        "the alignment is 2^%u, expected 2^%d to 2^%d",
                        bytes[56], LMQ_ALIGN_LOG2_MIN, LMQ_ALIGN_LOG2_MAX);
    if (!is_membership(superblock))
        return lmq_fail(err, LMQ_ERR_FORMAT, 60,
                        "is member %u of a set of %u, or the set has no name",
                        superblock->member, superblock->n_members);
    if (!lmq_is_reserved(superblock, bytes + SB_ALIGN_RESERVED,
                         60 - SB_ALIGN_RESERVED) ||
        !lmq_is_reserved(superblock, bytes + SB_RESERVED,
                         SB_CRC - SB_RESERVED))
        return lmq_fail(err, LMQ_ERR_FORMAT, SB_RESERVED,
                        "reserved bytes of the superblock are not zero");
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
        .alignment = (uint64_t)1 << (bytes[56] & 63),
        .member = lmq_load_u32le(bytes + 60),
        .n_members = lmq_load_u32le(bytes + 64),
        .own_crc = lmq_load_u32le(bytes + SB_CRC),
    };
    memcpy(superblock->set_id, bytes + 68, LMQ_SET_ID);
    if (superblock->file_size != file_size) {
        lmq_fail(err, LMQ_ERR_FORMAT, 32,
                 "is %" PRIu64 " bytes, expected %" PRIu64 " (%s)", file_size,
                 superblock->file_size,
                 file_size < superblock->file_size ? "truncated"
                                                   : "something was appended");
        lmq_hint(err, "copy the file again, or convert again");
        return LMQ_ERR_FORMAT;
    }
    /* The table is the last thing before the trailer. So a file has one end,
     * and each byte before it belongs to something that the table names. */
    uint64_t table_size = (uint64_t)superblock->n_sections * LMQ_SECTION_SIZE;
    struct lmq_extent table = {superblock->table_offset, table_size, 0};
    if (superblock->n_sections == 0 ||
        superblock->n_sections > LMQ_MAX_SECTIONS ||
        !lmq_extent_is_inside(&table, LMQ_ALIGN, file_size) ||
        file_size - table.offset - table_size != LMQ_TRAILER_SIZE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 40,
                        "the section table (%u entries at %" PRIu64 ") does "
                        "not end where the trailer begins",
                        superblock->n_sections, superblock->table_offset);
    return check_fields(bytes, superblock, err);
}

/* ---- Sections ---- */

/* Offset and size of the bytes as they are stored, the size that they have
 * inflated, and the CRC-32 of the former: a reader checks what it reads before
 * it inflates it. */
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

/* Printable ASCII without spaces and slashes, padded with zeros: it can be
 * shown, and no file can be written outside of a folder by it. */
static bool
is_name(const unsigned char *bytes, size_t n)
{
    size_t i = 0;

    while (i < n && bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '/')
        i++;
    return lmq_is_zero(bytes + i, n - i);
}

bool
lmq_section_name_is_valid(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= LMQ_SECTION_NAME && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 &&
           is_name((const unsigned char *)name, n);
}

/* A kind of section that is not known is skipped, unless it says that it is
 * required: that is how later versions add things that older readers may
 * ignore. */
enum lmq_status
lmq_section_load(const unsigned char bytes[LMQ_SECTION_SIZE], uint64_t at,
                 const struct lmq_superblock *superblock,
                 struct lmq_section *section, struct lmq_error *err)
{
    *section = (struct lmq_section){
        .type = lmq_load_u32le(bytes),
        .flags = lmq_load_u32le(bytes + 4),
        .stored = {lmq_load_u64le(bytes + 8), lmq_load_u64le(bytes + 16),
                   lmq_load_u32le(bytes + 32)},
        .size = lmq_load_u64le(bytes + 24),
    };
    memcpy(section->name, bytes + 40, LMQ_SECTION_NAME);
    bool is_known = section->type < LMQ_SECTION_KNOWN_END;
    if (section->type == 0)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "has a section of type 0, which does not exist");
    if ((section->flags & ~LMQ_SECTION_FLAGS_KNOWN) != 0 ||
        (!is_known && (section->flags & LMQ_SECTION_REQUIRED))) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, at,
                 "has a section of type %u with flags %#x, which this version "
                 "does not know",
                 section->type, section->flags);
        lmq_hint(err, "a newer lmquant reads it");
        return LMQ_ERR_UNSUPPORTED;
    }
    if (!lmq_extent_is_inside(&section->stored, LMQ_ALIGN,
                              superblock->file_size) ||
        section->stored.size > LMQ_MAX_SECTION_BYTES ||
        section->size > LMQ_MAX_SECTION_BYTES)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section (type %u, %" PRIu64 " bytes at %" PRIu64
                        ") lies outside the file, is not aligned or too large",
                        section->type, section->stored.size,
                        section->stored.offset);
    bool is_deflated = section->flags & LMQ_SECTION_DEFLATED;
    /* A few bytes must not become millions of records. */
    if (is_deflated && is_known && section->type != LMQ_SECTION_FILE)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section of type %u is deflated, which only "
                        "embedded files may be",
                        section->type);
    if (is_deflated
            ? !lmq_inflation_is_fair(section->stored.size, section->size)
            : section->size != section->stored.size)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section of %" PRIu64 " stored bytes cannot hold "
                        "%" PRIu64,
                        section->stored.size, section->size);
    if (!lmq_is_reserved(superblock, bytes + 36, 4) ||
        !is_name(bytes + 40, LMQ_SECTION_NAME) ||
        (section->type == LMQ_SECTION_FILE &&
         !lmq_section_name_is_valid(section->name)) ||
        (section->type >= LMQ_SECTION_PRIVATE &&
         strchr(section->name, '.') == NULL))
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "a section's name or reserved bytes are malformed");
    return LMQ_OK;
}

/* ---- Trailer ---- */

#define TR_CRC (LMQ_TRAILER_SIZE - 4)

/* Repeats the superblock's numbers at the end of the file, so that the front
 * of one container and the end of another are not taken for one. */
void
lmq_trailer_store(const struct lmq_superblock *superblock,
                  unsigned char bytes[LMQ_TRAILER_SIZE])
{
    memset(bytes, 0, LMQ_TRAILER_SIZE);
    memcpy(bytes, end_magic, sizeof(end_magic));
    lmq_store_u64le(bytes + 8, superblock->file_size);
    lmq_store_u64le(bytes + 16, superblock->table_offset);
    lmq_store_u32le(bytes + 24, superblock->n_sections);
    lmq_store_u32le(bytes + 28, superblock->table_crc);
    lmq_store_u32le(bytes + 32, superblock->own_crc);
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
        !lmq_is_reserved(superblock, bytes + 36, TR_CRC - 36))
        return lmq_fail(err, LMQ_ERR_FORMAT, at, "the trailer is damaged");
    if (lmq_load_u64le(bytes + 8) != superblock->file_size ||
        lmq_load_u64le(bytes + 16) != superblock->table_offset ||
        lmq_load_u32le(bytes + 24) != superblock->n_sections ||
        lmq_load_u32le(bytes + 28) != superblock->table_crc ||
        lmq_load_u32le(bytes + 32) != superblock->own_crc)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "the trailer does not belong to this superblock");
    return LMQ_OK;
}
