/*
 * learners.c - models that can be calibrated.
 */
#include "config.h"

#include "tests/convert/learners.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/build/suite.h"
#include "tests/runtime/small_vocab.h"
#include "tests/validate/validate_fable.h"

/* Words of bytes: all of the small vocabulary. */
const char *
some_text(size_t n)
{
    static const char letters[] = "abcdefghij klmnop qrstuv wxyz. ABC,\n";
    const char *path = in_folder("text.txt");
    char *text = malloc(n);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++)
        text[i] = letters[(7919 * i * i + 104729 * i + i / 7) %
                          (sizeof(letters) - 1)];
    write_file(path, text, n);
    free(text);
    return path;
}

void
save_learner(const struct family *family)
{
    struct family_model *made = family_make(family, 1, N_IDS, 1);
    struct lmq_buffer vocabulary = llama2c_file();

    family_write(made, in_folder("family"));
    family_free(made);
    write_file(in_folder("tokenizer.bin"), vocabulary.bytes, vocabulary.n);
    free(vocabulary.bytes);
}

/* ---- Learning ---- */

struct lmq_convert_options
by_text(const char *const *text)
{
    return (struct lmq_convert_options){
        .size = sizeof(struct lmq_convert_options),
        .calibration = text,
        .n_calibration = 1,
        .calibration_tokens = 3000,
        .context = 128,
        .encoding = "q4",
        .threads = 2,
    };
}

struct lmq_convert_options
by_own_text(void)
{
    struct lmq_convert_options options = by_text(NULL);

    options.n_calibration = 0;
    options.writes_text = 1;
    return options;
}

enum lmq_status
try_to_stop(const char *from, const char *tokenizer, const char *to,
            const struct lmq_convert_options *options, int *left,
            struct lmq_report **report, struct lmq_error *err)
{
    const struct lmq_open_options open = {.tokenizer = tokenizer};
    const struct lmq_progress progress = {.report = stop_when_due,
                                          .context = left};
    struct lmq_checkpoint *checkpoint;

    *report = NULL;
    enum lmq_status status = lmq_checkpoint_open(from, &open, &checkpoint, err);
    ck_assert_msg(status == LMQ_OK, "%s: %s", from, err->message);
    status = lmq_convert(checkpoint, to, options, &progress, report, err);
    lmq_checkpoint_close(checkpoint);
    return status;
}

enum lmq_status
try_convert(const char *from, const char *tokenizer, const char *to,
            const struct lmq_convert_options *options,
            struct lmq_report **report, struct lmq_error *err)
{
    int never = 0;

    return try_to_stop(from, tokenizer, to, options, &never, report, err);
}

struct lmq_report *
calibrate(const char *to, const struct lmq_convert_options *options)
{
    struct lmq_error err = {0};
    struct lmq_report *report;

    ck_assert_msg(try_convert(fable("model.safetensors"),
                              fable("tokenizer.json"), to, options, &report,
                              &err) == LMQ_OK,
                  "%s", err.message);
    return report;
}

void
assert_same_findings(const struct lmq_report *a, const struct lmq_report *b)
{
    static const char *const keys[] = {"tensors", "notes", "totals"};
    struct lmq_error err;

    for (size_t i = 0; i < 3; i++) {
        char *x, *y;
        ck_assert_int_eq(lmq_report_text(lmq_report_at(a, keys[i]),
                                         LMQ_REPORT_JSON, &x, &err),
                         LMQ_OK);
        ck_assert_int_eq(lmq_report_text(lmq_report_at(b, keys[i]),
                                         LMQ_REPORT_JSON, &y, &err),
                         LMQ_OK);
        ck_assert_str_eq(x, y);
        lmq_text_free(x);
        lmq_text_free(y);
    }
}

int
calibrate_by_and_by(const char *from, const char *tokenizer, const char *to,
                    struct lmq_convert_options options, int step,
                    struct lmq_report **report)
{
    struct lmq_error err = {0};
    enum lmq_status status = LMQ_ERR_CANCELLED;
    int n = 0;

    options.resumes = 1;
    while (status == LMQ_ERR_CANCELLED) {
        int left = step * ++n;
        status = try_to_stop(from, tokenizer, to, &options, &left, report,
                             &err);
    }
    ck_assert_msg(status == LMQ_OK, "%s: %s", to, err.message);
    return n - 1;
}

/* ---- What must be ---- */

void
assert_not_calibrated(const struct lmq_convert_options *options,
                      enum lmq_status expected, const char *words)
{
    struct lmq_error err = {0};
    struct lmq_report *report;
    enum lmq_status status =
        try_convert(fable("model.safetensors"), fable("tokenizer.json"),
                    in_folder("no.lmq"), options, &report, &err);

    ck_assert_msg(status == expected && strstr(err.message, words) != NULL,
                  "%d, \"%s\"; expected %d, \"%s\"", status, err.message,
                  expected, words);
    ck_assert_ptr_null(report);
    size_t left = files_in_folder();
    ck_assert_msg(left <= 1, "%zu files are left", left);
}

void
assert_learns_alike(const struct family *family,
                    struct lmq_convert_options options)
{
    static const char *const names[] = {"one.lmq", "three.lmq"};
    struct lmq_report *report;
    struct lmq_error err = {0};

    options.forces_tokenizer = 1;
    for (int i = 0; i < 2; i++) {
        options.threads = i == 0 ? 1 : 3;
        ck_assert_msg(try_convert(in_folder("family"),
                                  in_folder("tokenizer.bin"),
                                  in_folder(names[i]), &options, &report,
                                  &err) == LMQ_OK,
                      "%s: %s", family->name, err.message);
        lmq_report_free(report);
    }
    assert_same_files(in_folder(names[0]), in_folder(names[1]));
    assert_intact(in_folder(names[0]));
}
