/*
 * test_narrow.c - containers of fewer than 8 bits give the logits of one of 8
 * bits with the same integers and scales, bit for bit.
 *
 * Models without a multiple of much, in every width and group; tokens one by
 * one, where weights are used as they lie, and many together, where they are
 * widened first.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/checkpoint/checkpoint.h"
#include "tests/build/suite.h"
#include "tests/families/variants.h"
#include "tests/runtime/run_logits.h"

#define TOKENS 21

static const char *const widths[] = {"q4", "q5", "q6"};
static const char *const activations[] = {"q16", "q8", "f32"};
static const size_t steps[] = {1, 2, 7, TOKENS};

/* Wide enough for several groups and tiles, and ragged everywhere. */
static const char *
write_model(void)
{
    struct lmq_hparams *h = malloc(sizeof(*h));

    ck_assert_ptr_nonnull(h);
    variant_base(h);
    h->n_layers = 2;
    h->dim = 132;
    h->hidden_dim = 299;
    h->vocab_size = 83;
    h->n_heads = 4;
    h->n_kv_heads = 2;
    h->head_dim = 33;
    h->rotary_dim = 32;
    const char *folder = variant_write(h, false, 5, in_folder("float"));
    free(h);
    return folder;
}

static float *
logits_of(const char *path, const char *mode, int threads, size_t step)
{
    const struct lmq_session_options options = {
        .batch = TOKENS, .activations = mode, .threads = threads};
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    struct lmq_model *model;
    struct lmq_error err;
    int32_t tokens[TOKENS];

    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)(i * 37 % 83);
    ck_assert_msg(lmq_model_open(checkpoint, &model, &err) == LMQ_OK, "%s",
                  err.message);
    float *logits = run_logits(model, &options, tokens, TOKENS, step);
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
    return logits;
}

static void
assert_same_logits(const char *narrow, const char *wide, const char *mode)
{
    float *expected = logits_of(wide, mode, 1, TOKENS);

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            float *logits = logits_of(narrow, mode, threads, steps[i]);
            REQUIRE(memcmp(logits, expected, TOKENS * 83 * sizeof(float)) ==
                        0,
                    "%s, activations %s, %zu tokens, %d threads", narrow,
                    mode, steps[i], threads);
            free(logits);
        }
    free(expected);
}

START_TEST(narrow_weights_give_the_bits_of_wide_ones)
{
    const char *folder = write_model();
    const unsigned group = 32u << _i % 4;
    const char *narrow = in_folder("narrow.lmq");
    const char *wide = in_folder("wide.lmq");

    for (size_t i = 0; i < 3; i++) {
        struct lmq_convert_options options = {
            .replaces = 1,
            .threads = 2,
            .group_size = group,
            .encoding = widths[i],
            .scales = _i / 4 == 0 ? "f16" : "f32",
            .method = _i % 2 == 0 ? "search" : "absmax",
        };
        lmq_report_free(convert(folder, narrow, &options));
        assert_intact(narrow);
        options.encoding = "q8";
        options.layout = i == 1 ? "rows" : "tiles";
        struct lmq_report *report = convert(narrow, wide, &options);
        ck_assert(lmq_report_number(report, "totals.as_stored") ==
                  lmq_report_number(report, "totals.quantized"));
        lmq_report_free(report);
        assert_intact(wide);
        for (size_t j = 0; j < 3; j++)
            assert_same_logits(narrow, wide, activations[j]);
    }
}
END_TEST

/* As floats too, -0 included. */
START_TEST(narrow_weights_are_read_as_the_wide_ones)
{
    const char *folder = write_model();
    const char *narrow = in_folder("narrow.lmq");
    const char *wide = in_folder("wide.lmq");
    struct lmq_convert_options options = {
        .replaces = 1, .threads = 2, .encoding = widths[_i % 3]};

    lmq_report_free(convert(folder, narrow, &options));
    options.encoding = NULL;
    lmq_report_free(convert(narrow, wide, &options));
    struct lmq_checkpoint *a = open_checkpoint(narrow);
    struct lmq_checkpoint *b = open_checkpoint(wide);
    for (size_t i = 0; i < a->n_tensors; i++) {
        size_t n, n_other;
        float *x = read_tensor(a, a->tensors[i].name, &n);
        float *y = read_tensor(b, a->tensors[i].name, &n_other);
        ck_assert_uint_eq(n, n_other);
        REQUIRE(memcmp(x, y, n * sizeof(*x)) == 0, "%s", a->tensors[i].name);
        free(x);
        free(y);
    }
    lmq_checkpoint_close(a);
    lmq_checkpoint_close(b);
}
END_TEST

/* What is narrow already stays as it is, also in a wider width. */
START_TEST(fewer_bits_are_taken_as_they_are)
{
    const char *folder = write_model();
    const char *first = in_folder("first.lmq");
    const char *second = in_folder("second.lmq");

    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            struct lmq_convert_options options = {
                .replaces = 1, .threads = 2, .encoding = widths[i]};
            lmq_report_free(convert(folder, first, &options));
            options.encoding = widths[j];
            struct lmq_report *report = convert(first, second, &options);
            double taken = lmq_report_number(report, "totals.as_stored");
            double all = lmq_report_number(report, "totals.quantized");
            ck_assert(j < i ? taken < all : taken == all);
            lmq_report_free(report);
            assert_intact(second);
        }
}
END_TEST

START_TEST(rows_have_eight_bits)
{
    const struct lmq_convert_options options = {.encoding = "q4",
                                                .layout = "rows"};
    struct lmq_checkpoint *checkpoint = open_checkpoint(write_model());
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_convert(checkpoint, in_folder("rows.lmq"), &options,
                                 NULL, &report, &err),
                     LMQ_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(err.message, "rows"));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *const swept[] = {narrow_weights_give_the_bits_of_wide_ones};
    const TTest *const of_widths[] = {narrow_weights_are_read_as_the_wide_ones};
    const TTest *const tests[] = {
        fewer_bits_are_taken_as_they_are,
        rows_have_eight_bits,
    };

    return RUN_SUITE_OVER("narrow", swept, 0, 8) |
           RUN_SUITE_OVER("narrow floats", of_widths, 0, 3) |
           RUN_SUITE("narrow options", tests);
}
