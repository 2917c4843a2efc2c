/*
 * test_several.c - several candidates in one run have the figures that each
 * has alone, and are compared with each other.
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/build/suite.h"
#include "tests/validate/validate_fable.h"
#include "validate/job.h"
#include "validate/lockstep/lockstep.h"

#define MODELS 3

/* ---- Running it ---- */

static const char *
quantize_in_groups(const char *name, unsigned group)
{
    struct lmq_checkpoint *checkpoint = open_with_tokenizer(fable(""));
    const struct lmq_convert_options options = {.group_size = group,
                                                .replaces = 1};
    const char *path = in_folder(name);
    struct lmq_error err;

    ck_assert_msg(lmq_convert(checkpoint, path, &options, NULL, NULL, &err) ==
                      LMQ_OK,
                  "%s", err.message);
    lmq_checkpoint_close(checkpoint);
    return path;
}

/* Good, itself, bad: of rising divergence they are 1, 0, 2. The paths stay,
 * however many are made after them. */
static void
make_models(const char *paths[MODELS])
{
    static char kept[MODELS][PATH_MAX];
    const char *const made[MODELS] = {quantize_in_groups("fine.lmq", 32),
                                      fable(""),
                                      quantize_in_groups("coarse.lmq", 256)};

    for (size_t i = 0; i < MODELS; i++) {
        snprintf(kept[i], sizeof(kept[i]), "%s", made[i]);
        paths[i] = kept[i];
    }
}

static enum lmq_status
try_several(const char *const *paths, size_t n,
            const struct lmq_validate_options *options,
            const struct lmq_progress *progress, struct lmq_report **report,
            int *is_partial, struct lmq_error *err)
{
    struct lmq_checkpoint *reference = open_with_tokenizer(fable(""));
    struct lmq_checkpoint *judged[MODELS];

    for (size_t i = 0; i < n; i++)
        judged[i] = open_with_tokenizer(paths[i]);
    enum lmq_status status = lmq_validate_several(
        reference, judged, n, options, progress, report, is_partial, err);
    for (size_t i = 0; i < n; i++)
        lmq_checkpoint_close(judged[i]);
    lmq_checkpoint_close(reference);
    return status;
}

static struct lmq_report *
several(const char *const *paths, const struct lmq_validate_options *options)
{
    struct lmq_report *report;
    struct lmq_error err;

    ck_assert_msg(try_several(paths, MODELS, options, NULL, &report, NULL,
                              &err) == LMQ_OK,
                  "%s: %s", err.path, err.message);
    return report;
}

/* The JSON of a report but for the times in it. */
static char *
figures(const struct lmq_report *report)
{
    char *text, *out;

    ck_assert_int_eq(lmq_report_text(report, LMQ_REPORT_JSON, &text, NULL),
                     LMQ_OK);
    char *kept = out = calloc(strlen(text) + 1, 1);
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        if (strstr(line, "\"seconds\"") == NULL &&
            strstr(line, "\"tokens_per_second\"") == NULL)
            out += sprintf(out, "%s\n", line + strspn(line, " "));
    lmq_text_free(text);
    return kept;
}

static double
at(const struct lmq_report *report, const char *format, int i)
{
    char path[64];

    snprintf(path, sizeof(path), format, i);
    return lmq_report_number(report, path);
}

/* ---- The same figures ---- */

static void
assert_same_as_alone(const struct lmq_validate_options *options)
{
    const char *paths[MODELS];

    make_models(paths);
    struct lmq_report *all = several(paths, options);
    const struct lmq_report *models = lmq_report_at(all, "models");
    ck_assert_uint_eq(lmq_report_length(models), MODELS);
    for (size_t i = 0; i < MODELS; i++) {
        struct lmq_report *one = validate(fable(""), paths[i], options);
        char *alone = figures(one), *beside;
        beside = figures(lmq_report_item(models, i));
        ck_assert_uint_eq(strlen(alone), strlen(beside));
        ck_assert_mem_eq(alone, beside, strlen(alone));
        ck_assert_ptr_nonnull(strstr(alone, "\"kld\""));
        free(alone);
        free(beside);
        lmq_report_free(one);
    }
    lmq_report_free(all);
}

START_TEST(each_has_the_figures_that_it_has_alone)
{
    const char *texts[] = {short_text("a.txt", 2000),
                           short_text("b.txt", 900)};
    struct lmq_validate_options options = usual_options(texts);

    assert_same_as_alone(&options);
    options.n_texts = 2;
    options.splits_documents = 1;
    options.has_floor = 1;
    options.has_attribution = 1;
    assert_same_as_alone(&options);
    options.has_attribution = 0;
    options.score = "second-half";
    options.memory = 8u << 20;
    assert_same_as_alone(&options);
}
END_TEST

START_TEST(one_of_several_is_one)
{
    const char *text = short_text("a.txt", 900);
    const char *path = quantize_in_groups("fine.lmq", 32);
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *all;

    ck_assert_int_eq(
        try_several(&path, 1, &options, NULL, &all, NULL, NULL), LMQ_OK);
    struct lmq_report *one = validate(fable(""), path, &options);
    char *a = figures(all), *b = figures(one);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    lmq_report_free(all);
    lmq_report_free(one);
    ck_assert_int_eq(
        try_several(&path, 0, &options, NULL, &all, NULL, NULL), LMQ_ERR_ARG);
}
END_TEST

/* ---- Between them ---- */

START_TEST(differences_are_paired)
{
    const char *texts = short_text("a.txt", 3000);
    const char *paths[MODELS];
    struct lmq_validate_options options = usual_options(&texts);

    make_models(paths);
    options.splits_documents = 1;
    struct lmq_report *r = several(paths, &options);
    const struct lmq_report *d = lmq_report_at(r, "differences");
    ck_assert_uint_eq(lmq_report_length(d), 3);
    for (int i = 0; i < 3; i++) {
        int first = (int)at(d, "%d.first", i);
        int second = (int)at(d, "%d.second", i);
        ck_assert_int_eq(first, i == 2);
        ck_assert_int_eq(second, i == 0 ? 1 : 2);
        ck_assert_double_eq_tol(at(d, "%d.kld.difference", i),
                                at(r, "models.%d.kld.mean", second) -
                                    at(r, "models.%d.kld.mean", first),
                                1e-15);
        ck_assert_double_eq_tol(at(d, "%d.delta_nll.difference", i),
                                at(r, "models.%d.delta_nll", second) -
                                    at(r, "models.%d.delta_nll", first),
                                1e-12);
        ck_assert_double_eq_tol(at(d, "%d.top1_agreement.difference", i),
                                at(r, "models.%d.top1_agreement", second) -
                                    at(r, "models.%d.top1_agreement", first),
                                1e-12);
    }
    /* The second is the reference itself, exactly: what is left is the
     * third's, with its errors. */
    ck_assert_double_eq(at(d, "%d.kld.difference", 2),
                        at(r, "models.%d.kld.mean", 2));
    ck_assert_double_eq(at(d, "%d.kld.stderr", 2),
                        at(r, "models.%d.kld.stderr", 2));
    ck_assert_double_eq(at(d, "%d.kld.stderr_by_document", 2),
                        at(r, "models.%d.kld.stderr_by_document", 2));
    lmq_report_free(r);
}
END_TEST

START_TEST(twins_do_not_differ)
{
    const char *text = short_text("a.txt", 1500);
    const char *path = quantize_in_groups("fine.lmq", 32);
    const char *paths[MODELS] = {path, path, fable("")};
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *r = several(paths, &options);

    ck_assert_double_eq(at(r, "differences.%d.kld.difference", 0), 0);
    ck_assert_double_eq(at(r, "differences.%d.kld.stderr", 0), 0);
    /* Both are worth their bytes, and so is what has no divergence. */
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(r, "front")), 3);
    ck_assert_double_eq(at(r, "ranking.%d", 0), 2);
    ck_assert_double_eq(at(r, "ranking.%d", 1), 0);
    ck_assert_double_eq(at(r, "ranking.%d", 2), 1);
    ck_assert_ptr_nonnull(strstr(lmq_report_string(r, "notes.0"),
                                 "judged more than once"));
    ck_assert_ptr_nonnull(strstr(lmq_report_string(r, "notes.1"),
                                 "judged against itself"));
    lmq_report_free(r);
}
END_TEST

START_TEST(the_front_is_by_bytes)
{
    const char *text = short_text("a.txt", 1500);
    const char *paths[MODELS];
    struct lmq_validate_options options = usual_options(&text);

    make_models(paths);
    struct lmq_report *r = several(paths, &options);
    const struct lmq_report *front = lmq_report_at(r, "front");
    size_t n = lmq_report_length(front);
    ck_assert_uint_ge(n, 2);
    /* The reference is the largest, and has no divergence. */
    ck_assert_double_eq(at(front, "%d", (int)n - 1), 1);
    for (int i = 1; i < (int)n; i++) {
        int a = (int)at(front, "%d", i - 1), b = (int)at(front, "%d", i);
        ck_assert_double_lt(at(r, "models.%d.protocol.model.bytes", a),
                            at(r, "models.%d.protocol.model.bytes", b));
        ck_assert_double_gt(at(r, "models.%d.kld.mean", a),
                            at(r, "models.%d.kld.mean", b));
    }
    lmq_report_free(r);
}
END_TEST

/* ---- Verdicts ---- */

START_TEST(gates_are_asked_of_each)
{
    const char *text = short_text("a.txt", 1500);
    const char *const gates[] = {"tokens>=1", "kld.mean<=0"};
    const char *paths[MODELS];
    struct lmq_validate_options options = usual_options(&text);

    make_models(paths);
    options.gates = gates;
    options.n_gates = 2;
    struct lmq_report *r = several(paths, &options);
    ck_assert_str_eq(lmq_report_string(r, "verdict.result"), "FAIL");
    ck_assert_double_eq(lmq_report_number(r, "verdict.failed"), 2);
    ck_assert_double_eq(lmq_report_number(r, "verdict.gates"), 6);
    ck_assert_str_eq(lmq_report_string(r, "models.1.verdict.result"), "PASS");
    ck_assert_str_eq(lmq_report_string(r, "models.2.verdict.result"), "FAIL");
    ck_assert_str_eq(lmq_report_string(r, "models.2.verdict.gate"),
                     "kld.mean<=0");
    ck_assert_double_gt(lmq_report_number(r, "models.2.verdict.value"), 0);
    lmq_report_free(r);
}
END_TEST

START_TEST(the_verdict_comes_first)
{
    const char *text = short_text("a.txt", 900);
    const char *paths[MODELS];
    struct lmq_validate_options options = usual_options(&text);
    const char *start = "{\"verdict\": {\"result\": \"PASS\",";

    make_models(paths);
    for (int i = 0; i < 2; i++) {
        struct lmq_report *r = i == 0
                                   ? several(paths, &options)
                                   : validate(fable(""), paths[0], &options);
        char *json = figures(r), *flat = json;
        for (char *p = json; *p != '\0'; p++)
            if (*p != '\n')
                *flat++ = *p;
        *flat = '\0';
        ck_assert_int_eq(strncmp(json, start, 20), 0);
        free(json);
        lmq_report_free(r);
    }
}
END_TEST

START_TEST(the_page_has_all_of_them)
{
    const char *text = short_text("a.txt", 900), *paths[MODELS];
    struct lmq_validate_options options = usual_options(&text);
    char *page;

    make_models(paths);
    struct lmq_report *r = several(paths, &options);
    ck_assert_int_eq(lmq_validate_html(r, &page, NULL), LMQ_OK);
    ck_assert_ptr_nonnull(strstr(page, "<b>PASS</b></span>: no gate was set"));
    ck_assert_ptr_nonnull(strstr(page, "Mean KL divergence against bytes"));
    ck_assert_ptr_nonnull(strstr(page, "all 3 pairs"));
    ck_assert_ptr_null(strstr(page, "nan"));
    /* Nothing is cut off or left out on paper. */
    const char *paper = strstr(page, "@media print{");
    ck_assert_ptr_nonnull(paper);
    ck_assert_ptr_nonnull(strstr(paper, ".wide{overflow:visible}"));
    ck_assert_ptr_null(strstr(paper, "details{display:none}"));
    size_t n = 0;
    for (const char *p = page; (p = strstr(p, "<details class=model>"));
         p++)
        n++;
    ck_assert_uint_eq(n, MODELS);
    lmq_text_free(page);
    lmq_report_free(r);
}
END_TEST

/* ---- Bounds ---- */

START_TEST(what_does_not_fit_says_what_would)
{
    const char *text = short_text("a.txt", 3000);
    const char *paths[MODELS];
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *report;
    struct lmq_error err;

    /* The least memory for one, and then three in it. */
    make_models(paths);
    options.memory = 1u << 14;
    while (try_several(paths, 1, &options, NULL, NULL, NULL, NULL) ==
           LMQ_ERR_NOMEM)
        options.memory += 1u << 14;
    ck_assert_uint_gt(options.memory, 1u << 14);
    ck_assert_int_eq(
        try_several(paths, MODELS, &options, NULL, &report, NULL, &err),
        LMQ_ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.message, "through 4 models"));
    ck_assert_ptr_nonnull(strstr(err.hint, "the first 1 of the 3 models"));
}
END_TEST

static int
stop_later(void *context, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage;
    return (double)done > *(double *)context * (double)total;
}

START_TEST(an_interruption_leaves_the_same_part_of_all)
{
    const char *text = fable("held-out-a.txt"), *paths[MODELS];
    const char *const gates[] = {"kld.mean<=0"};
    struct lmq_validate_options options = usual_options(&text);
    struct lmq_report *r;
    double part = 0.5;
    const struct lmq_progress progress = {.report = stop_later,
                                          .context = &part};
    int is_partial;

    make_models(paths);
    options.max_tokens = 4000;
    options.gates = gates;
    options.n_gates = 1;
    ck_assert_int_eq(try_several(paths, MODELS, &options, &progress, &r,
                                 &is_partial, NULL),
                     LMQ_OK);
    ck_assert_int_eq(is_partial, 1);
    ck_assert_double_eq(lmq_report_number(r, "partial"), 1);
    ck_assert_str_eq(lmq_report_string(r, "verdict.result"), "PARTIAL");
    for (int i = 0; i < MODELS; i++) {
        ck_assert_double_gt(at(r, "models.%d.scored", i), 0);
        ck_assert_double_eq(at(r, "models.%d.scored", i),
                            lmq_report_number(r, "scored"));
        ck_assert_double_eq(at(r, "models.%d.partial", i), 1);
    }
    ck_assert_uint_eq(lmq_report_length(lmq_report_at(r, "differences")), 3);
    lmq_report_free(r);
    part = 0;
    ck_assert_int_eq(try_several(paths, MODELS, &options, &progress, &r,
                                 &is_partial, NULL),
                     LMQ_ERR_CANCELLED);
}
END_TEST

static enum lmq_status
count_position(void *context, size_t side, const struct lmq_window *window,
               size_t token, const struct lmq_position_drift *drift,
               struct lmq_error *err)
{
    (void)side, (void)window, (void)token, (void)drift, (void)err;
    ++*(size_t *)context;
    return LMQ_OK;
}

/* At once, but not before there are logits. */
static enum lmq_status
stop_in_head(void *context, double done, double total, struct lmq_error *err)
{
    (void)done, (void)total, (void)err;
    return *(size_t *)context > 0 ? LMQ_ERR_CANCELLED : LMQ_OK;
}

START_TEST(only_who_wants_whole_windows_waits_for_their_end)
{
    int32_t tokens[200] = {1};
    struct lmq_window window = {.n = 200, .scored = 1};
    const struct lmq_corpus corpus = {
        .tokens = tokens, .n_tokens = 200, .windows = &window, .n_windows = 1};
    const struct lmq_side sides[] = {lmq_side_reference(),
                                     lmq_side_reference()};
    struct lmq_checkpoint *checkpoint = open_checkpoint(fable(""));
    struct lmq_model *model;

    ck_assert_int_eq(lmq_model_open_lazily(checkpoint, &model, NULL), LMQ_OK);
    for (int whole = 0; whole < 2; whole++) {
        const struct lmq_lockstep lockstep = {.models = &model,
                                              .n_models = 1,
                                              .sides = sides,
                                              .n_sides = 2,
                                              .corpus = &corpus,
                                              .n_windows = 1,
                                              .memory = (size_t)1 << 28,
                                              .threads = 1};
        size_t n = 0;
        const struct lmq_observer observer = {.context = &n,
                                              .position = count_position,
                                              .progress = stop_in_head,
                                              .wants_whole_windows = whole};
        ck_assert_int_eq(lmq_lockstep_run(&lockstep, &observer, NULL),
                         LMQ_ERR_CANCELLED);
        ck_assert_uint_eq(n, whole ? 199 : LMQ_HEAD_ROWS);
    }
    lmq_model_close(model);
    lmq_checkpoint_close(checkpoint);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {
        each_has_the_figures_that_it_has_alone,
        one_of_several_is_one,
        differences_are_paired,
        twins_do_not_differ,
        the_front_is_by_bytes,
        gates_are_asked_of_each,
        the_verdict_comes_first,
        the_page_has_all_of_them,
        what_does_not_fit_says_what_would,
        an_interruption_leaves_the_same_part_of_all,
        only_who_wants_whole_windows_waits_for_their_end,
    };

    return RUN_SUITE("several", tests);
}
