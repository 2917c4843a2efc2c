/*
 * path.c - names of files.
 */
#include "config.h"

#include "base/files/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *
lmq_path_join(const char *folder, const char *name)
{
    size_t m = strlen(folder), n = m + strlen(name) + 2;
    const char *slash = m > 0 && folder[m - 1] == '/' ? "" : "/";
    char *path = malloc(n);

    if (path != NULL)
        snprintf(path, n, "%s%s%s", folder, slash, name);
    return path;
}

char *
lmq_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? strdup(".")
                         : strndup(path, (size_t)(slash - path) + 1);
}

const char *
lmq_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}
