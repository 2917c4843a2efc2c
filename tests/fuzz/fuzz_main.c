/*
 * fuzz_main.c - runs a fuzzing target over files, without a fuzzer.
 *
 * With arguments, over those files and folders; without, over the corpus of
 * the tests. So `make check` replays everything that fuzzing has found. For
 * fuzzing itself:
 *
 *     ./configure CC=clang --disable-shared \
 *         CFLAGS='-g -O1 -fsanitize=fuzzer-no-link,address,undefined'
 *     make libcore.la libtest.la
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_lmq.c \
 *         .libs/libtest.a .libs/libcore.a -lz -lyaml -ljansson -lpcre2-8 \
 *         -lutf8proc -lnettle -lm -o fuzz_lmq
 *     ./fuzz_lmq -max_total_time=120 corpus tests/files
 */
#include "config.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* A fuzzer seldom makes larger ones. */
#define SIZE_MOST ((off_t)1 << 20)

static size_t n_files;

static int
run_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)walk;
    if (type != FTW_F || info->st_size > SIZE_MOST)
        return 0;
    FILE *file = fopen(path, "rb");
    size_t n = (size_t)info->st_size;
    /* Exactly as large as the input: a byte too far is seen. */
    unsigned char *bytes = malloc(n == 0 ? 1 : n);
    if (file == NULL || bytes == NULL || fread(bytes, 1, n, file) != n) {
        fprintf(stderr, "fuzz: cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    n_files++;
    return 0;
}

int
main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];

    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], run_file, 16, FTW_PHYS) != 0)
            return 1;
    if (argc == 1) {
        snprintf(path, sizeof(path), "%s/tests/files",
                 srcdir == NULL ? "." : srcdir);
        if (nftw(path, run_file, 16, FTW_PHYS) != 0)
            return 1;
    }
    printf("%zu files\n", n_files);
    return n_files > 0 ? 0 : 1;
}
