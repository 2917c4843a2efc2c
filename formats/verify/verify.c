/*
 * verify.c - checks every byte of a container, or of all members of a set.
 *
 * Of each file the frame first (opening does that); then each section's and
 * each tensor's checksum, the padding between them, and that values and scales
 * are legal; digests, if there are some or one is asked for. What the files
 * mean to each other, opening the whole tells.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/size.h"
#include "base/threads/tasks.h"
#include "formats/checkpoint/member_name.h"
#include "formats/folder.h"
#include "formats/lmq/lmq.h"
#include "formats/open.h"
#include "formats/probe.h"
#include "formats/verify/verify_against.h"
#include "formats/verify/verify_bytes.h"

/* ---- Files ---- */

static enum lmq_status
check_tensors(struct lmq_check *check, struct lmq_error *err)
{
    const struct lmq_container *container = &check->container;
    struct lmq_digests *own =
        check->has_digesting ? &check->own[check->n_own - 1] : NULL;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < container->n_records && status == LMQ_OK; i++) {
        status = lmq_check_tensor(check, &container->records[i], err);
        /* While the system has it in memory. Of what is damaged anyway no
         * digest is of interest. */
        if (status == LMQ_OK && own != NULL &&
            json_array_size(check->problems) == 0)
            status = lmq_check_chunks(check, own, i, err);
    }
    return status;
}

static enum lmq_status
check_bytes(struct lmq_check *check, struct lmq_error *err)
{
    enum lmq_status status = lmq_workers_open(
        &check->workers, check->threads,
        (size_t)lmq_u64_min(lmq_input_size(check->input) / LMQ_CHECK_CHUNK,
                            LMQ_RANGES),
        LMQ_CHECK_CHUNK, NULL, NULL, NULL, err);

    if (status == LMQ_OK)
        status = lmq_check_begin_digests(check, err);
    if (status == LMQ_OK)
        status = lmq_check_sections(check, err);
    if (status == LMQ_OK)
        status = check_tensors(check, err);
    if (status == LMQ_OK)
        status = lmq_check_padding(check, err);
    if (status == LMQ_OK && check->has_digesting)
        status = lmq_check_root(check, err);
    if (status == LMQ_OK && check->digests == NULL) {
        check->digests = lmq_check_describe_digests(check);
        status = check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
    }
    lmq_digesting_close(&check->digesting);
    lmq_workers_close(&check->workers);
    return status;
}

/* The next one may be opened. */
static void
end_file(struct lmq_check *check)
{
    lmq_container_free(&check->container);
    lmq_input_close(check->input);
    check->input = NULL;
}

static enum lmq_status
open_and_check(struct lmq_check *check, const char *path, struct lmq_error *err)
{
    struct lmq_error frame;

    check->file = lmq_path_base(path);
    enum lmq_status status = lmq_input_open(path, &check->input, err);
    if (status != LMQ_OK)
        return status;
    check->n_files++;
    check->n_bytes += lmq_input_size(check->input);
    status = lmq_container_load(check->input, &check->container, &frame);
    if (status == LMQ_ERR_FORMAT || status == LMQ_ERR_UNSUPPORTED) {
        lmq_check_add(check, "frame", "", frame.offset, frame.message);
        lmq_error_in(&frame, path);
        check->frame = frame;
        return LMQ_OK;
    }
    if (status != LMQ_OK)
        lmq_fail_as(err, &frame);
    check->n_sections += check->container.n_sections;
    check->n_tensors += check->container.n_records;
    return status == LMQ_OK ? check_bytes(check, err) : status;
}

/* Leaves the file open. What somebody writes to meanwhile is not damaged. */
static enum lmq_status
check_file(struct lmq_check *check, const char *path, struct lmq_error *err)
{
    struct lmq_file_stamp stamp;
    size_t n = json_array_size(check->problems);
    enum lmq_status status = lmq_file_stamp(path, &stamp, err);

    if (status == LMQ_OK)
        status = open_and_check(check, path, err);
    return status == LMQ_OK && json_array_size(check->problems) > n
               ? lmq_file_unchanged(path, &stamp, err)
               : status;
}

/* ---- Sets ---- */

/* So many names tell enough. */
#define MISSING_SHOWN 4

/* A member that is not there is a problem like any other. */
static void
add_missing(struct lmq_check *check, const char *path, uint32_t n_missing)
{
    check->file = lmq_path_base(path);
    if (n_missing < MISSING_SHOWN)
        lmq_check_add(check, "set", "", 0, "is missing");
    else if (n_missing == MISSING_SHOWN)
        lmq_check_add(check, "set", "", 0, "is missing, as are others");
}

/* The members but the one that is done. */
static enum lmq_status
check_members(struct lmq_check *check, const char *named,
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
    check->file = lmq_path_base(named);
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
check_opening(struct lmq_check *check, const char *path, size_t named,
              struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint;
    struct lmq_error found;

    if (json_array_size(check->problems) > 0)
        return LMQ_OK; /* it would only say the same again */
    enum lmq_status status =
        lmq_checkpoint_open(path, NULL, &checkpoint, &found);
    if (status == LMQ_OK) {
        status = lmq_check_content(check, checkpoint, named, err);
    } else if (lmq_status_is_of_system(status)) {
        lmq_fail_as(err, &found);
    } else {
        check->file = lmq_path_base(found.path);
        lmq_check_add(check, "contents", "", found.offset, found.message);
        status = LMQ_OK;
    }
    lmq_checkpoint_close(checkpoint);
    return status;
}

/* Of a member with a name that leads to the others, and not alone. */
static enum lmq_status
check_all(struct lmq_check *check, const char *path, bool is_alone,
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

/* Also of what is damaged: the report names the places, the error counts them.
 */
static enum lmq_status
make_report(const struct lmq_check *check, const char *path,
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

/* What never was a container is not damaged, it has no checksums. */
static enum lmq_status
fail_other(const char *path, const char *unknown, struct lmq_error *err)
{
    bool is_known = false;
    enum lmq_status status = lmq_checkpoint_recognises(path, &is_known, err);

    if (status != LMQ_OK)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "%s",
             is_known ? "is a checkpoint of another format, and no .lmq "
                        "container"
                      : unknown);
    lmq_hint(err, "only containers have checksums; inspect and diff read "
                  "every format");
    return LMQ_ERR_FORMAT;
}

/* A mangled magic number is that of a container. */
static enum lmq_status
check_format(struct lmq_input *input, const char *path, struct lmq_error *err)
{
    unsigned char head[sizeof(lmq_magic)];

    if (lmq_input_size(input) < sizeof(head))
        return LMQ_OK;
    enum lmq_status status =
        lmq_input_read(input, 0, head, sizeof(head), err);
    return status == LMQ_OK && memcmp(head + 1, lmq_magic + 1, 3) != 0
               ? fail_other(path, "is no .lmq container", err)
               : status;
}

/* A failure that says what was found. */
static enum lmq_status
fail_damaged(const struct lmq_check *check, struct lmq_error *err)
{
    size_t n = json_array_size(check->problems);

    if (n == 1 && check->frame.status != LMQ_OK)
        return lmq_fail_as(err, &check->frame);
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "is damaged in %zu place%s", n,
             n == 1 ? "" : "s");
    return LMQ_ERR_FORMAT;
}

/* What the digest that was asked for turned out to be. */
static enum lmq_status
end_digests(struct lmq_check *check, struct lmq_error *err)
{
    if (check->wanted == NULL || !json_is_object(check->digests))
        return LMQ_OK;
    lmq_put(&check->digests, "matches",
            check->matches == NULL ? json_null()
                                   : json_string(check->matches));
    return check->digests == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
verify(struct lmq_check *check, const char *path, bool is_alone,
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
        status = lmq_check_fail_mismatch(check, err);
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

/* The container in a folder that is no checkpoint itself; *path is owned. */
static enum lmq_status
find_in(const struct lmq_probe *probe, char **path, struct lmq_error *err)
{
    struct lmq_probe own = *probe;
    const struct lmq_format *format;
    enum lmq_status status = lmq_probe_recognise(&own, &format, err);

    if (status == LMQ_OK && format == NULL)
        status = lmq_folder_find_checkpoint(probe->path, path, err);
    if (status != LMQ_OK || *path != NULL)
        return status;
    if (format == NULL)
        return fail_other(probe->path, "the folder holds no .lmq container",
                          err);
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "the folder is a checkpoint of another format (%s)",
             format->name);
    lmq_hint(err, "only containers have checksums; one that lies in it has to "
                  "be named itself");
    return LMQ_ERR_FORMAT;
}

/* `path` may be a folder. */
static enum lmq_status
verify_set(struct lmq_check *check, const char *path,
           struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_probe probe;
    char *found = NULL;
    enum lmq_status status = lmq_probe_look(path, &probe, err);

    if (status == LMQ_OK && probe.is_folder)
        status = find_in(&probe, &found, err);
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
    struct lmq_check check = {.counter = {.progress = progress,
                                      .stage = "verifying"},
                          .can_digest = lmq_sha256_is_there()};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_verify_options, &options, given, err);
    if (status == LMQ_OK && options.against != NULL) {
        check.wanted = wanted;
        status = lmq_check_parse_wanted(options.against, wanted, err);
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

enum lmq_status
lmq_verify_checkpoint(const struct lmq_checkpoint *checkpoint,
                      const struct lmq_verify_options *options,
                      const struct lmq_progress *progress,
                      struct lmq_report **report, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_verify(checkpoint->path, options, progress, report, err);

    if (status != LMQ_OK)
        return status;
    /* What was looked at is what stands there now: is that what is open? */
    status = lmq_originals_unchanged(&checkpoint->originals, err);
    if (status != LMQ_OK && report != NULL) {
        lmq_report_free(*report);
        *report = NULL;
    }
    return status;
}

/* Only that nothing is damaged: who converts reads all of it again. */
enum lmq_status
lmq_checkpoint_verify(const struct lmq_checkpoint *checkpoint, int threads,
                      const struct lmq_progress *progress,
                      struct lmq_error *err)
{
    struct lmq_check check = {.counter = {.progress = progress,
                                      .stage = "verifying"},
                          .threads = threads};

    if (!checkpoint->format->has_checksums)
        return LMQ_OK;
    enum lmq_status status = verify_set(&check, checkpoint->path, NULL, err);
    if (status == LMQ_ERR_FORMAT)
        lmq_hint(err, "lmquant verify says where");
    return status;
}
