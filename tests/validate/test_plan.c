/*
 * test_plan.c - plans keep their word: files are as large as they say, lose
 * what they say, and less than all matrices alike.
 */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/families/family.h"
#include "tests/validate/validate_fable.h"

static const struct lmq_session_options session = {.size = sizeof(session),
                                                   .context = CONTEXT};

static struct lmq_planning_options
planning(const char *const *texts)
{
    return (struct lmq_planning_options){.size = sizeof(struct
                                                        lmq_planning_options),
                                         .texts = texts,
                                         .n_texts = 1,
                                         .session = &session,
                                         .replaces = 1};
}

static enum lmq_status
try_plan_of(const char *path, const char *recipe,
            const struct lmq_planning_options *options,
            struct lmq_report **report, struct lmq_error *err)
{
    struct lmq_checkpoint *checkpoint = open_checkpoint(path);
    enum lmq_status status =
        lmq_plan_recipe(checkpoint, recipe, options, NULL, report, err);

    lmq_checkpoint_close(checkpoint);
    return status;
}

static enum lmq_status
try_plan(const char *recipe, const struct lmq_planning_options *options,
         struct lmq_report **report, struct lmq_error *err)
{
    return try_plan_of(fable(""), recipe, options, report, err);
}

static struct lmq_report *
plan(const char *recipe, const struct lmq_planning_options *options)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(try_plan(recipe, options, &report, &err) == LMQ_OK, "%s",
                  err.message);
    return report;
}

static struct lmq_report *
convert_by(const char *recipe, const char *to)
{
    const struct lmq_convert_options options = {.size = sizeof(options),
                                                .recipe = recipe,
                                                .replaces = 1};

    return convert(fable(""), to, &options);
}

static double
divergence_of(const char *path, const char *const *texts)
{
    struct lmq_validate_options options = usual_options(texts);

    options.size = sizeof(options);
    options.max_tokens = 0;
    struct lmq_report *report = validate(fable(""), path, &options);
    double kld = lmq_report_number(report, "kld.mean");
    lmq_report_free(report);
    return kld;
}

/* Sizes of the bundled model: 4 bits with the smallest groups, up to 8. */
START_TEST(a_container_is_never_larger_than_its_target)
{
    static const uint64_t targets[] = {300000, 337001, 390000, 520123};

    for (size_t i = 0; i < 4; i++) {
        const char *text = short_text("text", 1500);
        struct lmq_planning_options options = planning(&text);
        options.target_size = targets[i];
        struct lmq_report *said = plan(in_folder("recipe.yaml"), &options);
        struct lmq_report *done =
            convert_by(in_folder("recipe.yaml"), in_folder("model.lmq"));
        double bytes = lmq_report_number(said, "prediction.bytes");
        ck_assert(bytes <= (double)targets[i]);
        ck_assert_msg(bytes >= 0.97 * (double)targets[i], "%.0f bytes of %.0f",
                      bytes, (double)targets[i]);
        double written = lmq_report_number(done, "totals.output_bytes");
        ck_assert_msg(written == bytes, "%.0f bytes, not %.0f", written, bytes);
        ck_assert(fabs(lmq_report_number(done, "totals.bits_per_weight") -
                       lmq_report_number(said, "prediction.bits_per_weight")) <
                  1e-6);
        ck_assert(divergence_of(in_folder("model.lmq"), &text) ==
                  lmq_report_number(said, "prediction.kld"));
        lmq_report_free(done);
        lmq_report_free(said);
    }
}
END_TEST

/* Of offers that take the least some cost less, with a longer recipe. */
START_TEST(the_least_size_can_be_had)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_planning_options options = planning(&text);
    struct lmq_error err;
    double least;

    options.max_tokens = 600;
    options.rotates = 1;
    options.target_size = 1000;
    ck_assert_int_eq(try_plan(NULL, &options, NULL, &err), LMQ_ERR_ARG);
    ck_assert_int_eq(sscanf(strstr(err.message, "had is "), "had is %lf",
                            &least), 1);
    for (int i = 0; i < 3; i++) {
        options.target_size = (uint64_t)least + 64 * (unsigned)i;
        struct lmq_report *report = plan(NULL, &options);
        ck_assert(lmq_report_number(report, "prediction.bytes") <=
                  (double)options.target_size);
        lmq_report_free(report);
    }
}
END_TEST

static double
predicted(const struct lmq_planning_options *options, double *gap,
          uint64_t *bytes)
{
    struct lmq_report *report = plan(NULL, options);
    double estimated = lmq_report_number(report, "prediction.estimated");

    *gap = lmq_report_number(report, "prediction.gap");
    *bytes = (uint64_t)lmq_report_number(report, "prediction.bytes");
    lmq_report_free(report);
    return estimated;
}

/* What fits a size fits its own: no plan for that may be worse by more than it
 * says. */
START_TEST(no_choice_is_better_than_a_plan_says)
{
    const char *text = fable("held-out-b.txt");
    struct lmq_planning_options options = planning(&text);
    uint64_t bytes;
    double gaps[2];

    options.max_tokens = 600;
    for (unsigned i = 0; i < 6; i++) {
        options.target_size = 270000 + 7919 * i;
        double first = predicted(&options, &gaps[0], &bytes);
        ck_assert(bytes <= options.target_size);
        options.target_size = bytes;
        double second = predicted(&options, &gaps[1], &bytes);
        ck_assert(bytes <= options.target_size);
        ck_assert_msg(second * (1 - gaps[1]) <= first * (1 + 1e-9) &&
                          gaps[1] < 0.05,
                      "%u bytes: %g, then %g with a gap of %g", (unsigned)bytes,
                      first, second, gaps[1]);
    }
}
END_TEST

/* Over a text that it has not seen; and against every encoding that is no
 * larger. */
START_TEST(a_plan_holds_elsewhere_and_beats_one_encoding_for_all)
{
    const char *const read[] = {fable("held-out-b.txt")};
    const char *text = short_text("text", 60000);
    struct lmq_planning_options options = planning(read);

    options.max_tokens = 4000;
    options.target_size = 340000;
    struct lmq_report *report = plan(in_folder("recipe.yaml"), &options);
    lmq_report_free(convert_by(in_folder("recipe.yaml"), in_folder("m.lmq")));
    double kld = lmq_report_number(report, "prediction.kld");
    double found = divergence_of(in_folder("m.lmq"), &text);
    ck_assert_msg(fabs(found / kld - 1) <= 0.25, "%g, not %g", found, kld);
    ck_assert(lmq_report_number(report, "prediction.low") < kld);
    ck_assert(lmq_report_number(report, "prediction.high") > kld);
    const struct lmq_report *uniform = lmq_report_at(report, "uniform");
    for (size_t i = 0; i < lmq_report_length(uniform); i++) {
        const struct lmq_report *all = lmq_report_item(uniform, i);
        if (lmq_report_number(all, "bytes") <=
            lmq_report_number(report, "prediction.bytes"))
            ck_assert(kld <= lmq_report_number(all, "kld"));
        if (strcmp(lmq_report_string(all, "name"), "keep") == 0)
            ck_assert(lmq_report_number(all, "bits_per_weight") == 32);
    }
    const struct lmq_report *front = lmq_report_at(report, "front");
    for (size_t i = 1; i < lmq_report_length(front); i++)
        ck_assert(
            lmq_report_number(lmq_report_item(front, i), "bytes") >
            lmq_report_number(lmq_report_item(front, i - 1), "bytes"));
    double gap = lmq_report_number(report, "prediction.gap");
    ck_assert_msg(gap >= 0 && gap < 0.05, "a gap of %g", gap);
    const struct lmq_report *parts = lmq_report_at(report, "tensors");
    double sum = 0;
    for (size_t i = 0; i < lmq_report_length(parts); i++)
        sum += lmq_report_number(lmq_report_item(parts, i), "kld");
    ck_assert_double_eq_tol(
        sum, lmq_report_number(report, "prediction.estimated"), 1e-9);
    lmq_report_free(report);
}
END_TEST

/* The text has 30 000 tokens. What was asked for is kept to. */
START_TEST(what_is_uncertain_is_measured_over_more)
{
    const char *text = fable("held-out-a.txt");
    struct lmq_planning_options options = planning(&text);
    double scored[2], part[2];

    options.target_bits = 6.5;
    for (int i = 0; i < 2; i++) {
        options.max_tokens = i == 0 ? 4000 : 0;
        struct lmq_report *said = plan(in_folder("recipe.yaml"), &options);
        scored[i] = lmq_report_number(said, "scored");
        part[i] = lmq_report_number(said, "prediction.high") /
                      lmq_report_number(said, "prediction.kld") -
                  1;
        lmq_report_free(said);
    }
    ck_assert_msg(scored[0] < 4000 + CONTEXT && part[0] > 0.15,
                  "%.0f tokens, to %g", scored[0], part[0]);
    ck_assert_msg(scored[1] > 20000 && part[1] < 0.7 * part[0],
                  "%.0f tokens, to %g; %g before", scored[1], part[1],
                  part[0]);
}
END_TEST

/* Plain pieces and such in capitals, in turn or first the ones and then the
 * others. */
static const char *
pieces(const char *name, bool drifts)
{
    enum { N = 48, SIZE = 400 };
    char *text = first_lines("held-out-a.txt", (size_t)N * SIZE);
    const char *path = in_folder(name);

    for (size_t i = 0; text[i] != '\0'; i++)
        if (drifts ? i >= N / 2 * SIZE : i / SIZE % 2 != 0)
            text[i] = (char)toupper((unsigned char)text[i]);
    write_file(path, text, strlen(text));
    free(text);
    return path;
}

START_TEST(a_text_that_drifts_says_less)
{
    const struct lmq_session_options own = {.size = sizeof(own),
                                            .context = 32};
    double part[2];

    for (int i = 0; i < 2; i++) {
        const char *text = pieces("pieces", i > 0);
        struct lmq_planning_options options = planning(&text);
        options.session = &own;
        options.max_tokens = 12000;
        options.target_bits = 5.5;
        struct lmq_report *said = plan(NULL, &options);
        part[i] = lmq_report_number(said, "prediction.high") /
                      lmq_report_number(said, "prediction.kld") -
                  1;
        lmq_report_free(said);
    }
    ck_assert_msg(part[1] > 1.4 * part[0], "%g, and %g in turn", part[1],
                  part[0]);
}
END_TEST

/* Whatever round it is of: where all of the text was taken, that is what the
 * container loses over all of it. */
START_TEST(what_is_said_is_of_as_much_as_is_said)
{
    static const double targets[] = {0.0004, 0.001, 0.004, 0.02};
    const char *text = fable("held-out-a.txt");
    size_t n_whole = 0;

    for (size_t i = 0; i < 4; i++) {
        struct lmq_planning_options options = planning(&text);
        options.target_kld = targets[i];
        struct lmq_report *said = plan(in_folder("recipe.yaml"), &options);
        double kld = lmq_report_number(said, "prediction.kld");
        ck_assert(kld <= targets[i]);
        lmq_report_free(convert_by(in_folder("recipe.yaml"),
                                   in_folder("model.lmq")));
        if (lmq_report_number(said, "scored") > 20000) {
            ck_assert(divergence_of(in_folder("model.lmq"), &text) == kld);
            n_whole++;
        }
        lmq_report_free(said);
    }
    ck_assert_uint_gt(n_whole, 0);
}
END_TEST

START_TEST(bits_and_divergence_are_targets_too)
{
    const char *text = short_text("text", 1500);
    struct lmq_planning_options options = planning(&text);

    options.target_bits = 7;
    struct lmq_report *bits = plan(NULL, &options);
    ck_assert(lmq_report_number(bits, "prediction.bits_per_weight") <= 7);
    ck_assert(lmq_report_number(bits, "prediction.bits_per_weight") > 6.8);
    options.target_bits = 0;
    options.target_kld = 2e-3;
    struct lmq_report *kld = plan(NULL, &options);
    ck_assert(lmq_report_number(kld, "prediction.kld") <= 2e-3);
    ck_assert(lmq_report_number(kld, "prediction.kld") >= 1.4e-3);
    lmq_report_free(bits);
    lmq_report_free(kld);
}
END_TEST

/* What loses nothing is near enough, however little may be lost. */
START_TEST(any_divergence_is_met_if_that_can_be)
{
    static const double targets[] = {5e-9, 1e-9, 1e-10};
    const struct lmq_session_options own = {.size = sizeof(own),
                                            .context = 64};
    const char *text = fable("held-out-b.txt");
    struct lmq_planning_options options = planning(&text);

    options.session = &own;
    options.max_tokens = 512;
    for (size_t i = 0; i < 3; i++) {
        options.target_kld = targets[i];
        struct lmq_report *report = plan(NULL, &options);
        ck_assert(lmq_report_number(report, "prediction.kld") <= targets[i]);
        lmq_report_free(report);
    }
}
END_TEST

/* Where activations are rounded, as beside integers, nothing loses nothing. */
START_TEST(a_divergence_that_is_said_to_be_met_is)
{
    const char *path = quantize(fable(""), "source.lmq");

    for (size_t n = 1900; n < 2300; n += 200) {
        const char *text = short_text("text", n);
        struct lmq_planning_options options = planning(&text);
        struct lmq_report *report;
        struct lmq_error err;
        options.target_kld = 1e-12;
        ck_assert_int_eq(try_plan_of(path, NULL, &options, NULL, &err),
                         LMQ_ERR_ARG);
        ck_assert_int_eq(sscanf(strrchr(err.message, ' '), " %lf",
                                &options.target_kld), 1);
        ck_assert_double_lt(options.target_kld, 1e-6);
        ck_assert_msg(try_plan_of(path, NULL, &options, &report, &err) ==
                          LMQ_OK,
                      "%s", err.message);
        ck_assert_double_le(lmq_report_number(report, "prediction.kld"),
                            options.target_kld);
        lmq_report_free(report);
    }
}
END_TEST

/* The bundled model, but that some columns of a matrix stand out. */
static const char *
stand_out(const char *matrix, size_t n_cols)
{
    size_t n, header = 0;
    unsigned char *bytes = read_file(fable("model.safetensors"), &n);
    unsigned long from, to;

    for (int i = 7; i >= 0; i--)
        header = header << 8 | bytes[i];
    char *text = strndup((char *)bytes + 8, header);
    const char *at = strstr(strstr(text, matrix), "\"data_offsets\":[");
    ck_assert_int_eq(sscanf(at, "\"data_offsets\":[%lu,%lu", &from, &to), 2);
    free(text);
    for (size_t i = 0; i < (to - from) / 4; i++) {
        unsigned char *p = bytes + 8 + header + from + 4 * i;
        float x;
        memcpy(&x, p, 4);
        x *= i % n_cols % 50 == 7 ? 20 : 1;
        memcpy(p, &x, 4);
    }
    write_file(in_folder("model.safetensors"), bytes, n);
    free(bytes);
    bytes = read_file(fable("config.json"), &n);
    write_file(in_folder("config.json"), bytes, n);
    free(bytes);
    bytes = read_file(fable("tokenizer.json"), &n);
    write_file(in_folder("tokenizer.json"), bytes, n);
    free(bytes);
    return in_folder("model.safetensors");
}

/* What stands out is rotated if that is allowed, and keeps its word too. */
START_TEST(what_stands_out_is_rotated)
{
    const char *text = short_text("text", 6000);
    const char *model = stand_out("layers.1.mlp.down_proj.weight", 200);
    struct lmq_planning_options options = planning(&text);
    struct lmq_validate_options judging = usual_options(&text);
    struct lmq_report *reports[2];
    struct lmq_error err;

    judging.max_tokens = 0;
    for (int rotates = 0; rotates < 2; rotates++) {
        struct lmq_checkpoint *checkpoint = open_checkpoint(model);
        options.target_bits = 8;
        options.rotates = rotates;
        ck_assert_msg(lmq_plan_recipe(checkpoint, in_folder("recipe.yaml"),
                                      &options, NULL, &reports[rotates],
                                      &err) == LMQ_OK,
                      "%s", err.message);
        lmq_checkpoint_close(checkpoint);
    }
    double plain = lmq_report_number(reports[0], "prediction.kld");
    double rotated = lmq_report_number(reports[1], "prediction.kld");
    ck_assert_msg(rotated < plain, "%g rotated, %g not", rotated, plain);
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(reports[1], "uniform")),
                      lmq_report_length(lmq_report_at(reports[0], "uniform")) +
                          8);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(reports[1], "recipe"),
                                 "ffn_down\n  layers: 1\n  encoding: q"));
    ck_assert_ptr_nonnull(strstr(lmq_report_string(reports[1], "recipe"),
                                 "  rotate: yes\n"));
    ck_assert_ptr_null(
        strstr(lmq_report_string(reports[0], "recipe"), "rotate"));
    const struct lmq_convert_options by = {
        .size = sizeof(by), .recipe = in_folder("recipe.yaml")};
    lmq_report_free(convert(model, in_folder("m.lmq"), &by));
    struct lmq_report *found = validate(model, in_folder("m.lmq"), &judging);
    double kld = lmq_report_number(found, "kld.mean");
    ck_assert_msg(fabs(kld / rotated - 1) <= 1e-6, "%g, not %g", kld, rotated);
    lmq_report_free(found);
    lmq_report_free(reports[0]);
    lmq_report_free(reports[1]);
}
END_TEST

/* The bundled model with these matrices in q4/64, as what others are told
 * from, and all else as it is: bits per weight of that. */
static double
store_some(const char *pattern, const char *path)
{
    char rule[64];
    const char *const rules[] = {"*=keep", rule};
    const struct lmq_convert_options options = {.size = sizeof(options),
                                                .rules = rules,
                                                .n_rules = 2,
                                                .group_size = 64,
                                                .replaces = 1};

    snprintf(rule, sizeof(rule), "%s=q4", pattern);
    struct lmq_report *report = convert(fable(""), path, &options);
    double bits = lmq_report_number(report, "totals.bits_per_weight");
    lmq_report_free(report);
    return bits;
}

/* What is stored as that loses nothing so, and tells nothing of what it loses
 * in other encodings. */
START_TEST(what_is_stored_in_few_bits_is_told_from_what_it_loses)
{
    static const char *const patterns[] = {"attn_*", "ffn_*", "attn_q"};
    const char *text = short_text("text", 1500);
    const char *path = in_folder("source.lmq");

    for (size_t i = 0; i < 3; i++) {
        struct lmq_planning_options options = planning(&text);
        struct lmq_report *report;
        struct lmq_error err;
        options.target_bits = store_some(patterns[i], path) + 0.001;
        ck_assert_msg(try_plan_of(path, NULL, &options, &report, &err) ==
                          LMQ_OK,
                      "%s", err.message);
        /* All of it can be kept; activations are rounded. */
        ck_assert_double_lt(lmq_report_number(report, "prediction.kld"), 1e-6);
        const struct lmq_report *tensors = lmq_report_at(report, "tensors");
        size_t n_others = 0, n = lmq_report_length(tensors);
        for (size_t j = 0; j < n; j++) {
            const struct lmq_report *one = lmq_report_item(tensors, j);
            ck_assert_double_gt(lmq_report_number(one, "kld_alone"), 1e-6);
            n_others += strcmp(lmq_report_string(one, "probe"),
                               lmq_report_string(report, "probe")) != 0;
        }
        ck_assert(n_others >= 4 && n_others < n);
        lmq_report_free(report);
    }
}
END_TEST

START_TEST(the_plan_is_the_same_for_any_threads)
{
    const char *text = short_text("text", 1500);
    struct lmq_planning_options options = planning(&text);
    char *recipes[2];
    size_t n;

    options.target_size = 350000;
    for (int i = 0; i < 2; i++) {
        const struct lmq_session_options own = {
            .size = sizeof(own), .context = CONTEXT, .threads = 1 + 2 * i};
        options.session = &own;
        options.memory = i == 0 ? 4000000 : 0;
        lmq_report_free(plan(in_folder("recipe.yaml"), &options));
        recipes[i] = (char *)read_file(in_folder("recipe.yaml"), &n);
    }
    ck_assert_str_eq(recipes[0], recipes[1]);
    free(recipes[0]);
    free(recipes[1]);
}
END_TEST

START_TEST(what_cannot_be_planned_is_refused)
{
    const char *text = short_text("text", 1500), *few = short_text("few", 90);
    const struct lmq_planning_options usual = planning(&text);
    struct lmq_planning_options cases[6];
    static const char *const says[] = {
        "there is no target",      "more than one target",
        "the least that can be",   "the text is too short",
        ".target_kld is",          "there is no text"};
    struct lmq_error err;

    for (size_t i = 0; i < 6; i++)
        cases[i] = usual;
    cases[1].target_bits = cases[1].target_kld = 5;
    cases[2].target_size = 1000;
    cases[3].target_bits = 6;
    cases[3].texts = &few;
    cases[4].target_kld = -1;
    cases[5].target_bits = 6;
    cases[5].n_texts = 0;
    for (size_t i = 0; i < 6; i++) {
        ck_assert_msg(try_plan(in_folder("none.yaml"), &cases[i], NULL,
                               &err) == (i == 3 ? LMQ_ERR_FORMAT
                                                : LMQ_ERR_ARG),
                      "%s", says[i]);
        ck_assert_msg(strstr(err.message, says[i]) != NULL, "%s: %s", says[i],
                      err.message);
    }
    /* The text, in place of the recipe. */
    cases[3].texts = &text;
    ck_assert(try_plan(text, &cases[3], NULL, &err) != LMQ_OK);
}
END_TEST

START_TEST(the_page_has_the_curve_and_the_recipe)
{
    const char *text = short_text("text", 1500);
    struct lmq_planning_options options = planning(&text);
    struct lmq_error err;
    char *page;

    options.target_bits = 7;
    struct lmq_report *report = plan(NULL, &options);
    ck_assert_int_eq(lmq_plan_html(report, &page, &err), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(page, "Divergence against size"));
    ck_assert_ptr_nonnull(strstr(page, "- match: ffn_down"));
    ck_assert_ptr_nonnull(strstr(page, "td.whole{white-space:nowrap}"));
    ck_assert_ptr_nonnull(strstr(page, "<td class='text whole'><code>blk.0."));
    lmq_text_free(page);
    lmq_report_free(report);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        a_container_is_never_larger_than_its_target,
        the_least_size_can_be_had,
        no_choice_is_better_than_a_plan_says,
        a_plan_holds_elsewhere_and_beats_one_encoding_for_all,
        what_is_uncertain_is_measured_over_more,
        a_text_that_drifts_says_less,
        what_is_said_is_of_as_much_as_is_said,
        bits_and_divergence_are_targets_too,
        any_divergence_is_met_if_that_can_be,
        a_divergence_that_is_said_to_be_met_is,
        what_stands_out_is_rotated,
        what_is_stored_in_few_bits_is_told_from_what_it_loses,
        the_plan_is_the_same_for_any_threads,
        what_cannot_be_planned_is_refused,
        the_page_has_the_curve_and_the_recipe,
    };

    return RUN_SUITE("plan", tests);
}
