/*
 * commit.c - gives finished outputs their names, all of them or none.
 *
 * Whatever can fail without a change comes first. Then each gets its name
 * while what stood there keeps another one; so until the last of a set has
 * its name, all can be undone.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/output.h"
#include "base/files/output_place.h"
#include "base/files/temporary.h"
#include "base/progress.h"

/* Mode, owner and group of what is replaced. Where the group cannot stay, its
 * rights are at most those of everybody. */
static void
take_after(struct lmq_output *output)
{
    struct stat old, new;

    if (stat(output->path, &old) != 0 || fstat(output->fd, &new) != 0)
        return;
    mode_t mode = old.st_mode & 0777;
    bool is_same = old.st_uid == new.st_uid && old.st_gid == new.st_gid;
    if (!is_same && fchown(output->fd, old.st_uid, old.st_gid) != 0 &&
        fchown(output->fd, (uid_t)-1, old.st_gid) != 0)
        mode &= ~(mode_t)070 | ((mode & 07) << 3);
    if (fchmod(output->fd, mode) != 0)
        return; /* a file system without modes */
}

static int
link_file(const struct lmq_output *output, const char *name)
{
    return output->temporary != NULL ? link(output->temporary, name)
                                     : lmq_temporary_link(output->fd, name);
}

/* An unnamed file gets a name that rename() can take. */
static int
link_temporarily(struct lmq_output *output)
{
    for (unsigned i = 0; i < LMQ_TEMPORARY_TRIES; i++) {
        char *name = lmq_temporary_name(output->folder, i);
        if (name == NULL || link_file(output, name) == 0) {
            output->temporary = name;
            return name == NULL ? -1 : 0;
        }
        free(name);
        if (errno != EEXIST)
            break;
    }
    return -1;
}

/* The final name at once, if nothing stands there: link() never replaces. */
static int
name_file(struct lmq_output *output)
{
    if (!output->replace || output->temporary == NULL) {
        if (link_file(output, output->path) == 0) {
            if (output->temporary != NULL)
                unlink(output->temporary);
            return 0;
        }
        bool is_there = errno == EEXIST;
        if (is_there ? !output->replace : output->temporary == NULL)
            return -1;
        /* Or the file system has no links. */
    }
    if (output->temporary == NULL && link_temporarily(output) != 0)
        return -1;
    return rename(output->temporary, output->path);
}

/* What stands there gets another name, and keeps its own until it is
 * replaced. */
static int
set_aside(struct lmq_output *output)
{
    int result = -1;

    errno = EEXIST;
    for (unsigned i = 0; i < LMQ_TEMPORARY_TRIES && errno == EEXIST; i++) {
        free(output->old);
        output->old = lmq_temporary_name(output->folder, i);
        if (output->old == NULL)
            return -1;
        result = link(output->path, output->old);
        if (result == 0 || errno == ENOENT)
            break;
        if (errno != EEXIST) /* the file system has no links */
            result = rename(output->path, output->old);
        if (result == 0)
            break;
    }
    if (result != 0) {
        int code = errno;
        free(output->old);
        output->old = NULL;
        errno = code;
        return code == ENOENT ? 0 : -1; /* nothing stands there */
    }
    output->old_fd = open(output->old, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (output->old_fd >= 0)
        flock(output->old_fd, LOCK_SH | LOCK_NB);
    return 0;
}

static enum lmq_status
place(struct lmq_output *output, bool is_alone, struct lmq_error *err)
{
    if (output->fd >= 0)
        take_after(output); /* not before: what is gone on with is writable */
    if (!is_alone && set_aside(output) != 0)
        return lmq_fail_errno(err, "cannot set aside what stands there");
    if (output->fd < 0) {
        if (output->old != NULL && unlink(output->path) != 0 &&
            errno != ENOENT)
            return lmq_fail_errno(err, "cannot be removed");
        return LMQ_OK;
    }
    if (name_file(output) != 0)
        return errno == EEXIST
                   ? lmq_fail(err, LMQ_ERR_IO, 0,
                              "exists already: it appeared during the work")
                   : lmq_fail_errno(err, "cannot name the finished file");
    if (!output->keeps) {
        free(output->temporary);
        output->temporary = NULL;
    }
    output->is_placed = true;
    return LMQ_OK;
}

static void
undo(struct lmq_output *output)
{
    if (output->is_placed && output->keeps)
        rename(output->path, output->temporary);
    else if (output->is_placed && output->old == NULL)
        unlink(output->path);
    /* rename() does nothing if both names are of one file. */
    if (output->old != NULL && rename(output->old, output->path) == 0)
        unlink(output->old);
    free(output->old);
    output->old = NULL;
}

static void
sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd); /* some file systems cannot; the name stands anyway */
        close(fd);
    }
}

static enum lmq_status
seal_each(struct lmq_output *const *outputs, size_t n,
          const struct lmq_progress *progress, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        if (outputs[i]->fd >= 0 && fsync(outputs[i]->fd) != 0)
            status = lmq_fail_errno(err, "cannot write to the disk");
        else
            status = lmq_progress_report(progress, "writing to the disk", 0,
                                         0, err);
        if (status != LMQ_OK)
            lmq_error_in(err, outputs[i]->path);
    }
    return status;
}

/* Two that give names at once would each replace a part of what the other has
 * made. Where there is no lock to be had they do without. */
static enum lmq_status
lock_names(struct lmq_output *output, const struct lmq_progress *progress,
           struct lmq_error *err)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    enum lmq_status status = LMQ_OK;

    output->lock = lmq_temporary_lock(output->folder);
    if (output->lock == NULL)
        status = lmq_fail_nomem(err);
    while (status == LMQ_OK) {
        output->lock_fd = lmq_temporary_open(output->lock, 0, 0666);
        if (output->lock_fd >= 0 || errno != EEXIST)
            break;
        status = lmq_progress_report(
            progress, "waiting for another process", 0, 0, err);
        nanosleep(&pause, NULL);
    }
    if (status != LMQ_OK)
        lmq_error_in(err, output->path);
    return status;
}

enum lmq_status
lmq_output_seal_all(struct lmq_output *const *outputs, size_t n,
                    const struct lmq_progress *progress, struct lmq_error *err)
{
    enum lmq_status status = seal_each(outputs, n, progress, err);

    return status == LMQ_OK ? lock_names(outputs[0], progress, err) : status;
}

static void
abort_all(struct lmq_output *const *outputs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lmq_output_abort(outputs[i]);
}

/* All that can fail before anything changes. */
static enum lmq_status
check_each(struct lmq_output *const *outputs, size_t n, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;

    for (size_t i = 0; i < n && status == LMQ_OK; i++) {
        status = lmq_output_check_target(outputs[i], err);
        if (status != LMQ_OK)
            lmq_error_in(err, outputs[i]->path);
    }
    return status;
}

enum lmq_status
lmq_output_place_all(struct lmq_output *const *outputs, size_t n,
                     struct lmq_error *err)
{
    enum lmq_status status = check_each(outputs, n, err);
    size_t i;

    for (i = 0; i < n && status == LMQ_OK; i++) {
        status = place(outputs[i], n == 1, err);
        if (status != LMQ_OK)
            lmq_error_in(err, outputs[i]->path);
    }
    while (status != LMQ_OK && i > 0)
        undo(outputs[--i]);
    for (i = 0; i < n; i++)
        if (i == 0 || strcmp(outputs[i]->folder, outputs[i - 1]->folder) != 0)
            sync_folder(outputs[i]->folder);
    /* What was gone on with had set something aside, maybe, of which this has
     * another name until it is given up. */
    char *folder = n > 0 && status == LMQ_OK && outputs[0]->keeps
                       ? strdup(outputs[0]->folder)
                       : NULL;
    abort_all(outputs, n);
    if (folder != NULL)
        lmq_temporary_clean(folder);
    free(folder);
    return status;
}

enum lmq_status
lmq_output_commit_all(struct lmq_output *const *outputs, size_t n,
                      const struct lmq_progress *progress,
                      struct lmq_error *err)
{
    enum lmq_status status =
        (n > 1 ? lmq_output_seal_all : seal_each)(outputs, n, progress, err);

    if (status == LMQ_OK)
        return lmq_output_place_all(outputs, n, err);
    abort_all(outputs, n);
    return status;
}

enum lmq_status
lmq_output_commit(struct lmq_output *output, struct lmq_error *err)
{
    return lmq_output_commit_all(&output, 1, NULL, err);
}

enum lmq_status
lmq_output_put(const char *path, const void *bytes, size_t n, bool replace,
               const struct lmq_originals *originals, struct lmq_error *err)
{
    struct lmq_output *output;
    enum lmq_status status =
        lmq_output_create(path, n, replace, originals, &output, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_output_write(output, 0, bytes, n, err);
    if (status == LMQ_OK)
        return lmq_output_commit(output, err);
    lmq_output_abort(output);
    return status;
}
