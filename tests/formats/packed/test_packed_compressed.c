/*
 * test_packed_compressed.c - what compressed-tensors writes, part by part.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/packed/packed.h"
#include "tests/build/stored.h"

enum { ROWS = 12, COLS = 64 };

#define CT(more) STORED_CONFIG("\"quant_method\": \"compressed-tensors\"" more)
#define GROUP(bits, more)                                                     \
    CT(", \"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": "     \
       bits more "}}}")

static float values[ROWS * COLS];

/* Numbers of a few bits, packed in words along rows, or down columns. */
static void
put_packed(struct stored *stored, const char *name, const int *numbers,
           size_t rows, size_t cols, unsigned bits, bool is_down)
{
    size_t along = is_down ? rows : cols, lines = is_down ? cols : rows;
    size_t n = (along * bits + 31) / 32;
    uint32_t *words = calloc(n * lines, sizeof(*words));
    char shape[48];

    for (size_t i = 0; i < rows * cols * bits; i++) {
        size_t at = i / bits, r = at / cols, c = at % cols;
        uint32_t code = (uint32_t)(numbers[at] + (1 << (bits - 1)));
        size_t bit = (is_down ? r : c) * bits + i % bits;
        size_t word = is_down ? bit / 32 * cols + c : r * n + bit / 32;
        words[word] |= (code >> i % bits & 1) << bit % 32;
    }
    snprintf(shape, sizeof(shape), "[%zu,%zu]", is_down ? n : rows,
             is_down ? cols : n);
    stored_words(stored, name, shape, words, n * lines);
    free(words);
}

static void
put_shape(struct stored *stored, uint64_t rows, uint64_t cols)
{
    stored_entry(stored, "a.weight_shape", "I64", "[2]", 16);
    put_u64(&stored->data, rows);
    put_u64(&stored->data, cols);
}

static void
put_bytes(struct stored *stored, const char *name, const char *dtype,
          const char *shape, const int *numbers, size_t n)
{
    stored_entry(stored, name, dtype, shape, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)numbers[i];
        put(&stored->data, &byte, 1);
    }
}

struct blocks {
    size_t rows, cols; /* of a block */
    const char *shape; /* of the scales */
    const char *config;
};

/* Codes of `bits`, as words or as bytes; zero points if has_zeros. */
static struct lmq_checkpoint *
make(const struct blocks *blocks, unsigned bits, bool is_packed,
     bool has_zeros, struct random *random)
{
    static int codes[ROWS * COLS], zeros[ROWS * COLS];
    static float scales[ROWS * COLS];
    size_t n_cols = (COLS + blocks->cols - 1) / blocks->cols;
    size_t n_rows = (ROWS + blocks->rows - 1) / blocks->rows;
    size_t n = n_cols * n_rows;
    uint32_t unset[COLS];
    struct stored stored = {0};

    memset(unset, 0xff, sizeof(unset));
    for (size_t i = 0; i < ROWS * COLS; i++)
        codes[i] = (int)random_below(random, 1u << bits) - (1 << (bits - 1));
    for (size_t i = 0; i < n; i++) {
        scales[i] = (float)(1 + random_below(random, 255)) / 4096;
        zeros[i] = has_zeros ? (int)random_below(random, 1u << bits) -
                                   (1 << (bits - 1))
                             : 0;
    }
    for (size_t i = 0; i < ROWS * COLS; i++) {
        size_t block = i / COLS / blocks->rows * n_cols +
                       i % COLS / blocks->cols;
        values[i] = (float)(codes[i] - zeros[block]) * scales[block];
    }
    if (is_packed) {
        put_packed(&stored, "a.weight_packed", codes, ROWS, COLS, bits, false);
        put_shape(&stored, ROWS, COLS);
        if (has_zeros)
            put_packed(&stored, "a.weight_zero_point", zeros, n_rows, n_cols,
                       bits, true);
        if (strstr(blocks->config, "actorder") != NULL)
            stored_words(&stored, "a.weight_g_idx", "[64]", unset, COLS);
    } else {
        put_bytes(&stored, "a.weight", "I8", "[12,64]", codes, ROWS * COLS);
        if (has_zeros)
            put_bytes(&stored, "a.weight_zero_point", "I8", blocks->shape,
                      zeros, n);
    }
    stored_floats(&stored, "a.weight_scale", BUILD_BF16, blocks->shape, scales,
                  n);
    stored_entry(&stored, "a.input_scale", "F32", "[1]", 4);
    put_zeros(&stored.data, 4);
    stored_entry(&stored, "b.weight", "F32", "[3]", 12); /* ignored */
    put_zeros(&stored.data, 12);
    return open_checkpoint(stored_save(&stored, blocks->config));
}

START_TEST(words_and_bytes_have_scales_of_every_strategy)
{
    static const struct {
        struct blocks blocks;
        unsigned bits;
        bool is_packed, has_zeros;
        unsigned quant;
    } cases[] = {
        {{ROWS, COLS, "[1]", CT("")}, 4, true, false, 64},
        {{1, COLS, "[12,1]", GROUP("4", "")}, 4, true, false, 64},
        {{1, 32, "[12,2]", GROUP("4", ", \"symmetric\": false")}, 4, true,
         true, 32},
        {{1, 16, "[12,4]", GROUP("8", "")}, 8, true, false, 0},
        {{1, 32, "[12,2]", GROUP("8", "")}, 8, true, false, 32},
        {{1, 32, "[12,2]", "{}"}, 8, true, false, 32},
        {{1, 32, "[12,2]", GROUP("8", ", \"symmetric\": false")}, 8, true,
         true, 0}, /* differences of 9 bits */
        {{1, 32, "[12,2]", GROUP("3", "")}, 3, true, false, 32},
        {{1, 32, "[12,2]", GROUP("4", ", \"actorder\": \"group\"")}, 4,
         true, false, 32}, /* all -1 */
        {{1, 32, "[12,2]", GROUP("5", ", \"symmetric\": false")}, 5, true,
         true, 32},
        {{1, 32, "[12,2]",
          "{\"compression_config\": {\"quant_method\": "
          "\"compressed-tensors\", \"config_groups\": {\"group_0\": "
          "{\"weights\": {\"num_bits\": 2}}}}}"}, /* older than 0.6 */
         2, true, false, 32},
        {{ROWS, COLS, "[1]", GROUP("4", ", \"symmetric\": false")}, 4, true,
         false, 64}, /* all of these zero points are 0 */
        {{ROWS, COLS, "[1]", GROUP("8", "")}, 8, false, false, 64},
        {{1, COLS, "[12,1]", GROUP("8", "")}, 8, false, false, 64},
        {{1, COLS, "[12,1]", GROUP("8", ", \"symmetric\": false")}, 8, false,
         true, 0},
        {{1, COLS, "[12]", STORED_CONFIG("\"quant_method\": \"modelopt\"")},
         8, false, false, 64},
        {{1, 8, "[12,8]", "{}"}, 8, false, true, 0},
        {{5, 24, "[3,3]", GROUP("8", ", \"block_structure\": [5, 24]")}, 8,
         false, false, 0},
        {{4, 32, "[3,2]", GROUP("4", ", \"block_structure\": [4, 32]")}, 4,
         true, false, 32},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint =
            make(&cases[i].blocks, cases[i].bits, cases[i].is_packed,
                 cases[i].has_zeros, &random);
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "a.weight");
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        ck_assert_str_eq(checkpoint->packed, "");
        assert_elements(checkpoint, "a.weight", values, ROWS * COLS, &random);
        ck_assert_uint_eq(tensor->quant.group_size, cases[i].quant);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* ---- Floats of 4 bits ---- */

static const float fp4[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/* Codes of a matrix, two in a byte, and what they stand for. */
static void
put_fp4(struct stored *stored, struct random *random)
{
    unsigned char bytes[ROWS * COLS / 2] = {0};

    for (size_t i = 0; i < ROWS * COLS; i++) {
        unsigned code = (unsigned)random_below(random, 16);
        bytes[i / 2] |= (unsigned char)(code << i % 2 * 4);
        values[i] = code < 8 ? fp4[code] : -fp4[code - 8];
    }
    stored_entry(stored, "a.weight_packed", "U8", "[12,32]", sizeof(bytes));
    put(&stored->data, bytes, sizeof(bytes));
}

START_TEST(mxfp4_has_powers_of_two)
{
    struct random random = {random_seed()};
    struct stored stored = {0};
    unsigned char scales[ROWS * COLS / 32];

    put_fp4(&stored, &random);
    for (size_t i = 0; i < sizeof(scales); i++)
        scales[i] = (unsigned char)random_below(&random, 253);
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] *= ldexpf(1, scales[i / 32] - 127);
    stored_entry(&stored, "a.weight_scale", "U8", "[12,2]", sizeof(scales));
    put(&stored.data, scales, sizeof(scales));
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        stored_save(&stored, CT(", \"format\": \"mxfp4-pack-quantized\"")));
    ck_assert_str_eq(checkpoint->tensors[0].encoding, "mxfp4");
    assert_elements(checkpoint, "a.weight", values, ROWS * COLS, &random);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

static void
assert_packed(struct stored *stored, const char *config, const char *packed)
{
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(stored, config));

    ck_assert_str_eq(checkpoint->packed, packed);
    lmq_checkpoint_close(checkpoint);
}

/* Bytes of the same shapes, which are other numbers. */
START_TEST(mxfp4_is_told_from_what_looks_like_it)
{
#define ROUND(more) STORED_CONFIG("\"quant_method\": \"auto-round\"" more)
#define QUARK(more) STORED_CONFIG("\"quant_method\": \"quark\", " more)
#define E5M3 "{\"weight\": {\"scale_format\": \"e5m3\"}}"
    static const struct {
        const char *config, *packed;
    } cases[] = {
        {ROUND(", \"data_type\": \"mx_fp\""), ""},
        {ROUND(", \"data_type\": \"mx_fp4\""), ""},
        {ROUND(", \"data_type\": \"mx_int\""),
         "AutoRound (data_type mx_int)"},
        {ROUND(", \"data_type\": \"mx_fp\", \"extra_config\": "
               "{\"a\": {\"data_type\": \"int\"}, "
               "\"b\": {\"data_type\": \"mx_int\"}}"),
         "AutoRound (data_type mx_int of a layer)"},
        {ROUND(", \"data_type\": \"mx_fp\", \"extra_config\": "
               "{\"a\": {\"data_type\": \"int\"}, \"b\": 4}"),
         ""},
        {ROUND(", \"data_type\": \"nvfp4_v2\""),
         "AutoRound (data_type nvfp4_v2)"},
        {ROUND(", \"packing_format\": "
               "\"auto_round:llm_compressor_nvfp4_e5m3\""),
         "AutoRound (scales in E5M3)"},
        {QUARK("\"global_quant_config\": {\"weight\": "
               "{\"scale_format\": \"e8m0\"}}"),
         ""},
        {QUARK("\"global_quant_config\": " E5M3), "Quark (scales in E5M3)"},
        {QUARK("\"global_quant_config\": {\"weight\": "
               "[{\"scale_format\": null}, {\"scale_format\": \"e5m3\"}]}"),
         "Quark (scales in E5M3)"},
        {QUARK("\"global_quant_config\": {\"weight\": [{\"dtype\": "
               "\"fp4\"}, {\"dtype\": \"fp8_e4m3\"}]}"),
         ""},
        {QUARK("\"global_quant_config\": {\"weight\": [{\"dtype\": "
               "\"fp4\"}, {\"dtype\": \"fp8_e5m3\"}]}"),
         "Quark (scales in E5M3)"},
        {QUARK("\"layer_quant_config\": {\"*.a\": " E5M3 "}"),
         "Quark (scales in E5M3)"},
        {QUARK("\"layer_type_quant_config\": {\"Linear\": " E5M3 "}"),
         "Quark (scales in E5M3)"},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        unsigned char scales[ROWS * COLS / 32] = {0};
        put_fp4(&stored, &random);
        stored_entry(&stored, "a.weight_scale", "U8", "[12,2]",
                     sizeof(scales));
        put(&stored.data, scales, sizeof(scales));
        assert_packed(&stored, cases[i].config, cases[i].packed);
    }
}
END_TEST

/* As many scales as a square matrix has rows, and columns. */
START_TEST(quarks_scales_of_columns_are_refused)
{
#define AXIS(scheme, axis)                                                    \
    QUARK("\"global_quant_config\": {\"weight\": {\"qscheme\": \"" scheme     \
          "\", \"ch_axis\": " axis "}}")
    static const struct {
        const char *config, *packed;
    } cases[] = {
        {AXIS("per_channel", "0"), ""},
        {AXIS("per_channel", "-2"), ""},
        {AXIS("per_group", "1"), ""},
        {AXIS("per_tensor", "null"), ""},
        {AXIS("per_channel", "1"), "Quark (scales of columns, ch_axis 1)"},
        {AXIS("per_channel", "-1"), "Quark (scales of columns, ch_axis 1)"},
    };
    const unsigned char bytes[4 * 4] = {0};
    const float scales[4] = {1, 2, 3, 4};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        stored_entry(&stored, "a.weight", "F8_E4M3", "[4,4]", sizeof(bytes));
        put(&stored.data, bytes, sizeof(bytes));
        stored_entry(&stored, "a.weight_scale", "F32", "[4]", sizeof(scales));
        put(&stored.data, scales, sizeof(scales));
        assert_packed(&stored, cases[i].config, cases[i].packed);
    }
}
END_TEST

/* What turns weights is done; what turns activations nobody here does. */
START_TEST(transforms_of_activations_are_refused)
{
    static const char *const locations[] = {"weight_input", "input",
                                            "weight_output", "output"};
    struct random random = {random_seed()};
    char config[512];

    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        struct stored stored = {0};
        unsigned char scales[ROWS * COLS / 32] = {0};
        put_fp4(&stored, &random);
        stored_entry(&stored, "a.weight_scale", "U8", "[12,2]",
                     sizeof(scales));
        put(&stored.data, scales, sizeof(scales));
        snprintf(config, sizeof(config), "%s%s%s",
                 "{\"quantization_config\": {\"quant_method\": "
                 "\"compressed-tensors\", \"format\": "
                 "\"mxfp4-pack-quantized\", \"transform_config\": "
                 "{\"config_groups\": {\"R4\": {\"apply\": [{\"location\": \"",
                 locations[i], "\"}]}}}}}");
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&stored, config));
        ck_assert_int_eq(strstr(checkpoint->packed, "transform_config") != NULL,
                         i % 2);
        ck_assert_int_eq(lmq_checkpoint_need_weights(checkpoint, NULL),
                         i % 2 == 0 ? LMQ_OK : LMQ_ERR_UNSUPPORTED);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(nvfp4_has_floats_and_a_divisor)
{
    static const char *const shapes[] = {"[12,4]", "[12,2]"};
    const size_t group = _i == 0 ? 16 : 32, n = ROWS * COLS / group;
    struct random random = {random_seed()};
    struct stored stored = {0};
    unsigned char scales[ROWS * COLS / 16];
    float floats[ROWS * COLS / 16], divisor = 1234.5f;

    for (size_t i = 0; i < n; i++)
        scales[i] = (unsigned char)random_below(&random, 127);
    stored_entry(&stored, "a.weight_scale", "F8_E4M3", shapes[_i],
                 n); /* before what it is a part of */
    put(&stored.data, scales, n);
    put_fp4(&stored, &random);
    lmq_dtype_to_f32(LMQ_DTYPE_F8_E4M3, scales, floats, n);
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] *= floats[i / group] / divisor;
    stored_floats(&stored, "a.weight_global_scale", BUILD_F32, "[1]", &divisor,
                  1);
    stored_floats(&stored, "a.input_global_scale", BUILD_F32, "[1]", &divisor,
                  1);
    struct lmq_checkpoint *checkpoint = open_checkpoint(
        stored_save(&stored, CT(", \"format\": \"nvfp4-pack-quantized\"")));
    ck_assert_uint_eq(checkpoint->n_tensors, 1);
    ck_assert_str_eq(checkpoint->tensors[0].encoding, "nvfp4");
    assert_elements(checkpoint, "a.weight", values, ROWS * COLS, &random);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Files that are wrong ---- */

struct part {
    const char *name, *dtype, *shape;
    size_t n_bytes;
};

static const struct part words[] = {
    {"a.weight_packed", "I32", "[12,8]", 384},
    {"a.weight_scale", "F16", "[12,2]", 48},
    {"a.weight_shape", "I64", "[2]", 16},
    {"a.weight_zero_point", "I32", "[2,2]", 16},
    {"a.weight_g_idx", "I32", "[64]", 256},
    {NULL, NULL, NULL, 0},
};
static const struct part bytes[] = {
    {"a.weight", "I8", "[12,64]", 768},
    {"a.weight_scale", "F16", "[12,2]", 48},
    {"a.weight_zero_point", "I8", "[12,2]", 24},
    {NULL, NULL, NULL, 0},
};
static const struct part nv[] = {
    {"a.weight_packed", "U8", "[12,32]", 384},
    {"a.weight_scale", "F8_E4M3", "[12,4]", 48},
    {"a.weight_global_scale", "F32", "[1]", 4},
    {NULL, NULL, NULL, 0},
};

#define FOUR GROUP("4", "")

static const struct {
    const struct part *parts;
    struct part other; /* in place of the one with its name */
    const char *config;
    enum lmq_status status; /* OK: recognised, and refused by name */
    const char *text;
} wrong[] = {
    {words, {"a.weight_scale", NULL, NULL, 0}, FOUR, LMQ_ERR_FORMAT,
     "'a.weight_scale' is missing"},
    {words, {"a.weight_shape", NULL, NULL, 0}, FOUR, LMQ_ERR_FORMAT,
     "'a.weight_shape' is missing"},
    {words, {"a.weight_zero_point", NULL, NULL, 0},
     GROUP("4", ", \"symmetric\": false"), LMQ_ERR_FORMAT,
     "'a.weight_zero_point' is missing"},
    {words, {"a.weight_zero_point", "I32", "[2,3]", 24}, FOUR, LMQ_ERR_FORMAT,
     "expected 2 x 2"},
    {words, {"a.weight_zero_point", "F32", "[2,2]", 16}, FOUR,
     LMQ_ERR_UNSUPPORTED, "of type f32"},
    {words, {"a.weight_scale", "F16", "[12,3]", 72}, FOUR, LMQ_ERR_FORMAT,
     "fit neither"},
    {words, {"a.weight_scale", "F16", "[13,2]", 52}, FOUR, LMQ_ERR_FORMAT,
     "fit neither"},
    {words, {"a.weight_scale", "F16", "[0,2]", 0}, FOUR, LMQ_ERR_FORMAT,
     "fit neither"},
    {words, {"a.weight_scale", "I32", "[12,2]", 96}, FOUR,
     LMQ_ERR_UNSUPPORTED, "expected floats"},
    {words, {"a.weight_shape", "I64", "[3]", 24}, FOUR, LMQ_ERR_FORMAT,
     "expected 2 in one"},
    {words, {"a.weight_g_idx", "I32", "[63]", 252}, FOUR, LMQ_ERR_FORMAT,
     "expected 64 in one"},
    {words, {"a.weight_g_idx", "I64", "[64]", 512}, FOUR, LMQ_ERR_UNSUPPORTED,
     "of type i64"},
    {words, {"a.weight_packed", "I32", "[12,9]", 432}, FOUR, LMQ_ERR_FORMAT,
     "has 9 words"},
    {words, {"a.weight_packed", "I32", "[11,8]", 352}, FOUR, LMQ_ERR_FORMAT,
     "has 11 rows"},
    {words, {"a.weight_packed", "I32", "[96]", 384}, FOUR, LMQ_ERR_FORMAT,
     "expected 2"},
    {words, {"a.weight_packed", "I64", "[12,8]", 768}, FOUR,
     LMQ_ERR_UNSUPPORTED, "of type i64"},
    {words, {"", NULL, NULL, 0}, GROUP("8", ""), LMQ_ERR_FORMAT,
     "has 8 words"},
    {words, {"", NULL, NULL, 0},
     GROUP("4", ", \"block_structure\": [0, 1]"), LMQ_ERR_FORMAT,
     "block_structure"},
    {words, {"", NULL, NULL, 0}, CT(", \"format\": \"newest\""), LMQ_OK,
     "compressed-tensors (format newest)"},
    {bytes, {"a.weight_zero_point", "I8", "[12,1]", 12}, "{}", LMQ_ERR_FORMAT,
     "expected 12 x 2"},
    {bytes, {"a.weight_zero_point", "U8", "[12,2]", 24}, "{}",
     LMQ_ERR_UNSUPPORTED, "expected i8"},
    {bytes, {"a.weight_scale", "F16", "[12,5]", 120}, "{}", LMQ_ERR_FORMAT,
     "fit neither"},
    {bytes, {"", NULL, NULL, 0}, CT(", \"format\": \"newest\""), LMQ_OK,
     "compressed-tensors (format newest)"},
    {nv, {"a.weight_global_scale", NULL, NULL, 0}, "{}", LMQ_ERR_FORMAT,
     "'a.weight_global_scale' is missing"},
    {nv, {"", NULL, NULL, 0}, "{}", LMQ_ERR_FORMAT,
     "expected a number above 0"},
    {nv, {"a.weight_global_scale", "F32", "[2]", 8}, "{}", LMQ_ERR_FORMAT,
     "has 2 elements"},
    {nv, {"a.weight_scale", "F8_E4M3", "[12,3]", 36}, "{}", LMQ_ERR_FORMAT,
     "expected 12 x 4"},
    {nv, {"a.weight_packed", "U8", "[12,31]", 372}, "{}", LMQ_ERR_FORMAT,
     "expected 2, and a multiple of 16"},
    {nv, {"a.weight_scale", "F32", "[12,4]", 192}, "{}", LMQ_ERR_UNSUPPORTED,
     "expected u8"},
    {nv, {"a.weight_scale", "U8", "[12,4]", 48}, "{}", LMQ_ERR_FORMAT,
     "expected 12 x 2"},
};

static void
put_part(struct stored *stored, const struct part *part)
{
    if (part->dtype == NULL)
        return;
    stored_entry(stored, part->name, part->dtype, part->shape, part->n_bytes);
    if (strcmp(part->shape, "[2]") != 0 || part->n_bytes != 16) {
        put_zeros(&stored->data, part->n_bytes);
        return;
    }
    put_u64(&stored->data, ROWS);
    put_u64(&stored->data, COLS);
}

START_TEST(parts_that_do_not_fit_are_refused)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct stored stored = {0};
        for (const struct part *part = wrong[i].parts; part->name != NULL;
             part++)
            put_part(&stored, strcmp(part->name, wrong[i].other.name) == 0
                                  ? &wrong[i].other
                                  : part);
        stored_entry(&stored, "b.weight", "F32", "[3]", 12);
        put_zeros(&stored.data, 12);
        const char *path = stored_save(&stored, wrong[i].config);
        if (wrong[i].status != LMQ_OK) {
            assert_refused(path, wrong[i].status, wrong[i].text);
            continue;
        }
        struct lmq_checkpoint *checkpoint = open_checkpoint(path);
        ck_assert_str_eq(checkpoint->packed, wrong[i].text);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        words_and_bytes_have_scales_of_every_strategy,
        mxfp4_has_powers_of_two,
        mxfp4_is_told_from_what_looks_like_it,
        quarks_scales_of_columns_are_refused,
        transforms_of_activations_are_refused,
        parts_that_do_not_fit_are_refused,
    };
    const TTest *const of_groups[] = {nvfp4_has_floats_and_a_divisor};

    return RUN_SUITE("packed_compressed", tests) |
           RUN_SUITE_OVER("groups", of_groups, 0, 2);
}
