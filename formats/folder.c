/*
 * folder.c - what stands in a folder that is named as a checkpoint.
 *
 * A folder of Hugging Face or Meta is a checkpoint itself, which probing
 * knows. Any other folder stands for the one checkpoint that lies in it;
 * members of a set count as one.
 */
#include "config.h"

#include "formats/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/mem.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/checkpoint/member_name.h"
#include "formats/probe.h"

/* The ending only chooses what is worth opening; what a file is, its content
 * says. */
static bool
has_ending(const char *name, const char *const *endings, size_t n)
{
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < n && dot != NULL; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* ---- What belongs to a model ---- */

/* All files beside the weights, whether they are read or not: no output may
 * replace a part of what somebody downloaded together. */
enum lmq_status
lmq_folder_add_originals(const char *folder, struct lmq_originals *originals,
                         struct lmq_error *err)
{
    /* Made from models, not their parts. */
    static const char *const made[] = {".lmq", ".gguf", ".html", ".part",
                                       ".journal"};
    DIR *dir = opendir(folder);
    enum lmq_status status = LMQ_OK;

    for (const struct dirent *entry;
         dir != NULL && status == LMQ_OK && (entry = readdir(dir)) != NULL;) {
        if (has_ending(entry->d_name, made, sizeof(made) / sizeof(made[0])))
            continue;
        char *path = lmq_path_join(folder, entry->d_name);
        status = path == NULL ? lmq_fail_nomem(err)
                              : lmq_originals_add(originals, path, false,
                                                  err);
        free(path);
    }
    if (dir != NULL)
        closedir(dir);
    return status;
}

/* ---- The one model ---- */

struct names {
    char **names;
    size_t n, capacity;
};

static void
free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->names[i]);
    free(names->names);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Only regular files are opened: a pipe would wait for ever. */
static enum lmq_status
look_at_file(const char *folder, const char *name, bool *is_checkpoint,
             struct lmq_error *err)
{
    static const char *const endings[] = {".bin", ".ckpt", ".gguf",
                                          ".lmq", ".pt", ".pth"};
    const struct lmq_format *format = NULL;
    struct lmq_probe probe;
    struct stat info;
    enum lmq_status status = LMQ_OK;

    *is_checkpoint = false;
    if (!has_ending(name, endings, sizeof(endings) / sizeof(endings[0])))
        return LMQ_OK;
    char *path = lmq_path_join(folder, name);
    if (path == NULL)
        return lmq_fail_nomem(err);
    bool is_there = stat(path, &info) == 0;
    if (!is_there && errno != ENOENT) /* a link may lead nowhere */
        status = lmq_fail_errno(err, "cannot look at %s", name);
    if (is_there && S_ISREG(info.st_mode)) {
        status = lmq_probe_look(path, &probe, err);
        if (status == LMQ_OK)
            status = lmq_probe_recognise(&probe, &format, err);
        *is_checkpoint = format != NULL;
    }
    free(path);
    return status;
}

/* Two files of one model in several. */
static bool
is_same_model(const char *a, const char *b)
{
    struct lmq_member_name x, y;

    return lmq_member_name_parse(a, &x) && lmq_member_name_parse(b, &y) &&
           x.n_members == y.n_members && x.n_stem == y.n_stem &&
           strncmp(a, b, x.n_stem) == 0 && strcmp(x.ending, y.ending) == 0;
}

/* The first of them stands for all. Names are in order, but those of two
 * models may alternate. */
static void
drop_further_members(struct names *names)
{
    size_t n = 0, j;

    for (size_t i = 0; i < names->n; i++) {
        for (j = 0; j < n; j++)
            if (is_same_model(names->names[j], names->names[i]))
                break;
        if (j < n)
            free(names->names[i]);
        else
            names->names[n++] = names->names[i];
    }
    names->n = n;
}

/* In the order of their names, so that messages do not depend on the file
 * system. */
static enum lmq_status
list_checkpoints(const char *folder, struct names *names,
                 struct lmq_error *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool is_checkpoint;
    enum lmq_status status = LMQ_OK;

    if (dir == NULL)
        return lmq_fail_errno(err, "cannot list the folder");
    while (status == LMQ_OK && (errno = 0, entry = readdir(dir)) != NULL) {
        status = look_at_file(folder, entry->d_name, &is_checkpoint, err);
        if (status != LMQ_OK || !is_checkpoint)
            continue;
        char *name = strdup(entry->d_name);
        if (name == NULL || lmq_mem_grow(&names->names, &names->capacity,
                                         names->n + 1, sizeof(name)) != 0) {
            free(name);
            status = lmq_fail_nomem(err);
        } else {
            names->names[names->n++] = name;
        }
    }
    if (status == LMQ_OK && errno != 0)
        status = lmq_fail_errno(err, "cannot list the folder");
    closedir(dir);
    if (names->n > 0)
        qsort(names->names, names->n, sizeof(char *), compare_names);
    drop_further_members(names);
    return status;
}

/* Some of many names are enough to see what they are. */
static enum lmq_status
fail_several(const struct names *names, struct lmq_error *err)
{
    char list[300] = "";
    size_t used = 0, i;

    for (i = 0; i < names->n && used + strlen(names->names[i]) + 16 <
                                    sizeof(list);
         i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i == 0 ? "" : ", ", names->names[i]);
    lmq_fail(err, LMQ_ERR_FORMAT, 0, "the folder holds %zu checkpoints: %s%s",
             names->n, list, i < names->n ? ", ..." : "");
    lmq_hint(err, "name one of them");
    return LMQ_ERR_FORMAT;
}

enum lmq_status
lmq_folder_find_checkpoint(const char *folder, char **path,
                           struct lmq_error *err)
{
    struct names names = {0};
    enum lmq_status status = list_checkpoints(folder, &names, err);

    *path = NULL;
    if (status == LMQ_OK && names.n > 1)
        status = fail_several(&names, err);
    if (status == LMQ_OK && names.n == 1) {
        *path = lmq_path_join(folder, names.names[0]);
        if (*path == NULL)
            status = lmq_fail_nomem(err);
    }
    free_names(&names);
    return status;
}
