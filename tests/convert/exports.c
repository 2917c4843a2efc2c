/*
 * exports.c - exports, and compares what came out.
 */
#include "config.h"

#include "tests/convert/exports.h"

#include <string.h>
#include <unistd.h>

#include "tests/build/suite.h"

const struct build_sizes even = {64, 96, 2, 4, 2, 41, 64, true};

struct lmq_report *
export_to(const char *from, const char *to,
          const struct lmq_export_options *options)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(from);
    struct lmq_report *report = NULL;
    struct lmq_error err = {0};

    ck_assert_msg(lmq_export(checkpoint, to, options, NULL, &report, &err) ==
                      LMQ_OK,
                  "%s: %s", err.path, err.message);
    lmq_checkpoint_close(checkpoint);
    return report;
}

void
assert_export_refuses(struct lmq_checkpoint *checkpoint, const char *to,
                      const struct lmq_export_options *options,
                      enum lmq_status status, const char *text)
{
    struct lmq_report *report;
    struct lmq_error err = {0};
    size_t before = files_in_folder();

    ck_assert_int_eq(lmq_export(checkpoint, to, options, NULL, &report, &err),
                     (int)status);
    ck_assert_ptr_null(report);
    ck_assert_msg(strstr(err.message, text) != NULL,
                  "'%s' does not speak of '%s'", err.message, text);
    ck_assert_uint_eq(files_in_folder(), before);
}

static void
assert_equal(const char *path_a, const char *path_b, const char *what)
{
    struct lmq_report *report = diff(path_a, path_b, 1);

    ck_assert_double_eq(lmq_report_number(report, what), 1);
    lmq_report_free(report);
}

void
assert_identical(const char *path_a, const char *path_b)
{
    assert_equal(path_a, path_b, "identical");
}

void
assert_equal_weights(const char *path_a, const char *path_b)
{
    assert_equal(path_a, path_b, "weights.equal");
}

bool
exists(const char *path)
{
    return access(path, F_OK) == 0;
}
