/*
 * verify.c - checks every byte of a container, or of all members of a set.
 *
 * Of each file the frame first (opening does that); then each section's and
 * each tensor's checksum, the padding between them, and that values and scales
 * are legal; digests, if there are some or one is asked for. What the files
 * mean to each other, opening the whole tells.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/tasks.h"
#include "formats/checkpoint/member_name.h"
#include "formats/folder.h"
#include "formats/lmq/lmq.h"
#include "formats/lmq/lmq_set.h"
#include "formats/open.h"
#include "formats/probe.h"
#include "formats/verify_digests.h"

#define CHUNK ((size_t)1 << 20)

struct check {
    /* Of the file that is looked at: */
    const char *file; /* its name, without folder */
    struct lmq_input *input;
    struct lmq_container container;
    struct lmq_workers workers; /* with CHUNK bytes each */
    bool has_digesting; /* its digests are computed */
    struct lmq_digesting digesting;
    /* Of all of them: */
    int threads;
    struct lmq_counter counter; /* bytes */
    uint64_t n_bytes, n_sections, n_tensors;
    uint32_t n_files;
    json_t *problems;
    bool can_digest;             /* and digests are looked at */
    const unsigned char *wanted; /* the digest that is asked for, or NULL */
    const char *matches;         /* what it is, or NULL */
    json_t *digests;             /* of the file that was named */
    struct lmq_digests *own; /* computed, of each file in turn */
    size_t n_own, own_capacity;
    bool lacks_content; /* it cannot be computed */
    struct lmq_error frame; /* why one cannot be opened; or LMQ_OK */
};

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static void
add_problem(struct check *check, const char *section, const char *name,
            uint64_t offset, const char *message)
{
    json_t *problem = json_object();

    lmq_put(&problem, "file", lmq_json_text(check->file));
    lmq_put(&problem, "section", json_string(section));
    lmq_put(&problem, "name", lmq_json_text(name));
    lmq_put(&problem, "offset", lmq_json_size(offset));
    lmq_put(&problem, "message", json_string(message));
    lmq_append(&check->problems, problem);
}

/* ---- Legal contents ---- */

/* The byte that stands for -128, which no quantizer writes. */
static int
illegal_value(const struct lmq_record *record)
{
    return record->layout == LMQ_LAYOUT_TILES ? 0 : 0x80;
}

/* Finite and not negative; -0 counts as negative. */
static bool
has_legal_scales(const unsigned char *p, size_t n, enum lmq_scales type)
{
    bool is_legal = true;

    if (type == LMQ_SCALES_F16)
        for (size_t i = 0; i + 2 <= n; i += 2)
            is_legal &= lmq_load_u16le(p + i) < 0x7c00;
    else
        for (size_t i = 0; i + 4 <= n; i += 4)
            is_legal &= lmq_load_u32le(p + i) < 0x7f800000;
    return is_legal;
}

/* ---- Extents ---- */

enum content { CONTENT_ANY, CONTENT_VALUES, CONTENT_SCALES };

/* An extent on its way. */
struct reading {
    struct check *check;
    const struct lmq_extent *extent;
    enum content content;
    const struct lmq_record *record;
    struct {
        uint32_t crc;
        bool is_legal, is_filled;
    } found[LMQ_RANGES];
    uint32_t crc; /* of those that were merged */
    bool is_legal, is_filled;
};

/* Whether the range has nothing but zeros in places of its tiles that belong
 * to no element. */
static bool
is_filled_up(const struct reading *reading, const struct lmq_range *range,
             const unsigned char *bytes)
{
    const struct lmq_record *record = reading->record;

    if (reading->content == CONTENT_ANY || record->layout != LMQ_LAYOUT_TILES)
        return true;
    uint64_t n_cols =
        record->n_dims == 0 ? 1 : record->dims[record->n_dims - 1];
    return reading->content == CONTENT_VALUES
               ? lmq_tile_values_are_filled(bytes, range->n, range->at,
                                            record->n_rows, n_cols,
                                            record->quant.group_size)
               : lmq_tile_scales_are_filled(bytes, range->n, range->at,
                                            record->n_rows, n_cols,
                                            record->quant.group_size,
                                            record->quant.scales);
}

static enum lmq_status
check_range(void *context, const struct lmq_range *range, void *bytes,
            struct lmq_error *err)
{
    struct reading *reading = context;
    const struct lmq_record *record = reading->record;
    bool is_legal = true;
    enum lmq_status status =
        lmq_input_read(reading->check->input,
                       reading->extent->offset + range->at, bytes, range->n,
                       err);

    if (status != LMQ_OK)
        return status;
    if (reading->content == CONTENT_VALUES)
        is_legal = memchr(bytes, illegal_value(record), range->n) == NULL;
    if (reading->content == CONTENT_SCALES)
        is_legal = has_legal_scales(bytes, range->n, record->quant.scales);
    reading->found[range->slot].crc = lmq_crc32(0, bytes, range->n);
    reading->found[range->slot].is_legal = is_legal;
    reading->found[range->slot].is_filled =
        is_filled_up(reading, range, bytes);
    return LMQ_OK;
}

static void
merge_range(void *context, const struct lmq_range *range)
{
    struct reading *reading = context;

    reading->crc = (uint32_t)crc32_combine(
        reading->crc, reading->found[range->slot].crc, (off_t)range->n);
    reading->is_legal &= reading->found[range->slot].is_legal;
    reading->is_filled &= reading->found[range->slot].is_filled;
}

static enum lmq_status
check_extent(struct check *check, const struct lmq_extent *extent,
             enum content content, const struct lmq_record *record,
             const char *section, const char *name, struct lmq_error *err)
{
    struct reading reading = {.check = check, .extent = extent,
                              .content = content, .record = record,
                              .is_legal = true, .is_filled = true};
    const struct lmq_ranges ranges = {
        .whole = extent->size,
        .chunk = CHUNK,
        .context = &reading,
        .piece = check_range,
        .merge = merge_range,
        .counter = &check->counter,
    };
    enum lmq_status status = lmq_tasks_over(&ranges, &check->workers, err);

    if (status != LMQ_OK)
        return status;
    if (reading.crc != extent->crc)
        add_problem(check, section, name, extent->offset,
                    "the CRC-32 does not match");
    else if (!reading.is_legal)
        add_problem(check, section, name, extent->offset,
                    content == CONTENT_VALUES
                        ? "holds the illegal value -128"
                        : "holds a scale that is negative or not finite");
    else if (!reading.is_filled)
        add_problem(check, section, name, extent->offset,
                    "the padding of its tiles is not zeros");
    return LMQ_OK;
}

/* ---- Padding ---- */

/* Zeros between `from` and `to`. */
static enum lmq_status
check_gap(struct check *check, uint64_t from, uint64_t to,
          struct lmq_error *err)
{
    unsigned char bytes[4096];
    enum lmq_status status = LMQ_OK;

    for (; from < to && status == LMQ_OK; from += sizeof(bytes)) {
        size_t n = (size_t)lmq_u64_min(sizeof(bytes), to - from), i = 0;
        status = lmq_input_read(check->input, from, bytes, n, err);
        while (status == LMQ_OK && i < n && bytes[i] == 0)
            i++;
        if (status == LMQ_OK && i < n) {
            add_problem(check, "padding", "", from + i, "padding is not zero");
            break;
        }
    }
    return status;
}

static enum lmq_status
check_padding(struct check *check, struct lmq_error *err)
{
    struct lmq_span *spans;
    size_t n = 0;
    enum lmq_status status =
        lmq_container_spans(&check->container, &spans, &n, err);

    for (size_t i = 1; i < n && status == LMQ_OK; i++)
        status = check_gap(
            check, spans[i - 1].extent.offset + spans[i - 1].extent.size,
            spans[i].extent.offset, err);
    free(spans);
    return status;
}

static enum lmq_status
check_sections(struct check *check, struct lmq_error *err)
{
    static const char *const names[LMQ_SECTION_KNOWN_END] = {
        "", "metadata", "directory", "file", "statistics", "digests"};
    const struct lmq_container *container = &check->container;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_sections && status == LMQ_OK; i++) {
        const struct lmq_section *section = &container->sections[i];
        status = check_extent(check, &section->stored, CONTENT_ANY, NULL,
                              section->type < LMQ_SECTION_KNOWN_END
                                  ? names[section->type]
                                  : "unknown",
                              section->name, err);
    }
    return status;
}

static enum lmq_status
check_tensor(struct check *check, const struct lmq_record *record,
             struct lmq_error *err)
{
    static const struct {
        const char *name;
        enum content content;
    } parts[LMQ_N_EXTENTS] = {
        [LMQ_VALUES] = {"values", CONTENT_VALUES},
        [LMQ_SCALES] = {"scales", CONTENT_SCALES},
        [LMQ_ZEROS] = {"zero points", CONTENT_ANY},
        [LMQ_SUPERS] = {"scales of scales", CONTENT_ANY},
    };
    bool is_q8 = record->encoding == LMQ_ENCODING_Q8;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < LMQ_N_EXTENTS && status == LMQ_OK; i++)
        if (record->extents[i].size > 0)
            status = check_extent(
                check, &record->extents[i],
                is_q8 ? parts[i].content : CONTENT_ANY, record,
                record->encoding == LMQ_ENCODING_PLAIN ? "tensor"
                                                       : parts[i].name,
                record->name, err);
    return status;
}

/* ---- Digests ---- */

static enum lmq_status
check_chunks(struct check *check, struct lmq_digests *own, size_t index,
             struct lmq_error *err)
{
    const struct lmq_record *record = &check->container.records[index];
    const struct lmq_digests *stored = check->container.digests;
    unsigned char *chunks = own->chunks + own->first[index] * LMQ_SHA256_SIZE;
    const struct lmq_digest_part part = {check->input, record, chunks};

    if (record->encoding == LMQ_ENCODING_ALIAS)
        return LMQ_OK;
    if (record->encoding == LMQ_ENCODING_UNKNOWN) {
        check->lacks_content = true;
        return LMQ_OK;
    }
    enum lmq_status status = lmq_digesting_tensor(
        &check->digesting, &part, 1, own->chunk_log2,
        own->tensors + index * LMQ_SHA256_SIZE, err);
    if (status != LMQ_OK)
        return status;
    uint64_t offset = record->extents[LMQ_VALUES].offset;
    uint64_t end = index + 1 < check->container.n_records
                       ? own->first[index + 1]
                       : own->n;
    if (stored != NULL &&
        memcmp(stored->chunks + own->first[index] * LMQ_SHA256_SIZE,
               chunks, (size_t)(end - own->first[index]) * LMQ_SHA256_SIZE) != 0)
        add_problem(check, "digests", record->name, offset,
                    "the SHA-256 of the tensor does not match");
    return LMQ_OK;
}

static enum lmq_status
check_tensors(struct check *check, struct lmq_error *err)
{
    const struct lmq_container *container = &check->container;
    struct lmq_digests *own =
        check->has_digesting ? &check->own[check->n_own - 1] : NULL;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_records && status == LMQ_OK; i++) {
        status = check_tensor(check, &container->records[i], err);
        /* While the system has it in memory. Of what is damaged anyway no
         * digest is of interest. */
        if (status == LMQ_OK && own != NULL &&
            json_array_size(check->problems) == 0)
            status = check_chunks(check, own, i, err);
    }
    return status;
}

static enum lmq_status
check_root(struct check *check, struct lmq_error *err)
{
    const struct lmq_digests *stored = check->container.digests;
    unsigned char root[LMQ_SHA256_SIZE];

    if (stored == NULL || json_array_size(check->problems) > 0)
        return LMQ_OK;
    enum lmq_status status =
        lmq_verify_root(check->input, &check->container, root, err);
    if (status != LMQ_OK)
        return status;
    if (memcmp(root, stored->root, LMQ_SHA256_SIZE) != 0)
        add_problem(check, "digests", "", 0, "the root does not match");
    else if (check->wanted != NULL &&
             memcmp(root, check->wanted, LMQ_SHA256_SIZE) == 0)
        check->matches = "root";
    return LMQ_OK;
}

/* The one that was named came first, then the others in their order. */
static const struct lmq_digests **
sort_own(const struct check *check, size_t named)
{
    const struct lmq_digests **members = calloc(check->n_own, sizeof(*members));

    for (size_t i = 0; members != NULL && i < check->n_own; i++)
        members[i == 0 ? named : i <= named ? i - 1 : i] = &check->own[i];
    return members;
}

/* What every file says of it. */
static void
compare_content(struct check *check, const struct lmq_checkpoint *checkpoint,
                const unsigned char content[LMQ_SHA256_SIZE])
{
    const struct lmq_set *set = lmq_checkpoint_set(checkpoint);
    char text[LMQ_DIGEST_TEXT];

    for (size_t i = 0; i < set->n_members; i++) {
        const struct lmq_digests *stored = set->members[i].digests;
        check->file = base_of(lmq_input_path(checkpoint->files[i]));
        if (stored != NULL &&
            memcmp(content, stored->content, LMQ_SHA256_SIZE) != 0)
            add_problem(check, "digests", "", 0,
                        "the digest of the content does not match");
    }
    if (check->wanted != NULL &&
        memcmp(content, check->wanted, LMQ_SHA256_SIZE) == 0)
        check->matches = "content";
    lmq_digest_print(content, text);
    lmq_put(&check->digests, "content", json_string(text));
    lmq_put(&check->digests, "content_checked",
            json_boolean(json_array_size(check->problems) == 0));
}

/* Of all of it, which is open and without problems. */
static enum lmq_status
check_content(struct check *check, const struct lmq_checkpoint *checkpoint,
              size_t named, struct lmq_error *err)
{
    unsigned char content[LMQ_SHA256_SIZE];
    struct lmq_error found = {0};

    if (check->lacks_content || check->n_own != checkpoint->n_files)
        return LMQ_OK;
    const struct lmq_digests **members = sort_own(check, named);
    if (members == NULL)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_verify_content(
        checkpoint, members, check->threads, content, &found);
    free(members);
    if (status == LMQ_OK) {
        compare_content(check, checkpoint, content);
        status = check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    } else if (status == LMQ_ERR_FORMAT) { /* of the embedded files */
        add_problem(check, "contents", "", found.offset, found.message);
        status = LMQ_OK;
    } else if (err != NULL) {
        *err = found;
    }
    return status;
}

static enum lmq_status
fail_mismatch(const struct check *check, struct lmq_error *err)
{
    const json_t *root = json_object_get(check->digests, "root");
    const json_t *content = json_object_get(check->digests, "content");

    if (!json_is_true(json_object_get(check->digests, "content_checked"))) {
        lmq_fail(err, LMQ_ERR_UNSUPPORTED, 0,
                 "its content has no digest here: it has tensors of kinds "
                 "that this version does not know, or is one of a set");
        lmq_hint(err, ".against can only be its root, if it has one");
        return LMQ_ERR_UNSUPPORTED;
    }
    return json_is_null(root)
               ? lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is not what was asked for: its content is %s, and "
                          "it has no root",
                          json_string_value(content))
               : lmq_fail(err, LMQ_ERR_FORMAT, 0,
                          "is not what was asked for: its root is %s, its "
                          "content %s",
                          json_string_value(root),
                          json_string_value(content));
}

/* "sha256:" or nothing, and 64 hexadecimal digits. */
static enum lmq_status
parse_wanted(const char *text, unsigned char wanted[LMQ_SHA256_SIZE],
             struct lmq_error *err)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
    bool is_right = strlen(p) == 2 * LMQ_SHA256_SIZE;

    for (size_t i = 0; is_right && i < 2 * LMQ_SHA256_SIZE; i++) {
        int letter = p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 'a' : p[i];
        const char *digit = strchr(digits, letter);
        is_right = digit != NULL;
        if (is_right)
            wanted[i / 2] = (unsigned char)((i % 2 == 0 ? 0 : wanted[i / 2] * 16) +
                                            (digit - digits));
    }
    return is_right ? LMQ_OK
                    : lmq_fail(err, LMQ_ERR_ARG, 0,
                               ".against is '%.80s', expected 64 hexadecimal "
                               "digits, with sha256: before them or without",
                               text);
}

/* ---- Files ---- */

/* What the file says, until it is computed. */
static json_t *
describe_digests(const struct check *check)
{
    const struct lmq_digests *stored = check->container.digests;
    json_t *json = json_object();
    char text[LMQ_DIGEST_TEXT];

    if (!check->has_digesting && stored == NULL) {
        json_decref(json);
        return json_null();
    }
    if (stored != NULL)
        lmq_digest_print(stored->root, text);
    lmq_put(&json, "root", stored == NULL ? json_null() : json_string(text));
    if (stored != NULL)
        lmq_digest_print(stored->content, text);
    lmq_put(&json, "content",
            stored == NULL ? json_null() : json_string(text));
    lmq_put(&json, "checked",
            json_boolean(check->has_digesting &&
                         json_array_size(check->problems) == 0));
    lmq_put(&json, "content_checked", json_false());
    return json;
}

/* Of a set that has none its content can be asked for. */
static enum lmq_status
begin_digests(struct check *check, struct lmq_error *err)
{
    const struct lmq_digests *stored = check->container.digests;

    check->has_digesting =
        check->can_digest && (stored != NULL || check->wanted != NULL);
    if (!check->has_digesting)
        return LMQ_OK;
    if (lmq_mem_grow(&check->own, &check->own_capacity, check->n_own + 1,
                     sizeof(*check->own)) != 0)
        return lmq_fail_nomem(err);
    enum lmq_status status = lmq_digests_make(
        check->container.records, check->container.n_records,
        stored == NULL ? LMQ_CHUNK_LOG2 : stored->chunk_log2,
        &check->own[check->n_own++], err);
    return status == LMQ_OK
               ? lmq_digesting_open(&check->digesting,
                                    lmq_input_size(check->input),
                                    check->threads, err)
               : status;
}

static enum lmq_status
check_bytes(struct check *check, struct lmq_error *err)
{
    enum lmq_status status = lmq_workers_open(
        &check->workers, check->threads,
        (size_t)lmq_u64_min(lmq_input_size(check->input) / CHUNK, LMQ_RANGES),
        CHUNK, NULL, NULL, NULL, err);

    if (status == LMQ_OK)
        status = begin_digests(check, err);
    if (status == LMQ_OK)
        status = check_sections(check, err);
    if (status == LMQ_OK)
        status = check_tensors(check, err);
    if (status == LMQ_OK)
        status = check_padding(check, err);
    if (status == LMQ_OK && check->has_digesting)
        status = check_root(check, err);
    if (status == LMQ_OK && check->digests == NULL) {
        check->digests = describe_digests(check);
        status = check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    }
    lmq_digesting_close(&check->digesting);
    lmq_workers_close(&check->workers);
    return status;
}

static void
end_file(struct check *check)
{
    lmq_container_free(&check->container);
    lmq_input_close(check->input);
    check->input = NULL;
}

/* Leaves the file open. */
static enum lmq_status
check_file(struct check *check, const char *path, struct lmq_error *err)
{
    struct lmq_error frame;

    check->file = base_of(path);
    enum lmq_status status = lmq_input_open(path, &check->input, err);
    if (status != LMQ_OK)
        return status;
    check->n_files++;
    check->n_bytes += lmq_input_size(check->input);
    status = lmq_container_load(check->input, &check->container, &frame);
    if (status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED) {
        add_problem(check, "frame", "", frame.offset, frame.message);
        check->frame = frame;
        return LMQ_OK;
    }
    if (status != LMQ_OK && err != NULL)
        *err = frame;
    check->n_sections += check->container.n_sections;
    check->n_tensors += check->container.n_records;
    return status == LMQ_OK ? check_bytes(check, err) : status;
}

/* ---- Sets ---- */

/* So many names tell enough. */
#define MISSING_SHOWN 4

static void
add_missing(struct check *check, const char *path, uint32_t n_missing)
{
    check->file = base_of(path);
    if (n_missing < MISSING_SHOWN)
        add_problem(check, "set", "", 0, "is missing");
    else if (n_missing == MISSING_SHOWN)
        add_problem(check, "set", "", 0, "is missing, as are others");
}

/* The members but the one that is done. */
static enum lmq_status
check_members(struct check *check, const char *named,
              const struct lmq_member_name *name, struct lmq_error *err)
{
    uint32_t n_missing = 0;
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 1; i <= name->n_members && status == LMQ_OK; i++) {
        if (i == name->member)
            continue;
        char *path = lmq_member_name_make(named, name->n_stem, i,
                                          name->n_members, name->ending);
        if (path == NULL)
            return lmq_fail_nomem(err);
        if (lmq_file_exists(path, &status, err)) {
            status = check_file(check, path, err);
            end_file(check);
            lmq_error_in(err, path);
        } else if (status == LMQ_OK) {
            add_missing(check, path, n_missing++);
        }
        free(path);
    }
    check->file = base_of(named);
    return status;
}

/* For the progress: how many bytes there are. */
static uint64_t
size_of_members(const char *named, const struct lmq_member_name *name)
{
    uint64_t n = 0;

    for (uint32_t i = 1; i <= name->n_members; i++) {
        struct lmq_file_stamp stamp;
        char *path = lmq_member_name_make(named, name->n_stem, i,
                                          name->n_members, name->ending);
        if (path != NULL && lmq_file_stamp(path, &stamp, NULL) == LMQ_OK)
            n += stamp.size;
        free(path);
    }
    return n;
}

/* ---- All of it ---- */

/* Opening checks what the parts mean to each other: names, aliases, the
 * model's description, what deflated sections hold, the members of a set.
 * Then there is a whole, of which the content can be computed. */
static enum lmq_status
check_opening(struct check *check, const char *path, size_t named,
              struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error found;

    if (json_array_size(check->problems) > 0)
        return LMQ_OK; /* it would only say the same again */
    enum lmq_status status =
        lmq_checkpoint_open(path, NULL, &checkpoint, &found);
    if (status == LMQ_OK) {
        status = check_content(check, checkpoint, named, err);
    } else if (lmq_status_is_of_system(status)) {
        if (err != NULL)
            *err = found;
    } else {
        check->file = base_of(found.path);
        add_problem(check, "contents", "", found.offset, found.message);
        status = LMQ_OK;
    }
    lmq_checkpoint_close(checkpoint);
    return status;
}

/* Of a member with a name that leads to the others, and not alone. */
static enum lmq_status
check_all(struct check *check, const char *path, bool is_alone,
          struct lmq_error *err)
{
    struct lmq_member_name name;

    check->counter.total = lmq_input_size(check->input);
    end_file(check);
    enum lmq_status status = check_file(check, path, err);
    const struct lmq_superblock sb = check->container.superblock;
    bool has_others = !is_alone && sb.n_members > 1 &&
                      lmq_member_name_parse(path, &name) &&
                      name.member == sb.member &&
                      name.n_members == sb.n_members;
    end_file(check);
    if (status != LMQ_OK)
        return status;
    if (has_others) {
        check->counter.total = size_of_members(path, &name);
        status = check_members(check, path, &name, err);
    }
    return status == LMQ_OK && !(is_alone && sb.n_members > 0)
               ? check_opening(check, path,
                               has_others ? sb.member - 1 : 0, err)
               : status;
}

static enum lmq_status
make_report(const struct check *check, const char *path,
            struct lmq_report **report, struct lmq_error *err)
{
    json_t *json = json_object();

    lmq_put(&json, "path", lmq_json_text(path));
    lmq_put(&json, "intact",
            json_boolean(json_array_size(check->problems) == 0));
    lmq_put(&json, "files", lmq_json_size(check->n_files));
    lmq_put(&json, "bytes", lmq_json_size(check->n_bytes));
    lmq_put(&json, "sections", lmq_json_size(check->n_sections));
    lmq_put(&json, "tensors", lmq_json_size(check->n_tensors));
    lmq_put(&json, "digests",
            check->digests == NULL ? json_null()
                                   : json_incref(check->digests));
    lmq_put(&json, "problems", json_incref(check->problems));
    return lmq_report_finish(json, report, err);
}

/* A checkpoint of another format is not damaged, it has no checksums. */
static enum lmq_status
check_format(struct lmq_input *input, const char *path, struct lmq_error *err)
{
    unsigned char head[sizeof(lmq_magic)];
    bool is_known = false;

    if (lmq_input_size(input) < sizeof(head))
        return LMQ_OK;
    enum lmq_status status =
        lmq_input_read(input, 0, head, sizeof(head), err);
    if (status == LMQ_OK && memcmp(head, lmq_magic, sizeof(head)) != 0)
        status = lmq_checkpoint_recognises(path, &is_known, err);
    if (status != LMQ_OK || !is_known)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "is a checkpoint of another format, and no .lmq container");
    lmq_hint(err, "only containers have checksums; inspect and diff read "
                  "every format");
    return LMQ_ERR_FORMAT;
}

/* A failure that says what was found. */
static enum lmq_status
fail_damaged(const struct check *check, struct lmq_error *err)
{
    size_t n = json_array_size(check->problems);

    if (n == 1 && check->frame.status != LMQ_OK) {
        if (err != NULL)
            *err = check->frame;
        return check->frame.status;
    }
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "is damaged in %zu place%s", n,
             n == 1 ? "" : "s");
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
end_digests(struct check *check, struct lmq_error *err)
{
    if (check->wanted == NULL || !json_is_object(check->digests))
        return LMQ_OK;
    lmq_put(&check->digests, "matches",
            check->matches == NULL ? json_null()
                                   : json_string(check->matches));
    return check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
verify(struct check *check, const char *path, bool is_alone,
       struct lmq_report **report, struct lmq_error *err)
{
    enum lmq_status status = lmq_input_open(path, &check->input, err);
    if (status == LMQ_OK)
        status = check_format(check->input, path, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_input_close(check->input);
        return status;
    }
    check->problems = json_array();
    status = check_all(check, path, is_alone, err);
    if (status == LMQ_OK)
        status = end_digests(check, err);
    if (status == LMQ_OK)
        status = make_report(check, path, report, err);
    if (status == LMQ_OK && json_array_size(check->problems) > 0)
        status = fail_damaged(check, err);
    if (status == LMQ_OK && check->wanted != NULL && check->matches == NULL)
        status = fail_mismatch(check, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    for (size_t i = 0; i < check->n_own; i++)
        lmq_digests_free(&check->own[i]);
    free(check->own);
    json_decref(check->digests);
    json_decref(check->problems);
    end_file(check);
    return status;
}

/* `path` may be a folder. */
static enum lmq_status
verify_set(struct check *check, const char *path, struct lmq_report **report,
           struct lmq_error *err)
{
    struct lmq_probe probe;
    char *found = NULL;
    enum lmq_status status = lmq_probe_look(path, &probe, err);

    if (status == LMQ_OK && probe.is_folder)
        status = lmq_folder_find_checkpoint(path, &found, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    else
        status = verify(check, found == NULL ? path : found, false, report,
                        err);
    free(found);
    return status;
}

static enum lmq_status
verify_so(const char *path, bool is_alone,
          const struct lmq_verify_options *given,
          const struct lmq_progress *progress, struct lmq_report **report,
          struct lmq_error *err)
{
    struct lmq_verify_options options;
    unsigned char wanted[LMQ_SHA256_SIZE];
    /* Without a library digests that are there stay unchecked. */
    struct check check = {.counter = {.progress = progress,
                                      .stage = "verifying"},
                          .can_digest = lmq_sha256_is_there()};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_verify_options, &options, given, err);
    if (status == LMQ_OK && options.against != NULL) {
        check.wanted = wanted;
        status = parse_wanted(options.against, wanted, err);
        if (status == LMQ_OK)
            status = lmq_sha256_need(err);
    }
    if (status != LMQ_OK)
        return status;
    check.threads = options.threads;
    return is_alone ? verify(&check, path, true, report, err)
                    : verify_set(&check, path, report, err);
}

enum lmq_status
lmq_verify(const char *path, const struct lmq_verify_options *options,
           const struct lmq_progress *progress, struct lmq_report **report,
           struct lmq_error *err)
{
    return verify_so(path, false, options, progress, report, err);
}

enum lmq_status
lmq_verify_file(const char *path, const struct lmq_verify_options *options,
                const struct lmq_progress *progress,
                struct lmq_report **report, struct lmq_error *err)
{
    return verify_so(path, true, options, progress, report, err);
}

/* Only that nothing is damaged: who converts reads all of it again. */
enum lmq_status
lmq_checkpoint_verify(const struct lmq_checkpoint *checkpoint, int threads,
                      const struct lmq_progress *progress,
                      struct lmq_error *err)
{
    struct check check = {.counter = {.progress = progress,
                                      .stage = "verifying"},
                          .threads = threads};

    if (!checkpoint->format->has_checksums)
        return LMQ_OK;
    enum lmq_status status = verify_set(&check, checkpoint->path, NULL, err);
    if (status == LMQ_ERR_FORMAT)
        lmq_hint(err, "lmquant verify says where");
    return status;
}
