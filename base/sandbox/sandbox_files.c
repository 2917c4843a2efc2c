/*
 * sandbox_files.c - Landlock: reading below some folders, and nothing else.
 *
 * What cannot be found is left to those who open it, so that messages stay as
 * they are; what else fails leaves the files as they were.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_LINUX_LANDLOCK_H
#include <linux/landlock.h>
#include <sys/syscall.h>
#endif

#include "base/sandbox/sandbox_files.h"

#if defined HAVE_LINUX_LANDLOCK_H && defined __NR_landlock_create_ruleset && \
    defined __NR_landlock_add_rule && defined __NR_landlock_restrict_self

/* As in version 6; the headers may be older than the kernel, and an older
 * kernel takes what is longer if the rest is 0. */
struct attributes {
    uint64_t files, network, scoped;
};

/* What is refused unless a rule allows it: all that this kernel knows. */
static struct attributes
all_rights(long version)
{
    /* The number of rights to files with each version. */
    unsigned n_rights = version < 2 ? 13 : version < 3 ? 14
                        : version < 5 ? 15 : 16;

    return (struct attributes){
        .files = (UINT64_C(1) << n_rights) - 1,
        .network = version < 4 ? 0 : 3, /* bind, connect */
        .scoped = version < 6 ? 0 : 3,  /* abstract sockets, signals */
    };
}

static bool
is_absent(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == EACCES ||
           errno == ELOOP || errno == ENAMETOOLONG;
}

/* A folder and all below it, or a file. `folder` is where a relative path
 * begins. */
static bool
allow(int rules, int folder, const char *path, bool is_link)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
        .parent_fd = openat(folder, path, O_PATH | O_CLOEXEC)};
    struct stat status;

    if (rule.parent_fd < 0)
        return is_absent();
    bool is_allowed = fstat(rule.parent_fd, &status) == 0;
    if (is_allowed && S_ISDIR(status.st_mode))
        rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    /* A link to a folder would open more than what lies side by side. */
    if (is_allowed && (S_ISREG(status.st_mode) ||
                       (S_ISDIR(status.st_mode) && !is_link)))
        is_allowed = syscall(__NR_landlock_add_rule, rules,
                             LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return is_allowed;
}

/* A folder, and the files that links in it stand for: caches of models keep
 * links to files elsewhere. */
static bool
allow_folder(int rules, const char *path)
{
    DIR *folder;
    const struct dirent *entry;
    bool is_allowed = allow(rules, AT_FDCWD, path, false);

    if (!is_allowed || (folder = opendir(path)) == NULL)
        return is_allowed && is_absent();
    while (is_allowed && (errno = 0, entry = readdir(folder)) != NULL) {
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status,
                    AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(status.st_mode))
            is_allowed = allow(rules, dirfd(folder), entry->d_name, true);
    }
    if (errno != 0 && entry == NULL)
        is_allowed = false;
    closedir(folder);
    return is_allowed;
}

/* What is an input, and what may lie beside it. */
static bool
allow_input(int rules, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return allow_folder(rules, path);
    char *folder = strdup(path);
    if (folder == NULL)
        return false;
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    bool is_allowed = allow_folder(rules, slash == NULL ? "." : folder);
    free(folder);
    return is_allowed;
}

bool
lmq_sandbox_files(const char *const *paths, size_t n)
{
    long version = syscall(__NR_landlock_create_ruleset, NULL, 0,
                           LANDLOCK_CREATE_RULESET_VERSION);

    if (version < 1)
        return false;
    struct attributes attributes = all_rights(version);
    int rules = (int)syscall(__NR_landlock_create_ruleset, &attributes,
                             sizeof(attributes), 0);
    if (rules < 0)
        return false;
    /* base/threads/threads.c, base/mem.c */
    bool is_done = allow(rules, AT_FDCWD, "/proc/self/cgroup", false) &&
                   allow(rules, AT_FDCWD, "/proc/meminfo", false) &&
                   allow(rules, AT_FDCWD, "/sys/fs/cgroup", false);
    for (size_t i = 0; i < n && is_done; i++)
        is_done = allow_input(rules, paths[i]);
    is_done = is_done &&
              syscall(__NR_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return is_done;
}

#else

bool
lmq_sandbox_files(const char *const *paths, size_t n)
{
    (void)paths;
    (void)n;
    return false;
}

#endif
