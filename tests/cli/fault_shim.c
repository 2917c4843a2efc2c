/*
 * fault_shim.c - preloaded: makes one call of the program fail.
 *
 * FAULT_CLASS names the calls that are counted, FAULT_AT which of them fails
 * ("3+": this one and all behind it), FAULT_ERRNO how; SHORT in place of a
 * number lets a read or write do half of its work, KILL ends the program before
 * the call, TERM asks it to end and makes the call, HANG never comes back. A
 * byte to the descriptor FAULT_FD tells that it has happened. Calls inside the
 * C library do not come by here, except for memory.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define SHORT (-1)
#define KILL (-2)
#define HANG (-3)
#define TERM (-4)

static const char *wanted;
static long fault_at;
static int fails_on;
static int fault_errno, fault_fd;
static atomic_long n_calls;

/* After the constructors of the libraries that the program needs. */
__attribute__((constructor)) static void
begin(void)
{
    const char *at = getenv("FAULT_AT"), *code = getenv("FAULT_ERRNO");
    const char *fd = getenv("FAULT_FD");

    if (at == NULL || code == NULL || fd == NULL)
        return;
    fault_at = atol(at);
    fails_on = strchr(at, '+') != NULL;
    fault_errno = strcmp(code, "SHORT") == 0  ? SHORT
                  : strcmp(code, "KILL") == 0 ? KILL
                  : strcmp(code, "HANG") == 0 ? HANG
                  : strcmp(code, "TERM") == 0 ? TERM
                                              : atoi(code);
    fault_fd = atoi(fd);
    wanted = getenv("FAULT_CLASS");
}

/* The next function of this name, which is the C library's. */
static void *
next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        _exit(99);
    return found;
}

#define NEXT(result, name, ...)                                               \
    static result (*real)(__VA_ARGS__);                                       \
    if (real == NULL)                                                         \
        *(void **)&real = next(#name)

static int
is_hit(const char *class)
{
    int code = errno;

    if (wanted == NULL || strcmp(wanted, class) != 0)
        return 0;
    long call = atomic_fetch_add(&n_calls, 1) + 1;
    if (call < fault_at || (call > fault_at && !fails_on))
        return 0;
    if (fault_errno == KILL)
        raise(SIGKILL);
    NEXT(ssize_t, write, int, const void *, size_t);
    if (real(fault_fd, "!", 1) != 1)
        _exit(99);
    while (fault_errno == HANG)
        pause();
    if (fault_errno == TERM) {
        raise(SIGTERM);
        return 0;
    }
    errno = fault_errno == SHORT ? code : fault_errno;
    return 1;
}

/* Fails, or halves *n: 0 or 1. */
static int
is_stopped(const char *class, size_t *n)
{
    if (!is_hit(class))
        return 0;
    if (fault_errno != SHORT)
        return 1;
    *n = *n > 1 ? *n / 2 : *n;
    return 0;
}

/* ---- The end, where lines are counted ---- */

#ifdef LMQ_COVERAGE
/* The counts are written when libraries are torn down; a failure there would
 * not be one of the program. What is registered last is called first, so it
 * has to be when main() begins. */
static int (*real_main)(int, char **, char **);

static void
end(void)
{
    wanted = NULL;
}

static int
main_with_end(int argc, char **argv, char **environment)
{
    if (atexit(end) != 0)
        _exit(99);
    return real_main(argc, argv, environment);
}

int
__libc_start_main(int (*own)(int, char **, char **), int argc, char **argv,
                  void (*first)(void), void (*last)(void),
                  void (*tear_down)(void), void *stack)
{
    NEXT(int, __libc_start_main, int (*)(int, char **, char **), int,
         char **, void (*)(void), void (*)(void), void (*)(void), void *);
    real_main = own;
    return real(main_with_end, argc, argv, first, last, tear_down, stack);
}
#endif

/* ---- Memory ---- */

/* dlsym() may ask for memory before there is any. */
static _Alignas(16) char arena[8192];
static size_t arena_used;
static int is_searching;

static void *
from_arena(size_t n)
{
    char *p = arena + arena_used;

    n = (n + 15) & ~(size_t)15;
    if (n > sizeof(arena) - arena_used)
        _exit(99);
    arena_used += n;
    return p;
}

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static int
is_ready(void)
{
    if (real_free != NULL)
        return 1;
    if (is_searching)
        return 0;
    is_searching = 1;
    *(void **)&real_malloc = next("malloc");
    *(void **)&real_calloc = next("calloc");
    *(void **)&real_realloc = next("realloc");
    *(void **)&real_free = next("free");
    is_searching = 0;
    return 1;
}

void *
malloc(size_t n)
{
    if (!is_ready())
        return from_arena(n);
    return is_hit("memory") ? NULL : real_malloc(n);
}

void *
calloc(size_t count, size_t n)
{
    if (!is_ready())
        return from_arena(count * n); /* still zero */
    return is_hit("memory") ? NULL : real_calloc(count, n);
}

void *
realloc(void *p, size_t n)
{
    if (!is_ready())
        return from_arena(n);
    return is_hit("memory") ? NULL : real_realloc(p, n);
}

void
free(void *p)
{
    if ((char *)p >= arena && (char *)p < arena + sizeof(arena))
        return;
    if (is_ready())
        real_free(p);
}

void *
aligned_alloc(size_t alignment, size_t n)
{
    NEXT(void *, aligned_alloc, size_t, size_t);
    return is_hit("memory") ? NULL : real(alignment, n);
}

int
posix_memalign(void **p, size_t alignment, size_t n)
{
    NEXT(int, posix_memalign, void **, size_t, size_t);
    return is_hit("memory") ? ENOMEM : real(p, alignment, n);
}

/* ---- Files ---- */

/* Each also under the name that a 32-bit system has for large files. */
#define MMAP(name, off)                                                       \
    void *name(void *at, size_t n, int how, int flags, int fd, off from)      \
    {                                                                         \
        NEXT(void *, name, void *, size_t, int, int, int, off);               \
        const char *class = fd >= 0           ? "mmap"                        \
                            : how & PROT_EXEC ? "code"                        \
                                              : "pages";                      \
        return is_hit(class) ? MAP_FAILED                                     \
                             : real(at, n, how, flags, fd, from);             \
    }
#define OPEN(name)                                                            \
    int name(const char *path, int flags, ...)                                \
    {                                                                         \
        va_list args;                                                         \
        NEXT(int, name, const char *, int, ...);                              \
        va_start(args, flags);                                                \
        unsigned mode = flags & (O_CREAT | O_TMPFILE)                         \
                            ? va_arg(args, unsigned)                          \
                            : 0;                                              \
        va_end(args);                                                         \
        return is_hit("open") ? -1 : real(path, flags, mode);                 \
    }
#define PREAD(name, off)                                                      \
    ssize_t name(int fd, void *p, size_t n, off at)                           \
    {                                                                         \
        NEXT(ssize_t, name, int, void *, size_t, off);                        \
        return is_stopped("read", &n) ? -1 : real(fd, p, n, at);              \
    }
#define PWRITE(name, off)                                                     \
    ssize_t name(int fd, const void *p, size_t n, off at)                     \
    {                                                                         \
        NEXT(ssize_t, name, int, const void *, size_t, off);                  \
        return is_stopped("write", &n) ? -1 : real(fd, p, n, at);             \
    }
#define FTRUNCATE(name, off)                                                  \
    int name(int fd, off n)                                                   \
    {                                                                         \
        NEXT(int, name, int, off);                                            \
        return is_hit("space") ? -1 : real(fd, n);                            \
    }
#define FALLOCATE(name, off)                                                  \
    int name(int fd, off at, off n)                                           \
    {                                                                         \
        NEXT(int, name, int, off, off);                                       \
        return is_hit("space") ? fault_errno : real(fd, at, n);               \
    }
#define STAT(name, type)                                                      \
    int name(const char *path, struct type *info)                             \
    {                                                                         \
        NEXT(int, name, const char *, struct type *);                         \
        return is_hit("stat") ? -1 : real(path, info);                        \
    }
#define FSTAT(name, type)                                                     \
    int name(int fd, struct type *info)                                       \
    {                                                                         \
        NEXT(int, name, int, struct type *);                                  \
        return is_hit("stat") ? -1 : real(fd, info);                          \
    }
#define MKSTEMP(name)                                                         \
    int name(char *path)                                                      \
    {                                                                         \
        NEXT(int, name, char *);                                              \
        return is_hit("open") ? -1 : real(path);                              \
    }
#define READDIR(name, type)                                                   \
    struct type *name(DIR *folder)                                            \
    {                                                                         \
        NEXT(struct type *, name, DIR *);                                     \
        return is_hit("readdir") ? NULL : real(folder);                       \
    }

#define FOPEN(name)                                                           \
    FILE *name(const char *path, const char *mode)                            \
    {                                                                         \
        NEXT(FILE *, name, const char *, const char *);                       \
        return is_hit("open") ? NULL : real(path, mode);                      \
    }

MMAP(mmap, off_t)
OPEN(open)
PREAD(pread, off_t)
PWRITE(pwrite, off_t)
FTRUNCATE(ftruncate, off_t)
FALLOCATE(posix_fallocate, off_t)
STAT(stat, stat)
STAT(lstat, stat)
FSTAT(fstat, stat)
MKSTEMP(mkstemp)
READDIR(readdir, dirent)
FOPEN(fopen)

/* musl has one name for both. */
#ifdef __GLIBC__
MMAP(mmap64, off64_t)
OPEN(open64)
PREAD(pread64, off64_t)
PWRITE(pwrite64, off64_t)
FTRUNCATE(ftruncate64, off64_t)
FALLOCATE(posix_fallocate64, off64_t)
STAT(stat64, stat64)
STAT(lstat64, stat64)
FSTAT(fstat64, stat64)
MKSTEMP(mkstemp64)
READDIR(readdir64, dirent64)
FOPEN(fopen64)
#endif

ssize_t
read(int fd, void *p, size_t n)
{
    NEXT(ssize_t, read, int, void *, size_t);
    return is_stopped("read", &n) ? -1 : real(fd, p, n);
}

ssize_t
write(int fd, const void *p, size_t n)
{
    NEXT(ssize_t, write, int, const void *, size_t);
    return is_stopped("write", &n) ? -1 : real(fd, p, n);
}

DIR *
opendir(const char *path)
{
    NEXT(DIR *, opendir, const char *);
    return is_hit("open") ? NULL : real(path);
}

int
access(const char *path, int how)
{
    NEXT(int, access, const char *, int);
    return is_hit("stat") ? -1 : real(path, how);
}

int
fsync(int fd)
{
    NEXT(int, fsync, int);
    return is_hit("fsync") ? -1 : real(fd);
}

int
rename(const char *from, const char *to)
{
    NEXT(int, rename, const char *, const char *);
    return is_hit("rename") ? -1 : real(from, to);
}

/* Whether an empty file is linked, and taken away behind that: a trial whether
 * files get names here, and no step of what is being counted. */
static _Thread_local int is_trial;

static int
is_empty(const char *path)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    int empty = fd >= 0 && lseek(fd, 0, SEEK_END) == 0;

    if (fd >= 0)
        syscall(SYS_close, fd);
    return empty;
}

int
unlink(const char *path)
{
    NEXT(int, unlink, const char *);
    const char *class = is_trial ? "trial" : "unlink";

    is_trial = 0;
    return is_hit(class) ? -1 : real(path);
}

int
link(const char *from, const char *to)
{
    NEXT(int, link, const char *, const char *);
    return is_hit("rename") ? -1 : real(from, to);
}

int
linkat(int a, const char *from, int b, const char *to, int flags)
{
    NEXT(int, linkat, int, const char *, int, const char *, int);
    is_trial = is_empty(from);
    return !is_trial && is_hit("rename") ? -1 : real(a, from, b, to, flags);
}

int
mkdir(const char *path, mode_t mode)
{
    NEXT(int, mkdir, const char *, mode_t);
    return is_hit("rename") ? -1 : real(path, mode);
}
