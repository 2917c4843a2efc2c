/*
 * test_packed_hqq.c - matrices of HQQ: codes in parts of a table, scales and
 * zero points of each group, and what is said of them.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/stored.h"

enum { ROWS = 24, COLS = 20, N = ROWS * COLS };

struct said {
    float nbits;
    unsigned bits, group, axis; /* bits that words are made for */
    enum build_type type;       /* of scales and zero points */
};

static float values[N];

static float
rounded(enum build_type type, float x)
{
    return type == BUILD_F16    ? lmq_f16_to_f32(lmq_f32_to_f16(x))
           : type == BUILD_BF16 ? lmq_bf16_to_f32(lmq_f32_to_bf16(x))
                                : x;
}

static void
put_number(struct stored *stored, const char *name, const char *dtype, float x)
{
    stored_entry(stored, name, dtype, "[]", strcmp(dtype, "U8") == 0 ? 1 : 4);
    if (strcmp(dtype, "F32") == 0)
        put_f32(&stored->data, x);
    else if (strcmp(dtype, "I32") == 0)
        put_u32(&stored->data, (uint32_t)x);
    else
        put(&stored->data, &(unsigned char){(unsigned char)x}, 1);
}

/* The table of codes, part over part in words. */
static void
put_codes(struct stored *stored, const struct said *said,
          const uint32_t *codes)
{
    size_t lines = said->axis == 0 ? said->group : N / said->group;
    size_t columns = N / lines, per_word = said->bits == 3 ? 10
                                                           : 8 / said->bits;
    size_t step = (lines + per_word - 1) / per_word;
    char shape[48];

    snprintf(shape, sizeof(shape), "[%zu,%zu]", step, columns);
    stored_entry(stored, "a.W_q", said->bits == 3 ? "I32" : "U8", shape,
                 step * columns * (said->bits == 3 ? 4 : 1));
    for (size_t i = 0; i < step * columns; i++) {
        uint32_t word = 0;
        for (size_t part = 0; part < per_word; part++) {
            size_t at = part * step * columns + i;
            word = word << said->bits | (at < N ? codes[at] : 0);
        }
        if (said->bits == 3)
            put_u32(&stored->data, word);
        else
            put(&stored->data, &(unsigned char){(unsigned char)word}, 1);
    }
}

static void
put_said(struct stored *stored, const struct said *said)
{
    put_number(stored, "a.nbits", said->nbits < 2 ? "F32" : "I32",
               said->nbits);
    put_number(stored, "a.axis", "I32", (float)said->axis);
    put_number(stored, "a.group_size", "I32", (float)said->group);
    put_number(stored, "a.quant_scale", "U8", 0);
    put_number(stored, "a.quant_zero", "U8", 0);
    put_number(stored, "a.view_as_float", "U8", 0);
    stored_entry(stored, "a.packing", "U8", "[7]", 7);
    put(&stored->data, "4bit_u8", 7);
    stored_entry(stored, "a.shape", "I64", "[2]", 16);
    put_u64(&stored->data, ROWS);
    put_u64(&stored->data, COLS);
    stored_entry(stored, "a.bias", "F32", "[2]", 8);
    put_zeros(&stored->data, 8);
}

/* Random; `values` are what it stands for. */
static const char *
make(const struct said *said, struct random *random)
{
    size_t n_groups = N / said->group;
    uint32_t codes[N];
    float scales[N], zeros[N];
    struct stored stored = {0};
    char shape[32];

    for (size_t i = 0; i < N; i++)
        codes[i] = (uint32_t)random_below(random, (size_t)1 << said->bits);
    for (size_t i = 0; i < n_groups; i++) {
        scales[i] = rounded(said->type, (float)random_normal(random));
        zeros[i] = rounded(said->type, (float)random_normal(random) * 9);
    }
    for (size_t i = 0; i < N; i++) {
        size_t g = said->axis == 0 ? i % n_groups : i / said->group;
        values[i] =
            rounded(said->type, (float)codes[i] - zeros[g]) * scales[g];
    }
    snprintf(shape, sizeof(shape),
             said->axis == 0 ? "[1,%zu]" : "[%zu,1]", n_groups);
    put_codes(&stored, said, codes);
    stored_floats(&stored, "a.scale", said->type, shape, scales, n_groups);
    stored_floats(&stored, "a.zero", said->type, shape, zeros, n_groups);
    put_said(&stored, said);
    return stored_save(&stored,
                       STORED_CONFIG("\"quant_method\": \"hqq\""));
}

START_TEST(hqq_gives_what_was_packed)
{
    static const struct said cases[] = {
        {8, 8, 10, 1, BUILD_F16},  {8, 8, 8, 0, BUILD_F32},
        {6, 8, 20, 1, BUILD_BF16}, {5, 8, 24, 0, BUILD_F16},
        {4, 4, 12, 1, BUILD_F16},  {4, 4, 24, 0, BUILD_BF16},
        {3, 3, 16, 1, BUILD_F16},  {3, 3, 24, 0, BUILD_F16},
        {2, 2, 20, 1, BUILD_F32},  {2, 2, 40, 0, BUILD_F16},
        {1.58f, 2, 30, 1, BUILD_F16}, {1, 1, 60, 1, BUILD_F16},
        {1, 1, 40, 0, BUILD_F16},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(make(&cases[i], &random));
        ck_assert_uint_eq(checkpoint->n_tensors, 2);
        ck_assert_str_eq(checkpoint->packed, "");
        ck_assert_uint_eq(checkpoint->tensors[0].quant.group_size, 0);
        assert_elements(checkpoint, "a.weight", values, N, &random);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* ---- Files that are wrong ---- */

struct part {
    const char *name, *dtype, *shape;
    float x; /* of each element */
    size_t n;
};

/* 24 x 20 of 8 bits in groups of 20, all codes 7. */
static const struct part right[] = {
    {"a.W_q", "U8", "[24,20]", 7, 480},
    {"a.scale", "F32", "[24,1]", 2, 24},
    {"a.zero", "F32", "[24,1]", 3, 24},
    {"a.nbits", "I32", "[]", 8, 1},
    {"a.axis", "I32", "[]", 1, 1},
    {"a.group_size", "I32", "[]", 20, 1},
    {"a.shape", "F32", "[2]", 0, 2}, /* 24 and 20 */
    {"a.packing", "U8", "[7]", 0, 7},
    {"a.quant_zero", "U8", "[1]", 0, 1},
    {"a.quant_scale", "U8", "[1]", 0, 1},
};

static const struct {
    struct part other; /* in place of the one with its name */
    enum lmq_status status; /* OK: recognised, and refused by name */
    const char *text;
} wrong[] = {
    {{"a.scale", NULL, NULL, 0, 0}, LMQ_ERR_FORMAT, "'a.scale' is missing"},
    {{"a.zero", NULL, NULL, 0, 0}, LMQ_ERR_FORMAT, "'a.zero' is missing"},
    {{"a.nbits", NULL, NULL, 0, 0}, LMQ_ERR_FORMAT, "'a.nbits' is missing"},
    {{"a.shape", NULL, NULL, 0, 0}, LMQ_ERR_FORMAT, "'a.shape' is missing"},
    {{"a.axis", NULL, NULL, 0, 0}, LMQ_ERR_FORMAT, "'a.axis' is missing"},
    {{"a.W_q", "U8", "[24,19]", 7, 456}, LMQ_ERR_FORMAT, "has 456 bytes"},
    {{"a.scale", "F32", "[23]", 2, 23}, LMQ_ERR_FORMAT, "23 scales"},
    {{"a.zero", "F32", "[25]", 2, 25}, LMQ_ERR_FORMAT, "25 zero points"},
    {{"a.zero", "U8", "[24]", 2, 24}, LMQ_ERR_UNSUPPORTED, "expected f32"},
    {{"a.scale", "I32", "[24]", 2, 24}, LMQ_ERR_UNSUPPORTED,
     "expected floats"},
    {{"a.axis", "I32", "[]", 2, 1}, LMQ_ERR_FORMAT, "which cannot be"},
    {{"a.group_size", "I32", "[]", 0, 1}, LMQ_ERR_FORMAT, "which cannot be"},
    {{"a.group_size", "I32", "[]", 7, 1}, LMQ_ERR_FORMAT, "which cannot be"},
    {{"a.group_size", "I32", "[2]", 7, 2}, LMQ_ERR_FORMAT, "has 2 elements"},
    {{"a.shape", "F32", "[1]", 24, 1}, LMQ_ERR_FORMAT, "has 1 elements"},
    {{"a.nbits", "I32", "[]", 7, 1}, LMQ_OK, "HQQ (nbits 7)"},
    {{"a.packing", NULL, NULL, 0, 0}, LMQ_OK,
     "HQQ (codes that are not packed)"},
    {{"a.quant_zero", "U8", "[1]", 1, 1}, LMQ_OK,
     "HQQ (scales or zeros that are packed too)"},
    {{"a.quant_scale", "U8", "[1]", 1, 1}, LMQ_OK,
     "HQQ (scales or zeros that are packed too)"},
};

static void
put_part(struct stored *stored, const struct part *part)
{
    size_t size;

    if (part->dtype == NULL)
        return;
    size = strcmp(part->dtype, "U8") == 0 ? 1 : 4;
    stored_entry(stored, part->name, part->dtype, part->shape,
                 part->n * size);
    for (size_t i = 0; i < part->n; i++) {
        if (size == 1)
            put(&stored->data, &(unsigned char){(unsigned char)part->x}, 1);
        else if (strcmp(part->dtype, "I32") == 0)
            put_u32(&stored->data, (uint32_t)part->x);
        else
            put_f32(&stored->data,
                    strcmp(part->shape, "[2]") == 0 ? (i == 0 ? ROWS : COLS)
                                                    : part->x);
    }
}

START_TEST(hqq_that_does_not_fit_is_refused)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct stored stored = {0};
        for (size_t j = 0; j < sizeof(right) / sizeof(right[0]); j++)
            put_part(&stored,
                     strcmp(right[j].name, wrong[i].other.name) == 0
                         ? &wrong[i].other
                         : &right[j]);
        const char *path = stored_save(&stored, "{}");
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
        hqq_gives_what_was_packed,
        hqq_that_does_not_fit_is_refused,
    };

    return RUN_SUITE("packed_hqq", tests);
}
