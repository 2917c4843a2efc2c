/*
 * copy.c - one file into several, several into one: nothing changes but where
 * it stands.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/options.h"
#include "base/report.h"
#include "convert/lay_out.h"
#include "convert/sets/copy_plan.h"
#include "convert/writing.h"
#include "formats/checkpoint/member_name.h"
#include "formats/describe.h"

static json_t *
describe(const struct lmq_writing *writing)
{
    const struct lmq_plan *plan = writing->plan;
    const struct lmq_checkpoint *checkpoint = plan->checkpoint;
    json_t *report = json_object();

    lmq_put(&report, "input", lmq_json_text(checkpoint->path));
    lmq_put(&report, "output", lmq_json_text(writing->output));
    lmq_put(&report, "input_files", lmq_json_size(checkpoint->n_files));
    lmq_put(&report, "input_bytes",
            lmq_json_size(lmq_checkpoint_sizes(checkpoint).file_bytes));
    lmq_put(&report, "output_bytes", lmq_json_size(lmq_writing_size(plan)));
    lmq_put(&report, "tensors", lmq_json_size(plan->n_records));
    lmq_put(&report, "files", lmq_writing_files(plan, writing->files));
    lmq_put(&report, "notes", lmq_describe_notes(checkpoint, &plan->notes));
    return report;
}

/* FOLDER/NAME.lmq for a source called NAME.lmq, or NAME-00001-of-00003.lmq;
 * the caller frees it. */
static enum lmq_status
name_in_folder(const struct lmq_checkpoint *checkpoint, const char *folder,
               char **output, struct lmq_error *err)
{
    const char *path = lmq_input_path(checkpoint->files[0]);
    const char *name = lmq_path_base(path);
    struct lmq_member_name member;
    struct stat info;

    bool is_there = stat(folder, &info) == 0;
    if (!is_there || !S_ISDIR(info.st_mode)) {
        enum lmq_status status =
            is_there
                ? lmq_fail(err, LMQ_ERR_IO, 0, "is a file, expected a folder")
                : lmq_fail_errno(err, "cannot write into it");
        lmq_hint(err, "mkdir -p makes a folder");
        lmq_error_in(err, folder);
        return status;
    }
    char *base = lmq_member_name_parse(name, &member)
                     ? strndup(name, member.n_stem)
                     : strdup(name);
    *output = base == NULL ? NULL : lmq_path_join(folder, base);
    free(base);
    return *output == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static enum lmq_status
copy_to(struct lmq_checkpoint *checkpoint, const char *output,
        const struct lmq_copy_options *options,
        const struct lmq_progress *progress, struct lmq_report **report,
        struct lmq_error *err)
{
    struct lmq_plan plan = {0};
    struct lmq_member_files files = {0};
    struct lmq_writing writing = {.plan = &plan,
                                  .files = &files,
                                  .output = output,
                                  .replaces = options->replaces != 0,
                                  .threads = options->threads,
                                  .progress = progress,
                                  .report = report,
                                  .describe = describe};
    enum lmq_status status =
        lmq_originals_add_all(&plan.originals, &checkpoint->originals, err);

    if (status == LMQ_OK)
        status = lmq_member_files_check(output, options->shard_size > 0,
                                        writing.replaces, &plan.originals,
                                        err);
    if (status == LMQ_OK)
        status = lmq_plan_copy(checkpoint, options->shard_size, &plan, err);
    if (status == LMQ_OK)
        status = lmq_plan_lay_out(&plan, err);
    if (status == LMQ_OK)
        status = lmq_member_files_name(&files, &plan, output, err);
    if (status == LMQ_OK)
        status = lmq_writing_run(&writing, err);
    lmq_member_files_free(&files);
    lmq_plan_free(&plan);
    return status;
}

enum lmq_status
lmq_copy(struct lmq_checkpoint *checkpoint, const char *output,
         const struct lmq_copy_options *given,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err)
{
    struct lmq_copy_options options;
    char *named = NULL;

    if (report != NULL)
        *report = NULL;
    enum lmq_status status =
        LMQ_OPTIONS_TAKE(struct lmq_copy_options, &options, given, err);
    if (status == LMQ_OK && options.shard_size > 0)
        status = name_in_folder(checkpoint, output, &named, err);
    if (status == LMQ_OK)
        status = copy_to(checkpoint, named == NULL ? output : named, &options,
                         progress, report, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, checkpoint->path);
        if (report != NULL) {
            lmq_report_free(*report);
            *report = NULL;
        }
    }
    free(named);
    return status;
}
