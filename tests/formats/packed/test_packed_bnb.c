/*
 * test_packed_bnb.c - matrices that bitsandbytes packed, and MXFP4: what is
 * wrong with them. That they are read right, test_packed_library tests.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/tiles.h"
#include "tests/build/stored.h"

struct part {
    const char *name, *dtype, *shape;
    size_t n_bytes; /* of zeros, or of `text` */
    const char *text;
};

#define STATE "a.weight.quant_state.bitsandbytes__nf4"
#define TEXT(text) sizeof(text) - 1, text

/* 3 x 50 in blocks of 64, whose scales are in blocks of 256. */
static const struct part nested[] = {
    {"a.weight", "U8", "[75,1]", 75, NULL},
    {"a.weight.absmax", "U8", "[3]", 3, NULL},
    {"a.weight.quant_map", "F32", "[16]", 64, NULL},
    {"a.weight.nested_absmax", "F32", "[1]", 4, NULL},
    {"a.weight.nested_quant_map", "F32", "[256]", 1024, NULL},
    {STATE, "U8", NULL,
     TEXT("{\"dtype\": \"float16\", \"blocksize\": 64, \"shape\": [3, 50], "
          "\"nested_dtype\": \"float32\", \"nested_blocksize\": 256, "
          "\"nested_offset\": 0.5}")},
};

/* The same without the second level. */
static const struct part plain[] = {
    {"a.weight", "U8", "[75,1]", 75, NULL},
    {"a.weight.absmax", "F32", "[3]", 12, NULL},
    {"a.weight.quant_map", "F32", "[16]", 64, NULL},
    {STATE, "U8", NULL,
     TEXT("{\"dtype\": \"float16\", \"blocksize\": 64, \"shape\": [3, 50]}")},
};

static const struct part bytes8[] = {
    {"a.weight", "I8", "[4,6]", 24, NULL},
    {"a.SCB", "F32", "[4]", 16, NULL},
    {"a.weight_format", "U8", "[]", 1, NULL},
};

static const struct part mxfp4[] = {
    {"a_blocks", "U8", "[2,3,4,16]", 384, NULL},
    {"a_scales", "U8", "[2,3,4]", 24, NULL},
};

#define PARTS(parts) parts, sizeof(parts) / sizeof((parts)[0])

static void
put_part(struct stored *stored, const struct part *part)
{
    char shape[32];

    if (part->dtype == NULL)
        return;
    snprintf(shape, sizeof(shape), "[%zu]", part->n_bytes);
    stored_entry(stored, part->name, part->dtype,
                 part->shape == NULL ? shape : part->shape, part->n_bytes);
    if (part->text != NULL)
        put(&stored->data, part->text, part->n_bytes);
    else
        put_zeros(&stored->data, part->n_bytes);
}

/* The parts, of which another one may take the place of one. */
static const char *
save_parts(const struct part *parts, size_t n, const struct part *other)
{
    struct stored stored = {0};

    for (size_t i = 0; i < n; i++)
        put_part(&stored, other != NULL && other->name != NULL &&
                                  strcmp(parts[i].name, other->name) == 0
                              ? other
                              : &parts[i]);
    put_part(&stored, &(struct part){"b.weight", "F16", "[2]", 4, NULL});
    return stored_save(&stored, NULL);
}

START_TEST(what_is_right_is_read)
{
    static const struct {
        const struct part *parts;
        size_t n;
        const char *name, *encoding;
        uint64_t n_rows, n_cols;
    } cases[] = {
        {PARTS(nested), "a.weight", "nf4", 3, 50},
        {PARTS(plain), "a.weight", "nf4", 3, 50},
        {PARTS(bytes8), "a.weight", "bnb8", 4, 6},
        {bytes8, 2, "a.weight", "bnb8", 4, 6}, /* without a format */
        {PARTS(mxfp4), "a", "mxfp4", 6, 128},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(save_parts(cases[i].parts, cases[i].n, NULL));
        size_t n;
        ck_assert_str_eq(checkpoint->packed, "");
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        const struct lmq_tensor *tensor =
            lmq_checkpoint_find_name(checkpoint, cases[i].name);
        ck_assert_str_eq(tensor->encoding, cases[i].encoding);
        ck_assert_uint_eq(tensor->n_rows, cases[i].n_rows);
        ck_assert_uint_eq(tensor->n_cols, cases[i].n_cols);
        free(read_tensor(checkpoint, cases[i].name, &n));
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

#define MAX_ELEMENTS 4096

/* Integers times scales are what rows say, but for a last bit. */
START_TEST(eight_bits_are_integers_too)
{
    const char *path = source_path("data/packed/bnb");
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, "int8.weight");
    size_t n, n_cols = (size_t)tensor->n_cols;
    unsigned char stored[4 * MAX_ELEMENTS];
    int8_t q[MAX_ELEMENTS];
    float scales[MAX_ELEMENTS];
    struct lmq_scratch scratch = {0};
    float *x = read_tensor(checkpoint, "int8.weight", &n);

    ck_assert_uint_le(n, MAX_ELEMENTS);
    ck_assert_int_eq(tensor->quant.scales, LMQ_SCALES_F32);
    ck_assert_uint_ge(tensor->quant.group_size, n_cols);
    ck_assert_int_eq(lmq_checkpoint_read_integers(
                         checkpoint, tensor, 0, (size_t)tensor->n_rows, q,
                         stored, &scratch, NULL),
                     LMQ_OK);
    lmq_scales_load(LMQ_SCALES_F32, 1, stored, (size_t)tensor->n_rows,
                    scales);
    for (size_t i = 0; i < n; i++) {
        float y = (float)q[i] * scales[i / n_cols];
        float most = 2e-7f * (x[i] < 0 ? -x[i] : x[i]);
        REQUIRE(y - x[i] <= most && x[i] - y <= most, "element %zu", i);
    }
    lmq_scratch_free(&scratch);
    free(x);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(what_is_not_known_is_refused_by_name)
{
    static const struct {
        const struct part *parts;
        size_t n;
        struct part other;
        const char *name;
    } cases[] = {
        {PARTS(plain), {STATE, "U8", NULL, TEXT("{}")},
         "bitsandbytes (dtype )"},
        {PARTS(plain),
         {STATE, "U8", NULL, TEXT("{\"dtype\": \"float8\"}")},
         "bitsandbytes (dtype float8)"},
        {PARTS(plain),
         {STATE, "U8", NULL,
          TEXT("{\"dtype\": \"float16\", \"blocksize\": 0}")},
         "bitsandbytes (blocksize 0)"},
        {PARTS(plain),
         {STATE, "U8", NULL,
          TEXT("{\"dtype\": \"float16\", \"blocksize\": 48}")},
         "bitsandbytes (blocksize 48)"},
        {PARTS(plain),
         {STATE, "U8", NULL,
          TEXT("{\"dtype\": \"float16\", \"blocksize\": -64}")},
         "bitsandbytes (blocksize -64)"},
        {PARTS(nested),
         {STATE, "U8", NULL,
          TEXT("{\"dtype\": \"float16\", \"blocksize\": 64, "
               "\"nested_dtype\": \"float32\", \"nested_blocksize\": 0}")},
         "bitsandbytes (nested_blocksize 0)"},
        {PARTS(nested),
         {STATE, "U8", NULL,
          TEXT("{\"dtype\": \"float16\", \"blocksize\": 64}")},
         "bitsandbytes (nested_dtype )"},
        {PARTS(bytes8), {"a.weight_format", "U8", "[]", TEXT("\2")},
         "bitsandbytes (weight_format 2)"},
        {PARTS(bytes8), {"a.weight_format", "F32", "[1]", 4, NULL},
         "bitsandbytes (weight_format 0)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_error err;
        struct lmq_checkpoint *checkpoint = open_checkpoint(
            save_parts(cases[i].parts, cases[i].n, &cases[i].other));
        ck_assert_str_eq(checkpoint->packed, cases[i].name);
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("out.lmq"), NULL,
                                     NULL, NULL, &err),
                         LMQ_ERR_UNSUPPORTED);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

START_TEST(parts_that_do_not_fit_are_refused)
{
    static const char good[] =
        "\"dtype\": \"float16\", \"blocksize\": 64, \"shape\": ";
    static const struct {
        const struct part *parts;
        size_t n;
        struct part other;
        const char *text;
    } cases[] = {
        {PARTS(plain), {"a.weight", NULL, NULL, 0, NULL},
         "'a.weight' is missing"},
        {PARTS(plain), {"a.weight.absmax", NULL, NULL, 0, NULL},
         "'a.weight.absmax' is missing"},
        {PARTS(plain), {"a.weight.quant_map", NULL, NULL, 0, NULL},
         "'a.weight.quant_map' is missing"},
        {PARTS(nested), {"a.weight.nested_quant_map", NULL, NULL, 0, NULL},
         "'a.weight.nested_quant_map' is missing"},
        {PARTS(plain), {"a.weight", "U8", "[74,1]", 74, NULL}, "74 bytes"},
        {PARTS(plain), {"a.weight", "U8", "[76,1]", 76, NULL}, "76 bytes"},
        {PARTS(plain), {"a.weight.absmax", "F32", "[2]", 8, NULL},
         "expected 3"},
        {PARTS(plain), {"a.weight.absmax", "U8", "[3]", 3, NULL},
         "of type u8, expected f32"},
        {PARTS(plain), {"a.weight.quant_map", "F32", "[15]", 60, NULL},
         "expected 16"},
        {PARTS(nested), {"a.weight.absmax", "F32", "[3]", 12, NULL},
         "of type f32, expected u8"},
        {PARTS(nested), {"a.weight.nested_absmax", "F32", "[2]", 8, NULL},
         "expected 1 in one"},
        {PARTS(nested), {"a.weight.nested_quant_map", "F32", "[255]", 1020,
                         NULL},
         "expected 256"},
        {PARTS(plain), {STATE, "U8", NULL, TEXT("[]")}, "no JSON object"},
        {PARTS(plain), {STATE, "U8", NULL, TEXT("{\"a\": ")}, STATE},
        {PARTS(plain), {STATE, "U8", NULL, 5000, NULL}, "no short text"},
        {PARTS(plain), {STATE, "F32", "[2]", 8, NULL}, "no short text"},
        {PARTS(bytes8), {"a.SCB", "F32", "[3]", 12, NULL}, "3 numbers"},
        {PARTS(bytes8), {"a.SCB", "F16", "[4]", 8, NULL}, "4 numbers of f16"},
        {PARTS(bytes8), {"a.weight", "U8", "[4,6]", 24, NULL}, "row of i8"},
        {PARTS(bytes8), {"a.weight", "I8", "[24]", 24, NULL}, "'a.SCB'"},
        {PARTS(bytes8), {"a.weight", NULL, NULL, 0, NULL}, "is missing"},
        {PARTS(mxfp4), {"a_scales", NULL, NULL, 0, NULL},
         "'a_scales' is missing"},
        {PARTS(mxfp4), {"a_scales", "U8", "[2,3,5]", 30, NULL}, "30 scales"},
        {PARTS(mxfp4), {"a_scales", "U8", "[6,4]", 24, NULL}, "24 scales"},
        {PARTS(mxfp4), {"a_scales", "I8", "[2,3,4]", 24, NULL}, "(i8)"},
        {PARTS(mxfp4), {"a_blocks", "U8", "[2,3,4,8]", 192, NULL},
         "8 bytes"},
        {PARTS(mxfp4), {"a_blocks", "U8", "[16]", 16, NULL}, "1 rows"},
    };
    static const char *const shapes[] = {
        "[]", "7", "[3, 0]", "[3, -50]", "[3, 51]", "[4294967296, 4294967296]",
        "[1, 1, 1, 1, 1, 1, 1, 3, 50]", "[3.0, 50]"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(
            save_parts(cases[i].parts, cases[i].n, &cases[i].other),
            LMQ_ERR_FORMAT, cases[i].text);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        char text[160];
        snprintf(text, sizeof(text), "{%s%s}", good, shapes[i]);
        const struct part other = {STATE, "U8", NULL, strlen(text), text};
        assert_refused(save_parts(PARTS(plain), &other), LMQ_ERR_FORMAT,
                       STATE);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        what_is_right_is_read,
        eight_bits_are_integers_too,
        what_is_not_known_is_refused_by_name,
        parts_that_do_not_fit_are_refused,
    };

    return RUN_SUITE("packed_bnb", tests);
}
