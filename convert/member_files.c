/*
 * member_files.c - the files of a plan.
 *
 * Members of an older set of the same name, with another count, would stand
 * there beside the new ones: they are in the way as a file of the same name
 * is.
 */
#include "config.h"

#include "convert/member_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "formats/checkpoint/member_name.h"

#define ENDING ".lmq"

/* ---- Names ---- */

/* Of NAME.lmq: NAME. */
static size_t
stem_of(const char *output)
{
    size_t n = strlen(output), m = strlen(ENDING);

    return n > m && strcmp(output + n - m, ENDING) == 0 &&
                   output[n - m - 1] != '/'
               ? n - m
               : n;
}

enum lmq_status
lmq_member_files_name(struct lmq_member_files *files,
                      const struct lmq_plan *plan, const char *output,
                      struct lmq_error *err)
{
    files->paths = calloc(plan->n_members, sizeof(char *));
    if (files->paths == NULL)
        return lmq_fail_nomem(err);
    files->n_paths = plan->n_members;
    for (uint32_t i = 0; i < plan->n_members; i++) {
        const struct lmq_layout_plan *layout = &plan->members[i].layout;
        files->paths[i] =
            layout->n_members == 0
                ? strdup(output)
                : lmq_member_name_make(output, stem_of(output), i + 1,
                                       layout->n_members, ENDING);
        if (files->paths[i] == NULL)
            return lmq_fail_nomem(err);
    }
    return LMQ_OK;
}

/* ---- What is there ---- */

/* Goes through the files with the name of a member of a set of this name, of
 * whatever count, for as long as `see` says that all is well. */
static enum lmq_status
see_members(const char *output,
            enum lmq_status (*see)(void *context, const char *path,
                                   struct lmq_error *err),
            void *context, struct lmq_error *err)
{
    const char *slash = strrchr(output, '/');
    size_t n_folder = slash == NULL ? 0 : (size_t)(slash - output) + 1;
    size_t n_stem = stem_of(output);
    const struct dirent *entry = NULL;
    struct lmq_member_name name;
    enum lmq_status status = LMQ_OK;

    char *folder = n_folder == 0 ? strdup(".") : strndup(output, n_folder);
    if (folder == NULL)
        return lmq_fail_nomem(err);
    DIR *list = opendir(folder);
    if (list == NULL)
        status = lmq_fail_errno(err, "cannot list the folder %s", folder);
    free(folder);
    while (status == LMQ_OK && (errno = 0, entry = readdir(list)) != NULL) {
        if (!lmq_member_name_is_of(entry->d_name, output + n_folder,
                                   n_stem - n_folder, ENDING, &name))
            continue;
        char *path = lmq_member_name_make(output, n_stem, name.member,
                                          name.n_members, ENDING);
        status = path == NULL ? lmq_fail_nomem(err) : see(context, path, err);
        free(path);
    }
    if (status == LMQ_OK && errno != 0)
        status = lmq_fail_errno(err, "cannot list the folder");
    if (list != NULL)
        closedir(list);
    return status;
}

static bool
is_ours(const struct lmq_member_files *files, const char *path)
{
    for (size_t i = 0; i < files->n_paths; i++)
        if (strcmp(files->paths[i], path) == 0)
            return true;
    return false;
}

/* When some of ours have their names already those of an older set are in the
 * way still. */
static enum lmq_status
refuse_others(void *context, const char *path, struct lmq_error *err)
{
    if (is_ours(context, path))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0, "exists already: a member of a set of this "
                                 "name");
    lmq_hint(err, ".replaces replaces the whole set");
    lmq_error_in(err, path);
    return LMQ_ERR_IO;
}

static enum lmq_status
check_none(const char *output, struct lmq_error *err)
{
    struct lmq_member_files ours = {0}; /* none yet */
    enum lmq_status status = see_members(output, refuse_others, &ours, err);

    if (status != LMQ_OK)
        lmq_error_in(err, output);
    return status;
}

/* What is made, in place of an older set. */
struct replacing {
    struct lmq_member_files *files;
    const struct lmq_originals *originals;
};

/* One of an older set, that would be taken away. */
static enum lmq_status
check_older(void *context, const char *path, struct lmq_error *err)
{
    const struct replacing *replacing = context;
    struct lmq_output *output;
    enum lmq_status status =
        lmq_output_remove(path, replacing->originals, &output, err);

    lmq_output_abort(output);
    return status;
}

/* A member of a member would be called so that nobody finds the others; nor
 * would they be found without a name. */
static enum lmq_status
check_name(const char *output, struct lmq_error *err)
{
    const char *last = lmq_path_base(output);
    struct lmq_member_name name;
    size_t n = stem_of(output) - (size_t)(last - output);

    if (n <= 2 && strspn(last, ".") >= n) { /* nothing, or a folder */
        lmq_fail(err, LMQ_ERR_ARG, 0, "'%s' names no set", output);
        lmq_hint(err, "name it too: %.*s%sNAME" ENDING,
                 (int)stem_of(output), output, n == 0 ? "" : "/");
        return LMQ_ERR_ARG;
    }
    if (!lmq_member_name_parse(output, &name))
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0, "is the name of one file of a set");
    lmq_hint(err, "name the output without the numbers: %.*s%s",
             (int)name.n_stem, output, name.ending);
    lmq_error_in(err, output);
    return LMQ_ERR_ARG;
}

static enum lmq_status
check_set(const char *output, bool replaces,
          const struct lmq_originals *originals, struct lmq_error *err)
{
    enum lmq_status status = check_name(output, err);

    if (status != LMQ_OK)
        return status;
    char *path = lmq_member_name_make(output, stem_of(output), 1, 1, ENDING);
    if (path == NULL)
        return lmq_fail_nomem(err);
    status = lmq_output_check(path, replaces, originals, err);
    free(path);
    if (status != LMQ_OK)
        return status;
    struct replacing replacing = {.originals = originals};
    return replaces ? see_members(output, check_older, &replacing, err)
                    : check_none(output, err);
}

enum lmq_status
lmq_member_files_check(const char *output, bool is_set, bool replaces,
                       const struct lmq_originals *originals,
                       struct lmq_error *err)
{
    return is_set ? check_set(output, replaces, originals, err)
                  : lmq_output_check(output, replaces, originals, err);
}

/* ---- Outputs ---- */

static enum lmq_status
remove_other(void *context, const char *path, struct lmq_error *err)
{
    const struct replacing *replacing = context;
    struct lmq_member_files *files = replacing->files;

    if (is_ours(files, path))
        return LMQ_OK;
    if (lmq_mem_grow(&files->outputs, &files->capacity, files->n_outputs + 1,
                     sizeof(*files->outputs)) != 0)
        return lmq_fail_nomem(err);
    enum lmq_status status =
        lmq_output_remove(path, replacing->originals,
                          &files->outputs[files->n_outputs], err);
    files->n_outputs += status == LMQ_OK;
    return status;
}

enum lmq_status
lmq_member_files_create(struct lmq_member_files *files,
                        const struct lmq_plan *plan, const char *output,
                        bool replaces, struct lmq_error *err)
{
    const struct lmq_originals *originals = &plan->originals;
    uint64_t size = 0;
    enum lmq_status status = LMQ_OK;

    if (lmq_mem_grow(&files->outputs, &files->capacity, files->n_paths,
                     sizeof(*files->outputs)) != 0)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < files->n_paths; i++)
        size += plan->members[i].layout.file_size;
    if (files->n_paths > 1)
        status = lmq_output_check_space(output, size, err);
    for (size_t i = 0; i < files->n_paths && status == LMQ_OK; i++) {
        status = lmq_output_create(files->paths[i],
                                   plan->members[i].layout.file_size, replaces,
                                   originals, &files->outputs[i], err);
        files->n_outputs += status == LMQ_OK;
    }
    return status;
}

enum lmq_status
lmq_member_files_resume(struct lmq_member_files *files,
                        const struct lmq_plan *plan, const char *output,
                        uint32_t member, bool replaces,
                        const struct lmq_part_state *states, bool *is_there,
                        struct lmq_error *err)
{
    const struct lmq_originals *originals = &plan->originals;
    enum lmq_part_stage stage = states[0].stage; /* of all */
    uint64_t room = 0;
    enum lmq_status status = LMQ_OK;

    if (lmq_mem_grow(&files->outputs, &files->capacity, files->n_paths,
                     sizeof(*files->outputs)) != 0)
        return lmq_fail_nomem(err);
    for (size_t i = 0; i < files->n_paths; i++)
        files->outputs[i] = NULL;
    files->n_outputs = files->n_paths;
    if (stage == LMQ_PART_COMMITTING && member == 0 && !replaces &&
        plan->members[0].layout.n_members > 0)
        status = see_members(output, refuse_others, files, err);
    for (size_t i = 0; i < files->n_paths && member == 0 &&
                       stage != LMQ_PART_COMMITTING; i++)
        room += lmq_part_room(files->paths[i],
                              plan->members[i].layout.file_size);
    if (room > 0)
        status = lmq_output_check_space(output, room, err);
    for (size_t i = 0; i < files->n_paths && status == LMQ_OK; i++)
        if (stage == LMQ_PART_NONE && (member == 0 || member == i + 1))
            status = lmq_part_check_none(files->paths[i], err);
    for (size_t i = 0; i < files->n_paths && status == LMQ_OK; i++)
        if (member == 0 || member == i + 1)
            status = lmq_part_open(files->paths[i],
                                   plan->members[i].layout.file_size,
                                   replaces, &states[i], originals,
                                   &files->outputs[i], &is_there[i], err);
    for (size_t i = 0; status != LMQ_OK && stage == LMQ_PART_NONE &&
                       i < files->n_paths; i++)
        if (files->outputs[i] != NULL)
            lmq_part_forget(files->outputs[i]);
    return status;
}

enum lmq_status
lmq_member_files_commit(struct lmq_member_files *files,
                        const struct lmq_plan *plan, const char *output,
                        bool replaces, const struct lmq_progress *progress,
                        struct lmq_error *err)
{
    struct replacing replacing = {files, &plan->originals};
    size_t n = files->n_outputs;

    if (plan->members[0].layout.n_members == 0) {
        files->n_outputs = 0;
        return lmq_output_commit_all(files->outputs, n, progress, err);
    }
    enum lmq_status status =
        lmq_output_seal_all(files->outputs, n, progress, err);
    /* Another process may have made a set of another size meanwhile. */
    if (status == LMQ_OK)
        status = replaces
                     ? see_members(output, remove_other, &replacing, err)
                     : see_members(output, refuse_others, files, err);
    if (status != LMQ_OK)
        return status;
    n = files->n_outputs;
    files->n_outputs = 0;
    return lmq_output_place_all(files->outputs, n, err);
}

void
lmq_member_files_free(struct lmq_member_files *files)
{
    for (size_t i = 0; i < files->n_outputs; i++)
        lmq_output_abort(files->outputs[i]);
    for (size_t i = 0; i < files->n_paths; i++)
        free(files->paths[i]);
    free(files->paths);
    free(files->outputs);
    *files = (struct lmq_member_files){0};
}
