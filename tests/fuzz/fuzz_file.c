/*
 * fuzz_file.c - bytes as a file that needs no disk.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

const char *
fuzz_file(const uint8_t *bytes, size_t n)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, (off_t)n) != 0 ||
        pwrite(fd, bytes, n, 0) != (ssize_t)n) {
        perror("fuzz_file");
        abort();
    }
    return path;
}
