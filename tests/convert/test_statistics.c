/*
 * test_statistics.c - what a container says of its errors, against its numbers.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"
#include "tests/families/family.h"

#define ROWS 50
#define COLUMNS 100 /* groups of 32, the last one of 4 */
#define GROUP 32

static void
is(const struct lmq_report *report, const char *key, double wanted)
{
    double value = lmq_report_number(report, key);

    ck_assert_msg(fabs(value - wanted) <= 1e-4 * wanted, "%s is %g, not %g",
                  key, value, wanted);
}

START_TEST(errors_are_those_of_what_is_read_back)
{
    const struct lmq_convert_options options = {.group_size = GROUP};
    struct random random = {random_seed()};
    struct build_model model = {0};
    struct build_tensor *tensor =
        build_add(&model, "m", (uint64_t[]){ROWS, COLUMNS}, 2);
    double most = 0, sum_sq = 0, err_sq = 0, worst = 0;
    size_t n, worst_group = 0;

    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        tensor->x[i] = (float)random_normal(&random);
    save_safetensors(&model, in_folder("m.safetensors"));
    struct lmq_report *report =
        convert(in_folder("m.safetensors"), in_folder("m.lmq"), &options);
    struct lmq_checkpoint *checkpoint = open_checkpoint(in_folder("m.lmq"));
    float *back = read_tensor(checkpoint, "m", &n);
    for (size_t row = 0, group = 0; row < ROWS; row++)
        for (size_t at = 0; at < COLUMNS; at += GROUP, group++) {
            size_t width = COLUMNS - at < GROUP ? COLUMNS - at : GROUP;
            double sum = 0;
            for (size_t i = row * COLUMNS + at; width > 0; i++, width--) {
                double x = (double)tensor->x[i], err = x - (double)back[i];
                most = fmax(most, fabs(err));
                sum_sq += x * x;
                sum += err * err;
            }
            err_sq += sum;
            worst_group = sum > worst ? group : worst_group;
            worst = fmax(worst, sum);
        }
    ck_assert_uint_ne(worst_group % 4, 3);
    is(report, "tensors.0.max_error", most);
    is(report, "tensors.0.rms", sqrt(sum_sq / (ROWS * COLUMNS)));
    is(report, "tensors.0.rms_error", sqrt(err_sq / (ROWS * COLUMNS)));
    ck_assert_double_eq(lmq_report_number(report, "tensors.0.worst_group"),
                        (double)worst_group);
    is(report, "tensors.0.worst_group_rms_error", sqrt(worst / GROUP));
    lmq_report_free(report);
    lmq_checkpoint_close(checkpoint);
    free(back);
    free(tensor->x);
    free(model.tensors);
}
END_TEST

/* The last remark begins so; without one nothing is said of zeros. */
static void
assert_said(const struct build_model *model, const char *note)
{
    const struct lmq_convert_options options = {.group_size = GROUP,
                                                .replaces = 1};

    save_safetensors(model, in_folder("z.safetensors"));
    struct lmq_report *report =
        convert(in_folder("z.safetensors"), in_folder("z.lmq"), &options);
    const struct lmq_report *notes = lmq_report_at(report, "notes");
    size_t n = lmq_report_length(notes);
    const char *last =
        n == 0 ? "" : lmq_report_string(lmq_report_item(notes, n - 1), "");
    if (note != NULL)
        ck_assert_msg(strncmp(last, note, strlen(note)) == 0, "%s", last);
    else
        ck_assert_ptr_null(strstr(last, "zeros"));
    lmq_report_free(report);
}

/* Vectors of zeros are usual, as biases are; of matrices half a download may
 * be the cause. */
START_TEST(matrices_of_zeros_are_told_of)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct build_model model = {0};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        build_add(&model, names[i], (uint64_t[]){ROWS, COLUMNS}, 2);
    build_add(&model, "bias", (uint64_t[]){COLUMNS}, 1);
    /* Zeros so far. */
    model.tensors[0].x[ROWS * COLUMNS - 1] = 1e-20f;
    model.tensors[2].x[0] = -1;
    assert_said(&model, "2 of 4 matrices have nothing but zeros, 'b' first");
    model.tensors[1].x[1] = 1;
    assert_said(&model, "1 of 4 matrices has nothing but zeros, 'd' first");
    model.tensors[3].x[1] = 1;
    assert_said(&model, NULL);
    for (size_t i = 0; i < model.n_tensors; i++)
        free(model.tensors[i].x);
    free(model.tensors);
}
END_TEST

/* Rows of a head that are made as long as 1 are those that 0 in its place
 * leaves. */
START_TEST(zero_in_a_row_leaves_its_length)
{
    static const float sick[] = {NAN, INFINITY};
    const struct lmq_convert_options options = {.on_nonfinite = "zero",
                                                .replaces = 1};
    struct family_model *made =
        family_make(family_find("baichuan2-13b"), 1, 0, 1);
    float *x = made->oracle.head.w + 3 * made->oracle.shape.dim;

    x[1] = 0;
    family_write(made, in_folder("clean"));
    lmq_report_free(convert(in_folder("clean"), in_folder("a.lmq"), &options));
    for (size_t i = 0; i < sizeof(sick) / sizeof(sick[0]); i++) {
        x[1] = sick[i];
        family_write(made, in_folder("sick"));
        struct lmq_report *report =
            convert(in_folder("sick"), in_folder("b.lmq"), &options);
        ck_assert(lmq_report_number(report, "totals.zeroed_elements") == 1);
        lmq_report_free(report);
        assert_same_tensors(in_folder("a.lmq"), in_folder("b.lmq"));
    }
    family_free(made);
}
END_TEST

/* 0 in the file of a norm that is kept less one is 1. */
START_TEST(zero_is_put_where_it_is_in_the_file)
{
    const struct lmq_convert_options options = {.on_nonfinite = "zero"};
    struct family_model *made = family_make(family_find("gemma3"), 1, 0, 1);
    float *x = made->oracle.norm.w;

    x[5] = 1;
    family_write(made, in_folder("clean"));
    lmq_report_free(convert(in_folder("clean"), in_folder("a.lmq"), &options));
    x[5] = NAN;
    family_write(made, in_folder("sick"));
    lmq_report_free(convert(in_folder("sick"), in_folder("b.lmq"), &options));
    assert_same_tensors(in_folder("a.lmq"), in_folder("b.lmq"));
    family_free(made);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        errors_are_those_of_what_is_read_back,
        matrices_of_zeros_are_told_of,
        zero_in_a_row_leaves_its_length,
        zero_is_put_where_it_is_in_the_file,
    };

    return RUN_SUITE("statistics", tests);
}
