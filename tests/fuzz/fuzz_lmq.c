/*
 * fuzz_lmq.c - any bytes as a container.
 *
 * As they are, and with all checksums put right, which a fuzzer never hits.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "formats/lmq/lmq.h"
#include "tests/build/build_checkpoint.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

static void
try(const unsigned char *bytes, size_t n)
{
    const struct lmq_verify_options alone = {.threads = 1};
    const char *path = fuzz_file(bytes, n);
    struct lmq_report *report = NULL;
    struct lmq_error err;

    inspect_all(path);
    lmq_verify(path, &alone, NULL, &report, &err);
    lmq_report_free(report);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    try(bytes, n);
    if (n < LMQ_SUPERBLOCK_SIZE + LMQ_TRAILER_SIZE)
        return 0;
    unsigned char *copy = malloc(n);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, n);
    memcpy(copy, lmq_magic, sizeof(lmq_magic));
    lmq_store_u64le(copy + 32, n);
    memcpy(copy + n - LMQ_TRAILER_SIZE, "LMQEND\r\n", 8);
    lmq_store_u64le(copy + n - LMQ_TRAILER_SIZE + 8, n);
    reseal_lmq(copy, n);
    try(copy, n);
    free(copy);
    return 0;
}
