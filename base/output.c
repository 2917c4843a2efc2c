/*
 * output.c - outputs that appear whole or not at all.
 *
 * An output is an unnamed file (O_TMPFILE) that gets its name at commit: even
 * a kill -9 leaves nothing behind. Where the file system has no unnamed files
 * a temporary name in the same folder does. It is locked while it is needed;
 * so a later output in the folder knows which ones nobody needs any more.
 */
#include "config.h"

#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"

/* ---- Temporary names ---- */

#define NAME_START ".lmquant-"
#define NAME_END ".tmp"
#define NAME_TRIES 100

/* Locks may hold among the programs of one machine only: its name is in those
 * of the files, so that nobody takes away what another machine works on. */
static uint32_t
machine_number(void)
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) != 0)
        return 0;
    return lmq_crc32(0, name, strlen(name));
}

/* A new name in the folder that is hardly there yet; NULL without memory. */
static char *
make_name(const char *folder, unsigned attempt)
{
    size_t n = strlen(folder) + 64;
    char *name = malloc(n);
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t seed[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec,
                             (uint64_t)getpid(), attempt,
                             (uint64_t)(uintptr_t)name};
    if (name != NULL)
        snprintf(name, n, "%s/" NAME_START "%08" PRIx32 "-%08" PRIx32 NAME_END,
                 folder, machine_number(), lmq_crc32(0, seed, sizeof(seed)));
    return name;
}

static bool
is_ours(const char *name)
{
    char start[32];
    int n = snprintf(start, sizeof(start), NAME_START "%08" PRIx32 "-",
                     machine_number());

    return strncmp(name, start, (size_t)n) == 0 &&
           strlen(name) == (size_t)n + 8 + strlen(NAME_END) &&
           strcmp(name + n + 8, NAME_END) == 0;
}

/* A file that can be locked belongs to nobody who is alive. */
static void
remove_if_left(int folder, const char *name)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat info;
    int fd = openat(folder, name, O_RDWR | flags);

    if (fd < 0)
        fd = openat(folder, name, O_RDONLY | flags);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void
remove_left_ones(const char *path)
{
    DIR *folder = opendir(path);

    for (const struct dirent *entry;
         folder != NULL && (entry = readdir(folder)) != NULL;)
        if (is_ours(entry->d_name))
            remove_if_left(dirfd(folder), entry->d_name);
    if (folder != NULL)
        closedir(folder);
}

/* ---- Where it will stand ---- */

struct lmq_output {
    int fd; /* -1: there is no file, what stands there is removed */
    bool replace;
    bool is_placed;
    const struct lmq_originals *originals;
    char *path;   /* where it will stand, symbolic links followed */
    char *folder;
    char *temporary; /* its present name, or NULL while it has none */
    char *old;  /* what stood there, until the whole set is in place */
    int old_fd; /* locks it */
};

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
    if (output->path == NULL)
        return errno == ENOENT && S_ISLNK(info.st_mode)
                   ? fail_dangling(path, err)
                   : lmq_fail_errno(err, "cannot be written");
    output->folder = folder_of(output->path);
    return output->folder == NULL ? lmq_fail_nomem(err) : LMQ_OK;
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

static enum lmq_status
check_target(const struct lmq_output *output, struct lmq_error *err)
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
        return lmq_fail(err, LMQ_ERR_IO, 0, "exists and is not a regular file");
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

/* Created, locked and not taken away before it was locked; else -1. */
static int
open_locked(const char *name, mode_t mode)
{
    struct stat info;
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);

    if (fd < 0)
        return -1;
    bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (is_locked && fstat(fd, &info) == 0 && info.st_nlink > 0)
        return fd;
    close(fd);
    errno = EEXIST; /* another name, then */
    return -1;
}

static enum lmq_status
open_named(struct lmq_output *output, struct lmq_error *err)
{
    /* What replaces a private file is private while it is made. */
    mode_t mode = access(output->path, F_OK) == 0 ? 0600 : 0666;

    for (unsigned i = 0; i < NAME_TRIES; i++) {
        char *name = make_name(output->folder, i);
        if (name == NULL)
            return lmq_fail_nomem(err);
        output->fd = open_locked(name, mode);
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

static enum lmq_status
open_file(struct lmq_output *output, struct lmq_error *err)
{
#ifdef O_TMPFILE
    if (access("/proc/self/fd", X_OK) == 0) { /* it gives the name later */
        output->fd = open(output->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
        if (output->fd >= 0) {
            flock(output->fd, LOCK_EX | LOCK_NB);
            return LMQ_OK;
        }
        if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
            return lmq_fail_errno(err, "cannot write into %s",
                                  output->folder);
    }
#endif
    return open_named(output, err);
}

static void
hint_at_limit(int code, struct lmq_error *err)
{
    if (code == EFBIG)
        lmq_hint(err, "a limit (ulimit -f), or the file system, allows no "
                      "file of this size");
}

static enum lmq_status
check_space(const char *folder, uint64_t size, struct lmq_error *err)
{
    struct statvfs space;

    if (statvfs(folder, &space) != 0)
        return LMQ_OK; /* then nobody knows */
    uint64_t available = (uint64_t)space.f_bavail * space.f_frsize;
    if (available >= size)
        return LMQ_OK;
    lmq_fail(err, LMQ_ERR_IO, 0,
             "needs %" PRIu64 " bytes, but the file system of %s has only "
             "%" PRIu64 " free",
             size, folder, available);
    lmq_hint(err, "free some space, or write to another folder");
    return LMQ_ERR_IO;
}

enum lmq_status
lmq_output_check_space(const char *path, uint64_t size, struct lmq_error *err)
{
    char *folder = folder_of(path);
    enum lmq_status status = folder == NULL
                                 ? lmq_fail_nomem(err)
                                 : check_space(folder, size, err);

    if (status != LMQ_OK)
        lmq_error_in(err, path);
    free(folder);
    return status;
}

static enum lmq_status
reserve(struct lmq_output *output, uint64_t size, struct lmq_error *err)
{
    enum lmq_status status = check_space(output->folder, size, err);

    if (status != LMQ_OK)
        return status;
    int code;
    do
        code = size == 0 ? 0 : posix_fallocate(output->fd, 0, (off_t)size);
    while (code == EINTR);
    if (code != 0 && code != EOPNOTSUPP && code != EINVAL) {
        errno = code;
        status = lmq_fail_errno(err, "cannot reserve %" PRIu64 " bytes", size);
        hint_at_limit(code, err);
        return status;
    }
    return LMQ_OK;
}

/* An output with its place, but no file yet. */
static enum lmq_status
start(const char *path, bool replace, const struct lmq_originals *originals,
      struct lmq_output **out, struct lmq_error *err)
{
    *out = NULL;
    struct lmq_output *output = calloc(1, sizeof(*output));
    if (output == NULL)
        return lmq_fail_nomem(err);
    output->fd = output->old_fd = -1;
    output->replace = replace;
    output->originals = originals;
    enum lmq_status status = find_place(output, path, err);
    if (status == LMQ_OK)
        status = check_target(output, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
        lmq_output_abort(output);
        return status;
    }
    *out = output;
    return LMQ_OK;
}

enum lmq_status
lmq_output_create(const char *path, uint64_t size, bool replace,
                  const struct lmq_originals *originals,
                  struct lmq_output **out, struct lmq_error *err)
{
    enum lmq_status status = start(path, replace, originals, out, err);

    if (status != LMQ_OK)
        return status;
    remove_left_ones((*out)->folder);
    status = open_file(*out, err);
    if (status == LMQ_OK)
        status = reserve(*out, size, err);
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
    enum lmq_status status =
        lmq_output_create(path, 0, replace, originals, &output, err);

    lmq_output_abort(output);
    return status;
}

enum lmq_status
lmq_output_remove(const char *path, const struct lmq_originals *originals,
                  struct lmq_output **out, struct lmq_error *err)
{
    return start(path, true, originals, out, err);
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
            int code = errno;
            enum lmq_status status = lmq_fail_errno(
                err, "cannot write at offset %" PRIu64, offset);
            hint_at_limit(code, err);
            lmq_error_in(err, output->path);
            return status;
        }
        p += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
    }
    return LMQ_OK;
}

/* ---- Commit ---- */

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

/* All that can be done before anything changes. */
static enum lmq_status
seal(struct lmq_output *output, struct lmq_error *err)
{
    enum lmq_status status = check_target(output, err);

    if (output->fd < 0 || status != LMQ_OK)
        return status;
    take_after(output);
    return fsync(output->fd) == 0
               ? LMQ_OK
               : lmq_fail_errno(err, "cannot write to the disk");
}

static int
link_file(const struct lmq_output *output, const char *name)
{
    char self[64];

    if (output->temporary != NULL)
        return link(output->temporary, name);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", output->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* An unnamed file gets a name that rename() can take. */
static int
link_temporarily(struct lmq_output *output)
{
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        char *name = make_name(output->folder, i);
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
    for (unsigned i = 0; i < NAME_TRIES && errno == EEXIST; i++) {
        free(output->old);
        output->old = make_name(output->folder, i);
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
    free(output->temporary);
    output->temporary = NULL;
    output->is_placed = true;
    return LMQ_OK;
}

static void
undo(struct lmq_output *output)
{
    if (output->is_placed && output->old == NULL)
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
commit_each(struct lmq_output *const *outputs, size_t n, struct lmq_error *err)
{
    enum lmq_status status = LMQ_OK;
    size_t i;

    for (i = 0; i < n && status == LMQ_OK; i++)
        status = seal(outputs[i], err);
    if (status != LMQ_OK) {
        lmq_error_in(err, outputs[i - 1]->path);
        return status;
    }
    for (i = 0; i < n && status == LMQ_OK; i++)
        status = place(outputs[i], n == 1, err);
    if (status != LMQ_OK)
        lmq_error_in(err, outputs[i - 1]->path);
    while (status != LMQ_OK && i > 0)
        undo(outputs[--i]);
    return status;
}

enum lmq_status
lmq_output_commit_all(struct lmq_output *const *outputs, size_t n,
                      struct lmq_error *err)
{
    enum lmq_status status = commit_each(outputs, n, err);

    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(outputs[i]->folder, outputs[i - 1]->folder) != 0)
            sync_folder(outputs[i]->folder);
    for (size_t i = 0; i < n; i++)
        lmq_output_abort(outputs[i]);
    return status;
}

enum lmq_status
lmq_output_commit(struct lmq_output *output, struct lmq_error *err)
{
    return lmq_output_commit_all(&output, 1, err);
}

void
lmq_output_abort(struct lmq_output *output)
{
    if (output == NULL)
        return;
    if (output->temporary != NULL)
        unlink(output->temporary);
    if (output->old != NULL)
        unlink(output->old);
    if (output->old_fd >= 0)
        close(output->old_fd);
    if (output->fd >= 0)
        close(output->fd);
    free(output->old);
    free(output->temporary);
    free(output->folder);
    free(output->path);
    free(output);
}
