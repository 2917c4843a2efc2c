/*
 * export_folder.c - may a model be written into this folder?
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/files/path.h"
#include "base/files/temporary.h"
#include "convert/export/export.h"
#include "formats/hf/hf_folder.h"

static enum lmq_status
check_empty(const char *folder, struct lmq_error *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool is_empty = true;
    enum lmq_status status = LMQ_OK;

    if (dir == NULL)
        return lmq_fail_errno(err, "cannot list the folder");
    while (is_empty && (errno = 0, entry = readdir(dir)) != NULL)
        is_empty = strcmp(entry->d_name, ".") == 0 ||
                   strcmp(entry->d_name, "..") == 0;
    if (!is_empty) {
        status = lmq_fail(err, LMQ_ERR_IO, 0, "exists and is not empty");
        lmq_hint(err, ".replaces replaces the files of a model in it");
    } else if (errno != 0) {
        status = lmq_fail_errno(err, "cannot list the folder");
    }
    closedir(dir);
    return status;
}

/* A container in the folder stays as it is; what else is read there has names
 * like those of the output, and a config.json. */
static bool
holds_checkpoint(const char *folder, const struct lmq_checkpoint *checkpoint)
{
    char *own = lmq_hf_folder_of(checkpoint);
    struct stat x, y;
    bool holds = !checkpoint->format->is_canonical && own != NULL &&
                 stat(folder, &x) == 0 && stat(own, &y) == 0 &&
                 x.st_dev == y.st_dev && x.st_ino == y.st_ino;

    free(own);
    return holds;
}

/* As if a file of that name were to be made in the folder around it. */
static enum lmq_status
check_new(const char *folder, struct lmq_error *err)
{
    char *plain = strdup(folder);
    size_t n = strlen(folder);

    if (plain == NULL)
        return lmq_fail_nomem(err);
    while (n > 1 && plain[n - 1] == '/')
        plain[--n] = '\0';
    enum lmq_status status = lmq_output_check(plain, false, NULL, err);
    free(plain);
    return status;
}

static enum lmq_status
check_existing(const struct lmq_checkpoint *checkpoint, const char *folder,
               bool replaces, struct lmq_error *err)
{
    struct stat info;
    enum lmq_status status = LMQ_OK;

    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return lmq_fail(err, LMQ_ERR_IO, 0, "exists and is no folder");
    if (holds_checkpoint(folder, checkpoint))
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "is where the checkpoint is; name another folder");
    lmq_temporary_clean(folder);
    if (!replaces)
        status = check_empty(folder, err);
    if (status != LMQ_OK)
        return status;
    char *path = lmq_path_join(folder, "config.json");
    if (path == NULL)
        return lmq_fail_nomem(err);
    status = lmq_output_check(path, true, &checkpoint->originals, err);
    free(path);
    return status;
}

enum lmq_status
lmq_export_check_folder(const struct lmq_checkpoint *checkpoint,
                        const char *folder, bool replaces,
                        struct lmq_error *err)
{
    struct stat info;
    enum lmq_status status =
        stat(folder, &info) == 0
            ? check_existing(checkpoint, folder, replaces, err)
            : check_new(folder, err);

    if (status != LMQ_OK)
        lmq_error_in(err, folder);
    return status;
}
