/*
 * test_packed.c - FP8 with scales.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/packed/packed.h"
#include "tests/build/stored.h"

static void
add_floats(struct stored *folder, const char *name, const char *shape,
           const float *x, size_t n)
{
    stored_floats(folder, name, BUILD_F32, shape, x, n);
}

/* Random finite numbers in FP8. */
static void
add_fp8(struct stored *folder, const char *name, const char *dtype,
        const char *shape, unsigned char *bytes, size_t n,
        struct random *random)
{
    stored_entry(folder, name, dtype, shape, n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(random_below(random, 0x7c) |
                                   random_below(random, 2) << 7);
    put(&folder->data, bytes, n);
}

#define CONFIG STORED_CONFIG

/* Checks w (5 x 7) against its bytes and the scale of each element; then
 * pieces of it. */
static void
assert_scaled(struct lmq_checkpoint *checkpoint, const unsigned char *bytes,
              const float *scales, size_t block_rows, size_t block_cols,
              size_t n_cols, struct random *random)
{
    float plain[35];
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "w.weight");

    lmq_dtype_to_f32(strcmp(tensor->encoding, "f8_e4m3") == 0
                         ? LMQ_DTYPE_F8_E4M3
                         : LMQ_DTYPE_F8_E5M2,
                     bytes, plain, 35);
    for (size_t i = 0; i < 35; i++)
        plain[i] *= scales[i / 7 / block_rows * n_cols + i % 7 / block_cols];
    assert_elements(checkpoint, "w.weight", plain, 35, random);
}

static const float numbers[35] = {0.5f, -2, 3, 0.25f, 7, 1e-3f, 11, 0.1f, 13,
                                  17, 0.7f, -1};

START_TEST(scales_come_for_all_for_rows_and_for_blocks)
{
    static const struct {
        const char *name, *shape, *config;
        size_t n, block_rows, block_cols, n_cols;
        const char *note;
    } cases[] = {
        {"w.weight_scale", "[]", CONFIG("\"quant_method\": \"modelopt\""), 1,
         99, 99, 1, "a scale for each"},
        {"w.weight_scale_inv", "[1]", CONFIG("\"quant_method\": \"fp8\""), 1,
         99, 99, 1, "a scale for each"},
        {"w.weight_scale", "[5,1]",
         CONFIG("\"quant_method\": \"compressed-tensors\""), 5, 1, 99, 1,
         "for each row"},
        {"w.weight_scale", "[5]", "{}", 5, 1, 99, 1, "for each row"},
        {"w.weight_scale_inv", "[3,3]",
         CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": [2, 3]"),
         9, 2, 3, 3, "block scales 2 x 3"},
        {"w.scale", "[3,3]",
         CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": [2, 3]"),
         9, 2, 3, 3, "block scales 2 x 3"},
        {"w.weight_scale_inv", "[1,4]",
         CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": [8, 2]"),
         4, 8, 2, 4, "block scales 8 x 2"},
        {"w.weight_scale_inv", "[5,1]",
         CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": [1, 128]"),
         5, 1, 128, 1, "groups of 128"},
        {"w.weight_scale_inv", "[1,1]", CONFIG("\"quant_method\": \"fp8\""),
         1, 128, 128, 1, "a scale for each"},
        {"w.weight_scale_inv", "[3,3]",
         CONFIG("\"quant_method\": \"auto-round\", \"group_size\": [2, 3], "
                "\"weight_block_size\": [2, 3]"),
         9, 2, 3, 3, "block scales 2 x 3"},
        {"w.weight_scale", "[5,1,7,1]",
         CONFIG("\"quant_method\": \"modelopt\""), 35, 1, 1, 7,
         "groups of 1"},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored folder = {0};
        unsigned char bytes[35];
        size_t c = i / 2;
        add_fp8(&folder, "w.weight", i % 2 == 0 ? "F8_E4M3" : "F8_E5M2",
                "[5,7]", bytes, 35, &random);
        add_floats(&folder, cases[c].name, cases[c].shape, numbers,
                   cases[c].n);
        add_floats(&folder, "w.input_scale", "[]", numbers, 1);
        add_floats(&folder, "norm.weight", "[2]", numbers, 2);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&folder, cases[c].config));
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        ck_assert_uint_eq(checkpoint->notes.n, 2);
        ck_assert_msg(strstr(checkpoint->notes.texts[0], cases[c].note) != NULL,
                      "%zu: %s", c, checkpoint->notes.texts[0]);
        ck_assert_str_eq(checkpoint->notes.texts[1],
                         "scales of activations that are left out: 1");
        assert_scaled(checkpoint, bytes, numbers, cases[c].block_rows,
                      cases[c].block_cols, cases[c].n_cols, &random);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* As GPTQModel has it. */
START_TEST(scales_may_be_what_was_multiplied_with)
{
    static const float factors[5] = {448, 0.5f, -3, 1e-3f, 7};
    struct random random = {random_seed()};
    struct stored folder = {0};
    unsigned char bytes[35];
    float scales[5];

    for (size_t i = 0; i < 5; i++)
        scales[i] = 1 / factors[i];
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale_inv", "[5]", factors, 5);
    struct lmq_checkpoint *checkpoint = open_checkpoint(stored_save(
        &folder, CONFIG("\"quant_method\": \"fp8\", "
                        "\"weight_scale_semantics\": \"inverse\"")));
    assert_scaled(checkpoint, bytes, scales, 1, 99, 1, &random);
    lmq_checkpoint_close(checkpoint);

    static const char side[] = "{\"quant_method\": \"fp8\", "
                               "\"weight_scale_semantics\": \"inverse\"}";
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale_inv", "[5]", factors, 5);
    const char *path = stored_save(&folder, "{}");
    write_file(in_folder("model/quantize_config.json"), side, strlen(side));
    checkpoint = open_checkpoint(path);
    assert_scaled(checkpoint, bytes, scales, 1, 99, 1, &random);
    lmq_checkpoint_close(checkpoint);
    remove(in_folder("model/quantize_config.json"));

    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale_inv", "[5]", factors, 5);
    checkpoint = open_checkpoint(stored_save(
        &folder, CONFIG("\"quant_method\": \"fp8\", "
                        "\"weight_scale_semantics\": \"root\"")));
    ck_assert_ptr_nonnull(
        strstr(checkpoint->packed, "weight_scale_semantics root"));
    lmq_checkpoint_close(checkpoint);

    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    assert_refused(stored_save(&folder,
                               CONFIG("\"quant_method\": \"fp8\", "
                                      "\"weight_scale_semantics\": 4")),
                   LMQ_ERR_FORMAT, "weight_scale_semantics");
}
END_TEST

#define GROUPS(a, b)                                                          \
    CONFIG("\"quant_method\": \"compressed-tensors\", "                       \
           "\"format\": \"float-quantized\", \"config_groups\": "             \
           "{\"a\": {\"weights\": {\"num_bits\": 8, \"type\": \"float\", "    \
           "\"block_structure\": " a "}}, "                                  \
           "\"b\": {\"weights\": {\"num_bits\": 8, \"type\": \"float\", "    \
           "\"block_structure\": " b "}}}")

/* Not those of the group that comes first. */
START_TEST(blocks_are_those_of_the_group_whose_size_fits)
{
    static const char *const configs[] = {
        GROUPS("[2,3]", "[4,4]"), GROUPS("[4,4]", "[2,3]"),
        GROUPS("null", "[2,3]"), GROUPS("[2,3]", "[2,3]")};
    struct random random = {random_seed()};
    struct stored folder = {0};
    unsigned char bytes[35];

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
        add_floats(&folder, "w.weight_scale", "[3,3]", numbers, 9);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&folder, configs[i]));
        assert_scaled(checkpoint, bytes, numbers, 2, 3, 3, &random);
        lmq_checkpoint_close(checkpoint);
    }
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale", "[2,1]", numbers, 2);
    struct lmq_checkpoint *same =
        open_checkpoint(stored_save(&folder, GROUPS("[3,7]", "[3,128]")));
    assert_scaled(same, bytes, numbers, 3, 7, 1, &random);
    lmq_checkpoint_close(same);
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale", "[2,1]", numbers, 2);
    assert_refused(stored_save(&folder, GROUPS("[3,7]", "[4,7]")),
                   LMQ_ERR_UNSUPPORTED, "both 3 x 7 and 4 x 7");
}
END_TEST

START_TEST(scales_may_be_of_16_bits)
{
    static const unsigned char bf16[] = {0x40, 0x40}; /* 3 */
    struct random random = {random_seed()};
    struct stored folder = {0};
    unsigned char bytes[35];
    const float three = 3;

    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    stored_entry(&folder, "w.weight_scale", "BF16", "[]", 2);
    put(&folder.data, bf16, 2);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&folder, "{}"));
    assert_scaled(checkpoint, bytes, &three, 99, 99, 1, &random);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* A row of more blocks than are read at a time. */
START_TEST(what_rounds_activations_is_left_out)
{
    static const char *const names[] = {
        "w.input_scale_2", "w.output_scale_2", "w.k_proj.k_bias",
        "w.v_proj.v_bias", "w.k_proj.bias", /* a bias after all */
    };
    struct random random = {random_seed()};
    struct stored folder = {0};
    unsigned char bytes[12];

    add_fp8(&folder, "w.weight", "F8_E4M3", "[4,3]", bytes, 12, &random);
    add_floats(&folder, "w.weight_scale", "[]", numbers, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add_floats(&folder, names[i], "[1]", numbers, 1);
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        stored_save(&folder, CONFIG("\"quant_method\": \"modelopt\"")));
    ck_assert_uint_eq(checkpoint->n_tensors, 2);
    ck_assert_ptr_nonnull(
        lmq_checkpoint_find_name(checkpoint, "w.k_proj.bias"));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(blocks_of_whole_rows_are_called_so)
{
    struct random random = {random_seed()};
    struct stored folder = {0};
    unsigned char bytes[12];

    add_fp8(&folder, "w.weight", "F8_E4M3", "[4,3]", bytes, 12, &random);
    add_floats(&folder, "w.weight_scale_inv", "[2,1]", numbers, 2);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&folder, "{}"));
    ck_assert_ptr_nonnull(strstr(checkpoint->notes.texts[0],
                                 "block scales of 2 rows"));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(long_rows_have_their_scales)
{
    enum { COLS = 1500 };
    static unsigned char bytes[2 * COLS];
    static float scales[2 * COLS], plain[2 * COLS];
    struct random random = {random_seed()};
    struct stored folder = {0};
    size_t n;

    for (size_t i = 0; i < COLS; i++)
        scales[i] = (float)(i + 1);
    add_fp8(&folder, "w.weight", "F8_E4M3", "[2,1500]", bytes, 2 * COLS,
            &random);
    add_floats(&folder, "w.weight_scale_inv", "[1,1500]", scales, COLS);
    struct lmq_checkpoint *checkpoint = open_checkpoint(stored_save(
        &folder,
        CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": [2, 1]")));
    float *x = read_tensor(checkpoint, "w.weight", &n);
    lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, bytes, plain, n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(x[i] <= plain[i] * scales[i % COLS] &&
                    x[i] >= plain[i] * scales[i % COLS],
                "element %zu", i);
    free(x);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(missing_scales_are_missed_where_they_are_announced)
{
    struct random random = {random_seed()};
    unsigned char bytes[35];
    size_t n;

    for (int is_announced = 0; is_announced < 2; is_announced++) {
        struct stored folder = {0};
        add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
        const char *path = stored_save(
            &folder, is_announced ? CONFIG("\"quant_method\": \"fp8\"")
                                  : "{}");
        if (is_announced) {
            assert_refused(path, LMQ_ERR_FORMAT,
                           "'w.weight_scale' or 'w.weight_scale_inv' is "
                           "missing");
            continue;
        }
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        float plain[35], *x = read_tensor(checkpoint, "w.weight", &n);
        lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, bytes, plain, 35);
        ck_assert_mem_eq(x, plain, sizeof(plain));
        free(x);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* A method that is not known says nothing of them. */
START_TEST(vectors_without_scales_are_told_of)
{
    static const char *const configs[] = {
        "{}", CONFIG("\"quant_method\": \"fp8\""),
        CONFIG("\"quant_method\": \"compressed-tensors\""),
        CONFIG("\"quant_method\": \"nobody's\""),
    };
    struct random random = {random_seed()};
    unsigned char bytes[7];

    for (size_t c = 0; c < 4; c++) {
        struct stored folder = {0};
        add_fp8(&folder, "w.weight", "F8_E4M3", "[7]", bytes, 7, &random);
        add_fp8(&folder, "v.weight", "F8_E4M3", "[7]", bytes, 7, &random);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&folder, configs[c]));
        ck_assert_uint_eq(checkpoint->notes.n, 1);
        ck_assert_int_eq(strcmp(checkpoint->notes.texts[0],
                                "tensors of FP8 without scales, plain "
                                "numbers: 2") == 0, c < 3);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

#define BLOCKS(size)                                                          \
    CONFIG("\"quant_method\": \"fp8\", \"weight_block_size\": " size)

START_TEST(scales_that_do_not_fit_are_refused)
{
    static const struct {
        const char *shape, *config;
        size_t n;
        const char *text;
    } cases[] = {
        {"[3,2]", "{}", 6, "fit neither"},
        {"[7]", "{}", 7, "fit neither"},
        {"[1,5]", "{}", 5, "fit neither"},
        {"[2,2,1]", "{}", 4, "fit neither"},
        {"[3,3]", BLOCKS("[3,3]"), 9, "fit neither"},
        {"[1,7]", BLOCKS("[2,2]"), 7, "fit neither"},
        {"[1]", BLOCKS("[0,1]"), 1, "weight_block_size"},
        {"[1]", BLOCKS("[1]"), 1, "weight_block_size"},
        {"[1]", BLOCKS("[1,-1]"), 1, "weight_block_size"},
        {"[1]", BLOCKS("\"x\""), 1, "weight_block_size"},
    };
    struct random random = {random_seed()};
    unsigned char bytes[35];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored folder = {0};
        add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
        add_floats(&folder, "w.weight_scale", cases[i].shape, numbers,
                   cases[i].n);
        assert_refused(stored_save(&folder, cases[i].config), LMQ_ERR_FORMAT,
                       cases[i].text);
    }
    struct stored folder = {0};
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_floats(&folder, "w.weight_scale", "[]", numbers, 1);
    add_floats(&folder, "w.weight_scale_inv", "[]", numbers, 1);
    assert_refused(stored_save(&folder, "{}"), LMQ_ERR_FORMAT, "two scales");
    add_fp8(&folder, "w.weight", "F8_E4M3", "[5,7]", bytes, 35, &random);
    add_fp8(&folder, "w.weight_scale", "F8_E4M3", "[]", bytes, 1, &random);
    assert_refused(stored_save(&folder, "{}"), LMQ_ERR_UNSUPPORTED,
                   "of type f8_e4m3");
}
END_TEST

/* Of experts in one tensor each begins with a block of its own; that is read
 * where blocks end with the experts. */
START_TEST(blocks_that_end_within_an_expert_are_refused)
{
    struct random random = {random_seed()};
    unsigned char bytes[24];

    for (size_t i = 0; i < 3; i++) {
        struct stored folder = {0};
        add_fp8(&folder, "w.experts.down_proj", "F8_E4M3", "[2,4,3]", bytes,
                24, &random);
        add_floats(&folder, "w.experts.down_proj_scale_inv",
                   i < 2 ? "[2,2,1]" : "[2,1,2]", numbers, 4);
        add_floats(&folder, "w.experts.down_proj_activation_scale", "[2]",
                   numbers, 2);
        const char *path = stored_save(
            &folder, i == 0   ? BLOCKS("[2,3]")
                     : i == 1 ? BLOCKS("[3,3]")
                              : BLOCKS("[8,2]"));
        if (i == 1) {
            assert_refused(path, LMQ_ERR_FORMAT, "fit neither");
            continue;
        }
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        float plain[24];
        size_t n;
        float *x = read_tensor(checkpoint, "w.experts.down_proj", &n);
        ck_assert_uint_eq(checkpoint->n_tensors, 1);
        ck_assert_uint_eq(n, 24);
        lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, bytes, plain, n);
        for (size_t j = 0; j < n; j++) {
            size_t block = i == 0 ? j / 6 : j / 12 * 2 + j % 3 / 2;
            ck_assert_float_eq(x[j], plain[j] * numbers[block]);
        }
        free(x);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* Blocks of 24 rows over 32 of queries, 16 of keys, 16 of values: they are
 * those of the fused matrix. */
START_TEST(blocks_cross_what_is_taken_apart)
{
    enum { DIM = 32, ROWS = 64 };
    static unsigned char bytes[ROWS * DIM];
    static float zeros[2 * 48 * DIM], plain[ROWS * DIM];
    static const char *const names[] = {"blk.0.attn_q.weight",
                                        "blk.0.attn_k.weight",
                                        "blk.0.attn_v.weight"};
    struct random random = {random_seed()};
    struct stored folder = {0};
    size_t at = 0;

    add_fp8(&folder, "model.layers.0.self_attn.qkv_proj.weight", "F8_E4M3",
            "[64,32]", bytes, sizeof(bytes), &random);
    add_floats(&folder, "model.layers.0.self_attn.qkv_proj.weight_scale_inv",
               "[3,3]", numbers, 9);
    add_floats(&folder, "model.embed_tokens.weight", "[41,32]", zeros,
               41 * DIM);
    add_floats(&folder, "lm_head.weight", "[41,32]", zeros, 41 * DIM);
    add_floats(&folder, "model.norm.weight", "[32]", zeros, DIM);
    add_floats(&folder, "model.layers.0.input_layernorm.weight", "[32]",
               zeros, DIM);
    add_floats(&folder, "model.layers.0.post_attention_layernorm.weight",
               "[32]", zeros, DIM);
    add_floats(&folder, "model.layers.0.self_attn.o_proj.weight", "[32,32]",
               zeros, DIM * DIM);
    add_floats(&folder, "model.layers.0.mlp.gate_up_proj.weight", "[96,32]",
               zeros, 96 * DIM);
    add_floats(&folder, "model.layers.0.mlp.down_proj.weight", "[32,48]",
               zeros, 48 * DIM);
    struct lmq_checkpoint *checkpoint = open_checkpoint(stored_save(
        &folder,
        "{\"architectures\": [\"Phi3ForCausalLM\"], \"hidden_size\": 32, "
        "\"intermediate_size\": 48, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
        "\"vocab_size\": 41, \"tie_word_embeddings\": false, "
        "\"quantization_config\": {\"quant_method\": \"fp8\", "
        "\"weight_block_size\": [24, 12]}}"));
    lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, bytes, plain, sizeof(bytes));
    for (size_t i = 0; i < 3; i++) {
        size_t n;
        float *x = read_tensor(checkpoint, names[i], &n);
        for (size_t j = 0; j < n; j++, at++) {
            float wanted = plain[at] *
                           numbers[at / DIM / 24 * 3 + at % DIM / 12];
            REQUIRE(x[j] <= wanted && x[j] >= wanted, "%s, element %zu",
                    names[i], j);
        }
        free(x);
    }
    ck_assert_uint_eq(at, sizeof(bytes));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        scales_come_for_all_for_rows_and_for_blocks,
        scales_may_be_what_was_multiplied_with,
        blocks_are_those_of_the_group_whose_size_fits,
        scales_may_be_of_16_bits,
        what_rounds_activations_is_left_out,
        blocks_of_whole_rows_are_called_so,
        long_rows_have_their_scales,
        missing_scales_are_missed_where_they_are_announced,
        vectors_without_scales_are_told_of,
        scales_that_do_not_fit_are_refused,
        blocks_that_end_within_an_expert_are_refused,
        blocks_cross_what_is_taken_apart,
    };

    return RUN_SUITE("FP8", tests);
}
