/*
 * sample.c - finds the text that is installed with lmquant.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* Where the program stands, without the last '/'; false if the system does
 * not tell. */
static bool
find_folder(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);

    if (n <= 0)
        return false;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

const char *
find_sample(char *path, size_t size)
{
    /* Below a prefix that was moved, and in a build tree. */
    static const char *const places[] = {"../share/lmquant/sample.txt",
                                         "sample.txt"};
    char folder[SAMPLE_PATH_SIZE / 2];

    if (access(LMQ_SAMPLE_TEXT, R_OK) == 0)
        return LMQ_SAMPLE_TEXT;
    if (!find_folder(folder, sizeof(folder)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(path, size, "%s/%s", folder, places[i]);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}
