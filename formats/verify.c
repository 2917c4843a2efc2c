/*
 * verify.c - checks every byte of a container, or of all members of a set.
 *
 * Of each file the frame first (opening does that); then each section's and
 * each tensor's checksum, the padding between them, and that values and scales
 * are legal. What the files mean to each other, opening the whole tells.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/tasks.h"
#include "formats/checkpoint/member_name.h"
#include "formats/folder.h"
#include "formats/lmq/lmq.h"
#include "formats/open.h"
#include "formats/probe.h"

#define CHUNK ((size_t)1 << 20)
#define WINDOW 64

struct check {
    /* Of the file that is looked at: */
    const char *file; /* its name, without folder */
    struct lmq_input *input;
    struct lmq_container container;
    struct lmq_workers workers; /* with CHUNK bytes each */
    /* Of all of them: */
    int threads;
    const struct lmq_progress *progress;
    uint64_t n_done, n_total, n_bytes, n_sections, n_tensors;
    uint32_t n_files;
    json_t *problems;
    struct lmq_error frame; /* why one cannot be opened; or LMQ_OK */
};

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

struct chunk {
    uint64_t at; /* in the extent */
    size_t size;
    uint32_t crc;
    bool is_legal;
};

/* An extent on its way; its chunks are the pieces. */
struct reading {
    struct check *check;
    const struct lmq_extent *extent;
    enum content content;
    const struct lmq_record *record;
    uint64_t next;
    struct chunk chunks[WINDOW];
    uint32_t crc; /* of those that were merged */
    bool is_legal;
};

static bool
next_chunk(void *context, size_t slot)
{
    struct reading *reading = context;
    uint64_t left = reading->extent->size - reading->next;

    if (left == 0)
        return false;
    reading->chunks[slot] = (struct chunk){
        .at = reading->next, .size = (size_t)lmq_u64_min(CHUNK, left)};
    reading->next += reading->chunks[slot].size;
    return true;
}

static enum lmq_status
check_chunk(void *context, size_t slot, void *bytes, struct lmq_error *err)
{
    struct reading *reading = context;
    struct chunk *chunk = &reading->chunks[slot];
    const struct lmq_record *record = reading->record;
    enum lmq_status status = lmq_input_read(
        reading->check->input, reading->extent->offset + chunk->at, bytes,
        chunk->size, err);

    if (status != LMQ_OK)
        return status;
    chunk->crc = lmq_crc32(0, bytes, chunk->size);
    chunk->is_legal = true;
    if (reading->content == CONTENT_VALUES)
        chunk->is_legal =
            memchr(bytes, illegal_value(record), chunk->size) == NULL;
    if (reading->content == CONTENT_SCALES)
        chunk->is_legal =
            has_legal_scales(bytes, chunk->size, record->quant.scales);
    return LMQ_OK;
}

static enum lmq_status
merge_chunk(void *context, size_t slot, struct lmq_error *err)
{
    struct reading *reading = context;
    const struct chunk *chunk = &reading->chunks[slot];

    (void)err;
    reading->crc = (uint32_t)crc32_combine(reading->crc, chunk->crc,
                                           (off_t)chunk->size);
    reading->is_legal &= chunk->is_legal;
    reading->check->n_done += chunk->size;
    return LMQ_OK;
}

static enum lmq_status
report_progress(void *context, struct lmq_error *err)
{
    const struct check *check = ((struct reading *)context)->check;

    return lmq_progress_report(check->progress, "verifying", check->n_done,
                               check->n_total, err);
}

static enum lmq_status
check_extent(struct check *check, const struct lmq_extent *extent,
             enum content content, const struct lmq_record *record,
             const char *section, const char *name, struct lmq_error *err)
{
    struct reading reading = {.check = check, .extent = extent,
                              .content = content, .record = record,
                              .is_legal = true};
    const struct lmq_tasks tasks = {
        .window = WINDOW,
        .context = &reading,
        .next = next_chunk,
        .piece = check_chunk,
        .merge = merge_chunk,
        .report = report_progress,
    };
    enum lmq_status status = lmq_tasks_run(&tasks, &check->workers, err);

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
        "", "metadata", "directory", "file", "statistics"};
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

static enum lmq_status
check_tensors(struct check *check, struct lmq_error *err)
{
    const struct lmq_container *container = &check->container;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_records && status == LMQ_OK; i++)
        status = check_tensor(check, &container->records[i], err);
    return status;
}

/* ---- Files ---- */

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static enum lmq_status
check_content(struct check *check, struct lmq_error *err)
{
    enum lmq_status status = lmq_workers_open(
        &check->workers, check->threads,
        (size_t)lmq_u64_min(lmq_input_size(check->input) / CHUNK, WINDOW),
        CHUNK, NULL, NULL, NULL, err);

    if (status == LMQ_OK)
        status = check_sections(check, err);
    if (status == LMQ_OK)
        status = check_tensors(check, err);
    if (status == LMQ_OK)
        status = check_padding(check, err);
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
    return status == LMQ_OK ? check_content(check, err) : status;
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
 * model's description, what deflated sections hold, the members of a set. */
static enum lmq_status
check_opening(struct check *check, const char *path, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error found;

    if (json_array_size(check->problems) > 0)
        return LMQ_OK; /* it would only say the same again */
    enum lmq_status status =
        lmq_checkpoint_open(path, NULL, &checkpoint, &found);
    lmq_checkpoint_close(checkpoint);
    if (lmq_status_is_of_system(status)) {
        if (err != NULL)
            *err = found;
        return status;
    }
    if (status == LMQ_OK)
        return LMQ_OK;
    check->file = base_of(found.path);
    add_problem(check, "contents", "", found.offset, found.message);
    return LMQ_OK;
}

/* Of a member with a name that leads to the others, and not alone. */
static enum lmq_status
check_all(struct check *check, const char *path, bool is_alone,
          struct lmq_error *err)
{
    struct lmq_member_name name;

    check->n_total = lmq_input_size(check->input);
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
        check->n_total = size_of_members(path, &name);
        status = check_members(check, path, &name, err);
    }
    return status == LMQ_OK && !(is_alone && sb.n_members > 0)
               ? check_opening(check, path, err)
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
verify(const char *path, bool is_alone, int threads,
       const struct lmq_progress *progress, struct lmq_report **report,
       struct lmq_error *err)
{
    struct check check = {.threads = threads, .progress = progress};

    enum lmq_status status = lmq_input_open(path, &check.input, err);
    if (status == LMQ_OK)
        status = check_format(check.input, path, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_input_close(check.input);
        return status;
    }
    check.problems = json_array();
    status = check_all(&check, path, is_alone, err);
    if (status == LMQ_OK)
        status = make_report(&check, path, report, err);
    if (status == LMQ_OK && json_array_size(check.problems) > 0)
        status = fail_damaged(&check, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    json_decref(check.problems);
    end_file(&check);
    return status;
}

enum lmq_status
lmq_verify(const char *path, int threads, const struct lmq_progress *progress,
           struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_probe probe;
    char *found = NULL;

    if (report != NULL)
        *report = NULL;
    enum lmq_status status = lmq_probe_look(path, &probe, err);
    if (status == LMQ_OK && probe.is_folder)
        status = lmq_folder_find_checkpoint(path, &found, err);
    if (status != LMQ_OK)
        lmq_error_in(err, path);
    else
        status = verify(found == NULL ? path : found, false, threads, progress,
                        report, err);
    free(found);
    return status;
}

enum lmq_status
lmq_verify_file(const char *path, int threads,
                const struct lmq_progress *progress,
                struct lmq_report **report, struct lmq_error *err)
{
    if (report != NULL)
        *report = NULL;
    return verify(path, true, threads, progress, report, err);
}

enum lmq_status
lmq_checkpoint_verify(const struct lmq_checkpoint *checkpoint, int threads,
                      const struct lmq_progress *progress,
                      struct lmq_error *err)
{
    if (!checkpoint->format->has_checksums)
        return LMQ_OK;
    enum lmq_status status =
        lmq_verify(checkpoint->path, threads, progress, NULL, err);
    if (status == LMQ_ERR_FORMAT)
        lmq_hint(err, "lmquant verify says where");
    return status;
}
