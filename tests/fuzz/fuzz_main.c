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
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* A fuzzer seldom makes larger ones. */
#define SIZE_MOST ((off_t)1 << 20)

static size_t n_files;

/* With room for `more` bytes before it; NULL if it cannot be read. */
static unsigned char *
load(const char *path, size_t n, size_t more)
{
    FILE *file = fopen(path, "rb");
    /* Exactly as large as the input: a byte too far is seen. */
    unsigned char *bytes = malloc(more + n == 0 ? 1 : more + n);

    if (file == NULL || bytes == NULL ||
        fread(bytes + more, 1, n, file) != n) {
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}

static void
run(unsigned char *bytes, size_t n, const char *path)
{
    if (bytes == NULL) {
        fprintf(stderr, "fuzz: cannot read %s\n", path);
        exit(1);
    }
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    n_files++;
}

/* A model and the config.json beside it as one input: it, a zero, the
 * model. */
static void
run_both(const char *path, size_t n)
{
    const char *slash = strrchr(path, '/');
    char config[4096];
    struct stat info;

    if (slash == NULL || strcmp(slash, "/model.safetensors") != 0)
        return;
    snprintf(config, sizeof(config), "%.*s/config.json", (int)(slash - path),
             path);
    if (stat(config, &info) != 0 || info.st_size > SIZE_MOST)
        return;
    size_t n_config = (size_t)info.st_size;
    unsigned char *bytes = load(path, n, n_config + 1);
    unsigned char *text = load(config, n_config, 0);
    if (bytes != NULL && text != NULL) {
        memcpy(bytes, text, n_config);
        bytes[n_config] = '\0';
    }
    free(text);
    run(bytes, n_config + 1 + n, path);
}

static int
run_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    size_t n = (size_t)info->st_size;

    (void)walk;
    if (type != FTW_F || info->st_size > SIZE_MOST)
        return 0;
    run(load(path, n, 0), n, path);
    run_both(path, n);
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
    static const char *const corpus[] = {"files", "data/packed", "data/fable",
                                         "data/chat"};
    for (size_t i = 0; argc == 1 && i < sizeof(corpus) / sizeof(corpus[0]);
         i++) {
        snprintf(path, sizeof(path), "%s/tests/%s",
                 srcdir == NULL ? "." : srcdir, corpus[i]);
        if (nftw(path, run_file, 16, FTW_PHYS) != 0)
            return 1;
    }
    printf("%zu files\n", n_files);
    return n_files > 0 ? 0 : 1;
}
