/*
 * fuzz_lmq.c - any bytes as a container, or as two of a set.
 *
 * As they are, and with all checksums put right, which a fuzzer never hits.
 * Where the beginning of a container stands once more, the second one begins.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

static void
look_at(const char *path)
{
    const struct lmq_verify_options alone = {.threads = 1};
    struct lmq_report *report = NULL;
    struct lmq_error err;

    inspect_all(path);
    lmq_verify(path, &alone, NULL, &report, &err);
    lmq_report_free(report);
}

/* The size of the first container. */
static size_t
find_cut(const unsigned char *bytes, size_t n)
{
    for (size_t i = LMQ_SUPERBLOCK_SIZE; i + sizeof(lmq_magic) < n; i++)
        if (memcmp(bytes + i, lmq_magic, sizeof(lmq_magic)) == 0)
            return i;
    return n;
}

static void
try(const unsigned char *bytes, size_t n, size_t cut)
{
    look_at(cut < n ? fuzz_members(bytes, n, cut) : fuzz_file(bytes, n));
}

/* What would keep everything behind it from being looked at; false if it is
 * too short for that. */
static bool
put_right(unsigned char *bytes, size_t n)
{
    if (n < LMQ_SUPERBLOCK_SIZE + LMQ_TRAILER_SIZE)
        return false;
    memcpy(bytes, lmq_magic, sizeof(lmq_magic));
    lmq_store_u64le(bytes + 32, n);
    memcpy(bytes + n - LMQ_TRAILER_SIZE, "LMQEND\r\n", 8);
    lmq_store_u64le(bytes + n - LMQ_TRAILER_SIZE + 8, n);
    reseal_lmq(bytes, n);
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    size_t cut = find_cut(bytes, n);

    try(bytes, n, cut);
    unsigned char *copy = malloc(n + 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, n);
    if (put_right(copy, cut) && (cut == n || put_right(copy + cut, n - cut)))
        try(copy, n, cut);
    free(copy);
    return 0;
}
