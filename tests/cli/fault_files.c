/*
 * fault_files.c - reads, compares and removes files.
 */
#include "config.h"

#include "tests/cli/fault_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
fault_die(const char *what)
{
    perror(what);
    exit(99);
}

struct fault_bytes
fault_load(const char *path)
{
    struct fault_bytes bytes = {NULL, 0};
    struct stat info;
    int fd = open(path, O_RDONLY);

    if (fd < 0 || fstat(fd, &info) != 0)
        fault_die(path);
    bytes.n = (size_t)info.st_size;
    bytes.at = malloc(bytes.n + 1);
    if (bytes.at == NULL || read(fd, bytes.at, bytes.n) != info.st_size)
        fault_die(path);
    bytes.at[bytes.n] = '\0';
    close(fd);
    return bytes;
}

void
fault_save(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
        fault_die(path);
}

void
fault_copy(const char *from, const char *to)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *list = opendir(from);

    if (list == NULL)
        fault_die(from);
    while ((entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", from, entry->d_name);
        struct fault_bytes bytes = fault_load(path);
        snprintf(path, sizeof(path), "%s/%s", to, entry->d_name);
        fault_save(path, bytes.at, bytes.n);
        free(bytes.at);
    }
    closedir(list);
}

uint64_t
fault_hash(uint64_t sum, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++) /* FNV-1a */
        sum = (sum ^ p[i]) * 0x100000001b3;
    return sum;
}

/* Figures that differ from run to run become one sign. */
void
fault_mask(struct fault_bytes *text)
{
    size_t n = 0;

    for (size_t i = 0; i < text->n; i++) {
        bool is_figure = strchr("0123456789", text->at[i]) != NULL ||
                         (n > 0 && text->at[n - 1] == '#' &&
                          strchr(".e+-", text->at[i]) != NULL);
        if (!is_figure)
            text->at[n++] = text->at[i];
        else if (n == 0 || text->at[n - 1] != '#')
            text->at[n++] = '#';
    }
    text->at[n] = '\0';
    text->n = n;
}

/* What --resume leaves, to be gone on with. */
static bool
is_begun(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL &&
           (strcmp(dot, ".part") == 0 || strcmp(dot, ".journal") == 0);
}

uint64_t
fault_walk(const char *folder, enum fault_walk what)
{
    bool removes = what == FAULT_REMOVE;
    uint64_t sum = 0;
    char path[PATH_MAX];
    struct dirent *entry;
    struct stat info;
    DIR *list = opendir(folder);

    if (list == NULL)
        fault_die(folder);
    while ((entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0 ||
            (!removes && is_begun(entry->d_name)))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        uint64_t own = fault_hash(0xcbf29ce484222325, path, strlen(path));
        if (lstat(path, &info) != 0)
            fault_die(path);
        if (S_ISDIR(info.st_mode)) {
            own += fault_walk(path, what);
            if (removes && rmdir(path) != 0)
                fault_die(path);
        } else if (removes) {
            if (unlink(path) != 0)
                fault_die(path);
        } else {
            struct fault_bytes bytes = fault_load(path);
            if (what == FAULT_HASH_MASKED)
                fault_mask(&bytes);
            own = fault_hash(own, bytes.at, bytes.n);
            free(bytes.at);
        }
        sum += own;
    }
    closedir(list);
    return sum;
}
