/*
 * test_packed_mlx.c - matrices that MLX packed: what config.json says of them,
 * and what is wrong with them. That they are read right, test_packed_library
 * tests.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tests/build/stored.h"

struct part {
    const char *name, *dtype, *shape;
    size_t n_bytes;
};

/* 4 rows of 128 codes of 4 bits, in groups of 64. */
static const struct part affine[] = {
    {"a.weight", "U32", "[4,16]", 256},
    {"a.scales", "F16", "[4,2]", 16},
    {"a.biases", "F16", "[4,2]", 16},
};

/* The same with groups of 32, without biases. */
static const struct part mxfp4[] = {
    {"a.weight", "U32", "[4,16]", 256},
    {"a.scales", "U8", "[4,4]", 16},
    {"a.biases", NULL, NULL, 0},
};

static void
put_part(struct stored *stored, const struct part *part)
{
    if (part->dtype == NULL)
        return;
    stored_entry(stored, part->name, part->dtype, part->shape, part->n_bytes);
    put_zeros(&stored->data, part->n_bytes);
}

/* The three parts, of which another one may take the place of one. */
static const char *
save_parts(const struct part *parts, const struct part *other,
           const char *config)
{
    struct stored stored = {0};
    bool is_used = other == NULL || other->name == NULL;

    for (size_t i = 0; i < 3; i++) {
        bool is_it = !is_used && strcmp(parts[i].name, other->name) == 0;
        put_part(&stored, is_it ? other : &parts[i]);
        is_used |= is_it;
    }
    if (!is_used)
        put_part(&stored, other);
    put_part(&stored, &(struct part){"b.weight", "F16", "[2]", 4});
    return stored_save(&stored, config);
}

#define QUANTIZATION(text)                                                    \
    "{\"architectures\": [\"X\"], \"quantization\": {" text "}}"

START_TEST(bits_and_groups_are_said_for_all_or_for_one)
{
    static const struct {
        const struct part *parts;
        const char *config, *encoding;
        uint64_t n_cols;
    } cases[] = {
        {affine, QUANTIZATION("\"group_size\": 64, \"bits\": 4"), "mlx4", 128},
        {affine, NULL, "mlx4", 128}, /* MLX's own defaults */
        {affine, STORED_CONFIG("\"group_size\": 128, \"bits\": 2"), "mlx2",
         256},
        {affine, QUANTIZATION("\"group_size\": 32, \"bits\": 8"), "mlx8", 64},
        {affine,
         QUANTIZATION("\"group_size\": 32, \"bits\": 4, \"a\": "
                      "{\"group_size\": 32, \"bits\": 8}, \"c\": false"),
         "mlx8", 64},
        {affine,
         QUANTIZATION("\"group_size\": 32, \"bits\": 8, \"a\": true"), "mlx8",
         64},
        {mxfp4,
         QUANTIZATION("\"group_size\": 32, \"bits\": 4, "
                      "\"mode\": \"mxfp4\""),
         "mxfp4", 128},
        /* Of another mode than is said: mlx-lm sees what it must be. */
        {mxfp4, QUANTIZATION("\"group_size\": 64, \"bits\": 4"), "mxfp4", 128},
        {affine,
         QUANTIZATION("\"group_size\": 64, \"bits\": 4, "
                      "\"mode\": \"mxfp8\""),
         "mlx4", 128},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(save_parts(cases[i].parts, NULL, cases[i].config));
        ck_assert_str_eq(checkpoint->packed, "");
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "a.weight");
        ck_assert_str_eq(tensor->encoding, cases[i].encoding);
        ck_assert_uint_eq(tensor->n_rows, 4);
        ck_assert_uint_eq(tensor->n_cols, cases[i].n_cols);
        ck_assert_uint_eq(tensor->quant.group_size, 0);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(what_mlx_may_have_later_is_refused_by_name)
{
    static const struct {
        const struct part *other;
        const char *config, *name;
    } cases[] = {
        {NULL, QUANTIZATION("\"group_size\": 64, \"bits\": 4, "
                            "\"mode\": \"int5\""),
         "MLX (mode int5)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_error err;
        struct lmq_checkpoint *checkpoint = open_checkpoint(
            save_parts(affine, cases[i].other, cases[i].config));
        ck_assert_str_eq(checkpoint->packed, cases[i].name);
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("out.lmq"), NULL,
                                     NULL, NULL, &err),
                         LMQ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, cases[i].name));
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(parts_of_wrong_shapes_are_refused)
{
    static const struct {
        const struct part *parts;
        struct part other;
        const char *config;
        enum lmq_status status;
        const char *text;
    } cases[] = {
        {affine, {NULL, NULL, NULL, 0}, QUANTIZATION("\"bits\": 7"),
         LMQ_ERR_FORMAT, "not 7 bits"},
        {affine, {"a.weight", "U32", "[4,14]", 224}, /* as many as 7 take */
         QUANTIZATION("\"bits\": 7, \"group_size\": 32"), LMQ_ERR_FORMAT,
         "not 7 bits"},
        {affine, {"a.global_scale", "F32", "[1]", 4},
         QUANTIZATION("\"group_size\": 64, \"bits\": 4"), LMQ_ERR_FORMAT,
         "expected nvfp4"},
        {affine, {NULL, NULL, NULL, 0}, QUANTIZATION("\"bits\": 0"),
         LMQ_ERR_FORMAT, "not 0 bits"},
        {affine, {NULL, NULL, NULL, 0}, QUANTIZATION("\"bits\": -4"),
         LMQ_ERR_FORMAT, "not -4 bits"},
        {affine, {NULL, NULL, NULL, 0}, QUANTIZATION("\"bits\": 3"),
         LMQ_ERR_FORMAT, "not 3 bits in groups of 64"},
        {affine, {NULL, NULL, NULL, 0},
         QUANTIZATION("\"group_size\": 9223372036854775807"), LMQ_ERR_FORMAT,
         "is not a size"},
        {affine, {NULL, NULL, NULL, 0},
         QUANTIZATION("\"bits\": 1, \"group_size\": 256"), LMQ_ERR_FORMAT,
         "in groups of 256"},
        {affine, {"a.biases", NULL, NULL, 0}, NULL, LMQ_ERR_FORMAT,
         "no biases"},
        {affine, {"a.biases", "F16", "[4,3]", 24}, NULL, LMQ_ERR_FORMAT,
         "'a.biases' is 4 x 3"},
        {affine, {"a.biases", "F16", "[8]", 16}, NULL, LMQ_ERR_FORMAT,
         "1 dimensions"},
        {affine, {"a.biases", "BF16", "[4,2]", 16}, NULL, LMQ_ERR_FORMAT,
         "of type bf16"},
        {affine, {"a.biases", "I16", "[4,2]", 16}, NULL, LMQ_ERR_FORMAT,
         "of type i16"},
        {affine, {"a.scales", "F16", "[2,2,2]", 16}, NULL, LMQ_ERR_FORMAT,
         "in 3 dimensions"},
        {affine, {"a.scales", "F16", "[5,2]", 20}, NULL, LMQ_ERR_FORMAT,
         "'a.scales' is 5 x 2"},
        {affine, {"a.scales", "F16", "[4,3]", 24}, NULL, LMQ_ERR_FORMAT,
         "'a.biases' is 4 x 2"},
        {affine, {"a.weight", "U32", "[4,15]", 240}, NULL, LMQ_ERR_FORMAT,
         "15 words"},
        {affine, {"a.weight", "U32", "[64]", 256}, NULL, LMQ_ERR_FORMAT,
         "in 1"},
        {mxfp4, {"a.scales", "U8", "[4,5]", 20}, NULL, LMQ_ERR_FORMAT,
         "no biases"},
        {mxfp4, {"a.scales", "I8", "[4,4]", 16},
         QUANTIZATION("\"mode\": \"mxfp4\""), LMQ_ERR_FORMAT, "of type i8"},
        {mxfp4, {"a.scales", "U8", "[4,3]", 12},
         QUANTIZATION("\"mode\": \"nvfp4\""), LMQ_ERR_FORMAT,
         "not 4 bits in groups of 16"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(save_parts(cases[i].parts, &cases[i].other,
                                  cases[i].config),
                       cases[i].status, cases[i].text);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        bits_and_groups_are_said_for_all_or_for_one,
        what_mlx_may_have_later_is_refused_by_name,
        parts_of_wrong_shapes_are_refused,
    };

    return RUN_SUITE("packed_mlx", tests);
}
