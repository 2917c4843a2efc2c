/*
 * writing.c - tensors, then what describes them, then the names.
 */
#include "config.h"

#include "convert/writing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/progress.h"
#include "base/report.h"
#include "convert/calibrate/calibrate.h"
#include "convert/lay_out.h"
#include "convert/pipeline.h"
#include "convert/sets/copy_plan.h"
#include "convert/sets/journal_header.h"

json_t *
lmq_writing_files(const struct lmq_plan *plan,
                  const struct lmq_member_files *files)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < plan->n_members; i++) {
        json_t *file = json_object();
        lmq_put(&file, "name", lmq_json_text(lmq_path_base(files->paths[i])));
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

/* ---- In several goes ---- */

bool
lmq_writing_has_begun(const char *output, enum lmq_status *status,
                      struct lmq_error *err)
{
    char *path = lmq_journal_path(output);

    if (path == NULL && *status == LMQ_OK)
        *status = lmq_fail_nomem(err);
    bool has_begun = *status == LMQ_OK && lmq_file_exists(path, status, err);
    free(path);
    return has_begun;
}

/* One, or of a set that is sealed one for each member. */
struct journals {
    struct lmq_journal **all;
    size_t n;
};

static enum lmq_status
open_journals(const struct lmq_writing *writing, const json_t *header,
              struct journals *journals, struct lmq_error *err)
{
    char *const *paths = writing->files->paths;
    size_t n = writing->seals ? writing->files->n_paths : 1;
    enum lmq_status status = LMQ_OK;

    journals->all = calloc(n, sizeof(struct lmq_journal *));
    if (journals->all == NULL)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        const char *output = writing->seals      ? paths[i]
                             : writing->part > 0 ? paths[writing->part - 1]
                                                 : writing->output;
        char *path = lmq_journal_path(output);
        status = path == NULL
                     ? lmq_fail_nomem(err)
                     : lmq_journal_open(path, header, writing->given,
                                        &journals->all[i], err);
        journals->n += status == LMQ_OK;
        free(path);
    }
    return status;
}

static void
close_journals(struct journals *journals, bool removes)
{
    for (size_t i = 0; i < journals->n; i++)
        (removes ? lmq_journal_remove
                 : lmq_journal_close)(journals->all[i]);
    free(journals->all);
    *journals = (struct journals){0};
}

/* The furthest: names are given to all or none. */
static enum lmq_part_stage
stage_of(const struct journals *journals)
{
    enum lmq_part_stage stage = LMQ_PART_NONE;

    for (size_t i = 0; i < journals->n; i++)
        if (lmq_journal_stage(journals->all[i])->stage > stage)
            stage = lmq_journal_stage(journals->all[i])->stage;
    return stage;
}

/* How far members came. Who seals only looks at what others have written. */
static struct lmq_part_state *
find_states(const struct lmq_writing *writing, const struct journals *journals)
{
    size_t n = writing->files->n_paths;
    struct lmq_part_state *states = calloc(n, sizeof(*states));
    enum lmq_part_stage stage = stage_of(journals);

    for (uint32_t i = 0; i < n && states != NULL && journals->n > 0; i++) {
        const struct lmq_journal *journal =
            journals->all[writing->seals ? i : 0];
        states[i].stage = stage;
        states[i].mark = lmq_journal_stage_mark(lmq_journal_stage(journal), i);
        states[i].was_whole =
            writing->seals || lmq_journal_is_synced(journal);
    }
    return states;
}

/* Of who seals parts that are not there are not begun either. */
static void
forget_missing(const struct lmq_writing *writing, const bool *is_there)
{
    const struct lmq_member_files *files = writing->files;

    /* Where they could not be opened there are none. */
    for (size_t i = 0; i < files->n_paths && i < files->n_outputs &&
                       writing->seals; i++)
        if (!is_there[i] && files->outputs[i] != NULL)
            lmq_part_forget(files->outputs[i]);
}

/* Who seals was stopped while names were given, and only who seals takes them
 * away again; a part that is written alone is complete then. */
static enum lmq_status
check_unsealed(const struct lmq_writing *writing,
               const struct journals *journals, struct lmq_error *err)
{
    if (writing->part == 0 || stage_of(journals) != LMQ_PART_COMMITTING)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0,
             "is complete, and was being sealed with the others of its set");
    lmq_hint(err, "lmquant seal FOLDER goes on with that");
    lmq_error_in(err, writing->files->paths[writing->part - 1]);
    return LMQ_ERR_IO;
}

static enum lmq_status
open_outputs(struct lmq_writing *writing, const struct journals *journals,
             bool *is_there, struct lmq_error *err)
{
    const struct lmq_plan *plan = writing->plan;
    struct lmq_part_state *states = find_states(writing, journals);
    enum lmq_status status = states == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    /* Members of an older set would stand beside the new ones. */
    if (status == LMQ_OK && writing->seals &&
        states[0].stage != LMQ_PART_COMMITTING)
        status = lmq_member_files_check(writing->output, true,
                                        writing->replaces, &plan->originals,
                                        err);
    if (status == LMQ_OK) {
        status = lmq_member_files_resume(writing->files, plan,
                                         writing->output, writing->part,
                                         writing->replaces, states, is_there,
                                         err);
        forget_missing(writing, is_there);
    }
    free(states);
    return status;
}

/* What is done, by this process and, of layers that depend on each other, by
 * others. */
static enum lmq_status
restore(struct lmq_writing *writing, const struct journals *journals,
        const json_t *header, const bool *is_there, struct lmq_error *err)
{
    struct lmq_plan *plan = writing->plan;
    enum lmq_status status =
        writing->part > 0 && lmq_calibrator_is_alone(plan->calibrator)
            ? lmq_others_find(&writing->others, plan, header, writing->files,
                              writing->part, err)
            : LMQ_OK;

    for (size_t i = 0; i < journals->n && status == LMQ_OK; i++)
        status = lmq_journal_restore(
            journals->all[i], plan, writing->files->outputs,
            writing->seals ? (uint32_t)i + 1 : writing->part, is_there,
            &writing->n_zeroed, err);
    return status;
}

static enum lmq_status
resume(struct lmq_writing *writing, struct journals *journals,
       struct lmq_error *err)
{
    json_t *header = lmq_journal_describe(writing->plan, err);

    if (header == NULL)
        return err == NULL ? LMQ_ERR_NOMEM : err->status;
    bool *is_there = calloc(writing->plan->n_members, sizeof(bool));
    enum lmq_status status =
        is_there == NULL ? lmq_fail_nomem(err)
                         : open_journals(writing, header, journals, err);
    if (status == LMQ_OK)
        status = check_unsealed(writing, journals, err);
    if (status == LMQ_OK)
        status = open_outputs(writing, journals, is_there, err);
    /* One that was made now would tell of nothing, and be in the way. */
    if (status != LMQ_OK && stage_of(journals) == LMQ_PART_NONE)
        close_journals(journals, true);
    if (status == LMQ_OK)
        status = restore(writing, journals, header, is_there, err);
    json_decref(header);
    free(is_there);
    return status;
}

/* ---- Sealing ---- */

/* So many names tell enough. */
#define NAMES_SHOWN 4

static enum lmq_status
check_parts(const struct lmq_writing *writing, struct lmq_error *err)
{
    const struct lmq_member_files *files = writing->files;
    char list[320] = "";
    size_t n = 0;
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < files->n_paths && status == LMQ_OK; i++) {
        if (lmq_writing_has_begun(files->paths[i], &status, err) ||
            status != LMQ_OK || n++ >= NAMES_SHOWN)
            continue;
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%.60s",
                 n == 1 ? "" : ", ", lmq_path_base(files->paths[i]));
    }
    if (status != LMQ_OK || n == 0)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0,
             "of %zu parts %zu lack: %s%s", files->n_paths, n, list,
             n > NAMES_SHOWN ? " and others" : "");
    lmq_hint(err, "lmquant convert .part=I/%zu writes part I",
             files->n_paths);
    lmq_error_in(err, writing->output);
    return LMQ_ERR_FORMAT;
}

static enum lmq_status
check_finished(const struct lmq_writing *writing, struct lmq_error *err)
{
    const struct lmq_plan *plan = writing->plan;

    for (size_t i = 0; i < plan->n_parts; i++) {
        uint32_t member = plan->parts[i].member;
        if (plan->parts[i].is_done)
            continue;
        lmq_fail(err, LMQ_ERR_FORMAT, 0,
                 "part %" PRIu32 " of %" PRIu32
                 " is not finished: it lacks tensor '%s'",
                 member + 1, plan->n_members,
                 plan->records[plan->parts[i].record].name);
        lmq_hint(err, "lmquant convert .part=%" PRIu32 "/%" PRIu32
                      " goes on with it",
                 member + 1, plan->n_members);
        lmq_error_in(err, writing->files->paths[member]);
        return LMQ_ERR_FORMAT;
    }
    return LMQ_OK;
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
commit(struct lmq_writing *writing, const struct journals *journals,
       struct lmq_error *err)
{
    enum lmq_status status = lmq_progress_report(
        writing->progress, "writing to the disk", 0, 0, err);

    for (size_t i = 0; i < journals->n && status == LMQ_OK; i++)
        status = lmq_journal_commit(journals->all[i], err);
    if (status == LMQ_OK) {
        status = lmq_member_files_commit(writing->files, writing->plan,
                                         writing->output, writing->replaces,
                                         writing->progress, err);
        for (size_t i = 0; i < journals->n && status != LMQ_OK; i++)
            lmq_journal_undo(journals->all[i]);
    }
    return status;
}

/* Nothing has its name yet. */
static enum lmq_status
write_all(struct lmq_writing *writing, struct journals *journals,
          struct lmq_error *err)
{
    struct lmq_plan *plan = writing->plan;
    struct lmq_member_files *files = writing->files;
    enum lmq_status status =
        writing->seals ? check_parts(writing, err) : LMQ_OK;

    if (status == LMQ_OK)
        status = writing->resumes
                     ? resume(writing, journals, err)
                     : lmq_member_files_create(files, plan, writing->output,
                                               writing->replaces, err);
    const struct lmq_conversion work = {plan, files->outputs,
                                        writing->others.outputs};
    if (status == LMQ_OK)
        status = writing->seals
                     ? check_finished(writing, err)
                     : lmq_pipeline_run(
                           &work, journals->n > 0 ? journals->all[0] : NULL,
                           writing->threads, writing->progress,
                           &writing->n_zeroed, err);
    if (status == LMQ_OK)
        status = writing->part > 0 ? lmq_journal_sync(journals->all[0], err)
                                   : write_frames(writing, err);
    if (status == LMQ_OK) /* without a report no output must be there */
        status = lmq_report_approved(writing->describe(writing),
                                     writing->progress, writing->report, err);
    return status == LMQ_OK
               ? lmq_originals_unchanged(&plan->checkpoint->originals, err)
               : status;
}

enum lmq_status
lmq_writing_run(struct lmq_writing *writing, struct lmq_error *err)
{
    struct journals journals = {0};
    enum lmq_status status = write_all(writing, &journals, err);

    if (status == LMQ_OK && writing->part == 0)
        status = commit(writing, &journals, err);
    close_journals(&journals, status == LMQ_OK && writing->part == 0);
    lmq_others_free(&writing->others);
    return status;
}
