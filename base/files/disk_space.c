/*
 * disk_space.c - asks for room before the work, so that a full disk is found
 * then.
 */
#include "config.h"

#include "base/files/disk_space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"

enum lmq_status
lmq_space_check(const char *folder, uint64_t size, struct lmq_error *err)
{
    struct statvfs space;

    /* Some have 0 blocks of all kinds, as ramfs, and room all the same. */
    if (statvfs(folder, &space) != 0 || space.f_blocks == 0)
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
lmq_space_cut(int fd, uint64_t size, struct lmq_error *err)
{
    while (ftruncate(fd, (off_t)size) != 0)
        if (errno != EINTR)
            return lmq_fail_errno(err, "cannot write");
    return LMQ_OK;
}

enum lmq_status
lmq_space_reserve(int fd, uint64_t size, struct lmq_error *err)
{
    int code;

    do
        code = size == 0 ? 0 : posix_fallocate(fd, 0, (off_t)size);
    while (code == EINTR);
    /* Not on this file system, or not in this sandbox. */
    if (code == EOPNOTSUPP || code == EINVAL || code == ENOSYS)
        return lmq_space_cut(fd, size, err);
    if (code == 0)
        return LMQ_OK;
    errno = code;
    return lmq_fail_errno(err, "cannot reserve %" PRIu64 " bytes", size);
}
