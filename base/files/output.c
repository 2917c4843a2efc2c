/*
 * output.c - outputs that appear whole or not at all.
 *
 * An output is an unnamed file (O_TMPFILE) that gets its name at commit: even
 * a kill -9 leaves nothing behind, but an empty file in the moment in which it
 * is tried whether a name can be given. Where there are no unnamed files, or
 * none that can get a name, a temporary name in the same folder does. It is
 * locked while it is needed; so a later output in the folder knows which ones
 * nobody needs any more.
 */
#include "config.h"

#include "base/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk_space.h"
#include "base/files/output_place.h"
#include "base/files/path.h"
#include "base/files/temporary.h"

/* Bytes between two wishes that the system write out what it holds. */
#define FLUSH_STEP ((uint64_t)64 << 20)

/* ---- Where it will stand ---- */

static char *
folder_of(const char *path)
{
    char *copy = strdup(path);
    char *folder = copy == NULL ? NULL : strdup(dirname(copy));

    free(copy);
    return folder;
}

/* A link may lead to a place that is not there; whether the target or the link
 * is meant nobody knows. */
static enum lmq_status
fail_dangling(const char *path, struct lmq_error *err)
{
    char target[256];
    ssize_t n = readlink(path, target, sizeof(target) - 1);

    target[n < 0 ? 0 : n] = '\0';
    lmq_fail(err, LMQ_ERR_IO, 0,
             "is a symbolic link to '%s', which is not there", target);
    lmq_hint(err, "name that file, or remove the link");
    return LMQ_ERR_IO;
}

static enum lmq_status
fail_irregular(struct lmq_error *err)
{
    return lmq_fail(err, LMQ_ERR_IO, 0, "exists and is not a regular file");
}

static enum lmq_status
find_new(struct lmq_output *output, const char *path, struct lmq_error *err)
{
    struct stat info;

    output->path = strdup(path);
    output->folder = folder_of(path);
    if (output->path == NULL || output->folder == NULL)
        return lmq_fail_nomem(err);
    if (stat(output->folder, &info) != 0) {
        bool is_missing = errno == ENOENT;
        enum lmq_status status =
            lmq_fail_errno(err, "cannot write into %s", output->folder);
        if (is_missing)
            lmq_hint(err, "mkdir -p makes a folder");
        return status;
    }
    if (path[strlen(path) - 1] == '/')
        return lmq_fail(err, LMQ_ERR_ARG, 0,
                        "is the name of a folder, expected that of a file");
    return LMQ_OK;
}

/* The final place: an existing symbolic link stays one. */
static enum lmq_status
find_place(struct lmq_output *output, const char *path, struct lmq_error *err)
{
    struct stat info;

    if (path[0] == '\0')
        return lmq_fail(err, LMQ_ERR_ARG, 0, "the output's name is empty");
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? find_new(output, path, err)
                               : lmq_fail_errno(err, "cannot be written");
    output->path = realpath(path, NULL);
    if (output->path == NULL) {
        if (errno != ENOENT || !S_ISLNK(info.st_mode))
            return lmq_fail_errno(err, "cannot be written");
        /* /dev/stdout may lead to a pipe, which is there and has no path. */
        return stat(path, &info) == 0 && !S_ISREG(info.st_mode)
                   ? fail_irregular(err)
                   : fail_dangling(path, err);
    }
    output->folder = folder_of(output->path);
    return output->folder == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

bool
lmq_output_is_same(const char *a, const char *b)
{
    const char *names[] = {a, b};
    struct stat info[2];
    bool is_there[2];

    for (int i = 0; i < 2; i++)
        is_there[i] = stat(names[i], &info[i]) == 0;
    if (!is_there[0] && !is_there[1]) {
        const char *ends[2];
        for (int i = 0; i < 2; i++) {
            char *folder = folder_of(names[i]);
            ends[i] = lmq_path_base(names[i]);
            is_there[i] = folder != NULL && stat(folder, &info[i]) == 0;
            free(folder);
        }
        if (strcmp(ends[0], ends[1]) != 0)
            return false;
    }
    return is_there[0] && is_there[1] && info[0].st_dev == info[1].st_dev &&
           info[0].st_ino == info[1].st_ino;
}

/* In a folder like /tmp nobody replaces the files of others. */
static bool
is_held_by_folder(const struct lmq_output *output, const struct stat *info)
{
    struct stat folder;
    uid_t self = geteuid();

    return self != 0 && stat(output->folder, &folder) == 0 &&
           (folder.st_mode & S_ISVTX) != 0 && folder.st_uid != self &&
           info->st_uid != self;
}

enum lmq_status
lmq_output_check_target(const struct lmq_output *output, struct lmq_error *err)
{
    struct stat info;

    if (stat(output->path, &info) != 0)
        return errno == ENOENT ? LMQ_OK /* the usual case */
                               : lmq_fail_errno(err, "cannot be written");
    if (S_ISDIR(info.st_mode)) {
        lmq_fail(err, LMQ_ERR_IO, 0, "is a folder, expected a file");
        lmq_hint(err, "name a file in it");
        return LMQ_ERR_IO;
    }
    if (!S_ISREG(info.st_mode))
        return fail_irregular(err);
    if (lmq_originals_find(output->originals, (uint64_t)info.st_dev,
                           (uint64_t)info.st_ino) != NULL) {
        lmq_fail(err, LMQ_ERR_ARG, 0,
                 "is a part of what is read: the output would destroy its "
                 "source");
        lmq_hint(err, "name another output");
        return LMQ_ERR_ARG;
    }
    if (!output->replace) {
        lmq_fail(err, LMQ_ERR_IO, 0, "exists already");
        lmq_hint(err, ".replaces replaces it");
        return LMQ_ERR_IO;
    }
    if (is_held_by_folder(output, &info))
        return lmq_fail(err, LMQ_ERR_IO, 0,
                        "belongs to somebody else, in a folder where only "
                        "owners replace files");
    return LMQ_OK;
}

/* ---- The file ---- */

static enum lmq_status
open_named(struct lmq_output *output, struct lmq_error *err)
{
    /* What replaces a private file is private while it is made. */
    mode_t mode = access(output->path, F_OK) == 0 ? 0600 : 0666;

    for (unsigned i = 0; i < LMQ_TEMPORARY_TRIES; i++) {
        char *name = lmq_temporary_name(output->folder, i);
        if (name == NULL)
            return lmq_fail_nomem(err);
        output->fd = lmq_temporary_open(name, O_EXCL, mode);
        if (output->fd >= 0) {
            output->temporary = name;
            return LMQ_OK;
        }
        free(name);
        if (errno != EEXIST)
            break;
    }
    return lmq_fail_errno(err, "cannot write into %s", output->folder);
}

#ifdef O_TMPFILE
/* Whether an unnamed file in there can get a name later: not without /proc,
 * nor where links are denied, as on Android. Only trying tells, and better now
 * than at the end of the work. */
static bool
gives_names(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char *name = fd < 0 ? NULL : lmq_temporary_name(folder, 0);
    bool is_named = name != NULL && lmq_temporary_link(fd, name) == 0;

    if (is_named)
        unlink(name);
    free(name);
    if (fd >= 0)
        close(fd);
    return is_named;
}
#endif

static enum lmq_status
open_file(struct lmq_output *output, struct lmq_error *err)
{
#ifdef O_TMPFILE
    if (gives_names(output->folder))
        output->fd = open(output->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (output->fd >= 0) {
        flock(output->fd, LOCK_EX | LOCK_NB);
        return LMQ_OK;
    }
#endif
    return open_named(output, err);
}

enum lmq_status
lmq_output_check_space(const char *path, uint64_t size, struct lmq_error *err)
{
    char *folder = folder_of(path);
    enum lmq_status status = folder == NULL
                                 ? lmq_fail_nomem(err)
                                 : lmq_space_check(folder, size, err);

    if (status != LMQ_OK)
        lmq_error_in(err, path);
    free(folder);
    return status;
}

enum lmq_status
lmq_output_place(const char *path, bool replace,
                 const struct lmq_originals *originals,
                 struct lmq_output **out, struct lmq_error *err)
{
    *out = NULL;
    struct lmq_output *output = calloc(1, sizeof(*output));
    if (output == NULL)
        return lmq_fail_nomem(err);
    output->fd = output->old_fd = output->lock_fd = -1;
    output->replace = replace;
    output->originals = originals;
    enum lmq_status status = find_place(output, path, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_output_abort(output);
        return status;
    }
    *out = output;
    return LMQ_OK;
}

static enum lmq_status
start(const char *path, bool replace, const struct lmq_originals *originals,
      struct lmq_output **out, struct lmq_error *err)
{
    enum lmq_status status =
        lmq_output_place(path, replace, originals, out, err);

    if (status != LMQ_OK)
        return status;
    status = lmq_output_check_target(*out, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_output_abort(*out);
        *out = NULL;
    }
    return status;
}

enum lmq_status
lmq_output_create(const char *path, uint64_t size, bool replace,
                  const struct lmq_originals *originals,
                  struct lmq_output **out, struct lmq_error *err)
{
    enum lmq_status status = start(path, replace, originals, out, err);

    if (status != LMQ_OK)
        return status;
    lmq_temporary_clean((*out)->folder);
    status = open_file(*out, err);
    if (status == LMQ_OK)
        status = lmq_space_check((*out)->folder, size, err);
    if (status == LMQ_OK)
        status = lmq_space_reserve((*out)->fd, size, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_output_abort(*out);
        *out = NULL;
    }
    return status;
}

enum lmq_status
lmq_output_check(const char *path, bool replace,
                 const struct lmq_originals *originals, struct lmq_error *err)
{
    struct lmq_output *output;
    sigset_t all, before;

    /* No signal comes between what a trial makes and what takes it away. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    enum lmq_status status =
        lmq_output_create(path, 0, replace, originals, &output, err);
    lmq_output_abort(output);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum lmq_status
lmq_output_remove(const char *path, const struct lmq_originals *originals,
                  struct lmq_output **out, struct lmq_error *err)
{
    enum lmq_status status = start(path, true, originals, out, err);

    if (status != LMQ_OK)
        return status;
    /* A symbolic link goes itself, and not what it leads to. */
    free((*out)->path);
    free((*out)->folder);
    (*out)->path = strdup(path);
    (*out)->folder = folder_of(path);
    if ((*out)->path != NULL && (*out)->folder != NULL)
        return LMQ_OK;
    lmq_output_abort(*out);
    *out = NULL;
    return lmq_fail_nomem(err);
}

/* Has the system begin to write it out, now and then, so that a commit need not
 * wait for all of it. */
static void
begin_flush(struct lmq_output *output, size_t n)
{
#ifdef SYNC_FILE_RANGE_WRITE
    uint64_t before = atomic_fetch_add(&output->n_written, n);

    if (before / FLUSH_STEP != (before + n) / FLUSH_STEP)
        sync_file_range(output->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)output;
    (void)n;
#endif
}

enum lmq_status
lmq_output_write(struct lmq_output *output, uint64_t offset, const void *bytes,
                 size_t n, struct lmq_error *err)
{
    const unsigned char *p = bytes;

    while (n > 0) {
        ssize_t put = pwrite(output->fd, p, n, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            enum lmq_status status = lmq_fail_errno(
                err, "cannot write at offset %" PRIu64, offset);
            lmq_error_in(err, output->path);
            return status;
        }
        p += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
        begin_flush(output, (size_t)put);
    }
    return LMQ_OK;
}

void
lmq_output_abort(struct lmq_output *output)
{
    if (output == NULL)
        return;
    if (output->temporary != NULL && !output->keeps)
        unlink(output->temporary);
    if (output->old != NULL)
        unlink(output->old);
    if (output->old_fd >= 0)
        close(output->old_fd);
    if (output->lock_fd >= 0) {
        unlink(output->lock);
        close(output->lock_fd);
    }
    if (output->fd >= 0)
        close(output->fd);
    free(output->lock);
    free(output->old);
    free(output->temporary);
    free(output->folder);
    free(output->path);
    free(output);
}
