/*
 * test_packed_fixtures.c - small matrices that the libraries of their schemes
 * packed, and the CRC-32 of what these decode them to, as float32.
 *
 * Made by tests/against/packed_schemes.py --fixtures.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/files/file.h"
#include "tests/build/suite.h"

static const struct {
    const char *name;
    size_t rows, cols;
    uint32_t crc;
} fixtures[] = {
    {"gptq-3", 64, 128, 0x5818e050},
    {"gptq-4-act", 40, 64, 0x6c5be558},
    {"gptq-8", 24, 128, 0x2773ed69},
    {"awq", 32, 64, 0x227194a1},
    {"auto-round", 32, 64, 0x7b67bc86},
    {"pack-quantized", 20, 64, 0x0d2549f6},
    {"int-quantized", 20, 60, 0x9abd94be},
    {"float-quantized", 20, 64, 0x37102708},
    {"mxfp4-packed", 20, 64, 0x07555282},
    {"nvfp4", 20, 64, 0x054311b9},
    {"modelopt-nvfp4", 20, 64, 0x4a4491e0},
    {"modelopt-mxfp4", 20, 64, 0x6d01cb7d},
    {"quark-mxfp4", 20, 64, 0xa7c8ea39},
    {"mlx-global", 60, 64, 0xd3e8767d},
    {"hqq-3", 24, 40, 0xcc5bc0b6},
    {"hqq-4", 24, 40, 0x4d6c0428},
};

START_TEST(libraries_are_understood)
{
    char path[128];
    size_t n;

    snprintf(path, sizeof(path), "data/packed/%s", fixtures[_i].name);
    struct lmq_checkpoint *checkpoint = open_checkpoint(source_path(path));
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "a.weight");
    ck_assert_uint_eq(checkpoint->n_tensors, 1);
    ck_assert_uint_eq(tensor->n_rows, fixtures[_i].rows);
    ck_assert_uint_eq(tensor->n_cols, fixtures[_i].cols);
    float *x = read_tensor(checkpoint, "a.weight", &n);
    unsigned char *bytes = malloc(4 * n);
    for (size_t i = 0; i < n; i++)
        lmq_store_f32le(bytes + 4 * i, x[i]);
    ck_assert_msg(lmq_crc32(0, bytes, 4 * n) == fixtures[_i].crc,
                  "%s: 0x%08x, expected 0x%08x", fixtures[_i].name,
                  lmq_crc32(0, bytes, 4 * n), fixtures[_i].crc);
    free(bytes);
    free(x);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {libraries_are_understood};

    return RUN_SUITE_OVER("packed_fixtures", tests, 0,
                          sizeof(fixtures) / sizeof(fixtures[0]));
}
