/*
 * part.c - outputs with a name of their own while they are made.
 */
#include "config.h"

#include "base/files/part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk_space.h"
#include "base/files/output_place.h"

/* The caller frees it; NULL without memory. */
static char *
part_of(const char *path)
{
    size_t n = strlen(path) + sizeof(LMQ_PART_ENDING);
    char *part = malloc(n);

    if (part != NULL)
        snprintf(part, n, "%s" LMQ_PART_ENDING, path);
    return part;
}

static enum lmq_status
name_part(struct lmq_output *output, const char *path, struct lmq_error *err)
{
    output->temporary = part_of(path);
    output->keeps = true;
    return output->temporary == NULL ? lmq_fail_nomem(err) : LMQ_OK;
}

static struct lmq_part_mark
mark_of(const struct stat *info)
{
    return (struct lmq_part_mark){(uint64_t)info->st_ino,
                                  (uint64_t)info->st_size,
                                  (uint64_t)info->st_mtim.tv_sec,
                                  (uint64_t)info->st_mtim.tv_nsec};
}

enum lmq_status
lmq_part_find_mark(const struct lmq_output *output,
                   struct lmq_part_mark *mark, struct lmq_error *err)
{
    struct stat info;

    if (fstat(output->fd, &info) == 0) {
        *mark = mark_of(&info);
        return LMQ_OK;
    }
    enum lmq_status status = lmq_fail_errno(err, "cannot be looked at");
    lmq_error_in(err, output->temporary);
    return status;
}

static bool
is_marked(const struct stat *info, const struct lmq_part_mark *mark)
{
    struct lmq_part_mark found = mark_of(info);

    return memcmp(&found, mark, sizeof(found)) == 0;
}

/* Its times may have been changed, too. */
static enum lmq_status
fail_other(struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_IO, 0, "exists already, and is not what was begun");
    lmq_hint(err, "if it is what you want remove its journal, which was left "
                  "there; else remove it, and it is written anew");
    return LMQ_ERR_IO;
}

/* A commit links the file to its name and takes the former one away, or
 * renames it; wherever it was stopped, only the former name is left. */
static enum lmq_status
undo_commit(const struct lmq_output *output,
            const struct lmq_part_state *state, struct lmq_error *err)
{
    bool is_committing = state->stage == LMQ_PART_COMMITTING;
    struct stat whole, part;

    if (state->stage == LMQ_PART_NONE)
        return LMQ_OK;
    if (lstat(output->path, &whole) != 0 || !S_ISREG(whole.st_mode))
        return LMQ_OK;
    bool has_part = lstat(output->temporary, &part) == 0;
    int result = 0;
    if (!has_part && is_committing &&
        !is_marked(&whole, &state->mark)) /* what replaces it is made anew */
        return output->replace ? LMQ_OK : fail_other(err);
    if (has_part && whole.st_dev == part.st_dev &&
        whole.st_ino == part.st_ino)
        result = unlink(output->path);
    else if (!has_part && is_committing)
        result = rename(output->path, output->temporary);
    return result == 0 ? LMQ_OK
                       : lmq_fail_errno(err, "cannot be taken up again");
}

static enum lmq_status
fail_foreign(struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_IO, 0, "is there, and no journal tells that it was "
                                 "begun");
    lmq_hint(err, "remove it, or name another output");
    return LMQ_ERR_IO;
}

static enum lmq_status
fail_size(uint64_t found, uint64_t expected, struct lmq_error *err)
{
    lmq_fail(err, LMQ_ERR_IO, 0,
             "has %" PRIu64 " bytes, expected %" PRIu64
             ": it is not what was begun",
             found, expected);
    lmq_hint(err, "if it is being copied wait for the rest; if it is not "
                  "wanted remove it, and it is written anew");
    return LMQ_ERR_IO;
}

static enum lmq_status
open_part(struct lmq_output *output, uint64_t size,
          const struct lmq_part_state *state, bool *is_there,
          struct lmq_error *err)
{
    bool is_new = state->stage == LMQ_PART_NONE;
    /* What replaces a private file is private while it is made. */
    mode_t mode = access(output->path, F_OK) == 0 ? 0600 : 0666;
    struct stat info;

    output->fd = open(output->temporary,
                      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                          (is_new ? O_EXCL : 0),
                      mode);
    if (output->fd < 0 && errno == EEXIST)
        return fail_foreign(err);
    if (output->fd >= 0 && is_new)
        output->keeps = false; /* it was made here */
    if (output->fd < 0 || fstat(output->fd, &info) != 0)
        return lmq_fail_errno(err, "cannot be opened");
    if (!S_ISREG(info.st_mode) ||
        lmq_originals_find(output->originals, (uint64_t)info.st_dev,
                           (uint64_t)info.st_ino) != NULL)
        return lmq_fail(err, LMQ_ERR_IO, 0,
                        "is there, and is not what was begun");
    if (flock(output->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lmq_fail(err, LMQ_ERR_IO, 0,
                        "is in use: another process works on it");
    *is_there = (uint64_t)info.st_size == size && size > 0;
    if (*is_there)
        return LMQ_OK;
    if (state->was_whole && info.st_size > 0)
        return fail_size((uint64_t)info.st_size, size, err);
    output->keeps = false; /* as long as there is nothing in it */
    enum lmq_status status = lmq_space_cut(output->fd, 0, err);
    if (status == LMQ_OK)
        status = lmq_space_check(output->folder, size, err);
    if (status == LMQ_OK)
        status = lmq_space_reserve(output->fd, size, err);
    output->keeps = status == LMQ_OK;
    return status;
}

enum lmq_status
lmq_part_open(const char *path, uint64_t size, bool replace,
              const struct lmq_part_state *state,
              const struct lmq_originals *originals, struct lmq_output **out,
              bool *is_there, struct lmq_error *err)
{
    *out = NULL;
    struct lmq_output *output;
    enum lmq_status status =
        lmq_output_place(path, replace, originals, &output, err);
    if (status == LMQ_OK)
        status = name_part(output, output->path, err);
    if (status == LMQ_OK)
        status = undo_commit(output, state, err);
    if (status == LMQ_OK)
        status = lmq_output_check_target(output, err);
    if (status != LMQ_OK) {
        lmq_error_in(err, path);
    } else {
        status = open_part(output, size, state, is_there, err);
        if (status != LMQ_OK)
            lmq_error_in(err, output->temporary);
    }
    if (status != LMQ_OK) {
        lmq_output_abort(output);
        return status;
    }
    *out = output;
    return LMQ_OK;
}

enum lmq_status
lmq_part_look(const char *path, uint64_t size, struct lmq_output **out,
              struct lmq_error *err)
{
    struct stat info;

    *out = NULL;
    struct lmq_output *output = calloc(1, sizeof(*output));
    if (output == NULL)
        return lmq_fail_nomem(err);
    output->fd = output->old_fd = output->lock_fd = -1;
    enum lmq_status status = name_part(output, path, err);
    if (status != LMQ_OK) {
        lmq_output_abort(output);
        return status;
    }
    output->fd = open(output->temporary,
                      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (output->fd >= 0 && fstat(output->fd, &info) == 0 &&
        S_ISREG(info.st_mode) && (uint64_t)info.st_size == size)
        *out = output;
    else
        lmq_output_abort(output);
    return LMQ_OK;
}

enum lmq_status
lmq_part_check_none(const char *path, struct lmq_error *err)
{
    char *part = part_of(path);
    struct stat info;
    enum lmq_status status = part == NULL                ? lmq_fail_nomem(err)
                             : lstat(part, &info) == 0 ? fail_foreign(err)
                                                         : LMQ_OK;

    if (status != LMQ_OK)
        lmq_error_in(err, part == NULL ? path : part);
    free(part);
    return status;
}

void
lmq_part_forget(struct lmq_output *output)
{
    output->keeps = false;
}

uint64_t
lmq_part_room(const char *path, uint64_t size)
{
    char *part = part_of(path);
    struct stat info;
    bool is_there = part != NULL && lstat(part, &info) == 0 &&
                    (uint64_t)info.st_size == size;

    free(part);
    return is_there ? 0 : size;
}

enum lmq_status
lmq_part_read(struct lmq_output *output, uint64_t offset, void *bytes,
              size_t n, struct lmq_error *err)
{
    char *p = bytes;

    while (n > 0) {
        ssize_t got = pread(output->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            enum lmq_status status =
                got < 0 ? lmq_fail_errno(err, "cannot read at offset %" PRIu64,
                                         offset)
                        : lmq_fail(err, LMQ_ERR_IO, offset,
                                   "ends before offset %" PRIu64, offset);
            lmq_error_in(err, output->temporary);
            return status;
        }
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return LMQ_OK;
}

const char *
lmq_part_name(const struct lmq_output *output)
{
    return output->temporary;
}

enum lmq_status
lmq_part_sync(struct lmq_output *output, struct lmq_error *err)
{
    if (fsync(output->fd) == 0)
        return LMQ_OK;
    enum lmq_status status = lmq_fail_errno(err, "cannot write to the disk");
    lmq_error_in(err, output->temporary);
    return status;
}
