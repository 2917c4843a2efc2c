/*
 * test_packed_bitnet.c - matrices of -1, 0 and 1: packed, and as they are
 * trained.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantize/tiles.h"
#include "tests/build/stored.h"

enum { ROWS = 12, COLS = 70, N = ROWS * COLS, LINES = ROWS / 4 };

#define BITNET(more) STORED_CONFIG("\"quant_method\": \"bitnet\"" more)
#define ONLINE                                                                \
    ", \"linear_class\": \"autobitlinear\", "                                 \
    "\"quantization_mode\": \"online\""
#define PROJ "model.layers.0.mlp.up_proj.weight"

static int numbers[N];
static float values[N];

static float
rounded(enum build_type type, float x)
{
    return type == BUILD_F16    ? lmq_f16_to_f32(lmq_f32_to_f16(x))
           : type == BUILD_BF16 ? lmq_bf16_to_f32(lmq_f32_to_bf16(x))
                                : x;
}

/* The integers are the numbers, times one scale. */
static void
assert_integers(struct lmq_checkpoint *checkpoint, const char *name,
                enum lmq_scales type, float scale)
{
    const struct lmq_tensor *tensor =
        lmq_checkpoint_find_name(checkpoint, name);
    size_t n_groups = ROWS * ((COLS + 63) / 64);
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    unsigned char stored[ROWS * 2 * 4];
    float scales[ROWS * 2];
    int8_t q[N];

    ck_assert_uint_eq(tensor->quant.group_size, 64);
    ck_assert_int_eq(tensor->quant.scales, type);
    ck_assert_int_eq(lmq_checkpoint_read_integers(checkpoint, tensor, 0, ROWS,
                                                  q, stored, &scratch, &err),
                     LMQ_OK);
    lmq_scales_load(type, 1, stored, n_groups, scales);
    for (size_t i = 0; i < N; i++)
        REQUIRE(q[i] == numbers[i], "%zu: %d, not %d", i, q[i], numbers[i]);
    for (size_t i = 0; i < n_groups; i++)
        ck_assert(!(scales[i] < scale || scales[i] > scale));
    lmq_scratch_free(&scratch);
}

/* ---- Packed ---- */

/* A 2 stands for itself: nobody writes it, and the library takes it so. */
static void
put_packed(struct stored *stored, struct random *random)
{
    unsigned char bytes[LINES * COLS] = {0};

    for (size_t i = 0; i < N; i++) {
        size_t row = i / COLS, line = row % LINES;
        numbers[i] = (int)random_below(random, i == 5 ? 4 : 3) - 1;
        bytes[line * COLS + i % COLS] |=
            (unsigned char)((numbers[i] + 1) << 2 * (row / LINES));
    }
    stored_entry(stored, "a.weight", "U8", "[3,70]", sizeof(bytes));
    put(&stored->data, bytes, sizeof(bytes));
}

START_TEST(rows_of_bytes_are_four_parts_of_a_matrix)
{
    static const struct {
        const char *config;
        enum build_type type;
        float scale, one; /* what 1 stands for */
        enum lmq_scales scales;
    } cases[] = {
        {BITNET(""), BUILD_BF16, 0.75f, 1 / 0.75f, LMQ_SCALES_F32},
        {BITNET(", \"linear_class\": \"bitlinear\""), BUILD_F16, 0.25f, 4,
         LMQ_SCALES_F16},
        {BITNET(", \"linear_class\": \"autobitlinear\""), BUILD_BF16, 1.375f,
         1.375f, LMQ_SCALES_F16},
        {BITNET(", \"linear_class\": \"autobitlinear\", "
                "\"quantization_mode\": \"offline\", "
                "\"modules_to_not_convert\": [\"lm_head\", \"x\"]"),
         BUILD_F32, 0.1f, 0.1f, LMQ_SCALES_F32},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        float scale = cases[i].scale;
        put_packed(&stored, &random);
        stored_floats(&stored, "a.weight_scale", cases[i].type, "[1]", &scale,
                      1);
        for (size_t j = 0; j < N; j++)
            values[j] = (float)numbers[j] * cases[i].one;
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&stored, cases[i].config));
        ck_assert_uint_eq(checkpoint->n_tensors, 1);
        ck_assert_str_eq(checkpoint->packed, "");
        ck_assert_str_eq(checkpoint->tensors[0].encoding, "bitnet");
        assert_elements(checkpoint, "a.weight", values, N, &random);
        assert_integers(checkpoint, "a.weight", cases[i].scales,
                        cases[i].one);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* ---- As they are trained ---- */

/* Numbers and values of the trained weights; returns what 1 stands for. */
static float
make_trained(enum build_type type, double size, float *weights,
             struct random *random)
{
    double sum = 0;

    for (size_t i = 0; i < N; i++) {
        weights[i] = rounded(type, (float)(random_normal(random) * size));
        sum += fabs((double)weights[i]);
    }
    float mean = (float)(sum / N);
    mean = mean > 1e-5f ? mean : 1e-5f;
    float one = rounded(type, 1 / (1 / mean));
    for (size_t i = 0; i < N; i++) {
        float w = rintf(weights[i] * (1 / mean));
        numbers[i] = w > 1 ? 1 : w < -1 ? -1 : (int)w;
        values[i] = (float)numbers[i] * one;
    }
    return one;
}

START_TEST(trained_weights_become_numbers_by_their_mean)
{
    static const struct {
        enum build_type type;
        double size;
        enum lmq_scales scales;
    } cases[] = {
        {BUILD_BF16, 0.02, LMQ_SCALES_F16},
        {BUILD_F16, 3, LMQ_SCALES_F16},
        {BUILD_F32, 0.7, LMQ_SCALES_F32},
        {BUILD_F32, 1e-7, LMQ_SCALES_F32}, /* of which none is near 1e-5 */
        {BUILD_BF16, 1e-6, LMQ_SCALES_F16}, /* as fine as half precision */
    };
    static const char *const others[] = {"token_embd.weight", "output.weight",
                                         "output_norm.weight"};
    struct random random = {random_seed()};
    float weights[N];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        float one = make_trained(cases[i].type, cases[i].size, weights,
                                 &random);
        stored_floats(&stored, PROJ, cases[i].type, "[12,70]", weights, N);
        stored_floats(&stored, "model.embed_tokens.weight", BUILD_F32,
                      "[12,70]", weights, N);
        stored_floats(&stored, "lm_head.weight", BUILD_F32, "[12,70]", weights,
                      N);
        stored_floats(&stored, "model.norm.weight", BUILD_F32, "[840]",
                      weights, N);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&stored, BITNET(ONLINE)));
        ck_assert_uint_eq(checkpoint->n_tensors, 4);
        assert_elements(checkpoint, "blk.0.ffn_up.weight", values, N, &random);
        assert_integers(checkpoint, "blk.0.ffn_up.weight", cases[i].scales,
                        one);
        for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++) {
            size_t n;
            float *x = read_tensor(checkpoint, others[j], &n);
            ck_assert_uint_eq(n, N);
            ck_assert_mem_eq(x, weights, sizeof(weights));
            free(x);
        }
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* Which bfloat16 has and half precision has not. */
START_TEST(a_mean_that_no_scale_says_has_floats_alone)
{
    struct random random = {random_seed()};
    struct lmq_scratch scratch = {0};
    struct stored stored = {0};
    struct lmq_error err;
    unsigned char scales[2 * 2];
    float weights[N];
    int8_t q[COLS];

    make_trained(BUILD_BF16, 2e5, weights, &random);
    stored_floats(&stored, PROJ, BUILD_BF16, "[12,70]", weights, N);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&stored, BITNET(ONLINE)));
    const struct lmq_tensor *tensor = &checkpoint->tensors[0];
    assert_elements(checkpoint, "blk.0.ffn_up.weight", values, N, &random);
    ck_assert_int_eq(lmq_checkpoint_read_integers(checkpoint, tensor, 1, 1, q,
                                                  scales, &scratch, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert(strstr(err.message, "half precision has no") != NULL);
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

/* ---- What is wrong, or not read ---- */

START_TEST(what_does_not_fit_is_refused)
{
    static const struct {
        const char *shape;
        size_t n;
        float x;
        enum lmq_status status;
        const char *text;
    } cases[] = {
        {NULL, 0, 0, LMQ_ERR_FORMAT, "'a.weight_scale' is missing"},
        {"[2]", 2, 1, LMQ_ERR_FORMAT, "has 2 elements, expected 1"},
        {"[1]", 1, 0, LMQ_ERR_NONFINITE, "is 0, expected a number above 0"},
        {"[1]", 1, -1, LMQ_ERR_NONFINITE, "is -1, expected"},
        {"[1]", 1, NAN, LMQ_ERR_NONFINITE, "'a.weight_scale' is"},
        {"[1]", 1, 1e-39f, LMQ_ERR_NONFINITE, "expected a number above 0"},
    };
    struct random random = {random_seed()};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        const float x[2] = {cases[i].x, cases[i].x};
        put_packed(&stored, &random);
        if (cases[i].shape != NULL)
            stored_floats(&stored, "a.weight_scale", BUILD_F32,
                          cases[i].shape, x, cases[i].n);
        assert_refused(stored_save(&stored, BITNET("")), cases[i].status,
                       cases[i].text);
    }
}
END_TEST

START_TEST(what_is_not_read_is_called_by_its_name)
{
    static const struct {
        const char *config, *name, *text;
    } cases[] = {
        {BITNET(ONLINE ", \"use_rms_norm\": true"), PROJ,
         "BitNet (use_rms_norm)"},
        {BITNET(", \"linear_class\": \"other\""), PROJ,
         "BitNet (linear_class other)"},
        {BITNET(", \"quantization_mode\": \"later\""), PROJ,
         "BitNet (quantization_mode later)"},
        {BITNET(ONLINE ", \"modules_to_not_convert\": []"), PROJ,
         "BitNet (modules_to_not_convert)"},
        {BITNET(ONLINE ", \"modules_to_not_convert\": [\"up_proj\"]"), PROJ,
         "BitNet (modules_to_not_convert)"},
        {BITNET(", \"linear_class\": \"autobitlinear\""), PROJ,
         "BitNet (offline, but of floats)"},
        {BITNET(ONLINE), "x.weight",
         "BitNet (online, a matrix of no known name)"},
        {BITNET(ONLINE), "model.layers.0.mlp.gate.weight",
         "BitNet (online, with ffn_gate_inp)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored stored = {0};
        stored_floats(&stored, cases[i].name, BUILD_F32, "[12,70]", values, N);
        struct lmq_checkpoint *checkpoint =
            open_checkpoint(stored_save(&stored, cases[i].config));
        ck_assert_str_eq(checkpoint->packed, cases[i].text);
        lmq_checkpoint_close(checkpoint);
    }
}
END_TEST

/* No mean is a number then, and nothing is made of it. */
START_TEST(trained_weights_that_are_not_finite_are_an_error)
{
    struct stored stored = {0};
    struct random random = {random_seed()};
    struct lmq_scratch scratch = {0};
    struct lmq_error err;
    float weights[N], x;

    make_trained(BUILD_F32, 1, weights, &random);
    weights[N - 1] = NAN;
    stored_floats(&stored, PROJ, BUILD_F32, "[12,70]", weights, N);
    struct lmq_checkpoint *checkpoint =
        open_checkpoint(stored_save(&stored, BITNET(ONLINE)));
    ck_assert_int_eq(lmq_checkpoint_read(checkpoint, &checkpoint->tensors[0],
                                         0, 1, &x, &scratch, &err),
                     LMQ_ERR_NONFINITE);
    ck_assert(strstr(err.message, "mean of its magnitudes") != NULL);
    lmq_scratch_free(&scratch);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        rows_of_bytes_are_four_parts_of_a_matrix,
        trained_weights_become_numbers_by_their_mean,
        a_mean_that_no_scale_says_has_floats_alone,
        what_does_not_fit_is_refused,
        what_is_not_read_is_called_by_its_name,
        trained_weights_that_are_not_finite_are_an_error,
    };

    return RUN_SUITE("packed_bitnet", tests);
}
