/*
 * temporary.c - names of files that are on their way.
 */
#include "config.h"

#include "base/files/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/files/path.h"

#define NAME_START ".lmquant-"
#define NAME_END ".tmp"
#define LOCK_NAME NAME_START "00000000-00000000" NAME_END

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
char *
lmq_temporary_name(const char *folder, unsigned attempt)
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

char *
lmq_temporary_lock(const char *folder)
{
    return lmq_path_join(folder, LOCK_NAME);
}

/* Who removes such a file has locked it: it may be gone by now. One of another
 * user can be locked all the same. */
int
lmq_temporary_open(const char *name, int flags, mode_t mode)
{
    struct stat info;
    int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags,
                  mode);

    if (fd < 0 && errno == EACCES && !(flags & O_EXCL))
        fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (is_locked && fstat(fd, &info) == 0 && info.st_nlink > 0)
        return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

int
lmq_temporary_link(int fd, const char *name)
{
    char self[64];

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static bool
is_ours(const char *name)
{
    char start[32];
    int n = snprintf(start, sizeof(start), NAME_START "%08" PRIx32 "-",
                     machine_number());

    return strcmp(name, LOCK_NAME) == 0 ||
           (strncmp(name, start, (size_t)n) == 0 &&
            strlen(name) == (size_t)n + 8 + strlen(NAME_END) &&
            strcmp(name + n + 8, NAME_END) == 0);
}

/* A file that can be locked belongs to nobody who is alive, unless it was gone
 * before it was locked: somebody else may have its name by now. */
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
        info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(fd, &info) == 0 && info.st_nlink > 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void
lmq_temporary_clean(const char *path)
{
    DIR *folder = opendir(path);

    for (const struct dirent *entry;
         folder != NULL && (entry = readdir(folder)) != NULL;)
        if (is_ours(entry->d_name))
            remove_if_left(dirfd(folder), entry->d_name);
    if (folder != NULL)
        closedir(folder);
}
