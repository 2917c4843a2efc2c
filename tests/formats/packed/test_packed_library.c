/*
 * test_packed_library.c - matrices that libraries packed, against what they
 * make of them themselves.
 *
 * tests/data/packed was written by these libraries, and the digests are of
 * what they unpack: tests/against has the scripts.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/files/file.h"
#include "tests/build/stored.h"

static const struct {
    const char *folder, *name;
    uint32_t crc; /* of the float32, NaNs as one */
} matrices[] = {
    {"mlx", "affine1_32.weight", 0xdd73abe2},
    {"mlx", "affine1_64.weight", 0xfba028ee},
    {"mlx", "affine1_128.weight", 0x10f63772},
    {"mlx", "affine2_32.weight", 0x5c115a56},
    {"mlx", "affine2_64.weight", 0xd485bef4},
    {"mlx", "affine2_128.weight", 0x793ee267},
    {"mlx", "affine3_32.weight", 0xa72b9b3d},
    {"mlx", "affine3_64.weight", 0xad34037c},
    {"mlx", "affine3_128.weight", 0x1b2c0b67},
    {"mlx", "affine4_32.weight", 0xf6566f55},
    {"mlx", "affine4_64.weight", 0xc28cf7cd},
    {"mlx", "affine4_128.weight", 0x6b678f43},
    {"mlx", "affine5_32.weight", 0x65f0f852},
    {"mlx", "affine5_64.weight", 0x1e350bf6},
    {"mlx", "affine5_128.weight", 0xcccb14e3},
    {"mlx", "affine6_32.weight", 0x3851f55e},
    {"mlx", "affine6_64.weight", 0x92ae5472},
    {"mlx", "affine6_128.weight", 0xcbc7a8d3},
    {"mlx", "affine8_32.weight", 0x792ce8a6},
    {"mlx", "affine8_64.weight", 0x23f64435},
    {"mlx", "affine8_128.weight", 0x734873e2},
    {"mlx", "mxfp4.weight", 0x84cf2c26},
    {"mlx", "mxfp8.weight", 0xadd672c6},
    {"mlx", "nvfp4.weight", 0x5aaca3f7},
    {"bnb", "nf4_2_64.weight", 0xc6287f7d},
    {"bnb", "nf4_2_51.weight", 0x750feffc},
    {"bnb", "nf4_3_96.weight", 0x6b1d4b6d},
    {"bnb", "nf4_2_64_n.weight", 0x69e506a3},
    {"bnb", "nf4_2_51_n.weight", 0xc0750c9e},
    {"bnb", "nf4_3_96_n.weight", 0x21d747a2},
    {"bnb", "fp4_2_64.weight", 0xc1e4ea6a},
    {"bnb", "fp4_2_51.weight", 0x879a2ea4},
    {"bnb", "fp4_3_96.weight", 0x0cabb86b},
    {"bnb", "fp4_2_64_n.weight", 0x3275127e},
    {"bnb", "fp4_2_51_n.weight", 0xa70e213c},
    {"bnb", "fp4_3_96_n.weight", 0x95e6c2a3},
    {"bnb", "int8.weight", 0x9de45cdf},
    {"mxfp4", "model.layers.0.mlp.experts.gate_up_proj", 0x704565b5},
};

static uint32_t
digest(const float *x, size_t n)
{
    unsigned char bytes[4];
    uint32_t crc = 0;

    for (size_t i = 0; i < n; i++) {
        lmq_store_f32le(bytes, isnan(x[i]) ? NAN : x[i]);
        crc = lmq_crc32(crc, bytes, sizeof(bytes));
    }
    return crc;
}

START_TEST(matrices_are_what_their_library_makes_of_them)
{
    struct random random = {random_seed()};
    char path[64];

    for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        const char *name = matrices[i].name;
        size_t n;
        snprintf(path, sizeof(path), "data/packed/%s", matrices[i].folder);
        struct lmq_checkpoint *checkpoint = open_checkpoint(source_path(path));
        ck_assert_str_eq(checkpoint->packed, "");
        float *x = read_tensor(checkpoint, name, &n);
        ck_assert_msg(digest(x, n) == matrices[i].crc, "%s: %s: %08x", path,
                      name, digest(x, n));
        assert_elements(checkpoint, name, x, n, &random);
        free(x);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        matrices_are_what_their_library_makes_of_them,
    };

    return RUN_SUITE("packed_library", tests);
}
