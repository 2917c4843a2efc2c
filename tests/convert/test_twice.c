/*
 * test_twice.c - what is done with a checkpoint leaves it as it was.
 *
 * Whatever came before, an operation gives the same report, remarks included,
 * and the same file.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"

/* A container, of which each operation has something to remark. */
static struct lmq_checkpoint *
open_container(void)
{
    lmq_report_free(
        convert(source_path("data/fable/model.safetensors"),
                in_folder("once.lmq"),
                &(struct lmq_convert_options){.group_size = 128}));
    return open_checkpoint(in_folder("once.lmq"));
}

/* All of a report; frees it. */
static char *
take_text(struct lmq_report *report)
{
    struct lmq_error err;
    char *text;

    ck_assert_int_eq(lmq_report_text(report, LMQ_REPORT_JSON, &text, &err),
                     LMQ_OK);
    lmq_report_free(report);
    return text;
}

static char *
converted(struct lmq_checkpoint *checkpoint, const char *output,
          const struct lmq_convert_options *options)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(lmq_convert(checkpoint, output, options, NULL, &report,
                              &err) == LMQ_OK,
                  "%s", err.message);
    return take_text(report);
}

static char *
exported(struct lmq_checkpoint *checkpoint, const char *output, const char *to)
{
    const struct lmq_export_options options = {.to = to, .replaces = 1};
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(lmq_export(checkpoint, output, &options, NULL, &report,
                             &err) == LMQ_OK,
                  "%s: %s", to, err.message);
    return take_text(report);
}

static char *
inspected(struct lmq_checkpoint *checkpoint)
{
    const struct lmq_inspect_options options = {.has_tensors = 1};
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_int_eq(lmq_inspect(checkpoint, &options, &report, &err), LMQ_OK);
    return take_text(report);
}

static void
assert_same_texts(char *a, char *b)
{
    ck_assert_str_eq(a, b);
    lmq_text_free(a);
    lmq_text_free(b);
}

START_TEST(conversion_leaves_no_note_for_the_next)
{
    const struct lmq_convert_options options = {.group_size = 64,
                                                .replaces = 1};
    struct lmq_checkpoint *checkpoint = open_container();
    const char *path = in_folder("twice.lmq");
    size_t n_first, n_second;

    char *before = inspected(checkpoint);
    char *first = converted(checkpoint, path, &options);
    unsigned char *bytes = read_file(path, &n_first);
    ck_assert_ptr_nonnull(strstr(first, "quantized already"));
    assert_same_texts(first, converted(checkpoint, path, &options));
    unsigned char *again = read_file(path, &n_second);
    ck_assert_uint_eq(n_first, n_second);
    ck_assert_mem_eq(bytes, again, n_first);
    assert_same_texts(before, inspected(checkpoint));
    free(bytes);
    free(again);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(failed_conversion_leaves_no_note)
{
    const struct lmq_convert_options options = {.replaces = 1};
    struct lmq_checkpoint *checkpoint = open_container();
    struct lmq_error err;

    char *before = inspected(checkpoint);
    ck_assert_int_ne(lmq_convert(checkpoint, in_folder("no/folder.lmq"),
                                 &options, NULL, NULL, &err),
                     LMQ_OK);
    ck_assert_int_ne(lmq_convert(checkpoint, in_folder("once.lmq"), &options,
                                 NULL, NULL, &err),
                     LMQ_OK);
    assert_same_texts(before, inspected(checkpoint));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

START_TEST(export_leaves_no_note_for_the_next)
{
    static const char *const formats[] = {"gguf", "llama2c", "safetensors"};
    struct lmq_checkpoint *checkpoint = open_container();
    char *before = inspected(checkpoint);

    for (int i = 0; i < 3; i++) {
        /* The first alone finds no files; from then on all is alike. */
        lmq_text_free(exported(checkpoint, in_folder(formats[i]), formats[i]));
        char *text = exported(checkpoint, in_folder(formats[i]), formats[i]);
        ck_assert_ptr_nonnull(strstr(text, "\"notes\""));
        assert_same_texts(text, exported(checkpoint, in_folder(formats[i]),
                                         formats[i]));
    }
    assert_same_texts(before, inspected(checkpoint));
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        conversion_leaves_no_note_for_the_next,
        failed_conversion_leaves_no_note,
        export_leaves_no_note_for_the_next,
    };

    return RUN_SUITE("twice", tests);
}
