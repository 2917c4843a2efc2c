/*
 * no_tmpfile.c - preloaded, makes every file system one without unnamed
 * files; with NO_TMPFILE_KILL set, fsync() is the end of the program.
 */
#include "config.h"

#undef _FORTIFY_SOURCE /* it has an open() of its own */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int
open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
#endif
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
    if (getenv("NO_TMPFILE_KILL") != NULL)
        raise(SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}
