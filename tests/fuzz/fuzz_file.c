/*
 * fuzz_file.c - bytes as files that need no disk.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* A file in memory, made at the first use. */
struct file {
    int fd; /* or 0 */
    char path[64];
};

static void
fill(struct file *file, const uint8_t *bytes, size_t n)
{
    if (file->fd == 0) {
        file->fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d",
                 file->fd);
    }
    if (file->fd < 0 || ftruncate(file->fd, (off_t)n) != 0 ||
        pwrite(file->fd, bytes, n, 0) != (ssize_t)n) {
        perror("fuzz_file");
        abort();
    }
}

const char *
fuzz_file(const uint8_t *bytes, size_t n)
{
    static struct file file;

    fill(&file, bytes, n);
    return file.path;
}

const char *
fuzz_text(const char *text)
{
    static struct file file;

    fill(&file, (const uint8_t *)text, strlen(text));
    return file.path;
}

/* ---- Members of a set ---- */

static char folder[] = "/tmp/fuzz-XXXXXX", links[2][64];

static void
remove_links(void)
{
    for (int i = 0; i < 2; i++)
        unlink(links[i]);
    rmdir(folder);
}

/* Members are found by their names, which files in memory have none of. */
static void
make_links(const struct file members[2])
{
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        abort();
    }
    for (int i = 0; i < 2; i++) {
        snprintf(links[i], sizeof(links[i]), "%s/m-%05d-of-00002.lmq", folder,
                 i + 1);
        if (symlink(members[i].path, links[i]) != 0) {
            perror(links[i]);
            abort();
        }
    }
    atexit(remove_links);
}

const char *
fuzz_members(const uint8_t *bytes, size_t n, size_t cut)
{
    static struct file members[2];
    bool is_first = members[0].fd == 0;

    fill(&members[0], bytes, cut);
    fill(&members[1], bytes + cut, n - cut);
    if (is_first)
        make_links(members);
    return links[0];
}
