/*
 * fuzz_gguf.c - any bytes as a GGUF file: opened, read, shown.
 *
 * Twice: as they are, and behind a header that counts one key and as many
 * tensors as the first byte says, so that the fuzzer need not guess it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

#define HEADER 24

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    inspect_all(fuzz_file(bytes, n));
    if (n < 2)
        return 0;
    unsigned char *copy = malloc(HEADER + n - 1);
    if (copy == NULL)
        return 0;
    memcpy(copy, "GGUF", 4);
    lmq_store_u32le(copy + 4, 3);
    lmq_store_u64le(copy + 8, bytes[0] % 16);
    lmq_store_u64le(copy + 16, 1);
    memcpy(copy + HEADER, bytes + 1, n - 1);
    inspect_all(fuzz_file(copy, HEADER + n - 1));
    free(copy);
    return 0;
}
