/*
 * folder.c - what stands in a folder that is named as a checkpoint.
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
#include "base/mem.h"
#include "formats/checkpoint/checkpoint.h"
#include "formats/probe.h"

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

enum lmq_status
lmq_folder_add_originals(const char *folder, struct lmq_originals *originals,
                         struct lmq_error *err)
{
    /* Made from models, not their parts. */
    static const char *const made[] = {".lmq", ".gguf", ".html"};
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

/* The first part of a GGUF in several files stands for all of them. */
static bool
is_later_part(const char *name)
{
    const char *of = strstr(name, "-of-");

    return of != NULL && of - name >= 6 && of[-6] == '-' &&
           strncmp(of - 5, "00001", 5) != 0 &&
           strspn(of - 5, "0123456789") == 5;
}

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
    if (!has_ending(name, endings, sizeof(endings) / sizeof(endings[0])) ||
        is_later_part(name))
        return LMQ_OK;
    char *path = lmq_path_join(folder, name);
    if (path == NULL)
        return lmq_fail_nomem(err);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        status = lmq_probe_look(path, &probe, err);
        if (status == LMQ_OK)
            status = lmq_probe_recognise(&probe, &format, err);
        *is_checkpoint = format != NULL;
    }
    free(path);
    return status;
}

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
