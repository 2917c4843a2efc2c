/*
 * fuzz_safetensors.c - any bytes as a safetensors file.
 *
 * Twice: as they are, and with a length that fits, so that the fuzzer needs
 * not guess eight bytes before it reaches the header.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    inspect_all(fuzz_file(bytes, n));
    if (n < 10)
        return 0;
    unsigned char *copy = malloc(n);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, n);
    size_t n_data = bytes[0]; /* how much of the end is data */
    lmq_store_u64le(copy, n_data < n - 8 ? n - 8 - n_data : n - 8);
    inspect_all(fuzz_file(copy, n));
    free(copy);
    return 0;
}
