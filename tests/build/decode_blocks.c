/*
 * decode_blocks.c - blocks of a type of GGUF from standard input, their
 * elements as float32 to standard output: for comparisons with other
 * implementations by hand.
 *
 *     decode_blocks --list       name, number, elements and bytes of a block
 *     decode_blocks NAME
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "quantize/blocks.h"

#define MAX_NUMBER 256
#define MAX_SIZE 512

static const struct lmq_block_type *
type_named(const char *name)
{
    for (uint32_t i = 0; i < MAX_NUMBER; i++) {
        const struct lmq_block_type *type = lmq_block_type(i);
        if (type != NULL && strcmp(type->name, name) == 0)
            return type;
    }
    return NULL;
}

static int
list(void)
{
    for (uint32_t i = 0; i < MAX_NUMBER; i++) {
        const struct lmq_block_type *type = lmq_block_type(i);
        if (type != NULL)
            printf("%s %u %u %u\n", type->name, type->number, type->n,
                   type->size);
    }
    return 0;
}

int
main(int argc, char **argv)
{
    unsigned char block[MAX_SIZE];
    float x[LMQ_BLOCK_MAX];

    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    const struct lmq_block_type *type =
        argc == 2 ? type_named(argv[1]) : NULL;
    if (type == NULL) {
        fprintf(stderr, "usage: %s --list | NAME\n", argv[0]);
        return 2;
    }
    while (fread(block, type->size, 1, stdin) == 1) {
        lmq_blocks_decode(type, block, 1, x);
        if (fwrite(x, sizeof(*x), type->n, stdout) != type->n) {
            perror("decode_blocks");
            return 1;
        }
    }
    return 0;
}
