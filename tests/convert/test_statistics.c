/*
 * test_statistics.c - what a container says of its errors, against its numbers.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/build/build_checkpoint.h"
#include "tests/build/suite.h"

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

int
main(void)
{
    const TTest *const tests[] = {errors_are_those_of_what_is_read_back};

    return RUN_SUITE("statistics", tests);
}
