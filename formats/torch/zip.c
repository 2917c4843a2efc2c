/*
 * zip.c - reads zip archives, of 32 and 64 bits.
 *
 * Not for all that calls itself zip: one disk, nothing encrypted, nothing in
 * front of the archive or behind it, members stored or deflated. The format
 * is APPNOTE.TXT, whose names of fields are used here.
 *
 * An archive, from front to back:
 *
 *     for each member: a local header (LOCAL_SIZE, its name, an extra field),
 *       its bytes, perhaps a descriptor with sizes and CRC-32
 *     the central directory: for each member an entry (CENTRAL_SIZE, name,
 *       extra field, comment) that says where its local header is
 *     in a large archive the 64-bit end and a locator that points to it
 *     the end: how many entries, where the directory is, a comment
 *
 * Everything is said twice, in front of the bytes and in the directory.
 * Readers differ in which of the two they believe, so an archive that
 * contradicts itself is refused: what others have checked must be what is read
 * here.
 */
#include "config.h"

#include "formats/torch/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/files/inflate.h"
#include "base/size.h"

#define END_SIGNATURE 0x06054b50u
#define END_SIZE 22
#define END64_SIGNATURE 0x06064b50u
#define END64_SIZE 56
#define LOCATOR_SIGNATURE 0x07064b50u
#define LOCATOR_SIZE 20
#define CENTRAL_SIGNATURE 0x02014b50u
#define CENTRAL_SIZE 46
#define LOCAL_SIGNATURE 0x04034b50u
#define LOCAL_SIZE 30

/* Its length has 16 bits; so the end lies within the last 64 KiB. */
#define COMMENT_MAX 65535
/* A member for each tensor; and what of a directory is worth memory before a
 * single one of its entries was looked at. */
#define MEMBERS_MAX ((uint64_t)1 << 21)
#define DIRECTORY_MAX ((uint64_t)256 << 20)

#define FLAG_ENCRYPTED 0x2041u /* also: strongly, and the directory itself */
#define FLAG_DESCRIPTOR 0x0008u /* sizes and CRC stand behind the bytes */
#define EXTRA_ZIP64 1
#define STORED 0
#define DEFLATED 8

/* No byte of a deflated member makes more than these. */
#define DEFLATE_RATIO 1032

/* What the end of an archive says about its central directory. */
struct end {
    uint64_t n_members, size, offset;
};

/* An entry of it, and where its parts begin. */
struct entry {
    const unsigned char *name;
    size_t n_name;
    uint32_t flags, method, crc;
    uint64_t size, packed_size, local_at;
    uint64_t end; /* of the bytes */
};

/* ---- The end of the archive ---- */

/* Where the end record is: the last one whose comment ends with the file. */
static enum lmq_status
find_end(struct lmq_input *input, uint64_t *end_at, unsigned char *end,
         struct lmq_error *err)
{
    uint64_t size = lmq_input_size(input);
    size_t n = (size_t)lmq_u64_min(size, END_SIZE + COMMENT_MAX);
    unsigned char *tail = malloc(n + 1);
    enum lmq_status status = LMQ_OK;
    bool is_found = false;

    if (tail == NULL)
        return lmq_fail_nomem(err);
    status = lmq_input_read(input, size - n, tail, n, err);
    for (size_t back = END_SIZE; back <= n && status == LMQ_OK && !is_found;
         back++) {
        const unsigned char *p = tail + n - back;
        is_found = lmq_load_u32le(p) == END_SIGNATURE &&
                   lmq_load_u16le(p + 20) == back - END_SIZE;
        if (is_found) {
            *end_at = size - back;
            memcpy(end, p, END_SIZE);
        }
    }
    free(tail);
    if (status == LMQ_OK && !is_found) {
        lmq_fail(err, LMQ_ERR_FORMAT, size,
                 "is a zip archive without an end: it has no central "
                 "directory");
        lmq_hint(err, "the file is truncated; fetch it again");
        status = LMQ_ERR_FORMAT;
    }
    return status;
}

/* The directory of a large archive, from its own end record. *end_at becomes
 * where this one is. */
static enum lmq_status
read_end64(struct lmq_input *input, const unsigned char *locator,
           uint64_t *end_at, struct end *end, struct lmq_error *err)
{
    unsigned char bytes[END64_SIZE];
    uint64_t at = lmq_load_u64le(locator + 8);

    if (lmq_load_u32le(locator + 4) != 0 || lmq_load_u32le(locator + 16) > 1)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, *end_at,
                        "is one of several parts of a zip archive");
    if (at > *end_at || *end_at - at < LOCATOR_SIZE + END64_SIZE)
        return lmq_fail(err, LMQ_ERR_FORMAT, *end_at,
                        "the zip archive's 64-bit end is said to be at "
                        "%" PRIu64 ", where it cannot be",
                        at);
    enum lmq_status status = lmq_input_read(input, at, bytes, sizeof(bytes),
                                            err);
    if (status != LMQ_OK)
        return status;
    uint64_t size = lmq_load_u64le(bytes + 4); /* of what follows it */
    if (lmq_load_u32le(bytes) != END64_SIGNATURE ||
        size != *end_at - LOCATOR_SIZE - at - 12)
        return lmq_fail(err, LMQ_ERR_FORMAT, at,
                        "the zip archive has no 64-bit end where it should "
                        "be");
    if (lmq_load_u32le(bytes + 16) != 0 || lmq_load_u32le(bytes + 20) != 0 ||
        lmq_load_u64le(bytes + 24) != lmq_load_u64le(bytes + 32))
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, at,
                        "is one of several parts of a zip archive");
    *end = (struct end){lmq_load_u64le(bytes + 32), lmq_load_u64le(bytes + 40),
                        lmq_load_u64le(bytes + 48)};
    *end_at = at;
    return LMQ_OK;
}

/* Whether a 32-bit field says the same as the 64-bit one, or nothing. */
static bool
agrees(uint64_t small, uint64_t most, uint64_t large)
{
    return small == large || small == most;
}

/* A small archive has one end. In a large one fields of it that are too narrow
 * are all ones, and the 64-bit end in front of it has the numbers (some
 * writers add it whatever the size). Where both say something it must be the
 * same, and the directory must end where the ends begin: nothing is hidden
 * between them. */
static enum lmq_status
read_end(struct lmq_input *input, struct end *end, struct lmq_error *err)
{
    unsigned char bytes[END_SIZE] = {0}, locator[LOCATOR_SIZE];
    uint64_t end_at = 0;
    enum lmq_status status = find_end(input, &end_at, bytes, err);

    if (status != LMQ_OK)
        return status;
    uint32_t disk = lmq_load_u16le(bytes + 4);
    struct end small = {lmq_load_u16le(bytes + 10), lmq_load_u32le(bytes + 12),
                        lmq_load_u32le(bytes + 16)};
    *end = small;
    if ((disk != 0 && disk != 0xffff) ||
        lmq_load_u16le(bytes + 8) != small.n_members)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, end_at,
                        "is one of several parts of a zip archive");
    if (end_at >= LOCATOR_SIZE) {
        status = lmq_input_read(input, end_at - LOCATOR_SIZE, locator,
                                LOCATOR_SIZE, err);
        if (status == LMQ_OK && lmq_load_u32le(locator) == LOCATOR_SIGNATURE)
            status = read_end64(input, locator, &end_at, end, err);
    }
    if (status != LMQ_OK)
        return status;
    if (!agrees(small.n_members, 0xffff, end->n_members) ||
        !agrees(small.size, UINT32_MAX, end->size) ||
        !agrees(small.offset, UINT32_MAX, end->offset))
        return lmq_fail(err, LMQ_ERR_FORMAT, end_at,
                        "the zip archive's two ends contradict each other");
    if (end->offset > end_at || end->size != end_at - end->offset)
        return lmq_fail(err, LMQ_ERR_FORMAT, end_at,
                        "the zip archive's central directory (%" PRIu64
                        " bytes at %" PRIu64 ") does not end where it should, "
                        "at %" PRIu64,
                        end->size, end->offset, end_at);
    if (end->n_members > MEMBERS_MAX || end->size > DIRECTORY_MAX ||
        end->n_members > end->size / CENTRAL_SIZE)
        return lmq_fail(err, LMQ_ERR_FORMAT, end_at,
                        "the zip archive cannot have %" PRIu64 " members in a "
                        "central directory of %" PRIu64 " bytes",
                        end->n_members, end->size);
    return LMQ_OK;
}

/* ---- The central directory ---- */

/* Takes the fields that do not fit into 32 bits from the extra field. */
static bool
widen(const unsigned char *extra, size_t n, struct entry *entry)
{
    uint64_t *const fields[] = {&entry->size, &entry->packed_size,
                                &entry->local_at};

    while (n >= 4) {
        size_t size = lmq_load_u16le(extra + 2);
        if (size > n - 4)
            return false;
        const unsigned char *value = extra + 4;
        if (lmq_load_u16le(extra) == EXTRA_ZIP64) {
            for (size_t i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX)
                    continue;
                if (size < 8)
                    return false;
                *fields[i] = lmq_load_u64le(value);
                value += 8;
                size -= 8;
            }
            return true;
        }
        extra += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* The entry at `at`; *at becomes the next one's place. */
static enum lmq_status
parse_entry(const unsigned char *directory, size_t n, size_t *at,
            struct entry *entry, struct lmq_error *err)
{
    const unsigned char *p = directory + *at;

    if (n - *at < CENTRAL_SIZE || lmq_load_u32le(p) != CENTRAL_SIGNATURE)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the zip archive's central directory is damaged at "
                        "its byte %zu",
                        *at);
    size_t n_name = lmq_load_u16le(p + 28), n_extra = lmq_load_u16le(p + 30);
    size_t n_all = CENTRAL_SIZE + n_name + n_extra + lmq_load_u16le(p + 32);
    if (n_all > n - *at)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "the zip archive's central directory ends within an "
                        "entry");
    *entry = (struct entry){
        .name = p + CENTRAL_SIZE,
        .n_name = n_name,
        .flags = lmq_load_u16le(p + 8),
        .method = lmq_load_u16le(p + 10),
        .crc = lmq_load_u32le(p + 16),
        .packed_size = lmq_load_u32le(p + 20),
        .size = lmq_load_u32le(p + 24),
        .local_at = lmq_load_u32le(p + 42),
    };
    if (n_name == 0 || memchr(entry->name, 0, n_name) != NULL)
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "a member of the zip archive has no proper name");
    if (!widen(p + CENTRAL_SIZE + n_name, n_extra, entry))
        return lmq_fail(err, LMQ_ERR_FORMAT, 0,
                        "member '%.*s' of the zip archive has a damaged extra "
                        "field",
                        (int)n_name, entry->name);
    *at += n_all;
    return LMQ_OK;
}

/* What is said of a member must be possible before a byte of it is read: not
 * encrypted, one of two methods, in front of the directory, and no larger than
 * its bytes can become. */
static enum lmq_status
check_entry(const struct entry *entry, uint64_t directory_at,
            struct lmq_error *err)
{
    int n = (int)entry->n_name;

    if ((entry->flags & FLAG_ENCRYPTED) != 0)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, entry->local_at,
                        "member '%.*s' of the zip archive is encrypted", n,
                        entry->name);
    if (entry->method != STORED && entry->method != DEFLATED)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, entry->local_at,
                        "member '%.*s' of the zip archive is compressed by "
                        "method %" PRIu32 ", expected 0 (stored) or 8 "
                        "(deflated)",
                        n, entry->name, entry->method);
    if (entry->local_at > directory_at ||
        entry->packed_size > directory_at - entry->local_at)
        return lmq_fail(err, LMQ_ERR_FORMAT, entry->local_at,
                        "member '%.*s' of the zip archive (%" PRIu64 " bytes "
                        "at %" PRIu64 ") reaches into the central directory, "
                        "which is at %" PRIu64,
                        n, entry->name, entry->packed_size, entry->local_at,
                        directory_at);
    bool fits = entry->method == STORED
                    ? entry->size == entry->packed_size
                    : entry->size / DEFLATE_RATIO <= entry->packed_size;
    if (!fits)
        return lmq_fail(err, LMQ_ERR_FORMAT, entry->local_at,
                        "member '%.*s' of the zip archive cannot make %" PRIu64
                        " bytes of %" PRIu64,
                        n, entry->name, entry->size, entry->packed_size);
    return LMQ_OK;
}

/* The header in front of a member's bytes. One that leaves sizes and CRC to
 * what follows may have zeros there. */
static bool
local_agrees(const unsigned char *p, const struct entry *entry)
{
    uint32_t crc = lmq_load_u32le(p + 14);
    uint32_t packed = lmq_load_u32le(p + 18), size = lmq_load_u32le(p + 22);
    bool is_later = (entry->flags & FLAG_DESCRIPTOR) != 0;

    return lmq_load_u32le(p) == LOCAL_SIGNATURE &&
           lmq_load_u16le(p + 6) == entry->flags &&
           lmq_load_u16le(p + 8) == entry->method &&
           ((is_later && crc == 0) || crc == entry->crc) &&
           ((is_later && packed == 0) ||
            agrees(packed, UINT32_MAX, entry->packed_size)) &&
           ((is_later && size == 0) ||
            agrees(size, UINT32_MAX, entry->size)) &&
           lmq_load_u16le(p + 26) == entry->n_name &&
           memcmp(p + LOCAL_SIZE, entry->name, entry->n_name) == 0;
}

/* The local header repeats name, method, sizes and CRC-32. Only it tells how
 * long its own extra field is, and so where the bytes begin: torch.save() pads
 * with it, so that tensors are aligned to 64 bytes. */
static enum lmq_status
check_local(struct lmq_input *input, struct entry *entry,
            uint64_t directory_at, struct lmq_zip_member *member,
            struct lmq_error *err)
{
    static const char what[] = "member '%.*s' of the zip archive: its local "
                               "header contradicts the central directory";
    unsigned char *p = malloc(LOCAL_SIZE + entry->n_name);
    size_t n = LOCAL_SIZE + entry->n_name;
    enum lmq_status status = p == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    if (status == LMQ_OK && directory_at - entry->local_at < n)
        status = lmq_fail(err, LMQ_ERR_FORMAT, entry->local_at, what,
                          (int)entry->n_name, entry->name);
    if (status == LMQ_OK)
        status = lmq_input_read(input, entry->local_at, p, n, err);
    if (status == LMQ_OK) {
        /* Neither wraps: both are below 2^17 and the file's size below 2^63. */
        member->offset = entry->local_at + n + lmq_load_u16le(p + 28);
        entry->end = member->offset + entry->packed_size;
        if (!local_agrees(p, entry) || entry->end > directory_at)
            status = lmq_fail(err, LMQ_ERR_FORMAT, entry->local_at, what,
                              (int)entry->n_name, entry->name);
    }
    free(p);
    return status;
}

/* ---- All members ---- */

static int
compare_places(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->local_at > y->local_at) - (x->local_at < y->local_at);
}

static int
compare_members(const void *a, const void *b)
{
    const struct lmq_zip_member *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Two members that share bytes could make a small file into a large one: a few
 * megabytes that are said to be hundreds of members. */
static enum lmq_status
check_overlaps(struct entry *entries, size_t n, struct lmq_error *err)
{
    qsort(entries, n, sizeof(*entries), compare_places);
    for (size_t i = 1; i < n; i++)
        if (entries[i].local_at < entries[i - 1].end)
            return lmq_fail(err, LMQ_ERR_FORMAT, entries[i].local_at,
                            "members '%.*s' and '%.*s' of the zip archive "
                            "overlap",
                            (int)entries[i - 1].n_name, entries[i - 1].name,
                            (int)entries[i].n_name, entries[i].name);
    return LMQ_OK;
}

/* Two readers may take different ones of two members with one name. Sorted by
 * name they are found by halves, too. */
static enum lmq_status
check_names(struct lmq_zip *zip, struct lmq_error *err)
{
    qsort(zip->members, zip->n_members, sizeof(*zip->members),
          compare_members);
    for (size_t i = 1; i < zip->n_members; i++)
        if (compare_members(&zip->members[i - 1], &zip->members[i]) == 0)
            return lmq_fail(err, LMQ_ERR_FORMAT, zip->members[i].offset,
                            "the zip archive has two members '%s'",
                            zip->members[i].name);
    return LMQ_OK;
}

static enum lmq_status
add_members(struct lmq_zip *zip, const struct end *end,
            const unsigned char *directory, struct entry *entries,
            struct lmq_error *err)
{
    size_t n = (size_t)end->size, at = 0;
    char *name = zip->names;

    for (size_t i = 0; i < end->n_members; i++) {
        struct entry *entry = &entries[i];
        struct lmq_zip_member *member = &zip->members[i];
        enum lmq_status status = parse_entry(directory, n, &at, entry, err);
        if (status == LMQ_OK)
            status = check_entry(entry, end->offset, err);
        if (status == LMQ_OK)
            status = check_local(zip->input, entry, end->offset, member, err);
        if (status != LMQ_OK)
            return status;
        /* All names fit: they are parts of the directory, whose size the room
         * for them has. */
        member->name = name;
        member->is_deflated = entry->method == DEFLATED;
        member->crc = entry->crc;
        member->size = entry->size;
        member->packed_size = entry->packed_size;
        memcpy(name, entry->name, entry->n_name);
        name[entry->n_name] = '\0';
        name += entry->n_name + 1;
        zip->n_members++;
    }
    if (at != n)
        return lmq_fail(err, LMQ_ERR_FORMAT, end->offset + at,
                        "the zip archive's central directory goes on behind "
                        "its %" PRIu64 " entries",
                        end->n_members);
    enum lmq_status status = check_overlaps(entries, zip->n_members, err);
    return status == LMQ_OK ? check_names(zip, err) : status;
}

enum lmq_status
lmq_zip_open(struct lmq_input *input, struct lmq_zip **out,
             struct lmq_error *err)
{
    struct end end;
    enum lmq_status status = read_end(input, &end, err);

    *out = NULL;
    if (status != LMQ_OK)
        return status;
    struct lmq_zip *zip = calloc(1, sizeof(*zip));
    unsigned char *directory = malloc((size_t)end.size + 1);
    struct entry *entries = calloc((size_t)end.n_members + 1,
                                   sizeof(*entries));
    if (zip != NULL) {
        zip->input = input;
        zip->members = calloc((size_t)end.n_members + 1,
                              sizeof(*zip->members));
        zip->names = malloc((size_t)end.size + 1);
    }
    if (zip == NULL || directory == NULL || entries == NULL ||
        zip->members == NULL || zip->names == NULL)
        status = lmq_fail_nomem(err);
    if (status == LMQ_OK)
        status = lmq_input_read(input, end.offset, directory,
                                (size_t)end.size, err);
    if (status == LMQ_OK)
        status = add_members(zip, &end, directory, entries, err);
    free(directory);
    free(entries);
    if (status != LMQ_OK) {
        lmq_zip_close(zip);
        return status;
    }
    *out = zip;
    return LMQ_OK;
}

void
lmq_zip_close(struct lmq_zip *zip)
{
    if (zip == NULL)
        return;
    free(zip->members);
    free(zip->names);
    free(zip);
}

const struct lmq_zip_member *
lmq_zip_find(const struct lmq_zip *zip, const char *name)
{
    struct lmq_zip_member key = {.name = name};

    return bsearch(&key, zip->members, zip->n_members, sizeof(key),
                   compare_members);
}

/* ---- Contents ---- */

/* In one piece: pickles and indices are small. Weights are read in place, and
 * must be stored for that. */
static enum lmq_status
load_deflated(const struct lmq_zip *zip, const struct lmq_zip_member *member,
              unsigned char *bytes, struct lmq_error *err)
{
    unsigned char *packed = malloc((size_t)member->packed_size + 1);

    if (packed == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_input_read(zip->input, member->offset, packed,
                       (size_t)member->packed_size, err);
    if (status != LMQ_OK) {
        free(packed);
        return status;
    }
    status = lmq_inflate(packed, (size_t)member->packed_size, bytes,
                         (size_t)member->size, false);
    free(packed);
    if (status == LMQ_ERR_NOMEM)
        return lmq_fail_nomem(err);
    return status == LMQ_OK
               ? status
               : lmq_fail(err, status, member->offset,
                          "member '%s' of the zip archive does not inflate to "
                          "%" PRIu64 " bytes",
                          member->name, member->size);
}

enum lmq_status
lmq_zip_load(const struct lmq_zip *zip, const struct lmq_zip_member *member,
             size_t most, unsigned char **out, struct lmq_error *err)
{
    *out = NULL;
    if (most > UINT32_MAX / 2)
        most = UINT32_MAX / 2; /* zlib counts with 32 bits */
    if (member->size > most || member->packed_size > most)
        return lmq_fail(err, LMQ_ERR_UNSUPPORTED, member->offset,
                        "member '%s' of the zip archive is %" PRIu64 " bytes, "
                        "at most %zu are read",
                        member->name, member->size, most);
    unsigned char *bytes = malloc((size_t)member->size + 1);
    if (bytes == NULL)
        return lmq_fail_nomem(err);
    /* For parsers of text, which then stop at the end. */
    bytes[member->size] = 0;
    enum lmq_status status =
        member->is_deflated
            ? load_deflated(zip, member, bytes, err)
            : lmq_input_read(zip->input, member->offset, bytes,
                             (size_t)member->size, err);
    if (status == LMQ_OK &&
        lmq_crc32(0, bytes, (size_t)member->size) != member->crc) {
        lmq_fail(err, LMQ_ERR_FORMAT, member->offset,
                 "member '%s' of the zip archive does not have the checksum "
                 "%08" PRIx32 " that it should",
                 member->name, member->crc);
        lmq_hint(err, "the file is damaged; fetch it again");
        status = LMQ_ERR_FORMAT;
    }
    if (status != LMQ_OK) {
        free(bytes);
        return status;
    }
    *out = bytes;
    return LMQ_OK;
}
