/*
 * fuzz_llama2c.c - any bytes as a llama2.c file.
 *
 * As they are; and with the size that the header makes, if that is small: the
 * size must be exact, which a fuzzer seldom hits.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

#define SIZE_MOST ((uint64_t)1 << 16)

/* The size of the file with these seven fields, modulo 2^64; what it wraps to
 * does not matter here. Of version 2 only if the group divides everything. */
static uint64_t
size_of(const unsigned char *p, int version, int is_tied, uint64_t group)
{
    uint64_t f[7];

    for (int i = 0; i < 7; i++)
        f[i] = lmq_load_u32le(p + 4 * i) & 0xffff;
    uint64_t dim = f[0], hidden = f[1], layers = f[2], vocab = f[5];
    uint64_t head = f[3] == 0 ? 0 : dim / f[3], kv = head * f[4];
    uint64_t norms = dim + layers * 2 * dim;
    uint64_t matrices = vocab * dim + layers * (2 * dim * dim + 2 * kv * dim +
                                                3 * dim * hidden);

    if (!is_tied)
        matrices += vocab * dim;
    if (version == 2)
        return 256 + 4 * norms + matrices + 4 * (matrices / group);
    if (version == 0)
        norms += f[6] * head;
    return 4 * (norms + matrices) + (version == 0 ? 28 : 256);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    inspect_all(fuzz_file(bytes, n));
    if (n < 41)
        return 0;
    int version = bytes[39] % 3;
    unsigned char group = (unsigned char)(bytes[37] % 64 + 1);
    uint64_t size = size_of(bytes + (version == 0 ? 0 : 8), version,
                            version == 0 ? 1 : bytes[36] & 1, group);
    if (size < 41 || size > SIZE_MOST)
        return 0;
    unsigned char *copy = calloc(1, (size_t)size);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, n < size ? n : (size_t)size);
    if (version > 0) {
        memcpy(copy, "24ka\1\0\0\0", 8);
        copy[4] = (unsigned char)version;
        copy[36] &= 1;
    }
    if (version == 2) {
        memset(copy + 37, 0, 4);
        copy[37] = group;
    }
    inspect_all(fuzz_file(copy, (size_t)size));
    free(copy);
    return 0;
}
