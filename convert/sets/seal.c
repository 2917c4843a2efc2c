/*
 * seal.c - the last step of a set whose members were written one by one: it
 * finds out how they were made, and has the rest made in the same way.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/report.h"
#include "convert/convert.h"
#include "convert/sets/journal.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/checkpoint/member_name.h"

#define MEMBER_ENDING ".lmq"
#define ENDING MEMBER_ENDING LMQ_JOURNAL_ENDING

/* A journal in the folder. */
struct found {
    char *path;
    struct lmq_member_name name; /* of the path */
};

static enum lmq_status
fail_two(const char *a, const char *b, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_ARG, 0,
             "the folder has parts of two sets: %.120s and %.120s",
             strrchr(a, '/') + 1, strrchr(b, '/') + 1);
    lmq_hint(err, "keep each set in a folder of its own");
    return LMQ_ERR_ARG;
}

/* One journal after the other: all must be of one set. */
static enum lmq_status
take_entry(const char *folder, const char *entry, struct found *found,
           struct lmq_error *err)
{
    struct lmq_member_name name;
    size_t n = strlen(entry), m = strlen(ENDING);

    if (n < m || strcmp(entry + n - m, ENDING) != 0)
        return LMQ_OK;
    char *path = lmq_path_join(folder, entry);
    if (path == NULL)
        return lmq_fail_nomem(err);
    path[strlen(path) - strlen(LMQ_JOURNAL_ENDING)] = '\0';
    if (!lmq_member_name_parse(path, &name)) {
        free(path);
        return LMQ_OK;
    }
    if (found->path == NULL) {
        *found = (struct found){path, name};
        return LMQ_OK;
    }
    if (name.n_members == found->name.n_members &&
        name.n_stem == found->name.n_stem &&
        strncmp(path, found->path, name.n_stem) == 0) {
        /* The others are compared with the first. */
        if (name.member < found->name.member) {
            char *former = found->path;
            *found = (struct found){path, name};
            path = former;
        }
        free(path);
        return LMQ_OK;
    }
    enum lmq_status status = fail_two(found->path, path, err);
    free(path);
    return status;
}

static enum lmq_status
find_parts(const char *folder, struct found *found, struct lmq_error *err)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    enum lmq_status status = LMQ_OK;

    if (list == NULL)
        return lmq_fail_errno(err, "cannot list the folder");
    while (status == LMQ_OK &&
           (errno = 0, entry = readdir(list)) != NULL)
        status = take_entry(folder, entry->d_name, found, err);
    if (status == LMQ_OK && errno != 0)
        status = lmq_fail_errno(err, "cannot list the folder");
    closedir(list);
    if (status != LMQ_OK || found->path != NULL)
        return status;
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "the folder has no parts of a set");
    lmq_hint(err, "lmquant convert .part=1/N writes the first of N; of a set "
                  "that is complete there is nothing to do");
    return LMQ_ERR_FORMAT;
}

static const char *
text_of(const json_t *given, const char *key)
{
    return json_string_value(json_object_get(given, key));
}

/* ---- The end of one that was killed there ---- */

/* How many members have their names and are no parts any more, and how many
 * have a journal; which go, one by one, behind that. */
struct count {
    uint32_t members, journals;
};

static enum lmq_status
look_at(const struct found *found, uint32_t member, const char *ending,
        bool *is_there, struct lmq_error *err)
{
    char *path = lmq_member_name_make(found->path, found->name.n_stem, member,
                                      found->name.n_members, ending);
    enum lmq_status status = path == NULL ? lmq_fail_nomem(err) : LMQ_OK;

    *is_there = path != NULL && lmq_file_exists(path, &status, err);
    free(path);
    return status;
}

static enum lmq_status
count_all(const struct found *found, struct count *count,
          struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    *count = (struct count){0};
    for (uint32_t i = 1; i <= found->name.n_members && status == LMQ_OK; i++) {
        bool is_named = false, is_part = false, has_journal = false;
        status = look_at(found, i, MEMBER_ENDING, &is_named, err);
        if (status == LMQ_OK)
            status = look_at(found, i, MEMBER_ENDING LMQ_PART_ENDING,
                             &is_part, err);
        if (status == LMQ_OK)
            status = look_at(found, i, ENDING, &has_journal, err);
        count->members += is_named && !is_part;
        count->journals += has_journal;
    }
    return status;
}

static enum lmq_status
remove_journals(const struct found *found, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (uint32_t i = found->name.n_members; i > 0 && status == LMQ_OK; i--) {
        char *path = lmq_member_name_make(found->path, found->name.n_stem, i,
                                          found->name.n_members, ENDING);
        if (path == NULL)
            return lmq_fail_nomem(err);
        if (unlink(path) != 0 && errno != ENOENT) {
            status = lmq_fail_errno(err, "cannot be removed");
            lmq_error_in(err, path);
        }
        free(path);
    }
    return status;
}

/* What it would have reported went with the first journal. */
static enum lmq_status
end_sealed(const struct found *found, const struct lmq_progress *progress,
           struct lmq_report **report, struct lmq_error *err)
{
    char *output = strndup(found->path, found->name.n_stem);
    json_t *json = json_object(), *notes = json_array();

    lmq_append(&notes, lmq_json_text("all files had their names already: what "
                                     "was left of their parts is removed"));
    lmq_put(&json, "output", output == NULL ? NULL : lmq_json_text(output));
    lmq_put(&json, "notes", notes);
    free(output);
    enum lmq_status status = lmq_report_approved(json, progress, report, err);
    if (status == LMQ_OK)
        status = remove_journals(found, err);
    if (status != LMQ_OK && report != NULL) {
        lmq_report_free(*report);
        *report = NULL;
    }
    return status;
}

/* As lmq_convert() was told it, which cuts off the ending once. The caller
 * frees it; NULL without memory. */
static char *
output_of(const struct found *found)
{
    size_t n = found->name.n_stem + sizeof(MEMBER_ENDING);
    char *output = malloc(n);

    if (output != NULL)
        snprintf(output, n, "%.*s" MEMBER_ENDING, (int)found->name.n_stem,
                 found->path);
    return output;
}

/* Where the source was, unless somebody says where it is. */
static enum lmq_status
find_source(const json_t *given, const struct lmq_seal_options *options,
            const char **source, struct lmq_error *err)
{
    *source = options->source != NULL ? options->source
                                      : text_of(given, "source");
    if (*source != NULL)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_ARG, 0, "the parts do not tell where their source "
                                  "is");
    lmq_hint(err, ".source names it");
    return LMQ_ERR_ARG;
}

/* What lmq_convert() was given for a part. */
static enum lmq_status
seal_with(json_t *given, const struct found *found, const char *source,
          const struct lmq_seal_options *options,
          const struct lmq_progress *progress, struct lmq_report **report,
          struct lmq_error *err)
{
    const json_t *rules = json_object_get(given, "rules");
    size_t n_rules = json_array_size(rules);
    const char **texts = calloc(n_rules + 1, sizeof(*texts));
    struct lmq_checkpoint *checkpoint = NULL;
    char *output = output_of(found);
    enum lmq_status status =
        texts == NULL || output == NULL
            ? lmq_fail_nomem(err)
            : lmq_checkpoint_open(source, options->open, &checkpoint, err);

    for (size_t i = 0; i < n_rules && texts != NULL; i++) {
        texts[i] = json_string_value(json_array_get(rules, i));
        if (texts[i] == NULL && status == LMQ_OK)
            status = lmq_fail(err, LMQ_ERR_FORMAT, 0,
                              "the journals are damaged: a rule is no text");
    }
    const struct lmq_convert_options convert = {
        .size = sizeof(convert),
        .group_size = (unsigned)json_integer_value(
            json_object_get(given, "group_size")),
        .scales = text_of(given, "scales"),
        .method = text_of(given, "method"),
        .tie = text_of(given, "tie"),
        .on_nonfinite = text_of(given, "on_nonfinite"),
        .layout = text_of(given, "layout"),
        .recipe = text_of(given, "recipe"),
        .encoding = text_of(given, "encoding"),
        .rules = texts,
        .n_rules = n_rules,
        .is_compressed = json_is_true(json_object_get(given, "is_compressed")),
        .has_digests = json_is_true(json_object_get(given, "has_digests")),
        .rotates = json_is_true(json_object_get(given, "rotates")),
        .forces_tokenizer = 1, /* the parts were made with what there is */
        .n_parts = found->name.n_members,
        .seals = 1,
        .replaces = options->replaces,
        .threads = options->threads,
    };
    if (status == LMQ_OK)
        status = lmq_convert_given(checkpoint, output, &convert, given,
                                   progress, report, err);
    lmq_checkpoint_close(checkpoint);
    free((void *)texts);
    free(output);
    return status;
}

enum lmq_status
lmq_seal(const char *folder, const struct lmq_seal_options *given_options,
         const struct lmq_progress *progress, struct lmq_report **report,
         struct lmq_error *err)
{
    struct lmq_seal_options options;
    struct found found = {0};
    enum lmq_part_stage stage = LMQ_PART_NONE;
    json_t *given = NULL;
    const char *source;
    struct count count = {0};

    if (report != NULL)
        *report = NULL;
    enum lmq_status status = LMQ_OPTIONS_TAKE(struct lmq_seal_options,
                                              &options, given_options, err);
    if (status == LMQ_OK)
        status = find_parts(folder, &found, err);
    if (status == LMQ_OK)
        status = lmq_journal_given(found.path, &given, &stage, err);
    if (status == LMQ_OK && stage == LMQ_PART_COMMITTING)
        status = count_all(&found, &count, err);
    if (status == LMQ_OK && stage == LMQ_PART_COMMITTING &&
        count.members == found.name.n_members &&
        count.journals < found.name.n_members)
        status = end_sealed(&found, progress, report, err);
    else if (status == LMQ_OK &&
             (status = find_source(given, &options, &source, err)) == LMQ_OK)
        status = seal_with(given, &found, source, &options, progress, report,
                           err);
    if (status != LMQ_OK)
        lmq_error_in(err, folder);
    json_decref(given);
    free(found.path);
    return status;
}
