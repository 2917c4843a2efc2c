/*
 * input.c - reads a text from a file or from standard input.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"

/* What lmq_tokenize() takes. */
#define TEXT_MAX ((size_t)1 << 30)

/* As far as the limit and a byte more, and room for a 0. NULL if it cannot be
 * read. */
static char *
read_stream(FILE *file, size_t *n)
{
    const size_t most = TEXT_MAX + 1;
    size_t capacity = 1 << 16, wanted = capacity - 1;
    char *text = malloc(capacity);

    *n = 0;
    while (text != NULL) {
        *n += fread(text + *n, 1, wanted - *n, file);
        if (*n < wanted || *n == most)
            break;
        capacity *= 2;
        wanted = capacity - 1 < most ? capacity - 1 : most;
        char *grown = realloc(text, capacity);
        if (grown == NULL)
            free(text);
        text = grown;
    }
    if (text != NULL && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (text != NULL)
        text[*n] = '\0';
    return text;
}

static bool
is_folder(FILE *file)
{
    struct stat status;

    return fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode);
}

char *
read_text(const char *path, size_t *n, int *code)
{
    bool is_stdin = path == NULL || strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path, *kind = NULL;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    char *text = NULL;

    *code = EXIT_SYSTEM;
    if (file != NULL && is_folder(file))
        kind = "a folder";
    else if (file != NULL)
        text = read_stream(file, n);
    if (text != NULL)
        kind = lmq_binary_kind(text, *n);
    if (text != NULL && *n > TEXT_MAX) {
        print_error("%s: is too long (at most %zu MiB are read)", name,
                    TEXT_MAX >> 20);
        free(text);
        text = NULL;
        *code = EXIT_INPUT;
    } else if (kind != NULL) {
        print_error("%s: is %s, expected a text", name, kind);
        free(text);
        text = NULL;
        *code = EXIT_INPUT;
    } else if (text == NULL) {
        print_error("%s: cannot read: %s", name, strerror(errno));
    }
    if (file != NULL && !is_stdin)
        fclose(file);
    return text;
}
