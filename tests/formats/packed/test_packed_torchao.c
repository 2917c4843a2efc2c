/*
 * test_packed_torchao.c - what torchao takes apart to save it.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "formats/packed/packed.h"
#include "tests/build/stored.h"

enum { ROWS = 12, COLS = 64 };

#define AO(more) STORED_CONFIG("\"quant_method\": \"torchao\"" more)
#define DEFAULT(kind, data)                                                   \
    AO(", \"quant_type\": {\"default\": {\"_type\": \"" kind                  \
       "\", \"_data\": {" data "}}}")
#define INT8 DEFAULT("Int8WeightOnlyConfig", "\"group_size\": null")
#define MAPPED(key, way)                                                      \
    DEFAULT("IntxWeightOnlyConfig",                                           \
            "\"" key "\": {\"_data\": \"" way                                 \
            "\", \"_type\": \"MappingType\"}")

static float values[ROWS * COLS];

static void
put_codes(struct stored *stored, const char *name, const char *dtype,
          const char *shape, const int *codes, size_t n)
{
    stored_entry(stored, name, dtype, shape, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)codes[i];
        put(&stored->data, &byte, 1);
    }
}

/* A matrix "a.weight" of integers, what values[] becomes too; with a scale for
 * each `group` columns and a zero point that is not 0 in one of them. */
static struct lmq_checkpoint *
make(size_t group, int zero, const char *config, struct random *random)
{
    static int codes[ROWS * COLS], zeros[ROWS * COLS];
    static float scales[ROWS * COLS];
    size_t n_groups = COLS / group;
    struct stored stored = {0};
    char shape[32];

    memset(zeros, 0, sizeof(zeros));
    zeros[5 * n_groups] = zero;
    for (size_t i = 0; i < ROWS * COLS; i++)
        codes[i] = (int)random_below(random, 255) - 127;
    for (size_t i = 0; i < ROWS * n_groups; i++)
        scales[i] = (float)(1 + random_below(random, 255)) / 4096;
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] =
            (float)(codes[i] - zeros[i / group]) * scales[i / group];
    snprintf(shape, sizeof(shape), "[%d,%zu]", ROWS, n_groups);
    put_codes(&stored, "a._weight_qdata", "I8", "[12,64]", codes,
              ROWS * COLS);
    stored_floats(&stored, "a._weight_scale", BUILD_BF16, shape, scales,
                  ROWS * n_groups);
    put_codes(&stored, "a._weight_zero_point", "I8", shape, zeros,
              ROWS * n_groups);
    stored_floats(&stored, "a._weight_act_quant_scale", BUILD_F32, "[1,1]",
                  scales, 1); /* of inputs */
    return open_checkpoint(stored_save(&stored, config));
}

START_TEST(integers_have_scales_and_zero_points)
{
    static const size_t groups[] = {8, 32, COLS};
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        for (int zero = 0; zero < 2; zero++) {
            struct lmq_checkpoint *checkpoint =
                make(groups[i], zero * 3, AO(""), &random);
            ck_assert_uint_eq(checkpoint->n_tensors, 1);
            ck_assert_str_eq(checkpoint->tensors[0].encoding, "int8");
            assert_elements(checkpoint, "a.weight", values, ROWS * COLS,
                            &random);
            lmq_checkpoint_close(checkpoint);
        }
}
END_TEST

/* Zero points are stored in any case, whatever the configuration says. */
START_TEST(integers_are_kept_where_zero_points_are_none)
{
    struct random random = {random_seed()};

    for (int zero = 0; zero < 2; zero++) {
        struct lmq_checkpoint *checkpoint = make(32, zero, INT8, &random);
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, "a.weight");
        ck_assert_uint_eq(tensor->quant.group_size, zero == 0 ? 32 : 0);
        assert_elements(checkpoint, "a.weight", values, ROWS * COLS, &random);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* A parameter that is not called a weight, of several matrices. */
START_TEST(floats_of_experts_have_scales_of_rows)
{
    static const int codes[] = {0x38, 0x40, 0xb8, 0x30, 0x48, 0x00, 0x44,
                                0xc0}; /* 1, 2, -1, 0.5, 4, 0, 3, -2 */
    static const float scales[] = {1, 2, 0.5f, 4};
    static const float wanted[] = {1, 2, -2, 1, 2, 0, 12, -8};
    struct random random = {random_seed()};
    struct stored stored = {0};

    put_codes(&stored, "m.experts._down_proj_qdata", "F8_E4M3", "[2,2,2]",
              codes, 8);
    stored_floats(&stored, "m.experts._down_proj_scale", BUILD_F32, "[2,2,1]",
                  scales, 4);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&stored, AO("")));
    assert_elements(checkpoint, "m.experts.down_proj", wanted, 8, &random);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- Wrong ---- */

struct part {
    const char *name, *dtype, *shape;
    size_t size;
};

static const struct part parts[] = {
    {"a._weight_qdata", "I8", "[12,64]", 768},
    {"a._weight_scale", "BF16", "[12,2]", 48},
    {"a._weight_zero_point", "I8", "[12,2]", 24},
};

static const struct {
    struct part other; /* in place of the one with its name, or besides */
    enum lmq_status status; /* OK: refused by name where elements are needed */
    const char *text;
} wrong[] = {
    {{"a._weight_scale", NULL, NULL, 0}, LMQ_ERR_FORMAT,
     "'a._weight_scale' is missing"},
    {{"a._weight_scale", "BF16", "[12,3]", 72}, LMQ_ERR_FORMAT, "fit neither"},
    {{"a._weight_scale", "I32", "[12,2]", 96}, LMQ_ERR_UNSUPPORTED,
     "expected floats"},
    {{"a._weight_zero_point", "I8", "[12,1]", 12}, LMQ_ERR_FORMAT,
     "'a._weight_zero_point' has another shape than 'a._weight_scale'"},
    {{"a._weight_zero_point", "I32", "[12,2]", 96}, LMQ_ERR_UNSUPPORTED,
     "of type i32"},
    {{"a.weight", "F32", "[1]", 4}, LMQ_ERR_FORMAT,
     "there is 'a._weight_qdata', and 'a.weight' too"},
    {{"a._weight_qdata", "U8", "[12,32]", 384}, LMQ_OK,
     "torchao (codes of type u8)"},
    {{"a._weight_qdata", "F8_E4M3", "[12,64]", 768}, LMQ_OK,
     "torchao (zero points of FP8)"},
    {{"a._weight_scale", "U8", "[12,2]", 24}, LMQ_OK,
     "torchao (scales of type u8)"},
    {{"a._weight_act_pre_scale", "F32", "[64]", 256}, LMQ_OK,
     "torchao (behind scaled activations)"},
};

static void
put_part(struct stored *stored, const struct part *part)
{
    if (part->dtype == NULL)
        return;
    stored_entry(stored, part->name, part->dtype, part->shape, part->size);
    put_zeros(&stored->data, part->size);
}

START_TEST(what_is_not_right_is_refused)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        bool is_besides = true;
        struct stored stored = {0};
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            bool is_it = strcmp(parts[j].name, wrong[i].other.name) == 0;
            put_part(&stored, is_it ? &wrong[i].other : &parts[j]);
            is_besides &= !is_it;
        }
        if (is_besides)
            put_part(&stored, &wrong[i].other);
        const char *path = stored_save(&stored, AO(""));
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

/* Its classes of 4 bits: one has scales turned around, one in one tensor with
 * zero points. */
START_TEST(other_classes_are_called_by_what_they_have)
{
    static const struct part classes[][3] = {
        {{"a._weight_qdata", "I8", "[12,32]", 384},
         {"a._weight_scale", "BF16", "[2,12]", 48},
         {"a._weight_zero_point", "BF16", "[2,12]", 48}},
        {{"a._weight_qdata", "I32", "[1,1,32,2]", 256},
         {"a._weight_scale_and_zero", "BF16", "[2,12,2]", 96},
         {"b", "F32", "[1]", 4}},
    };
    static const char *const texts[] = {"torchao (zero points of type bf16)",
                                        "torchao (codes of type i32)"};

    for (size_t i = 0; i < 2; i++) {
        struct stored stored = {0};
        for (size_t j = 0; j < 3; j++)
            put_part(&stored, &classes[i][j]);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&stored, AO("")));
        ck_assert_str_eq(checkpoint->packed, texts[i]);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        integers_have_scales_and_zero_points,
        integers_are_kept_where_zero_points_are_none,
        floats_of_experts_have_scales_of_rows,
        what_is_not_right_is_refused,
        other_classes_are_called_by_what_they_have,
    };

    return RUN_SUITE("torchao", tests);
}
