/*
 * test_calibrate.c - conversions that learn from a text: of the bundled model,
 * of every family, and of what cannot learn.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/sha256.h"
#include "tests/build/suite.h"
#include "tests/convert/learners.h"
#include "tests/runtime/small_vocab.h"
#include "tests/validate/validate_fable.h"

static const char model[] = "model.safetensors";

/* How many tensors have that method, and the largest ratio of their errors. */
static size_t
count_method(const struct lmq_report *report, const char *method, double *most)
{
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    size_t n = 0;

    *most = 0;
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        double ratio = lmq_report_number(tensor, "product_error_ratio");
        if (strcmp(lmq_report_string(tensor, "method"), method) != 0)
            continue;
        n++;
        if (ratio > *most)
            *most = ratio;
    }
    return n;
}

static size_t
count_notes(const struct lmq_report *report, const char *words)
{
    const struct lmq_report *notes = lmq_report_at(report, "notes");
    size_t n = 0;

    for (size_t i = 0; i < lmq_report_length(notes); i++)
        n += strstr(lmq_report_string(lmq_report_item(notes, i), ""), words) !=
             NULL;
    return n;
}

/* ---- What comes out ---- */

START_TEST(any_number_of_threads_gives_the_same_bytes)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    double most;

    options.calibration_tokens = 500;
    options.threads = 1;
    struct lmq_report *report = calibrate(in_folder("1.lmq"), &options);
    ck_assert_uint_gt(count_method(report, "gptq", &most), 10);
    ck_assert_double_lt(most, 1);
    lmq_report_free(report);
    assert_intact(in_folder("1.lmq"));
    for (options.threads = 2; options.threads <= 4; options.threads += 2) {
        lmq_report_free(calibrate(in_folder("n.lmq"), &options));
        assert_same_files(in_folder("1.lmq"), in_folder("n.lmq"));
        remove(in_folder("n.lmq"));
    }
}
END_TEST

/* ---- What is stopped ---- */

START_TEST(what_is_stopped_is_gone_on_with)
{
    static const struct {
        const char *encoding, *layout;
        int rotates, has_digests, step;
    } cases[] = {
        {"q4", NULL, 0, 0, 2},
        {"q8", "rows", 1, 0, 3},
        {"q6", NULL, 1, 1, 4},
    };
    const char *text = fable("held-out-b.txt");

    for (size_t i = 0; i < 3; i++) {
        struct lmq_convert_options options = by_text(&text);
        struct lmq_report *one, *by_and_by;
        options.calibration_tokens = 500;
        options.encoding = cases[i].encoding;
        options.layout = cases[i].layout;
        options.rotates = cases[i].rotates;
        options.has_digests = cases[i].has_digests;
        if (options.has_digests && lmq_sha256_need(NULL) != LMQ_OK)
            continue;
        one = calibrate(in_folder("1.lmq"), &options);
        ck_assert_int_gt(calibrate_by_and_by(fable(model),
                                             fable("tokenizer.json"),
                                             in_folder("n.lmq"), options,
                                             cases[i].step, &by_and_by),
                         2);
        assert_same_files(in_folder("1.lmq"), in_folder("n.lmq"));
        assert_same_findings(one, by_and_by);
        lmq_report_free(one);
        lmq_report_free(by_and_by);
        remove(in_folder("1.lmq"));
        remove(in_folder("n.lmq"));
    }
}
END_TEST

/* Another text is another conversion. */
START_TEST(only_the_same_is_gone_on_with)
{
    const char *text = fable("held-out-b.txt");
    const char *other = fable("held-out-a.txt");
    struct lmq_convert_options options = by_text(&text);
    struct lmq_report *report;
    struct lmq_error err = {0};
    int left = 20;

    options.calibration_tokens = 500;
    options.resumes = 1;
    ck_assert_int_eq(try_to_stop(fable(model), fable("tokenizer.json"),
                                 in_folder("n.lmq"), &options, &left, &report,
                                 &err),
                     LMQ_ERR_CANCELLED);
    options.calibration = &other;
    ck_assert_int_eq(try_convert(fable(model), fable("tokenizer.json"),
                                 in_folder("n.lmq"), &options, &report, &err),
                     LMQ_ERR_ARG);
    ck_assert_msg(strstr(err.message, "another conversion") != NULL, "%s",
                  err.message);
    options.calibration = &text;
    options.mend = 1;
    ck_assert_int_eq(try_convert(fable(model), fable("tokenizer.json"),
                                 in_folder("n.lmq"), &options, &report, &err),
                     LMQ_ERR_ARG);
    ck_assert_msg(strstr(err.message, ".mend is 0.4") != NULL, "%s",
                  err.message);
    options.mend = 0;
    options.damping = 0.02;
    ck_assert_int_eq(try_convert(fable(model), fable("tokenizer.json"),
                                 in_folder("n.lmq"), &options, &report, &err),
                     LMQ_ERR_ARG);
    ck_assert_msg(strstr(err.message, ".damping is 0.01") != NULL, "%s",
                  err.message);
    options.n_calibration = 0;
    options.calibration_tokens = options.context = 0;
    options.damping = 0;
    ck_assert_int_eq(try_convert(fable(model), fable("tokenizer.json"),
                                 in_folder("n.lmq"), &options, &report, &err),
                     LMQ_ERR_ARG);
}
END_TEST

/* ---- Whether it pays ---- */

static double
divergence(const char *judged)
{
    const char *text = fable("held-out-a.txt");
    struct lmq_validate_options options = usual_options(&text);

    options.max_tokens = 5000;
    struct lmq_report *report = validate(fable(model), judged, &options);
    double kld = lmq_report_number(report, "kld.mean");
    lmq_report_free(report);
    return kld;
}

/* By more if later layers make up for earlier ones. */
START_TEST(what_was_calibrated_is_nearer)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options plain = {.size = sizeof(plain),
                                        .encoding = "q4"};
    struct lmq_convert_options options = by_text(&text);

    lmq_report_free(convert(fable(model), in_folder("plain.lmq"), &plain));
    lmq_report_free(calibrate(in_folder("mended.lmq"), &options));
    options.mend = -1;
    lmq_report_free(calibrate(in_folder("gptq.lmq"), &options));
    double search = divergence(in_folder("plain.lmq"));
    double gptq = divergence(in_folder("gptq.lmq"));
    double mended = divergence(in_folder("mended.lmq"));
    options = by_own_text();
    lmq_report_free(calibrate(in_folder("own.lmq"), &options));
    double own = divergence(in_folder("own.lmq"));
    ck_assert_msg(gptq < 0.9 * search, "%g, by search alone %g", gptq, search);
    ck_assert_msg(mended < 0.95 * gptq, "%g, without mending %g", mended,
                  gptq);
    ck_assert_msg(own < 0.9 * search, "%g, by search alone %g", own, search);
}
END_TEST

/* The container says what it was made with; files of a set, other layouts and
 * the rules of a recipe go with it. */
START_TEST(options_and_facts_go_with_it)
{
    const char *texts[] = {fable("held-out-b.txt"), fable("held-out-a.txt")};
    static const char *const rules[] = {"ffn_down=q8,method=absmax",
                                        "attn_q=q4,method=search",
                                        "attn_k=bf16"};
    struct lmq_convert_options options = by_text(texts);
    double most;

    options.n_calibration = 2;
    options.calibration_tokens = 500;
    options.rules = rules;
    options.n_rules = 3;
    options.shard_size = 300000;
    options.has_digests = 1;
    options.splits_documents = 1;
    options.damping = 0.1;
    options.mend = 0.25;
    struct lmq_report *report = calibrate(in_folder("set.lmq"), &options);
    ck_assert_uint_gt(count_method(report, "gptq", &most), 3);
    ck_assert_uint_gt(count_method(report, "search", &most), 1);
    ck_assert_uint_gt(count_method(report, "absmax", &most), 1);
    ck_assert(lmq_report_number(report, "calibration.damping") == 0.1);
    ck_assert(lmq_report_number(report, "calibration.mend") == 0.25);
    /* There is no room for another window. */
    most = lmq_report_number(report, "calibration.tokens");
    ck_assert(most > 500 - (double)options.context && most <= 500);
    ck_assert_uint_gt(lmq_report_length(lmq_report_at(report, "files")), 1);
    for (int i = 0; i < 2; i++) {
        size_t n;
        unsigned char *bytes = read_file(texts[i], &n);
        char crc[16];
        const struct lmq_report *told = lmq_report_item(
            lmq_report_at(report, "calibration.texts"), (size_t)i);
        snprintf(crc, sizeof(crc), "%08x",
                 (unsigned)lmq_crc32(0, bytes, n));
        ck_assert_str_eq(lmq_report_string(told, "crc32"), crc);
        ck_assert(lmq_report_number(told, "size") == (double)n);
        free(bytes);
    }
    lmq_report_free(report);
}
END_TEST

/* ---- What cannot be ---- */

START_TEST(misuse_is_refused)
{
    const char *text = fable("held-out-b.txt"), *empty, *missing;
    static const char *const rules[] = {"attn_q=q8,method=gptq"};
    struct lmq_convert_options options = by_text(&text);
    struct lmq_convert_options plain = {.size = sizeof(plain)};

    options.method = "absmax";
    assert_not_calibrated(&options, LMQ_ERR_ARG, "nothing can be learnt");
    options = by_text(&text);
    options.context = 1;
    assert_not_calibrated(&options, LMQ_ERR_ARG, ".context is 1, expected 2");
    static const double dampings[] = {-1, 11, (double)INFINITY, (double)NAN};
    for (size_t i = 0; i < 4; i++) {
        options = by_text(&text);
        options.damping = dampings[i];
        assert_not_calibrated(&options, LMQ_ERR_ARG, ".damping");
    }
    static const double mends[] = {-2, 1.5, (double)INFINITY, (double)NAN};
    for (size_t i = 0; i < 4; i++) {
        options = by_text(&text);
        options.mend = mends[i];
        assert_not_calibrated(&options, LMQ_ERR_ARG, ".mend");
    }
    plain.method = "gptq";
    assert_not_calibrated(&plain, LMQ_ERR_ARG, "no text");
    plain.method = NULL;
    plain.rules = rules;
    plain.n_rules = 1;
    assert_not_calibrated(&plain, LMQ_ERR_ARG, "attn_q");
    plain.n_rules = 0;
    plain.damping = 0.1;
    assert_not_calibrated(&plain, LMQ_ERR_ARG, ".calibration");
    plain.damping = 0;
    plain.mend = -1;
    assert_not_calibrated(&plain, LMQ_ERR_ARG, ".calibration");
    missing = in_folder("missing");
    empty = in_folder("empty");
    options = by_text(&missing);
    assert_not_calibrated(&options, LMQ_ERR_IO, "");
    write_file(empty, "", 0);
    options = by_text(&empty);
    assert_not_calibrated(&options, LMQ_ERR_FORMAT, "empty");
}
END_TEST

START_TEST(layers_that_come_again_are_not_calibrated)
{
    struct family_model *made = family_make(family_find("nanbeige"), 1, 0, 1);
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    struct lmq_error err = {0};
    struct lmq_report *report;

    family_write(made, in_folder("again"));
    family_free(made);
    ck_assert_int_eq(try_convert(in_folder("again"), NULL,
                                 in_folder("no.lmq"), &options, &report, &err),
                     LMQ_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.message, "2 times through its layers"));
}
END_TEST

START_TEST(text_needs_a_tokenizer)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    size_t n;
    unsigned char *bytes = read_file(fable(model), &n);
    unsigned char *config = NULL;
    struct lmq_error err = {0};
    struct lmq_report *report;
    size_t n_config;

    config = read_file(fable("config.json"), &n_config);
    write_file(in_folder("model.safetensors"), bytes, n);
    write_file(in_folder("config.json"), config, n_config);
    ck_assert_int_ne(try_convert(in_folder("model.safetensors"), NULL,
                                 in_folder("no.lmq"), &options, &report, &err),
                     LMQ_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "tokenizer"));
    free(bytes);
    free(config);
}
END_TEST

/* Shorter than a window, and than any Hessian wants: all by search. */
START_TEST(short_text_teaches_little)
{
    const char *text = in_folder("short.txt");
    struct lmq_convert_options options = by_text(&text);
    double most;

    write_file(text, "Once upon a time", 16);
    struct lmq_report *report = calibrate(in_folder("short.lmq"), &options);
    ck_assert_uint_gt(count_method(report, "search", &most), 10);
    ck_assert_uint_gt(count_notes(report, "sees only"), 0);
    ck_assert_uint_eq(count_notes(report, "and so do others"), 1);
    lmq_report_free(report);
}
END_TEST

/* The end is all there is; who counts too much comes there a layer before, and
 * says so more often than factors of the last one do. */
#define ENDS_MOST 8

struct count {
    uint64_t done, total;
    size_t n_ends;
};

static int
count_steps(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct count *count = context;

    if (strcmp(stage, "calibrating") != 0)
        return 0;
    *count = (struct count){done, total, count->n_ends + (done == total)};
    return 0;
}

START_TEST(what_is_done_comes_to_all_there_is)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    const struct lmq_open_options open = {.tokenizer = fable("tokenizer.json")};

    options.calibration_tokens = 300;
    options.replaces = 1;
    for (int i = 0; i < 2; i++) {
        struct count count = {0};
        const struct lmq_progress progress = {.report = count_steps,
                                              .context = &count};
        struct lmq_checkpoint *checkpoint;
        struct lmq_error err;
        ck_assert_int_eq(
            lmq_checkpoint_open(fable(model), &open, &checkpoint, &err),
            LMQ_OK);
        options.mend = i == 0 ? 0 : -1;
        ck_assert_int_eq(lmq_convert(checkpoint, in_folder("a.lmq"), &options,
                                     &progress, NULL, &err),
                         LMQ_OK);
        lmq_checkpoint_close(checkpoint);
        ck_assert_uint_gt(count.total, 300);
        ck_assert_uint_eq(count.done, count.total);
        ck_assert_uint_le(count.n_ends, ENDS_MOST);
    }
}
END_TEST

/* A norm so large that what comes of it is no number: the weights themselves
 * are all finite, and can be converted. */
START_TEST(what_overflows_is_no_teacher)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    struct lmq_convert_options plain = {.size = sizeof(plain)};
    size_t n, n_config;
    unsigned char *bytes = read_file(fable(model), &n);
    unsigned char *config = read_file(fable("config.json"), &n_config);
    struct lmq_checkpoint *checkpoint = open_checkpoint(fable(model));
    const struct lmq_tensor *norm =
        lmq_checkpoint_find_name(checkpoint, "blk.0.ffn_norm.weight");
    struct lmq_error err = {0};
    struct lmq_report *report;

    ck_assert_ptr_nonnull(norm);
    bool is_half = lmq_dtype_size(norm->dtype) == 2;
    for (size_t i = 0; i < norm->n_elements; i++) {
        unsigned char *at =
            bytes + norm->offset + i * lmq_dtype_size(norm->dtype);
        if (is_half)
            lmq_store_u16le(at, lmq_f32_to_bf16(3e38f));
        else
            lmq_store_f32le(at, 3e38f);
    }
    lmq_checkpoint_close(checkpoint);
    write_file(in_folder("model.safetensors"), bytes, n);
    write_file(in_folder("config.json"), config, n_config);
    lmq_report_free(convert(in_folder("model.safetensors"),
                            in_folder("yes.lmq"), &plain));
    ck_assert_int_eq(try_convert(in_folder("model.safetensors"),
                                 fable("tokenizer.json"), in_folder("no.lmq"),
                                 &options, &report, &err),
                     LMQ_ERR_NONFINITE);
    ck_assert_msg(strstr(err.message, "layer 0") != NULL, "%s", err.message);
    ck_assert_msg(strstr(err.hint, ".on_nonfinite=zero leaves") != NULL, "%s",
                  err.hint);
    free(bytes);
    free(config);
}
END_TEST

/* Wherever in the text it comes, though integers have none of it. */
START_TEST(what_is_infinite_is_no_teacher)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_convert_options options = by_text(&text);
    size_t n, n_config;
    unsigned char *bytes = read_file(fable(model), &n);
    unsigned char *config = read_file(fable("config.json"), &n_config);
    struct lmq_checkpoint *checkpoint = open_checkpoint(fable(model));
    const struct lmq_tensor *rows =
        lmq_checkpoint_find_name(checkpoint, "token_embd.weight");
    struct lmq_error err = {0};
    struct lmq_report *report;

    /* All but that of the token that texts begin with. */
    ck_assert_int_eq(rows->dtype, LMQ_DTYPE_F32);
    for (size_t i = 2; i < rows->n_rows; i++)
        lmq_store_f32le(bytes + rows->offset + 4 * i * rows->n_cols,
                        INFINITY);
    lmq_checkpoint_close(checkpoint);
    write_file(in_folder("model.safetensors"), bytes, n);
    write_file(in_folder("config.json"), config, n_config);
    options.on_nonfinite = "zero";
    ck_assert_int_eq(try_convert(in_folder("model.safetensors"),
                                 fable("tokenizer.json"), in_folder("no.lmq"),
                                 &options, &report, &err),
                     LMQ_ERR_NONFINITE);
    ck_assert_msg(strstr(err.message, "first in the embedding") != NULL, "%s",
                  err.message);
    free(bytes);
    free(config);
}
END_TEST

/* ---- Families ---- */

/* The second time stopped here and there. */
static void
convert_family(const struct family *family, size_t n_bytes,
               struct lmq_report **report)
{
    const char *text = some_text(n_bytes);
    struct lmq_convert_options options = by_text(&text);
    struct lmq_error err = {0};

    options.context = 0;
    options.forces_tokenizer = 1;
    options.group_size = 32;
    save_learner(family);
    ck_assert_msg(try_convert(in_folder("family"), in_folder("tokenizer.bin"),
                              in_folder("family.lmq"), &options, report,
                              &err) == LMQ_OK,
                  "%s: %s", family->name, err.message);
    assert_intact(in_folder("family.lmq"));
    struct lmq_report *again;
    calibrate_by_and_by(in_folder("family"), in_folder("tokenizer.bin"),
                        in_folder("again.lmq"), options, 40, &again);
    assert_same_files(in_folder("family.lmq"), in_folder("again.lmq"));
    assert_same_findings(*report, again);
    lmq_report_free(again);
}

/* Whatever layers are made of, their matrices are reached. */
START_TEST(every_family_learns)
{
    const struct family *family = family_at((size_t)_i);
    struct lmq_report *report;
    double most;

    if (family->shape.again > 0)
        return; /* refused: layers_that_come_again_are_not_calibrated */
    convert_family(family, 300, &report);
    const struct lmq_report *tensors = lmq_report_at(report, "tensors");
    for (size_t i = 0; i < lmq_report_length(tensors); i++) {
        const struct lmq_report *tensor = lmq_report_item(tensors, i);
        const char *name = lmq_report_string(tensor, "name");
        bool is_quantized =
            lmq_report_kind(tensor, "group_size") == LMQ_KIND_NUMBER;
        bool is_of_layer = strncmp(name, "blk.", 4) == 0 &&
                           strstr(name, "ple_embd") == NULL; /* a table */
        ck_assert_msg(!is_quantized || !is_of_layer ||
                          lmq_report_kind(tensor, "method") ==
                              LMQ_KIND_STRING,
                      "%s: %s was not calibrated", family->name, name);
        ck_assert_msg(!is_quantized || !is_of_layer ||
                          strstr(name, "exps") != NULL ||
                          strstr(name, ".ffn_") != NULL ||
                          lmq_report_number(tensor, "calibration_tokens") >
                              100,
                      "%s: %s saw nothing", family->name, name);
    }
    ck_assert_msg(count_method(report, "gptq", &most) > 2 && most <= 1,
                  "%s: ratio %g", family->name, most);
    lmq_report_free(report);
    const char *text = some_text(180);
    struct lmq_convert_options options = by_text(&text);
    options.context = 40;
    options.rotates = 1; /* all that changes what is learnt */
    options.mend = 1;
    options.damping = 1e-4;
    assert_learns_alike(family, options);
}
END_TEST

/* Tokens that the model does not have are not looked up. */
START_TEST(forced_tokenizers_are_watched)
{
    struct family_model *made = family_make(family_at(0), 1, 100, 1);
    struct lmq_buffer vocabulary = llama2c_file();
    const char *text = some_text(200);
    struct lmq_convert_options options = by_text(&text);
    struct lmq_error err = {0};
    struct lmq_report *report;

    options.context = 0;
    options.forces_tokenizer = 1;
    family_write(made, in_folder("family"));
    family_free(made);
    write_file(in_folder("tokenizer.bin"), vocabulary.bytes, vocabulary.n);
    free(vocabulary.bytes);
    ck_assert_int_eq(try_convert(in_folder("family"),
                                 in_folder("tokenizer.bin"),
                                 in_folder("no.lmq"), &options, &report, &err),
                     LMQ_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, "model only 100") != NULL, "%s",
                  err.message);
}
END_TEST

/* Of many experts some see next to nothing. */
START_TEST(experts_that_see_little_are_searched_for)
{
    const struct family *family = family_find("mixtral");
    struct lmq_report *report;
    double most;

    ck_assert_ptr_nonnull(family);
    convert_family(family, 40, &report);
    ck_assert_uint_gt(count_method(report, "search", &most), 0);
    ck_assert_uint_gt(count_notes(report, "sees only"), 0);
    lmq_report_free(report);
}
END_TEST

int
main(int argc, char **argv)
{
    const TTest *const of_one[] = {
        any_number_of_threads_gives_the_same_bytes,
        what_is_stopped_is_gone_on_with,
        only_the_same_is_gone_on_with,
        what_was_calibrated_is_nearer,
        options_and_facts_go_with_it,
        misuse_is_refused,
        layers_that_come_again_are_not_calibrated,
        text_needs_a_tokenizer,
        short_text_teaches_little,
        what_is_done_comes_to_all_there_is,
        what_overflows_is_no_teacher,
        what_is_infinite_is_no_teacher,
        experts_that_see_little_are_searched_for,
        forced_tokenizers_are_watched,
    };
    const TTest *const of_all[] = {every_family_learns};
    size_t first, end;

    family_range(argc, argv, &first, &end);
    int failed = argc > 1 ? 0 : RUN_SUITE("calibrate", of_one);
    return RUN_SUITE_OVER("families", of_all, first, end) | failed;
}
