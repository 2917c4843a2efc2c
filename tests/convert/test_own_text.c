/*
 * test_own_text.c - conversions that learn from what the model writes itself.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/convert/learners.h"
#include "tests/runtime/small_vocab.h"
#include "tests/validate/validate_fable.h"

/* ---- What is written ---- */

/* The text, too, and so what is learnt from it; and some other number of tokens
 * is another text. */
START_TEST(any_number_of_threads_writes_the_same_text)
{
    struct lmq_convert_options options = by_own_text();
    struct lmq_report *reports[3];
    const char *texts[3];

    options.context = 64;
    for (int i = 0; i < 3; i++) {
        options.calibration_tokens = i < 2 ? 700 : 650;
        options.threads = i + 1;
        reports[i] = calibrate(in_folder(i == 0 ? "1.lmq" : "n.lmq"), &options);
        texts[i] = lmq_report_string(reports[i], "calibration.own_text");
        ck_assert_uint_eq(strlen(texts[i]), 8);
        if (i == 1)
            assert_same_files(in_folder("1.lmq"), in_folder("n.lmq"));
        remove(in_folder("n.lmq"));
    }
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_ne(texts[0], texts[2]);
    for (int i = 0; i < 3; i++)
        lmq_report_free(reports[i]);
}
END_TEST

/* A dry run writes no text, and knows what it takes all the same. */
START_TEST(dry_runs_write_no_text)
{
    static const size_t sizes[] = {2, 129, 500, 4097};

    for (size_t i = 0; i < 4; i++) {
        struct lmq_convert_options options = by_own_text();
        options.calibration_tokens = sizes[i];
        options.is_dry_run = 1;
        struct lmq_report *dry = calibrate(in_folder("x.lmq"), &options);
        options.is_dry_run = 0;
        struct lmq_report *wet = calibrate(in_folder("x.lmq"), &options);
        static const char *const keys[] = {
            "calibration.tokens", "calibration.windows", "calibration.ctx",
            "totals.output_bytes"};
        for (size_t k = 0; k < 4; k++)
            ck_assert_msg(lmq_report_number(dry, keys[k]) ==
                              lmq_report_number(wet, keys[k]),
                          "%s of %zu tokens", keys[k], sizes[i]);
        /* What is left behind full windows is one, if it is two tokens. */
        ck_assert(lmq_report_number(wet, "calibration.tokens") ==
                  (double)(sizes[i] % 128 == 1 ? sizes[i] - 1 : sizes[i]));
        ck_assert_int_eq(lmq_report_kind(dry, "calibration.own_text"),
                         LMQ_KIND_NULL);
        ck_assert_uint_eq(
            strlen(lmq_report_string(wet, "calibration.own_text")), 8);
        lmq_report_free(dry);
        lmq_report_free(wet);
        remove(in_folder("x.lmq"));
    }
}
END_TEST

/* What the real run would refuse, a dry run does. */
START_TEST(windows_beyond_learned_positions_are_refused)
{
    struct lmq_convert_options options = by_own_text();

    save_learner(family_find("gpt2"));
    options.calibration_tokens = 200;
    options.forces_tokenizer = 1;
    for (int is_dry = 0; is_dry < 2; is_dry++)
        for (options.context = 48; options.context < 50; options.context++) {
            struct lmq_error err = {0};
            struct lmq_report *report;
            options.is_dry_run = is_dry;
            enum lmq_status status = try_convert(
                in_folder("family"), in_folder("tokenizer.bin"),
                in_folder("x.lmq"), &options, &report, &err);
            lmq_report_free(report);
            if (options.context == 48)
                ck_assert_msg(status == LMQ_OK, "%s", err.message);
            else
                ck_assert_msg(status == LMQ_ERR_ARG &&
                                  strstr(err.message, "48 positions") != NULL,
                              "dry %d: %s", is_dry, err.message);
            remove(in_folder("x.lmq"));
        }
}
END_TEST

START_TEST(who_is_stopped_while_writing_a_text_writes_it_again)
{
    struct lmq_convert_options options = by_own_text();
    struct lmq_report *one, *by_and_by;

    options.calibration_tokens = 400;
    one = calibrate(in_folder("1.lmq"), &options);
    ck_assert_int_gt(calibrate_by_and_by(fable("model.safetensors"),
                                         fable("tokenizer.json"),
                                         in_folder("n.lmq"), options, 40,
                                         &by_and_by),
                     3);
    assert_same_files(in_folder("1.lmq"), in_folder("n.lmq"));
    assert_same_findings(one, by_and_by);
    lmq_report_free(one);
    lmq_report_free(by_and_by);
}
END_TEST

/* ---- What cannot be ---- */

START_TEST(misuse_is_refused)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);

    options.writes_text = 1;
    assert_not_calibrated(&options, LMQ_ERR_ARG, "goes without .calibration");
    options = by_own_text();
    options.splits_documents = 1;
    assert_not_calibrated(&options, LMQ_ERR_ARG, ".splits_documents");
    options = by_own_text();
    options.context = 1;
    assert_not_calibrated(&options, LMQ_ERR_ARG, ".context is 1, expected 2");
    options = by_own_text();
    options.calibration_tokens = 1;
    assert_not_calibrated(&options, LMQ_ERR_ARG, "one token");
}
END_TEST

/* ---- Families ---- */

/* More windows than are written at a time. */
START_TEST(every_family_writes)
{
    const struct family *family = family_at((size_t)_i);
    struct lmq_convert_options options = by_own_text();

    if (family->shape.again > 0)
        return; /* nobody calibrates it */
    options.context = 5;
    options.calibration_tokens = 95;
    save_learner(family);
    assert_learns_alike(family, options);
}
END_TEST

int
main(int argc, char **argv)
{
    const TTest *const of_one[] = {
        any_number_of_threads_writes_the_same_text,
        dry_runs_write_no_text,
        windows_beyond_learned_positions_are_refused,
        who_is_stopped_while_writing_a_text_writes_it_again,
        misuse_is_refused,
    };
    const TTest *const of_all[] = {every_family_writes};
    size_t first, end;

    family_range(argc, argv, &first, &end);
    int failed = argc > 1 ? 0 : RUN_SUITE("own-text", of_one);
    return RUN_SUITE_OVER("families", of_all, first, end) | failed;
}
