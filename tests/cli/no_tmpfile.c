/*
 * no_tmpfile.c - preloaded, makes every file system one without unnamed
 * files; with NO_TMPFILE_KILL set, fsync() is the end of the program. With
 * NO_PROC set there are unnamed files, but no /proc that could name them; with
 * NO_LINKS they cannot be named since nothing can be linked.
 */
#include "config.h"

#undef _FORTIFY_SOURCE /* it has an open() of its own */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
has_unnamed(void)
{
    return getenv("NO_PROC") != NULL || getenv("NO_LINKS") != NULL;
}

/* Whether the path is one that nobody has; errno says so. */
static int
is_missing(const char *path)
{
    if (getenv("NO_PROC") == NULL || strncmp(path, "/proc", 5) != 0)
        return 0;
    errno = ENOENT;
    return 1;
}

__attribute__((visibility("default"))) int
open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(args, int) : 0;
    va_end(args);
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE && !has_unnamed()) {
        errno = EOPNOTSUPP;
        return -1;
    }
#endif
    if (is_missing(path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

__attribute__((visibility("default"))) int
access(const char *path, int mode)
{
    if (is_missing(path))
        return -1;
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

static int
are_links_denied(void)
{
    errno = EACCES;
    return getenv("NO_LINKS") != NULL;
}

__attribute__((visibility("default"))) int
link(const char *path, const char *name)
{
    if (are_links_denied())
        return -1;
    return (int)syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, name, 0);
}

__attribute__((visibility("default"))) int
linkat(int from, const char *path, int to, const char *name, int flags)
{
    if (are_links_denied() || is_missing(path))
        return -1;
    return (int)syscall(SYS_linkat, from, path, to, name, flags);
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
    if (getenv("NO_TMPFILE_KILL") != NULL)
        raise(SIGKILL);
    return (int)syscall(SYS_fsync, fd);
}
