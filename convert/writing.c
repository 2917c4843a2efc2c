/*
 * writing.c - tensors, then what describes them, then the names.
 */
#include "config.h"

#include "convert/writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/report.h"
#include "convert/lay_out.h"
#include "convert/pipeline.h"
#include "convert/sets/copy_plan.h"

json_t *
lmq_writing_files(const struct lmq_plan *plan,
                  const struct lmq_member_files *files)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < plan->n_members; i++) {
        const char *slash = strrchr(files->paths[i], '/');
        json_t *file = json_object();
        lmq_put(&file, "name",
                lmq_json_text(slash == NULL ? files->paths[i] : slash + 1));
        lmq_put(&file, "bytes",
                lmq_json_size(plan->members[i].layout.file_size));
        lmq_put(&file, "tensors", lmq_json_size(plan->members[i].n_records));
        lmq_append(&array, file);
    }
    return array;
}

uint64_t
lmq_writing_size(const struct lmq_plan *plan)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < plan->n_members; i++)
        size += plan->members[i].layout.file_size;
    return size;
}

static enum lmq_status
write_members(const struct lmq_plan *plan,
              const struct lmq_member_files *files, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = 0; i < plan->n_members && status == LMQ_OK; i++) {
        const struct lmq_plan_member *member = &plan->members[i];
        status = lmq_write_frame(files->outputs[i], &member->layout,
                                 member->records, member->n_records,
                                 member->contents, member->n_contents, err);
    }
    return status;
}

/* Before the output is there: without a report it must not be. */
static enum lmq_status
report_it(const struct lmq_writing *writing, struct lmq_error *err)
{
    if (writing->report == NULL)
        return LMQ_OK;
    enum lmq_status status = lmq_report_finish(writing->describe(writing),
                                               writing->report, err);
    return status == LMQ_OK
               ? lmq_progress_approve(writing->progress, *writing->report, err)
               : status;
}

/* ---- In several goes ---- */

/* Beside the output; the caller frees it; NULL without memory. */
static char *
journal_path(const char *output)
{
    size_t n = strlen(output) + sizeof(LMQ_JOURNAL_ENDING);
    char *path = malloc(n);

    if (path != NULL)
        snprintf(path, n, "%s" LMQ_JOURNAL_ENDING, output);
    return path;
}

bool
lmq_writing_has_begun(const char *output, enum lmq_status *status,
                      struct lmq_error *err)
{
    char *path = journal_path(output);

    if (path == NULL && *status == LMQ_OK)
        *status = lmq_fail_nomem(err);
    bool has_begun = *status == LMQ_OK && lmq_file_exists(path, status, err);
    free(path);
    return has_begun;
}

static enum lmq_status
resume(struct lmq_writing *writing, struct lmq_journal **journal,
       struct lmq_error *err)
{
    struct lmq_plan *plan = writing->plan;
    struct lmq_member_files *files = writing->files;
    char *path = journal_path(writing->part > 0
                                  ? files->paths[writing->part - 1]
                                  : writing->output);
    bool *is_there = calloc(plan->n_members, sizeof(bool));
    enum lmq_status status = path == NULL || is_there == NULL
                                 ? lmq_fail_nomem(err)
                                 : lmq_journal_open(path, plan, journal, err);

    if (status == LMQ_OK)
        status = lmq_member_files_resume(
            files, plan, writing->output, writing->part, writing->replaces,
            lmq_journal_is_committing(*journal), is_there, err);
    if (status == LMQ_OK)
        status = lmq_journal_restore(*journal, plan, files->outputs, is_there,
                                     &writing->n_zeroed, err);
    free(path);
    free(is_there);
    return status;
}

/* ---- All of it ---- */

static enum lmq_status
write_frames(struct lmq_writing *writing, struct lmq_error *err)
{
    struct lmq_plan *plan = writing->plan;
    enum lmq_status status = lmq_plan_finish_metadata(plan, err);

    if (status == LMQ_OK)
        status = lmq_plan_finish_digests(plan, err);
    if (status == LMQ_OK && plan->copied != NULL)
        status = lmq_copy_check_content(plan, err);
    return status == LMQ_OK ? write_members(plan, writing->files, err)
                            : status;
}

/* Before the names: who is stopped here finds out that they may be there. */
static enum lmq_status
commit(struct lmq_writing *writing, struct lmq_journal *journal,
       struct lmq_error *err)
{
    enum lmq_status status = lmq_progress_report(
        writing->progress, "writing to the disk", 0, 0, err);

    if (status == LMQ_OK && journal != NULL)
        status = lmq_journal_commit(journal, err);
    return status == LMQ_OK ? lmq_member_files_commit(writing->files, err)
                            : status;
}

enum lmq_status
lmq_writing_run(struct lmq_writing *writing, struct lmq_error *err)
{
    struct lmq_plan *plan = writing->plan;
    struct lmq_member_files *files = writing->files;
    struct lmq_journal *journal = NULL;
    enum lmq_status status =
        writing->resumes
            ? resume(writing, &journal, err)
            : lmq_member_files_create(files, plan, writing->output,
                                      writing->replaces, err);

    if (status == LMQ_OK)
        status = lmq_pipeline_run(plan, files->outputs, journal,
                                  writing->threads, writing->progress,
                                  &writing->n_zeroed, err);
    if (status == LMQ_OK)
        status = writing->part > 0 ? lmq_journal_sync(journal, err)
                                   : write_frames(writing, err);
    if (status == LMQ_OK)
        status = report_it(writing, err);
    if (status == LMQ_OK)
        status = lmq_originals_unchanged(&plan->checkpoint->originals, err);
    if (status == LMQ_OK && writing->part == 0)
        status = commit(writing, journal, err);
    if (status == LMQ_OK && writing->part == 0)
        lmq_journal_remove(journal);
    else
        lmq_journal_close(journal);
    return status;
}
