/*
 * make_family.c - writes the checkpoint of a family to disk, for comparisons
 * with other implementations by hand.
 *
 *     make_family --list
 *     make_family [--big] [--vocab N] [--tokens N] NAME FOLDER [SEED]
 *
 * With --tokens the folder also gets tokens.bin (32-bit integers) and
 * logits.bin, what the oracle computes from them (doubles), little-endian.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/families/family.h"

#define BIG 8 /* then all widths are multiples of 32 */

static int
list(void)
{
    const struct family *family;

    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        puts(family->name);
    return 0;
}

static int
write_bytes(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        return 1;
    }
    return 0;
}

static int
write_logits(const struct family_model *model, const char *folder, size_t n)
{
    size_t vocab = model->oracle.shape.vocab, n_logits = n * vocab;
    int32_t *tokens = calloc(n, sizeof(*tokens));
    unsigned char *bytes = malloc(8 * n_logits);

    if (tokens == NULL || bytes == NULL)
        abort();
    for (size_t i = 0; i < n; i++) {
        uint64_t j = i;
        tokens[i] = (int32_t)((7919 * j * j + 104729 * j + 3) % vocab);
        lmq_store_u32le(bytes + 4 * i, (uint32_t)tokens[i]);
    }
    int status = write_bytes(folder, "tokens.bin", bytes, 4 * n);
    double *logits = oracle_run(&model->oracle, tokens, n);
    for (size_t i = 0; i < n_logits; i++) {
        uint64_t bits;
        memcpy(&bits, &logits[i], sizeof(bits));
        lmq_store_u64le(bytes + 8 * i, bits);
    }
    status |= write_bytes(folder, "logits.bin", bytes, 8 * n_logits);
    free(tokens);
    free(logits);
    free(bytes);
    return status;
}

int
main(int argc, char **argv)
{
    size_t grow = 1, vocab = 0, n_tokens = 0;
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--list") == 0)
            return list();
        else if (strcmp(argv[at], "--big") == 0)
            grow = BIG;
        else if (strcmp(argv[at], "--vocab") == 0 && at + 1 < argc)
            vocab = strtoul(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "--tokens") == 0 && at + 1 < argc)
            n_tokens = strtoul(argv[++at], NULL, 10);
    }
    const struct family *family =
        argc - at < 2 ? NULL : family_find(argv[at]);
    if (family == NULL) {
        fprintf(stderr, "usage: make_family --list\n"
                        "       make_family [--big] [--vocab N] [--tokens N] "
                        "NAME FOLDER [SEED]\n");
        return 2;
    }
    uint64_t seed = argc - at > 2 ? strtoull(argv[at + 2], NULL, 10) : 1;
    struct family_model *model = family_make(family, grow, vocab, seed);
    family_write(model, argv[at + 1]);
    int status =
        n_tokens == 0 ? 0 : write_logits(model, argv[at + 1], n_tokens);
    family_free(model);
    return status;
}
