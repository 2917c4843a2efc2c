/*
 * test_packed_experts.c - experts in FP8, each in tensors of its own, whose
 * scales are together: as transformers saves them; those of DeepSeek V4, which
 * are of four bits beside others in FP8.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "tests/build/stored.h"

enum { N_MATRICES = 6, ROWS = 4, COLS = 3, N = ROWS * COLS };

static const char *const llama[] = {"gate_proj", "up_proj", "down_proj"};
static const char *const mixtral[] = {"w1", "w3", "w2"};

static const float numbers[] = {0.5f, -2, 3, 0.25f, 7, 1e-3f, 11, 0.1f, 13, 5,
                                -6, 9};

static const char *
name_of(const char *const names[3], size_t i)
{
    static char name[64];

    snprintf(name, sizeof(name), "w.experts.%zu.%s.weight", i / 3,
             names[i % 3]);
    return name;
}

/* Random finite numbers, and these scales of gates and what they let
 * through. */
static const char *
save_experts(const char *const names[3], unsigned char bytes[N_MATRICES][N],
             const char *shape, size_t n_scales, const char *config,
             struct random *random)
{
    struct stored folder = {0};

    for (size_t i = 0; i < N_MATRICES; i++) {
        stored_entry(&folder, name_of(names, i), "F8_E4M3", "[4,3]", N);
        for (size_t j = 0; j < N; j++)
            bytes[i][j] = (unsigned char)(random_below(random, 0x7c) |
                                          random_below(random, 2) << 7);
        put(&folder.data, bytes[i], N);
    }
    stored_floats(&folder, "w.experts.gate_up_proj_scale_inv", BUILD_F32,
                  shape, numbers, n_scales);
    stored_floats(&folder, "w.experts.down_proj_scale_inv", BUILD_F32,
                  "[2,2,1]", numbers + 8, 4);
    return stored_save(&folder, config);
}

#define BLOCKS(size)                                                          \
    STORED_CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": " size)

START_TEST(experts_have_their_part_of_the_scales)
{
    static const char *const *const all[] = {llama, mixtral};
    struct random random = {random_seed()};
    unsigned char bytes[N_MATRICES][N];
    float x[N];

    for (size_t k = 0; k < 2; k++) {
        struct lmq_checkpoint *checkpoint = open_checkpoint(save_experts(
            all[k], bytes, "[2,4,1]", 8, BLOCKS("[2,3]"), &random));
        ck_assert_uint_eq(checkpoint->n_tensors, N_MATRICES);
        for (size_t i = 0; i < N_MATRICES; i++) {
            const float *scales = i % 3 == 2
                                      ? numbers + 8 + i / 3 * 2
                                      : numbers + i / 3 * 4 + i % 3 * 2;
            lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, bytes[i], x, N);
            for (size_t j = 0; j < N; j++)
                x[j] *= scales[j / 6];
            assert_elements(checkpoint, name_of(all[k], i), x, N, &random);
        }
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(scales_that_are_not_theirs_are_refused)
{
    struct random random = {random_seed()};
    unsigned char bytes[N_MATRICES][N];

    assert_refused(save_experts(llama, bytes, "[2,3,1]", 6, BLOCKS("[3,3]"),
                                &random),
                   LMQ_ERR_UNSUPPORTED, "is for two matrices");
    assert_refused(save_experts(llama, bytes, "[1,4,1]", 4, BLOCKS("[2,3]"),
                                &random),
                   LMQ_ERR_FORMAT, "has no scales for 'w.experts.1.gate");
    assert_refused(save_experts(llama, bytes, "[2,4]", 8, BLOCKS("[2,3]"),
                                &random),
                   LMQ_ERR_FORMAT, "has no scales for 'w.experts.0.gate");
}
END_TEST

/* ---- DeepSeek V4 ---- */

/* Two codes in a byte, the lower one first; a power of two for 32 of them. */
static const char *
save_fp4(const char *dtype, const char *shape, const char *config,
         const unsigned char bytes[64], const unsigned char scales[4])
{
    static const unsigned char fp8[4] = {0x38, 0x40, 0xb8, 0x30};
    struct stored folder = {0};

    stored_entry(&folder, "w.experts.0.w1.weight", dtype, "[2,32]", 64);
    put(&folder.data, bytes, 64);
    stored_entry(&folder, "w.experts.0.w1.scale", "F8_E8M0", shape, 4);
    put(&folder.data, scales, 4);
    stored_entry(&folder, "w.wkv.weight", "F8_E4M3", "[2,2]", 4);
    put(&folder.data, fp8, 4);
    stored_entry(&folder, "w.wkv.scale", "F8_E8M0", "[1,1]", 1);
    put(&folder.data, (const unsigned char *)"\x80", 1);
    return stored_save(&folder, config);
}

START_TEST(experts_in_four_bits_stand_beside_fp8)
{
    static const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    static const float dense[] = {2, 4, -2, 1};
    static const char *const dtypes[] = {"I8", "U8"};
    static const unsigned char scales[4] = {127, 120, 130, 1};
    struct random random = {random_seed()};
    unsigned char bytes[64];
    float x[128];

    for (size_t i = 0; i < 128; i++) {
        unsigned code = (unsigned)random_below(&random, 16);
        bytes[i / 2] = (unsigned char)(i % 2 == 0 ? code
                                                  : bytes[i / 2] | code << 4);
        x[i] = ldexpf(e2m1[code % 8], scales[i / 32] - 127);
        if (code >= 8)
            x[i] = -x[i];
    }
    for (size_t i = 0; i < 2; i++) {
        struct lmq_checkpoint *checkpoint = open_checkpoint(save_fp4(
            dtypes[i], "[2,2]", BLOCKS("[128,128]"), bytes, scales));
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        assert_elements(checkpoint, "w.experts.0.w1.weight", x, 128, &random);
        assert_elements(checkpoint, "w.wkv.weight", dense, 4, &random);
        lmq_checkpoint_close(checkpoint);
    }
    /* As many scales for others are of integers, which nobody says. */
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        save_fp4("I8", "[4,1]", BLOCKS("[128,128]"), bytes, scales));
    ck_assert_str_eq(checkpoint->packed, "integers or FP4 with scales");
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        experts_have_their_part_of_the_scales,
        scales_that_are_not_theirs_are_refused,
        experts_in_four_bits_stand_beside_fp8,
    };

    return RUN_SUITE("packed_experts", tests);
}
