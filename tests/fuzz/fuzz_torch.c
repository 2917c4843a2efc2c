/*
 * fuzz_torch.c - any bytes as a file of torch.save.
 *
 * As they are; and as the pickle of a small archive, which has a right
 * checksum then.
 */
#include "config.h"

#include "tests/build/build_torch.h"
#include "tests/build/read_all.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const unsigned char storage[64];
    struct build_zip zip = {0};
    struct bytes file = {0};

    inspect_all(fuzz_file(bytes, n));
    zip_add(&zip, "a/data.pkl", bytes, n);
    zip_add(&zip, "a/data/0", storage, sizeof(storage));
    zip_add(&zip, "a/data/1", storage, 4);
    zip_end(&zip, &file);
    inspect_all(fuzz_file(file.at, file.n));
    bytes_free(&file);
    return 0;
}
